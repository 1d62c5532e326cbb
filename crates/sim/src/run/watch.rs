//! When a run has stalled: no open flow can end, and none is to come.
//!
//! The director looks at a run that ends with its flows every [`INTERVAL`] of virtual time. It has
//! stalled if nothing is to come from outside (arrivals, answers, failures that begin or end) and
//!
//! - the hosts of every open flow are cut off from each other for good, or
//! - no byte has been delivered or acknowledged for long enough, and every flow that is not cut off
//!   either waits for somebody else or has timed out so often in vain: [`ROUNDS`] times, and
//!   [`ROUNDS_IN_DEADLOCK`] times beside stops that wait for each other.
//!
//! *Long enough* is what all bytes in the network take over its slowest link, and several round
//! trips, so that a slow network is no stalled one. Where links lose packets by chance for good, a
//! flow gets as many more timeouts as it needs.
//!
//! Invariant: a look depends on its virtual time and the state of the run then. At which edges the
//! director asks changes neither whether nor when a run has stalled.

use super::*;
use crate::hosts::OpenFlow;
use crate::standstill::{Deadlock, Islands, Silence, Standstill, settled};

/// From one look to the next, rounded up to windows.
const INTERVAL: Time = Time::from_ms(10);
/// Timeouts in vain after which a flow has no hope: with a back-off to two minutes, an hour.
const ROUNDS: u32 = 32;
/// The same where a deadlock explains them.
const ROUNDS_IN_DEADLOCK: u32 = 5;
/// A flow whose timers never count as timeouts has no hope after so long.
const PATIENCE: Time = Time::from_s(100);
/// How often everything in the network could have crossed the slowest link, and its longest round
/// trip.
const CROSSINGS: u64 = 8;
const ROUND_TRIPS: u64 = 32;
/// Bytes that count as in the network although none is: the largest segment.
const SEGMENT: u64 = 65_536;

/// The state at the last look that saw progress.
struct Baseline {
    at: Time,
    progress: Progress,
    /// Timeouts by flow, in ascending order of flows.
    timeouts: Vec<(FlowId, u32)>,
}

/// A difference between two is progress.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Progress {
    started: u64,
    completed: u64,
    acked: u64,
    delivered: u64,
}

/// Looks for the end of progress.
pub(crate) struct Watch {
    interval: Time,
    next: Time,
    settled: Time,
    islands: Option<Islands>,
    rounds: u32,
    /// Bits a second of the slowest link or limit, and a bound of a round trip.
    slowest: u64,
    round_trip: Time,
    baseline: Option<Baseline>,
}

impl Watch {
    pub(super) fn new(plan: &Plan, window: Time) -> Watch {
        let windows = INTERVAL.as_ps().div_ceil(window.as_ps().max(1)).max(1);
        let interval = window.saturating_mul(windows);
        let links = plan.topology.links.iter();
        let rates = links.clone().map(|link| link.rate.bps());
        let delay = links.map(|link| link.delay).max().unwrap_or_default();
        let slowest = rates
            .chain(plan.limits.iter().map(|limit| limit.rate().bps()))
            .min()
            .unwrap_or(1)
            .max(1);
        Watch {
            interval,
            next: interval,
            settled: settled(plan),
            islands: Islands::of(plan),
            rounds: rounds(plan),
            slowest,
            // Six hops are a fat tree's, and each way ends in a stack.
            round_trip: (delay.saturating_mul(6))
                .saturating_add(slowest_work(plan))
                .saturating_mul(2),
            baseline: None,
        }
    }

    /// The judgement of open flows at `at`, whether or not the run goes on.
    pub(super) fn judge(&self, at: Time, plan: &Plan, partitions: &[&mut Partition]) -> Standstill {
        let open: Vec<OpenFlow> = partitions.iter().flat_map(|p| p.hosts.open_flows()).collect();
        let cut =
            self.islands.as_ref().map(|islands| islands.cut(open.iter().map(|flow| flow.ends)));
        Standstill {
            at,
            open: open.len() as u64,
            cut: cut.unwrap_or_default(),
            deadlock: Deadlock::find(plan, partitions),
            ..Standstill::default()
        }
    }

