//! Canary as a pipeline of match-action stages computes it (a protocol-independent switch, PISA;
//! the paper's Tofino).
//!
//! The hardware's rules, kept here: a packet passes each stage once, and a stage's register once,
//! with one read-modify-write; no loop, division or float in the pipeline; ingress has only
//! copies of queue lengths (choose `switch.occupancy = { kind = "refreshed", written-at =
//! "departures" }` beside it); queues are FIFO. So there is one window of ranks for the whole
//! switch, each packet is written into it, the inequality `quantile ≤ (C − c)/((1−k)·C)` is
//! multiplied out (`below · ⌊(1−k)·C/20⌋ ≤ C − c`, in cells), the port to deflect to is fixed by
//! the destination, and it is not tested.
//!
//! The published program has defects that are not copied: its comparison is inverted, its counts
//! are one bit wide, and its last rows are summed twice.
//!
//! Invariant: a pass touches each register once, and fits the stages of a Tofino pipe.

use super::{Deflects, Elsewhere, Nature};
use crate::context::Context;
use crate::registry::{About, Reason, Signal};
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "Canary under a switching chip's rules: one window a switch, integers, a fixed port \
              to deflect to",
    source: "Canary; Practical packet deflection in datacenters, CoNEXT 2023: its P4 program for \
             Tofino",
    reads: &[Signal::Ranks, Signal::Detours],
    breaks: super::BREAKS,
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::params! {
    /// Canary on a chip.
    pub struct CanaryPisaParams {
        /// k: the share of the buffer within which every rank is forwarded. Source: 0.9, as
        /// Canary's simulations.
        #[within(0..=1)]
        pub burst_headroom: f64 = 0.9,
        /// Bytes of a buffer cell. Source: 80, Tofino.
        #[within(1..)]
        pub cell: Bytes = Bytes(80),
        /// Cells that a port's queue may hold; times the cell's bytes this should be
        /// `switch.buffer.size`. Source: 1024, the P4 program.
        #[within(1..)]
        pub cells: u32 = 1024,
    }
}

/// One, in the units in which k is taken.
const GIGA: u64 = 1_000_000_000;
/// Registers of the window: five stages of four.
const WINDOW: usize = 20;
/// Registers that one stage holds.
const REGISTERS_A_STAGE: usize = 4;
/// Stages of a pass: the tail, the window, three to add up the counts by pairs, one each for the
/// queue's length, the inequality and the verdict.
const STAGES: usize = 1 + WINDOW / REGISTERS_A_STAGE + 3 + 3;
/// Stages of a Tofino pipe.
const PIPE: usize = 12;
const _: () = assert!(STAGES <= PIPE);

/// A register: one access a pass.
#[derive(Clone, Copy, Debug, Default)]
struct Register {
    value: u32,
    /// The last pass that touched it.
    pass: u64,
}

impl Register {
    /// Reads it and, if asked to, writes it: the one access of this pass.
    #[inline]
    fn access(&mut self, pass: u64, write: Option<u32>) -> u32 {
        debug_assert_ne!(self.pass, pass, "a register is touched once a pass");
        self.pass = pass;
        let old = self.value;
        if let Some(value) = write {
            self.value = value;
        }
        old
    }
}

/// Canary on a chip.
#[derive(Clone, Debug)]
pub struct CanaryPisa {
    /// Boxed, so that a switch with another deflection does not carry the space.
    window: Box<[Register; WINDOW]>,
    tail: Register,
    passes: u64,
    /// ⌊(1−k)·C/20⌋ in cells.
    weight: u64,
    cell: u64,
    cells: u64,
}

impl CanaryPisa {
    pub(super) fn new(params: &CanaryPisaParams) -> CanaryPisa {
        // 1 − k in 10⁻⁹: as a float 1 − 0.9 is a little less than 0.1, and what is to be rounded
        // down may be whole.
        let alpha = GIGA - (params.burst_headroom.clamp(0.0, 1.0) * GIGA as f64 + 0.5) as u64;
        CanaryPisa {
            // A rank that no packet exceeds: an empty window refuses nobody.
            window: Box::new([Register { value: u32::MAX, pass: 0 }; WINDOW]),
            tail: Register::default(),
            passes: 0,
            // The control plane computes it once, so a float may.
            weight: alpha * u64::from(params.cells) / (WINDOW as u64 * GIGA),
            cell: params.cell.get().max(1),
            cells: u64::from(params.cells),
        }
    }
}

