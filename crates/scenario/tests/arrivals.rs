//! Arrivals: the rates and pairs that the scenario asks for, the same every time.

use millpond_core::Time;
use millpond_scenario::traffic::{Arrival, Event, Query};
use millpond_scenario::{Plan, Scenario};
use std::collections::BTreeSet;

fn plan(text: &str) -> Plan {
    Scenario::parse("t.toml", text)
        .and_then(|s| s.plan(None, &[], None))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn flows(plan: &Plan) -> Vec<Arrival> {
    let mut arrivals = plan.traffic.arrivals();
    std::iter::from_fn(move || arrivals.next_arrival()).collect()
}

fn queries(plan: &Plan) -> Vec<Query> {
    let query = |e| if let Event::Query(q) = e { Some(q) } else { None };
    plan.traffic.arrivals().filter_map(query).collect()
}

#[test]
fn poisson_offers_its_load() {
    for (base, pairs, capacity) in
        [("fabric", "random", 1.28e12), ("host-links", "inter-leaf", 3.2e12)]
    {
        for sizes in ["hadoop", "cache-follower", "100KB"] {
            let p = plan(&format!(
                "duration = \"200ms\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"{sizes}\"\nload \
                 = 0.5\nload-base = \"{base}\"\npairs = \"{pairs}\""
            ));
            let flows = flows(&p);
            let bytes: u64 = flows.iter().map(|f| f.bytes).sum();
            let load = bytes as f64 * 8.0 / 0.2 / capacity;
            assert!((load / 0.5 - 1.0).abs() < 0.03, "{sizes} {base}: {load}");
            let senders: BTreeSet<u32> = flows.iter().map(|f| f.src).collect();
            assert_eq!(senders.len(), 320);
            let crosses = |f: &&Arrival| p.topology.leaf_of(f.src) != p.topology.leaf_of(f.dst);
            let share = flows.iter().filter(crosses).count() as f64 / flows.len() as f64;
            let expected = if pairs == "random" { 280.0 / 319.0 } else { 1.0 };
            assert!((share - expected).abs() < 0.02, "{share}");
        }
    }
}

/// The gaps' mean and their squares' mean are those of an exponential distribution.
#[test]
fn gaps_are_exponential() {
    let p = plan("duration = \"1s\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"1MB\"\nload = 0.5");
    let at: Vec<f64> = flows(&p).iter().map(|f| f.at.as_s_f64()).collect();
    let gaps: Vec<f64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let square = gaps.iter().map(|g| g * g).sum::<f64>() / n;
    assert!(
        (mean * 80_000.0 - 1.0).abs() < 0.02 && (square / (2.0 * mean * mean) - 1.0).abs() < 0.03,
        "{mean} {square}"
    );
}

#[test]
fn start_stop_and_count_bound_it() {
    let p = plan(
        "duration = \"100ms\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"10KB\"\nstart = \
         \"10ms\"\nstop = \"20ms\"\n[[traffic]]\nkind = \"incast\"\nperiod = \"1ms\"\ncount = \
         7\nstart = \"5ms\"",
    );
    let background: Vec<Arrival> = flows(&p).into_iter().filter(|f| f.class == 0).collect();
    assert!(background.iter().all(|f| f.at >= Time::from_ms(10) && f.at < Time::from_ms(20)));
    assert!(background.len() > 1000);
    let times: Vec<Time> = queries(&p).iter().map(|q| q.at).collect();
    assert_eq!(times, (5..12).map(Time::from_ms).collect::<Vec<_>>());
    let p = plan("until = \"flows-complete\"\n[[traffic]]\nkind = \"poisson\"\ncount = 500");
    assert_eq!((flows(&p).len(), p.traffic.total_flows), (500, Some(500)));
}

#[test]
fn incasts_have_distinct_servers_and_even_ones() {
    let p = plan(
        "duration = \"100ms\"\n[[traffic]]\nkind = \"incast\"\ndegree = 100\nresponse = \
         \"40KB\"\nrate = 10000",
    );
    let queries = queries(&p);
    assert!((950..1050).contains(&queries.len()), "{}", queries.len());
    let flows = flows(&p);
    assert_eq!(flows.len(), queries.len() * 100);
    let mut served = vec![0u32; 320];
    for (query, flows) in queries.iter().zip(flows.chunks(100)) {
        let servers: BTreeSet<u32> = flows.iter().map(|f| f.src).collect();
        assert_eq!(servers.len(), 100);
        assert!(
            flows
                .iter()
                .all(|f| f.dst == query.client && f.src != f.dst && f.query == Some(query.query))
        );
        assert!(flows.iter().all(|f| f.at == query.at && f.bytes == 40_000 && f.response == 0));
        servers.iter().for_each(|&s| served[s as usize] += 1);
    }
    let mean = flows.len() as f64 / 320.0;
    assert!(served.iter().all(|&n| (n as f64 / mean - 1.0).abs() < 0.25), "{served:?}");
}

#[test]
fn servers_of_an_incast_may_send_several_flows() {
    let p = plan(
        "duration = \"10ms\"\n[[traffic]]\nkind = \"incast\"\ndegree = 3\nflows-per-server = \
         4\nresponse = \"16KB\"\ncount = 2",
    );
    let flows = flows(&p);
    assert_eq!((flows.len(), p.traffic.total_flows), (24, Some(24)));
    assert!(queries(&p).iter().all(|query| query.degree == 12));
    for query in flows.chunks(12) {
        let servers: BTreeSet<u32> = query.iter().map(|f| f.src).collect();
        assert!(
            servers.len() == 3
                && servers.iter().all(|s| query.iter().filter(|f| f.src == *s).count() == 4)
        );
    }
}

#[test]
fn requests_take_two_ids() {
    let p = plan(
        "duration = \"10ms\"\n[[traffic]]\nkind = \"incast\"\ndegree = 3\nrequest = 100\nresponse \
         = 5000\nreceiver = 7\ncount = 2\n[[traffic]]\nkind = \"shuffle\"",
    );
    let flows = flows(&p);
    let first = p.traffic.first_open_flow;
    assert_eq!(first, 320 * 319);
    assert_eq!(flows.iter().map(|f| f.flow - first).collect::<Vec<_>>(), [0, 2, 4, 6, 8, 10]);
    assert!(flows.iter().all(|f| (f.src, f.bytes, f.response) == (7, 100, 5000)));
    assert_eq!(p.traffic.total_flows, Some(320 * 319 + 12));
}

#[test]
fn patterns_stagger_by_host() {
    let p = plan(
        "duration = \"10ms\"\n[topology]\nleaves = 8\nspines = 4\nhosts-per-leaf = \
         16\n[[traffic]]\nkind = \"stride\"\noffset = 16\nsize = \"10MB\"\nstagger = \"10ns\"",
    );
    let flows = flows(&p);
    assert_eq!(flows.len(), 128);
    for (i, f) in flows.iter().enumerate() {
        assert_eq!(
            (f.at, f.src, f.dst),
            (Time::from_ns(10 * i as u64), i as u32, (i as u32 + 16) % 128)
        );
    }
}

#[test]
fn another_seed_is_another_sample_and_another_traffic_is_not() {
    let text = |seed: u32, more: &str| {
        format!(
            "seed = {seed}\nduration = \"2ms\"\n[[traffic]]\nname = \"a\"\nkind = \
             \"poisson\"\n{more}"
        )
    };
    let of_a = |p: &Plan| -> Vec<(Time, u32, u32, u64)> {
        flows(p).iter().filter(|f| f.class == 0).map(|f| (f.at, f.src, f.dst, f.bytes)).collect()
    };
    let a = of_a(&plan(&text(1, "")));
    assert!(a.len() > 20);
    assert_eq!(a, of_a(&plan(&text(1, ""))));
    assert_ne!(a, of_a(&plan(&text(2, ""))));
    assert_eq!(a, of_a(&plan(&text(1, "[[traffic]]\nname = \"b\"\nkind = \"poisson\""))));
    assert_eq!(
        a,
        of_a(&plan(&text(
            1,
            "[transport]\nkind = \"cubic\"\n[switch]\nqueue = { kind = \"strict-priority\" }"
        )))
    );
}

/// The arrivals of a given seed are part of the contract: they change only with a new version of
/// the format.
#[test]
fn the_first_arrivals_are_pinned() {
    let p = plan(
        "duration = \"1ms\"\n[[traffic]]\nname = \"background\"\nkind = \"poisson\"\nsizes = \
         \"web-search\"",
    );
    let first: Vec<_> =
        flows(&p).iter().take(3).map(|f| (f.at.as_ps(), f.src, f.dst, f.bytes)).collect();
    assert_eq!(first, PINNED);
}

const PINNED: [(u64, u32, u32, u64); 3] = [
    (16_876_474, 191, 182, 1_530),
    (17_119_319, 220, 265, 20_810_386),
    (18_057_909, 285, 53, 2_817_703),
];

#[test]
fn closed_loops_are_drawn_in_advance() {
    let p = plan(
        "duration = \"1ms\"\n[[traffic]]\nkind = \"rpc\"\nclients = 3\nservers = 2\nconnections = \
         4",
    );
    let millpond_scenario::traffic::SourceKind::Rpc { connections, first_flow, .. } =
        &p.traffic.sources[0].kind
    else {
        panic!("not an rpc")
    };
    assert_eq!((connections.len(), *first_flow, p.traffic.first_open_flow), (12, 0, 24));
    let (clients, servers): (BTreeSet<u32>, BTreeSet<u32>) = connections.iter().copied().unzip();
    assert_eq!((clients.len(), servers.len()), (3, 2));
    assert!(clients.is_disjoint(&servers));
    assert_eq!(p.traffic.total_flows, None);
}

/// Ten million flows are generated, not stored.
#[test]
fn ten_million_flows_pass_by() {
    let p = plan(
        "until = \"flows-complete\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"hadoop\"\ncount = \
         10_000_000",
    );
    assert_eq!(p.traffic.arrivals().count(), 10_000_000);
}
