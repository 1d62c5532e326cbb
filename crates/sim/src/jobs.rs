//! Rounds of jobs, put together from the parts of their ranks.
//!
//! Invariant: a round's record depends on the parts alone, whatever their order.

use crate::shared::Shared;
use millpond_core::Time;
use millpond_ranks::collective::{Algorithm, Collective};
use millpond_ranks::{Job, Work};
use millpond_results::{CollectiveRecord, RankRecord};
use millpond_scenario::Ends;
use millpond_scenario::traffic::JobPlan;
use std::collections::BTreeMap;

/// The rounds that not all ranks have ended.
#[derive(Debug, Default)]
pub struct RoundsOfJobs {
    open: BTreeMap<(u16, u32), Parts>,
    /// By class: the time of a round without contention.
    closed_forms: BTreeMap<u16, Time>,
}

#[derive(Clone, Copy, Debug)]
struct Parts {
    count: u32,
    began: Time,
    ready: Time,
    first: Time,
    last: Time,
    computed: Time,
}

impl RoundsOfJobs {
    /// A rank has ended its part of a round; the round, if it is the last one.
    pub fn add(&mut self, shared: &Shared, rank: &RankRecord) -> Option<CollectiveRecord> {
        let key = (rank.class, rank.round);
        let parts = self.open.entry(key).or_insert(Parts {
            count: 0,
            began: Time::MAX,
            ready: Time::MAX,
            first: Time::MAX,
            last: Time::ZERO,
            computed: Time::ZERO,
        });
        parts.count += 1;
        parts.began = parts.began.min(rank.began);
        parts.ready = parts.ready.min(rank.ready);
        parts.first = parts.first.min(rank.ended);
        parts.last = parts.last.max(rank.ended);
        parts.computed = parts.computed.max(rank.computed);
        let job = shared.job(rank.class)?;
        if parts.count < job.count() {
            return None;
        }
        let parts = self.open.remove(&key)?;
        Some(self.record(shared, key.0, key.1, parts))
    }

    /// Rounds that not all ranks have ended when the run is over.
    pub fn unfinished(&mut self, shared: &Shared) -> Vec<CollectiveRecord> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().map(|(key, parts)| self.record(shared, key.0, key.1, parts)).collect()
    }

    fn record(
        &mut self,
        shared: &Shared,
        class: u16,
        round: u32,
        parts: Parts,
    ) -> CollectiveRecord {
        let mut record = CollectiveRecord {
            class,
            round,
            began: parts.began,
            begin: parts.ready,
            first_end: parts.first,
            end: None,
            computed: parts.computed,
            closed_form: Time::ZERO,
            algbw: None,
            busbw: None,
            counted: parts.ready >= shared.plan.warm_up,
        };
        let Some(job) = shared.job(class) else { return record };
        let is_over = parts.count == job.count();
        record.end = is_over.then_some(parts.last);
        let Work::Collective(Job { collective, .. }) = &job.work else { return record };
        let known = self.closed_forms.entry(class);
        record.closed_form = *known.or_insert_with(|| closed_form(shared, class, job, collective));
        if is_over {
            let time = parts.last.saturating_sub(parts.ready);
            record.algbw = collective.algorithm_bandwidth(time);
            record.busbw = record.algbw.map(|rate| rate * collective.bus_factor());
        }
        record
    }
}

/// The time of a round without contention. A message of a ring takes the mean over all ranks of
/// the time to the next rank, for a step's delays pass around the ring; any other takes as long as
/// from rank 0 to the rank that is the farthest from it.
fn closed_form(shared: &Shared, class: u16, job: &JobPlan, collective: &Collective) -> Time {
    let Shared { plan, ideal, .. } = shared;
    let hosts = &job.hosts;
    let time = |src, dst, bytes| ideal.message(plan, Ends { class, src, dst }, bytes);
    if collective.algorithm == Algorithm::Ring {
        let next = hosts.iter().skip(1).chain(hosts.first());
        let pairs: Vec<_> = hosts.iter().copied().zip(next.copied()).collect();
        return collective.closed_form(|bytes| {
            let each = pairs.iter().map(|(src, dst)| u128::from(time(*src, *dst, bytes).as_ps()));
            Time::from_ps((each.sum::<u128>() / pairs.len() as u128) as u64)
        });
    }
    let others = hosts.iter().skip(1).copied();
    let farthest = others.max_by_key(|to| (time(hosts[0], *to, 1), std::cmp::Reverse(*to)));
    let Some(to) = farthest else { return Time::ZERO };
    collective.closed_form(|bytes| time(hosts[0], to, bytes))
}
