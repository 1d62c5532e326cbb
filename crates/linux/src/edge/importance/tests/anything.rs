//! Arbitrary and mutated frames in both directions: the shim changes what it may, and forges
//! nothing.

use super::bench::Bench;
use super::frames::{PLAIN, Seg, frame, syn_options};
use crate::dataplane::frame::parse::tcp::{ACK, SYN};
use crate::dataplane::frame::{Version, parse};
use crate::edge::importance::{Counters, ShimParams, options};
use millpond_core::Time;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    Segment {
        leaves: bool,
        seg: Seg,
    },
    /// The same with some bytes changed.
    Mutated {
        leaves: bool,
        seg: Seg,
        at: usize,
        xor: u8,
        cut: usize,
    },
    Raw {
        leaves: bool,
        bytes: Vec<u8>,
    },
    Later(u64),
    Evict,
}

fn segs() -> impl Strategy<Value = (bool, Seg)> {
    let flags = prop_oneof![
        60 => Just(ACK), 1 => Just(ACK | 1), 1 => Just(SYN), 1 => Just(SYN | ACK), 1 => any::<u8>(),
    ];
    let place = prop_oneof![60 => 0u32..6000, 1 => any::<u32>()];
    let sack = prop::collection::vec((0u32..6000, 1u32..3000), 0..3);
    let odd = prop_oneof![60 => Just(Vec::new()), 1 => prop::collection::vec(0u8..10, 0..8)];
    let rest =
        (0usize..1200, sack, odd, prop_oneof![4 => 100u16.., 1 => Just(0)], 0u8..6, any::<u32>());
    (any::<bool>(), flags, place.clone(), place, rest).prop_map(
        |(leaves, flags, seq, ack, (len, sack, extra, window, importance, stamp))| {
            let isn = if leaves { PLAIN.isn } else { [PLAIN.isn[1], PLAIN.isn[0]] };
            let is_syn = flags & SYN != 0;
            let wire = |at: u32| isn[1].wrapping_add(1).wrapping_add(at);
            let class = (importance << 2) | (stamp % 4) as u8;
            let seq = if is_syn { isn[0] } else { isn[0].wrapping_add(1).wrapping_add(seq) };
            let bytes = if importance % 2 == 0 && !is_syn { len } else { 0 };
            let payload = (0..bytes as u32).map(|i| seq.wrapping_add(i) as u8).collect();
            let seg = Seg {
                seq,
                ack: wire(if is_syn { 0 } else { ack }),
                flags,
                window,
                stamps: (!is_syn).then_some((stamp % 1000, 5)),
                sack: if is_syn {
                    vec![]
                } else {
                    sack.iter().map(|(a, n)| (wire(*a), wire(a + n))).collect()
                },
                extra: if is_syn { syn_options(&PLAIN) } else { extra },
                payload,
                class,
            };
            (leaves, seg)
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => segs().prop_map(|(leaves, seg)| Step::Segment { leaves, seg }),
        4 => (segs(), any::<usize>(), any::<u8>(), 0usize..200).prop_map(
            |((leaves, seg), at, xor, cut)| Step::Mutated { leaves, seg, at, xor, cut }
        ),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..90))
            .prop_map(|(leaves, bytes)| Step::Raw { leaves, bytes }),
        20 => (1u64..60).prop_map(Step::Later),
        1 => Just(Step::Evict),
    ]
}

/// Everything that the host has sent: bytes by sequence number, acknowledgements.
#[derive(Default)]
struct Sent {
    bytes: BTreeMap<u32, BTreeSet<u8>>,
    acks: BTreeSet<u32>,
    stamps: BTreeSet<Option<(u32, u32)>>,
}

impl Sent {
    fn note(&mut self, bytes: &[u8]) {
        let Some(view) = parse(bytes) else { return };
        let Some(layers) = view.tcp() else { return };
        use crate::dataplane::frame::parse::tcp;
        let seq = tcp::seq(bytes, layers);
        for (i, byte) in bytes[layers.payload..layers.end].iter().enumerate() {
            self.bytes.entry(seq.wrapping_add(i as u32)).or_default().insert(*byte);
        }
        self.acks.insert(tcp::ack(bytes, layers));
        let list = tcp::options(bytes, layers);
        self.stamps.extend(options::read(list).map(|options| options.stamps));
        self.stamps.extend(options::offer(list).map(|offer| offer.stamps));
    }
    /// A frame of the shim repeats what the host has sent.
    fn check(&self, seg: &Seg) {
        assert!((2..=5).contains(&seg.importance()), "{seg:?}");
        assert_eq!(seg.payload.is_empty(), matches!(seg.importance(), 3 | 5));
        assert_eq!(seg.flags & !0x40, ACK);
        assert!(seg.sack.is_empty() && seg.payload.len() <= 1200);
        for (i, byte) in seg.payload.iter().enumerate() {
            let known = self.bytes.get(&seg.seq.wrapping_add(i as u32));
            assert!(known.is_some_and(|known| known.contains(byte)), "a byte never sent");
        }
        // Before its first acknowledgement the host has acknowledged the peer's SYN at most.
        assert!(self.acks.contains(&seg.ack) || seg.importance() % 2 == 1, "a forged ACK");
        let first = Some((1, 0));
        assert!(seg.stamps.is_none() || seg.stamps == first || self.stamps.contains(&seg.stamps));
    }
}

