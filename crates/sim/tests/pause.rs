//! PFC in a whole network: nothing is lost, whatever the load, and the frames cross links,
//! partitions and NICs alike for any number of threads.

use crate::common::{assert_nothing_changes, plan, simulate};
use millpond_core::Time;
use proptest::prelude::*;

/// Bursts for one host from all others, on two priorities, in TLT's network made small.
const INCAST: &str = r#"
    name = "pause-incast"
    duration = "1500us"
    seed = 3
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 6
    host-link = { rate = "40Gbps", delay = "2us" }
    fabric-link = { rate = "40Gbps", delay = "3us" }
    [switch]
    buffer = { kind = "pools", size = "1500KB", lossless-priorities = 2 }
    queue = { kind = "strict-priority" }
    pause = { kind = "pfc" }
    [transport]
    kind = "newreno"
    initial-window = 100
    min-rto = "4ms"
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 23
    response = "60KB"
    period = "300us"
    request = "none"
    priority = 1
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.6
"#;

/// The same where packets take all paths and are captured.
const EVERYTHING: &[(&str, &str)] = &[
    ("switch.path.kind", "spray"),
    ("transport.dupack-threshold", "off"),
    ("capture.queues", "7us"),
    ("capture.pcap", "host3,leaf0:6"),
];

const RELEASED: &[(&str, &str)] = &[
    ("switch.pause.pause-time", "5us"),
    ("switch.pause.recheck", "2us"),
    ("switch.pause.resume", "false"),
    ("switch.pause.frames", "each-arrival"),
];

#[test]
fn pfc_loses_nothing_and_is_deterministic() {
    for set in [&[][..], RELEASED, EVERYTHING] {
        let (outcome, records) = simulate(&plan(INCAST, set), 1);
        let dropped = outcome.audit.dropped_total().packets;
        assert_eq!((dropped, outcome.hosts.retransmitted), (0, 0), "{set:?}");
        let pfc = |name: &str| outcome.counters.get("pfc", name);
        assert!(pfc("episodes") > 100 && pfc("paused_us") > 500, "{:?}", outcome.counters);
        assert!(records.flows.iter().filter(|flow| flow.finish.is_some()).count() > 60);
        assert_nothing_changes(INCAST, set, &[2, 4]);
    }
}

/// The losses that pauses prevent above happen.
#[test]
fn without_pauses_the_same_bursts_lose_packets() {
    let (outcome, _) = simulate(&plan(INCAST, &[("switch.pause.kind", "none")]), 2);
    assert!(outcome.audit.dropped_total().packets > 500, "{:?}", outcome.audit.dropped_total());
    assert!(outcome.pause_frames == 0 && !outcome.counters.has("pfc"), "{:?}", outcome.counters);
    // Thresholds so high that the pool fills: then headroom decides.
    let alpha = ("switch.pause.alpha", "8");
    let (outcome, _) = simulate(&plan(INCAST, &[alpha]), 2);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    let scant = [alpha, ("switch.buffer.headroom", "3KB"), ("switch.buffer.size", "600KB")];
    let (outcome, _) = simulate(&plan(INCAST, &scant), 2);
    assert!(outcome.audit.dropped_total().packets > 0, "headroom is needed");
}

/// Frames are as the two ways to send them say, and both are counted either way.
#[test]
fn episodes_and_arrivals_are_counted_apart() {
    let counts = |set: &[(&str, &str)]| {
        let (outcome, _) = simulate(&plan(INCAST, set), 2);
        let named = ["episodes", "arrivals_while_congested", "resume_frames"];
        (outcome.pause_frames, named.map(|name| outcome.counters.get("pfc", name)))
    };
    let (frames, [episodes, arrivals, resumes]) = counts(&[]);
    assert!(arrivals > 2 * episodes, "{arrivals} {episodes}");
    assert!(frames < episodes + episodes / 2, "{frames} {episodes}");
    assert!(resumes > 0 && resumes <= episodes);
    let (frames, [_, arrivals, _]) = counts(&[("switch.pause.frames", "each-arrival")]);
    assert!(frames >= arrivals && arrivals > 0, "{frames} {arrivals}");
}

/// A NIC that is paused stops that priority and no other.
#[test]
fn a_paused_nic_stops_one_priority() {
    // Three hosts send to a fourth, whose link is a quarter of theirs; at its priority only what it
    // takes arrives, while a probe of another priority crosses the same NICs.
    let text = r#"
        name = "pause-nic"
        duration = "1ms"
        [topology]
        kind = "single-switch"
        hosts = 4
        host-link = { rate = "40Gbps", delay = "1us" }
        [host]
        nic = { per-flow-limit = "off" }
        [switch]
        buffer = { kind = "pools", size = "400KB", lossless-priorities = 2 }
        queue = { kind = "strict-priority" }
        pause = { kind = "pfc" }
        [transport]
        kind = "newreno"
        initial-window = 400
        min-rto = "10ms"
        [[traffic]]
        name = "bulk"
        kind = "incast"
        degree = 3
        response = "1MB"
        count = 1
        receiver = 0
        request = "none"
        [[traffic]]
        name = "probe"
        kind = "probe"
        pairs = "random"
        period = "20us"
        priority = 5
    "#;
    let (outcome, records) = simulate(&plan(text, &[]), 1);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    assert!(outcome.counters.get("pfc", "paused_us") > 100, "{:?}", outcome.counters);
    // A probe waits for one packet in transmission at each hop, and never for the bulk that is
    // paused.
    let slowest = records.rtts.iter().max().expect("probes were answered");
    assert!(
        records.rtts.len() > 50 && *slowest < Time::from_us(8),
        "{slowest:?} of {}",
        records.rtts.len()
    );
}

