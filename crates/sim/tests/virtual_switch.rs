//! Virtual switches and slow applications: what is lost where, and that with headroom by the
//! formula, or with credits, nothing is.

use crate::common::{Records, assert_nothing_changes, exact, plan, simulate};
use millpond_core::counters::DropReason;
use millpond_sim::Outcome;
use proptest::prelude::*;

/// Two applications of host 0, of which one is slow; seven hosts send to it, one to the other.
const PAIR: &str = r#"
    duration = "20ms"
    [topology]
    kind = "single-switch"
    hosts = 9
    host-link = { rate = "100Gbps", delay = "1us" }
    [switch]
    buffer = { kind = "shared", size = "16MB", alpha = 1.0 }
    marking = { kind = "ecn", threshold-bytes = "200KB" }
    queue = { kind = "strict-priority" }
    [transport]
    kind = "dctcp"
    min-rto = "1ms"
    initial-rto = "1ms"
    handshake = false
    [edge]
    virtual-switch = { kind = "lossy" }
    [[application]]
    name = "fast"
    traffic = ["victim"]
    hosts = 0
    mean = "1us"
    [[application]]
    name = "slow"
    traffic = ["neighbour"]
    hosts = 0
    work = "1200ns"
    [[traffic]]
    name = "victim"
    kind = "rpc"
    pairs = ["1-0"]
    connections = 10
    request = 1000
    response = 100
    [[traffic]]
    name = "neighbour"
    kind = "incast"
    receiver = 0
    degree = 7
    response = "1MB"
    period = "6ms"
"#;

fn run(text: &str, set: &[(&str, &str)]) -> (Outcome, Records) {
    simulate(&plan(text, set), 2)
}

/// Packets dropped at hosts.
fn lost(outcome: &Outcome) -> [u64; 2] {
    [DropReason::ReceiveRing, DropReason::VirtualSwitch]
        .map(|reason| outcome.audit.dropped[reason as usize].packets)
}

const SWITCH: &str = "edge.virtual-switch.kind";
const MEMORY: (&str, &str) = ("edge.virtual-switch.memory", "1MB");

#[test]
fn each_kind_drops_in_its_place_and_backdraft_nowhere() {
    let drops = |set: &[(&str, &str)]| lost(&run(PAIR, set).0);
    let [ring, switch] = drops(&[(SWITCH, "lossy")]);
    assert!(ring == 0 && switch > 500, "the application's ring: {ring} {switch}");
    let [ring, switch] = drops(&[(SWITCH, "backpressure")]);
    assert!(ring > 500 && switch == 0, "the NIC's ring: {ring} {switch}");
    let [ring, switch] = drops(&[(SWITCH, "flow-queues"), MEMORY]);
    assert!(ring > 500 && switch == 0, "the NIC's ring: {ring} {switch}");
    let (outcome, _) = run(PAIR, &[(SWITCH, "backdraft"), MEMORY]);
    assert_eq!((lost(&outcome), outcome.audit.dropped_total().packets), ([0, 0], 0));
    assert_eq!((outcome.hosts.retransmitted, outcome.hosts.out_of_order), (0, 0));
    assert!(outcome.counters.get("backdraft", "pauses") > 0);
    // The live oracle: without headroom, and a small ring, the same run loses packets.
    let without = [
        (SWITCH, "backdraft"),
        MEMORY,
        ("edge.virtual-switch.headroom", "0"),
        ("edge.virtual-switch.ring", "64"),
    ];
    assert!(drops(&without)[0] > 0, "headroom was not needed");
}

/// With credits nothing is lost, and all that comes was granted. Grants beyond the memory are what
/// makes the same run lose packets.
#[test]
fn credits_drop_nothing_within_the_memory() {
    let (outcome, records) = run(PAIR, &[(SWITCH, "credits"), MEMORY]);
    assert_eq!((lost(&outcome), outcome.audit.dropped_total().packets), ([0, 0], 0));
    assert_eq!(
        (outcome.hosts.retransmitted, outcome.hosts.timeouts),
        (0, 0),
        "{:?}",
        outcome.hosts
    );
    let count = |name: &str| outcome.counters.get("credits", name);
    assert!(
        count("asks") > 0 && count("grants") > 0 && count("held-us") > 0,
        "{:?}",
        outcome.counters
    );
    assert_eq!((count("late"), count("stops")), (0, 0));
    assert!(count("peak-bytes") <= 1_000_000);
    assert!(records.flows.iter().any(|flow| flow.class == 1 && flow.finish.is_some()));
    let beyond = "edge.virtual-switch.overcommit";
    let set = [(SWITCH, "credits"), MEMORY, (beyond, "100"), ("edge.virtual-switch.ring", "64")];
    assert!(lost(&run(PAIR, &set).0)[0] > 0, "the bound was not needed");
}

