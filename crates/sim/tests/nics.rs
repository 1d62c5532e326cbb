//! Hosts with several NICs: goodput over both, subflows and flowcells over all, ways of rails, and
//! moving to another NIC when a link fails.

use crate::common::{Records, assert_nothing_changes, exact, simulate};
use millpond_core::Rate;
use millpond_core::Time;
use millpond_core::counters::DropReason;

/// Queue pairs that send at line rate, as in `collectives.rs`.
const PAIRS: &str = "[host]\nmtu = 4040\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"100MB\" }\nmarking = { kind = \"none\" }\n\
    [transport]\nkind = \"dcqcn\"\n[rdma]\nack-interval = 1000000\n";

/// Two hosts, each with this many links to switches of their own.
fn two_hosts(nics: usize) -> String {
    let switches: Vec<String> = (0..nics).map(|n| format!("{{ name = \"tor{n}\" }}")).collect();
    let link = |host: usize, n: usize| {
        format!("{{ a = \"host{host}\", b = \"tor{n}\", rate = \"100Gbps\", delay = \"1us\" }}")
    };
    let links: Vec<String> =
        (0..2).flat_map(|host| (0..nics).map(move |n| link(host, n))).collect();
    format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"file\"\n\
         [topology.graph]\nhosts = 2\nswitches = [{}]\nlinks = [{}]\n",
        switches.join(", "),
        links.join(", ")
    )
}

fn ring(nics: usize) -> Time {
    let text = format!(
        "{}{PAIRS}[[traffic]]\nkind = \"collective\"\nsize = \"64MB\"\nchannels = 2\n",
        two_hosts(nics)
    );
    let plan = exact(&text, &[("host.nic.choice.kind", "rail")]);
    let records = simulate(&plan, 1).1;
    records.collectives[0].time().expect("the round is over")
}

/// Each channel of a ring has a NIC of its own: the serialisation takes half of the time.
#[test]
fn two_nics_carry_twice_the_goodput_of_one() {
    let (one, two) = (ring(1), ring(2));
    let ratio = one.as_us_f64() / two.as_us_f64();
    assert!((1.98..=2.0).contains(&ratio), "{one:?} and {two:?}: {ratio}");
}

/// The time of an all-reduce among eight servers with a NIC on each of four rails.
fn on_four_rails(keys: &str) -> Time {
    let text = format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"rail-optimised\"\n\
         segments = 1\nservers-per-segment = 8\nrails = 4\nspines = 2\n\
         host-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         fabric-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n{PAIRS}\
         [[traffic]]\nkind = \"collective\"\n{keys}\n"
    );
    let records = simulate(&exact(&text, &[("host.nic.choice.kind", "rail")]), 1).1;
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
    records.collectives[0].time().expect("the round is over")
}

/// Channel c of any algorithm has NIC c. The difference of two sizes leaves the delays out.
#[test]
fn four_channels_take_a_quarter_of_the_bandwidth_time() {
    for algorithm in ["halving-doubling", "ring", "recursive-doubling", "double-binary-tree"] {
        let bandwidth_time = |channels: u32| {
            let time = |size: &str| {
                let keys = format!("algorithm = \"{algorithm}\"\nsize = \"{size}\"");
                on_four_rails(&format!("{keys}\nchannels = {channels}")).as_us_f64()
            };
            time("12MB") - time("2MB")
        };
        let (one, four) = (bandwidth_time(1), bandwidth_time(4));
        assert!((0.98..=1.02).contains(&(4.0 * four / one)), "{algorithm}: {one} and {four}");
    }
}

/// A segment of four servers with four accelerators each, which a ring visits in this order.
fn rings(order: &[String]) -> Records {
    let mut text = format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"rail-optimised\"\n\
         segments = 1\nservers-per-segment = 4\nrails = 4\nspines = 2\ninner-switch = true\n\
         host-link.rate = \"100Gbps\"\nfabric-link.rate = \"100Gbps\"\n{PAIRS}\
         [capture]\npcap = [\"spine0\", \"spine1\"]\n"
    );
    for (number, hosts) in order.iter().enumerate() {
        text += &format!(
            "[[traffic]]\nname = \"ring{number}\"\nkind = \"collective\"\nsize = \"1MB\"\n\
             placement = \"listed\"\nhosts = [{hosts}]\n"
        );
    }
    simulate(&exact(&text, &[]), 1).1
}

