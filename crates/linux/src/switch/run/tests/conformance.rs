//! Both drivers of the edge decide alike: what the simulator's hosts sent and received is replayed,
//! with its times for a clock, through the poll loop of the switch, and the verdicts are compared.
//!
//! The trace is of a fabric whose paths differ in length and of which one loses packets, so
//! flowcells overtake each other and are sent again. On the receiving side each packet becomes a
//! datagram, what lay in the simulator's ring is in the path's socket at the time of its poll, and
//! between polls the switch acts when its own deadline says. Every segment that goes up must be the
//! same, at the same time, flow by flow, and after every poll all that receive offload counts:
//! causes, packets, bytes, sizes, waits. On the sending side each segment becomes a super-segment
//! at the TAP, and must get the same label and flowcell.
//!
//! Differences between the worlds, and their treatment here:
//!
//! | | simulator | Linux | here |
//! |---|---|---|---|
//! | flow's first flowcell | 0 | a drawn number, as flows are forgotten | counted from the first |
//! | flow's first path | of the seed | of a number that the process draws | counted (1) |
//! | labels | trees' numbers | places among a peer's paths | places in the list |
//! | stamped packets | segments, acknowledgements | every TCP frame | those of the simulator (2) |
//! | a stream's first byte | 0, the SYN takes none | after the SYN | SYNs are one less |
//! | equal to merge | class, TTL, millisecond | TOS, TTL, ACK, options | TOS, TTL, ACK (3) |
//! | order of flows in a poll | of the hash | keyed by the process | each for itself (4) |
//! | order within a poll | of arrival | path by path | of arrival: one socket brings all |
//! | packets a poll | `budget` | 16 a path | `budget` |
//! | packets that a poll leaves | come with the next one, at once (5) | the same | the same (5) |
//! | a flow is over | is forgotten (6) | is forgotten when idle | none is over before the end |
//! | super-segment | up to 45 packets of 1460 | up to 63 packets (7) | no segment has more |
//! | clock | picoseconds | nanoseconds | the trace's |
//!
//! 1. The paths are the same where `first-path` is set.
//! 2. SYN-ACKs and answers to strays take the path of their hash in the simulator; they are left
//!    out.
//! 3. A class is priority, importance and ECN. The millisecond stands in the acknowledgement: as an
//!    option it would make headers longer, and so end large segments earlier.
//! 4. Flows are compared each for itself. No queue has more than 8, so that no bucket of stock GRO
//!    is full.
//! 5. In the simulator waits may end before the next poll, on Linux only after it. Here the socket
//!    has no more packets until then.
//! 6. So a late copy of a packet begins the flow anew.
//! 7. The rest is in another frame: 63 packets a frame.

mod replay;
mod simulated;

use crate::tests::same;
use millpond_core::Time;
use millpond_core::edge::gro::{Cause, Counters};
use simulated::{HOSTS, Trace, cell, simulate, with_cell};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
struct Verdict {
    at: Time,
    flow: u32,
    seq: u32,
    bytes: u32,
    flags: u8,
    /// Of its first packet.
    identity: (u8, u8, u32),
}

/// A segment that was sent, and what it was stamped with: the label's place in its list, and the
/// flowcell.
#[derive(Clone, Debug, PartialEq)]
struct Stamped {
    flow: u32,
    is_data: bool,
    seq: u32,
    bytes: u32,
    paths: u16,
    place: u16,
    flowcell: u16,
}

fn by_flow(mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
    verdicts.sort_by_key(|verdict| verdict.flow);
    verdicts
}

/// Compares what the queues of `trace` did with what the switch makes of `replayed`.
fn receivers_agree(trace: &Trace, replayed: &Trace) -> Result<(), String> {
    for host in 0..HOSTS {
        let theirs = replay::receive(replayed, host);
        same(
            &format!("segments at host{host}"),
            &by_flow(trace.verdicts_of(host)),
            &by_flow(theirs.verdicts),
        )?;
        let counted: Vec<_> =
            trace.polls_of(host).filter(|p| !p.taken.is_empty()).map(|p| p.counters).collect();
        same(&format!("counters of host{host} by poll"), &counted, &theirs.counted)?;
    }
    Ok(())
}

/// Counts flowcells, and places where flows begin anywhere, from each flow's first.
fn from_the_first(mut stamps: Vec<Stamped>, is_first: bool) -> Vec<Stamped> {
    let mut origins = BTreeMap::new();
    for stamp in &mut stamps {
        let (place, flowcell) =
            *origins.entry((stamp.flow, stamp.is_data)).or_insert((stamp.place, stamp.flowcell));
        // An acknowledgement's is not kept by the simulator.
        stamp.flowcell = if stamp.is_data { stamp.flowcell.wrapping_sub(flowcell) } else { 0 };
        if !is_first {
            stamp.place = (stamp.place + stamp.paths - place) % stamp.paths;
        }
    }
    stamps
}

fn senders_agree(trace: &Trace, replayed: &Trace) -> Result<(), String> {
    let is_first = trace.plan.edge.load_balancing.rule().is_some_and(|rule| rule.is_first);
    for host in 0..HOSTS {
        let of = |sent: &simulated::Sent| Stamped {
            flow: sent.flow,
            is_data: sent.is_data,
            seq: sent.seq,
            bytes: sent.payload,
            paths: sent.paths,
            place: sent.place,
            flowcell: sent.flowcell,
        };
        let ours = trace.sent.iter().filter(|sent| sent.host == host).map(of).collect();
        let theirs = replay::stamps(replayed, host);
        let (ours, theirs) = (from_the_first(ours, is_first), from_the_first(theirs, is_first));
        same(&format!("stamps of host{host}"), &ours, &theirs)?;
    }
    Ok(())
}

