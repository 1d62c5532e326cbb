//! Requests and responses on an idle switch, to the picosecond: 10 Gb/s, 1 µs a link, no handshake unless said.

mod common;

use common::{Records, fcts, plan, simulate};
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

/// A query: the receiver asks, the server acknowledges the request and answers. QCT and the response's FCT both count from
/// the request.
#[test]
fn a_query_of_one_server() {
    let traffic =
        "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = 1460\nreceiver = 0\nstart = \"5us\"";
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
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 1\nrequest = 100\nresponse = 1460\nreceiver = 0";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[("host.stack-delay", "3us")]), 1);
    assert_eq!(records.queries[0].qct(), Some(crossing(100) + ACK + crossing(1460) + Time::from_us(12)));
}

/// Without a request all servers start at the query's time, and their responses leave the switch one after the other.
#[test]
fn a_query_without_requests() {
    let traffic = "[[traffic]]\nkind = \"incast\"\ndegree = 3\nrequest = \"none\"\nresponse = 1460\nreceiver = 2";
    let (_, records) = simulate(&plan(&scenario(4, traffic), &[]), 1);
    let mut fct = fcts(&records);
    fct.sort();
    let expected: Vec<Time> = (0..3).map(|i| crossing(1460) + Time::from_ns(1_200) * i).collect();
    assert_eq!(fct, expected);
    assert_eq!(records.queries[0].qct(), expected.last().copied());
    assert!(records.flows.iter().all(|f| f.dst == 2 && f.query == Some(records.queries[0].query)));
}

/// A persistent connection asks again at the moment when the answer is whole: the loop's period is one exchange, in which
/// each side acknowledges what it has received and then sends.
#[test]
fn rpc_is_a_closed_loop() {
    let traffic =
        "[[traffic]]\nkind = \"rpc\"\nclients = 1\nservers = 1\nconnections = 1\nrequest = 200\nresponse = 1460";
    let (_, records) = simulate(&plan(&scenario(2, traffic), &[("duration", "1ms")]), 1);
    // Nothing is acknowledged before the first request.
    let first = crossing(200) + ACK + crossing(1460);
    let period = ACK + first;
    let calls: Vec<&FlowRecord> = of(&records, 1460).into_iter().filter(|f| f.finish.is_some()).collect();
    assert_eq!(calls.len() as u64, 1 + (Time::from_ms(1) - first).as_ps() / period.as_ps());
    for (i, call) in calls.iter().enumerate() {
        let end = first + period * i as u64;
        assert_eq!(call.finish, Some(end), "call {i}");
        let begin = if i == 0 { Time::ZERO } else { end - period };
        assert_eq!(call.start, begin, "call {i}: from the request's first byte");
    }
}

/// Two connections of one client to two servers do not wait for each other but on the wires that they share.
#[test]
fn rpc_connections_are_loops_of_their_own() {
    let one = "[[traffic]]\nkind = \"rpc\"\nclients = 1\nservers = 1\nconnections = 1\nrequest = 200\nresponse = 1460";
    let two = one.replace("servers = 1", "servers = 2").replace("connections = 1", "connections = 2");
    let calls = |traffic: &str| {
        let (_, records) = simulate(&plan(&scenario(3, traffic), &[("duration", "1ms")]), 1);
        records.flows.iter().filter(|f| f.finish.is_some()).count()
    };
    let (one, two) = (calls(one), calls(&two));
    assert!(two > one * 18 / 10 && two <= one * 2, "{one} calls with one connection, {two} with two");
}

/// Every host to every other, one at a time: a host's next flow starts when its last one is complete.
#[test]
fn a_shuffle_sends_to_everyone_once() {
    let hosts = 5u32;
    for concurrency in [1, 2, 4] {
        let traffic = format!("[[traffic]]\nkind = \"shuffle\"\nsize = 14600\nconcurrency = {concurrency}");
        let (_, records) = simulate(&plan(&scenario(hosts, &traffic), &[]), 1);
        let mut pairs: Vec<(u32, u32)> = records.flows.iter().map(|f| (f.src, f.dst)).collect();
        pairs.sort();
        let all = (0..hosts).flat_map(|a| (0..hosts).filter(move |b| *b != a).map(move |b| (a, b)));
        assert_eq!(pairs, all.collect::<Vec<_>>());
        assert!(records.flows.iter().all(|f| f.finish.is_some()));
        for host in 0..hosts {
            let mut own: Vec<&FlowRecord> = records.flows.iter().filter(|f| f.src == host).collect();
            own.sort_by_key(|f| (f.start, f.flow));
            for (i, flow) in own.iter().enumerate() {
                // At no time are more than `concurrency` flows of a host under way.
                let under_way = own[..i].iter().filter(|f| f.finish > Some(flow.start)).count();
                assert!(under_way < concurrency, "host {host}: {under_way} others when flow {i} starts");
            }
        }
    }
}

/// Two hosts, one packet each way: neither waits for the other.
#[test]
fn a_shuffle_of_two_hosts() {
    let traffic = "[[traffic]]\nkind = \"shuffle\"\nsize = 1460";
    let (outcome, records) = simulate(&plan(&scenario(2, traffic), &[("until", "flows-complete")]), 1);
    assert_eq!(fcts(&records), [crossing(1460), crossing(1460)]);
    assert_eq!(outcome.audit.injected.packets, 4, "a packet and an acknowledgement each way");
    assert_eq!(outcome.audit.hops, 8);
}
