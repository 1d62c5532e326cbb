//! Last packet: no window, one register. Beyond a threshold, a packet less important than the one
//! before it is refused.
//!
//! The bound is the rank of the packet that joined last, as an SP-PIFO's bound is that of its
//! queue: a sharper and sharper filter while the queue is long, forgotten as soon as it is short.
//!
//! Invariant: rank 0 is never refused; a refusal at one rank and length refuses every larger rank
//! and every longer queue.

use super::{Admits, Around};
use crate::context::Context;
use crate::counters::DropReason;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "beyond a threshold, refuses what is less important than the packet that joined last",
    source: "Practical packet deflection in datacenters, CoNEXT 2023, artifact (its SP-PIFO test)",
    reads: &[Signal::Ranks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of admission by the last packet's rank.
    pub struct LastPacketParams {
        /// The queue from which packets are refused, at least a byte: an empty queue takes whatever
        /// comes. "auto" is a quarter of what the port can hold. Source: a choice of this program,
        /// the minimum of red.
        #[within(1..)]
        pub threshold: Auto<Bytes> = Auto::Auto,
    }
}

impl LastPacketParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, around: &Around) -> LastPacketParams {
        LastPacketParams { threshold: Auto::Given(self.threshold.or(|| around.quarters(1))) }
    }

    /// The threshold in bytes, of parameters of one port.
    pub(super) fn at_least(&self) -> u64 {
        self.threshold.or(|| Bytes(1)).get()
    }
}

/// Admission by the last packet's rank: its state at one port.
#[derive(Clone, Debug)]
pub struct LastPacket {
    threshold: u64,
    last: u32,
}

impl LastPacket {
    pub(super) fn new(params: &LastPacketParams) -> LastPacket {
        // Nothing has joined: no rank is larger.
        LastPacket { threshold: params.at_port(&Around::default()).at_least(), last: u32::MAX }
    }
}

impl Admits for LastPacket {
    #[inline]
    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        (context.view.bytes >= self.threshold && context.packet.rank > self.last)
            .then_some(DropReason::Early)
    }
    #[inline]
    fn commit(&mut self, context: &Context<'_, QueueView>, joins: bool) {
        if joins {
            self.last = context.packet.rank;
        }
    }
    #[inline]
    fn on_enqueue(&mut self, context: &Context<'_, QueueView>) {
        self.last = context.packet.rank;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::switch::tests::seeing;

    #[test]
    fn the_last_that_joined_is_the_bound() {
        let mut it = LastPacket::new(&LastPacketParams { threshold: Auto::Given(Bytes(100)) });
        let mut offer = |bytes, rank| {
            let (view, packet) =
                (QueueView { packets: 1, bytes }, Packet { rank, ..Packet::default() });
            seeing(view, &packet, |at| {
                let joins = it.test(at).is_none();
                it.commit(at, joins);
                joins
            })
        };
        // The refused 8 leaves the bound at 5; a short queue takes it, and it becomes the bound.
        let seen = [
            offer(100, 9),
            offer(100, 5),
            offer(100, 8),
            offer(100, 5),
            offer(99, 8),
            offer(100, 8),
        ];
        assert_eq!(seen, [true, true, false, true, true, true]);
    }

    /// From zero on the register would be a bound that nothing ever lifts: the first packet of the
    /// least rank would stop all others for good.
    #[test]
    fn an_empty_queue_takes_whatever_comes() {
        use crate::params::{Params, Value};
        let mut params = LastPacketParams::default();
        assert!(params.set(0, &Value::Bytes(Bytes(0))).is_err());
        params.set(0, &Value::Bytes(Bytes(1))).unwrap();
        let it = LastPacket { last: 0, ..LastPacket::new(&params) };
        let packet = Packet { rank: u32::MAX, ..Packet::default() };
        assert_eq!(seeing(QueueView::default(), &packet, |at| it.test(at)), None);
    }
}