type Setting = (&'static str, &'static str);

const STOCK: [Setting; 1] = [("host.receive-offload.kind", "stock-gro")];
/// Waits that are short for these paths: many end in vain, and grow.
const SHORT: [Setting; 3] = [
    ("host.receive-offload.min", "10us"),
    ("host.receive-offload.initial", "20us"),
    ("host.receive-offload.double-after", "2"),
];
/// Polls that leave packets for the next one, at once: the poll loop then does not know whether it
/// has seen all.
const SMALL: [Setting; 1] = [("host.receive-offload.budget", "8")];
const LITERAL: [Setting; 1] = [("host.receive-offload.rules", "literal")];
const SAFE: [Setting; 1] = [("host.receive-offload.rules", "safe")];
const SEEDS: std::ops::Range<u64> = 1..4;

/// Compares over all seeds; what was counted.
fn receivers(settings: &[&[Setting]]) -> Counters {
    let (mut counted, mut retransmitted) = (Counters::default(), 0);
    for seed in SEEDS {
        let trace = simulate(seed, &settings.concat());
        assert!((0..HOSTS).all(|host| trace.flows_to(host) <= 8));
        retransmitted += trace.retransmitted;
        receivers_agree(&trace, &trace)
            .unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
        counted.merge(&trace.counters());
    }
    assert!(retransmitted > 100, "{retransmitted}");
    counted
}

/// A cause that did not come about was not compared.
fn have_been_seen(counted: &Counters, causes: &[Cause]) {
    let seen = causes.iter().map(|cause| (cause.name(), counted.of(*cause)));
    assert!(seen.clone().all(|(_, count)| count >= 10), "{:?}", seen.collect::<Vec<_>>());
}

#[test]
fn stock_offload_merges_alike() {
    let causes = [Cause::Single, Cause::Ejected, Cause::Complete, Cause::PollEnd];
    have_been_seen(&receivers(&[&STOCK]), &causes);
    have_been_seen(&receivers(&[&STOCK, &SMALL]), &causes);
}

fn presto(rules: &[Setting]) {
    let short = receivers(&[rules, &SHORT]);
    let causes = [
        Cause::Single,
        Cause::SameCell,
        Cause::Overlap,
        Cause::InOrder,
        Cause::Timeout,
        Cause::Older,
    ];
    have_been_seen(&short, &causes);
    assert!(short.doubled > 0, "{short:?}");
    let long = receivers(&[rules, &SMALL]);
    assert!(long.filled > 50, "{long:?}");
}

#[test]
fn literal_rules_release_alike() {
    presto(&LITERAL);
}

#[test]
fn safe_rules_release_alike() {
    presto(&SAFE);
}

#[test]
fn senders_stamp_alike() {
    for first in ["true", "false"] {
        for seed in SEEDS {
            let trace = simulate(seed, &[("edge.load-balancing.first-path", first)]);
            senders_agree(&trace, &trace)
                .unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
            let cells =
                trace.sent.iter().filter(|sent| sent.is_data).map(|sent| sent.flowcell).max();
            assert!(cells > Some(20), "{cells:?}");
        }
    }
}

/// A packet in the middle of what its queue received, of a segment with others.
fn middle(trace: &Trace) -> (usize, usize) {
    let polls: Vec<usize> =
        (0..trace.polls.len()).filter(|i| follows(trace, *i).is_some()).collect();
    let poll = polls[polls.len() / 2];
    (poll, follows(trace, poll).expect("one was found"))
}

/// The place of a packet in a poll that continues the one before it.
fn follows(trace: &Trace, poll: usize) -> Option<usize> {
    let taken = &trace.polls[poll].taken;
    let continues = |i: &usize| {
        let (before, this) = (&taken[*i - 1], &taken[*i]);
        this.is_data()
            && (before.flow, before.seq() + u64::from(before.payload)) == (this.flow, this.seq())
    };
    (1..taken.len()).find(continues)
}

#[test]
fn one_packet_in_another_flowcell_is_seen() {
    let trace = simulate(1, &SAFE);
    let mut other = trace.clone();
    let (poll, place) = middle(&trace);
    let packet = &mut other.polls[poll].taken[place];
    *packet = with_cell(*packet, cell(packet).wrapping_add(1));
    let difference = receivers_agree(&trace, &other).expect_err("a flowcell differs");
    assert!(difference.starts_with("segments at host"), "{difference}");
}

#[test]
fn two_packets_that_change_places_are_seen() {
    let trace = simulate(1, &STOCK);
    let mut other = trace.clone();
    let (poll, place) = middle(&trace);
    other.polls[poll].taken.swap(place - 1, place);
    receivers_agree(&trace, &other).expect_err("the order differs");
}

#[test]
fn other_rules_are_seen() {
    let (literal, safe) = (simulate(1, &LITERAL), simulate(1, &SAFE));
    let other = Trace { plan: safe.plan, ..literal.clone() };
    receivers_agree(&literal, &other).expect_err("the rules differ");
}

#[test]
fn another_threshold_is_seen() {
    let (trace, smaller) =
        (simulate(1, &[]), simulate(1, &[("edge.load-balancing.threshold", "60KB")]));
    let other = Trace { plan: smaller.plan, ..trace.clone() };
    let difference = senders_agree(&trace, &other).expect_err("flowcells differ");
    assert!(difference.starts_with("stamps of host"), "{difference}");
}