/// Reported rates keep queues short: fewer packets are lost than where no rate is reported.
#[test]
fn rates_follow_how_long_packets_wait() {
    let (outcome, _) = run(PAIR, &[(SWITCH, "picnic")]);
    let count = |name: &str| outcome.counters.get("picnic", name);
    assert!(count("rates") > 0 && count("held-us") > 0, "{:?}", outcome.counters);
    let untold = run(PAIR, &[(SWITCH, "picnic"), ("edge.virtual-switch.target", "1s")]).0;
    assert_eq!(untold.counters.get("picnic", "rates"), 0);
    assert!(
        lost(&untold)[1] > 0 && 2 * lost(&outcome)[1] < lost(&untold)[1],
        "{:?} {:?}",
        lost(&outcome),
        lost(&untold)
    );
}

/// A sender without credit asks and waits for the answer: a message takes a round trip more. Four
/// links are 4 us; what is asked and answered, and the core's two rounds for it, are less than half
/// a one.
#[test]
fn credits_cost_a_round_trip() {
    let text = PAIR.replace("degree = 7", "degree = 1").replace("period = \"6ms\"", "count = 1");
    let time = |kind: &str| {
        let set = [
            (SWITCH, kind),
            ("traffic.victim.stop", "1ns"),
            ("traffic.neighbour.response", "1000"),
        ];
        let (_, records) = simulate(&exact(&text, &set), 1);
        let flow = records.flows.iter().find(|flow| flow.class == 1).and_then(|flow| flow.fct());
        flow.expect("it is delivered").as_us_f64()
    };
    let more = time("credits") - time("lossy");
    assert!((4.0..4.5).contains(&more), "{more} us");
    assert!((time("picnic") - time("lossy")).abs() < 0.001, "nobody asks before there is a rate");
}

/// A neighbour that is slow costs the other application's requests little: their 99th percentile is
/// within twice that of a host where nobody is slow.
#[test]
fn a_slow_neighbour_is_kept_apart() {
    let p99 = |set: &[(&str, &str)]| {
        let (_, records) = run(PAIR, set);
        let calls = records.flows.iter().filter(|flow| flow.class == 0);
        let mut times: Vec<u64> = calls.filter_map(|flow| Some(flow.fct()?.as_ps())).collect();
        times.sort_unstable();
        (times.len(), times[times.len() * 99 / 100])
    };
    let (alone, quick) = p99(&[(SWITCH, "lossy"), ("traffic.neighbour.response", "1")]);
    let (kept, with) = p99(&[(SWITCH, "backdraft"), MEMORY]);
    assert!(
        with <= 2 * quick && kept * 10 >= alone * 9,
        "{with} ps of {kept}, {quick} ps of {alone} alone"
    );
    let (_, held_up) = p99(&[(SWITCH, "flow-queues"), MEMORY]);
    assert!(held_up > 5 * quick, "memory that is exhausted stops the ring for all: {held_up} ps");
}

/// Two senders of one slow application get the same, whoever begins.
#[test]
fn two_senders_share_a_slow_application() {
    let text = PAIR.replace("degree = 7", "degree = 2").replace("period = \"6ms\"", "count = 1");
    for kind in ["flow-queues", "backdraft", "credits", "picnic"] {
        let memory = if kind == "picnic" { ("edge.virtual-switch.queue", "1024") } else { MEMORY };
        let set = [(SWITCH, kind), ("traffic.victim.stop", "1ns"), memory];
        let (_, records) = run(&text, &set);
        let neighbours: Vec<_> = records.flows.iter().filter(|flow| flow.class == 1).collect();
        let times: Vec<u64> =
            neighbours.iter().map(|flow| flow.fct().expect("complete").as_ps()).collect();
        assert!(
            times.len() == 2 && times[0].abs_diff(times[1]) * 20 <= times[0],
            "{kind}: {times:?}"
        );
    }
}

