//! SRPT: the packet of the smallest rank first (a PIFO: Sivaraman et al., SIGCOMM 2016; pFabric,
//! SIGCOMM 2013).
//!
//! With remaining bytes as ranks this serves the flow that needs least to finish. It can give up
//! its least important packets, which Vertigo needs. `service = "arrival"` keeps that and serves
//! first come, first served: Vertigo without scheduling.
//!
//! Invariant: packets are kept in the order of (rank, arrival); among equal ranks the oldest is
//! served first and the newest given up first.

use super::{PausedSet, Waiting};
use crate::packet::{Packet, PacketId};
use crate::registry::{About, PathProperty, Signal};
use std::collections::VecDeque;

pub(super) const ABOUT: About = About {
    summary: "the packet of the smallest rank first",
    source: "Sivaraman et al.: Programmable packet scheduling at line rate, SIGCOMM 2016; \
             pFabric, SIGCOMM 2013",
    reads: &[Signal::Ranks],
    breaks: &[PathProperty::FifoPerFlow, PathProperty::FifoPerFlowcell],
    ..About::PLAIN
};

crate::choice! {
    /// The packet that is served next.
    pub enum SrptService {
        /// The smallest rank.
        Rank = "rank",
        /// The packet that came first; ranks only choose who is given up.
        Arrival = "arrival",
    }
}

crate::params! {
    /// The keys of the queue that is sorted by rank.
    pub struct SrptParams {
        /// The packet that is served next: "rank", the smallest rank first, as a PIFO; "arrival",
        /// first come, first served, and ranks only decide who is given up. Source: "arrival" is
        /// Vertigo's ablation without scheduling.
        pub service: SrptService = SrptService::Rank,
    }
}

/// A packet in 16 bytes: an insertion moves up to half of a queue.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: u32,
    id: PacketId,
    /// Number of its arrival, which wraps.
    order: u32,
    size: u16,
}

const _: () = assert!(size_of::<Entry>() == 16);

/// A queue that is sorted by rank.
#[derive(Clone, Debug)]
pub struct Srpt {
    /// By (rank, order), ascending.
    waiting: VecDeque<Entry>,
    arrivals: u32,
    service: SrptService,
}

impl Srpt {
    pub(super) fn new(params: &SrptParams) -> Srpt {
        Srpt { waiting: VecDeque::new(), arrivals: 0, service: params.service }
    }
    pub(super) fn push(&mut self, id: PacketId, packet: &Packet) {
        let at = self.waiting.partition_point(|entry| entry.rank <= packet.rank);
        let Packet { rank, size, .. } = *packet;
        self.waiting.insert(at, Entry { rank, id, order: self.arrivals, size });
        self.arrivals = self.arrivals.wrapping_add(1);
    }
    pub(super) fn pop(&mut self, paused: PausedSet) -> Option<Waiting> {
        if !paused.is_empty() {
            return None;
        }
        let at = match self.service {
            SrptService::Rank => 0,
            SrptService::Arrival => self
                .waiting
                .iter()
                .enumerate()
                .max_by_key(|(_, entry)| self.arrivals.wrapping_sub(entry.order))
                .map_or(0, |(at, _)| at),
        };
        self.waiting.remove(at).map(|entry| Waiting { id: entry.id, size: entry.size })
    }
    pub(super) fn can_evict(&self, than: u32, bytes: u64, packets: u32) -> bool {
        let (mut freed, mut count) = (0, 0);
        for entry in self.waiting.iter().rev().take_while(|entry| entry.rank > than) {
            if freed >= bytes && count >= packets {
                break;
            }
            freed += u64::from(entry.size);
            count += 1;
        }
        freed >= bytes && count >= packets
    }
    pub(super) fn evict(&mut self, than: u32) -> Option<PacketId> {
        self.waiting.pop_back_if(|entry| entry.rank > than).map(|entry| entry.id)
    }
    pub(super) fn waiting(&self) -> Vec<PacketId> {
        self.waiting.iter().map(|entry| entry.id).collect()
    }
    pub(super) fn is_fifo(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(service: SrptService, ranks: &[u32]) -> Srpt {
        let mut it = Srpt::new(&SrptParams { service });
        for (id, &rank) in ranks.iter().enumerate() {
            it.push(id as u32, &Packet { rank, size: 100, ..Packet::default() });
        }
        it
    }

    #[test]
    fn serves_by_rank_and_gives_up_the_newest_of_the_largest() {
        let mut it = queue(SrptService::Rank, &[30, 10, 30, 20, 10]);
        assert_eq!(it.evict(29), Some(2));
        assert_eq!(it.evict(30), None);
        assert_eq!(
            [it.can_evict(10, 200, 0), it.can_evict(10, 201, 0), it.can_evict(10, 1, 3)],
            [true, false, false]
        );
        assert_eq!(
            std::iter::from_fn(|| it.pop(PausedSet::default()))
                .map(|waiting| waiting.id)
                .collect::<Vec<_>>(),
            [1, 4, 3, 0]
        );
    }

    #[test]
    fn serves_by_arrival_and_still_gives_up_by_rank() {
        let mut it = queue(SrptService::Arrival, &[30, 10, 40, 20]);
        assert_eq!(it.evict(0), Some(2));
        assert_eq!(
            std::iter::from_fn(|| it.pop(PausedSet::default()))
                .map(|waiting| waiting.id)
                .collect::<Vec<_>>(),
            [0, 1, 3]
        );
    }

    proptest! {
        /// Each packet served has the least rank there is, and each given up the largest.
        #[test]
        fn extremes_leave(
            ranks in prop::collection::vec(0u32..50, 1..60),
            serve in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut it = queue(SrptService::Rank, &ranks);
            let mut left: Vec<u32> = ranks.clone();
            for serve in serve {
                let id = match serve {
                    true => it.pop(PausedSet::default()).map(|waiting| waiting.id),
                    false => it.evict(0),
                };
                let Some(id) = id else { continue };
                let rank = ranks[id as usize];
                let extreme = if serve { left.iter().min() } else { left.iter().max() };
                prop_assert_eq!(extreme, Some(&rank));
                let at = left.iter().position(|r| *r == rank).expect("it was there");
                left.remove(at);
            }
        }
    }
}
