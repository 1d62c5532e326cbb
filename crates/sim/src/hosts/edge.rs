//! The sending edge of a connection's end: every segment that it hands down gets a label and a flowcell.
//!
//! The label goes into [`Packet::entropy`], by which the fabric tells flows apart; the flowcell into a data packet's body. A pure acknowledgement needs no flowcell, since receive offload does not
//! wait with it.

use crate::labels::LabelPlan;
use millpond_core::edge::flowcell::Flowcell;
use millpond_core::random::mix64;
use millpond_core::{FlowId, Packet, Time};
use std::sync::Arc;

/// One direction of a connection.
pub(super) struct Edge {
    plan: Arc<LabelPlan>,
    cell: Flowcell,
    /// Of its 5-tuple.
    hash: u32,
}

impl Edge {
    /// Of a new connection; `is_data`: of the direction of its data.
    pub(super) fn new(plan: &Arc<LabelPlan>, flow: FlowId, hash: u32, is_data: bool) -> Box<Edge> {
        let key = mix64(mix64(plan.seed) ^ (u64::from(flow) << 1 | u64::from(is_data)));
        Box::new(Edge { cell: Flowcell::new(&plan.rule, key, 0), hash, plan: plan.clone() })
    }

    /// Stamps the first packet of a segment of so many bytes, from which the others are copied.
    #[inline(never)]
    pub(super) fn stamp(&mut self, now: Time, bytes: u32, packet: &mut Packet) {
        let labels = self.plan.between(now, packet.src, packet.dst);
        let stamp = self.cell.stamp(now, &self.plan.rule, bytes, labels);
        packet.entropy = match self.plan.is_followed {
            true => u32::from(stamp.label),
            false => mix64(u64::from(self.hash) << 32 | u64::from(stamp.flowcell)) as u32,
        };
        packet.set_flowcell(stamp.flowcell);
    }
}