/// The packets that all wait for are served at the core's rate: 685 of 1.2 us, and the way.
#[test]
fn a_service_time_is_the_throughput() {
    let text = PAIR.replace("degree = 7", "degree = 1").replace("period = \"6ms\"", "count = 1");
    for kind in ["lossy", "backpressure", "flow-queues", "backdraft", "credits", "picnic"] {
        let set =
            [(SWITCH, kind), ("traffic.victim.stop", "1ns"), ("application.slow.ring", "4096")];
        let (outcome, records) = run(&text, &set);
        assert_eq!(lost(&outcome), [0, 0]);
        let neighbour =
            records.flows.iter().find(|flow| flow.class == 1).and_then(|flow| flow.fct());
        let time = neighbour.expect("it is delivered").as_us_f64();
        assert!((822.0..835.0).contains(&time), "{kind}: {time} us");
        let victims = records.flows.iter().filter(|flow| flow.class == 0).count() as u64;
        assert_eq!(outcome.counters.get(kind, "served-packets") - victims, 685);
    }
}

/// Doorbells make what a round looks at independent of how many flows there are.
#[test]
fn polls_follow_flows_only_without_doorbells() {
    let polls = |doorbells: &str, degree: &str| {
        let set = [
            (SWITCH, "flow-queues"),
            ("edge.virtual-switch.doorbells", doorbells),
            ("traffic.neighbour.flows-per-server", degree),
            ("traffic.neighbour.response", "20KB"),
        ];
        run(PAIR, &set).0.counters.get("flow-queues", "polls-per-1000-packets")
    };
    let (few, many) = (polls("false", "1"), polls("false", "20"));
    assert!(2 * many > 3 * few, "{few} {many}");
    let (few, many) = (polls("true", "1"), polls("true", "20"));
    assert!(many <= few + few / 5, "{few} {many}");
}

/// The overlays of the authors' release say each thing once, and have no headroom: the first says
/// no more than pauses, the second takes back what it says.
#[test]
fn the_releases_overlays_speak_their_own_way() {
    let words = |overlay: &str| {
        let (outcome, records) =
            run(PAIR, &[(SWITCH, "backdraft"), MEMORY, ("edge.virtual-switch.overlay", overlay)]);
        let served =
            records.flows.iter().filter(|flow| flow.class == 1 && flow.finish.is_some()).count();
        (
            ["pauses", "refreshes", "resumes"].map(|word| outcome.counters.get("backdraft", word)),
            served,
        )
    };
    let ([pauses, refreshes, resumes], served) = words("episode");
    assert!(pauses > 0 && refreshes == 0 && pauses - resumes <= 1, "{pauses} {resumes}");
    assert!(served >= 14, "whoever was asked to pause is asked to go on: {served}");
    // A queue of a flow is long at 7/8 of 8/7 times flow-cap.
    let cap = ("edge.virtual-switch.flow-cap", "56");
    let (outcome, _) =
        run(PAIR, &[(SWITCH, "backdraft"), cap, ("edge.virtual-switch.overlay", "timed")]);
    let [pauses, refreshes, resumes] =
        ["pauses", "refreshes", "resumes"].map(|word| outcome.counters.get("backdraft", word));
    assert!(pauses > 0 && (refreshes, resumes) == (0, 0), "{pauses} {refreshes} {resumes}");
    assert!(outcome.counters.get("backdraft", "held-us") > 0);
}

/// Twelve messages of 200 KB to an application that needs 2 ms for them, with the paper's RESENDs.
fn messages(set: &[(&str, &str)]) -> (Outcome, Records) {
    let text = r#"
        duration = "1s"
        until = "flows-complete"
        [topology]
        kind = "single-switch"
        hosts = 5
        host-link = { rate = "100Gbps", delay = "1us" }
        [switch]
        buffer = { kind = "shared", size = "16MB", alpha = 1.0 }
        queue = { kind = "strict-priority" }
        [transport]
        kind = "homa"
        [edge]
        virtual-switch = { kind = "lossy" }
        [[application]]
        hosts = 0
        work = "1200ns"
        [[traffic]]
        name = "messages"
        kind = "incast"
        receiver = 0
        degree = 4
        flows-per-server = 3
        response = "200KB"
        count = 1
    "#;
    run(text, set)
}

