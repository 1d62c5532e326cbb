//! The load against agents of a network that loses nothing, and against real ones.

mod agents;
#[path = "../../../lab/tests/load/compared.rs"]
mod compared;
mod network;

use super::Load;
use crate::calendar::Orders;
use compared::{AFTER_RING, RING, Records, UNTIL, bytes, plan};
use compared::{
    assert_after_ring, assert_calls_follow, assert_concurrency, assert_like_the_simulator,
};
use millpond_core::Time;
use millpond_lab::load::Counts;
use millpond_results::FlowRecord;
use millpond_scenario::plan::Plan;
use network::Network;

/// Makes a plan's traffic in a network.
fn run(plan: &Plan, network: &mut Network) -> (Records, Counts) {
    let (mut load, mut records, mut orders) = (Load::new(plan), Records::default(), Orders::new());
    while !load.is_over() {
        let now = load.next().into_iter().chain(network.next()).min().expect("it goes on");
        if load.next() == Some(now) {
            load.on_time(now, &mut orders);
        } else if let Some((at, host, report)) = network.step() {
            load.on_report(at, host, report, &mut records, &mut orders);
        }
        if plan.until_complete && load.is_complete() {
            load.stop(now, &mut orders);
        }
        network.obey(&mut orders);
    }
    let counts = load.conclude(Time::MAX, &mut records);
    (records, counts)
}

const INCAST: &str = r#"
    [[traffic]]
    kind = "incast"
    degree = 3
    response = "20KB"
    request = "100B"
    period = "2ms"
    count = 5
"#;
const THINKING: &str = r#"
    [[traffic]]
    name = "thinking"
    kind = "incast"
    degree = 1
    response = "1KB"
    request = "100B"
    period = "5ms"
    count = 4
    think-time = "300us"
    think-deviation = "100us"
"#;
const SHUFFLE: &str = "[[traffic]]\nkind = \"shuffle\"\nsize = \"20KB\"\nconcurrency = 2\n";
const RPC: &str = r#"
    [[traffic]]
    kind = "rpc"
    clients = 1
    servers = 2
    connections = 2
    request = "200B"
    response = "16KB"
"#;

#[test]
fn flows_queries_and_shuffles_are_the_simulators() {
    let plan = plan(UNTIL, 4, &format!("{INCAST}{THINKING}"));
    let mut network = Network::default();
    let run_of = run(&plan, &mut network);
    assert_like_the_simulator(&plan, &run_of, true);
    let (records, counts) = run_of;
    let first = |flow: &FlowRecord| flow.sender_first < flow.finish;
    assert!(records.flows.iter().all(first) && records.queries.len() == 9);
    assert_eq!((counts.bytes_measured, counts.unstamped), (bytes(&records) + 19 * 100, 0));
    assert_eq!(network.open(), 0, "both ends of each connection are closed");
    for flow in records.flows.iter().filter(|flow| flow.class == 1) {
        let thinks = plan.traffic.thinking[1].draw(plan.seed, flow.flow);
        assert!(thinks > Time::ZERO && flow.sender_first.unwrap() > flow.start + thinks);
    }
    let plan = self::plan(UNTIL, 4, SHUFFLE);
    let run_of = run(&plan, &mut Network::default());
    assert_like_the_simulator(&plan, &run_of, false);
    assert_concurrency(&run_of.0.flows, 4, 2);
}

#[test]
fn dependent_flows_start_after_what_they_wait_for() {
    let plan = plan(UNTIL, 3, &format!("{RING}{AFTER_RING}"));
    let run = run(&plan, &mut Network::default());
    assert_like_the_simulator(&plan, &run, false);
    assert_after_ring(&plan, &run.0.flows);
}

