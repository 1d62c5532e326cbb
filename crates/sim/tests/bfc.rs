//! BFC in whole networks: nothing is lost, a flow that is not in the way is not stopped, and the
//! same bytes for any threads and partitions.

use crate::common::{assert_nothing_changes, exact, plan, simulate};
use millpond_core::Time;
use millpond_core::switch::pause::PauseTarget;
use proptest::prelude::*;

/// Bursts for one host from all others, whose first windows are longer than the burst.
const INCAST: &str = r#"
    name = "bfc-incast"
    duration = "1500us"
    seed = 3
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 6
    host-link = { rate = "40Gbps", delay = "1us" }
    fabric-link = { rate = "40Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "shared", size = "1500KB", alpha = 8.0 }
    queue = { kind = "dynamic-queues" }
    pause = { kind = "bfc" }
    [transport]
    kind = "newreno"
    initial-window = 100
    min-rto = "10ms"
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 23
    response = "60KB"
    period = "300us"
    request = "none"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.6
"#;

const NONE: (&str, &str) = ("switch.pause.kind", "none");
const FEW: (&str, &str) = ("switch.queue.queues", "3");

#[test]
fn nothing_is_lost_within_the_buffer() {
    for set in [&[][..], &[FEW], &[("switch.queue.vfids", "8")], &[("transport.kind", "dcqcn")]] {
        let (outcome, records) = simulate(&plan(INCAST, set), 2);
        let counts = (
            outcome.audit.dropped_total().packets,
            outcome.hosts.retransmitted,
            outcome.hosts.timeouts,
        );
        println!("{set:?}: {} frames, {}", outcome.pause_frames, outcome.queue_bytes_max);
        assert_eq!(counts, (0, 0, 0), "{set:?}");
        assert!(outcome.pause_frames > 100 && outcome.counters.get("bfc", "paused_us") > 100);
        assert!(records.flows.iter().filter(|flow| flow.finish.is_some()).count() > 60);
    }
    let (lossy, _) = simulate(&plan(INCAST, &[NONE, ("switch.buffer.size", "600KB")]), 2);
    let (bfc, _) = simulate(&plan(INCAST, &[("switch.buffer.size", "600KB")]), 2);
    let dropped = [&lossy, &bfc].map(|outcome| outcome.audit.dropped_total().packets);
    println!("{dropped:?}");
    assert!(dropped[0] > 100 && dropped[1] == 0, "what is prevented is there: {dropped:?}");
}

#[test]
fn threads_partitions_and_ports_change_nothing() {
    let pcap = ("capture.pcap", "host3,leaf0:6");
    let sets: [&[(&str, &str)]; 4] = [
        &[pcap, ("capture.queues", "7us")],
        &[FEW, ("switch.path.kind", "spray"), ("transport.dupack-threshold", "off")],
        &[("transport.kind", "dcqcn"), ("switch.pause.interval", "300ns")],
        &[NONE],
    ];
    for set in sets {
        assert_nothing_changes(INCAST, set, &[2, 3]);
    }
}

/// Three hosts send to one behind another switch, three times what it takes; a fourth sends to
/// another host there, over the same link between the switches, which is as fast as all four.
const VICTIM: &str = r#"
    name = "bfc-victim"
    duration = "4ms"
    warm-up = "1ms"
    [topology]
    kind = "dumbbell"
    hosts-per-side = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    bottleneck = { rate = "40Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "pools", size = "400KB" }
    queue = { kind = "dynamic-queues" }
    pause = { kind = "bfc" }
    [transport]
    kind = "newreno"
    initial-window = 1000
    receive-buffer = "100MB"
    send-buffer = "100MB"
    min-rto = "10ms"
    [capture]
    pcap = ["switch1:4"]
    [[traffic]]
    name = "f"
    kind = "flows"
    rows = [["0us", 0, 4, 100000000], ["0us", 1, 4, 100000000],
            ["0us", 2, 4, 100000000], ["0us", 3, 5, 100000000]]
"#;

/// Payload in Gb/s of the victim and of the host that all others send to.
fn goodputs(set: &[(&str, &str)]) -> (f64, f64) {
    let plan = plan(VICTIM, set);
    let (outcome, _) = simulate(&plan, 1);
    assert_eq!(outcome.audit.dropped_total().packets, 0, "{set:?}");
    let seconds = (outcome.simulated - plan.warm_up).as_s_f64();
    let of = |dst: u32| {
        let bytes: u64 =
            outcome.pairs.iter().filter(|(pair, _)| pair.1 == dst).map(|(_, bytes)| *bytes).sum();
        bytes as f64 * 8.0 / seconds / 1e9
    };
    (of(5), of(4))
}

/// A pause of the priority stops the victim with the others; a pause of flows does not.
#[test]
fn a_victim_is_not_stopped_with_others() {
    let bfc = goodputs(&[]);
    let pfc = goodputs(&[("switch.pause.kind", "pfc"), ("switch.queue.kind", "fifo")]);
    let one = goodputs(&[("switch.queue.queues", "2")]);
    println!("bfc {bfc:?}, pfc {pfc:?}, bfc with one queue {one:?}");
    let most = 10.0 * 1_460.0 / 1_500.0;
    assert!(bfc.0 > 0.98 * most && bfc.1 > 0.95 * most, "{bfc:?}");
    assert!(pfc.0 < 0.6 * most, "{pfc:?}");
    assert!(one.0 < 0.9 * most, "with one queue for all it is stopped, too: {one:?}");
}

/// Switches ask the three flows that wait to stop, and never the fourth, which with exact hosts
/// does not wait; and what waits is bounded: their hosts hold what the network does not.
#[test]
fn only_what_is_queued_is_paused() {
    let (outcome, records) = simulate(&exact(VICTIM, &[]), 1);
    let mut flows: Vec<PauseTarget> =
        records.pauses.iter().map(|pause| pause.frame.target).collect();
    flows.sort_unstable();
    flows.dedup();
    assert_eq!(flows.len(), 3, "{flows:?}");
    assert!(flows.iter().all(|target| matches!(target, PauseTarget::Flow(_))));
    // Thresholds of 15 KB for what crosses to the slow host, and what comes in a hop's round trip.
    assert!(outcome.queue_bytes_max < 60_000, "{}", outcome.queue_bytes_max);
}

/// When all has been delivered nobody is paused: what was stopped was let go, and all flows end.
#[test]
fn no_pause_is_for_ever() {
    let rows = r#"[["0us", 0, 4, 400000], ["0us", 1, 4, 400000],
                   ["0us", 2, 4, 400000], ["0us", 3, 5, 400000],
                   ["3ms", 0, 4, 1000], ["3ms", 1, 5, 1000]]"#;
    for set in [&[][..], &[("switch.queue.queues", "2")], &[("switch.pause.pause-time", "5us")]] {
        let set = [&[("traffic.f.rows", rows)][..], set].concat();
        let (outcome, records) = simulate(&exact(VICTIM, &set), 1);
        assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "{set:?}");
        let bfc = |name| outcome.counters.get("bfc", name);
        assert!(
            bfc("episodes") > 0 && bfc("episodes") == bfc("resume_frames"),
            "{:?}",
            outcome.counters
        );
        let late = records.flows.iter().filter(|flow| flow.start >= Time::from_ms(3));
        late.for_each(|flow| {
            assert!(flow.fct().unwrap() < flow.ideal + Time::from_us(3), "{flow:?}")
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the load: nothing is lost, and every pause is ended.
    #[test]
    fn no_load_makes_it_lose(
        seed in 0..1000u32,
        degree in 2..23u32,
        kb in 1..200u32,
        queues in 2..40u32,
        interval in 200..2_000u32,
    ) {
        let set = [
            ("seed", &seed.to_string()[..]),
            ("traffic.incast.degree", &degree.to_string()),
            ("traffic.incast.response", &format!("{kb}KB")),
            ("switch.queue.queues", &queues.to_string()),
            ("switch.pause.interval", &format!("{interval}ns")),
            ("duration", "700us"),
            ("switch.buffer.size", "4MB"),
        ];
        let (outcome, _) = simulate(&plan(INCAST, &set), 2);
        prop_assert_eq!(outcome.audit.dropped_total().packets, 0);
    }
}