/// A pause of a flow holds its message: nothing is lost at the host, and nothing sent twice.
#[test]
fn a_pause_holds_a_message() {
    let (outcome, _) = messages(&[]);
    assert!(lost(&outcome)[1] > 0 && outcome.counters.get("homa", "resends") > 0);
    let set = [(SWITCH, "backdraft"), ("edge.virtual-switch.memory", "100KB")];
    let (outcome, records) = messages(&set);
    assert_eq!(
        (lost(&outcome), outcome.hosts.retransmitted, outcome.hosts.timeouts),
        ([0, 0], 0, 0)
    );
    assert!(
        outcome.counters.get("backdraft", "pauses") > 0
            && outcome.counters.get("backdraft", "held-us") > 0
    );
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()) && records.flows.len() == 12);
    // A receiver that asks for what is held hears that its sender is busy.
    let soon = [set[0], set[1], ("transport.homa-resend-interval", "50us")];
    let (outcome, records) = messages(&soon);
    assert!(
        outcome.counters.get("homa", "busy") > 0
            && records.flows.iter().all(|flow| flow.finish.is_some())
    );
    assert_eq!(lost(&outcome), [0, 0]);
}

/// Threads, partitions and kinds of ports change nothing of it.
#[test]
fn nothing_depends_on_partitions() {
    let text = PAIR
        .replace(
            "kind = \"single-switch\"\n    hosts = 9",
            "kind = \"leaf-spine\"\n    leaves = 3\n    spines = 2\n    hosts-per-leaf = 3",
        )
        .replace("mean = \"1us\"", "mean = \"1us\"\n    stall-every = \"300us\"")
        .replace("duration = \"20ms\"", "duration = \"7ms\"");
    for kind in ["lossy", "backpressure", "flow-queues"] {
        assert_nothing_changes(&text, &[(SWITCH, kind)], &[2]);
    }
    let lost = ("edge.virtual-switch.control-loss", "0.2");
    assert_nothing_changes(&text, &[(SWITCH, "backdraft"), MEMORY, lost], &[2, 4]);
    assert_nothing_changes(&text, &[(SWITCH, "credits"), MEMORY, lost], &[2, 4]);
    assert_nothing_changes(&text, &[(SWITCH, "picnic"), lost], &[2]);
    for overlay in ["timed", "episode"] {
        let cap = ("edge.virtual-switch.flow-cap", "56");
        assert_nothing_changes(
            &text,
            &[(SWITCH, "backdraft"), MEMORY, cap, ("edge.virtual-switch.overlay", overlay)],
            &[2],
        );
    }
}

/// A network, a slow application and a network that loses what switches say.
#[derive(Clone, Debug)]
struct Case {
    seed: u32,
    senders: u32,
    gbps: u32,
    delay_us: u32,
    work_ns: u32,
    mean_ns: u32,
    stall_us: u32,
    size_kb: u32,
    loss: f64,
    flows: u32,
    memory_kb: u32,
    is_homa: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let network = (any::<u32>(), 1..8u32, prop::sample::select(vec![10u32, 25, 40, 100]), 0..4u32);
    let application = (0..4_000u32, 0..3_000u32, 0..400u32);
    let rest = (
        10..400u32,
        0.0..0.3f64,
        1..6u32,
        prop::sample::select(vec![100u32, 400, 1_000]),
        any::<bool>(),
    );
    (network, application, rest).prop_map(
        |(
            (seed, senders, gbps, delay_us),
            (work_ns, mean_ns, stall_us),
            (size_kb, loss, flows, memory_kb, is_homa),
        )| Case {
            seed,
            senders,
            gbps,
            delay_us,
            work_ns,
            mean_ns,
            stall_us,
            size_kb,
            loss,
            flows,
            memory_kb,
            is_homa,
        },
    )
}

