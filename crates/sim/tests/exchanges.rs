//! Requests and responses on an idle switch, to the picosecond: 10 Gb/s, 1 µs a link, no handshake
//! unless said.

use crate::common::{Records, exact as plan, fcts, simulate};
use millpond_core::Time;
use millpond_results::FlowRecord;

fn scenario(hosts: u32, traffic: &str) -> String {
    format!(
        r#"
        name = "exchange"
        duration = "10ms"
        [topology]
        kind = "single-switch"
        hosts = {hosts}
        host-link = {{ rate = "10Gbps", delay = "1us" }}
        [transport]
        kind = "newreno"
        handshake = false
        {traffic}
        "#
    )
}

/// Over both links of an empty switch: send twice, travel twice.
fn crossing(payload: u64) -> Time {
    Time::from_ps(2 * ((payload + 40) * 800 + 1_000_000))
}

/// An acknowledgement of 40 bytes that leaves before what its host sends next.
const ACK: Time = Time::from_ns(32);

fn of(records: &Records, bytes: u64) -> Vec<&FlowRecord> {
    let mut flows: Vec<&FlowRecord> = records.flows.iter().filter(|f| f.bytes == bytes).collect();
    flows.sort_by_key(|f| (f.start, f.flow));
    flows
}

/// A query: the receiver asks, the server acknowledges the request and answers. QCT and the
/// response's FCT both count from the request.
#[test]
fn a_query_of_one_server() {
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = \
                   1460\nreceiver = 0\nstart = \"5us\"";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[]), 1);
    let (request, response) = (crossing(100), crossing(1460));
    let query = &records.queries[0];
    assert_eq!((query.degree, query.completed, query.client), (1, 1, 0));
    assert_eq!((query.start, query.qct()), (Time::from_us(5), Some(request + ACK + response)));
    let answer = of(&records, 1460)[0];
    assert_eq!((answer.src, answer.dst, answer.query), (1, 0, Some(query.query)));
    assert_eq!((answer.start, answer.fct()), (query.start, query.qct()));
}

/// The host's own software adds its delay on each side of each message.
#[test]
fn a_query_through_slow_stacks() {
    let traffic =
        "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = 1460\nreceiver = 0";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[("host.stack-delay", "3us")]), 1);
    assert_eq!(
        records.queries[0].qct(),
        Some(crossing(100) + ACK + crossing(1460) + Time::from_us(12))
    );
}

/// Without a request all servers start at the query's time, and their responses leave the switch
/// one after the other.
#[test]
fn a_query_without_requests() {
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 3\nrequest = \"none\"\nresponse = \
                   1460\nreceiver = 2";
    let (_, records) = simulate(&plan(&scenario(4, traffic), &[]), 1);
    let mut fct = fcts(&records);
    fct.sort();
    let expected: Vec<Time> = (0..3).map(|i| crossing(1460) + Time::from_ns(1_200) * i).collect();
    assert_eq!(fct, expected);
    assert_eq!(records.queries[0].qct(), expected.last().copied());
    assert!(records.flows.iter().all(|f| f.dst == 2 && f.query == Some(records.queries[0].query)));
}

/// A persistent connection asks again at the moment when the answer is whole: the loop's period is
/// one exchange, in which each side acknowledges what it has received and then sends.
#[test]
fn rpc_is_a_closed_loop() {
    let traffic = "[[traffic]]\nkind = \"rpc\"\nclients = 1\nservers = 1\nconnections = \
                   1\nrequest = 200\nresponse = 1460";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[("duration", "1ms")]), 1);
    // Nothing is acknowledged before the first request.
    let first = crossing(200) + ACK + crossing(1460);
    let period = ACK + first;
    let calls: Vec<&FlowRecord> =
        of(&records, 1460).into_iter().filter(|f| f.finish.is_some()).collect();
    assert_eq!(calls.len() as u64, 1 + (Time::from_ms(1) - first).as_ps() / period.as_ps());
    for (i, call) in calls.iter().enumerate() {
        let end = first + period * i as u64;
        assert_eq!(call.finish, Some(end), "call {i}");
        let begin = if i == 0 { Time::ZERO } else { end - period };
        assert_eq!(call.start, begin, "call {i}: from the request's first byte");
    }
}

