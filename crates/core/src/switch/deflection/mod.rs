//! Deflection: *the queue refused it: where else?*
//!
//! A deflection names another port for a packet that its own port did not take; the packet then
//! travels on from the neighbour there by the ordinary routes, and only its TTL keeps it from going
//! round for ever. Candidates are the ports that lead to other switches, the one by which the
//! packet came included; never those to hosts.
//!
//! Invariant: a packet is never deflected to a host, and at its arrival at a switch at most once.
//! Under Vertigo one that waits where it was deflected to can later be displaced from there, and so
//! go elsewhere again at the same switch.

mod canary;
mod canary_pisa;
mod dibs;
mod none;
mod simple;
mod vertigo;

pub use canary::{Canary, CanaryParams};
pub use canary_pisa::{CanaryPisa, CanaryPisaParams};
pub use dibs::{Dibs, DibsParams};
pub use none::{Undeflected, UndeflectedParams};
pub use simple::{Simple, SimpleParams};
pub use vertigo::{Vertigo, VertigoParams};

use crate::context::Context;
use crate::registry::PathProperty;
use crate::switch::PortView;

/// Where else a packet can go.
pub struct Elsewhere<'a> {
    /// The packet's own port, which has refused it or is about to be asked.
    pub port: u16,
    /// The ports that lead to other switches.
    pub candidates: &'a [u16],
    pub ports: &'a mut dyn PortView,
}

crate::registry! {
    place: "switch.deflection", question: "the queue refused it: where else?", default: None,
    params: DeflectionParams, policy: Deflection as pub(in crate::switch) trait Deflects {
        /// Another port for the packet, or `None` to drop it.
        fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16>;
        /// Whether the packet must go elsewhere before its queue is asked; only where
        /// [`Nature::diverts`].
        fn divert(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> bool = false;
        /// The facts that the switch reads beside where packets go.
        fn nature(&self) -> Nature = Nature::PLAIN;
    };
    "none" => None { UndeflectedParams, Undeflected; none::ABOUT },
    "dibs" => Dibs { DibsParams, Dibs; dibs::ABOUT },
    "simple" => Simple { SimpleParams, Simple; simple::ABOUT },
    "vertigo" => Vertigo { VertigoParams, Vertigo; vertigo::ABOUT },
    "canary" => Canary { CanaryParams, Canary; canary::ABOUT },
    "canary-pisa" => CanaryPisa { CanaryPisaParams, CanaryPisa; canary_pisa::ABOUT },
}

impl Deflection {
    /// Whether there is none.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Deflection::None(_))
    }
}

/// The properties that every deflection takes away from the path: packets of one flow travel by
/// different ways, and back where they came from.
const BREAKS: &[PathProperty] = &[
    PathProperty::FifoPerFlow,
    PathProperty::FifoPerFlowcell,
    PathProperty::LabelFixesPath,
    PathProperty::ControlNeverWaits,
    PathProperty::AcyclicWaits,
];

/// The facts of a deflection that a switch reads beside where packets go. They do not change: a
/// switch reads them once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// `divert` may send a packet elsewhere before its queue is asked.
    pub diverts: bool,
    /// A packet may take the place of less important ones in its queue, which go elsewhere instead.
    pub displaces: bool,
    /// Deflected packets get CE.
    pub marks: bool,
    /// A packet that finds its queue full counts as an arrival in the queue's admission.
    pub samples_when_full: bool,
}

impl Nature {
    /// Of one that only names a port for what a queue has refused.
    pub const PLAIN: Nature =
        Nature { diverts: false, displaces: false, marks: false, samples_when_full: true };
}

#[cfg(test)]
pub(in crate::switch) mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};
    use crate::units::Time;

    /// Ports whose every answer a test sets.
    #[derive(Default)]
    pub struct Bench {
        pub bytes: Vec<u64>,
        pub full: Vec<bool>,
        pub rejects: Vec<bool>,
        pub notes: Vec<u16>,
    }

    impl Bench {
        pub fn with_bytes(bytes: &[u64]) -> Bench {
            let n = bytes.len();
            Bench {
                bytes: bytes.to_vec(),
                full: vec![false; n],
                rejects: vec![false; n],
                notes: Vec::new(),
            }
        }
    }

    impl PortView for Bench {
        fn bytes(&mut self, port: u16) -> u64 {
            self.bytes[port as usize]
        }
        fn has_room(&mut self, port: u16, _: u64) -> bool {
            !self.full[port as usize]
        }
        fn rejects(&mut self, port: u16, _: &Packet) -> bool {
            self.rejects[port as usize]
        }
        fn note(&mut self, port: u16, _: &Packet) {
            self.notes.push(port);
        }
    }

    /// A packet that its port has refused, or will be asked for.
    pub fn choose(
        policy: &mut impl Deflects,
        port: u16,
        candidates: &[u16],
        packet: &Packet,
        ports: &mut Bench,
        random: &Random,
    ) -> Option<u16> {
        let view = Elsewhere { port, candidates, ports };
        policy.choose(&mut Context { now: Time::ZERO, packet, view, random })
    }

    /// Whether a packet is sent elsewhere before its port is asked.
    pub fn divert(
        policy: &mut impl Deflects,
        port: u16,
        packet: &Packet,
        ports: &mut Bench,
    ) -> bool {
        let view = Elsewhere { port, candidates: &[], ports };
        policy.divert(&mut Context {
            now: Time::ZERO,
            packet,
            view,
            random: &Random::from(Stream::new(1, "t")),
        })
    }
}
