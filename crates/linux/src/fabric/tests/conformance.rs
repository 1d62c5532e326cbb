//! Both drivers of the switch node decide alike: what arrived at each switch of a simulated network
//! is replayed as frames, with the simulation's times for a clock, and what leaves is compared.
//!
//! The network is two leaves and two spines under more load than their buffers hold. The traffic on
//! the links of each switch was captured; arrivals become frames that are written to the ports'
//! other ends, and the node is a copy of the simulator's before its first packet. Each frame that
//! leaves must be the same packet at the same port at the same picosecond, with the same mark, hops
//! left, and deflections; pause frames with the same priority and time; and over all switches as
//! many packets must have been marked, deflected and dropped, each for the same reason.
//!
//! Differences between the worlds, and their treatment here:
//!
//! | | simulator | Linux | here |
//! |---|---|---|---|
//! | a packet's size | IP and framing of its scenario | IP and Ethernet's framing | IP |
//! | flow's hash | of the flow's number | of the 5-tuple, keyed by the process | the tag's label |
//! | rank | a field | the tag's | the tag's |
//! | pause's length | any time | quanta of 512 bits | whole quanta |
//! | two ports' arrivals of one instant | lots are drawn | the kernel's order | runs without them |
//! | a late poll loop | none | calls keep their times | in time; a test lets it sleep |

mod network;
mod replay;
mod simulated;

use crate::tests::same;
use millpond_core::counters::DropReason;
use millpond_core::{Ecn, Time};
use simulated::{Trace, runs, simulate};

/// A packet or pause that left a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Packet(Seen),
    Pause { at: Time, port: u16, priority: u8, quanta: u16 },
}

/// A packet as a link carries it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    at: Time,
    port: u16,
    flow: u32,
    seq: u32,
    ack: u32,
    size: u16,
    flags: u8,
    ecn: Ecn,
    ttl: u8,
    rank: u32,
    deflected: bool,
}

impl Left {
    fn port(&self) -> u16 {
        match self {
            Left::Packet(seen) => seen.port,
            Left::Pause { port, .. } => *port,
        }
    }
}

/// The counters of switches, over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    marked: u64,
    deflected: u64,
    dropped: [u64; DropReason::ALL.len()],
}

fn by_port(mut left: Vec<Left>) -> Vec<Left> {
    left.sort_by_key(Left::port);
    left
}

/// Compares what the simulator's switches did in `trace` with what Linux's make of `replayed`.
fn agree(trace: &Trace, replayed: &Trace) -> Result<(), String> {
    let mut counted = Counted::default();
    for switch in 0..trace.switches() {
        let theirs = replay::run(replayed, switch, &mut counted);
        same(&format!("switch {switch}"), &by_port(trace.left(switch)), &by_port(theirs))?;
    }
    same("counted", &[trace.counted], &[counted])
}

/// Events that did not come about were not compared.
#[derive(Default)]
struct Expected<'a> {
    marks: bool,
    deflects: bool,
    pauses: bool,
    drops: &'a [DropReason],
}

fn alike(settings: &[(&str, &str)], expected: &Expected<'_>) {
    let mut all = Counted::default();
    for trace in runs(4, settings) {
        let seed = trace.plan.seed;
        agree(&trace, &trace).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
        let Counted { marked, deflected, dropped } = trace.counted;
        (all.marked, all.deflected) = (all.marked + marked, all.deflected + deflected);
        all.dropped.iter_mut().zip(dropped).for_each(|(all, own)| *all += own);
        let left: Vec<Left> = (0..trace.switches()).flat_map(|switch| trace.left(switch)).collect();
        let pauses = left.iter().filter(|left| matches!(left, Left::Pause { .. })).count();
        assert!(
            left.len() - pauses > 5_000 && (!expected.pauses || pauses > 10),
            "{} {pauses}",
            left.len()
        );
    }
    let Counted { marked, deflected, dropped } = all;
    assert!(expected.drops.iter().all(|reason| dropped[*reason as usize] > 10), "{dropped:?}");
    assert!(
        (!expected.marks || marked > 10) && (!expected.deflects || deflected > 10),
        "{marked} {deflected}"
    );
}

fn run(settings: &[(&str, &str)]) -> Trace {
    runs(1, settings).remove(0)
}

const RANK: (&str, &str) = ("transport.rank.kind", "remaining-bytes");
/// So that several ports are full at once.
const TIGHT: (&str, &str) = ("switch.buffer.size", "6KB");
const PATIENT: (&str, &str) = ("transport.dupack-threshold", "off");

#[test]
fn drop_tail_alike() {
    let expected = Expected { drops: &[DropReason::QueueFull], ..Default::default() };
    alike(&[("switch.marking.kind", "none")], &expected);
    alike(&[("switch.marking.kind", "none"), ("engine.ports", "general")], &expected);
}

#[test]
fn marks_alike() {
    let expected = Expected { marks: true, ..Default::default() };
    alike(&[], &expected);
    alike(&[("switch.marking.at", "dequeue")], &expected);
    alike(&[("switch.marking.kind", "red")], &expected);
}

