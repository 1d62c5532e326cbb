//! SP-PIFO: a PIFO made of a few FIFOs of strict priority (Gran Alcoz et al., NSDI 2020).
//!
//! Each FIFO has a bound, smallest for the one served first. A packet joins the least important
//! FIFO whose bound its rank reaches, and the bound becomes its rank (push-up). One that is below
//! all bounds joins the first, and all bounds fall by what it was below the first (push-down). So
//! the FIFOs come to share the ranks that are around.
//!
//! Invariant: the bounds ascend. A queue of this kind gives up no packets.

use super::{PausedSet, Waiting};
use crate::packet::{Packet, PacketId};
use crate::registry::{About, PathProperty, Signal};
use std::collections::VecDeque;

pub(super) const ABOUT: About = About {
    summary: "about the packet of the smallest rank first, by a few FIFOs whose bounds adapt",
    source: "Gran Alcoz et al.: SP-PIFO: approximating push-in first-out behaviors using \
             strict-priority queues, NSDI 2020",
    reads: &[Signal::Ranks],
    breaks: &[PathProperty::FifoPerFlow, PathProperty::FifoPerFlowcell],
    ..About::PLAIN
};

crate::params! {
    /// The keys of SP-PIFO (NSDI 2020).
    pub struct SpPifoParams {
        /// FIFOs of strict priority, 1 to 64. Source: 8, the paper's evaluation and what switches
        /// have.
        #[within(1..=64)]
        pub queues: u32 = 8,
    }
}

/// One FIFO.
#[derive(Clone, Debug, Default)]
struct Level {
    bound: u32,
    waiting: VecDeque<Waiting>,
}

/// A few FIFOs, the one served first in front.
#[derive(Clone, Debug)]
pub struct SpPifo {
    levels: Box<[Level]>,
}

impl SpPifo {
    pub(super) fn new(params: &SpPifoParams) -> SpPifo {
        SpPifo { levels: vec![Level::default(); params.queues.clamp(1, 64) as usize].into() }
    }
    pub(super) fn push(&mut self, id: PacketId, packet: &Packet) {
        let at = match self.levels.iter().rposition(|level| packet.rank >= level.bound) {
            Some(at) => at,
            None => {
                let cost = self.levels[0].bound - packet.rank;
                self.levels.iter_mut().for_each(|level| level.bound -= cost);
                0
            }
        };
        self.levels[at].bound = packet.rank;
        self.levels[at].waiting.push_back(Waiting::new(id, packet));
    }
    pub(super) fn pop(&mut self, paused: PausedSet) -> Option<Waiting> {
        if !paused.is_empty() {
            return None;
        }
        self.levels.iter_mut().find_map(|level| level.waiting.pop_front())
    }
    pub(super) fn waiting(&self) -> Vec<PacketId> {
        self.levels.iter().flat_map(|level| &level.waiting).map(|waiting| waiting.id).collect()
    }
    pub(super) fn can_evict(&self, _: u32, _: u64, _: u32) -> bool {
        false
    }
    pub(super) fn evict(&mut self, _: u32) -> Option<PacketId> {
        None
    }
    pub(super) fn is_fifo(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Queue, QueueParams};
    use super::*;
    use crate::random::Stream;
    use crate::registry::Choice;
    use proptest::prelude::*;

    fn push(it: &mut SpPifo, id: PacketId, rank: u32) {
        it.push(id, &Packet { rank, ..Packet::default() });
    }
    fn bounds(it: &SpPifo) -> Vec<u32> {
        it.levels.iter().map(|level| level.bound).collect()
    }

    #[test]
    fn bounds_are_pushed_up_and_down() {
        let mut it = SpPifo::new(&SpPifoParams { queues: 2 });
        let mut seen = Vec::new();
        for (id, rank) in [(0, 5), (1, 3), (2, 4), (3, 6), (4, 2)] {
            push(&mut it, id, rank);
            seen.push(bounds(&it));
        }
        // 5 and 6 to the second, 3 and 4 to the first; 2 is below both and costs 2.
        assert_eq!(seen, [[0, 5], [3, 5], [4, 5], [4, 6], [2, 4]]);
        assert_eq!(it.waiting(), [1, 2, 4, 0, 3]);
        assert_eq!(it.pop(PausedSet::of(&[0])), None);
        assert_eq!(
            std::iter::from_fn(|| it.pop(PausedSet::default()))
                .map(|waiting| waiting.id)
                .collect::<Vec<_>>(),
            [1, 2, 4, 0, 3]
        );
    }

    #[test]
    fn one_queue_is_a_fifo() {
        let mut it = SpPifo::new(&SpPifoParams { queues: 1 });
        [9, 1, 5].into_iter().zip(0..).for_each(|(rank, id)| push(&mut it, id, rank));
        assert_eq!(
            std::iter::from_fn(|| it.pop(PausedSet::default()))
                .map(|waiting| waiting.id)
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
    }

    /// Unpifoness: how often a packet is served while one of a smaller rank waits, and by how much.
    fn unpifoness(kind: &str) -> u64 {
        let mut it = Queue::new(&QueueParams::of_kind(kind).expect("it is registered"));
        let mut random = Stream::new(1, "t");
        let mut ranks = Vec::new();
        let mut sum = 0;
        for id in 0..20_000u32 {
            ranks.push(random.below(100) as u32);
            it.push(id, &Packet { rank: ranks[id as usize], ..Packet::default() });
            if id >= 40 {
                let served = ranks[it.pop(PausedSet::default()).expect("forty wait").id as usize];
                let better = it
                    .waiting()
                    .into_iter()
                    .map(|id| ranks[id as usize])
                    .filter(|rank| *rank < served);
                sum += better.map(|rank| u64::from(served - rank)).sum::<u64>();
            }
        }
        sum
    }

    #[test]
    fn it_lies_between_a_pifo_and_a_fifo() {
        let [pifo, sp, fifo] = ["srpt", "sp-pifo", "fifo"].map(unpifoness);
        assert_eq!(pifo, 0);
        assert!(sp > 0 && sp * 4 < fifo, "{sp} of {fifo}");
    }

    proptest! {
        #[test]
        fn bounds_ascend_and_nothing_is_lost(
            ranks in prop::collection::vec(any::<u32>(), 1..200),
            queues in 1u32..10,
        ) {
            let mut it = SpPifo::new(&SpPifoParams { queues });
            for (id, &rank) in ranks.iter().enumerate() {
                push(&mut it, id as u32, rank);
                prop_assert!(bounds(&it).is_sorted());
            }
            let mut served: Vec<u32> =
                std::iter::from_fn(|| it.pop(PausedSet::default())).map(|it| it.id).collect();
            served.sort();
            prop_assert_eq!(served, (0..ranks.len() as u32).collect::<Vec<_>>());
        }
    }
}
