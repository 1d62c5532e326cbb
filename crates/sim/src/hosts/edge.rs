//! The sending edge of a connection's end: every segment that it hands down gets a label and a flowcell.
//!
//! The label goes into [`Packet::hash`], by which the fabric tells flows apart; the flowcell of a data packet into the bits
//! of [`Packet::ack`] above the sender's slot. A pure acknowledgement needs no flowcell, since receive offload does not
//! wait with it.

use super::{Hosts, Sending};
use crate::labels::LabelPlan;
use millpond_core::edge::flowcell::Flowcell;
use millpond_core::edge::hedera::Reading;
use millpond_core::random::mix64;
use millpond_core::{FlowId, Packet, Time};
use std::sync::Arc;

/// Where the flowcell begins in [`Packet::ack`].
const FLOWCELL_SHIFT: u32 = 32;

/// The flowcell of a data packet.
#[inline]
pub(super) fn flowcell(packet: &Packet) -> u16 {
    (packet.ack >> FLOWCELL_SHIFT) as u16
}

/// One direction of a connection.
pub(super) struct Edge {
    plan: Arc<LabelPlan>,
    cell: Flowcell,
    /// Of its 5-tuple.
    hash: u32,
    /// The label that a central scheduler has given it.
    pinned: Option<u16>,
}

impl Edge {
    /// Of a new connection; `is_data`: of the direction of its data.
    pub(super) fn new(plan: &Arc<LabelPlan>, flow: FlowId, hash: u32, is_data: bool) -> Box<Edge> {
        let key = mix64(mix64(plan.seed) ^ (u64::from(flow) << 1 | u64::from(is_data)));
        Box::new(Edge { cell: Flowcell::new(&plan.rule, key, 0), hash, pinned: None, plan: plan.clone() })
    }

    /// Stamps the first packet of a segment of so many bytes, from which the others are copied.
    #[inline(never)]
    pub(super) fn stamp(&mut self, now: Time, bytes: u32, packet: &mut Packet, is_data: bool) {
        let labels = self.plan.between(now, packet.src, packet.dst);
        let stamp = self.cell.stamp(now, &self.plan.rule, bytes, labels);
        packet.hash = match self.plan.is_followed {
            true => u32::from(self.pinned.unwrap_or(stamp.label)),
            false => mix64(u64::from(self.hash) << 32 | u64::from(stamp.flowcell)) as u32,
        };
        if is_data {
            packet.ack |= u64::from(stamp.flowcell) << FLOWCELL_SHIFT;
        }
    }
}

/// What a central scheduler reads and changes.
impl Hosts {
    /// Adds the flows that have sent something, in no order.
    pub fn read_flows(&self, readings: &mut Vec<Reading>) {
        let reading = |(flow, it): (FlowId, &Sending)| {
            let bytes = it.sender.acked() + it.sender.in_flight();
            Reading { flow, src: it.opening.src, dst: it.opening.dst, bytes }
        };
        readings.extend(self.senders.iter().map(reading).filter(|it| it.bytes > 0));
    }

    /// Sends a flow's further segments by this label; `None`: by its own.
    pub fn pin(&mut self, flow: FlowId, label: Option<u16>) {
        let sending = self.senders.slot_of(flow).map(|slot| self.senders.at(slot));
        if let Some(edge) = sending.and_then(|it| it.edge.as_mut()) {
            edge.pinned = label;
        }
    }
}