/// Rings of accelerators with one number in their servers use the leaf of that rail alone. A ring
/// that goes server by server crosses the spines once a server.
#[test]
fn rings_on_their_rails_pass_no_spine() {
    let rail = |rail: u32| {
        let hosts: Vec<String> =
            (0..4).map(|server| format!("\"{}\"", server * 4 + rail)).collect();
        hosts.join(", ")
    };
    let on_rails = rings(&[0, 1, 2, 3].map(rail));
    assert_eq!(on_rails.collectives.len(), 4);
    assert!(on_rails.packets.is_empty(), "{} packets pass spines", on_rails.packets.len());
    let by_server = rings(&["\"0..15\"".to_string()]);
    let crossing: std::collections::BTreeSet<_> =
        by_server.packets.iter().map(|record| (record.packet.src, record.packet.dst)).collect();
    // From the last accelerator of a server to the first of the next, and the answers.
    let expected = [(3, 4), (4, 3), (7, 8), (8, 7), (11, 12), (12, 11), (15, 0), (0, 15)];
    assert_eq!(crossing, expected.into_iter().collect());
}

const DUAL_TOR: &str = "duration = \"100ms\"\nuntil = \"flows-complete\"\n[topology]\n\
    kind = \"dual-tor\"\npairs = 2\nhosts-per-pair = 4\nspines = 2\n\
    host-link = { rate = \"100Gbps\", delay = \"1us\" }\n\
    fabric-link = { rate = \"100Gbps\", delay = \"1us\" }\n\
    [transport]\nkind = \"dctcp\"\nmin-rto = \"1ms\"\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"2MB\" }\n\
    marking = { kind = \"ecn\", threshold-packets = 65 }\n\
    [[traffic]]\nkind = \"shuffle\"\nsize = \"2MB\"\nconcurrency = 4\n";

const FAILURE: &str = "[[failure]]\nlink = [\"host0\", \"tor1\"]\nat = \"100us\"\n\
    detect = \"20us\"\nconverge = \"200us\"\n";

#[test]
fn flows_move_to_the_other_nic_when_a_link_fails() {
    for (planes, choice) in [("false", "hash"), ("false", "rail"), ("true", "plane")] {
        let set = [("topology.two-planes", planes), ("host.nic.choice.kind", choice)];
        let (outcome, records) = simulate(&exact(&format!("{DUAL_TOR}{FAILURE}"), &set), 1);
        assert_eq!(records.flows.len(), 56, "{choice}");
        assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "{choice}");
        // Lost is what is sent over the link until both ends know: the host for 20 us, the others
        // for 200 us, at 100 Gb/s and packets of 1500 bytes.
        let lost = outcome.audit.dropped[DropReason::LinkDown as usize].packets;
        assert!((1..=2_000).contains(&lost), "{choice}: {lost}");
        // The last loss is when the routes have changed: later flows lose nothing.
        let late = |flow: &&millpond_results::FlowRecord| flow.start > Time::from_us(310);
        assert!(records.flows.iter().any(|flow| late(&flow)));
        assert!(records.flows.iter().filter(late).all(|flow| flow.timeouts == 0), "{choice}");
    }
}

/// Without `converge` the other hosts never learn of the failure, and the flows to that NIC hang.
#[test]
fn flows_hang_if_nobody_learns_of_the_failure() {
    let set = [("host.nic.choice.kind", "hash")];
    let never = FAILURE.replace("\"200us\"", "\"never\"");
    let records = simulate(&exact(&format!("{DUAL_TOR}{never}"), &set), 1).1;
    assert!(records.flows.iter().any(|flow| flow.finish.is_none()));
}

#[test]
fn connections_return_when_the_link_is_back() {
    let repaired = FAILURE.replace("at = \"100us\"", "at = \"100us\"\nuntil = \"200us\"");
    let taps = "[capture]\npcap = [\"host0:1\"]\n";
    let text = format!("{DUAL_TOR}{repaired}{taps}").replace("2MB\"\nconc", "4MB\"\nconc");
    let (_, records) = simulate(&exact(&text, &[]), 1);
    let sent = |from: u64, to: u64| {
        let within = |at: Time| at >= Time::from_us(from) && at < Time::from_us(to);
        records.packets.iter().filter(|record| within(record.at)).count()
    };
    assert!(sent(0, 100) > 1_000, "it carries flows");
    assert_eq!(sent(125, 195), 0, "host0 has moved its connections");
    assert!(sent(400, 100_000) > 1_000, "it carries flows again");
}

