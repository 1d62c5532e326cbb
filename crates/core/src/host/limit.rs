//! A host's limits: virtual queues, the classes of HTB, and what waits for its departure.
//!
//! A [`Limiter`] is one host's, both ways. On what leaves it decides by super-segments, where the
//! kernel's cgroup hook sees them: the endpoint has them ready and nothing has cut them. A segment
//! that it gives a departure time waits in a qdisc, cut and stamped, until then. On what arrives it
//! decides by the segments that receive offload and the ordering buffer let through.
//!
//! Invariant: a segment that a virtual queue refuses was charged to nothing, and what waits leaves
//! at its time, each flow in order. A class of HTB that is full refuses what the virtual queues
//! have been charged for, as the qdisc behind the kernel's hook does.

use super::passes;
use crate::limit::{
    Ask, Form, Length, Outcome, Scopes, Settings, State, Verdict, charge, wire_bytes,
};
use crate::packet::PacketId;
use crate::random::Stream;
use crate::units::Time;
use std::collections::BTreeMap;

/// The virtual queues' clocks at time zero, in nanoseconds: to them, zero means never.
const EPOCH: u64 = 1_000_000_000;

pub struct LimiterConfig {
    pub egress: SideConfig,
    pub ingress: SideConfig,
    /// Classes of HTB, for what leaves.
    pub classes: Vec<ClassConfig>,
    pub random: Stream,
    /// Traffic that passes from then on counts as measured.
    pub measured_from: Time,
    /// IP's and the transport's headers, in bytes.
    pub headers: u32,
    /// Bytes of framing that a packet has on the wire here, whatever a limit charges for it.
    pub frame: u32,
}

/// The virtual queues of one direction.
#[derive(Default)]
pub struct SideConfig {
    pub queues: Vec<QueueConfig>,
    /// The limits, each with what it charges.
    pub limits: Vec<LimitConfig>,
}

/// A virtual queue: how it decides, and the bytes that it charges for a packet.
pub struct QueueConfig {
    pub limit: u16,
    pub settings: Settings,
    pub length: Length,
    /// Bytes of framing a packet, where it charges for them.
    pub framing: u32,
}

pub struct LimitConfig {
    /// The classes of traffic that belong to it; `None`: all.
    pub classes: Option<Vec<u16>>,
    /// Its virtual queue and those of its scopes, by number.
    pub queues: Vec<u16>,
}

pub struct ClassConfig {
    pub limit: u16,
    /// The classes of traffic that belong to it; `None`: all.
    pub classes: Option<Vec<u16>>,
    pub settings: Settings,
    /// Bytes of framing a packet.
    pub framing: u32,
    /// Segments that may wait in it.
    pub queue: usize,
}

/// The traffic that one limit has seen in one direction, on all hosts of a partition or of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Segments that it was charged for, and what they were charged.
    pub packets: u64,
    /// Bytes charged.
    pub bytes: u64,
    /// Those that it let pass in the measured time, in bytes charged.
    pub measured_bytes: u64,
    /// Decisions that were its own: it was the most congested.
    pub decided: u64,
    pub marked: u64,
    /// Bytes of them.
    pub marked_bytes: u64,
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
    pub rtts: u64,
    /// Sum of the times that segments waited for their departure.
    pub waited: Time,
    pub timed: u64,
}

impl LimitCounts {
    /// Adds the counts of another host.
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

/// The virtual queues of one direction.
struct Side {
    limits: Vec<LimitConfig>,
    scopes: Scopes,
    /// By scope: its limit, how it charges, and what it has seen.
    meters: Vec<Meter>,
    /// Scopes of the segment at hand.
    ids: Vec<u16>,
}

struct Meter {
    config: QueueConfig,
    counts: LimitCounts,
}

/// A class of HTB, and the segments that wait in it.
struct Class {
    config: ClassConfig,
    state: State,
    waiting: usize,
    counts: LimitCounts,
}

/// A segment as a limit sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Class of its traffic, if known.
    pub class: Option<u16>,
    pub payload: u32,
    /// Packets that it is cut into.
    pub packets: u32,
    /// Bytes of TCP options beyond those that every packet has: SACK blocks.
    pub options: u32,
    /// The flow's packets in flight; `u32::MAX`: unknown.
    pub in_flight: u32,
    /// The flow's smoothed round-trip time; zero: unknown.
    pub srtt: Time,
    pub ecn: u32,
}

