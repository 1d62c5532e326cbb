//! Limits on hosts: the rate holds whatever sends, nothing is lost without being counted, and a
//! limit that is never reached changes nothing.

use crate::common::{self, Records, plan, simulate};
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_sim::Outcome;
use proptest::prelude::*;

/// Host 0 calls host 1 on `flows` connections of 1 MB and one of 10 KB.
fn rack(flows: u32, transport: &str, limit: &str, more: &str) -> String {
    format!(
        "name = \"rack\"\nduration = \"1500ms\"\nwarm-up = \"200ms\"\n[topology]\nkind = \
         \"single-switch\"\nhosts = 2\nhost-link = {{ rate = \"10Gbps\", delay = \"20us\" \
         }}\n[switch]\nbuffer = {{ kind = \"per-port\", size = \"4MB\" \
         }}\n[transport]\n{transport}\nprobe-timer = \"20ms\"\n[[limit]]\nname = \"batch\"\nrate \
         = \"1Gbps\"\n{limit}\n[[traffic]]\nname = \"large\"\nkind = \"rpc\"\npairs = \
         [\"0-1\"]\nconnections = {flows}\nrequest = \"1MB\"\nresponse = 1\n[[traffic]]\nname = \
         \"small\"\nkind = \"rpc\"\npairs = [\"0-1\"]\nrequest = \"10KB\"\nresponse = 1\n{more}"
    )
}

const CUBIC: &str = "kind = \"cubic\"";
const CUBIC_ECN: &str = "kind = \"cubic\"\ncubic-ecn = true";
const DCTCP: &str = "kind = \"dctcp\"";
const NEWRENO: &str = "kind = \"newreno\"";