impl Case {
    /// Headroom is by the formula: two losses in a row; the way there and back, a few rounds of
    /// both switches and what their packets wait behind; in the fabric what the one port holds. The
    /// run goes on after the last flow: what was asked for again without need may come later.
    fn text(&self) -> String {
        let Case { senders, loss, memory_kb, .. } = self;
        let feedback = 4 * self.delay_us + 20;
        let switch = format!(
            r#"{{ kind = "backdraft", memory = "{memory_kb}KB", feedback = "{feedback}us",
                ttl = "{}us", headroom-senders = {senders}, headroom-fabric = "400KB", losses = 2,
                control-loss = {loss}, control-loss-run = 2 }}"#,
            5 * feedback,
        );
        self.with(&switch, self.is_homa)
    }

    /// A packet comes when what waits before it in its NIC and in the fabric's port has left.
    fn with_credits(&self) -> String {
        let Case { gbps, loss, memory_kb, .. } = self;
        let feedback = 4 * self.delay_us + 40 + 8 * 600 / gbps;
        let switch = format!(
            r#"{{ kind = "credits", memory = "{memory_kb}KB", feedback = "{feedback}us",
                repeat = "300us", control-loss = {loss}, control-loss-run = 2 }}"#
        );
        self.with(&switch, false)
    }

    fn with(&self, switch: &str, is_homa: bool) -> String {
        let Case {
            seed, senders, gbps, delay_us, work_ns, mean_ns, stall_us, size_kb, flows, ..
        } = self;
        let transport = match is_homa {
            true => "kind = \"homa\"\n            homa-abort-after = \"off\"",
            false => {
                "kind = \"dctcp\"\n            min-rto = \"2ms\"\n            initial-rto = \"2ms\""
            }
        };
        format!(
            r#"
            seed = {seed}
            duration = "2s"
            [topology]
            kind = "single-switch"
            hosts = {}
            host-link = {{ rate = "{gbps}Gbps", delay = "{delay_us}us" }}
            [switch]
            buffer = {{ kind = "per-port", size = "400KB" }}
            queue = {{ kind = "strict-priority" }}
            [transport]
            {transport}
            [edge]
            virtual-switch = {switch}
            [[application]]
            hosts = 0
            work = "{work_ns}ns"
            mean = "{mean_ns}ns"
            stall-every = "500us"
            stall = "{stall_us}us"
            [[traffic]]
            name = "incast"
            kind = "incast"
            receiver = 0
            degree = {senders}
            flows-per-server = {flows}
            response = "{size_kb}KB"
            period = "150us"
            count = 4
            "#,
            senders + 1,
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever the speeds, the stalls and what is lost of words: no host drops anything, every
    /// flow is delivered, and memory is given back.
    #[test]
    fn with_headroom_by_the_formula_no_host_drops(case in case()) {
        let (outcome, records) = run(&case.text(), &[]);
        prop_assert_eq!(lost(&outcome), [0, 0], "{:?}", outcome.counters);
        prop_assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
        prop_assert_eq!(records.flows.len() as u32, case.senders * case.flows * 4);
        prop_assert_eq!(outcome.counters.get("backdraft", "queued-bytes"), 0);
        prop_assert_eq!(outcome.counters.get("backdraft", "stops"), 0);
    }

    /// And with credits, but that what the fabric drops is sent again: all that comes was granted
    /// and has room, and what was not used is granted again, or flows would wait for ever.
    #[test]
    fn with_credits_no_host_drops(case in case()) {
        let (outcome, records) = run(&case.with_credits(), &[]);
        prop_assert_eq!(lost(&outcome), [0, 0], "{:?}", outcome.counters);
        prop_assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
        prop_assert_eq!(records.flows.len() as u32, case.senders * case.flows * 4);
        for name in ["queued-bytes", "stops", "late"] {
            prop_assert_eq!(outcome.counters.get("credits", name), 0, "{}", name);
        }
        prop_assert!(
            outcome.counters.get("credits", "peak-bytes") <= 1000 * u64::from(case.memory_kb)
        );
    }
}

/// Where the first pause and its repetition are always lost, headroom has to have room for two
/// losses: one sender at 100 Gb/s, 100 us from a pause to its effect, and an application that
/// stands.
#[test]
fn losses_need_their_headroom() {
    let text = r#"
        duration = "20ms"
        [topology]
        kind = "single-switch"
        hosts = 2
        host-link = { rate = "100Gbps", delay = "20us" }
        [host]
        segment-offload = "off"
        [switch]
        buffer = { kind = "per-port", size = "10MB" }
        queue = { kind = "strict-priority" }
        [transport]
        kind = "newreno"
        initial-window = 10000
        initial-rto = "1s"
        min-rto = "1s"
        handshake = false
        [edge]
        virtual-switch = { kind = "backdraft", memory = "300KB", ring = 64, feedback = "100us",
            ttl = "500us", nic-limit = "16KB", headroom-senders = 1, headroom-fabric = 1,
            control-loss = 1.0, control-loss-run = 2 }
        [[application]]
        hosts = 1
        work = "100us"
        [[traffic]]
        kind = "flows"
        name = "one"
        rows = [["0us", 0, 1, 10000000]]
    "#;
    let lost_with = |losses: &str| lost(&run(text, &[("edge.virtual-switch.losses", losses)]).0);
    assert_eq!(lost_with("2"), [0, 0]);
    assert!(lost_with("0")[0] > 0, "there was room for losses that nobody had asked for");
}