/// A call that is asked just before the end makes its record, whatever partition its server is in:
/// that one hears of it a window later.
#[test]
fn a_call_just_before_the_end_makes_its_record() {
    let text = "name = \"late\"\nduration = \"100us\"\n[topology]\nkind = \"leaf-spine\"\nleaves \
                = 2\nspines = 1\nhosts-per-leaf = 1\nfabric-link = { rate = \"10Gbps\", delay = \
                \"5us\" }\n[[traffic]]\nkind = \"rpc\"\nclients = 1\nservers = 1\nconnections = \
                1\nstart = \"99us\"\n";
    for partitions in ["auto", "one"] {
        let (outcome, records) = simulate(&plan(text, &[("engine.partitions", partitions)]), 1);
        assert_eq!(
            (outcome.hosts.started, records.flows.len()),
            (1, 1),
            "partitions: {partitions}"
        );
    }
}

/// Two connections of one client to two servers do not wait for each other but on the wires that
/// they share.
#[test]
fn rpc_connections_are_loops_of_their_own() {
    let one = "[[traffic]]\nkind = \"rpc\"\nclients = 1\nservers = 1\nconnections = 1\nrequest = \
               200\nresponse = 1460";
    let two =
        one.replace("servers = 1", "servers = 2").replace("connections = 1", "connections = 2");
    let calls = |traffic: &str| {
        let (_, records) = simulate(&plan(&scenario(3, traffic), &[("duration", "1ms")]), 1);
        records.flows.iter().filter(|f| f.finish.is_some()).count()
    };
    let (one, two) = (calls(one), calls(&two));
    assert!(
        two > one * 18 / 10 && two <= one * 2,
        "{one} calls with one connection, {two} with two"
    );
}

/// Every host to every other, one at a time: a host's next flow starts when its last one is
/// complete.
#[test]
fn a_shuffle_sends_to_everyone_once() {
    let hosts = 5u32;
    for concurrency in [1, 2, 4] {
        let traffic =
            format!("[[traffic]]\nkind = \"shuffle\"\nsize = 14600\nconcurrency = {concurrency}");
        let (_, records) = simulate(&plan(&scenario(hosts, &traffic), &[]), 1);
        let mut pairs: Vec<(u32, u32)> = records.flows.iter().map(|f| (f.src, f.dst)).collect();
        pairs.sort();
        let all = (0..hosts).flat_map(|a| (0..hosts).filter(move |b| *b != a).map(move |b| (a, b)));
        assert_eq!(pairs, all.collect::<Vec<_>>());
        assert!(records.flows.iter().all(|f| f.finish.is_some()));
        for host in 0..hosts {
            let mut own: Vec<&FlowRecord> =
                records.flows.iter().filter(|f| f.src == host).collect();
            own.sort_by_key(|f| (f.start, f.flow));
            for (i, flow) in own.iter().enumerate() {
                // At no time are more than `concurrency` flows of a host under way.
                let under_way = own[..i].iter().filter(|f| f.finish > Some(flow.start)).count();
                assert!(
                    under_way < concurrency,
                    "host {host}: {under_way} others when flow {i} starts"
                );
            }
        }
    }
}

/// Two hosts, one packet each way: neither waits for the other.
#[test]
fn a_shuffle_of_two_hosts() {
    let traffic = "[[traffic]]\nkind = \"shuffle\"\nsize = 1460";
    let (outcome, records) =
        simulate(&plan(&scenario(2, traffic), &[("until", "flows-complete")]), 1);
    assert_eq!(fcts(&records), [crossing(1460), crossing(1460)]);
    assert_eq!(outcome.audit.injected.packets, 4, "a packet and an acknowledgement each way");
    assert_eq!(outcome.audit.hops, 8);
}

/// A server that thinks answers later by exactly as long, and the ideal time knows it.
#[test]
fn a_server_thinks_before_it_answers() {
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = \
                   1460\nreceiver = 0\nthink-time = \"20us\"";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[]), 1);
    let answer = of(&records, 1460)[0];
    let ideal = crossing(100) + Time::from_us(20) + crossing(1460);
    // The request's acknowledgement has left long before the answer.
    assert_eq!((answer.fct(), answer.ideal), (Some(ideal), ideal));
    assert_eq!(records.queries[0].qct(), Some(ideal));
}

