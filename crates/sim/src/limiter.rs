//! A host's limits: the virtual queues of `core::limit`, the classes of HTB, and the qdisc in which segments wait for their
//! departure times.
//!
//! One [`Limiter`] a host that has any limit, behind [`Nic::Limited`](crate::nic::Nic): hosts without a limit never come
//! here. It decides on super-segments where the kernel's cgroup hook sees them: after the transport has built them and
//! before the NIC cuts them. On arriving packets it decides packet by packet (no receive offload is modelled).
//!
//! Invariant: a segment that is refused was charged to nothing, and what waits leaves at its time, each flow in order.

use millpond_core::limit::{Ask, Form, Length, Outcome, Scopes, Settings, State, Verdict, charge, wire_bytes};
use millpond_core::random::Stream;
use millpond_core::{HostId, PacketId, Time};
use millpond_scenario::limit::{LimitKind, LimitPlan};
use millpond_scenario::plan::Plan;
use std::collections::BTreeMap;

/// The virtual queues' clocks at time zero, in nanoseconds: to them, zero means never.
const EPOCH: u64 = 1_000_000_000;

/// What one limit has seen in one direction, on all hosts of a partition or of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Segments (or, arriving, packets) that it was charged for, and what they were charged.
    pub packets: u64,
    /// Bytes charged.
    pub bytes: u64,
    /// Those that it let pass in the measured time, in bytes charged.
    pub measured_bytes: u64,
    /// Decisions that were its own: it was the most congested.
    pub decided: u64,
    /// Given CE.
    pub marked: u64,
    /// Bytes of them.
    pub marked_bytes: u64,
    /// Senders told to reduce.
    pub reduced: u64,
    /// Refused (leaving: a local failure to send; arriving: lost).
    pub dropped: u64,
    /// Bytes of them.
    pub dropped_bytes: u64,
    /// Let through beyond the drop threshold.
    pub bypassed: u64,
    /// Sum of the credit after each packet, in bytes.
    pub credit_sum: i128,
    /// Sum of the smoothed round-trip times at the packets that had one, in microseconds.
    pub rtt_sum: u64,
    /// How many had.
    pub rtts: u64,
    /// Sum of the times that segments waited for their departure.
    pub waited: Time,
    /// How many were given one.
    pub timed: u64,
}

impl LimitCounts {
    /// Adds another's.
    pub fn merge(&mut self, other: &LimitCounts) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.measured_bytes += other.measured_bytes;
        self.decided += other.decided;
        self.marked += other.marked;
        self.marked_bytes += other.marked_bytes;
        self.reduced += other.reduced;
        self.dropped += other.dropped;
        self.dropped_bytes += other.dropped_bytes;
        self.bypassed += other.bypassed;
        self.credit_sum += other.credit_sum;
        self.rtt_sum += other.rtt_sum;
        self.rtts += other.rtts;
        self.waited += other.waited;
        self.timed += other.timed;
    }
}

/// A limit on this host in one direction.
struct Here {
    /// The classes of traffic that belong to it; `None`: all.
    classes: Option<Vec<u16>>,
    /// Its virtual queue and those of its scopes, as numbers in `scopes`.
    ids: Vec<u16>,
}

/// The virtual queues of one direction.
#[derive(Default)]
struct Side {
    limits: Vec<Here>,
    scopes: Scopes,
    /// By scope: its limit in the plan, how it charges, and what it has seen.
    meters: Vec<Meter>,
    /// Scopes of the packet at hand.
    ids: Vec<u16>,
}

struct Meter {
    plan: u16,
    length: Length,
    framing: u32,
    counts: LimitCounts,
}

/// A class of HTB.
struct Class {
    plan: u16,
    classes: Option<Vec<u16>>,
    settings: Settings,
    state: State,
    framing: u32,
    queue: usize,
    waiting: usize,
    counts: LimitCounts,
}

/// A segment as a limit sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Class of its traffic, if known.
    pub class: Option<u16>,
    /// Transport payload.
    pub payload: u32,
    /// Packets that it is cut into.
    pub packets: u32,
    /// The flow's packets in flight; `u32::MAX`: unknown.
    pub in_flight: u32,
    /// The flow's smoothed round-trip time; zero: unknown.
    pub srtt: Time,
    /// ECN field.
    pub ecn: u32,
}

/// What a segment may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// It is refused.
    pub refused: bool,
    /// It gets CE.
    pub mark: bool,
    /// Its sender is to reduce the window.
    pub reduce: bool,
    /// It may leave then; now, if that is not later.
    pub at: Time,
    /// The class of HTB that it waits in.
    class: Option<u16>,
}

/// Segments that wait for their departure, as packets: those of one segment, and the class of HTB that they wait in.
type Held = (Vec<PacketId>, Option<u16>);

/// All limits of a host.
pub struct Limiter {
    egress: Side,
    ingress: Side,
    htb: Vec<Class>,
    /// By departure and order of arrival.
    held: BTreeMap<(Time, u32), Held>,
    next: u32,
    random: Stream,
    warm_up: Time,
    headers: u32,
    /// Packets marked here.
    pub marked: u64,
}