/// Fields that the shim may change: importance, the IPv4 checksum; of incoming packets also SACK.
fn compare(before: &[u8], after: &[u8], leaves: bool) {
    assert_eq!(before.len(), after.len());
    let view = parse(before);
    let Some(layers) = view.as_ref().and_then(|view| view.tcp()) else {
        return assert_eq!(before, after);
    };
    let n = layers.network;
    for (at, (a, b)) in before.iter().zip(after).enumerate() {
        let changes = match (layers.version, at.wrapping_sub(n)) {
            (Version::V4, 1) => 0b1_1100,
            (Version::V4, 10 | 11) => 0xff,
            (Version::V6, 0) => 1,
            (Version::V6, 1) => 0b1100_0000,
            _ if leaves => 0,
            _ if (layers.transport + 16..layers.transport + 18).contains(&at) => 0xff,
            _ if (layers.transport + 20..layers.payload).contains(&at) => 0xff,
            _ => 0,
        };
        assert_eq!(a & !changes, b & !changes, "byte {at}");
    }
}

fn run(version: Version, steps: Vec<Step>) -> Counters {
    let params =
        ShimParams { cache_max: 4000, cache_total: 5000, flows_max: 2, ..ShimParams::default() };
    let mut bench = Bench::new(params);
    bench.handshake(&super::frames::Style { version, ..PLAIN });
    let mut sent = Sent::default();
    sent.acks.insert(PLAIN.isn[1] + 1);
    sent.stamps.insert(Some((100, 9)));
    for step in steps {
        let (leaves, bytes) = match step {
            Step::Segment { leaves, seg } => (leaves, frame(version, usize::from(!leaves), &seg)),
            Step::Mutated { leaves, seg, at, xor, cut } => {
                let mut bytes = frame(version, usize::from(!leaves), &seg);
                let at = at % bytes.len();
                bytes[at] ^= xor;
                bytes.truncate(bytes.len() - if cut < 60 { cut } else { 0 });
                (leaves, bytes)
            }
            Step::Raw { leaves, bytes } => (leaves, bytes),
            Step::Later(by) => {
                let frames = bench.due_at(bench.now + Time::from_us(by));
                frames.iter().for_each(|seg| sent.check(seg));
                continue;
            }
            Step::Evict => {
                bench.shim.evict(bench.now);
                continue;
            }
        };
        let after = if leaves {
            sent.note(&bytes);
            Some(bench.outgoing(&bytes))
        } else {
            bench.incoming(&bytes)
        };
        if let Some(after) = after {
            compare(&bytes, &after, leaves);
        }
        assert!(bench.shim.cached() <= 5000 && bench.shim.flows() <= 2);
    }
    let rest = bench.due();
    rest.iter().for_each(|seg| sent.check(seg));
    bench.now += Time::from_s(1000);
    bench.shim.evict(bench.now);
    bench.shim.evict(bench.now);
    assert_eq!((bench.shim.flows(), bench.shim.cached(), bench.shim.deadline()), (0, 0, None));
    bench.shim.counters().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("CASES").map_or(300, |n| n.parse().unwrap())
    ))]

    #[test]
    fn any_frames_pass_with_their_payload_and_nothing_is_forged(
        six: bool,
        steps in prop::collection::vec(steps(), 1..80),
    ) {
        run(if six { Version::V6 } else { Version::V4 }, steps);
    }
}

#[test]
fn the_generated_frames_reach_every_part_of_the_shim() {
    let mut runner = TestRunner::deterministic();
    let mut sums = [0; 9];
    for _ in 0..200 {
        let steps = prop::collection::vec(steps(), 1..80).new_tree(&mut runner).unwrap().current();
        let c = run(Version::V4, steps);
        let reached = [
            c.unimportant.packets,
            c.important.packets,
            c.green.packets,
            c.forced.packets,
            c.refused,
            c.echoes_marked,
            c.echoes_sent,
            c.acks_swallowed,
            c.dsacks_stripped,
        ];
        sums.iter_mut().zip(reached).for_each(|(sum, n)| *sum += n);
    }
    assert!(sums.iter().all(|sum| *sum > 0), "{sums:?}");
}
