//! Strict priority: eight FIFOs, the highest non-empty and unpaused one is served (IEEE 802.1Q
//! §8.6.8.1).

use super::{PausedSet, Waiting};
use crate::packet::{PRIORITIES, Packet, PacketId};
use crate::registry::{About, Signal};
use std::collections::VecDeque;

pub(super) const ABOUT: About = About {
    summary: "eight priorities, the highest first",
    source: "IEEE 802.1Q §8.6.8.1",
    reads: &[Signal::Priorities],
    ..About::PLAIN
};

crate::params! {
    /// Strict priority has no keys.
    pub struct StrictPriorityParams {}
}

/// Eight FIFOs and a bit for each that is not empty.
#[derive(Clone, Debug, Default)]
pub struct StrictPriority {
    /// Boxed, so that a port with a FIFO does not carry the space of eight.
    waiting: Box<[VecDeque<Waiting>; PRIORITIES]>,
    occupied: u8,
}

impl StrictPriority {
    pub(super) fn new(_: &StrictPriorityParams) -> StrictPriority {
        StrictPriority::default()
    }
    pub(super) fn push(&mut self, id: PacketId, packet: &Packet) {
        let p = packet.priority();
        self.waiting[p as usize].push_back(Waiting::new(id, packet));
        self.occupied |= 1 << p;
    }
    pub(super) fn pop(&mut self, paused: PausedSet) -> Option<Waiting> {
        let ready = self.occupied & !(paused.bits() as u8);
        if ready == 0 {
            return None;
        }
        let p = 7 - ready.leading_zeros() as usize;
        let first = self.waiting[p].pop_front();
        if self.waiting[p].is_empty() {
            self.occupied &= !(1 << p);
        }
        first
    }
    /// The newest packet of the lowest priority that waits.
    pub(in crate::switch) fn newest(&self) -> Option<PacketId> {
        self.waiting.iter().find_map(VecDeque::back).map(|waiting| waiting.id)
    }
    /// Takes it out.
    pub(in crate::switch) fn take_newest(&mut self) -> Option<PacketId> {
        let p = self.occupied.trailing_zeros() as usize;
        let queue = self.waiting.get_mut(p)?;
        let newest = queue.pop_back();
        if queue.is_empty() {
            self.occupied &= !(1 << p);
        }
        newest.map(|waiting| waiting.id)
    }
    pub(super) fn waiting(&self) -> Vec<PacketId> {
        self.waiting.iter().flatten().map(|waiting| waiting.id).collect()
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
    use super::*;

    #[test]
    fn serves_the_highest_that_is_not_paused() {
        let mut q = StrictPriority::default();
        for (id, priority) in [(0, 1), (1, 5), (2, 1), (3, 7)] {
            q.push(
                id,
                &Packet {
                    class: crate::packet::TrafficClass::default().with_priority(priority),
                    ..Packet::default()
                },
            );
        }
        let [none, first, seventh] = [&[][..], &[1], &[7]].map(PausedSet::of);
        let mut pop = |paused| q.pop(paused).map(|waiting| waiting.id);
        assert_eq!(pop(seventh), Some(1));
        assert_eq!(pop(seventh), Some(0));
        assert_eq!(pop(none), Some(3));
        assert_eq!(pop(first), None);
        assert_eq!(pop(none), Some(2));
        assert_eq!(pop(none), None);
    }
}
