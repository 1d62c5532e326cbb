//! The parts that tests of the load have in common, whether its hosts are kernels or agents: plans,
//! records, and the comparison with the simulator's run of the same plan.

#![allow(dead_code)]

#[path = "../../../sim/tests/common/records.rs"]
mod records;

use millpond_core::Time;
use millpond_lab::load::{Counts, Sink};
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use std::collections::BTreeSet;

pub use records::Records;

impl Sink for Records {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.flows.push(record);
        self.stop_after.is_none_or(|enough| (self.flows.len() as u64) < enough)
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

pub fn plan(duration: &str, hosts: usize, traffic: &str) -> Plan {
    let text = format!(
        "{duration}\n[topology]\nkind = \"single-switch\"\nhosts = {hosts}\n[transport]\nkind = \
         \"newreno\"\n{traffic}"
    );
    let scenario = Scenario::parse("load", &text).unwrap_or_else(|e| panic!("{e}"));
    scenario.plan(None, &[], None).unwrap_or_else(|e| panic!("{e}"))
}

pub const UNTIL: &str = "duration = \"20s\"\nuntil = \"flows-complete\"";

pub fn simulated(plan: &Plan) -> Records {
    let mut records = Records::default();
    millpond_sim::run(plan, 1, &mut records).unwrap();
    records
}

/// Its numbers, its start and what it belongs to.
type Identity = ((u32, u16, u32, u32, u64), (Option<Time>, Time), (Option<u32>, bool));

/// The fields that two worlds must agree on; `times`: of starts, too.
fn identities(records: &Records, times: bool) -> BTreeSet<Identity> {
    let of = |r: &FlowRecord| {
        let start = times.then_some(r.start);
        ((r.flow, r.class, r.src, r.dst, r.bytes), (start, r.ideal), (r.query, r.counted))
    };
    let set: BTreeSet<_> = records.flows.iter().map(of).collect();
    assert_eq!(set.len(), records.flows.len(), "no flow has two records");
    set
}

/// Flows and queries as in the simulator, all finished, in an order of times that can be.
pub fn assert_like_the_simulator(plan: &Plan, (records, counts): &(Records, Counts), times: bool) {
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

pub fn bytes(records: &Records) -> u64 {
    records.flows.iter().map(|flow| flow.bytes).sum()
}

/// Rows that wait for each other, by their times and identifiers.
pub const RING: &str = r#"
    [[traffic]]
    name = "ring"
    kind = "flows"
    rows = [
        { start = "1ms", src = 0, dst = 1, bytes = 300000, id = "a" },
        { start = 0, src = 1, dst = 2, bytes = 200000, id = "b", after = ["a"] },
        { start = "2ms", src = 2, dst = 0, bytes = 9000, id = "c", after = ["a", "b"] },
    ]
"#;

/// The flows of [`RING`] start when those that they wait for allow it; gives the end of the last.
pub fn assert_ring(plan: &Plan, flows: &[FlowRecord]) -> Time {
    let graph = plan.traffic.dependencies.as_deref().unwrap();
    let node = |id: &str| (0..3).find(|n| graph.id(*n) == Some(id)).unwrap();
    let flow = |n: u32| flows.iter().find(|f| f.flow == graph.first_flow + n).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(node);
    let earliest = |n, of| graph.earliest(flow(n).finish.unwrap(), flow(n).dst, of);
    assert_eq!(flow(b).start, earliest(a, b));
    assert_eq!(flow(c).start, earliest(a, c).max(earliest(b, c)));
    flow(c).finish.unwrap()
}

/// Flows of a traffic that waits for [`RING`].
pub const AFTER_RING: &str = r#"
    [[traffic]]
    name = "then"
    kind = "permutation"
    size = "5KB"
    after = ["ring"]
"#;

/// The same of [`RING`] and [`AFTER_RING`].
pub fn assert_after_ring(plan: &Plan, flows: &[FlowRecord]) {
    let end = assert_ring(plan, flows);
    let first = plan.traffic.dependencies.as_deref().unwrap().first_flow;
    let flow = |n: u32| flows.iter().find(|flow| flow.flow == first + n).unwrap();
    assert!((3..6).all(|n| flow(n).start >= end));
}

/// Each host sends this many flows at once, and never more.
pub fn assert_concurrency(flows: &[FlowRecord], hosts: u32, most: usize) {
    for host in 0..hosts {
        let own: Vec<_> = flows.iter().filter(|flow| flow.src == host).collect();
        let is_open = |f: &&&FlowRecord, at| f.start <= at && at < f.sender_last.unwrap();
        let at_once = |at: Time| own.iter().filter(|f| is_open(f, at)).count();
        assert_eq!(own.iter().map(|flow| at_once(flow.start)).max(), Some(most));
    }
}

/// The next call of a connection begins when the last has ended.
pub fn assert_calls_follow(records: &[FlowRecord]) {
    let mut calls: Vec<_> = records.iter().collect();
    calls.sort_by_key(|call| (call.flow, call.start));
    for pair in calls.windows(2).filter(|pair| pair[0].flow == pair[1].flow) {
        assert_eq!(pair[0].finish, Some(pair[1].start), "the next call follows at once");
    }
}
