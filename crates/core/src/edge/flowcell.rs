//! Flowcells: the sender's rule, once for each segment that the transport hands down.
//!
//! Algorithm 1 of Presto (SIGCOMM 2015, section 3.1). A flowcell is a whole number of consecutive
//! segments of one flow, of no more bytes together than the largest segment; it has one label, and
//! the next flowcell has the schedule's next. The number of bytes is tested before the segment is
//! added, so a flowcell is never larger than the threshold unless one segment is. Time closes no
//! flowcell.
//!
//! The flowlet switch that the paper compares with lives here too: there time alone opens the next
//! one.
//!
//! Invariant: all packets of a segment have one label and one flowcell number; flowcell numbers of
//! a flow ascend, modulo 2^16, one by one.

use super::hedera::{self, HederaParams};
pub use super::rule::{Opening, Rule};

use super::plb::{self, PlbParams};
use super::schedule::{Order, Turn};
use crate::registry::{About, PathProperty, Signal};
use crate::units::{Bytes, Time};

crate::params! {
    /// The edge labels nothing.
    pub struct UnspreadParams {}
}
crate::params! {
    /// Flowcells, each on the schedule's next path.
    pub struct PrestoParams {
        /// A flowcell's largest size. Source: 64 KB, the largest segment of TSO.
        #[within(1..)]
        pub threshold: Bytes = Bytes(64 << 10),
        /// In which order a flow takes its paths. Source: round-robin is the paper's.
        pub order: Order = Order::RoundRobin,
        /// Whether all flows begin with the same path rather than a random one. Begun together they
        /// stay in phase. Source: the published description is silent.
        pub first_path: bool = false,
        /// From a failure until the hosts have new lists of paths, without the broken ones; off:
        /// never. Source: ours.
        pub controller_delay: Option<Time> = Some(Time::from_ms(200)),
    }
}
crate::params! {
    /// A flow changes to the next path where it has paused.
    pub struct FlowletParams {
        /// A longer silence ends a flowlet. Source: the paper compares with 100us and 500us.
        pub gap: Time = Time::from_us(500),
        /// In which order a flow takes its paths. Source: round-robin is the paper's.
        pub order: Order = Order::RoundRobin,
        /// Whether all flows begin with the same path rather than a random one.
        pub first_path: bool = false,
        /// From a failure until the hosts have new lists of paths, without the broken ones; off:
        /// never. Source: ours.
        pub controller_delay: Option<Time> = Some(Time::from_ms(200)),
    }
}

const UNSPREAD: About = About { summary: "the edge labels nothing", source: "", ..About::PLAIN };
const PRESTO: About = About {
    summary: "flowcells of up to 64 KB, each on the next of the disjoint paths",
    source: "He et al.: Presto: Edge-based Load Balancing for Fast Datacenter Networks, SIGCOMM \
             2015, section 3.1",
    needs: &[PathProperty::LabelFixesPath, PathProperty::SizeAtEdge],
    breaks: &[PathProperty::FifoPerFlow],
    provides: &[Signal::Labels, Signal::Flowcells],
    reads: &[Signal::Paths],
    ..About::PLAIN
};
const FLOWLET: About = About {
    summary: "a flow that has paused goes on over the next of the disjoint paths",
    source: "Sinha, Kandula, Katabi: Harnessing TCP's burstiness with flowlet switching, HotNets \
             2004; as compared with in Presto",
    needs: &[PathProperty::LabelFixesPath],
    breaks: &[PathProperty::FifoPerFlow],
    provides: &[Signal::Labels],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::registry! {
    /// How the sending edge spreads a flow.
    place: "edge.load-balancing", question: "which label does it get?", default: None,
    params: LoadBalancingParams;
    "none" => None { UnspreadParams; UNSPREAD },
    "presto" => Presto { PrestoParams; PRESTO },
    "flowlet" => Flowlet { FlowletParams; FLOWLET },
    "hedera" => Hedera { HederaParams; hedera::ABOUT },
    "plb" => Plb { PlbParams; plb::ABOUT },
}

impl LoadBalancingParams {
    /// The rule; `None`: nothing is labelled.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            LoadBalancingParams::None(_) => None,
            LoadBalancingParams::Presto(p) => Some(Rule {
                opening: Opening::Bytes(p.threshold.get()),
                order: p.order,
                is_first: p.first_path,
            }),
            LoadBalancingParams::Flowlet(p) => {
                Some(Rule { opening: Opening::Gap(p.gap), order: p.order, is_first: p.first_path })
            }
            LoadBalancingParams::Hedera(_) => Some(hedera::RULE),
            LoadBalancingParams::Plb(p) => Some(Rule {
                opening: Opening::Congestion(p.rule()),
                order: Order::Random,
                is_first: false,
            }),
        }
    }
    /// How long after a failure hosts have new lists; `None`: they never have.
    pub fn controller_delay(&self) -> Option<Time> {
        match self {
            LoadBalancingParams::None(_) | LoadBalancingParams::Plb(_) => None,
            LoadBalancingParams::Presto(p) => p.controller_delay,
            LoadBalancingParams::Flowlet(p) => p.controller_delay,
            LoadBalancingParams::Hedera(p) => p.controller_delay,
        }
    }
}

