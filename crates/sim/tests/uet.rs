//! Ultra Ethernet in whole networks: what is computed by hand, and beside uet-htsim, the
//! consortium's simulator, whose figures these tables have (defaults, seed 13). Rank programs are
//! beside ATLAHS, which runs them over its htsim with NSCC.

use crate::common::{File, Records, exact, simulate};
use millpond_core::Time;
use millpond_core::packet::Kind;
use millpond_sim::Outcome;

/// A fat tree of 16 hosts at 100 Gb/s with packets of 4,150 bytes on the wire, and the switches of
/// uet-htsim: a bandwidth-delay product of buffer beside the packet in service.
const TREE: &str = r#"
    name = "uet"
    duration = "20ms"
    until = "flows-complete"
    [topology]
    kind = "fat-tree"
    k = 4
    host-link = { rate = "100Gbps", delay = "1us" }
    fabric-link = { rate = "100Gbps", delay = "1us" }
    [host]
    mtu = 4126
    frame-overhead = 24
    stack-delay = "0us"
    [switch]
    buffer = { kind = "per-port", size = "174300B" }
    queue = { kind = "strict-priority" }
    overflow = { kind = "trim" }
    [switch.marking]
    kind = "red"
    at = "after-dequeue"
    min-threshold = "37350B"
    max-threshold = "145250B"
    max-probability = 1.0
    [transport]
    kind = "uet"
    [[traffic]]
    name = "m"
    kind = "flows"
    rows = [["0us", 0, 13, 4086]]
"#;

fn rows(flows: &[(u32, u32)], bytes: u64) -> String {
    let row = |(src, dst): &(u32, u32)| format!("[\"0us\", {src}, {dst}, {bytes}]");
    format!("[{}]", flows.iter().map(row).collect::<Vec<_>>().join(", "))
}

fn run(flows: &[(u32, u32)], bytes: u64, set: &[(&str, &str)]) -> (Outcome, Records) {
    let rows = rows(flows, bytes);
    let set = [&[("traffic.m.rows", rows.as_str())], set].concat();
    simulate(&exact(TREE, &set), 1)
}

/// When the sender of the first and of the last flow knows that all is there, in microseconds.
fn ends(records: &Records) -> (f64, f64) {
    let end = |flow: &millpond_results::FlowRecord| flow.sender_last.unwrap().as_us_f64();
    let all: Vec<f64> = records.flows.iter().map(end).collect();
    let (least, most) = (f64::INFINITY, 0.0);
    all.iter().fold((least, most), |(a, b), end| (a.min(*end), b.max(*end)))
}

const CONTROLS: [&str; 3] = ["nscc", "rccc", "both"];

#[test]
fn a_flow_alone_ends_to_the_picosecond_when_it_must() {
    // Links, bytes, the time by hand.
    for (dst, bytes, us) in [
        (1, 1_000, 4.18048),
        (1, 100_000, 12.47024),
        (2, 100_000, 17.14448),
        (13, 4_086, 14.02272),
        (13, 12_258, 14.68672),
        (13, 40_860, 17.01072),
    ] {
        for control in CONTROLS {
            let (outcome, records) = run(&[(0, dst)], bytes, &[("transport.uet-control", control)]);
            let end = records.flows[0].sender_last.unwrap();
            assert_eq!(end, Time::from_ps((us * 1e6 + 0.5) as u64), "{dst} {bytes} {control}");
            assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0));
        }
    }
    // 490 packets, and a rate of 99 % where receivers give credit.
    let (_, records) = run(&[(0, 13)], 2_000_000, &[]);
    assert_eq!(records.flows[0].sender_last, Some(Time::from_ps(176_199_520)));
}

