//! Hosts' cores (`host.receive-cpu`) against arithmetic: a core that is never idle passes one over
//! its cost, one that is idle adds its own delay, and its time is what it was asked for.

use crate::common::{self, exact as plan, fcts, simulate};
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::Cause;
use millpond_core::host::CoreCounts;
use millpond_core::{HostId, Time};
use millpond_scenario::plan::Plan;
use millpond_sim::Outcome;

/// One host sends to another.
const PAIR: &str = r#"
    name = "pair"
    duration = "60ms"
    warm-up = "20ms"
    [topology]
    kind = "single-switch"
    hosts = 2
    host-link = { rate = "10Gbps", delay = "1us" }
    [transport]
    kind = "cubic"
    min-rto = "5ms"
    receive-buffer = "600KB"
    [[traffic]]
    name = "elephant"
    kind = "flows"
    rows = [["0us", 0, 1, 1000000000]]
"#;

/// Two senders spray flowcells over two paths to two receivers, so that segments meet out of order;
/// it ends.
const SPRAYED: &str = r#"
    name = "sprayed"
    duration = "200ms"
    [topology]
    kind = "leaf-spine"
    leaves = 2
    spines = 2
    hosts-per-leaf = 2
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [host]
    receive-offload = { kind = "stock-gro" }
    receive-cpu = { ring = 64 }
    [switch]
    buffer = { kind = "shared", size = "9MB", alpha = 1.0 }
    path = { kind = "labels" }
    [edge]
    load-balancing = { kind = "presto", order = "random" }
    [transport]
    kind = "cubic"
    min-rto = "5ms"
    dupack-threshold = 100
    [[traffic]]
    name = "elephant"
    kind = "flows"
    rows = [["0us", 0, 2, 20000000], ["0us", 1, 3, 20000000]]
"#;

const PER_PACKET: (&str, &str) = ("host.receive-cpu.per-packet", "1us");
const PER_BYTE: (&str, &str) = ("host.receive-cpu.per-byte", "300ps");
const PER_SEGMENT: (&str, &str) = ("host.receive-cpu.per-segment", "2us");
const PER_OUT_OF_ORDER: (&str, &str) = ("host.receive-cpu.per-out-of-order", "3us");
const COSTS: [(&str, &str); 4] = [PER_PACKET, PER_BYTE, PER_SEGMENT, PER_OUT_OF_ORDER];

fn of(outcome: &Outcome, host: HostId) -> CoreCounts {
    outcome.cores.iter().find(|(id, _)| *id == host).expect("hosts have cores").1
}

fn ring_drops(outcome: &Outcome) -> u64 {
    outcome.audit.dropped[DropReason::ReceiveRing as usize].packets
}

/// Without offload a full packet costs 1 us, 1460 times 300 ps, and 2 us: 3.438 us, so 3.397 Gb/s
/// of payload go up.
#[test]
fn a_core_that_is_never_idle_passes_one_over_its_cost() {
    let plan = plan(PAIR, &COSTS);
    let (outcome, _) = simulate(&plan, 1);
    let core = of(&outcome, 1);
    let measured = outcome.simulated - plan.warm_up;
    assert_eq!(core.busy, measured, "the window keeps the ring from running empty");
    let gbps = outcome.hosts.measured_bytes as f64 * 8e-9 / measured.as_s_f64();
    println!("{gbps:.4} {core:?}");
    // Polls that begin in the measured time, and not those that end in it: one of 625.
    assert!((gbps / (1460.0 * 8.0 / 3438.0) - 1.0).abs() < 0.005, "{gbps}");
    assert_eq!(core.packets, 64 * core.polls, "what waits for a busy core fills its polls");
    assert_eq!(core.segments, core.packets);
    // With offload a segment's cost is shared by its packets: 64 of a poll go up as 44 and 20.
    let merged =
        common::plan(PAIR, &[&COSTS[..], &[("host.receive-offload.kind", "stock-gro")]].concat());
    let (outcome, _) = simulate(&merged, 1);
    let core = of(&outcome, 1);
    let gbps = outcome.hosts.measured_bytes as f64 * 8e-9 / measured.as_s_f64();
    let cost = 1438.0 + 2000.0 * core.segments as f64 / core.packets as f64;
    println!("{gbps:.4} {core:?}");
    assert_eq!(core.busy, measured);
    assert!((gbps / (1460.0 * 8.0 / cost) - 1.0).abs() < 0.005, "{gbps}");
    assert!(core.segments * 20 < core.packets, "{core:?}");
}