impl Limiter {
    /// Of a host; `None` if nothing limits it. `headers` are IP's and the transport's.
    pub fn new(plan: &Plan, host: HostId, headers: u32) -> Option<Limiter> {
        let here = |limit: &&(u16, &LimitPlan)| limit.1.hosts.binary_search(&host).is_ok();
        let all: Vec<(u16, &LimitPlan)> = plan.limits.iter().enumerate().map(|(i, l)| (i as u16, l)).collect();
        let own: Vec<(u16, &LimitPlan)> = all.iter().filter(here).copied().collect();
        if own.is_empty() {
            return None;
        }
        let htb = own.iter().filter_map(|(i, limit)| match &limit.kind {
            LimitKind::Nrm(_) => None,
            LimitKind::Htb(p) => Some(Class {
                plan: *i,
                classes: limit.classes.clone(),
                settings: limit.integers(false),
                state: State::default(),
                framing: p.framing.get() as u32,
                queue: p.queue as usize,
                waiting: 0,
                counts: LimitCounts::default(),
            }),
        });
        Some(Limiter {
            htb: htb.collect(),
            egress: Side::new(plan, &own, false),
            ingress: Side::new(plan, &own, true),
            held: BTreeMap::new(),
            next: 0,
            random: Stream::new(plan.seed, &format!("limit/host{host}")),
            warm_up: plan.warm_up,
            headers,
            marked: 0,
        })
    }

    /// Whether anything limits what arrives.
    pub fn sees_arrivals(plan: &Plan, host: HostId) -> bool {
        plan.limits.iter().any(|limit| limit.ingress && limit.hosts.binary_search(&host).is_ok())
    }

    /// Decides on a segment that wants to leave, and charges it unless it is refused.
    pub fn leave(&mut self, now: Time, seen: &Seen) -> Leave {
        let outcome = self.egress.decide(now, seen, self.headers, self.warm_up, &mut self.random);
        let verdict = outcome.verdict;
        let mark = verdict.has(Verdict::CE);
        let at = if outcome.send == 0 { now } else { Time::from_ns(outcome.send.saturating_sub(EPOCH)).max(now) };
        let mut leave =
            Leave { refused: verdict.has(Verdict::DROP), mark, reduce: verdict.has(Verdict::CWR), at, class: None };
        let class = self.htb.iter_mut().enumerate().find(|(_, class)| covers(&class.classes, seen.class));
        if let Some((number, class)) = class
            && !leave.refused
        {
            // A class that is full refuses as any qdisc does: the sender reduces its window. Nothing precedes it here that
            // would have to be taken back: who has both kinds of limit has been charged by the first.
            match class.enter(at, seen, self.headers, self.warm_up) {
                Some(departs) => (leave.at, leave.class) = (departs, Some(number as u16)),
                None => (leave.refused, leave.reduce) = (true, true),
            }
        }
        if mark && !leave.refused {
            self.marked += u64::from(seen.packets);
        }
        leave
    }

    /// Decides on a packet that has arrived.
    pub fn arrive(&mut self, now: Time, seen: &Seen) -> Verdict {
        let verdict = self.ingress.decide(now, seen, self.headers, self.warm_up, &mut self.random).verdict;
        if verdict.has(Verdict::CE) && seen.ecn == 2 {
            self.marked += 1;
        }
        verdict
    }

    /// Keeps a segment until its departure; returns the event's sequence.
    pub fn hold(&mut self, leave: &Leave, packets: Vec<PacketId>) -> u32 {
        let order = self.next;
        self.next = self.next.wrapping_add(1);
        if let Some(class) = leave.class {
            self.htb[class as usize].waiting += 1;
        }
        self.held.insert((leave.at, order), (packets, leave.class));
        order
    }

    /// The segment that is due.
    pub fn release(&mut self, now: Time, order: u32) -> Vec<PacketId> {
        let Some((packets, class)) = self.held.remove(&(now, order)) else { return Vec::new() };
        if let Some(class) = class {
            self.htb[class as usize].waiting -= 1;
        }
        packets
    }

    /// All packets that wait here.
    pub fn queued(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.held.values().flat_map(|(packets, _)| packets.iter().copied())
    }

    /// What each limit has seen: its index in the plan, whether of arriving packets, counts.
    pub fn counts(&self) -> Vec<(u16, bool, LimitCounts)> {
        let mut all = self.egress.counts(false);
        all.extend(self.ingress.counts(true));
        all.extend(self.htb.iter().map(|class| (class.plan, false, class.counts)));
        all
    }
}

fn covers(classes: &Option<Vec<u16>>, class: Option<u16>) -> bool {
    classes.as_ref().is_none_or(|list| class.is_some_and(|class| list.contains(&class)))
}