/// By name: flows, bytes of each, what is set; the first and the last end beside uet-htsim's.
#[test]
fn a_table_is_as_uet_htsim_has_it() {
    let to_15 = |sources: &[u32]| sources.iter().map(|src| (*src, 15)).collect::<Vec<_>>();
    let eight: Vec<u32> = (0..8).collect();
    let fifteen: Vec<u32> = (0..15).collect();
    let cases = [
        ("2 x 200 kB, NSCC", to_15(&[0, 4]), 200_000, "nscc", 46.218),
        ("2 x 200 kB, RCCC", to_15(&[0, 4]), 200_000, "rccc", 46.213),
        ("4 x 500 kB, NSCC", to_15(&[0, 4, 8, 12]), 500_000, "nscc", 174.33),
        ("4 x 500 kB, RCCC", to_15(&[0, 4, 8, 12]), 500_000, "rccc", 174.00),
        ("8 x 1 MB, NSCC", to_15(&eight), 1_000_000, "nscc", 679.99),
        ("8 x 1 MB, RCCC", to_15(&eight), 1_000_000, "rccc", 665.28),
        ("8 x 1 MB, both", to_15(&eight), 1_000_000, "both", 665.27),
        ("15 x 2 MB, NSCC", to_15(&fifteen), 2_000_000, "nscc", 2478.53),
        ("15 x 2 MB, RCCC", to_15(&fifteen), 2_000_000, "rccc", 2464.44),
        ("1 to 4, NSCC", vec![(0, 4), (0, 8), (0, 12), (0, 15)], 500_000, "nscc", 175.83),
        ("both ways, NSCC", vec![(0, 8), (8, 0)], 1_000_000, "nscc", 95.237),
    ];
    let mut told = String::new();
    for (name, flows, bytes, control, last) in cases {
        let set = [("transport.uet-control", control), ("transport.uet-paths", "128")];
        let (outcome, records) = run(&flows, bytes, &set);
        assert_eq!(records.flows.len(), flows.len(), "{name}");
        let (first, end) = ends(&records);
        let off = end / last - 1.0;
        told += &format!(
            "{name}: {first:.2} to {end:.2}, theirs {last} ({:+.2} %), {} again, {} trimmed\n",
            100.0 * off,
            outcome.hosts.retransmitted,
            outcome.audit.trimmed.packets
        );
        assert!(off.abs() < 0.03, "{told}");
    }
    println!("{told}");
}

/// When each rank of a program on these hosts of the tree ended, in nanoseconds.
fn ends_of_ranks(name: &str, program: &str, hosts: &str) -> Vec<f64> {
    let file = File::new(name, program);
    let (network, _) = TREE.split_once("[[traffic]]").unwrap();
    let text = format!(
        "{network}[[traffic]]\nkind = \"goal\"\nfile = {:?}\neager = \"1B\"\n\
         placement = \"listed\"\nhosts = [{hosts}]\n",
        file.0.to_str().unwrap()
    );
    let set = [("transport.uet-control", "nscc"), ("transport.uet-paths", "128")];
    let (outcome, records) = simulate(&exact(&text, &set), 1);
    assert_eq!((outcome.hosts.retransmitted, outcome.unmatched.ranks.len()), (0, 0));
    let mut ranks = records.ranks;
    ranks.sort_by_key(|rank| rank.rank);
    ranks.iter().map(|rank| 1e3 * rank.ended.as_us_f64()).collect()
}

/// A ring all-reduce of four ranks in chunks of 1 MB. A step waits for the message of the step
/// before, and for the end of its send if that is asked for.
fn ring_of_four(waits_for_send: bool) -> String {
    let mut text = "num_ranks 4\n".to_string();
    for rank in 0..4 {
        let (next, before) = ((rank + 1) % 4, (rank + 3) % 4);
        text += &format!("rank {rank} {{\n");
        for step in 0..6 {
            text += &format!(
                "s{step}: send 1000000b to {next} tag {step}\n\
                 r{step}: recv 1000000b from {before} tag {step}\n"
            );
            if step > 0 {
                text += &format!("s{step} requires r{}\n", step - 1);
                text += &format!("r{step} requires r{}\n", step - 1);
            }
            if step > 0 && waits_for_send {
                text += &format!("s{step} requires s{}\n", step - 1);
            }
        }
        text += "}\n";
    }
    text
}

