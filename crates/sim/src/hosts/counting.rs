//! The counts of the mechanisms at hosts, reported by name.

use super::*;
use millpond_core::counters::{Count, Counters};
use millpond_core::registry::Choice;
use millpond_core::switch::pause::PAUSED;

impl Hosts {
    /// Reports what the mechanisms of this partition's hosts have counted by `now`.
    pub fn report_counters(&self, now: Time, counters: &mut Counters) {
        let plan = &self.shared.plan;
        if plan.transport_choices.importance.kind() != "none" {
            self.counters.marking.report(counters.of(plan.transport_choices.importance.kind()));
        }
        for (family, kinds) in self.shared.transport.counted() {
            let named = counters.of(family);
            for (kind, name) in kinds {
                named.add(*name, self.beside[*kind as usize]);
            }
        }
        if !self.messages.is_empty() {
            counters.of("homa").add("aborted", self.aborted);
        }
        if plan.switch.pause.kind() != "none" {
            counters.of(plan.switch.pause.kind()).add(PAUSED, Count::Micros(self.paused_time(now)));
        }
        if plan.host.choices.receive_offload.kind() != "none"
            && let Some(offload) = self.offload_counters()
        {
            offload.report(counters.of(plan.host.choices.receive_offload.kind()));
        }
        if plan.edge.virtual_switch.kind() != "none" {
            let named = counters.of(plan.edge.virtual_switch.kind());
            for switch in self.hosts.iter().filter_map(|host| host.node.virtual_switch()) {
                switch.counts().report(named);
            }
            if self.shared.has_overlay {
                named.add("held-us", Count::Micros(self.counters.held));
            }
        }
    }
}
