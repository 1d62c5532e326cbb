//! Queue: *who is served next?*
//!
//! A policy holds packet ids in the order in which they will be served, in one physical queue or
//! several, which have numbers from 0. Pause is a set of those numbers that the caller passes in:
//! what is paused is never served, and a policy with one queue stands still while any is paused.
//! Dynamic queues keep pauses of flows by themselves.

mod dynamic;
mod fifo;
mod sp_pifo;
mod srpt;
mod strict_priority;

pub use dynamic::{DynamicQueues, DynamicQueuesParams, Load};
pub use fifo::{Fifo, FifoParams};
pub use sp_pifo::{SpPifo, SpPifoParams};
pub use srpt::{Srpt, SrptParams, SrptService};
pub use strict_priority::{StrictPriority, StrictPriorityParams};

use crate::packet::{Packet, PacketId};

/// A packet that leaves a queue. Its size comes along, so that a port does not fetch the packet's
/// line for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The packet.
    pub id: PacketId,
    /// Its bytes on the wire.
    pub size: u16,
}

impl Waiting {
    #[inline]
    fn new(id: PacketId, packet: &Packet) -> Waiting {
        Waiting { id, size: packet.size }
    }
}

/// The paused queues of a port, by their numbers; a port has 64 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PausedSet(u64);

impl PausedSet {
    /// Puts a queue in, or takes it out.
    pub fn put(&mut self, queue: u8, is_paused: bool) {
        self.0 = self.0 & !(1 << queue) | u64::from(is_paused) << queue;
    }
    /// Whether a queue is in it.
    pub fn has(self, queue: u8) -> bool {
        self.0 >> queue & 1 != 0
    }
    /// Whether no packet waits.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Bit q is queue q.
    #[inline]
    fn bits(self) -> u64 {
        self.0
    }
}

crate::registry! {
    place: "switch.queue", question: "who is served next?", default: Fifo,
    params: QueueParams, policy: Queue {
        /// Puts an admitted packet in its place.
        fn push(&mut self, id: PacketId, packet: &Packet) -> ();
        /// Takes the packet to serve next, unless what could be served is paused.
        fn pop(&mut self, paused: PausedSet) -> Option<Waiting>;
        /// Whether the packets of a larger rank than this make up at least so many bytes and so
        /// many packets.
        fn can_evict(&self, than: u32, bytes: u64, packets: u32) -> bool;
        /// Takes out the packet of the largest rank, the newest among equals, if that rank is
        /// larger than this.
        fn evict(&mut self, than: u32) -> Option<PacketId>;
        /// Whether a port may use `busy_until` instead of holding packets (first come, first
        /// served, never evicted).
        fn is_fifo(&self) -> bool;
        /// All packets that wait, for the audit.
        fn waiting(&self) -> Vec<PacketId>;
    };
    "dynamic-queues" => DynamicQueues { DynamicQueuesParams, DynamicQueues; dynamic::ABOUT },
    "fifo" => Fifo { FifoParams, Fifo; fifo::ABOUT },
    "sp-pifo" => SpPifo { SpPifoParams, SpPifo; sp_pifo::ABOUT },
    "srpt" => Srpt { SrptParams, Srpt; srpt::ABOUT },
    "strict-priority" => StrictPriority {
        StrictPriorityParams, StrictPriority; strict_priority::ABOUT
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PausedSet {
        pub(crate) fn of(queues: &[u8]) -> PausedSet {
            let mut set = PausedSet::default();
            queues.iter().for_each(|queue| set.put(*queue, true));
            set
        }
    }

    #[test]
    fn queues_are_paused_by_their_numbers() {
        let mut set = PausedSet::of(&[0, 9, 63]);
        assert!(set.has(0) && set.has(9) && set.has(63) && !set.has(1));
        set.put(9, false);
        set.put(0, false);
        assert!(!set.is_empty() && !set.has(9));
        set.put(63, false);
        assert_eq!(set, PausedSet::default());
    }
}