/// ATLAHS ends a send and its receive when the sender has the last acknowledgement, six links'
/// delays after the message. So its ring has that delay in each step.
#[test]
fn rank_programs_end_as_in_atlahs() {
    let pair = |name: &str, before: &str, after: &str| {
        let waits = if before.is_empty() { "" } else { "s requires c\n" };
        let goes_on = if after.is_empty() { "" } else { "d requires s\n" };
        let text = format!(
            "num_ranks 2\nrank 0 {{\n{before}s: send 1000000b to 1\n{waits}{after}{goes_on}}}\n\
             rank 1 {{\nrecv 1000000b from 0\n}}\n"
        );
        ends_of_ranks(name, &text, "\"0\", \"13\"")[0]
    };
    let ring = |name: &str, waits: bool| {
        let ends = ends_of_ranks(name, &ring_of_four(waits), "\"0\", \"4\", \"8\", \"12\"");
        ends.into_iter().fold(0.0, f64::max)
    };
    let mut last = 0.0;
    for (name, ours, theirs) in [
        ("atlahs-send", pair("atlahs-send", "", ""), 94_945.0),
        ("atlahs-before", pair("atlahs-before", "c: calc 50000\n", ""), 144_945.0),
        ("atlahs-both", pair("atlahs-both", "c: calc 50000\n", "d: calc 7000\n"), 151_945.0),
        ("atlahs-ring", ring("atlahs-ring", true), 571_437.0),
    ] {
        println!("{name}: {ours:.0}, theirs {theirs} ({:+.2} %)", 100.0 * (ours / theirs - 1.0));
        assert!((ours / theirs - 1.0).abs() < 0.03, "{name}: {ours}, theirs {theirs}");
        assert!(ours > last, "{name}: {ours} after {last}");
        last = ours;
    }
    // Without the delay in its first five steps.
    let free = ring("atlahs-free", false) + 5.0 * 6_000.0;
    println!("atlahs-free: {free:.0}");
    assert!((free / 571_437.0 - 1.0).abs() < 0.03, "{free}");
}

/// Sixteen hosts, each to the one eight further: the choice of paths is what differs.
#[test]
fn choices_of_paths_are_in_uet_htsims_order() {
    let flows: Vec<(u32, u32)> = (0..16).map(|src| (src, (src + 8) % 16)).collect();
    let last = |choice: &str, ack_bytes: &str| {
        let set = [("transport.uet-path-choice", choice), ("transport.uet-ack-bytes", ack_bytes)];
        ends(&run(&flows, 4_000_000, &set).1).1
    };
    let [oblivious, bitmap, mixed] = ["oblivious", "bitmap", "mixed"].map(|it| last(it, "16384B"));
    let reps = last("reps", "4000B");
    let told = format!("{oblivious:.1} {bitmap:.1} {mixed:.1} {reps:.1}");
    println!("{told}");
    // Theirs over seeds: 416 to 455, 364 to 386, 370 to 391, 352 to 356; 338.7 at least.
    assert!(oblivious > bitmap && oblivious > mixed && bitmap > reps && mixed > reps, "{told}");
    assert!((400.0..470.0).contains(&oblivious) && (338.7..365.0).contains(&reps), "{told}");
}

#[test]
fn packets_are_trimmed_and_bytes_are_conserved() {
    let flows: Vec<(u32, u32)> = (0..8).map(|src| (src, 15)).collect();
    let (outcome, records) = run(&flows, 500_000, &[("capture.pcap", "host15")]);
    assert!(outcome.audit.is_conserved() && outcome.audit.trimmed.packets > 50);
    assert_eq!(outcome.audit.dropped_total().packets, 0);
    let came = records.packets.iter().filter(|it| !it.outgoing).map(|it| it.packet);
    let short = came.filter(|it| it.kind() == Kind::UetData && it.payload == 0);
    let (count, sizes) = short.fold((0, 0), |(n, sum), it| (n + 1, sum + u64::from(it.size)));
    assert_eq!((count, sizes), (outcome.audit.trimmed.packets, 64 * count));
}

/// Where switches drop, they have five times the buffer, the timeout repairs, and SLEEK does so
/// sooner.
#[test]
fn sleek_repairs_what_switches_drop() {
    let flows: Vec<(u32, u32)> = (0..8).map(|src| (src, 15)).collect();
    let run_by = |sleek: &str| {
        let set = [
            ("switch.overflow.kind", "drop"),
            ("switch.buffer.size", "888100B"),
            ("transport.uet-sleek", sleek),
            ("transport.uet-paths", "128"),
        ];
        let (outcome, records) = run(&flows, 1_000_000, &set);
        assert!(outcome.audit.is_conserved() && records.flows.len() == 8);
        let dropped = outcome.audit.dropped_total().packets;
        (ends(&records).1, dropped, outcome.hosts.timeouts, outcome.hosts.retransmitted)
    };
    let (slow, quick) = (run_by("false"), run_by("true"));
    println!("{slow:?} {quick:?}");
    // Theirs: 964.0 with 166 packets sent again, and 715.2 with as many.
    assert!(slow.1 > 50 && quick.1 > 50 && quick.0 < slow.0, "{slow:?} {quick:?}");
}