impl Deflects for CanaryPisa {
    fn divert(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> bool {
        let (packet, Elsewhere { port, ports, .. }) = (context.packet, &mut context.view);
        self.passes += 1;
        let tail = self.tail.value;
        self.tail.access(self.passes, Some(if tail + 1 == WINDOW as u32 { 0 } else { tail + 1 }));
        let mut below = 0;
        for (at, register) in self.window.iter_mut().enumerate() {
            let write = (at as u32 == tail).then_some(packet.rank);
            below += u64::from(register.access(self.passes, write) < packet.rank);
        }
        // The length comes in cells; the division is the traffic manager's, not the pipeline's.
        let length = (ports.bytes(*port) / self.cell).min(self.cells);
        length == self.cells || below * self.weight > self.cells - length
    }

    fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        let candidates = context.view.candidates;
        match candidates.len() {
            0 => None,
            n => Some(candidates[context.packet.dst as usize % n]),
        }
    }

    fn nature(&self) -> Nature {
        Nature { diverts: true, ..Nature::PLAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, choose, divert};
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};
    use proptest::prelude::*;

    fn pisa(k: f64) -> CanaryPisa {
        CanaryPisa::new(&CanaryPisaParams { burst_headroom: k, ..CanaryPisaParams::default() })
    }
    fn ranked(rank: u32) -> Packet {
        Packet { rank, ..Packet::default() }
    }

    #[test]
    fn the_weight_is_rounded_down_once() {
        let weight = |burst_headroom, cells| {
            CanaryPisa::new(&CanaryPisaParams {
                burst_headroom,
                cells,
                ..CanaryPisaParams::default()
            })
            .weight
        };
        assert_eq!([weight(0.9, 1_000), weight(0.9, 999), weight(0.9, 1_024)], [5, 4, 5]);
        assert_eq!([weight(0.7, 200), weight(0.0, 1_024), weight(1.0, 1_024)], [3, 51, 0]);
    }

    #[test]
    fn one_window_for_all_ports_and_every_packet_enters_it() {
        let mut it = pisa(0.0);
        let mut ports = Bench::with_bytes(&[0, 500 * 80]);
        for _ in 0..20 {
            assert!(!divert(&mut it, 0, &ranked(10), &mut ports));
        }
        // All 20 ranks are below 11: weight 51 · 20 = 1020 cells of 1024 must be free.
        assert!(divert(&mut it, 1, &ranked(11), &mut ports));
        assert!(!divert(&mut it, 1, &ranked(10), &mut ports));
        assert!(!divert(&mut it, 0, &ranked(11), &mut ports));
    }

    #[test]
    fn a_full_queue_diverts_everybody_to_the_port_of_the_destination() {
        let mut it = pisa(0.9);
        let mut ports = Bench::with_bytes(&[1024 * 80]);
        assert!(divert(&mut it, 0, &ranked(0), &mut ports));
        let random = Random::from(Stream::new(1, "t"));
        let to = |it: &mut CanaryPisa, dst| {
            choose(
                it,
                0,
                &[4, 5, 6],
                &Packet { dst, ..Packet::default() },
                &mut Bench::default(),
                &random,
            )
        };
        assert_eq!([to(&mut it, 0), to(&mut it, 1), to(&mut it, 7)], [Some(4), Some(5), Some(5)]);
    }

    proptest! {
        /// The multiplied-out integers decide as the inequality does, but for the rounding of
        /// (1−k)·C/20 to a cell.
        #[test]
        fn integers_follow_the_inequality(
            k in 0.0..1.0f64,
            ranks in prop::collection::vec(0u32..100, 20),
            length in 0u64..1024,
            rank in 0u32..110,
        ) {
            let mut it = pisa(k);
            let mut ports = Bench::with_bytes(&[0]);
            for &rank in &ranks {
                divert(&mut it, 0, &ranked(rank), &mut ports);
            }
            ports.bytes[0] = length * 80;
            let below = ranks.iter().filter(|r| **r < rank).count() as f64;
            let gap = (1.0 - k) * 1024.0 * below / 20.0 - (1024 - length) as f64;
            let diverted = divert(&mut it, 0, &ranked(rank), &mut ports);
            prop_assert!(diverted == (gap > 0.0) || gap.abs() <= below + 1.0, "gap {gap}");
        }
    }
}