/// Normal think times: each server's own, never negative, the same in every variant, and never
/// better than ideal.
#[test]
fn think_times_are_drawn() {
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = \
                   1460\nreceiver = 0\nperiod = \"100us\"\ncount = 90\nthink-time = \
                   \"20us\"\nthink-deviation = \"15us\"";
    let times = |set: &[(&str, &str)]| -> Vec<Time> {
        let (_, records) = simulate(&plan(&scenario(20, traffic), set), 1);
        let flows = of(&records, 1460);
        assert!(flows.iter().all(|f| f.fct().unwrap() >= f.ideal));
        flows.iter().map(|f| f.ideal - (crossing(100) + crossing(1460))).collect()
    };
    let drawn = times(&[]);
    assert_eq!(drawn.len(), 90);
    let mean = drawn.iter().map(|t| t.as_ps() as f64).sum::<f64>() / 90.0 / 1e6;
    assert!((15.0..27.0).contains(&mean), "{mean} us");
    assert!(drawn.contains(&Time::ZERO), "a twelfth would be negative");
    assert_eq!(drawn, times(&[("transport.kind", "cubic")]));
    assert_ne!(drawn, times(&[("seed", "2")]));
}

/// An exchange under way at the end makes one record, wherever it is: asked, thought about, or
/// answered in part.
#[test]
fn every_exchange_makes_one_record_whenever_the_run_ends() {
    let traffic = "[[traffic]]\nkind = \"poisson\"\nsizes = \"30KB\"\nload = 0.5\nload-base = \
                   \"host-links\"\nrequest = 250\nthink-time = \"30us\"\nthink-deviation = \
                   \"10us\"";
    for duration in ["120us", "163us", "500us"] {
        for handshake in ["true", "false"] {
            let set = [("duration", duration), ("transport.handshake", handshake)];
            let (outcome, records) = simulate(&plan(&scenario(8, traffic), &set), 1);
            let mut ids: Vec<u32> = records.flows.iter().map(|f| f.flow).collect();
            ids.sort_unstable();
            let expected: Vec<u32> = (0..outcome.hosts.started as u32).map(|i| 2 * i + 1).collect();
            assert_eq!(ids, expected, "{set:?}");
            assert!(
                records.flows.iter().any(|f| f.finish.is_none() && f.sender_first.is_none()),
                "some think"
            );
        }
    }
}

/// A request of a Poisson traffic: the answer has the drawn size and comes back; without one the
/// source sends by itself.
#[test]
fn poisson_flows_can_be_asked_for() {
    let traffic = "[[traffic]]\nkind = \"poisson\"\nsizes = \"20KB\"\nload = 0.3\nload-base = \
                   \"host-links\"\ncount = 50";
    let flows = |set: &[(&str, &str)]| {
        let (_, records) = simulate(&plan(&scenario(8, traffic), set), 1);
        assert_eq!(records.flows.len(), 50);
        of(&records, 20_000).into_iter().copied().collect::<Vec<FlowRecord>>()
    };
    let (alone, asked) = (flows(&[]), flows(&[("traffic.poisson.request", "250")]));
    for (a, b) in alone.iter().zip(&asked) {
        assert_eq!(
            (a.start, a.src, a.dst),
            (b.start, b.dst, b.src),
            "the same arrivals, answered the other way"
        );
        assert_eq!(b.ideal, a.ideal + crossing(250), "the answer and what asks for it");
        assert!(b.fct().unwrap() >= b.ideal);
    }
}

/// The answering end knows a round-trip time from the handshake, so that its first loss costs a
/// timeout of that order and not the initial one; without a handshake it knows none.
#[test]
fn the_handshake_gives_the_answering_end_its_first_timeout() {
    let text = r#"
        name = "first-loss"
        duration = "2s"
        [topology]
        kind = "dumbbell"
        hosts-per-side = 1
        host-link = { rate = "10Gbps", delay = "1us" }
        bottleneck = { rate = "10Gbps", delay = "1us" }
        [transport]
        kind = "newreno"
        initial-rto = "1s"
        min-rto = "10ms"
        [[traffic]]
        kind = "incast"
        degree = 1
        receiver = 0
        request = 100
        response = 1460
        think-time = "100us"
        [[failure]]
        link = ["host1", "switch1"]
        at = "80us"
        until = "200us"
    "#;
    let finish = |handshake: &str| {
        let (outcome, records) = simulate(&plan(text, &[("transport.handshake", handshake)]), 1);
        assert_eq!(outcome.hosts.timeouts, 1);
        records.flows[0].fct().unwrap()
    };
    let (known, unknown) = (finish("true"), finish("false"));
    assert!(known > Time::from_ms(10) && known < Time::from_ms(11), "{known}");
    assert!(unknown > Time::from_s(1), "{unknown}");
}