#[test]
fn any_number_of_threads_gives_the_same_records() {
    let flows: Vec<(u32, u32)> = (0..16).map(|src| (src, (src + 5) % 16)).collect();
    for control in CONTROLS {
        let rows = rows(&flows, 300_000);
        let set = [("traffic.m.rows", rows.as_str()), ("transport.uet-control", control)];
        let plan = exact(TREE, &set);
        let one = simulate(&plan, 1).1.flows;
        assert_eq!(one.len(), 16);
        for threads in [2, 4] {
            assert!(simulate(&plan, threads).1.flows == one, "{control} {threads}");
        }
    }
}

/// Switches drop PULLs as anything else. Their connections end all the same: a sender that begs for
/// credit hears again how much it has.
#[test]
fn connections_outlive_lost_credit() {
    let text = include_str!("../../../scenarios/enable/trimming.toml");
    let scenario = millpond_scenario::Scenario::parse("trimming.toml", text).unwrap();
    let credit = [("transport.uet-control".to_string(), "rccc".to_string())];
    for seed in [2, 4, 5, 7] {
        let plan = scenario.plan(Some("drop"), &credit, Some(seed)).unwrap();
        let (outcome, records) = simulate(&plan, 1);
        assert!(outcome.audit.dropped_total().packets > 1_000, "seed {seed}");
        let open = records.flows.iter().filter(|flow| flow.finish.is_none()).count();
        assert_eq!((open, records.flows.len()), (0, 192), "seed {seed}");
    }
}

/// As the tree above, and a single switch of so many hosts with the same queues.
fn single_switch(hosts: u32, set: &[(&str, &str)], traffic: &str) -> (Outcome, Records) {
    let tree = "kind = \"fat-tree\"\n    k = 4\n";
    assert!(TREE.contains(tree));
    let text = TREE.replace(tree, &format!("kind = \"single-switch\"\n    hosts = {hosts}\n"));
    let text = text.replace("    fabric-link = { rate = \"100Gbps\", delay = \"1us\" }\n", "");
    let (network, _) = text.split_once("[[traffic]]").unwrap();
    simulate(&exact(&format!("{network}[[traffic]]\n{traffic}"), set), 1)
}

/// The number of requests to send and of probes.
fn probes(outcome: &Outcome) -> u64 {
    outcome.counters.get("uet", "probes")
}

/// A message after the last one was acknowledged finds no credit: its sender requests some. Without
/// a loss it never waits for a timeout, so each round takes microseconds.
#[test]
fn lasting_connections_go_on_when_their_credit_is_used_up() {
    let barriers = "name = \"c\"\nkind = \"collective\"\nop = \"barrier\"\nrepeat = 50\n";
    for control in CONTROLS {
        for gap in ["0us", "10us", "1ms"] {
            let traffic = format!("{barriers}gap = \"{gap}\"\n");
            let set = [("transport.uet-control", control), ("duration", "1s")];
            let (outcome, records) = single_switch(2, &set, &traffic);
            let what = format!("{control} {gap}: {:?}", outcome.standstill);
            assert_eq!((records.collectives.len(), outcome.hosts.timeouts), (50, 0), "{what}");
            let took =
                records.collectives.iter().map(|it| it.end.unwrap().saturating_sub(it.begin));
            assert!(took.max().unwrap() < Time::from_us(15), "{what}");
        }
        let calls = "name = \"r\"\nkind = \"rpc\"\nresponse = 20000\nstop = \"1ms\"\n";
        let (outcome, records) = single_switch(2, &[("transport.uet-control", control)], calls);
        assert_eq!((&outcome.standstill, outcome.hosts.timeouts), (&None, 0), "{control}");
        assert!(records.flows.len() > 100, "{control}: {} calls", records.flows.len());
    }
}

/// The bounds by hand: the bytes on the wire of all responses over the last link, and a round trip:
/// 400 x 101,600 B and 1,000 x 20,320 B at 100 Gb/s. uet-htsim on one switch ends at 3,449 and
/// 1,992 us. A sender that probed each round trip would send 400,000 probes.
#[test]
fn starved_senders_do_not_fill_the_link_with_requests() {
    for (degree, response, bound, theirs) in
        [(400, 100_000, 3_254.0, 3_448.6), (1_000, 20_000, 1_626.0, 1_992.2)]
    {
        let traffic = format!(
            "name = \"i\"\nkind = \"incast\"\ndegree = {degree}\nresponse = {response}\n\
             receiver = {degree}\ncount = 1\n"
        );
        let set = [("transport.uet-control", "rccc"), ("duration", "100ms")];
        let (outcome, records) = single_switch(degree + 1, &set, &traffic);
        let end = ends(&records).1;
        println!("{degree}: {end:.1} us, bound {bound}, {} probes", probes(&outcome));
        assert_eq!(records.flows.len() as u32, degree);
        assert!(end > bound && end < theirs, "{degree}: {end}");
        assert!(probes(&outcome) < 25 * u64::from(degree), "{}", probes(&outcome));
    }
}

