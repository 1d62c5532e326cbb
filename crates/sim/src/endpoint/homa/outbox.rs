//! A sending host's order: which of its messages sends the next packet (§3.2).
//!
//! The shortest first, by what is left to send, of those that may send. A host hands its NIC no
//! more than two packets, the one that leaves and the next: what is there cannot be overtaken.
//!
//! Invariant: the order is of urgencies and flows alone.

use millpond_core::FlowId;
use std::collections::{BTreeMap, BTreeSet};

/// Packets that may be in the NIC.
pub const NIC_PACKETS: u64 = 2;

#[derive(Debug, Default)]
pub struct Outbox {
    order: BTreeSet<(u64, FlowId)>,
    ready: BTreeMap<FlowId, (u64, u32)>,
}

impl Outbox {
    /// A flow's message may send, and this urgently; or it may not.
    pub fn put(&mut self, flow: FlowId, slot: u32, urgency: Option<u64>) {
        let known = self.ready.get(&flow).map(|(urgency, _)| *urgency);
        if known == urgency {
            return;
        }
        if let Some(known) = known {
            self.order.remove(&(known, flow));
        }
        match urgency {
            Some(urgency) => {
                self.order.insert((urgency, flow));
                self.ready.insert(flow, (urgency, slot));
            }
            None => _ = self.ready.remove(&flow),
        }
    }

    /// Whose packet is next: the flow and its slot.
    pub fn next(&self) -> Option<(FlowId, u32)> {
        let (_, flow) = self.order.first()?;
        Some((*flow, self.ready[flow].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_is_next() {
        let mut it = Outbox::default();
        it.put(5, 50, Some(3_000));
        it.put(4, 40, Some(2_000));
        it.put(3, 30, Some(2_000));
        assert_eq!(it.next(), Some((3, 30)), "equal ones by their numbers");
        it.put(5, 50, Some(0));
        assert_eq!(it.next(), Some((5, 50)));
        it.put(5, 50, None);
        it.put(3, 30, None);
        it.put(3, 30, None);
        assert_eq!(it.next(), Some((4, 40)));
        it.put(4, 40, None);
        assert!(it.next().is_none() && it.ready.is_empty());
    }
}
