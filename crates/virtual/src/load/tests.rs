//! The load against agents of a network that loses nothing, and against real ones.

mod agents;
mod network;

use super::Load;
use crate::calendar::Orders;
use millpond_core::Time;
use millpond_lab::load::{Counts, Sink};
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_sim::{Observer, Standing};
use network::Network;
use std::collections::BTreeSet;
use std::convert::Infallible;

#[derive(Debug, Default)]
struct Records {
    flows: Vec<FlowRecord>,
    queries: Vec<QueryRecord>,
    rtts: Vec<Time>,
    connections: Vec<ConnectionRecord>,
}

impl Sink for Records {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.flows.push(record);
        true
    }
    fn query(&mut self, record: QueryRecord) -> bool {
        self.queries.push(record);
        true
    }
    fn rtt(&mut self, rtt: Time) -> bool {
        self.rtts.push(rtt);
        true
    }
    fn connection(&mut self, record: ConnectionRecord) -> bool {
        self.connections.push(record);
        true
    }
}

impl Observer for Records {
    type Error = Infallible;
    fn flow(&mut self, record: &FlowRecord) -> Result<(), Infallible> {
        self.flows.push(*record);
        Ok(())
    }
    fn query(&mut self, record: &QueryRecord) -> Result<(), Infallible> {
        self.queries.push(*record);
        Ok(())
    }
    fn connection(&mut self, record: &ConnectionRecord) -> Result<(), Infallible> {
        self.connections.push(record.clone());
        Ok(())
    }
    fn edge(&mut self, _: &Standing) -> Result<bool, Infallible> {
        Ok(true)
    }
}

fn plan(duration: &str, hosts: usize, traffic: &str) -> Plan {
    let text = format!(
        "{duration}\n[topology]\nkind = \"single-switch\"\nhosts = {hosts}\n[transport]\nkind = \
         \"newreno\"\n{traffic}"
    );
    let scenario = Scenario::parse("load", &text).unwrap_or_else(|e| panic!("{e}"));
    scenario.plan(None, &[], None).unwrap_or_else(|e| panic!("{e}"))
}

const UNTIL: &str = "duration = \"20s\"\nuntil = \"flows-complete\"";

fn simulated(plan: &Plan) -> Records {
    let mut records = Records::default();
    millpond_sim::run(plan, 1, &mut records).unwrap();
    records
}

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

/// The fields that two worlds must agree on; `times`: starts, too.
fn identities(records: &Records, times: bool) -> BTreeSet<impl Ord + std::fmt::Debug + use<>> {
    let of = |r: &FlowRecord| {
        let start = times.then_some(r.start);
        ((r.flow, r.class, r.src, r.dst, r.bytes), (start, r.ideal), (r.query, r.counted))
    };
    let set: BTreeSet<_> = records.flows.iter().map(of).collect();
    assert_eq!(set.len(), records.flows.len(), "no flow has two records");
    set
}

/// Flows and queries as in the simulator, all finished, in an order of times that can be.
fn assert_like_the_simulator(plan: &Plan, (records, counts): &(Records, Counts), times: bool) {
    assert!(counts.errors.is_empty(), "{:?}", counts.errors);
    let expected = simulated(plan);
    assert!(!expected.flows.is_empty());
    assert_eq!(identities(records, times), identities(&expected, times));
    for record in &records.flows {
        let (finish, first) = (record.finish.unwrap(), record.sender_first.unwrap());
        let last = record.sender_last.unwrap();
        assert!(record.start <= first && record.start < finish && first <= last, "{record:?}");
        assert!(last <= counts.ended && finish <= counts.ended, "{record:?}");
    }
    let of = |r: &QueryRecord| (r.query, r.class, r.client, r.degree, r.start, r.completed);
    let queries = |records: &Records| records.queries.iter().map(of).collect::<BTreeSet<_>>();
    assert_eq!(queries(records), queries(&expected));
    assert!(records.queries.iter().all(|query| query.finish.is_some()));
    assert_eq!(counts.started, records.flows.len() as u64);
    assert_eq!(counts.completed, counts.started);
    assert_eq!(counts.pairs.values().sum::<u64>(), counts.bytes_measured);
}

fn bytes(records: &Records) -> u64 {
    records.flows.iter().map(|flow| flow.bytes).sum()
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
    for host in 0..4 {
        let own: Vec<_> = run_of.0.flows.iter().filter(|flow| flow.src == host).collect();
        let is_open = |f: &&&FlowRecord, at| f.start <= at && at < f.sender_last.unwrap();
        let at_once = |at: Time| own.iter().filter(|f| is_open(f, at)).count();
        assert_eq!(own.iter().map(|flow| at_once(flow.start)).max(), Some(2));
    }
}

#[test]
fn dependent_flows_start_after_what_they_wait_for() {
    let traffic = r#"
        [[traffic]]
        name = "ring"
        kind = "flows"
        rows = [
            { start = "1ms", src = 0, dst = 1, bytes = 300000, id = "a" },
            { start = 0, src = 1, dst = 2, bytes = 200000, id = "b", after = ["a"] },
            { start = "2ms", src = 2, dst = 0, bytes = 9000, id = "c", after = ["a", "b"] },
        ]
        [[traffic]]
        name = "then"
        kind = "permutation"
        size = "5KB"
        after = ["ring"]
    "#;
    let plan = plan(UNTIL, 3, traffic);
    let run = run(&plan, &mut Network::default());
    assert_like_the_simulator(&plan, &run, false);
    let graph = plan.traffic.dependencies.as_deref().unwrap();
    let node = |id: &str| (0..6).find(|n| graph.id(*n) == Some(id)).unwrap();
    let flow = |n: u32| run.0.flows.iter().find(|f| f.flow == graph.first_flow + n).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(node);
    let end = |n: u32| (flow(n).finish.unwrap(), flow(n).dst);
    assert_eq!(flow(b).start, graph.earliest(end(a).0, end(a).1, b));
    let waits = [a, b].map(|n| graph.earliest(end(n).0, end(n).1, c));
    assert_eq!(Some(flow(c).start), waits.into_iter().max());
    assert!((3..6).all(|n| flow(n).start >= end(c).0));
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
    let mut calls: Vec<_> = records.flows.iter().collect();
    calls.sort_by_key(|call| (call.flow, call.start));
    for pair in calls.windows(2).filter(|pair| pair[0].flow == pair[1].flow) {
        assert_eq!(pair[0].finish, Some(pair[1].start), "the next call follows at once");
    }
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
