//! Simple Deflection: DIBS as a switching chip can do it (Practical Packet Deflection in
//! Datacenters, CoNEXT 2023).
//!
//! One random number names where to start; from there the ports are walked in a circle to the first
//! that has room.
//!
//! Invariant: a packet is dropped only where every port to a switch is full.

use super::{Deflects, Elsewhere};
use crate::context::Context;
use crate::registry::{About, Reason, Signal};

pub(super) const ABOUT: About = About {
    summary: "a packet that finds its queue full goes to the next port with room after a random \
              one",
    source: "Practical packet deflection in datacenters, CoNEXT 2023 (Simple Deflection)",
    breaks: super::BREAKS,
    reads: &[Signal::Detours],
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::params! {
    /// Simple deflection has no keys.
    pub struct SimpleParams {}
}

/// Sends a refused packet to the first port with room, from a random one on.
#[derive(Clone, Debug)]
pub struct Simple;

impl Simple {
    pub(super) fn new(_: &SimpleParams) -> Simple {
        Simple
    }
}

impl Deflects for Simple {
    fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        let (packet, random) = (context.packet, context.random);
        let Elsewhere { candidates, ports, .. } = &mut context.view;
        if candidates.is_empty() {
            return None;
        }
        let (before, from) = candidates.split_at(random.below(candidates.len() as u64) as usize);
        from.iter().chain(before).copied().find(|port| ports.has_room(*port, packet.size as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, choose};
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};

    #[test]
    fn walks_in_a_circle_to_the_first_with_room() {
        let mut ports = Bench::with_bytes(&[0; 4]);
        ports.full = vec![true, false, true, true];
        let (mut simple, random) =
            (Simple::new(&SimpleParams {}), Random::from(Stream::new(1, "t")));
        let packet = Packet::default();
        for _ in 0..50 {
            assert_eq!(
                choose(&mut simple, 0, &[0, 1, 2, 3], &packet, &mut ports, &random),
                Some(1)
            );
        }
        // Two free ports in a row: the first is met from three of four starts, the second from one.
        ports.full = vec![true, false, false, true];
        let first = (0..4000)
            .filter(|_| {
                choose(&mut simple, 0, &[0, 1, 2, 3], &packet, &mut ports, &random) == Some(1)
            })
            .count();
        assert!((2900..3100).contains(&first), "{first}");
        ports.full = vec![true; 4];
        assert_eq!(choose(&mut simple, 0, &[0, 1, 2, 3], &packet, &mut ports, &random), None);
        assert_eq!(choose(&mut simple, 0, &[], &packet, &mut ports, &random), None);
    }
}
