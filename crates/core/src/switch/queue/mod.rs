//! Queue: *who is served next?*
//!
//! A queue holds packet ids in the order in which they will be served. Pause is a set of priorities that the caller
//! passes in: a queue never serves a paused priority, and a queue without priorities stands still while any
//! priority is paused.

mod fifo;
mod sp_pifo;
mod srpt;
mod strict_priority;

pub use fifo::{Fifo, FifoParams};
pub use sp_pifo::{SpPifo, SpPifoParams};
pub use srpt::{Srpt, SrptParams, SrptService};
pub use strict_priority::{StrictPriority, StrictPriorityParams};

use crate::packet::{Packet, PacketId};

/// The set of paused priorities: bit p is priority p.
pub type PausedSet = u8;

crate::registry! {
    /// Which queue, with its parameters.
    place: "switch.queue", question: "who is served next?", default: Fifo,
    params: QueueParams, policy: Queue {
        /// Puts an admitted packet in its place.
        fn push(&mut self, id: PacketId, packet: &Packet) -> ();
        /// Takes the packet to serve next, unless what could be served is paused.
        fn pop(&mut self, paused: PausedSet) -> Option<PacketId>;
        /// Whether the packets of a larger rank than this make up at least so many bytes and so many packets.
        fn can_evict(&self, than: u32, bytes: u64, packets: u32) -> bool;
        /// Takes out the packet of the largest rank, the newest among equals, if that rank is larger than this.
        fn evict(&mut self, than: u32) -> Option<PacketId>;
        /// Whether a port may use `busy_until` instead of holding packets (first come, first served, never evicted).
        fn is_fifo(&self) -> bool;
        /// All packets that wait, for the audit.
        fn waiting(&self) -> Vec<PacketId>;
    };
    "fifo" => Fifo { FifoParams, Fifo; fifo::ABOUT },
    "sp-pifo" => SpPifo { SpPifoParams, SpPifo; sp_pifo::ABOUT },
    "srpt" => Srpt { SrptParams, Srpt; srpt::ABOUT },
    "strict-priority" => StrictPriority { StrictPriorityParams, StrictPriority; strict_priority::ABOUT },
}
