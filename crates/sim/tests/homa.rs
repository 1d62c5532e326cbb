//! Homa in whole networks: a message alone, the order of service, overcommitment, losses, slowdown,
//! and the same bytes for any threads and partitions.

use crate::common::{assert_nothing_changes, exact, fcts, plan, simulate};
use millpond_core::Time;
use millpond_core::packet::Kind;
use millpond_results::FlowRecord;
use proptest::prelude::*;

/// Hosts behind one switch, which serves by priority.
const STAR: &str = r#"
    name = "homa-star"
    duration = "20ms"
    [topology]
    kind = "single-switch"
    hosts = 8
    host-link = { rate = "10Gbps", delay = "500ns" }
    [switch]
    buffer = { kind = "per-port", size = "1MB" }
    queue = { kind = "strict-priority" }
    [transport]
    kind = "homa"
    [[traffic]]
    name = "m"
    kind = "flows"
    rows = [["0us", 0, 1, 1460]]
"#;

fn rows(list: &[(&str, u32, u32, u64)]) -> String {
    let row = |(at, src, dst, bytes): &(&str, u32, u32, u64)| {
        format!("[\"{at}\", {src}, {dst}, {bytes}]")
    };
    format!("[{}]", list.iter().map(row).collect::<Vec<_>>().join(", "))
}