/// A core's load where it keeps up is what its packets cost, and nothing is lost for it.
#[test]
fn a_core_that_keeps_up_is_busy_for_what_comes() {
    let plan =
        plan(PAIR, &[("host.receive-offload.kind", "stock-gro"), ("host.receive-cpu.ring", "512")]);
    let free = common::plan(PAIR, &[("host.receive-offload.kind", "stock-gro")]);
    let (outcome, _) = simulate(&plan, 1);
    let core = of(&outcome, 1);
    let packets = simulate(&free, 1).0.hosts.measured_bytes / 1460;
    assert!(core.packets.abs_diff(packets) < 100, "{} {packets}", core.packets);
    assert_eq!(ring_drops(&outcome), 0);
    let share = core.busy.as_s_f64() / (outcome.simulated - plan.warm_up).as_s_f64();
    assert!((0.6..0.75).contains(&share), "{share}");
    assert!(simulate(&free, 1).0.cores.is_empty());
}

/// A packet that is alone waits for the work on itself, to the picosecond; work of no length
/// changes nothing.
#[test]
fn an_idle_core_adds_its_own_delay() {
    let text = PAIR
        .replace("1000000000]]", "1000]]")
        .replace("duration = \"60ms\"\n    warm-up = \"20ms\"", "duration = \"1ms\"");
    let fct = |sets: &[(&str, &str)]| fcts(&simulate(&plan(&text, sets), 1).1)[0];
    let offload = ("host.receive-offload.kind", "stock-gro");
    let free = fct(&[offload]);
    let zero = COSTS.map(|(key, _)| (key, "0us"));
    assert_eq!(fct(&[&zero[..], &[offload]].concat()), free);
    // The data, and before it a SYN and its answer, which are packets and segments without payload.
    let own = Time::from_ns(1_000 + 300 + 2_000) + Time::from_ns(1_000 + 2_000) * 2;
    assert_eq!(fct(&[&COSTS[..], &[offload]].concat()), free + own);
    // Hosts that merge nothing poll as well once they have a core.
    assert_eq!(fct(&COSTS), free + own);
}