/// The bytes that a segment counts for in its flowcell: its payload, or its IP and TCP headers
/// where they are more, so that acknowledgements change paths too. Both worlds count so; the
/// paper's "length" leaves it open.
#[inline]
pub fn counted(payload: u32, headers: u32) -> u32 {
    payload.max(headers)
}

/// The stamp that a segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its path.
    pub label: u16,
    /// Its flowcell.
    pub flowcell: u16,
}

/// One direction of a flow, at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flowcell {
    turn: Turn,
    /// Of the present flowcell.
    bytes: u64,
    /// When its last segment was sent.
    last: Time,
    number: u16,
    /// It was [ended](Flowcell::end).
    is_over: bool,
}

impl Flowcell {
    /// Of a new flow. `key` is a random number of its own; `number` its first flowcell's.
    pub fn new(rule: &Rule, key: u64, number: u16) -> Flowcell {
        Flowcell {
            turn: Turn::new(key, rule.is_first),
            bytes: 0,
            last: Time::ZERO,
            number,
            is_over: false,
        }
    }

    /// The next segment opens another flowcell.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// A segment of `len` bytes is sent, as [`counted`]; `labels` lead to its destination, and
    /// there is at least one.
    #[inline]
    pub fn stamp(&mut self, now: Time, rule: &Rule, len: u32, labels: &[u16]) -> Stamp {
        self.add(now, rule, len, labels.len());
        Stamp { label: self.turn.label(rule.order, labels), flowcell: self.number }
    }

    /// The place of the same segment's path in a list of so many, in place of [`Flowcell::stamp`].
    pub fn path(&mut self, now: Time, rule: &Rule, len: u32, paths: usize) -> usize {
        self.add(now, rule, len, paths);
        self.turn.entry(rule.order, paths)
    }