/// Threads, partitions and ports change nothing, with flows that move.
#[test]
fn moving_is_the_same_in_every_partition() {
    for transport in ["dctcp", "dcqcn"] {
        let text = format!("{DUAL_TOR}{FAILURE}").replace("min-rto = \"1ms\"\n", "");
        let set = [("transport.kind", transport), ("topology.two-planes", "true")];
        assert_nothing_changes(&text, &set, &[2]);
    }
    assert_nothing_changes(
        "duration = \"2ms\"\n[topology]\nkind = \"rail-optimised\"\nsegments = 2\n\
         servers-per-segment = 2\nrails = 2\nspines = 2\n[transport]\nkind = \"dctcp\"\n\
         [capture]\nqueues = { every = \"10us\", ports = [\"host0\", \"host3:1\", \"leaf0\"] }\n\
         [[traffic]]\nkind = \"poisson\"\nsizes = \"web-search\"\nload = 0.5\n\
         [[traffic]]\nkind = \"rpc\"\n[[traffic]]\nkind = \"probe\"\n\
         [[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"300us\"\nuntil = \"900us\"\n",
        &[],
        &[2],
    );
}

/// Connections of every kind open at the instants at which routes and NICs change, and between the
/// change and the window's edge: an end that reads of its opening late has missed nothing.
#[test]
fn connections_that_open_beside_a_change_are_the_same_in_every_partition() {
    let mut text = "duration = \"400us\"\n[topology]\nkind = \"dual-tor\"\npairs = 3\n\
         hosts-per-pair = 8\nspines = 2\nhost-link = { delay = \"500ns\" }\n\
         [[traffic]]\nkind = \"probe\"\nperiod = \"5us\"\n\
         [[traffic]]\nkind = \"bijection\"\nsize = 1460\nstagger = \"1us\"\nstart = \"50us\"\n\
         [[traffic]]\nkind = \"bijection\"\nname = \"second\"\nsize = 1460\nstagger = \"13ns\"\n\
         start = \"99900ns\"\n\
         [[traffic]]\nkind = \"rpc\"\nstart = \"70us\"\n\
         [[traffic]]\nkind = \"incast\"\nrate = 200000\ndegree = 4\nresponse = \"2KB\"\n\
         request = \"100B\"\nthink-time = \"5us\"\nthink-deviation = \"2us\"\n"
        .to_string();
    for (number, (host, at, until)) in
        [(0, 50_000, 90_100), (9, 60_000, 100_000), (17, 70_200, 110_000)].into_iter().enumerate()
    {
        text += &format!(
            "[[failure]]\nlink = [\"host{host}\", \"tor{}\"]\nat = \"{at}ns\"\n\
             until = \"{until}ns\"\ndetect = \"{}ns\"\nconverge = \"{}ns\"\n",
            host / 8 * 2,
            400 * number,
            100 + 9_900 * number,
        );
    }
    for transport in ["timely", "dctcp"] {
        assert_nothing_changes(&text, &[("transport.kind", transport)], &[2]);
    }
}

/// One elephant between two hosts.
const ELEPHANT: &str = "[switch]\nbuffer = { kind = \"per-port\", size = \"2MB\" }\n\
    [[traffic]]\nkind = \"flows\"\nrows = [[\"0us\", 0, 1, 128000000]]\n";

/// Of the elephant, the only flow: its goodput and the packets that it sent by each NIC of host 0,
/// if those are captured.
fn elephant(text: &str, set: &[(&str, &str)]) -> (f64, Records) {
    let records = simulate(&exact(text, set), 1).1;
    let flow = records.flows[0];
    let time = flow.finish.expect("it is over") - flow.start;
    (flow.bytes as f64 * 8.0 / time.as_s_f64(), records)
}

const SUBFLOWS: &str = "[transport]\nkind = \"mptcp\"\nmptcp-subflows = 2\nmin-rto = \"1ms\"\n";