/// A message alone takes the time that is its lower bound, granted or not, to the picosecond: the
/// grants are always ahead of the link.
#[test]
fn a_message_alone_takes_the_ideal_time() {
    for bytes in [1, 1_459, 1_460, 1_461, 10_000, 14_600, 14_601, 100_000, 1_000_000] {
        let rows = rows(&[("3us", 0, 1, bytes)]);
        let (outcome, records) = simulate(&exact(STAR, &[("traffic.m.rows", &rows)]), 1);
        let flow = &records.flows[0];
        assert_eq!(flow.fct(), Some(flow.ideal), "{bytes}");
        assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0));
    }
    // By hand: 10 packets of 1.2 us on the first link, one more on the second; 1 us of delays.
    let plan = exact(STAR, &[("traffic.m.rows", r#"[["0us", 0, 1, 14600]]"#)]);
    assert_eq!(simulate(&plan, 1).1.flows[0].fct(), Some(Time::from_ns(11 * 1_200 + 1_000)));
}

/// A host sends its shortest message first: one that comes later waits for what is in the NIC, two
/// packets, and for nothing else.
#[test]
fn a_short_message_overtakes_a_long_one_of_its_host() {
    let list = rows(&[("0us", 0, 1, 500_000), ("50us", 0, 2, 4_380)]);
    let (_, records) =
        simulate(&exact(STAR, &[("traffic.m.rows", &list), ("capture.pcap", "host0")]), 1);
    let short = records.flows.iter().find(|flow| flow.dst == 2).expect("it is over");
    let late = short.fct().expect("it is over") - short.ideal;
    assert!(late <= Time::from_ns(2 * 1_200), "{late:?}");
    // The NIC is never without a packet while there is one: both take as long as one of their sum.
    let long = records.flows.iter().find(|flow| flow.dst == 1).expect("it is over");
    assert_eq!(long.fct(), Some(long.ideal + Time::from_ns(3 * 1_200)));
}

/// Five messages for one host end in the order of their sizes, though they begin together and the
/// largest first.
#[test]
fn a_host_is_sent_the_shortest_messages_first() {
    let sizes = [300_000u64, 240_000, 180_000, 120_000, 60_000];
    let list: Vec<_> = sizes.iter().zip(1..).map(|(bytes, src)| ("0us", src, 0, *bytes)).collect();
    let (outcome, records) = simulate(&exact(STAR, &[("traffic.m.rows", &rows(&list))]), 1);
    let fcts = fcts(&records);
    assert!(fcts.is_sorted_by(|a, b| a > b), "{fcts:?}");
    assert_eq!((outcome.audit.dropped_total().packets, outcome.hosts.retransmitted), (0, 0));
    // SRPT: the shortest waits for what all send blindly, at most, and the last for the whole sum.
    let link = |bytes: u64| Time::from_ps(bytes.div_ceil(1_460) * 1_500 * 800);
    let blind = link(5 * 10_220);
    assert!(fcts[4] <= link(60_000) + blind + Time::from_us(3), "{:?}", fcts[4]);
    assert!(fcts[0] <= link(900_000) + Time::from_us(10), "{:?}", fcts[0]);
}

/// The shortest message's sender falls silent. With one message granted at a time the link waits
/// for it; with four the others go on.
#[test]
fn overcommitment_keeps_the_link_full_when_a_sender_is_silent() {
    let list = rows(&[("0us", 1, 0, 200_000), ("0us", 2, 0, 900_000), ("0us", 3, 0, 900_000)]);
    let text = format!(
        "{STAR}\n[[failure]]\nlink = [\"host1\", \"switch0\"]\nat = \"20us\"\nuntil = \"2500us\"\n"
    );
    let of = |degree: &str| {
        let set = [("traffic.m.rows", &list[..]), ("transport.homa-overcommitment", degree)];
        let (_, records) = simulate(&exact(&text, &set), 1);
        fcts(&records)
    };
    let (four, one) = (of("4"), of("1"));
    // 1.8 MB and what the silent one had sent: 1.5 ms of the link.
    assert!(four[1].max(four[2]) < Time::from_us(1_540), "{four:?}");
    assert!(one[1].min(one[2]) > Time::from_us(2_000), "{one:?}");
}

/// Packets sent blindly meet in one queue, which has room for them: nothing is lost, and the last
/// message ends when all have crossed the link.
#[test]
fn an_incast_of_unscheduled_bytes_is_lossless_with_buffer() {
    let list: Vec<_> = (1..8).map(|src| ("0us", src, 0, 10_220)).collect();
    let (outcome, records) = simulate(&exact(STAR, &[("traffic.m.rows", &rows(&list))]), 1);
    assert_eq!((outcome.audit.dropped_total().packets, outcome.hosts.retransmitted), (0, 0));
    let last = fcts(&records).into_iter().max();
    assert_eq!(last, Some(Time::from_ns((1 + 7 * 7) * 1_200 + 1_000)));
}

/// A receiver asks for what it has granted, and the sender has a shorter message for somebody else:
/// BUSY says so, and nothing is sent twice.
#[test]
fn a_busy_sender_says_so() {
    let list = rows(&[("0us", 1, 0, 300_000), ("0us", 1, 2, 290_000)]);
    let set = [
        ("traffic.m.rows", &list[..]),
        ("transport.homa-resend-interval", "50us"),
        // Twice the round trip's worth: the sender begins both messages.
        ("transport.homa-rtt-bytes", "10KB"),
    ];
    let (outcome, records) = simulate(&exact(STAR, &set), 1);
    let homa = |name| outcome.counters.get("homa", name);
    // The longer one waits some 230 us for the shorter one.
    assert_eq!((homa("resends"), homa("busy")), (4, 4));
    assert_eq!((outcome.hosts.retransmitted, homa("pings")), (0, 0));
    let fcts = fcts(&records);
    assert!(fcts[1] < fcts[0] && fcts[0] < Time::from_us(500), "{fcts:?}");
}

/// An incast where the queue holds two messages: what does not fit is asked for after the interval.
#[test]
fn what_a_short_queue_drops_costs_a_resend_interval() {
    let list: Vec<_> = (1..8).map(|src| ("0us", src, 0, 10_220)).collect();
    let set = [("traffic.m.rows", &rows(&list)[..]), ("switch.buffer.size", "20KB")];
    let (outcome, records) = simulate(&exact(STAR, &set), 1);
    let dropped = outcome.audit.dropped_total().packets;
    assert!(dropped > 20, "{dropped}");
    assert!(u64::from(outcome.hosts.retransmitted as u32) >= dropped);
    let slow = fcts(&records).into_iter().filter(|fct| *fct >= Time::from_ms(2)).count();
    assert!(slow >= 4, "{slow}");
}

/// A fabric, with bursts beside messages of all sizes.
const FABRIC: &str = r#"
    name = "homa-fabric"
    duration = "3ms"
    seed = 5
    [topology]
    kind = "leaf-spine"
    leaves = 3
    spines = 2
    hosts-per-leaf = 5
    host-link = { rate = "10Gbps", delay = "500ns" }
    fabric-link = { rate = "40Gbps", delay = "500ns" }
    [switch]
    buffer = { kind = "per-port", size = "300KB" }
    queue = { kind = "strict-priority" }
    path = { kind = "spray" }
    [transport]
    kind = "homa"
    [capture]
    connections = { every = "20us", max = 20 }
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 14
    response = "20KB"
    period = "250us"
    request = "none"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "cache-follower"
    load = 0.5
    load-base = "host-links"
"#;

const SHALLOW: (&str, &str) = ("switch.buffer.size", "30KB");
const SOON: (&str, &str) = ("transport.homa-resend-interval", "200us");
const RPCS: (&str, &str) = (
    "traffic.background",
    r#"{ kind = "rpc", clients = 5, servers = 5, request = 3000, response = 40000 }"#,
);
const PFC: [(&str, &str); 2] =
    [("switch.pause.kind", "pfc"), ("switch.buffer", r#"{ kind = "pools", size = "1MB" }"#)];

#[test]
fn threads_partitions_and_ports_change_nothing() {
    let pcap = ("capture.pcap", "host3,leaf0:5");
    let sets: [&[(&str, &str)]; 6] = [
        &[],
        &[SHALLOW, SOON, pcap],
        &[SHALLOW, SOON, ("host.nic.buffer", r#"{ kind = "per-port", size = "9KB" }"#)],
        // NICs that can be paused learn late when a packet leaves.
        &[PFC[0], PFC[1]],
        &[SHALLOW, SOON, ("traffic.incast.request", "100")],
        // Beside TCP, and behind cores that are slow.
        &[
            ("traffic.background.transport", r#"{ kind = "dctcp" }"#),
            ("host.receive-cpu", r#"{ per-packet = "1us", ring = 64 }"#),
            SOON,
        ],
    ];
    for set in sets {
        assert_nothing_changes(FABRIC, set, &[2, 3]);
    }
}

/// The runs compared above have every kind of packet.
#[test]
fn every_kind_of_packet_is_there() {
    let set = [
        SHALLOW,
        ("transport.homa-resend-interval", "20us"),
        ("capture.pcap", "host0,host3,host7,host12"),
    ];
    let (outcome, records) = simulate(&plan(FABRIC, &set), 2);
    for kind in [
        Kind::HomaData,
        Kind::Grant,
        Kind::Resend,
        Kind::Busy,
        Kind::Done,
        Kind::Ping,
        Kind::Unknown,
    ] {
        let count = records.packets.iter().filter(|p| p.packet.kind() == kind).count();
        println!("{kind:?} {count}");
        assert!(count > 0 || kind == Kind::Busy, "{kind:?}");
    }
    assert!(records.packets.iter().all(|p| p.packet.kind().protocol().name == "homa"));
    let homa = |name| outcome.counters.get("homa", name);
    println!("{:?}", ["grants", "resends", "busy", "pings", "unknown", "aborted"].map(homa));
    assert!(homa("grants") > 0 && homa("resends") > 0 && homa("aborted") == 0);
    // Grants and what else has no payload have the highest priority; data has all of them.
    let data = records.packets.iter().filter(|p| p.packet.kind() == Kind::HomaData);
    let mut priorities: Vec<u8> = data.map(|p| p.packet.priority()).collect();
    priorities.sort_unstable();
    priorities.dedup();
    println!("{priorities:?}");
    assert!(priorities.len() >= 6 && priorities.contains(&0));
    let control = records.packets.iter().filter(|p| !p.packet.is_data());
    assert!(control.clone().count() > 0 && control.into_iter().all(|p| p.packet.priority() == 7));
    // A NIC holds two packets of messages at most.
    assert!(outcome.hosts.completed > 50);
}

/// Whatever each connection is for: requests and responses, closed loops, questions and answers,
/// and all with each other.
#[test]
fn every_traffic_is_messages() {
    let probe = r#"{ kind = "probe", size = 1000, period = "50us" }"#;
    let shuffle = r#"{ kind = "shuffle", size = 30000, concurrency = 2 }"#;
    for traffic in [RPCS.1, probe, shuffle] {
        for extra in [&[][..], &[SHALLOW, SOON]] {
            let set =
                [&[("traffic.incast.request", "100"), ("traffic.background", traffic)][..], extra]
                    .concat();
            let set = [&set[..], &[("traffic.background.name", "background")]].concat();
            let (outcome, records) = simulate(&plan(FABRIC, &set), 2);
            let open = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
            println!("{traffic} {}: {} done, {open} open", extra.len(), outcome.hosts.completed);
            assert!(
                outcome.hosts.completed > 100 && open * 4 < records.flows.len(),
                "{traffic}: {open} open"
            );
            assert!(traffic != probe || records.rtts.len() > 100);
        }
    }
}

/// Without losses nothing is asked for again; and a connection that is over leaves nothing behind.
#[test]
fn nothing_is_asked_for_that_is_not_lost() {
    let set = [
        ("until", "flows-complete"),
        ("traffic.background.stop", "1ms"),
        ("traffic.incast.stop", "1ms"),
        ("duration", "80ms"),
    ];
    let (outcome, records) = simulate(&plan(FABRIC, &set), 2);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    assert_eq!((outcome.hosts.retransmitted, outcome.hosts.active), (0, 0));
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
    assert!(outcome.simulated < Time::from_ms(40), "{:?}", outcome.simulated);
}

/// A link that never comes back: both ends give up, and say so.
#[test]
fn a_dead_peer_is_given_up() {
    let list = rows(&[("0us", 1, 0, 200_000), ("0us", 2, 0, 50_000)]);
    let text = format!("{STAR}\n[[failure]]\nlink = [\"host1\", \"switch0\"]\nat = \"20us\"\n");
    let set = [("traffic.m.rows", &list[..]), ("duration", "100ms")];
    let (outcome, records) = simulate(&exact(&text, &set), 1);
    assert_eq!(outcome.counters.get("homa", "aborted"), 2);
    let done = |src: u32| {
        records.flows.iter().find(|flow| flow.src == src).expect("it has a record").finish.is_some()
    };
    assert!(!done(1) && done(2));
}

/// A host that takes packets from its ring more slowly than they come loses what was sent blindly,
/// and the tail is multiples of the RESEND interval (Backdraft, NSDI 2022, figure 4).
#[test]
fn a_slow_receiver_costs_resend_intervals() {
    let p99 = |per_packet: &str| {
        let cpu = format!("{{ per-packet = \"{per_packet}\", ring = 64 }}");
        let list: Vec<_> = (1..8).flat_map(|src| (0..20).map(move |n| (n * 100, src))).collect();
        let rows = list
            .iter()
            .map(|(at, src)| format!("[\"{at}us\", {src}, 0, 4380]"))
            .collect::<Vec<_>>()
            .join(", ");
        let set = [("traffic.m.rows", &format!("[{rows}]")[..]), ("host.receive-cpu", &cpu)];
        let (outcome, records) = simulate(&plan(STAR, &set), 1);
        let mut fcts = fcts(&records);
        fcts.sort_unstable();
        (fcts[fcts.len() * 99 / 100], outcome.audit.dropped_total().packets)
    };
    let (fast, slow) = (p99("200ns"), p99("6us"));
    println!("{fast:?} {slow:?}");
    assert_eq!(fast.1, 0);
    assert!(slow.1 > 0 && slow.0 >= Time::from_ms(2) && slow.0.as_ps() > 20 * fast.0.as_ps());
}

/// Messages below 10 KB at 80 % load beside DCTCP's: slowdowns at p50 and p99.
#[test]
fn short_messages_are_far_faster_than_dctcps() {
    let parts: Vec<&str> = FABRIC.split("[[traffic]]").collect();
    let background = format!("{}[[traffic]]{}", parts[0], parts[2]);
    let of = |kind: &str| {
        let set = [
            ("transport.kind", kind),
            ("traffic.background.load", "0.8"),
            ("switch.marking", r#"{ kind = "ecn", threshold-packets = 65 }"#),
            ("duration", "400ms"),
            ("until", "flows-complete"),
            ("traffic.background.stop", "12ms"),
            ("traffic.background.sizes", "hadoop"),
        ];
        let (_, records) = simulate(&plan(&background, &set), 2);
        let is_counted = |flow: &&FlowRecord| flow.bytes <= 10_000;
        let mut slowdowns: Vec<f64> = records
            .flows
            .iter()
            .filter(is_counted)
            .map(|flow| flow.slowdown().unwrap_or(f64::MAX))
            .collect();
        slowdowns.sort_by(f64::total_cmp);
        let at = |share: f64| slowdowns[((slowdowns.len() - 1) as f64 * share) as usize];
        println!("{kind}: {} messages, p50 {:.2}, p99 {:.2}", slowdowns.len(), at(0.5), at(0.99));
        (at(0.5), at(0.99))
    };
    let (homa, dctcp) = (of("homa"), of("dctcp"));
    assert!(homa.0 * 2.0 < dctcp.0 && homa.1 * 3.0 < dctcp.1, "{homa:?} {dctcp:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever share of packets of a link is lost, in either direction: all messages arrive.
    #[test]
    fn random_losses_are_repaired(seed in 0..1000u32, percent in 1..30u32, bytes in 1..60_000u64) {
        let text = format!(
            "{STAR}\n[[failure]]\nlink = [\"host0\", \"switch0\"]\n\
             at = \"0us\"\nuntil = \"10ms\"\nloss = {}\n",
            f64::from(percent) / 100.0
        );
        let list: Vec<_> = (1..8).map(|src| ("0us", src, 0, bytes * u64::from(src))).collect();
        let set = [
            ("traffic.m.rows", &rows(&list)[..]),
            ("seed", &seed.to_string()),
            ("duration", "60ms"),
            ("transport.homa-resend-interval", "300us"),
        ];
        let (outcome, records) = simulate(&plan(&text, &set), 1);
        prop_assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
        prop_assert!(outcome.audit.dropped_total().packets == 0 || outcome.hosts.timeouts > 0);
    }
}
