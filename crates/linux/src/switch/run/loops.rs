//! Probes for loops, sent by the first worker, and what they find.

use super::Switch;
use crate::switch::node::loops::Seen;
use crate::switch::order::Order;
use millpond_core::Time;

impl Switch {
    /// Looks at the probes that have come in, and sends those that are due.
    pub(super) fn look_for_loops(&mut self, now: Time) {
        let seen = self.node.take_probes();
        if !self.team.leads() {
            if !seen.is_empty() {
                self.team.order(|| Order::Probes(seen.clone()));
            }
            return;
        }
        seen.into_iter().for_each(|seen| self.judge_probe(now, seen));
        for index in self.node.probe_loops(now) {
            self.team.order(|| Order::Blocked { index, is_blocked: false });
        }
    }

    /// Blocks the port of a loop that a probe has found.
    pub(super) fn judge_probe(&mut self, now: Time, seen: Seen) {
        if let Some(index) = self.node.judge_probe(now, seen, &self.uplink.peer_names()) {
            self.team.order(|| Order::Blocked { index, is_blocked: true });
        }
    }
}