#[test]
fn two_subflows_have_the_goodput_of_two_nics() {
    let of = |nics| elephant(&format!("{}{SUBFLOWS}{ELEPHANT}", two_hosts(nics)), &[]).0;
    let ratio = of(2) / of(1);
    assert!((1.9..=2.01).contains(&ratio), "{ratio}");
    // Also where a pause may stop the NIC, so that it holds packets.
    let paused = [("switch.pause.kind", "pfc"), ("switch.buffer.kind", "pools")];
    let of = |nics| elephant(&format!("{}{SUBFLOWS}{ELEPHANT}", two_hosts(nics)), &paused).0;
    let ratio = of(2) / of(1);
    assert!((1.9..=2.01).contains(&ratio), "{ratio}");
}

/// Eight subflows on three NICs: subflow i of the connection takes the NIC i further than the
/// first, at both hosts, and its acknowledgements return that way.
#[test]
fn subflows_take_nics_in_turn() {
    let taps = "[capture]\npcap = [\"host0\"]\n";
    let text =
        format!("{}{SUBFLOWS}{taps}{ELEPHANT}", two_hosts(3)).replace("128000000", "8000000");
    let (_, records) = elephant(&text, &[("transport.mptcp-subflows", "8")]);
    let plan = exact(&text, &[]);
    let mut sent = std::collections::BTreeMap::new();
    let mut answers = std::collections::BTreeSet::new();
    for record in &records.packets {
        let packet = &record.packet;
        if packet.payload > 0 {
            let paths: &mut std::collections::BTreeSet<u32> =
                sent.entry((packet.src, packet.dst)).or_default();
            paths.insert(packet.entropy);
        } else {
            answers.insert((packet.dst, packet.src));
        }
    }
    let number = |nic| plan.topology.nic_number(nic);
    assert!(sent.keys().all(|(src, dst)| number(*src) == number(*dst)), "{sent:?}");
    let mut paths: Vec<usize> = sent.values().map(|paths| paths.len()).collect();
    paths.sort();
    assert_eq!(paths, [2, 3, 3], "{sent:?}");
    assert!(sent.keys().all(|pair| answers.contains(pair)), "{sent:?} {answers:?}");
}

/// A link fails for good while the connection runs: the rest of it goes at the rate of one NIC.
#[test]
fn subflows_move_to_the_other_nic_when_a_link_fails() {
    let fails = "[[failure]]\nlink = [\"host0\", \"tor1\"]\nat = \"2ms\"\ndetect = \"20us\"\n\
        converge = \"200us\"\n";
    let text = format!("{}{SUBFLOWS}{fails}{ELEPHANT}", two_hosts(2));
    for reinjects in ["true", "false"] {
        let set = [("transport.mptcp-reinjection", reinjects)];
        let (goodput, records) = elephant(&text, &set);
        let one = Rate::from_gbps(100).bps() as f64;
        assert!((0.9 * one..1.5 * one).contains(&goodput), "{goodput} {:?}", records.flows);
    }
}

const FLOWCELLS: &str = "[transport]\nkind = \"cubic\"\nmin-rto = \"1ms\"\n\
    [edge]\nload-balancing = { kind = \"presto\" }\n\
    [host]\nreceive-offload = { kind = \"presto-gro\", coalescing = \"1us\" }\n";

/// Flowcells of one elephant in turn over two NICs, whose packets the receiver puts in order again.
#[test]
fn flowcells_have_the_goodput_of_two_nics() {
    let spread = |nics, set: &[(&str, &str)]| {
        let text = format!("{}{FLOWCELLS}{ELEPHANT}", two_hosts(nics))
            .replace("[switch]\n", "[switch]\npath = { kind = \"labels\" }\n");
        elephant(&text, set)
    };
    let paused = [("switch.pause.kind", "pfc"), ("switch.buffer.kind", "pools")];
    for set in [&[][..], &paused, &[("switch.path.kind", "ecmp")]] {
        let ((one, _), (two, records)) = (spread(1, set), spread(2, set));
        assert!((1.9..=2.01).contains(&(two / one)), "{one} {two} {set:?}");
        let flow = records.flows[0];
        assert_eq!((flow.out_of_order, flow.retransmitted), (Some(0), 0), "{set:?}");
    }
}

