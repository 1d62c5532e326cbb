//! DIBS: a packet that finds its queue full goes to a random neighbour instead (Zarifis et al.,
//! EuroSys 2014).
//!
//! Ports are tried in random order until one has room. Its transport must not take reordering for
//! loss: DIBS turns fast retransmit off (`transport.dupack-threshold = "off"`).
//!
//! Invariant: with the filter on, a packet is dropped only where every port to a switch is full, of
//! the first 64.

use super::{Deflects, Elsewhere};
use crate::context::Context;
use crate::random::Draw;
use crate::registry::{About, Reason, Signal};

pub(super) const ABOUT: About = About {
    summary: "a packet that finds its queue full goes to a random port with room",
    source: "Zarifis et al.: DIBS: just-in-time congestion mitigation for data centers, EuroSys \
             2014",
    breaks: super::BREAKS,
    reads: &[Signal::Detours],
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::params! {
    /// The keys of DIBS (EuroSys 2014).
    pub struct DibsParams {
        /// Whether full ports are passed over; otherwise one port is drawn, and the packet dropped
        /// if that is full. Source: DIBS passes over them.
        pub filter: bool = true,
    }
}

/// DIBS at one switch: a refused packet leaves through another port.
#[derive(Clone, Debug)]
pub struct Dibs {
    filter: bool,
}

impl Dibs {
    pub(super) fn new(params: &DibsParams) -> Dibs {
        Dibs { filter: params.filter }
    }
}

impl Deflects for Dibs {
    fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        let (packet, random) = (context.packet, context.random);
        let Elsewhere { candidates, ports, .. } = &mut context.view;
        let mut draw = Draw::new(candidates.len());
        while let Some(index) = draw.next(random) {
            let port = candidates[index];
            if !self.filter || ports.has_room(port, packet.size as u64) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, choose};
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};

    #[test]
    fn finds_the_one_port_with_room_and_gives_up_only_without_any() {
        let mut ports = Bench::with_bytes(&[0; 6]);
        ports.full = vec![true, true, true, false, true, false];
        let (mut dibs, random) =
            (Dibs::new(&DibsParams::default()), Random::from(Stream::new(1, "t")));
        let packet = Packet::default();
        // Port 5 leads to a host: not among the candidates.
        for _ in 0..100 {
            assert_eq!(choose(&mut dibs, 5, &[1, 2, 3, 4], &packet, &mut ports, &random), Some(3));
        }
        ports.full[3] = true;
        assert_eq!(choose(&mut dibs, 5, &[1, 2, 3, 4], &packet, &mut ports, &random), None);
        assert_eq!(choose(&mut dibs, 5, &[], &packet, &mut ports, &random), None);
    }

    #[test]
    fn without_the_filter_any_port_may_come_out() {
        let mut ports = Bench::with_bytes(&[0; 3]);
        ports.full = vec![true; 3];
        let (mut dibs, random) =
            (Dibs::new(&DibsParams { filter: false }), Random::from(Stream::new(1, "t")));
        let mut seen = [false; 3];
        for _ in 0..50 {
            let port = choose(&mut dibs, 0, &[0, 1, 2], &Packet::default(), &mut ports, &random);
            seen[port.expect("always one") as usize] = true;
        }
        assert_eq!(seen, [true; 3]);
    }
}
