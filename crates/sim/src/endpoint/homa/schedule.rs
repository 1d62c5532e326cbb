//! A receiving host's schedule: which of the messages that come in there are granted (§3.3, §3.5).
//!
//! A message waits here while some of it is neither sent blindly nor granted. Of each sending host
//! the one with the fewest bytes to come has a turn, and of those the `overcommitment` with the
//! fewest: several, so that the link is used when one of the senders is busy with other messages.
//!
//! Invariant: turns are in the order of bytes to come, then of flows, and no two are of one peer.

use millpond_core::{FlowId, HostId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Schedule {
    /// By bytes to come.
    order: BTreeSet<(u32, FlowId)>,
    waiting: BTreeMap<FlowId, Waiting>,
}

/// A message that waits for grants.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    remaining: u32,
    src: HostId,
    slot: u32,
}

impl Schedule {
    /// A flow's message has so much to come, or waits for nothing.
    pub fn put(&mut self, flow: FlowId, src: HostId, slot: u32, remaining: Option<u32>) {
        match self.waiting.get(&flow) {
            Some(known) if Some(known.remaining) == remaining => return,
            Some(known) => _ = self.order.remove(&(known.remaining, flow)),
            None if remaining.is_none() => return,
            None => {}
        }
        match remaining {
            Some(remaining) => {
                self.order.insert((remaining, flow));
                self.waiting.insert(flow, Waiting { remaining, src, slot });
            }
            None => _ = self.waiting.remove(&flow),
        }
    }

    /// Whether a flow's message waits here.
    pub fn has(&self, flow: FlowId) -> bool {
        self.waiting.contains_key(&flow)
    }

    /// Whose turn it is, at most so many: flows and their slots, the shortest message first.
    pub fn turns(&self, most: usize) -> Vec<(FlowId, u32)> {
        let mut peers: Vec<HostId> = Vec::new();
        let mut turns = Vec::new();
        for (_, flow) in &self.order {
            if turns.len() == most {
                break;
            }
            let Waiting { src, slot, .. } = self.waiting[flow];
            if !peers.contains(&src) {
                peers.push(src);
                turns.push((*flow, slot));
            }
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(schedule: &Schedule, most: usize) -> Vec<FlowId> {
        schedule.turns(most).into_iter().map(|(flow, _)| flow).collect()
    }

    #[test]
    fn turns_are_the_shortest_messages_of_different_peers() {
        let mut it = Schedule::default();
        // Two of peer 1, and one each of peers 2, 3, 4.
        for (flow, src, remaining) in
            [(10, 1, 500), (11, 1, 400), (20, 2, 450), (30, 3, 400), (40, 4, 9_000)]
        {
            it.put(flow, src, flow * 2, Some(remaining));
        }
        assert_eq!(flows(&it, 9), [11, 30, 20, 40], "equal ones by their numbers");
        assert_eq!(it.turns(2), [(11, 22), (30, 60)]);
        it.put(40, 4, 80, Some(100));
        it.put(11, 1, 22, None);
        assert_eq!(flows(&it, 3), [40, 30, 20]);
        assert!(it.has(10) && !it.has(11));
        [10, 20, 30, 40, 11].into_iter().for_each(|flow| it.put(flow, 1, 0, None));
        assert!(it.turns(9).is_empty() && it.order.is_empty());
    }
}