/// The short flows begin at 50 us beside a long one. Speculative credit covers them, so they ask
/// for a packet's credit alone until the first answer, and then have to ask for what was trimmed.
/// uet-htsim's means over seeds 1 to 16 of the first and of the second end.
#[test]
fn late_short_flows_end_as_in_uet_htsim() {
    for (control, theirs) in [("rccc", (148.1, 156.6)), ("both", (143.7, 152.2))] {
        let mut sum = (0.0, 0.0);
        for seed in 1..=16 {
            let rows =
                "[[\"0us\", 0, 15, 2000000], [\"50us\", 4, 15, 200000], [\"50us\", 8, 15, 200000]]";
            let seed = seed.to_string();
            let set =
                [("traffic.m.rows", rows), ("transport.uet-control", control), ("seed", &seed)];
            let (_, records) = simulate(&exact(TREE, &set), 1);
            let short = records.flows.iter().filter(|flow| flow.bytes == 200_000);
            let mut ends: Vec<f64> =
                short.map(|flow| flow.sender_last.unwrap().as_us_f64()).collect();
            ends.sort_by(f64::total_cmp);
            sum = (sum.0 + ends[0] / 16.0, sum.1 + ends[1] / 16.0);
        }
        println!("{control}: {sum:.1?}, theirs {theirs:?}");
        assert!((sum.0 / theirs.0 - 1.0).abs() < 0.03, "{control}: {sum:?}");
        assert!((sum.1 / theirs.1 - 1.0).abs() < 0.03, "{control}: {sum:?}");
    }
}

/// Hosts 1, 2 and 3 send to host 0, and hosts 2 and 3 also to nine hosts each, with 2 MB a flow.
/// Credit for a sender that shares its NIC would be unused: it asks for its share alone. The end of
/// the flow from host 1 is uet-htsim's (`outcast_incast.cm`).
#[test]
fn a_sender_that_shares_its_nic_asks_for_its_share_of_credit() {
    let mut flows = vec![(1, 0), (2, 0), (3, 0)];
    flows.extend((4..13).map(|dst| (2, dst)));
    flows.extend((13..22).map(|dst| (3, dst)));
    for (control, theirs) in [("nscc", 208.02), ("rccc", 235.07), ("both", 200.11)] {
        let set = [("topology.k", "8"), ("transport.uet-control", control)];
        let (_, records) = run(&flows, 2_000_000, &set);
        let first = records.flows.iter().find(|flow| flow.src == 1).unwrap();
        let end = first.sender_last.unwrap().as_us_f64();
        println!("{control}: {end:.1}, theirs {theirs} ({:+.1} %)", 100.0 * (end / theirs - 1.0));
        assert!((end / theirs - 1.0).abs() < 0.05, "{control}: {end}, theirs {theirs}");
    }
}

/// All hosts of a tree send 100 kB to host 0. uet-htsim's last end.
#[test]
fn large_incasts_with_credit_end_as_in_uet_htsim() {
    for (k, hosts, control, theirs) in [
        ("8", 128, "rccc", 1_098.2),
        ("8", 128, "both", 1_083.1),
        ("16", 1_024, "rccc", 8_901.7),
        ("16", 1_024, "both", 8_804.9),
    ] {
        let flows: Vec<(u32, u32)> = (1..hosts).map(|src| (src, 0)).collect();
        let set = [("topology.k", k), ("transport.uet-control", control)];
        let (_, records) = run(&flows, 100_000, &set);
        assert_eq!(records.flows.len() as u32, hosts - 1, "{hosts} {control}");
        let end = ends(&records).1;
        let off = 100.0 * (end / theirs - 1.0);
        println!("{hosts} {control}: {end:.0}, theirs {theirs} ({off:+.1} %)");
        assert!(off.abs() < 5.0, "{hosts} {control}: {end}, theirs {theirs}");
    }
}
