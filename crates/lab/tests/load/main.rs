//! The load generator's traffic on this kernel, against the simulator's of the same plan.
#![cfg(target_os = "linux")]

mod compared;
mod lab;
mod measurements;
mod sampling;

use compared::{AFTER_RING, RING, Records, UNTIL, bytes, plan, simulated};
use compared::{assert_after_ring, assert_calls_follow, assert_concurrency};
use lab::Lab;
use millpond_core::Time;
use millpond_lab::load::{self, Counts, Place, Settings};
use millpond_results::{FlowRecord, QueryRecord};
use millpond_scenario::plan::Plan;
use millpond_worlds::needs;
use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// As the simulator, with each kernel's times and stamps.
fn assert_like_the_simulator(plan: &Plan, run: &(Records, Counts), times: bool) {
    compared::assert_like_the_simulator(plan, run, times);
    for record in &run.0.flows {
        let (finish, first) = (record.finish.unwrap(), record.sender_first.unwrap());
        assert!(first < finish && first < record.sender_last.unwrap(), "{record:?}");
        assert!(record.srtt > Time::ZERO && record.rto > record.srtt, "{record:?}");
        assert!(finish - record.start >= record.srtt.min(Time::from_us(10)), "{record:?}");
    }
    assert_eq!(run.1.unstamped, 0, "every last acknowledgement has its time stamp");
}

const POISSON: &str = r#"
    [[traffic]]
    kind = "poisson"
    sizes = "web-search"
    load = 0.01
    count = 200
"#;

#[test]
fn poisson_flows_are_the_simulators() {
    let lab = needs!(Lab::new("poisson", 3));
    let plan = plan(UNTIL, 3, POISSON);
    let run = lab.run(&plan);
    assert_like_the_simulator(&plan, &run, true);
    assert_eq!(run.1.bytes_measured, bytes(&run.0));
    assert_eq!(run.1.lateness.count(), 200);
    assert!(run.0.flows.iter().any(|flow| flow.out_of_order == Some(0)));
    assert_eq!(lab.sockets_left(), Vec::<String>::new(), "no TIME_WAIT, no listener");
    assert_eq!(lab.resets(), 0);
}

#[test]
fn queries_complete_with_and_without_requests() {
    let lab = needs!(Lab::new("incast", 4));
    for (request, asked) in [("\"100B\"", 100), ("\"none\"", 0)] {
        let traffic = format!(
            "[[traffic]]\nkind = \"incast\"\ndegree = 3\nresponse = \"20KB\"\nperiod = \
             \"2ms\"\ncount = 20\nrequest = {request}"
        );
        let plan = plan(UNTIL, 4, &traffic);
        let run = lab.run(&plan);
        assert_like_the_simulator(&plan, &run, true);
        assert_eq!(run.0.queries.len(), 20);
        assert_eq!(run.1.bytes_measured, bytes(&run.0) + asked * 60);
        let last = |query: &QueryRecord| {
            let flows = run.0.flows.iter().filter(|flow| flow.query == Some(query.query));
            flows.filter_map(|flow| flow.finish).max()
        };
        assert!(run.0.queries.iter().all(|query| query.finish == last(query)));
    }
}

#[test]
fn a_server_thinks_before_it_answers() {
    let lab = needs!(Lab::new("think", 2));
    let traffic = r#"
        [[traffic]]
        kind = "incast"
        degree = 1
        response = "1KB"
        request = "100B"
        period = "5ms"
        count = 10
        think-time = "3ms"
        think-deviation = "1ms"
    "#;
    let plan = plan(UNTIL, 2, traffic);
    let run = lab.run(&plan);
    assert_like_the_simulator(&plan, &run, true);
    for flow in &run.0.flows {
        let thinks = plan.traffic.thinking[0].draw(plan.seed, flow.flow);
        assert!(flow.fct().unwrap() > thinks && flow.sender_first.unwrap() > flow.start + thinks);
    }
}

#[test]
fn a_shuffle_keeps_its_concurrency() {
    let lab = needs!(Lab::new("shuffle", 6));
    let traffic = "[[traffic]]\nkind = \"shuffle\"\nsize = \"200KB\"\nconcurrency = 2";
    let plan = plan(UNTIL, 6, traffic);
    let run = lab.run(&plan);
    assert_like_the_simulator(&plan, &run, false);
    assert_concurrency(&run.0.flows, 6, 2);
}