    /// Whether no failure is to begin or end after `at`.
    pub(super) fn is_settled(&self, at: Time) -> bool {
        at >= self.settled
    }

    /// All events before `until` have been served, and none is due before it: the run's standstill,
    /// if it has stalled by then.
    pub(super) fn look(
        &mut self,
        until: Time,
        arrivals: &Ahead,
        plan: &Plan,
        partitions: &[&mut Partition],
    ) -> Option<Standstill> {
        if until < self.next {
            return None;
        }
        let at = self.next;
        self.next = self.after(until);
        let waiting: i64 = partitions.iter().map(|p| p.hosts.waiting.under_way).sum();
        let is_to_come = arrivals.next_time().is_some()
            || waiting != 0
            || !self.is_settled(at)
            || partitions.iter().any(|p| !p.nothing_to_start(at) || p.hosts.thinks());
        if is_to_come {
            self.baseline = None;
            return None;
        }
        let mut open: Vec<OpenFlow> =
            partitions.iter().flat_map(|p| p.hosts.open_flows()).collect();
        open.sort_unstable();
        self.note(at, &open, partitions);
        let apart = |flow: &OpenFlow| {
            self.islands.as_ref().is_some_and(|islands| islands.are_apart(flow.ends.0, flow.ends.1))
        };
        let hopeful: Vec<OpenFlow> = open.iter().filter(|flow| !apart(flow)).copied().collect();
        if hopeful.is_empty() && !open.is_empty() {
            return Some(Standstill { is_end: true, ..self.judge(at, plan, partitions) });
        }
        let since = self.baseline.as_ref()?.at;
        let rounds = if Deadlock::find(plan, partitions).is_some() {
            ROUNDS_IN_DEADLOCK
        } else {
            self.rounds
        };
        let last = partitions.iter().map(|p| p.last_event()).max().unwrap_or_default();
        let hopeless = hopeful.iter().map(|flow| self.hopeless_from(flow, rounds, last));
        let hopeless =
            hopeless.max().unwrap_or(since).max(since.saturating_add(self.long_enough(partitions)));
        let end = self.rounded(hopeless).max(at);
        if end > until || end >= Time::END {
            return None;
        }
        let mut silence = Silence { since: Some(since), rounds, ..Silence::default() };
        for flow in &hopeful {
            *match () {
                () if flow.waits => &mut silence.waiting,
                () if self.tried(flow) >= rounds => &mut silence.timed_out,
                () => &mut silence.others,
            } += 1;
        }
        let silence = Some(silence);
        Some(Standstill { is_end: true, silence, ..self.judge(end, plan, partitions) })
    }

    /// The report on a run in which nothing is due any more although flows are open; `None` if none
    /// is open that no working link could serve.
    pub(super) fn judge_idle(
        &self,
        at: Time,
        plan: &Plan,
        partitions: &[&mut Partition],
    ) -> Option<Standstill> {
        let found = self.judge(at, plan, partitions);
        let waiting = found.open - found.cut.flows;
        let silence = Some(Silence { waiting, ..Silence::default() });
        (waiting > 0).then_some(Standstill { is_end: true, silence, ..found })
    }

    /// How often a flow has timed out since the last progress.
    fn tried(&self, flow: &OpenFlow) -> u32 {
        let Some(baseline) = &self.baseline else { return 0 };
        let place = baseline.timeouts.binary_search_by_key(&flow.flow, |(flow, _)| *flow);
        let before = place.map_or(0, |place| baseline.timeouts[place].1);
        flow.timeouts.saturating_sub(before)
    }