/// The limits' answer to a segment that wants to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    pub refused: bool,
    pub mark: bool,
    /// Its sender is to reduce the window.
    pub reduce: bool,
    /// It may leave then; now, if that is not later.
    pub at: Time,
    /// The class of HTB that it waits in.
    class: Option<u16>,
}

impl Leave {
    pub(super) fn at_once(now: Time) -> Leave {
        Leave { refused: false, mark: false, reduce: false, at: now, class: None }
    }
}

/// Segments that wait for their departure, as packets: those of one segment, and the class of HTB
/// that they wait in.
type Held = (Vec<PacketId>, Option<u16>);

pub struct Limiter {
    egress: Side,
    ingress: Side,
    htb: Vec<Class>,
    /// By departure and order of arrival.
    held: BTreeMap<(Time, u32), Held>,
    next: u32,
    random: Stream,
    measured_from: Time,
    headers: u32,
    frame: u32,
    /// Packets marked here.
    pub marked: u64,
}

impl Limiter {
    /// A limiter whose virtual queues are empty.
    pub fn new(config: LimiterConfig) -> Limiter {
        let LimiterConfig { egress, ingress, classes, random, measured_from, headers, frame } =
            config;
        let class = |config| Class {
            config,
            state: State::default(),
            waiting: 0,
            counts: LimitCounts::default(),
        };
        Limiter {
            egress: Side::new(egress),
            ingress: Side::new(ingress),
            htb: classes.into_iter().map(class).collect(),
            held: BTreeMap::new(),
            next: 0,
            random,
            measured_from,
            headers,
            frame,
            marked: 0,
        }
    }

    pub fn sees_arrivals(&self) -> bool {
        !self.ingress.limits.is_empty()
    }

    /// Of a segment of so many bytes on the wire: those that are neither payload nor what every
    /// packet has.
    pub(super) fn options(&self, bytes: u32, payload: u32, packets: u32) -> u32 {
        bytes.saturating_sub(payload + packets * (self.headers + self.frame))
    }

    /// Decides on a segment that wants to leave, and charges it unless it is refused.
    pub(super) fn leave(&mut self, now: Time, seen: &Seen) -> Leave {
        passes!(Limit);
        let outcome =
            self.egress.decide(now, seen, self.headers, self.measured_from, &mut self.random);
        let verdict = outcome.verdict;
        let mark = verdict.has(Verdict::CE);
        let at = if outcome.send == 0 {
            now
        } else {
            Time::from_ns(outcome.send.saturating_sub(EPOCH)).max(now)
        };
        let mut leave = Leave {
            refused: verdict.has(Verdict::DROP),
            mark,
            reduce: verdict.has(Verdict::CWR),
            at,
            class: None,
        };
        let class = self
            .htb
            .iter_mut()
            .enumerate()
            .find(|(_, class)| covers(&class.config.classes, seen.class));
        if let Some((number, class)) = class
            && !leave.refused
        {
            // A class that is full refuses as any qdisc does: the sender reduces its window.
            match class.enter(at, seen, self.headers, self.measured_from) {
                Some(departs) => (leave.at, leave.class) = (departs, Some(number as u16)),
                None => (leave.refused, leave.reduce) = (true, true),
            }
        }
        if mark && !leave.refused {
            self.marked += u64::from(seen.packets);
        }
        leave
    }

    /// Decides on a segment that has arrived.
    pub(super) fn arrive(&mut self, now: Time, seen: &Seen) -> Verdict {
        passes!(LimitUp);
        let verdict = self
            .ingress
            .decide(now, seen, self.headers, self.measured_from, &mut self.random)
            .verdict;
        if verdict.has(Verdict::CE) && seen.ecn == 2 {
            self.marked += u64::from(seen.packets);
        }
        verdict
    }

    /// Keeps a segment until its departure; returns the event's sequence.
    pub(super) fn hold(&mut self, leave: &Leave, packets: Vec<PacketId>) -> u32 {
        let order = self.next;
        self.next = self.next.wrapping_add(1);
        if let Some(class) = leave.class {
            self.htb[class as usize].waiting += 1;
        }
        self.held.insert((leave.at, order), (packets, leave.class));
        order
    }

    pub(super) fn release(&mut self, now: Time, order: u32) -> Vec<PacketId> {
        let Some((packets, class)) = self.held.remove(&(now, order)) else { return Vec::new() };
        if let Some(class) = class {
            self.htb[class as usize].waiting -= 1;
        }
        packets
    }

    /// All packets that wait here.
    pub(super) fn queued(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.held.values().flat_map(|(packets, _)| packets.iter().copied())
    }