#[test]
fn calls_follow_each_other_on_their_connections() {
    let lab = needs!(Lab::new("rpc", 3));
    let traffic = r#"
        [[traffic]]
        kind = "rpc"
        clients = 1
        servers = 2
        connections = 2
        request = "200B"
        response = "16KB"
    "#;
    let plan = plan("duration = \"300ms\"\nwarm-up = \"100ms\"", 3, traffic);
    let (records, counts) = lab.run(&plan);
    assert!(counts.errors.is_empty(), "{:?}", counts.errors);
    assert_eq!(counts.started, records.flows.len() as u64);
    assert!(counts.completed > 100 && counts.started - counts.completed <= 2, "{counts:?}");
    let expected = simulated(&plan);
    let kinds = |records: &Records| -> BTreeSet<_> {
        let calls = records.flows.iter().filter(|call| call.finish.is_some());
        calls.map(|r| (r.flow, r.class, r.src, r.dst, r.bytes, r.ideal, r.is_call)).collect()
    };
    assert_eq!(kinds(&records), kinds(&expected));
    assert_calls_follow(&records.flows);
    let counted = records.flows.iter().filter(|call| call.counted).count() as u64;
    assert!(counts.bytes_measured.abs_diff(counted * 16_200) <= 4 * 16_200);
    assert_eq!(counts.pairs.len(), 4);
}

#[test]
fn probes_measure_round_trips_at_their_period() {
    let lab = needs!(Lab::new("probe", 2));
    let traffic = "[[traffic]]\nkind = \"probe\"\npairs = \"random\"\nsize = 64\nperiod = \"5ms\"";
    let plan = plan("duration = \"200ms\"\nwarm-up = \"100ms\"", 2, traffic);
    let (records, counts) = lab.run(&plan);
    assert!(counts.errors.is_empty() && records.flows.is_empty(), "{counts:?}");
    let pairs = plan.traffic.sources.iter().map(|source| match &source.kind {
        millpond_scenario::traffic::SourceKind::Probe { pairs, .. } => pairs.len(),
        _ => 0,
    });
    let pairs: usize = pairs.sum();
    assert!(records.rtts.len().abs_diff(20 * pairs) <= 2 * pairs, "{}", records.rtts.len());
    let small = records.rtts.iter().filter(|rtt| **rtt < Time::from_ms(3)).count();
    assert!(small * 2 > records.rtts.len() && records.rtts.iter().all(|rtt| *rtt > Time::ZERO));
    assert_eq!((counts.bytes_measured, counts.pairs.len()), (0, 0), "probes do not count");
}

#[test]
fn dependent_flows_start_after_what_they_wait_for() {
    let lab = needs!(Lab::new("after", 3));
    let plan = plan(UNTIL, 3, &format!("{RING}{AFTER_RING}"));
    let run = lab.run(&plan);
    assert_like_the_simulator(&plan, &run, false);
    assert!(run.1.waiting.is_empty() && run.1.late.is_empty());
    assert_after_ring(&plan, &run.0.flows);
    let first = run.0.flows.iter().find(|flow| flow.bytes == 300_000).unwrap();
    assert_eq!(first.start, Time::from_ms(1));
}

#[test]
fn flows_of_a_host_without_a_link_stay_unfinished() {
    let lab = needs!(Lab::new("down", 3));
    lab.hosts[2].ip("link set eth0 down").unwrap();
    let traffic = r#"
        [[traffic]]
        kind = "flows"
        rows = [
            { start = 0, src = 0, dst = 1, bytes = 5000, id = "fine" },
            { start = 0, src = 0, dst = 2, bytes = 5000, id = "to" },
            { start = 0, src = 2, dst = 1, bytes = 5000, id = "from" },
            { start = 0, src = 1, dst = 0, bytes = 5000, id = "never", after = ["to"] },
        ]
        [[traffic]]
        kind = "incast"
        degree = 2
        response = "2KB"
        request = "100B"
        receiver = 0
        period = "100ms"
        count = 1
    "#;
    let plan = plan("duration = \"300ms\"\nuntil = \"flows-complete\"", 3, traffic);
    let begun = Instant::now();
    let (records, counts) = lab.run(&plan);
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!((counts.ended, counts.interrupted), (Time::from_ms(300), false));
    assert_eq!((counts.started, counts.completed, counts.failed), (5, 2, 1));
    assert_eq!(records.flows.len(), 5, "each flow that started has a record");
    let graph = plan.traffic.dependencies.as_deref().unwrap();
    let flow =
        |id: &str| graph.first_flow + (0..4).find(|node| graph.id(*node) == Some(id)).unwrap();
    let finished = |id: &str| {
        let record = records.flows.iter().find(|record| record.flow == flow(id));
        record.map(|record| record.finish.is_some())
    };
    let expected = [Some(true), Some(false), Some(false), None];
    assert_eq!(["fine", "to", "from", "never"].map(finished), expected);
    assert_eq!(counts.waiting, vec![flow("never")]);
    let errors: Vec<_> = counts.errors.values().collect();
    assert!(errors.len() == 1 && errors[0].count == 1, "{errors:?}");
    assert!(errors[0].first.contains("from host 2 to host 1"), "{errors:?}");
    let [query] = records.queries[..] else { panic!("{:?}", records.queries) };
    assert_eq!((query.completed, query.finish), (1, None));
    assert_eq!(counts.pairs.get(&(0, 2)), Some(&0), "it had something to send");
    assert_eq!(lab.sockets_left(), Vec::<String>::new());
}

