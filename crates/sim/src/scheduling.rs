//! The rounds of a central scheduler (Hedera): each reads what every flow has sent and gives large
//! flows their labels.
//!
//! A round looks at all partitions, so it is held in the serial part between two windows. Rounds
//! are a whole number of windows apart: the period is rounded up, and windows follow from the
//! topology alone.
//!
//! Invariant: what a round reads and changes depends on virtual time alone, not on partitions or
//! threads. A round that fell into a stretch without events is held before the next event.

use crate::labels::{Controller, is_known};
use crate::partition::Partition;
use crate::shared::Shared;
use millpond_core::Time;
use millpond_core::counters::Counters;
use millpond_core::edge::flowcell::LoadBalancingParams;
use millpond_core::edge::hedera::{HederaParams, Scheduler};
use millpond_core::registry::Choice;
use millpond_scenario::plan::Plan;

/// The scheduler and its next round.
pub struct Rounds {
    scheduler: Scheduler,
    period: Time,
    next: Time,
    /// By fabric link: its number in the plan.
    links: Vec<u32>,
}

impl Rounds {
    /// Of a plan that has a scheduler, with windows of this length.
    pub fn new(plan: &Plan, window: Time) -> Option<Rounds> {
        let LoadBalancingParams::Hedera(params) = &plan.edge.load_balancing else { return None };
        let period = window * params.period.as_ps().div_ceil(window.as_ps());
        let params = HederaParams { period, ..params.clone() };
        let Controller { network, trees, links } = Controller::new(plan);
        let leaves = plan.topology.attachment.hosts.iter().map(|(leaf, _)| *leaf);
        let hosts: Vec<_> =
            leaves.zip(&plan.topology.links).map(|(leaf, link)| (leaf, link.rate)).collect();
        Some(Rounds {
            scheduler: Scheduler::new(network, trees, &hosts, &params),
            period,
            next: period,
            links,
        })
    }

    pub fn report_counters(&self, plan: &Plan, counters: &mut Counters) {
        self.scheduler.counts.report(counters.of(plan.edge.load_balancing.kind()));
    }

    /// Holds the rounds that are due by `until`, before which all events have been served.
    pub fn hold(&mut self, until: Time, shared: &Shared, partitions: &mut [&mut Partition]) {
        while self.next <= until {
            let mut readings = Vec::new();
            partitions.iter().for_each(|p| p.hosts.read_flows(&mut readings));
            readings.sort_unstable_by_key(|it| it.flow);
            let (plan, at) = (&shared.plan, self.next);
            let delay = plan.edge.load_balancing.controller_delay();
            let is_dead =
                |link: u32| plan.failures.iter().any(|f| f.link == link && is_known(f, delay, at));
            for change in
                self.scheduler.round(&readings, |link| !is_dead(self.links[link as usize]))
            {
                let partition = shared.partition_of_host(change.src);
                partitions[usize::from(partition)].hosts.pin(change.flow, change.label);
            }
            // Without flows no round changes anything.
            let rounds =
                if readings.is_empty() { (until - at).as_ps() / self.period.as_ps() } else { 0 };
            self.next = at + self.period * (rounds + 1);
        }
    }
}