    /// Of each limit: its index in the plan, whether of arriving packets, its counts.
    pub fn counts(&self) -> Vec<(u16, bool, LimitCounts)> {
        let mut all = self.egress.counts(false);
        all.extend(self.ingress.counts(true));
        all.extend(self.htb.iter().map(|class| (class.config.limit, false, class.counts)));
        all
    }
}

fn covers(classes: &Option<Vec<u16>>, class: Option<u16>) -> bool {
    classes.as_ref().is_none_or(|list| class.is_some_and(|class| list.contains(&class)))
}

impl Side {
    fn new(config: SideConfig) -> Side {
        let scopes = Scopes::new(config.queues.iter().map(|queue| queue.settings));
        let meter = |config| Meter { config, counts: LimitCounts::default() };
        Side {
            limits: config.limits,
            scopes,
            meters: config.queues.into_iter().map(meter).collect(),
            ids: Vec::new(),
        }
    }

    /// The counts that core has of verdicts (of those that are only observed, too), and the
    /// meters'.
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
            (meter.config.limit, ingress, counts)
        });
        both.collect()
    }

    fn decide(
        &mut self,
        now: Time,
        seen: &Seen,
        headers: u32,
        measured_from: Time,
        random: &mut Stream,
    ) -> Outcome {
        self.ids.clear();
        for limit in self.limits.iter().filter(|limit| covers(&limit.classes, seen.class)) {
            for id in &limit.queues {
                if !self.ids.contains(id) {
                    self.ids.push(*id);
                }
            }
        }
        let Some(&first) = self.ids.first() else { return Outcome::default() };
        let bytes = seen.payload + headers + seen.options;
        // All of a host's limits are charged alike, by the first one's rule.
        let meter = &self.meters[first as usize];
        let charged = match meter.config.length {
            Length::Ip => bytes,
            Length::Wire => wire_bytes(bytes, seen.packets, headers, meter.config.framing),
        };
        let rtt = (seen.srtt.as_ps() / 1_000_000).min(u64::from(u32::MAX)) as u32;
        let ask =
            Ask { bytes, charged, in_flight: seen.in_flight, rtt, tcp: 1, ecn: seen.ecn, share: 0 };
        let at = now.as_ps() / 1000 + EPOCH;
        let outcome = self.scopes.decide(&self.ids, at, &ask, random.bits() as u32);
        for &id in &self.ids {
            let scope = &self.scopes.scopes[id as usize];
            let counts = &mut self.meters[id as usize].counts;
            counts.pass(&ask, !outcome.verdict.has(Verdict::DROP) && now >= measured_from);
            counts.credit_sum += credit(&scope.settings, &scope.state, at);
            counts.waited += Time::from_ns(outcome.send.saturating_sub(at));
            counts.timed += u64::from(outcome.send > 0);
        }
        outcome
    }
}

/// The credit that is saved up, or (negative) how far behind it is, in bytes.
fn credit(settings: &Settings, state: &State, now: u64) -> i128 {
    if settings.form == Form::Credit as u32 {
        return i128::from(state.credit);
    }
    let ns = i128::from(now) - i128::from(state.last);
    (ns * i128::from(settings.rate)) >> crate::limit::POINT
}

impl LimitCounts {
    /// The counts of every packet beside its verdict.
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
    fn enter(&mut self, now: Time, seen: &Seen, headers: u32, measured_from: Time) -> Option<Time> {
        let charged = wire_bytes(
            seen.payload + headers + seen.options,
            seen.packets,
            headers,
            self.config.framing,
        );
        let rtt = (seen.srtt.as_ps() / 1_000_000).min(u64::from(u32::MAX)) as u32;
        let ask = Ask {
            bytes: charged,
            charged,
            in_flight: seen.in_flight,
            rtt,
            tcp: 1,
            ecn: seen.ecn,
            share: 0,
        };
        self.counts.packets += 1;
        self.counts.bytes += u64::from(charged);
        self.counts.decided += 1;
        if self.waiting >= self.config.queue {
            self.counts.dropped += 1;
            self.counts.dropped_bytes += u64::from(charged);
            self.counts.reduced += 1;
            return None;
        }
        let at = now.as_ps() / 1000 + EPOCH;
        let departs = Time::from_ns(
            charge(&mut self.state, &self.config.settings, at, charged).send.max(at) - EPOCH,
        )
        .max(now);
        self.counts.pass(&ask, now >= measured_from);
        self.counts.credit_sum += credit(&self.config.settings, &self.state, at);
        self.counts.waited += departs.saturating_sub(now);
        self.counts.timed += 1;
        Some(departs)
    }
}
