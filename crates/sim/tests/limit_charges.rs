//! Limits together with every other stage of a host: a limit charges the bytes that are on the
//! wire, whatever cuts, merges or paces segments, and one that never acts changes nothing.

use crate::common::{self, Records, plan, simulate};
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::host::LimitCounts;
use millpond_core::registry::Choice;
use millpond_scenario::Plan;
use millpond_sim::Outcome;

/// Bytes of an Ethernet header, which a limit charges for each packet and links here do not carry.
const FRAMING: u64 = 14;

/// The transports that a limit takes.
fn streams() -> impl Iterator<Item = &'static str> {
    let kinds = TransportKind::place().mechanisms.iter().map(|mechanism| mechanism.kind);
    kinds.filter(|kind| {
        TransportKind::of_kind(kind).is_some_and(|kind| kind.demands().family == Family::Tcp)
    })
}

/// Three hosts send to each other through a switch that drops, so that some acknowledgements carry
/// SACK blocks.
fn text(kind: &str, more: &str) -> String {
    format!(
        "name = \"charges\"\nduration = \"400ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
         3\nhost-link = {{ rate = \"10Gbps\", delay = \"2us\" }}\n[switch]\nbuffer = {{ kind = \
         \"per-port\", size = \"60KB\" }}\n[capture]\npcap = [\"host0\", \
         \"host2\"]\n[[traffic]]\nname = \"list\"\nkind = \"flows\"\nrows = [[\"1us\", 0, 2, \
         1_500_000], [\"2us\", 1, 2, 1_500_000], [\"3us\", 2, 0, 700_001]]\n[transport]\nkind = \
         \"{kind}\"\nmin-rto = \"2ms\"\ninitial-rto = \"4ms\"\n{more}"
    )
}

/// The bytes that a host had on its wire, as limits charge it: leaving, arriving.
fn on_the_wire(records: &Records, tap: u16) -> [u64; 2] {
    [true, false].map(|outgoing| {
        let own = records
            .packets
            .iter()
            .filter(|record| record.tap == tap && record.outgoing == outgoing);
        own.map(|record| u64::from(record.packet.size) + FRAMING).sum()
    })
}

fn charged(outcome: &Outcome, limit: u16) -> [LimitCounts; 2] {
    [false, true].map(|ingress| outcome.limits.get(&(limit, ingress)).copied().unwrap_or_default())
}

fn complete(plan: &Plan, what: &str) -> (Outcome, Records) {
    let (outcome, records) = simulate(plan, 1);
    let ended = records.flows.iter().filter(|flow| flow.finish.is_some()).count();
    assert_eq!(ended, 3, "{what}: all flows end");
    (outcome, records)
}

/// A hundred times the link: it never acts.
fn idle(kind: &str) -> String {
    let direction = if kind == "nrm" { "both" } else { "egress" };
    [0, 2]
        .map(|host| {
            let limit =
                format!("[[limit]]\nname = \"at{host}\"\nhosts = {host}\nkind = \"{kind}\"\n");
            format!("{limit}direction = \"{direction}\"\nrate = \"1Tbps\"\n")
        })
        .concat()
}

/// Every transport, however segments are cut and merged.
#[test]
fn limits_charge_the_bytes_on_the_wire() {
    let (mut with_sack, mut merged) = (0, 0);
    for kind in streams() {
        for (offload, receive) in [
            ("\"64KiB\"", "none"),
            ("\"off\"", "none"),
            ("4000", "stock-gro"),
            ("\"64KiB\"", "stock-gro"),
            ("\"64KiB\"", "presto-gro"),
        ] {
            let host = format!(
                "[host]\nsegment-offload = {offload}\nreceive-offload = {{ kind = \"{receive}\" \
                 }}\n"
            );
            for limit in ["nrm", "htb"] {
                let what = format!("{kind}, {limit}, segments of {offload}, {receive}");
                let (outcome, records) =
                    complete(&plan(&text(kind, &format!("{host}{}", idle(limit))), &[]), &what);
                for (tap, number) in [(0, 0), (1, 1)] {
                    let [leaving, arriving] = charged(&outcome, number);
                    let [left, arrived] = on_the_wire(&records, tap);
                    assert_eq!(
                        (leaving.bytes, leaving.dropped),
                        (left, 0),
                        "{what}: leaving host {tap}"
                    );
                    if limit == "nrm" {
                        assert_eq!(
                            (arriving.bytes, arriving.dropped),
                            (arrived, 0),
                            "{what}: arriving at {tap}"
                        );
                    }
                    let arrivals =
                        records.packets.iter().filter(|it| it.tap == tap && !it.outgoing).count()
                            as u64;
                    merged += usize::from(arriving.packets > 0 && arriving.packets < arrivals);
                }
                let plain = records
                    .packets
                    .iter()
                    .filter(|it| !it.packet.is_data())
                    .map(|it| it.packet.size)
                    .min();
                with_sack += records
                    .packets
                    .iter()
                    .filter(|it| !it.packet.is_data() && Some(it.packet.size) > plain)
                    .count();
            }
        }
    }
    assert!(
        with_sack > 100 && merged > 10,
        "{with_sack} acknowledgements with SACK blocks, {merged} merging hosts"
    );
}

/// Every transport, with and without what else stands in a packet's way out.
#[test]
fn limits_that_never_act_change_nothing() {
    for kind in streams() {
        for (transport, host) in [
            ("", ""),
            ("importance = { kind = \"tlt\" }\n", ""),
            (
                "rank = { kind = \"remaining-bytes\" }\nordering = { kind = \"timeout\", timeout \
                 = \"50us\" }\n",
                "",
            ),
            ("", "segment-offload = \"off\"\n"),
            (
                "importance = { kind = \"tlt\" }\n",
                "segment-offload = 4000\nreceive-offload = { kind = \"stock-gro\" }\n",
            ),
            (
                "",
                "receive-offload = { kind = \"presto-gro\" }\n[edge]\nload-balancing = { kind = \
                 \"presto\" }\n",
            ),
        ] {
            let color =
                "[switch]\nadmission = { kind = \"color-aware\", threshold = \"20KB\" }\nbuffer";
            let run = |limits: &str| {
                let text = text(kind, &format!("{transport}[host]\n{host}{limits}"))
                    .replace("[switch]\nbuffer", color);
                let (outcome, records) =
                    complete(&plan(&text, &[]), &format!("{kind}, {transport}{host}{limits}"));
                let kept = (
                    outcome.audit.injected,
                    outcome.audit.delivered,
                    outcome.audit.dropped,
                    outcome.audit.hops,
                );
                format!("{:?} {kept:?} {:?}", outcome.hosts, records.flows)
            };
            let without = run("");
            for limit in ["nrm", "htb"] {
                common::assert_same(
                    &without,
                    &run(&idle(limit)),
                    &format!("{kind} behind {limit}: {transport}{host}"),
                );
            }
        }
    }
}

/// A paced transport hands down a packet at a time: 5 MB are charged once.
#[test]
fn tas_behind_a_limit_is_charged_what_it_sends() {
    let run = |limit: &str| {
        let text = format!(
            "name = \"tas\"\nuntil = \"flows-complete\"\nduration = \"10s\"\n[topology]\nkind = \
             \"single-switch\"\nhosts = 2\n[transport]\nkind = \"tas\"\n[[traffic]]\nkind = \
             \"flows\"\nrows = [[\"0us\", 0, 1, 5000000]]\n{limit}"
        );
        simulate(&plan(&text, &[]), 1)
    };
    let (outcome, records) = run("[[limit]]\nhosts = 0\nkind = \"nrm\"\nrate = \"100Gbps\"\n");
    let limit = outcome.limits[&(0, false)];
    assert!((5_150_000..5_230_000).contains(&limit.bytes) && limit.dropped == 0, "{limit:?}");
    let (_, without) = run("");
    assert_eq!(records.flows[0].finish, without.flows[0].finish);
}

/// Eight servers answer with eight flows each: more than the unimportant packets' threshold takes.
fn incast(kind: &str, limit: &str) -> Outcome {
    let text = format!(
        "name = \"incast\"\nuntil = \"flows-complete\"\nduration = \"2s\"\n[topology]\nkind = \
         \"single-switch\"\nhosts = 9\n[switch]\nbuffer = {{ kind = \"per-port\", size = \"1MB\" \
         }}\nadmission = {{ kind = \"color-aware\", threshold = \"10KB\" }}\n[transport]\nkind = \
         \"{kind}\"\nimportance = {{ kind = \"tlt\" }}\n[[traffic]]\nkind = \"incast\"\ndegree = \
         8\nflows-per-server = 8\nresponse = \"200KB\"\nreceiver = 0\n{limit}"
    );
    let (outcome, records) = simulate(&plan(&text, &[]), 1);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "{kind} {limit}");
    outcome
}

/// Behind a limit, too, a segment that is known to be lost takes the place of the next one.
#[test]
fn tlt_behind_a_limit_has_no_timeouts() {
    for kind in ["dctcp", "cubic", "newreno"] {
        for limit in ["nrm", "htb"] {
            let limit =
                format!("[[limit]]\nhosts = \"all\"\nkind = \"{limit}\"\nrate = \"100Gbps\"\n");
            let outcome = incast(kind, &limit);
            assert!(outcome.audit.dropped_total().packets > 100, "{kind} {limit}: nothing is lost");
            assert_eq!(outcome.hosts.timeouts, 0, "{kind} {limit}");
        }
    }
}

/// An acknowledgement that comes when its connection is over belongs to no traffic, whether or not
/// the other end, which is not over yet, is in the same partition.
#[test]
fn late_acknowledgements_are_charged_alike_in_all_partitions() {
    // The timeout is far shorter than the round trip, so every packet is sent many times, and
    // answered.
    let text = "name = \"late\"\nduration = \"2ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = \
                2\nspines = 1\nhosts-per-leaf = 2\nhost-link = { rate = \"10Gbps\", delay = \
                \"5us\" }\nfabric-link = { rate = \"10Gbps\", delay = \"5us\" \
                }\n[transport]\nkind = \"newreno\"\nfixed-rto = \"2us\"\ninitial-rto = \
                \"2us\"\n[[traffic]]\nname = \"list\"\nkind = \"flows\"\nrows = [[\"1us\", 0, 2, \
                2000], [\"7us\", 3, 1, 900], [\"20us\", 1, 2, 30_000], [\"41us\", 0, 1, \
                3000]]\n[[limit]]\nhosts = \"all\"\ndirection = \"both\"\nrate = \
                \"10Gbps\"\ntraffic = [\"list\"]\n";
    common::assert_nothing_changes(text, &[], &[2, 3]);
}