impl Side {
    fn new(plan: &Plan, own: &[(u16, &LimitPlan)], ingress: bool) -> Side {
        let mut side = Side::default();
        let mut integers = Vec::new();
        let seen = |limit: &LimitPlan| if ingress { limit.ingress } else { limit.egress };
        for (_, limit) in own.iter().filter(|(_, limit)| seen(limit) && matches!(limit.kind, LimitKind::Nrm(_))) {
            let mut ids = Vec::new();
            for &scope in &limit.scopes {
                let known = side.meters.iter().position(|m| m.plan == scope);
                let id = known.unwrap_or(side.meters.len());
                if known.is_none() {
                    let of = &plan.limits[scope as usize];
                    let LimitKind::Nrm(p) = &of.kind else { continue };
                    integers.push(of.integers(ingress));
                    let framing = p.framing.get().min(u64::from(u16::MAX)) as u32;
                    side.meters.push(Meter { plan: scope, length: p.length, framing, counts: LimitCounts::default() });
                }
                ids.push(id as u16);
            }
            side.limits.push(Here { classes: limit.classes.clone(), ids });
        }
        side.scopes = Scopes::new(integers);
        side
    }

    /// What core has counted of verdicts (of those that are only observed, too), and what the meters have.
    fn counts(&self, ingress: bool) -> Vec<(u16, bool, LimitCounts)> {
        let both = self.meters.iter().zip(&self.scopes.scopes).map(|(meter, scope)| {
            let c = &scope.counts;
            let counts = LimitCounts {
                packets: c.packets,
                bytes: c.bytes,
                decided: c.decided,
                marked: c.marked,
                marked_bytes: c.marked_bytes,
                reduced: c.reduced,
                dropped: c.dropped,
                dropped_bytes: c.dropped_bytes,
                bypassed: c.bypassed,
                ..meter.counts
            };
            (meter.plan, ingress, counts)
        });
        both.collect()
    }

    fn decide(&mut self, now: Time, seen: &Seen, headers: u32, warm_up: Time, random: &mut Stream) -> Outcome {
        self.ids.clear();
        for limit in self.limits.iter().filter(|limit| covers(&limit.classes, seen.class)) {
            for id in &limit.ids {
                if !self.ids.contains(id) {
                    self.ids.push(*id);
                }
            }
        }
        let Some(&first) = self.ids.first() else { return Outcome::default() };
        let bytes = seen.payload + headers;
        // All of a host's limits are charged alike, by the first one's rule.
        let meter = &self.meters[first as usize];
        let charged = match meter.length {
            Length::Ip => bytes,
            Length::Wire => wire_bytes(bytes, seen.packets, headers, meter.framing),
        };
        let rtt = (seen.srtt.as_ps() / 1_000_000).min(u64::from(u32::MAX)) as u32;
        let ask = Ask { bytes, charged, in_flight: seen.in_flight, rtt, tcp: 1, ecn: seen.ecn };
        let at = now.as_ps() / 1000 + EPOCH;
        let outcome = self.scopes.decide(&self.ids, at, &ask, random.bits() as u32);
        for &id in &self.ids {
            let scope = &self.scopes.scopes[id as usize];
            let counts = &mut self.meters[id as usize].counts;
            counts.pass(&ask, !outcome.verdict.has(Verdict::DROP) && now >= warm_up);
            counts.credit_sum += credit(&scope.settings, &scope.state, at);
            counts.waited += Time::from_ns(outcome.send.saturating_sub(at));
            counts.timed += u64::from(outcome.send > 0);
        }
        outcome
    }
}

/// What is saved up, or (negative) how far behind it is, in bytes.
fn credit(settings: &Settings, state: &State, now: u64) -> i128 {
    if settings.form == Form::Credit as u32 {
        return i128::from(state.credit);
    }
    let ns = i128::from(now) - i128::from(state.last);
    (ns * i128::from(settings.rate)) >> millpond_core::limit::POINT
}

impl LimitCounts {
    /// What is counted of every packet beside its verdict.
    fn pass(&mut self, ask: &Ask, measured: bool) {
        if measured {
            self.measured_bytes += u64::from(ask.charged);
        }
        if ask.rtt > 0 {
            self.rtt_sum += u64::from(ask.rtt);
            self.rtts += 1;
        }
    }
}

impl Class {
    /// A segment joins the queue, if there is room: when it leaves.
    fn enter(&mut self, now: Time, seen: &Seen, headers: u32, warm_up: Time) -> Option<Time> {
        let charged = wire_bytes(seen.payload + headers, seen.packets, headers, self.framing);
        let rtt = (seen.srtt.as_ps() / 1_000_000).min(u64::from(u32::MAX)) as u32;
        let ask = Ask { bytes: charged, charged, in_flight: seen.in_flight, rtt, tcp: 1, ecn: seen.ecn };
        self.counts.packets += 1;
        self.counts.bytes += u64::from(charged);
        self.counts.decided += 1;
        if self.waiting >= self.queue {
            self.counts.dropped += 1;
            self.counts.dropped_bytes += u64::from(charged);
            self.counts.reduced += 1;
            return None;
        }
        let at = now.as_ps() / 1000 + EPOCH;
        let departs = Time::from_ns(charge(&mut self.state, &self.settings, at, charged).send.max(at) - EPOCH).max(now);
        self.counts.pass(&ask, now >= warm_up);
        self.counts.credit_sum += credit(&self.settings, &self.state, at);
        self.counts.waited += departs.saturating_sub(now);
        self.counts.timed += 1;
        Some(departs)
    }
}