/// Whatever it was asked for, the core's time is the sum of its costs: of polls, of timers, and of
/// order; and what the ring has no room for is dropped, reported, and sent again.
#[test]
fn a_cores_time_is_the_sum_of_its_costs() {
    for offload in ["none", "stock-gro", "presto-gro"] {
        let sets = [&COSTS[..], &[("host.receive-offload.kind", offload)]].concat();
        let (outcome, records) = simulate(&plan(SPRAYED, &sets), 2);
        assert_eq!(fcts(&records).len(), 2);
        let (mut drops, mut late) = (0, 0);
        for (host, core) in &outcome.cores {
            println!("{offload} {host} {core:?}");
            let order = Time::from_us(3) * core.out_of_order;
            let sum = Time::from_us(1) * core.packets + Time::from_ps(300) * core.bytes;
            assert_eq!(core.busy, sum + Time::from_us(2) * core.segments + order, "{offload}");
            drops += core.ring_drops;
            late += core.out_of_order;
        }
        assert_eq!(outcome.cores.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(drops, ring_drops(&outcome));
        assert!(drops > 0, "{offload}: a ring of 64 is too small for the beginning");
        assert_eq!(late, outcome.hosts.out_of_order, "{offload}");
        let (up, packets) =
            outcome.cores.iter().fold((0, 0), |(s, p), (_, c)| (s + c.segments, p + c.packets));
        let merged = |name: &str| outcome.counters.get(offload, name);
        let segments = Cause::ALL
            .iter()
            .map(|cause| merged(&format!("segments-{}", cause.name())))
            .sum::<u64>();
        let went_up =
            if offload == "none" { (packets, packets) } else { (segments, merged("packets")) };
        assert_eq!(went_up, (up, packets), "what was taken went up");
    }
}

/// Twelve hosts of three leaves send forty short flows each to one of a fourth.
fn fan(cores: u32) -> Plan {
    let rows: Vec<String> =
        (0..480).map(|n| format!("[\"{}us\", {}, 0, 60000]", 500 * (n / 12), 4 + n % 12)).collect();
    let text = format!(
        "name = \"fan\"\nduration = \"200ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = \
         4\nspines = 2\nhosts-per-leaf = 4\nhost-link = {{ rate = \"10Gbps\", delay = \"1us\" \
         }}\nfabric-link = {{ rate = \"20Gbps\", delay = \"1us\" }}\n[host]\nreceive-offload = {{ \
         kind = \"stock-gro\" }}\n[transport]\nkind = \"dctcp\"\n[switch]\nmarking = {{ kind = \
         \"ecn\" }}\n[[traffic]]\nname = \"fan\"\nkind = \"flows\"\nrows = [{}]\n",
        rows.join(", ")
    );
    let cores = cores.to_string();
    common::plan(
        &text,
        &[
            &COSTS[..],
            &[("host.receive-cpu.cores", cores.as_str()), ("host.receive-cpu.ring", "4096")],
        ]
        .concat(),
    )
}

/// Flows are spread over a host's cores by hash, and each core pays for its own. Four cores can do
/// in their time what one cannot, and how many threads simulate them changes nothing.
#[test]
fn four_cores_share_the_work() {
    let of_first = |outcome: &Outcome| -> Vec<CoreCounts> {
        outcome.cores.iter().filter(|(host, _)| *host == 0).map(|(_, core)| *core).collect()
    };
    let (outcome, records) = simulate(&fan(4), 1);
    let cores = of_first(&outcome);
    assert_eq!((cores.len(), outcome.cores.len()), (4, 64));
    let whole: u64 = cores.iter().map(|core| core.bytes).sum();
    assert!(whole >= 480 * 60_000, "{whole}");
    let busy = cores.iter().fold(Time::ZERO, |sum, core| sum + core.busy);
    for core in &cores {
        println!("{core:?}");
        let segments = Time::from_us(2) * core.segments + Time::from_us(3) * core.out_of_order;
        assert_eq!(
            core.busy,
            Time::from_us(1) * core.packets + Time::from_ps(300) * core.bytes + segments
        );
        for (its, all) in [(core.bytes, whole), (core.busy.as_ps(), busy.as_ps())] {
            let share = its as f64 / all as f64;
            assert!((0.2..0.3).contains(&share), "{share} of the work");
        }
    }
    let counted = |name: &str| outcome.counters.get("receive-cpu", name);
    assert_eq!(
        (counted("receiving-hosts"), counted("packets")),
        (1, cores.iter().map(|core| core.packets).sum())
    );
    for threads in [2, 3] {
        let (again, its) = simulate(&fan(4), threads);
        assert_eq!(
            (again.cores, its.flows),
            (outcome.cores.clone(), records.flows.clone()),
            "{threads} threads"
        );
    }
    let (alone, slow) = simulate(&fan(1), 1);
    let last = |records: &common::Records| {
        records.flows.iter().map(|flow| flow.finish.expect("it is over")).max().unwrap()
    };
    let (four, one, work) = (last(&records), last(&slow), of_first(&alone)[0].busy);
    println!("{four:?} with four, {one:?} with one, which is busy for {work:?}");
    assert!(
        work * 10 > one * 9 && one * 4 > four * 5,
        "{four:?} with four, {one:?} with one, busy for {work:?}"
    );
}

/// Segments that Presto's offload gives up by its timer are paid for, too, though no packet calls
/// it.
#[test]
fn a_timer_costs_what_a_poll_does() {
    let sets = [
        ("host.receive-offload.kind", "presto-gro"),
        ("host.receive-offload.min", "1us"),
        ("host.receive-offload.initial", "1us"),
        ("host.receive-offload.max", "2us"),
        ("host.receive-offload.coalescing", "50us"),
        ("host.receive-cpu.ring", "512"),
    ];
    let (outcome, _) = simulate(&plan(SPRAYED, &[&COSTS[..], &sets].concat()), 1);
    assert!(outcome.counters.get("presto-gro", "segments-timeout") > 10, "{:?}", outcome.counters);
    for (_, core) in &outcome.cores {
        let segments = Time::from_us(2) * core.segments + Time::from_us(3) * core.out_of_order;
        assert_eq!(
            core.busy,
            Time::from_us(1) * core.packets + Time::from_ps(300) * core.bytes + segments
        );
    }
}