/// Flowcells over all paths of both NICs, subflows, failures that move both, and TLT's forced
/// packets: the same in every partition.
#[test]
fn spreading_over_nics_is_the_same_in_every_partition() {
    let failure = FAILURE.replace("at = \"100us\"", "at = \"100us\"\nuntil = \"400us\"");
    let text = format!("{DUAL_TOR}{failure}").replace("concurrency = 4", "concurrency = 2");
    for planes in ["true", "false"] {
        let subflows = [
            ("topology.two-planes", planes),
            ("transport.kind", "mptcp"),
            ("transport.mptcp-subflows", "3"),
        ];
        let unmarked = text.replace("marking = { kind = \"ecn\", threshold-packets = 65 }\n", "");
        assert_nothing_changes(&unmarked, &subflows, &[2]);
        let flowcells = [
            ("topology.two-planes", planes),
            ("edge.load-balancing.kind", "presto"),
            ("host.receive-offload.kind", "presto-gro"),
            ("switch.path.kind", "labels"),
        ];
        assert_nothing_changes(&text, &flowcells, &[2]);
    }
}

/// A job of two ranks on the hosts of [`two_hosts`], of which rank 0 sends as these lines say; rank
/// 1 receives as many messages.
fn job(nics: usize, sends: &[&str]) -> Result<Records, String> {
    let receives: String = sends.iter().map(|_| "recv 2000000b from 0 tag 1\n").collect();
    let text =
        format!("num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\n{receives}}}\n", sends.join("\n"));
    let file = std::env::temp_dir().join(format!("millpond-nics-{}.goal", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let traffic = format!("[[traffic]]\nkind = \"goal\"\nfile = {:?}\n", file.to_str().unwrap());
    let taps = "[capture]\npcap = [\"host0\"]\n";
    let text = format!("{}{PAIRS}{taps}{traffic}", two_hosts(nics));
    let scenario = millpond_scenario::Scenario::parse("job.toml", &text).unwrap();
    let plan = scenario.plan(None, &[], None).map_err(|error| error.to_string());
    std::fs::remove_file(&file).unwrap();
    Ok(simulate(&plan?, 1).1)
}

/// Sends of one program by three NICs, which end when they are matched at the other side.
#[test]
fn sends_take_the_nics_that_a_program_names() {
    let sends = ["send 2000000b to 1 tag 1", "send 2000000b to 1 tag 1 nic 2"];
    let records = job(3, &sends).unwrap();
    assert_eq!(records.flows.len(), 2);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
    let data = records.packets.iter().filter(|record| record.packet.payload > 0);
    let pairs: std::collections::BTreeSet<_> =
        data.map(|record| (record.packet.src, record.packet.dst)).collect();
    // The further NICs of host 0 have the addresses 2 and 3, those of host 1 4 and 5.
    assert_eq!(pairs, [(0, 1), (3, 5)].into());
    let error = job(2, &sends).unwrap_err();
    for part in [".goal: line 4: rank 0 sends by nic 2", "host0 has NICs 0 to 1", "job.toml"] {
        assert!(error.contains(part), "{error}");
    }
    let error = job(1, &sends).unwrap_err();
    assert!(error.contains("host0 has one NIC, number 0"), "{error}");
}

/// A ring of four hosts without switches, each with a link of 100 Gb/s and 1 us to the next.
fn ring_of_hosts(more: &str) -> String {
    let link = |host: usize| {
        let next = (host + 1) % 4;
        format!("{{ a = \"host{host}\", b = \"host{next}\", rate = \"100Gbps\", delay = \"1us\" }}")
    };
    format!(
        "duration = \"1ms\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"file\"\n\
         [topology.graph]\nhosts = 4\nswitches = []\nlinks = [{}]\n{PAIRS}{more}",
        (0..4).map(link).collect::<Vec<_>>().join(", ")
    )
}

/// 1 MB is 250 packets of 4,000 bytes and 40 of headers, 323.2 ns each on the link. Where the two
/// halves of the link meet the last one takes a picosecond.
#[test]
fn a_link_between_hosts_takes_its_own_time_alone() {
    let flows = "[[traffic]]\nkind = \"flows\"\nrows = [[\"0us\", 3, 0, 1000000]]\n";
    let flow = simulate(&exact(&ring_of_hosts(flows), &[]), 1).1.flows[0];
    let time = (flow.finish.unwrap() - flow.start).as_ps();
    assert_eq!((time, flow.ideal.as_ps()), (81_800_001, 81_800_000));
    let reduce = "[[traffic]]\nkind = \"collective\"\nsize = \"4MB\"\n";
    let round = simulate(&exact(&ring_of_hosts(reduce), &[]), 1).1.collectives[0];
    let ratio = round.time().unwrap().as_us_f64() / round.closed_form.as_us_f64();
    assert!((1.0..1.01).contains(&ratio), "{round:?}");
}

/// Both directions of a link between hosts fail, and nothing else leads from one to the other.
#[test]
fn a_link_between_hosts_fails_both_ways() {
    let traffic = "[[traffic]]\nkind = \"collective\"\nsize = \"4MB\"\n\
        [rdma]\nrecovery = { kind = \"selective\" }\n";
    let fails = "[[failure]]\nlink = [\"host1\", \"host0\"]\nat = \"10us\"\n";
    let text = ring_of_hosts(&format!("{traffic}{fails}"));
    let text = text.replace("[rdma]\nack-interval = 1000000\n", "");
    let (outcome, records) = simulate(&exact(&text, &[]), 1);
    assert!(records.collectives.is_empty());
    let lost = outcome.audit.dropped[DropReason::LinkDown as usize].packets;
    assert!(lost > 0, "{lost}");
    let repaired = format!("{text}until = \"100us\"\n").replace("\"1ms\"", "\"100ms\"");
    let records = simulate(&exact(&repaired, &[]), 1).1;
    assert!(records.collectives[0].end.is_some());
    assert_nothing_changes(&repaired, &[], &[2]);
}

/// Two hosts with two links between them, over which both send; the first link has a name.
fn two_links(more: &str) -> String {
    let link = "a = \"host0\", b = \"host1\", rate = \"100Gbps\", delay = \"1us\"";
    let flows: Vec<String> =
        (0..16).map(|flow| format!("[\"0us\", {}, {}, 2000000]", flow % 2, 1 - flow % 2)).collect();
    format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"file\"\n\
         [topology.graph]\nhosts = 2\nswitches = []\nlinks = [{{ {link}, name = \"first\" }}, \
         {{ {link} }}]\n[transport]\nkind = \"dctcp\"\nmin-rto = \"1ms\"\n\
         [capture]\npcap = [\"first\"]\n\
         [[traffic]]\nkind = \"flows\"\nrows = [{}]\n{more}",
        flows.join(", ")
    )
}

/// No route changes: each host notices by itself, and moves its connections to the other link.
#[test]
fn both_hosts_notice_that_the_link_between_them_fails() {
    let text = two_links(
        "[[failure]]\nlink = \"first\"\nat = \"100us\"\ndetect = \"20us\"\n\
         converge = \"never\"\n",
    );
    let records = simulate(&exact(&text, &[]), 1).1;
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "{:?}", records.flows);
    for host in [0, 1] {
        let sent = |from: u64, to: u64| {
            let within = |at: Time| at >= Time::from_us(from) && at < Time::from_us(to);
            let own = |src| exact(&text, &[]).topology.host_of(src) == host;
            let records = records.packets.iter();
            records.filter(|record| within(record.at) && own(record.packet.src)).count()
        };
        assert!(sent(0, 100) > 100, "host{host} uses the link");
        // A NIC sends what is in its queue already: some 30 us.
        assert_eq!(sent(200, 1_000_000), 0, "host{host} has moved its connections");
    }
    assert_nothing_changes(&text, &[], &[2]);
}

/// A packet passes both halves of the link, and is lost once with the probability that is asked.
#[test]
fn a_link_between_hosts_loses_the_share_that_is_asked() {
    let loss = "[[failure]]\nlink = [\"host0\", \"host1\"]\nat = \"0us\"\nloss = 0.02\n";
    let (outcome, records) = simulate(&exact(&two_links(loss), &[]), 1);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()), "{:?}", records.flows);
    let lost = outcome.audit.dropped[DropReason::Injected as usize].packets as f64;
    let share = lost / outcome.audit.injected.packets as f64;
    // Some 40,000 packets: the standard deviation is 0.0007.
    assert!((0.017..0.023).contains(&share), "{share}");
}
