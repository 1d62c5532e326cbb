//! Canary: a packet is forwarded, deflected or dropped before it enters a queue.
//!
//! The early-drop test is the port's admission, whichever that is (`aifo` in the paper): a packet
//! that finds its port full, or that the port's admission rejects, is offered to the shortest of a
//! few random ports that would take it by the same test; where none would, it is dropped, and that
//! drop notifies its sender of congestion.
//!
//! The authors' published simulator differs in three ways, which `artifact-quirks` brings back: a
//! port's window counts the packet each time the test is evaluated there, whatever becomes of it; a
//! full port counts nothing; and candidates are filtered by the test alone, so that a full one can
//! be chosen and the packet lost although another had room.
//!
//! Invariant: without the quirks, a packet is dropped only where none of the ports drawn would take
//! it.

use super::{Deflects, Elsewhere, Nature};
use crate::context::Context;
use crate::random::Draw;
use crate::registry::{About, Reason, Signal};
use crate::switch::path::Shortest;

pub(super) const ABOUT: About = About {
    summary: "decides to forward, deflect or drop by the admission's test, before the packet \
              enters a queue",
    source: "Canary; Practical packet deflection in datacenters, CoNEXT 2023 (Preemptive \
             Deflection)",
    reads: &[Signal::Ranks, Signal::Detours],
    breaks: super::BREAKS,
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::params! {
    /// The keys of Canary's deflection.
    pub struct CanaryParams {
        /// Ports that are drawn for a packet that its own port does not take, all different.
        /// Source: 2, the authors' simulations.
        #[within(1..=64)]
        pub choices: u32 = 2,
        /// Whether deflected packets get CE. Source: an option of the authors' simulator, off.
        pub mark: bool = false,
        /// Whether to behave as the published simulator where that differs: a window counts every
        /// test made, a full port counts nothing, and a full candidate can be chosen. Source: the
        /// CoNEXT 2023 artifact.
        pub artifact_quirks: bool = false,
    }
}

/// Canary's deflection at one switch.
#[derive(Clone, Debug)]
pub struct Canary {
    choices: u32,
    mark: bool,
    quirks: bool,
}

impl Canary {
    pub(super) fn new(params: &CanaryParams) -> Canary {
        Canary { choices: params.choices.max(1), mark: params.mark, quirks: params.artifact_quirks }
    }
}

impl Deflects for Canary {
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        let (packet, random) = (context.packet, context.random);
        let Elsewhere { port: refused, candidates, ports } = &mut context.view;
        let mut draw = Draw::new(candidates.len());
        let mut best = Shortest::default();
        for _ in 0..self.choices {
            let Some(index) = draw.next(random) else { break };
            let port = candidates[index];
            if self.quirks {
                let rejects = ports.rejects(port, packet);
                ports.note(port, packet);
                if !rejects {
                    best.offer(port, *ports, random);
                }
            } else if port != *refused
                && let Some(bytes) = ports.takes(port, packet)
            {
                // Its own port has refused it already; by now it has counted the packet and may
                // answer otherwise.
                best.offer_known(port, bytes, random);
            }
        }
        best.port.map(|(port, _)| port)
    }

    fn nature(&self) -> Nature {
        Nature { marks: self.mark, samples_when_full: !self.quirks, ..Nature::PLAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, choose};
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};

    fn canary(artifact_quirks: bool) -> Canary {
        Canary::new(&CanaryParams { artifact_quirks, ..CanaryParams::default() })
    }

    fn of_two(it: &mut Canary, ports: &mut Bench, random: &Random) -> Option<u16> {
        choose(it, 2, &[0, 1], &Packet::default(), ports, random)
    }

    /// The published three-way case: port 2 is full, and the two candidates are A (0) and B (1).
    #[test]
    fn three_way() {
        let random = Random::from(Stream::new(1, "t"));
        for quirks in [false, true] {
            let mut it = canary(quirks);
            for _ in 0..20 {
                let mut ports = Bench::with_bytes(&[10, 900, 1000]);
                ports.rejects[0] = true; // A rejects, B accepts
                assert_eq!(of_two(&mut it, &mut ports, &random), Some(1));
                ports.rejects[1] = true; // both reject
                assert_eq!(of_two(&mut it, &mut ports, &random), None);
                let mut ports = Bench::with_bytes(&[10, 900, 1000]);
                // A accepts but is full. With the quirk A gets the packet and loses it, else B.
                ports.full[0] = true;
                assert_eq!(of_two(&mut it, &mut ports, &random), Some(if quirks { 0 } else { 1 }));
            }
        }
    }

    #[test]
    fn the_quirk_counts_the_packet_wherever_it_was_tested() {
        let random = Random::from(Stream::new(1, "t"));
        let mut ports = Bench::with_bytes(&[10, 900, 1000]);
        of_two(&mut canary(false), &mut ports, &random);
        assert!(ports.notes.is_empty());
        of_two(&mut canary(true), &mut ports, &random);
        ports.notes.sort();
        assert_eq!(ports.notes, [0, 1]);
        assert_eq!(
            [false, true].map(|quirks| canary(quirks).nature().samples_when_full),
            [true, false]
        );
    }

    #[test]
    fn the_port_that_refused_is_not_asked_again() {
        let random = Random::from(Stream::new(1, "t"));
        let mut ports = Bench::with_bytes(&[10, 900]);
        for (quirks, expected) in [(false, 1), (true, 0)] {
            let found =
                choose(&mut canary(quirks), 0, &[0, 1], &Packet::default(), &mut ports, &random);
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn the_shorter_of_two_wins() {
        let random = Random::from(Stream::new(1, "t"));
        let mut ports = Bench::with_bytes(&[800, 300, 1000]);
        assert!((0..50).all(|_| of_two(&mut canary(false), &mut ports, &random) == Some(1)));
    }
}