#[test]
fn calls_follow_each_other_until_their_stop() {
    let until = |stop: &str, end: &str| {
        let text = format!("{RPC}stop = \"{stop}\"\n");
        plan(&format!("duration = \"{end}\"\nwarm-up = \"10ms\""), 3, &text)
    };
    let mut network = Network::default();
    let (records, counts) = run(&until("20ms", "30ms"), &mut network);
    assert_eq!(network.open(), 0, "no call begins at the stop, and both ends are closed");
    assert!(counts.completed > 100 && counts.completed == counts.started, "{counts:?}");
    let stop = Time::from_ms(20);
    assert!(records.flows.iter().all(|call| call.start < stop && call.finish.is_some()));
    assert_calls_follow(&records.flows);
    // To the horizon: what is under way stays unfinished, but its bytes so far are counted.
    let (records, counts) = run(&until("1s", "30010us"), &mut Network::default());
    assert_eq!(counts.started - counts.completed, 2);
    let unfinished = records.flows.iter().filter(|call| call.finish.is_none()).count();
    assert_eq!((unfinished, counts.ended), (2, Time::from_us(30_010)));
    let finished = |call: &&FlowRecord| call.finish.is_some_and(|at| at > Time::from_ms(10));
    let whole = records.flows.iter().filter(finished).count() as u64 * 16_200;
    assert!(counts.bytes_measured.abs_diff(whole) < 2 * 16_200, "{counts:?} {whole}");
    // At 10 ms all of a request is there, and at the end half of a response, too.
    assert_eq!(counts.bytes_measured % 16_200, 2 * 8_000, "the part of a call counts as a part");
}

#[test]
fn probes_ask_at_their_period_on_open_connections() {
    let traffic = "[[traffic]]\nkind = \"probe\"\npairs = \"random\"\nsize = 64\nperiod = \"5ms\"";
    let plan = plan("duration = \"200ms\"\nwarm-up = \"100ms\"", 2, traffic);
    let (records, counts) = run(&plan, &mut Network::default());
    assert_eq!((counts.started, records.flows.len(), counts.bytes_measured), (0, 0, 0));
    let way = Time::from_us(20) + Time::from_ps(2 * 64 * 800);
    assert!(records.rtts.len() >= 19 && records.rtts.iter().all(|rtt| *rtt == way));
}

#[test]
fn goodput_and_samples_are_those_of_their_times() {
    let traffic = r#"
        [[traffic]]
        kind = "flows"
        rows = [{ start = "1us", src = 0, dst = 1, bytes = 1000000 }]
        [capture]
        goodput = "100us"
        connections = { every = "100us", max = 4 }
    "#;
    let plan = plan("duration = \"2ms\"", 2, traffic);
    let (records, counts) = run(&plan, &mut Network::default());
    // Half is there 431 us after the start, at 10 Gb/s and three ways of 10 us; all at 831 us.
    let read = |at: usize| counts.goodput[at / 100 - 1][0];
    let expected = [(100, 0), (400, 0), (500, 500_000), (800, 500_000), (900, 1_000_000)];
    expected.iter().for_each(|(at, bytes)| assert_eq!(read(*at), *bytes, "{at} us"));
    assert_eq!(counts.goodput.len(), 20);
    let rows: Vec<u64> = records.connections.iter().map(|row| row.at.as_ps() / 1_000_000).collect();
    assert_eq!(rows, (1..=8).map(|n| n * 100).collect::<Vec<_>>(), "while the flow is open");
    assert_eq!(counts.sampled.len(), 1);
}

#[test]
fn a_port_that_a_program_has_is_passed_over() {
    let mut network = Network::default();
    let plan = plan(UNTIL, 4, INCAST);
    let first = |flow: u32| 1024 + flow as u16;
    network.taken = (0..4).flat_map(|host| (0..30).map(move |f| (host, first(f)))).collect();
    let run = run(&plan, &mut network);
    assert_like_the_simulator(&plan, &run, true);
    assert_eq!(network.open(), 0);
}

#[test]
fn flows_of_a_dead_host_stay_unfinished_and_missing_stamps_are_looked_for() {
    let traffic = r#"
        [[traffic]]
        kind = "flows"
        rows = [
            { start = 0, src = 0, dst = 1, bytes = 5000 },
            { start = 0, src = 0, dst = 2, bytes = 5000 },
        ]
    "#;
    let plan = plan("duration = \"100ms\"\nuntil = \"flows-complete\"", 3, traffic);
    let mut network = Network::default();
    (network.is_unstamped, network.dead) = (true, [2].into());
    let (records, counts) = run(&plan, &mut network);
    assert_eq!((counts.started, counts.completed, counts.unstamped), (2, 1, 1));
    assert_eq!(
        (counts.ended, counts.timeouts),
        (Time::from_ms(100), 3),
        "0 + 1 + 2 of the kernels"
    );
    let flow = |dst| records.flows.iter().find(|flow| flow.dst == dst).unwrap();
    assert_eq!((flow(2).finish, flow(1).finish.is_some()), (None, true));
    assert!(flow(1).sender_last.unwrap() > Time::from_ms(50));
    assert!(counts.pairs.contains_key(&(0, 2)), "it had something to send");
}
