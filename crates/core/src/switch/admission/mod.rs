//! Admission: *may this packet join this queue?*
//!
//! Asked after the buffer has found room for it, so a refusal here is an early one. Policies test without changing and
//! commit once, since a deflection probes several ports before one is taken.

mod drop_tail;

pub use drop_tail::{DropTail, DropTailParams};

use crate::counters::DropReason;
use crate::packet::Packet;
use crate::switch::QueueView;

crate::registry! {
    /// Which admission, with its parameters.
    place: "switch.admission", question: "may this packet join this queue?", default: DropTail,
    params: AdmissionParams, policy: Admission {
        /// The reason to refuse the packet, or `None` to admit it. Changes nothing.
        fn test(&self, view: &QueueView, packet: &Packet) -> Option<DropReason>;
        /// Records that the packet was offered to this queue, once a packet.
        fn commit(&mut self, view: &QueueView, packet: &Packet) -> ();
    };
    "drop-tail" => DropTail { DropTailParams, DropTail; drop_tail::ABOUT },
}