    /// The present flowcell's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    #[inline]
    fn add(&mut self, now: Time, rule: &Rule, len: u32, paths: usize) {
        let ends = match rule.opening {
            Opening::Bytes(threshold) => self.bytes + u64::from(len) > threshold,
            Opening::Gap(gap) => now.saturating_sub(self.last) > gap,
            Opening::Congestion(_) => false,
        };
        let ends = std::mem::take(&mut self.is_over) | ends;
        // A flow's first segment has none before it, however long it is and whenever its connection
        // was opened.
        if ends && self.bytes > 0 {
            self.bytes = 0;
            self.turn.advance(rule.order, paths);
            self.number = self.number.wrapping_add(1);
        }
        self.bytes += u64::from(len);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LABELS: [u16; 4] = [10, 11, 12, 13];

    fn rule(order: Order) -> Rule {
        Rule { opening: Opening::Bytes(64 << 10), order, is_first: true }
    }

    /// Segments, in bytes, as flowcells: the sizes of each.
    fn cells(segments: &[u32]) -> Vec<Vec<u32>> {
        let rule = rule(Order::RoundRobin);
        let mut flow = Flowcell::new(&rule, 3, 1);
        let mut cells: Vec<Vec<u32>> = Vec::new();
        for segment in segments {
            let stamp = flow.stamp(Time::ZERO, &rule, *segment, &LABELS);
            if cells.len() < usize::from(stamp.flowcell) {
                cells.push(Vec::new());
            }
            assert_eq!(cells.len(), usize::from(stamp.flowcell));
            assert_eq!(stamp.label, LABELS[(cells.len() - 1) % 4]);
            cells[usize::from(stamp.flowcell) - 1].push(*segment);
        }
        cells
    }

    #[test]
    fn algorithm_1_of_the_paper() {
        const KB: u32 = 1024;
        let of = |segments: &[u32]| cells(&segments.iter().map(|kb| kb * KB).collect::<Vec<_>>());
        let kb = |cells: &[&[u32]]| -> Vec<Vec<u32>> {
            cells.iter().map(|cell| cell.iter().map(|kb| kb * KB).collect()).collect()
        };
        assert_eq!(of(&[25, 30, 30]), kb(&[&[25, 30], &[30]]));
        assert_eq!(of(&[1, 5, 1]), kb(&[&[1, 5, 1]]));
        assert_eq!(of(&[64, 64, 64]), kb(&[&[64], &[64], &[64]]));
        assert_eq!(of(&[64, 1, 63, 1]), kb(&[&[64], &[1, 63], &[1]]));
        assert_eq!(cells(&[65_535, 1]).len(), 1, "65536 bytes stay");
        assert_eq!(cells(&[65_535, 2]).len(), 2, "65537 do not");
        let sizes: Vec<usize> = of(&[1; 200]).iter().map(Vec::len).collect();
        assert_eq!(sizes, [64, 64, 64, 8]);
    }

    #[test]
    fn pure_acknowledgements_change_path_rarely() {
        assert_eq!(cells(&[66; 1_000]).iter().map(Vec::len).collect::<Vec<_>>(), [992, 8]);
    }

    #[test]
    fn a_segment_above_the_threshold_is_a_flowcell_of_its_own() {
        let rule = Rule { opening: Opening::Bytes(10), ..rule(Order::RoundRobin) };
        let mut flow = Flowcell::new(&rule, 3, u16::MAX);
        let stamps: Vec<_> =
            [20, 20, 5].iter().map(|len| flow.stamp(Time::ZERO, &rule, *len, &[1, 2])).collect();
        assert_eq!(
            stamps.iter().map(|s| (s.label, s.flowcell)).collect::<Vec<_>>(),
            [(1, u16::MAX), (2, 0), (1, 1)]
        );
    }

    #[test]
    fn silence_ends_a_flowlet_and_no_flowcell() {
        let gap = Rule { opening: Opening::Gap(Time::from_us(500)), ..rule(Order::RoundRobin) };
        let labels_of = |rule: Rule| {
            let mut flow = Flowcell::new(&rule, 3, 0);
            let at = |us| flow.stamp(Time::from_us(us), &rule, 1_448, &LABELS).label;
            [0, 500, 1_000, 1_501, 9_000].map(at)
        };
        assert_eq!(labels_of(gap), [10, 10, 10, 11, 12]);
        let mut late = Flowcell::new(&gap, 3, 0);
        assert_eq!(
            late.stamp(Time::from_ms(9), &gap, 1_448, &LABELS).label,
            10,
            "no segment was before it"
        );
        assert_eq!(labels_of(rule(Order::RoundRobin)), [10; 5]);
    }

    /// Of two NICs with four labels each, both in turn and every label of each.
    #[test]
    fn flowcells_take_the_paths_of_several_nics_in_turn() {
        let rule = rule(Order::RoundRobin);
        let mut flow = Flowcell::new(&rule, 3, u16::MAX);
        let paths: Vec<usize> =
            (0..9).map(|_| flow.path(Time::ZERO, &rule, 64 << 10, 2 * 4)).collect();
        assert_eq!(paths, [0, 1, 2, 3, 4, 5, 6, 7, 0]);
        assert_eq!(flow.number(), 7);
        assert_eq!(flow.path(Time::ZERO, &rule, 1, 2 * 4), 1);
    }

    proptest! {
        /// No flowcell of several segments is above the threshold, none could have taken the next
        /// one's first segment, and numbers and labels go on one by one.
        #[test]
        fn flowcells_are_as_large_as_they_may_be(
            segments in prop::collection::vec(1u32..70_000, 1..100),
            first in any::<u16>(),
        ) {
            let rule = rule(Order::RoundRobin);
            let mut flow = Flowcell::new(&rule, 3, first);
            let (mut bytes, mut at) = (0u64, first);
            for segment in segments {
                let stamp = flow.stamp(Time::ZERO, &rule, segment, &LABELS);
                let step = stamp.flowcell.wrapping_sub(at);
                prop_assert!(step <= 1);
                prop_assert_eq!(step == 1, bytes > 0 && bytes + u64::from(segment) > 65_536);
                bytes = if step == 1 { 0 } else { bytes } + u64::from(segment);
                at = stamp.flowcell;
                prop_assert_eq!(stamp.label, LABELS[usize::from(at.wrapping_sub(first)) % 4]);
            }
        }
    }
}