/// The kernel finds out after the connection has begun.
#[test]
fn connections_that_cannot_open_are_errors_and_a_run_does_not_wait_for_them() {
    let lab = needs!(Lab::new("unreachable", 3));
    lab.hosts[2].ip("link set eth0 down").unwrap();
    lab.hosts[0].set("ipv4/neigh/eth0/retrans_time_ms", "20").unwrap();
    let traffic = r#"
        [[traffic]]
        kind = "flows"
        rows = [
            { start = 0, src = 0, dst = 1, bytes = 5000 },
            { start = 0, src = 0, dst = 2, bytes = 5000 },
        ]
        [[traffic]]
        kind = "rpc"
        request = "1KB"
        response = "1KB"
        clients = 1
        servers = 2
        connections = 2
        stop = "50ms"
    "#;
    let plan = plan(UNTIL, 3, traffic);
    let begun = Instant::now();
    let (records, counts) = lab.run(&plan);
    assert!(begun.elapsed() < Duration::from_secs(5));
    let of_two = |r: &&FlowRecord| r.src == 2 || r.dst == 2;
    let unfinished = records.flows.iter().filter(|record| record.finish.is_none());
    assert_eq!(unfinished.clone().filter(of_two).count() as u64, counts.failed);
    assert_eq!(unfinished.count() as u64, counts.failed);
    assert_eq!(counts.started, counts.completed + counts.failed);
    assert_eq!(records.flows.len() as u64, counts.started);
    assert_eq!(counts.errors.values().map(|error| error.count).sum::<u64>(), counts.failed);
    let kinds: Vec<_> = counts.errors.keys().map(String::as_str).collect();
    assert!(kinds.contains(&"host unreachable"), "{:?}", counts.errors);
}

#[test]
fn a_connection_from_outside_is_an_error_and_disturbs_no_flow() {
    let lab = needs!(Lab::new("stranger", 2));
    let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"5KB\"\nstart = \"200ms\"";
    let plan = plan(UNTIL, 2, traffic);
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            let connect = || TcpStream::connect((lab.places[1].address, lab::PORT)).unwrap();
            let mut stream = lab.hosts[0].run(connect).unwrap();
            stream.read(&mut [0]).map_or(0, |bytes| bytes)
        });
        let (records, counts) = lab.run(&plan);
        assert_eq!(stranger.join().unwrap(), 0, "it is closed");
        assert_eq!((records.flows.len(), counts.completed, counts.failed), (2, 2, 0));
        let errors: Vec<_> = counts.errors.values().collect();
        assert!(errors.len() == 1 && errors[0].count == 1, "{errors:?}");
        assert!(errors[0].first.contains("host 1") && errors[0].first.contains("10.0.0.1:"));
    });
}

#[test]
fn both_ends_have_the_congestion_control() {
    let mut lab = needs!(Lab::new("law", 2));
    lab.congestion = "reno";
    let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"100GB\"";
    let plan = plan("duration = \"400ms\"", 2, traffic);
    let lines = std::thread::scope(|scope| {
        let sampled = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            lab.ss("-Htin").join("\n")
        });
        let (records, counts) = lab.run(&plan);
        assert_eq!((records.flows.len(), counts.completed), (2, 0));
        assert!(counts.bytes_measured > 1_000_000, "{counts:?}");
        assert_eq!(counts.pairs.len(), 2);
        sampled.join().unwrap()
    });
    assert_eq!(
        (lines.matches(" reno ").count(), lines.matches("cubic").count()),
        (4, 0),
        "{lines}"
    );
}

#[test]
fn a_run_ends_when_its_sink_or_its_caller_has_enough() {
    let lab = needs!(Lab::new("enough", 2));
    let plan = plan("duration = \"60s\"", 2, POISSON);
    let mut records = Records { stop_after: Some(5), ..Records::default() };
    let counts = lab.run_into(&plan, &AtomicBool::new(false), &mut records).unwrap();
    assert!(counts.interrupted && counts.completed == 5, "{counts:?}");
    assert_eq!(counts.started, records.flows.len() as u64);
    let counts = lab.run_into(&plan, &AtomicBool::new(true), &mut records).unwrap();
    assert!(counts.interrupted && counts.started == 0);
}

#[test]
fn a_lab_that_cannot_be_is_an_error() {
    let lab = needs!(Lab::new("error", 2));
    let plan = plan(UNTIL, 2, POISSON);
    let mut records = Records::default();
    let stop = AtomicBool::new(false);
    let mut error = |places: &[Place], congestion: &str| {
        let began = Instant::now();
        let settings =
            Settings { plan: &plan, places, congestion, began, port: 9000, cgroups: &[] };
        load::run(&settings, &stop, &mut records).unwrap_err().to_string()
    };
    let places = &lab.places;
    assert!(error(&places[..1], "cubic").contains("2 hosts and the lab 1 places"));
    let text = error(places, "no-such-law");
    assert!(text.contains("host 0 cannot listen on 10.0.0.1:9000"), "{text}");
    let nowhere = Place { namespace: "no-such-namespace".into(), ..places[1].clone() };
    assert!(error(&[places[0].clone(), nowhere], "cubic").contains("no-such-namespace"));
}
