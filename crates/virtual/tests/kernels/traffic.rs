//! The traffic of real kernels: the records that it makes.

use crate::compared::{RING, assert_calls_follow, assert_ring};
use crate::{Records, try_run};
use millpond_core::Time;
use millpond_lab::load::Counts;
use millpond_results::FlowRecord;
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_virtual::kernels;
use millpond_worlds::needs;
use std::collections::BTreeSet;

fn plan(duration: &str, hosts: u32, traffic: &str) -> Plan {
    let text = format!(
        "{duration}\n[topology]\nkind = \"single-switch\"\nhosts = {hosts}\n\
         host-link = {{ rate = \"10Gbps\", delay = \"20us\" }}\n\
         [host]\njitter = {{ kind = \"none\" }}\n{traffic}"
    );
    Scenario::parse("load", &text).unwrap().plan(None, &[], None).unwrap()
}

fn run(plan: &Plan) -> (Records, Counts) {
    let (outcome, records) = try_run(plan, 1).unwrap_or_else(|error| panic!("{error}"));
    (records, outcome.counts)
}

const UNTIL: &str = "duration = \"2s\"\nuntil = \"flows-complete\"";

/// All flows are complete, in an order of times that can be.
fn assert_complete(plan: &Plan, (records, counts): &(Records, Counts)) {
    assert!(counts.errors.is_empty() && counts.unstamped == 0, "{counts:?}");
    let numbers: BTreeSet<u32> = records.flows.iter().map(|flow| flow.flow).collect();
    assert_eq!((numbers.len(), counts.completed), (records.flows.len(), counts.started));
    for flow in &records.flows {
        let (first, last) = (flow.sender_first.unwrap(), flow.sender_last.unwrap());
        let finish = flow.finish.unwrap();
        // A connection opens in a round trip, and a byte needs half of one.
        let handshake = Time::from_us(80);
        assert!(first >= flow.start + handshake && first < finish && finish < last, "{flow:?}");
        assert!(finish >= flow.start + flow.ideal, "{flow:?}");
    }
    let bytes: u64 = records.flows.iter().map(|flow| flow.bytes).sum();
    assert!(counts.bytes_measured >= bytes && plan.warm_up == Time::ZERO, "{counts:?}");
}

#[test]
fn dependent_flows_and_shuffles_follow_what_they_wait_for() {
    needs!(kernels::find(None));
    let shuffle = "[[traffic]]\nkind = \"shuffle\"\nsize = \"20KB\"\nconcurrency = 2\n";
    let plan = plan(UNTIL, 4, &format!("{RING}{shuffle}"));
    let run = run(&plan);
    assert_complete(&plan, &run);
    assert_eq!(run.0.flows.len(), 3 + 4 * 3);
    assert_ring(&plan, &run.0.flows);
}

#[test]
fn servers_think_and_queries_complete() {
    needs!(kernels::find(None));
    // Shorter than a window, and longer.
    let takes = ["1us", "300us"].map(|think| {
        let traffic = format!(
            "[[traffic]]\nkind = \"incast\"\ndegree = 1\nresponse = \"20KB\"\nrequest = \"100B\"\n\
             period = \"2ms\"\ncount = 5\nthink-time = \"{think}\""
        );
        let plan = plan(UNTIL, 4, &traffic);
        let run = run(&plan);
        assert_complete(&plan, &run);
        let (records, counts) = &run;
        assert_eq!((records.flows.len(), records.queries.len()), (5, 5));
        assert_eq!(counts.bytes_measured, 5 * 20_100);
        let takes = records.flows.iter().map(|flow| {
            let thinks = plan.traffic.thinking[0].draw(plan.seed, flow.flow);
            let first = flow.sender_first.unwrap();
            assert!(first >= flow.start + Time::from_us(120) + thinks, "{flow:?}");
            flow.finish.unwrap() - first
        });
        takes.collect::<Vec<_>>()
    });
    let (least, most) = (takes.iter().flatten().min(), takes.iter().flatten().max());
    let differ = *most.unwrap() - *least.unwrap();
    assert!(differ < Time::from_us(10), "a response begins when its record says: {takes:?}");
}

#[test]
fn what_is_due_soon_reaches_a_busy_host_after_all_that_it_has_done() {
    needs!(kernels::find(None));
    let traffic = r#"
        [[traffic]]
        kind = "incast"
        degree = 1
        response = "2KB"
        request = "100B"
        period = "50us"
        count = 200
        think-time = "1us"
        [[traffic]]
        kind = "rpc"
        clients = 2
        servers = 2
        connections = 8
        request = "100B"
        response = "4KB"
        stop = "10ms"
    "#;
    let plan = plan("duration = \"40ms\"\nuntil = \"flows-complete\"", 4, traffic);
    let run = run(&plan);
    assert!(run.1.errors.is_empty() && run.1.completed > 300, "{:?}", run.1);
    assert_eq!(run.1.completed, run.1.started);
}

#[test]
fn calls_end_at_their_stop_and_partial_ones_count() {
    needs!(kernels::find(None));
    let traffic = r#"
        [[traffic]]
        kind = "rpc"
        clients = 1
        servers = 2
        connections = 2
        request = "200B"
        response = "16KB"
        stop = "6ms"
        [capture]
        goodput = "1ms"
        connections = { every = "1ms", max = 4 }
    "#;
    let plan = plan("duration = \"10ms\"\nwarm-up = \"2ms\"", 3, traffic);
    let (records, counts) = run(&plan);
    let stop = Time::from_ms(6);
    assert!(counts.errors.is_empty() && counts.started == counts.completed, "{counts:?}");
    assert!(counts.started > 50 && records.flows.iter().all(|call| call.start < stop));
    assert_calls_follow(&records.flows);
    // Bytes by time: after the last call all, and before each sample those of whole calls at least.
    let all = records.flows.len() as u64 * 16_200;
    assert_eq!((counts.goodput.len(), counts.goodput[9][0]), (10, all));
    for (index, sample) in counts.goodput.iter().enumerate() {
        let at = Time::from_ms(index as u64 + 1);
        let is_before = |call: &&FlowRecord| call.finish.is_some_and(|finish| finish < at);
        let whole = records.flows.iter().filter(is_before).count() as u64 * 16_200;
        assert!((whole..=whole + 2 * 16_200).contains(&sample[0]), "{at}: {sample:?} {whole}");
    }
    assert_eq!(counts.bytes_measured, all - counts.goodput[1][0], "measured after 2 ms");
    let at: Vec<u64> = records.connections.iter().map(|row| row.at.as_ps() / 1_000_000).collect();
    let expected: Vec<u64> = (1..=6).flat_map(|ms| [ms * 1000; 4]).collect();
    assert_eq!(at, expected, "four directions, while they are open");
    assert!(records.connections.iter().all(|row| row.state == "open" && row.cwnd > 0));
}

#[test]
fn a_least_timeout_of_the_plan_is_the_kernels() {
    needs!(kernels::find(None));
    let traffic = "[transport]\nkind = \"cubic\"\nmin-rto = \"5ms\"\n\
                   [[traffic]]\nkind = \"permutation\"\nsize = \"50KB\"\n";
    let run = run(&plan(UNTIL, 2, traffic));
    for flow in &run.0.flows {
        assert!((Time::from_ms(5)..Time::from_ms(10)).contains(&flow.rto), "{flow:?}");
    }
}
