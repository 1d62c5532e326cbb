//! A central scheduler's readings and changes of the connections here.
//!
//! Invariant: reading changes nothing.

use super::*;
use millpond_core::edge::hedera::Reading;

impl Hosts {
    /// Adds the flows that have sent something, in no order.
    pub fn read_flows(&self, readings: &mut Vec<Reading>) {
        let reading = |(flow, sending): (FlowId, &Sending)| {
            let bytes =
                sending.sender.acked() + sending.sender.standing(&self.shared.transport).in_flight;
            Reading { flow, src: sending.opening.src, dst: sending.opening.dst, bytes }
        };
        readings.extend(self.senders.iter().map(reading).filter(|reading| reading.bytes > 0));
    }

    /// Sends a flow's further segments by this label; `None`: by its own.
    pub fn pin(&mut self, flow: FlowId, label: Option<u16>) {
        let sending = self.senders.slot_of(flow).map(|slot| self.senders.at(slot));
        if let Some(egress) = sending.and_then(|sending| sending.egress.as_mut()) {
            egress.pin(label);
        }
    }
}
