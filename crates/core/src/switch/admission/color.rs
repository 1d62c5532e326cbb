//! Color-aware dropping: unimportant (red) packets may fill a queue up to a threshold of their own,
//! important (green) ones all of it, in one FIFO, so that nothing is reordered.
//!
//! Commodity switches have it as the red threshold of a queue. TLT's hosts color the packets
//! (EuroSys 2021); the threshold is what the transport needs in the steady state: its marking
//! threshold or the bandwidth-delay product, whichever is larger. Bytes are counted as in the
//! authors' simulators: the arriving packet counts, and the threshold itself is never reached.
//! Green bytes do not count.
//!
//! Invariant: the red bytes that wait are fewer than the threshold, if there is one, and no green
//! packet is refused here.

use super::{Admits, Around};
use crate::context::Context;
use crate::counters::DropReason;
use crate::packet::Color as PacketColor;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::site::Auto;
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "drops red packets beyond a threshold on the red bytes that wait; green ones wait as \
              long as there is room",
    source: "Lim et al.: Towards timeout-less transport in commodity datacenter networks, EuroSys \
             2021",
    reads: &[Signal::Colors],
    ..About::PLAIN
};

crate::params! {
    /// The keys of color-aware dropping (TLT, EuroSys 2021).
    pub struct ColorParams {
        /// Red bytes that may wait at a port, exclusive; 0: any number. "auto" is the port's
        /// marking threshold or what its link carries in the longest round trip of the empty
        /// network, whichever is larger, and at most half of what the port can hold. Source: TLT,
        /// EuroSys 2021: 400 KB in its simulations of TCP (40 Gb/s, 80 us), 200 KB in those of
        /// RDMA; the half is ours.
        pub threshold: Auto<Bytes> = Auto::Auto,
    }
}

impl ColorParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, around: &Around) -> ColorParams {
        let rule = || {
            let carried = around.site.rate.bytes_in(around.round_trip);
            let steady = around.marks_from().map_or(carried, |marks| marks.max(carried));
            // A threshold below two packets would refuse all but one.
            Bytes(steady.max(2 * around.site.packet_max).min(around.quarters(2).get()))
        };
        ColorParams { threshold: Auto::Given(self.threshold.or(rule)) }
    }

    /// The threshold in bytes; 0: none.
    pub(super) fn at_least(&self) -> u64 {
        self.threshold.or(|| Bytes(0)).get()
    }
}

/// Color-aware dropping at one port: the threshold of red packets.
#[derive(Clone, Debug)]
pub struct Color {
    threshold: u64,
    /// Red bytes that wait.
    red: u64,
}

impl Color {
    pub(super) fn new(params: &ColorParams) -> Color {
        let threshold = match params.at_port(&Around::default()).at_least() {
            0 => u64::MAX,
            bytes => bytes,
        };
        Color { threshold, red: 0 }
    }
}

impl Admits for Color {
    #[inline]
    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        let packet = context.packet;
        let refused =
            packet.color() == PacketColor::Red && self.red + packet.size as u64 >= self.threshold;
        refused.then_some(DropReason::Color)
    }
    #[inline]
    fn on_enqueue(&mut self, context: &Context<'_, QueueView>) {
        if context.packet.color() == PacketColor::Red {
            self.red += context.packet.size as u64;
        }
    }
    #[inline]
    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        if context.packet.color() == PacketColor::Red {
            self.red -= context.packet.size as u64;
        }
    }

    fn watches_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Importance, Packet};
    use crate::switch::tests::seeing;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn packet(importance: Importance) -> Packet {
        Packet { size: 1500, class: importance.into(), ..Packet::default() }
    }

    /// Oracle: red bytes stay below the threshold (399,991 of 400,000 was observed in the authors'
    /// simulator), green ones do not count.
    #[test]
    fn red_bytes_stay_below_the_threshold() {
        let mut it = Color::new(&ColorParams { threshold: Auto::Given(Bytes(6_000)) });
        let view = QueueView::default();
        for importance in
            Importance::ALL.into_iter().filter(|importance| *importance != Importance::Unimportant)
        {
            for _ in 0..100 {
                assert_eq!(seeing(view, &packet(importance), |at| it.test(at)), None);
                seeing(view, &packet(importance), |at| it.on_enqueue(at));
            }
        }
        let red = packet(Importance::Unimportant);
        for _ in 0..3 {
            assert_eq!(seeing(view, &red, |at| it.test(at)), None);
            seeing(view, &red, |at| it.on_enqueue(at));
        }
        assert_eq!(
            seeing(view, &red, |at| it.test(at)),
            Some(DropReason::Color),
            "6,000 would be reached"
        );
        assert_eq!(seeing(view, &Packet { size: 1499, ..red }, |at| it.test(at)), None);
        seeing(view, &red, |at| it.on_dequeue(at));
        assert_eq!(seeing(view, &red, |at| it.test(at)), None);
    }

    #[test]
    fn a_threshold_of_zero_refuses_nobody() {
        let mut it = Color::new(&ColorParams { threshold: Auto::Given(Bytes(0)) });
        let (view, red) = (QueueView::default(), packet(Importance::Unimportant));
        for _ in 0..1_000 {
            assert_eq!(seeing(view, &red, |at| it.test(at)), None);
            seeing(view, &red, |at| it.on_enqueue(at));
        }
    }

    proptest! {
        /// Oracle: whatever arrives and leaves, red bytes stay below the threshold and green
        /// packets are not refused.
        #[test]
        fn red_is_bounded_and_green_never_refused(
            arrivals in prop::collection::vec((0..6usize, 1..1_501u16, 0..3usize), 1..500),
            threshold in 1u64..60_000,
        ) {
            let mut it = Color::new(&ColorParams { threshold: Auto::Given(Bytes(threshold)) });
            let view = QueueView::default();
            let mut waiting = VecDeque::new();
            for (importance, size, leave) in arrivals {
                let packet =
                    Packet { size, class: Importance::ALL[importance].into(), ..Packet::default() };
                let refused = seeing(view, &packet, |at| it.test(at)).is_some();
                prop_assert!(!refused || packet.color() == PacketColor::Red);
                if !refused {
                    seeing(view, &packet, |at| it.on_enqueue(at));
                    waiting.push_back(packet);
                }
                for packet in waiting.drain(..leave.min(waiting.len())) {
                    seeing(view, &packet, |at| it.on_dequeue(at));
                }
                let red = waiting.iter().filter(|packet| packet.color() == PacketColor::Red);
                prop_assert_eq!(it.red, red.map(|packet| packet.size as u64).sum::<u64>());
                prop_assert!(it.red < threshold);
            }
        }
    }
}