/// A PAUSE that is sent while its link is down is lost like a packet, and the run is conserved all
/// the same.
#[test]
fn frames_on_a_failing_link_are_lost() {
    let text = format!(
        "{INCAST}\n[[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"400us\"\nuntil = \
         \"700us\"\n[[failure]]\nlink = [\"host3\", \"leaf0\"]\nat = \"500us\"\nuntil = \
         \"520us\"\n"
    );
    let (outcome, _) = simulate(&plan(&text, &[]), 1);
    assert!(outcome.counters.get("pfc", "episodes") > 50);
    assert_nothing_changes(&text, &[], &[4]);
}

/// A NIC behind a host's limit is paused like any other.
#[test]
fn a_limited_host_is_paused_as_well() {
    let text = format!(
        "{INCAST}\n[[limit]]\nname = \"tenant\"\nkind = \"nrm\"\nrate = \"30Gbps\"\ndirection = \
         \"egress\"\nhosts = \"0..11\"\ntraffic = [\"incast\"]\n"
    );
    let (outcome, _) = simulate(&plan(&text, &[]), 1);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    assert!(
        outcome.counters.get("pfc", "episodes") > 20
            && outcome.limits.values().any(|limit| limit.packets > 100)
    );
    assert_nothing_changes(&text, &[], &[3]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Oracle: at any load, with any seed, nothing is dropped and every retransmission would be a
    /// timer's.
    #[test]
    fn no_load_makes_pfc_lose(
        seed in any::<u32>(),
        degree in 2..24u32,
        response in 2..200u32,
        load in 1..9u32,
        delay in 0..8u32,
        priority in 0..8u32,
        released in any::<bool>(),
        overhead in prop::sample::select(vec![0, 38]),
    ) {
        let seed = seed.to_string();
        let (degree, response, load) =
            (degree.to_string(), format!("{response}KB"), format!("0.{load}"));
        let (delay, priority, overhead) =
            (format!("{delay}us"), priority.to_string(), overhead.to_string());
        let set = [
            ("seed", seed.as_str()),
            ("duration", "700us"),
            ("topology.fabric-link.delay", &delay),
            ("host.stack-delay", &delay),
            ("host.frame-overhead", &overhead),
            ("traffic.incast.degree", &degree),
            ("traffic.incast.response", &response),
            ("traffic.incast.priority", &priority),
            ("traffic.background.load", &load),
            ("switch.buffer.size", "3MB"),
        ];
        let set: Vec<_> =
            set.iter().chain(if released { RELEASED } else { &[] }).copied().collect();
        let (outcome, _) = simulate(&plan(INCAST, &set), 1);
        prop_assert_eq!(outcome.audit.dropped_total().packets, 0);
        prop_assert_eq!(outcome.hosts.retransmitted, 0);
    }
}

/// All ports of a switch with three hosts, two of which send to the third: every frame that the
/// switch sends is in the capture of one of its ports and arrives at that port's host one delay
/// later; a full pause of 65,535 quanta, and 0 to go on.
#[test]
fn captures_show_every_frame_at_both_ends_of_its_link() {
    let text = r#"
        duration = "1ms"
        [topology]
        kind = "single-switch"
        hosts = 3
        host-link = { rate = "10Gbps", delay = "2us" }
        [switch]
        buffer = { kind = "pools", size = "300KB" }
        pause = { kind = "pfc" }
        [transport]
        kind = "newreno"
        initial-window = 400
        [capture]
        pcap = ["switch0:0", "switch0:1", "switch0:2", "host0", "host1", "host2"]
        [[traffic]]
        kind = "flows"
        rows = [["0us", 0, 2, 500000], ["0us", 1, 2, 500000]]
    "#;
    let (outcome, records) = simulate(&plan(text, &[]), 1);
    let at_switch: Vec<_> = records.pauses.iter().filter(|pause| pause.outgoing).collect();
    // 65,535 times 512 bits at 10 Gb/s.
    let lengths = [Time::ZERO, Time::from_ps(65_535 * 51_200)];
    let stops = at_switch.iter().filter(|pause| pause.frame.duration > Time::ZERO).count() as u64;
    assert!(
        stops > 1
            && at_switch
                .iter()
                .all(|pause| lengths.contains(&pause.frame.duration) && pause.tap < 3)
    );
    assert_eq!(
        (stops, at_switch.len() as u64 - stops),
        (outcome.pause_frames, outcome.counters.get("pfc", "resume_frames"))
    );
    for sent in at_switch {
        let arrives = |other: &&millpond_results::PauseRecord| {
            !other.outgoing
                && other.tap == sent.tap + 3
                && other.at == sent.at + Time::from_us(2)
                && other.frame == sent.frame
        };
        assert_eq!(records.pauses.iter().filter(arrives).count(), 1, "{sent:?}");
    }
}