/// The most wire bytes (with Ethernet headers, as they are charged) that passed in any second, over
/// what the limit allows.
fn worst_second(records: &Records) -> f64 {
    let sent: Vec<(Time, u64)> = records
        .packets
        .iter()
        .filter(|r| r.outgoing)
        .map(|r| (r.at, r.packet.size as u64 + 14))
        .collect();
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for &(at, bytes) in &sent {
        sum += bytes;
        while at.saturating_sub(sent[first].0) >= Time::from_s(1) {
            sum -= sent[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most as f64 * 8.0 / 1e9
}

fn run(text: &str) -> (Outcome, Records) {
    simulate(&plan(text, &[]), 1)
}

#[test]
fn no_second_carries_more_than_the_limit_and_three_percent() {
    for (flows, transport, form) in [
        (1, CUBIC, "credit"),
        (9, CUBIC, "lock-free"),
        (4, CUBIC_ECN, "credit"),
        (1, DCTCP, "credit"),
        (8, DCTCP, "edt"),
        (2, NEWRENO, "credit"),
        (5, "kind = \"swift\"", "credit"),
    ] {
        let text = rack(
            flows,
            transport,
            &format!("hosts = 0\nform = \"{form}\""),
            "[capture]\npcap = [\"host0\"]\n",
        );
        let (_, records) = run(&text);
        let worst = worst_second(&records);
        assert!(worst <= 1.03, "{flows} flows, {transport}, {form}: {worst} Gb/s");
        assert!(worst >= 0.2, "{flows} flows, {transport}, {form}: only {worst} Gb/s");
    }
}

fn limit_of(outcome: &Outcome, ingress: bool) -> millpond_core::host::LimitCounts {
    outcome.limits[&(0, ingress)]
}

#[test]
fn marks_hold_dctcp_near_the_limit_without_refusing_it() {
    let (outcome, _) = run(&rack(2, DCTCP, "hosts = 0", ""));
    let limit = limit_of(&outcome, false);
    // Only slow start gets so far behind that anything is refused.
    assert!(limit.marked > 100 && limit.dropped * 100 < limit.packets, "{limit:?}");
    let gbps = limit.measured_bytes as f64 * 8.0 / 1.3e9;
    assert!((0.9..=1.03).contains(&gbps), "{gbps}");
    assert_eq!(outcome.audit.dropped_total().packets, 0);
}

#[test]
fn a_refusal_is_neither_a_loss_nor_a_retransmission() {
    // Without marks and without the bypass, refusals are all that holds Cubic.
    let (outcome, _) = run(&rack(8, CUBIC, "hosts = 0\nbypass = 0\ncwr = false", ""));
    let limit = limit_of(&outcome, false);
    assert!(limit.dropped > 50 && limit.reduced == 0, "{limit:?}");
    assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0));
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    assert!(outcome.hosts.completed > 20);
}

#[test]
fn told_senders_reduce_once_a_round_trip() {
    let (outcome, _) = run(&rack(4, CUBIC, "hosts = 0", ""));
    let limit = limit_of(&outcome, false);
    assert!(limit.reduced > 10, "{limit:?}");
    assert_eq!(outcome.hosts.retransmitted, 0);
}

/// With nothing in flight and everything refused only the probe timer goes on: one segment each
/// time.
#[test]
fn the_probe_timer_is_what_a_refused_flow_waits_for() {
    let calls = |timer: &str| {
        let text = rack(8, CUBIC, "hosts = 0\nbypass = 0\ncwr = false", "")
            .replace("probe-timer = \"20ms\"", timer);
        run(&text).0.hosts.measured_bytes
    };
    let (short, long) = (calls("probe-timer = \"20ms\""), calls("probe-timer = \"200ms\""));
    assert!(short > long, "{short} bytes with 20 ms and {long} with 200 ms");
}

#[test]
fn on_arrival_a_drop_is_a_loss_and_is_counted() {
    let (outcome, _) = run(&rack(8, CUBIC, "hosts = 1\ndirection = \"ingress\"", ""));
    let limit = limit_of(&outcome, true);
    assert!(limit.dropped > 0);
    assert_eq!(outcome.audit.dropped[DropReason::Limit as usize].packets, limit.dropped);
    assert!(outcome.hosts.retransmitted > 0);
    let gbps = limit.measured_bytes as f64 * 8.0 / 1.3e9;
    assert!(gbps <= 1.03, "{gbps}");
    let (outcome, _) = run(&rack(
        8,
        CUBIC,
        "hosts = 1\ndirection = \"ingress\"\ningress-mode = \"mark-only\"",
        "",
    ));
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    let (outcome, _) = run(&rack(2, DCTCP, "hosts = 1\ndirection = \"ingress\"", ""));
    let lost = outcome.audit.dropped_total().packets;
    assert!(outcome.marked > 100 && lost * 100 < outcome.audit.injected.packets, "{lost}");
}

/// Arriving packets are merged before a limit sees them: a segment is charged for all of its
/// packets, the rate holds, and a segment that is dropped is lost with all of its packets, each of
/// which is counted and sent again.
#[test]
fn limits_on_arrival_and_receive_offload_are_right_together() {
    let gro = "receive-offload = { kind = \"stock-gro\" }\n";
    let presto = "receive-offload = { kind = \"presto-gro\" }\n";
    let ordering = "kind = \"cubic\"\nordering = { kind = \"timeout\", timeout = \"100us\" }";
    for (transport, host) in [
        (CUBIC, gro.to_string()),
        (CUBIC, presto.to_string()),
        (CUBIC, format!("{gro}receive-cpu = {{ }}\n")),
        (ordering, gro.to_string()),
    ] {
        let text =
            rack(8, transport, "hosts = 1\ndirection = \"ingress\"", &format!("[host]\n{host}"));
        let (outcome, _) = run(&text);
        let (limit, audit) = (limit_of(&outcome, true), &outcome.audit);
        assert!(audit.is_conserved(), "{host}: {audit:?}");
        let lost = audit.dropped[DropReason::Limit as usize];
        // A segment is several packets.
        assert!(
            limit.dropped > 10 && lost.packets > 2 * limit.dropped,
            "{host}: {} are {lost:?}",
            limit.dropped
        );
        assert_eq!(
            limit.dropped_bytes,
            lost.bytes + 14 * lost.packets,
            "{host}: with an Ethernet header each"
        );
        // All that was lost was sent again, or no call of a megabyte would end.
        let (again, calls) = (outcome.hosts.retransmitted, outcome.hosts.completed);
        assert!(again > 100 && calls > 20, "{host}: {again} sent again, {calls} calls");
        let gbps = limit.measured_bytes as f64 * 8.0 / 1.3e9;
        assert!((0.3..=1.03).contains(&gbps), "{host}: {gbps} Gb/s");
    }
    // CE on a merged segment is CE on all of its packets.
    let (outcome, _) =
        run(&rack(2, DCTCP, "hosts = 1\ndirection = \"ingress\"", &format!("[host]\n{gro}")));
    let limit = limit_of(&outcome, true);
    assert!(
        limit.marked > 10 && outcome.marked >= limit.marked,
        "{} and {limit:?}",
        outcome.marked
    );
}

#[test]
fn htb_makes_segments_wait_and_loses_nothing() {
    let (outcome, records) =
        run(&rack(8, CUBIC, "kind = \"htb\"\nhosts = 0", "[capture]\npcap = [\"host0\"]\n"));
    let limit = limit_of(&outcome, false);
    assert_eq!((limit.dropped, outcome.hosts.retransmitted), (0, 0));
    assert!(
        limit.waited.as_us_f64() / limit.timed as f64 > 1_000.0,
        "a standing queue of milliseconds"
    );
    let worst = worst_second(&records);
    assert!((0.95..=1.001).contains(&worst), "{worst}");
    // A class with room for one segment refuses the others: no loss either.
    let (outcome, _) = run(&rack(8, CUBIC, "kind = \"htb\"\nqueue = 1\nhosts = 0", ""));
    assert!(limit_of(&outcome, false).dropped > 0);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
}

#[test]
fn a_limit_that_is_never_reached_changes_nothing() {
    let flows = |limit: &str| run(&rack(3, DCTCP, limit, "")).1.flows;
    let idle = flows("hosts = 0\nobserve = true");
    let without =
        rack(3, DCTCP, "", "").replace("[[limit]]\nname = \"batch\"\nrate = \"1Gbps\"\n", "");
    let without = run(&without).1.flows;
    assert_eq!(format!("{idle:?}"), format!("{without:?}"));
    let high = flows("hosts = 0").len();
    assert!(high < without.len());
    let other = flows(
        "hosts = 0\ntraffic = [\"small\"]\nscopes = [\"all\"]\n[[limit]]\nname = \"all\"\nrate = \
         \"20Gbps\"",
    );
    assert!(other.len() > high, "only the small calls are held");
}

#[test]
fn the_tightest_scope_decides() {
    let more = "[[limit]]\nname = \"slice\"\nrate = \"500Mbps\"\n";
    let (outcome, _) = run(&rack(4, DCTCP, "hosts = 0\nscopes = [\"slice\"]", more));
    let (own, slice) = (outcome.limits[&(0, false)], outcome.limits[&(1, false)]);
    assert_eq!(own.packets, slice.packets);
    assert!(slice.decided > 20 * own.decided.max(1), "{} and {}", slice.decided, own.decided);
    let gbps = slice.measured_bytes as f64 * 8.0 / 1.3e9;
    assert!((0.4..=0.515).contains(&gbps), "{gbps}");
}

/// Transports of one run: those of a traffic's own are as if the whole scenario had them.
#[test]
fn a_traffic_with_its_own_transport_runs_as_if_it_were_the_scenarios() {
    let text = |kind: &str, own: &str| {
        format!(
            "duration = \"40ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = \
             2\nhosts-per-leaf = 4\n[switch]\nbuffer = {{ kind = \"per-port\", size = \"60KB\" \
             }}\nmarking = {{ kind = \"ecn\", threshold-packets = 20 }}\n[transport]\nkind = \
             \"{kind}\"\n[[traffic]]\nname = \"p\"\nkind = \"poisson\"\nsizes = \
             \"web-search\"\nload = 0.6\n{own}"
        )
    };
    for (kind, keys) in
        [("dctcp", ""), ("cubic", ", cubic-ecn = true"), ("newreno", ""), ("swift", "")]
    {
        let scenarios = text(kind, "")
            .replace("[[traffic]]", &format!("{}\n[[traffic]]", keys.trim_start_matches(", ")));
        let own = text("cubic", &format!("transport = {{ kind = \"{kind}\"{keys} }}"));
        let flows = |text: &str| format!("{:?}", run(text).1.flows);
        assert_eq!(flows(&scenarios), flows(&own), "{kind}");
    }
}

fn limits() -> impl Strategy<Value = String> {
    let where_ = prop::sample::select(vec![
        "hosts = \"all\"",
        "hosts = 0\ndirection = \"both\"",
        "hosts = \"all\"\ndirection = \"ingress\"",
        "hosts = \"1..2\"\ndirection = \"both\"\ningress-mode = \"mark-only\"",
    ]);
    let how = prop::sample::select(vec![
        "form = \"credit\"",
        "form = \"lock-free\"\nlength = \"ip\"",
        "mark = 3000\ndrop = 40000\nreserve = 2000\nbypass = 0",
        "reaction = \"step\"\ncwr = false",
        "reaction = \"rtt-aware\"\nscopes = [\"b\"]",
    ]);
    let rate = prop::sample::select(vec!["20Mbps", "500Mbps", "3Gbps"]);
    let egress = prop::sample::select(vec![
        "",
        "[[limit]]\nname = \"c\"\nhosts = \"all\"\nform = \"edt\"\nrate = \"700Mbps\"\n",
        "[[limit]]\nname = \"c\"\nhosts = \"0..1\"\nkind = \"htb\"\nqueue = 3\nrate = \
         \"700Mbps\"\n",
    ]);
    (where_, how, rate, egress).prop_map(|(hosts, how, rate, more)| {
        format!(
            "[[limit]]\nname = \"a\"\n{hosts}\n{how}\nrate = \"{rate}\"\n[[limit]]\nname = \
             \"b\"\nrate = \"300Mbps\"\n{more}"
        )
    })
}

/// The stages that hosts have beside limits: keys of the transport, and of the host.
fn stages() -> impl Strategy<Value = (&'static str, &'static str)> {
    let ordering = prop::sample::select(vec![
        "",
        "",
        "ordering = { kind = \"timeout\", timeout = \"30us\" }\n",
        "rank = { kind = \"remaining-bytes\" }\n",
    ]);
    let host = prop::sample::select(vec![
        "",
        "",
        "receive-offload = { kind = \"stock-gro\" }\n",
        "receive-offload = { kind = \"presto-gro\", min = \"1us\", initial = \"3us\" \
         }\nreceive-cpu = { per-packet = \"1us\", ring = 30, cores = 2 }\n",
        "receive-offload = { kind = \"presto-gro\" }\n[edge]\nload-balancing = { kind = \
         \"presto\", threshold = 3000 }\n",
    ]);
    (ordering, host)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Any limits, transports, links that fail: packets are conserved, and threads, partitions and
    /// ports change nothing.
    #[test]
    fn whatever_is_limited_is_conserved_and_the_same_in_all_partitionings(
        limits in limits(),
        seed: u32,
        kind in prop::sample::select(vec!["newreno", "cubic", "dctcp", "swift"]),
        own in prop::sample::select(vec![
            "",
            "transport = { kind = \"cubic\", cubic-ecn = true }",
            "transport = { kind = \"dctcp\" }",
        ]),
        (ordering, host) in stages(),
    ) {
        let text = format!(
            "name = \"any\"\nseed = {seed}\nduration = \"8ms\"\n\
             [topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n\
             [switch]\nbuffer = {{ kind = \"per-port\", size = \"30KB\" }}\n\
             path = {{ kind = \"spray\" }}\n\
             [transport]\nkind = \"{kind}\"\nmin-rto = \"300us\"\ninitial-rto = \"1ms\"\n\
             probe-timer = \"500us\"\n{ordering}[host]\n{host}{limits}\
             [[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"1ms\"\nuntil = \"3ms\"\n\
             [[failure]]\nlink = [\"host1\", \"leaf0\"]\nat = \"2ms\"\nuntil = \"2500us\"\n\
             [[traffic]]\nname = \"p\"\nkind = \"permutation\"\nsize = \"400KB\"\n{own}\n\
             [[traffic]]\nname = \"i\"\nkind = \"incast\"\ndegree = 2\n\
             response = \"30KB\"\nperiod = \"300us\"\nrequest = 50\n\
             [[traffic]]\nname = \"r\"\nkind = \"rpc\"\npairs = [\"0-3\", \"1-0\"]\n\
             connections = 2\nrequest = \"60KB\"\n"
        );
        let plan = plan(&text, &[]);
        let one = common::fingerprint(&plan, 1);
        prop_assert!(one == common::fingerprint(&plan, 2), "two threads");
        let same =
            |key: &str, value: &str| common::fingerprint(&common::plan(&text, &[(key, value)]), 2);
        prop_assert!(one == same("engine.ports", "general"), "general ports");
        prop_assert!(one == same("engine.partitions", "one"), "one partition");
    }
}