#[test]
fn early_drops_alike() {
    let red = (
        "switch.admission",
        "{ kind = \"red\", min-threshold = \"8KB\", max-threshold = \"25KB\" }",
    );
    alike(&[red], &Expected { drops: &[DropReason::Early], ..Default::default() });
    alike(
        &[("switch.admission.kind", "aifo"), RANK],
        &Expected { drops: &[DropReason::Early], ..Default::default() },
    );
}

#[test]
fn colors_alike() {
    let color = ("switch.admission", "{ kind = \"color-aware\", threshold = \"15KB\" }");
    let expected = Expected { drops: &[DropReason::Color], ..Default::default() };
    alike(&[("transport.importance.kind", "tlt"), color], &expected);
}

#[test]
fn deflections_alike() {
    let expected =
        Expected { deflects: true, drops: &[DropReason::NoDeflection], ..Default::default() };
    alike(&[("switch.deflection.kind", "dibs"), TIGHT, PATIENT], &expected);
    alike(
        &[
            ("switch.deflection.kind", "canary"),
            ("switch.admission.kind", "aifo"),
            TIGHT,
            RANK,
            PATIENT,
        ],
        &expected,
    );
}

#[test]
fn vertigo_displaces_and_serves_by_rank_alike() {
    let [queue, path] = [("switch.queue.kind", "srpt"), ("switch.path.kind", "power-of-n")];
    let expected =
        Expected { deflects: true, drops: &[DropReason::NoDeflection], ..Default::default() };
    alike(&[("switch.deflection.kind", "vertigo"), TIGHT, queue, path, RANK, PATIENT], &expected);
}

#[test]
fn paths_alike() {
    alike(&[("switch.path", "{ kind = \"letflow\", gap = \"10us\" }")], &Expected::default());
    alike(&[("switch.path.kind", "spray")], &Expected::default());
    alike(&[("switch.path.kind", "drill")], &Expected::default());
    let presto = ("edge.load-balancing.kind", "presto");
    alike(&[("switch.path.kind", "labels"), presto], &Expected::default());
}

const SHARED: (&str, &str) =
    ("switch.buffer", "{ kind = \"shared\", size = \"100KB\", alpha = 0.5 }");

#[test]
fn shared_memory_alike() {
    alike(&[SHARED], &Expected { drops: &[DropReason::SharedBuffer], ..Default::default() });
}

#[test]
fn pauses_alike() {
    let pools = ("switch.buffer", "{ kind = \"pools\", size = \"300KB\" }");
    let expected = Expected { pauses: true, ..Default::default() };
    alike(&[("switch.pause.kind", "pfc"), pools], &expected);
    let short = "{ kind = \"pfc\", pause-time = \"5120ns\", recheck = \"2us\", resume = false, \
                 frames = \"each-arrival\" }";
    alike(&[("switch.pause", short), pools], &expected);
}

/// A fabric of all switches, between hosts alone.
#[test]
fn a_whole_network_decides_alike() {
    let canary = ("switch.deflection.kind", "canary");
    let aifo = ("switch.admission.kind", "aifo");
    let color = ("switch.admission", "{ kind = \"color-aware\", threshold = \"15KB\" }");
    let tlt = ("transport.importance.kind", "tlt");
    let general = ("engine.ports", "general");
    let cases: [&[(&str, &str)]; 4] =
        [&[], &[general], &[canary, aifo, TIGHT, RANK, PATIENT], &[tlt, color]];
    for settings in cases {
        for trace in runs(2, settings) {
            let count = network::agree(&trace)
                .unwrap_or_else(|difference| panic!("{settings:?}: {difference}"));
            assert!(count > 4_000, "{count}");
        }
    }
}

#[test]
fn a_sleepy_loop_decides_alike() {
    let trace = run(&[("switch.queue.kind", "strict-priority")]);
    replay::sleepily(&trace, Time::from_us(3));
}

#[test]
fn one_late_packet_is_seen() {
    let trace = run(&[]);
    let mut other = trace.clone();
    let at = other.packets.len() / 2;
    let late = (at..).find(|i| !trace.packets[*i].outgoing).expect("an arrival");
    other.packets[late].at += Time::from_ps(1);
    let difference = agree(&trace, &other).expect_err("a packet is late");
    assert!(difference.starts_with("switch"), "{difference}");
}

#[test]
fn another_mark_is_seen() {
    let trace = run(&[]);
    let mut other = trace.clone();
    let is_marked = |ecn| ecn == Ecn::Ce;
    let at =
        (0..).find(|i| !trace.packets[*i].outgoing && is_marked(trace.ecn(*i))).expect("a mark");
    other.set_ecn(at, Ecn::Ect);
    agree(&trace, &other).expect_err("a mark is gone");
}

#[test]
fn another_threshold_is_seen() {
    let trace = run(&[]);
    let other = simulate(trace.plan.seed, &[("switch.marking.threshold-packets", "6")]);
    let other = Trace { plan: other.plan, ..trace.clone() };
    agree(&trace, &other).expect_err("thresholds differ");
}