    /// Compares with the baseline, which is renewed if there was progress.
    fn note(&mut self, at: Time, open: &[OpenFlow], partitions: &[&mut Partition]) {
        let mut progress = Progress { started: 0, completed: 0, acked: 0, delivered: 0 };
        for p in partitions {
            let (acked, delivered) = p.hosts.moved();
            progress.started += p.hosts.counters.started;
            progress.completed += p.hosts.counters.completed;
            progress.acked = progress.acked.wrapping_add(acked);
            progress.delivered = progress.delivered.wrapping_add(delivered);
        }
        let is_same = self.baseline.as_ref().is_some_and(|baseline| baseline.progress == progress);
        if !is_same {
            let timeouts = open.iter().map(|flow| (flow.flow, flow.timeouts)).collect();
            self.baseline = Some(Baseline { at, progress, timeouts });
        }
    }

    /// From when on a flow has no hope, if nothing happens after `last`; never: [`Time::MAX`].
    fn hopeless_from(&self, flow: &OpenFlow, rounds: u32, last: Time) -> Time {
        let Some(baseline) = &self.baseline else { return Time::MAX };
        let tried = self.tried(flow);
        if flow.waits || tried >= rounds {
            return baseline.at;
        }
        let tries_on = tried > 0 || flow.deadline > last.saturating_add(PATIENCE);
        if tries_on { Time::MAX } else { baseline.at.saturating_add(PATIENCE) }
    }

    /// In which time something would have been delivered if anything could.
    fn long_enough(&self, partitions: &[&mut Partition]) -> Time {
        let mut audit = Audit::default();
        partitions.iter().for_each(|p| audit.merge(&p.fabric.audit));
        let gone = audit.delivered.bytes + audit.dropped_total().bytes;
        let bytes = audit.injected.bytes.saturating_sub(gone).saturating_add(SEGMENT);
        let ps = u128::from(bytes) * 8 * 1_000_000_000_000 / u128::from(self.slowest);
        let crossing = Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
        crossing
            .saturating_mul(CROSSINGS)
            .saturating_add(self.round_trip.saturating_mul(ROUND_TRIPS))
    }

    /// The first look at or after a time, and the first one after it.
    fn rounded(&self, at: Time) -> Time {
        Time::from_ps(
            at.as_ps().div_ceil(self.interval.as_ps()).saturating_mul(self.interval.as_ps()),
        )
    }
    fn after(&self, at: Time) -> Time {
        Time::from_ps(
            (at.as_ps() / self.interval.as_ps())
                .saturating_add(1)
                .saturating_mul(self.interval.as_ps()),
        )
    }
}

/// Timeouts in vain after which a flow has no hope. A packet and its answer survive all links that
/// lose by chance for good with a probability p; the flow gets 32/p, which all fail with e^-32.
fn rounds(plan: &Plan) -> u32 {
    let lossy =
        plan.failures.iter().filter(|failure| failure.until == Time::MAX && failure.loss < 1.0);
    let survives = lossy.fold(1.0, |p, failure| p * (1.0 - failure.loss).powi(2));
    (f64::from(ROUNDS) / survives).min(1e9) as u32
}

/// The longest that a host takes over a segment.
fn slowest_work(plan: &Plan) -> Time {
    let segment = |work: Time, per_byte: Time| {
        work.saturating_mul(64).saturating_add(per_byte.saturating_mul(SEGMENT))
    };
    let core = plan.host.receive_cpu.as_ref();
    let core = core
        .map(|it| segment(it.per_packet.saturating_add(it.per_segment), it.per_byte))
        .unwrap_or_default();
    let application = plan.applications.iter().map(|it| {
        let costs = &it.costs;
        let work =
            segment(costs.work.saturating_add(costs.mean.saturating_mul(32)), costs.per_byte);
        let slower = work.saturating_mul(costs.slow_down.max(1.0).ceil() as u64);
        slower.saturating_add(costs.stall_every.map_or(Time::ZERO, |_| costs.stall))
    });
    application.max().unwrap_or_default().saturating_add(core).saturating_add(plan.host.stack_delay)
}
