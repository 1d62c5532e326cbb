//! Failures, samples, captures and probes, by hand.

use crate::common::{exact as plan, simulate};
use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_core::packet::flags;
use millpond_results::Node;
use millpond_sim::Outcome;

/// Two hosts on a switch: 10 Gb/s, 1 µs a link; 1,500-byte packets take 1.2 µs to send, 40-byte
/// packets 32 ns.
fn one_switch(rows: &str, rest: &str) -> String {
    format!(
        r#"
        duration = "50ms"
        [topology]
        kind = "single-switch"
        hosts = 3
        host-link = {{ rate = "10Gbps", delay = "1us" }}
        [host]
        segment-offload = "off"
        [transport]
        kind = "newreno"
        handshake = false
        initial-rto = "1ms"
        min-rto = "1ms"
        [[traffic]]
        name = "flow"
        kind = "flows"
        rows = [{rows}]
        {rest}
        "#
    )
}

fn link_down(outcome: &Outcome) -> u64 {
    outcome.audit.dropped[DropReason::LinkDown as usize].packets
}

const BOTH_PORTS: [&str; 2] = ["auto", "general"];

/// Ten packets leave host 0 back to back, packet i in [1.2 i, 1.2 (i+1)] µs, and are at the switch
/// 1 µs later. The link is down in [4, 5) µs: lost are those under way at any time of it, which
/// begin before 5 µs and arrive after 4 µs. Packet 1 arrives at 3.4 µs and packet 2 at 4.6; packet
/// 4 begins at 4.8 and packet 5 at 6: so 2, 3 and 4.
#[test]
fn a_packet_is_lost_if_its_link_is_down_at_any_time_under_way() {
    let failure = "[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"4us\"\nuntil = \
                   \"5us\"\n[capture]\npcap = [\"switch0:0\"]\n";
    let text = one_switch("[\"0us\", 0, 1, 14600]", failure);
    for ports in BOTH_PORTS {
        let (outcome, records) = simulate(&plan(&text, &[("engine.ports", ports)]), 1);
        assert_eq!(link_down(&outcome), 3, "{ports}");
        let came =
            records.packets.iter().filter(|p| !p.outgoing && !p.packet.has(flags::RETRANSMISSION));
        let came: Vec<u64> = came.map(|p| p.packet.seq() / 1460).collect();
        assert_eq!(came, [0, 1, 5, 6, 7, 8, 9]);
        assert!(records.flows[0].finish.is_some() && records.flows[0].retransmitted >= 3);
    }
}

/// The edges: arriving at the very instant at which the link fails is arriving, and starting at the
/// instant at which it is back gets through. Packet 1 arrives at 3.4 µs, packet 3 begins at 3.6 µs:
/// only packet 2 is lost.
#[test]
fn an_outage_is_half_open() {
    let failure =
        "[[failure]]\nlink = [\"switch0\", \"host0\"]\nat = \"3400ns\"\nuntil = \"3600ns\"\n";
    let text = one_switch("[\"0us\", 0, 1, 14600]", failure);
    for ports in BOTH_PORTS {
        assert_eq!(
            link_down(&simulate(&plan(&text, &[("engine.ports", ports)]), 1).0),
            1,
            "{ports}"
        );
    }
}

/// A lost packet is in flight until it would have arrived, whatever the kind of port.
#[test]
fn a_run_that_ends_during_an_outage_is_conserved() {
    let failure = "[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"0us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 14600]", failure);
    for ports in BOTH_PORTS {
        let (outcome, _) =
            simulate(&plan(&text, &[("engine.ports", ports), ("duration", "5us")]), 1);
        // Packets 0 to 2 would have arrived at 2.2, 3.4 and 4.6 µs; seven are still on their way.
        assert_eq!(
            (link_down(&outcome), outcome.audit.in_flight.packets, outcome.audit.hops),
            (3, 7, 0),
            "{ports}"
        );
    }
}

/// A run without a duration ends as stalled when only a flow is open whose one link has failed for
/// good.
#[test]
fn a_run_without_an_end_ends_when_nothing_more_can_happen() {
    let failure = "[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"2us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 14600], [\"0us\", 1, 2, 14600]", failure);
    let plan = plan(&text.replace("duration = \"50ms\"", "until = \"flows-complete\""), &[]);
    assert!(plan.warnings.iter().any(|w| w.contains("ends as stalled")), "{:?}", plan.warnings);
    let (outcome, records) = simulate(&plan, 1);
    assert_eq!(records.flows.iter().map(|f| f.finish.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_eq!((outcome.is_stalled(), outcome.simulated), (true, Time::from_ms(10)));
}

/// A port that drains after the last sample with traffic gets its row of zeros, even if nothing
/// happens any more.
#[test]
fn samples_go_on_to_the_end_of_the_run() {
    // Ten packets of 12 µs each on the leaf's uplink: two wait at 100 µs, and all is over at 130
    // µs.
    let text = "duration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = \
                1\nhosts-per-leaf = 1\nfabric-link = { rate = \"1Gbps\", delay = \"1us\" \
                }\n[transport]\nhandshake = false\n[[traffic]]\nkind = \"flows\"\nrows = \
                [[\"0us\", 0, 1, 14600]]\n[capture]\nqueues = \"100us\"\n";
    let (_, records) = simulate(&plan(text, &[]), 1);
    let rows: Vec<(Time, bool)> = records.queues.iter().map(|q| (q.at, q.packets > 0)).collect();
    assert_eq!(rows, [(Time::from_us(100), true), (Time::from_us(200), false)]);
}

fn two_spines(path: &str, detect: &str) -> String {
    format!(
        r#"
        duration = "2ms"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 2
        hosts-per-leaf = 1
        host-link = {{ rate = "10Gbps", delay = "1us" }}
        fabric-link = {{ rate = "10Gbps", delay = "1us" }}
        [host]
        segment-offload = "off"
        [switch]
        path = {path}
        [transport]
        kind = "newreno"
        handshake = false
        initial-window = 40
        dupack-threshold = "off"
        min-rto = "500us"
        initial-rto = "500us"
        [[failure]]
        link = ["leaf0", "spine1"]
        at = "10us"
        until = "1s"
        detect = "{detect}"
        [[traffic]]
        name = "flow"
        kind = "flows"
        rows = [["0us", 0, 1, 58400]]
        "#
    )
}

/// Forty packets are sprayed in turn over two spines; packet i reaches the leaf at 2.2 + 1.2 i µs
/// and begins to leave at once, to be at the spine 2.2 µs later. Even ones take spine 1, whose link
/// fails at 10 µs: those that begin after 7.8 µs are lost, which is from i = 6 (9.4 µs) on, until
/// the leaf learns of it. (Acknowledgements are lost as well, since leaf 1 never learns of it.)
#[test]
fn a_switch_avoids_a_dead_port_once_it_knows() {
    let spray = "{ kind = \"spray\", order = \"round-robin\" }";
    for ports in BOTH_PORTS {
        let lost = |detect: &str| {
            let set = [("engine.ports", ports), ("capture.pcap", "leaf0:2")];
            let (_, records) = simulate(&plan(&two_spines(spray, detect), &set), 2);
            let lost = records.packets.iter().map(|p| p.packet);
            let lost =
                lost.filter(|p| p.has(flags::LOST) && p.is_data() && !p.has(flags::RETRANSMISSION));
            lost.map(|p| p.seq() / 1460).collect::<Vec<_>>()
        };
        // Packet 8 comes at 11.8 µs, when the leaf has known for 1.8 µs.
        assert_eq!(lost("0us"), [6], "{ports}");
        // Known at 20 µs: packet 14 comes at 19 µs, packet 16 at 21.4.
        assert_eq!(lost("10us"), [6, 8, 10, 12, 14], "{ports}");
        assert_eq!(lost("10ms"), (3..20).map(|i| 2 * i).collect::<Vec<_>>(), "{ports}");
    }
}

/// Where a route has no other port, the dead one is chosen, and what goes there is lost.
#[test]
fn without_another_port_packets_are_lost() {
    let failure = "[[failure]]\nlink = [\"host1\", \"switch0\"]\nat = \"0us\"\nuntil = \"500us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 1460]", failure);
    let (outcome, records) = simulate(&plan(&text, &[]), 1);
    assert_eq!(
        (link_down(&outcome), records.flows[0].fct()),
        (1, Some(Time::from_us(1_000) + Time::from_ns(4_400)))
    );
}

/// Hosts 0 and 2 send ten packets each to host 1 at once. Pair i of packets reaches the switch at
/// (2.2 + 1.2 i) µs, and one packet leaves each 1.2 µs. So pair i finds i packets waiting, of which
/// one begins: after pair i, i + 1 wait.
#[test]
fn queue_samples_by_hand() {
    let text = one_switch(
        "[\"0us\", 0, 1, 14600], [\"0us\", 2, 1, 14600]",
        "[capture]\nqueues = \"1200ns\"\n",
    );
    let first: Vec<(u64, u32)> = (1..=10).map(|i| (2_400 + 1_200 * (i - 1), i as u32)).collect();
    for ports in BOTH_PORTS {
        for samples in ["1200ns", "600ns"] {
            let plan = plan(&text, &[("engine.ports", ports), ("capture.queues", samples)]);
            let (_, records) = simulate(&plan, 1);
            let at_host1: Vec<_> = records.queues.iter().filter(|q| q.port == 1).collect();
            let seen = |ns: u64| {
                at_host1.iter().find(|q| q.at == Time::from_ns(ns)).map(|q| (ns, q.packets))
            };
            for (ns, packets) in &first {
                assert_eq!(seen(*ns), Some((*ns, *packets)), "{ports} {samples}");
            }
            assert!(at_host1.iter().all(|q| q.bytes == 1_500 * q.packets as u64));
            // The last row says that the queue is empty, and it is the only such row.
            let empty: Vec<_> = at_host1.iter().filter(|q| q.packets == 0).collect();
            assert_eq!((empty.len(), at_host1.last().unwrap().packets), (1, 0));
        }
    }
}

/// A sample at the very instant of a departure is what was there just before it, with either kind
/// of port: pair i comes at 2.2 + 1.2 i µs, when the link is free again, so just before it i
/// packets wait.
#[test]
fn a_sample_at_an_event_precedes_it() {
    let text = one_switch(
        "[\"0us\", 0, 1, 14600], [\"0us\", 2, 1, 14600]",
        "[capture]\nqueues = \"100ns\"\n",
    );
    for ports in BOTH_PORTS {
        let (_, records) = simulate(&plan(&text, &[("engine.ports", ports)]), 1);
        for i in 1..10 {
            let at = Time::from_ns(2_200 + 1_200 * i);
            let row = records.queues.iter().find(|q| q.at == at && q.port == 1).unwrap();
            assert_eq!(row.packets, i as u32, "{ports}");
        }
    }
}

/// One packet and its acknowledgement, at the host and at the port that faces the receiver.
#[test]
fn captured_times_by_hand() {
    let text =
        one_switch("[\"0us\", 0, 1, 1460]", "[capture]\npcap = [\"host0\", \"switch0:1\"]\n");
    for ports in BOTH_PORTS {
        let (_, records) = simulate(&plan(&text, &[("engine.ports", ports)]), 1);
        let seen: Vec<_> =
            records.packets.iter().map(|p| (p.at.as_ps() / 1_000, p.tap, p.outgoing)).collect();
        let expected = [
            (1_200, 0, true),
            (3_400, 1, true),
            (4_400 + 1_032, 1, false),
            (4_400 + 2_064, 0, false),
        ];
        assert_eq!(seen, expected, "{ports}");
    }
}

/// In an empty network every probe takes four hops of 104 bytes (83.2 ns) and 1 µs, and the 32 ns
/// of the acknowledgement that leaves before the answer. Period and stop tell how many there are.
#[test]
fn probes_in_an_empty_network() {
    let probe = "[[traffic]]\nname = \"ping\"\nkind = \"probe\"\npairs = [\"2-1\"]\nperiod = \
                 \"10us\"\nstop = \"1ms\"\n";
    let text = one_switch("[\"40ms\", 0, 1, 1]", probe);
    let (outcome, records) = simulate(&plan(&text, &[]), 1);
    assert_eq!(records.rtts, vec![Time::from_ps(4 * (83_200 + 1_000_000) + 32_000); 100]);
    // They are no flows.
    assert_eq!((outcome.hosts.started, records.flows.len(), outcome.pairs.len()), (1, 1, 1));
    let (_, records) = simulate(&plan(&text, &[("traffic.ping.period", "3us")]), 1);
    // The answer takes longer than the period and sets the pace, 32 ns more for the acknowledgement
    // of the answer.
    assert!((227..=228).contains(&records.rtts.len()), "{}", records.rtts.len());
}

/// Ten packets of 1,460 bytes come one every 1.2 µs, the first 4.4 µs after the start, in whatever
/// partition.
#[test]
fn goodput_is_sampled_by_class_and_adds_up() {
    let rest = "[[traffic]]\nname = \"late\"\nkind = \"flows\"\nrows = [[\"40us\", 2, 1, \
                2920]]\n[capture]\ngoodput = \"4us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 14600]", rest);
    let of = |partitions: &str, threads| {
        simulate(&plan(&text, &[("engine.partitions", partitions), ("duration", "60us")]), threads)
            .0
            .delivered
    };
    let progress = of("one", 1);
    // Packet i arrives 4.4 + 1.2 i µs after the start: before 4, 8, 12 and 16 µs there are 0, 3, 7
    // and 10.
    let first: Vec<u64> = progress.iter().map(|sample| sample[0] / 1460).collect();
    assert_eq!(first[..5], [0, 3, 7, 10, 10]);
    let late: Vec<u64> = progress.iter().map(|sample| sample[1] / 1460).collect();
    assert_eq!((progress.len(), &late[9..]), (15, [0, 0, 2, 2, 2, 2].as_slice()));
    assert_eq!(of("auto", 2), progress);
}

/// All ten packets are handed to the NIC at the start and begin 1.2 µs apart; one that begins at a
/// sample's instant still waits, with either kind of port. The switch's port to host 1, which was
/// not asked for, has no row.
#[test]
fn a_nic_is_sampled_where_it_is_named() {
    let capture = "[capture]\nqueues = { every = \"600ns\", ports = [\"host0\", \"host1\", \
                   \"switch0->host2\"] }\n";
    let text = one_switch("[\"0us\", 0, 1, 14600]", capture);
    for ports in BOTH_PORTS {
        let (_, records) = simulate(&plan(&text, &[("engine.ports", ports)]), 1);
        let seen: Vec<_> = records
            .queues
            .iter()
            .map(|q| (q.at.as_ps() / 1_000, q.node, q.packets, q.bytes))
            .collect();
        let waiting = |sample: u64| 10 - sample.div_ceil(2);
        let row = |n: u64| (600 * n, Node::Host(0), waiting(n) as u32, 1_500 * waiting(n));
        // The last one begins at 10.8 µs, sample 18, and sample 19 is the first without any.
        assert_eq!(seen, (1..=19).map(row).collect::<Vec<_>>(), "{ports}");
    }
}

/// A window of ten packets at once. Acknowledgement i is back at 4.4 + 1.2 i + 2 · 1.032 µs; each
/// lets slow start grow the window by a packet, as long as the window is what limits: only the
/// first finds it full.
#[test]
fn connections_are_sampled_by_hand() {
    let capture = "[capture]\nconnections = { every = \"1us\", src = 0 }\n";
    let text = one_switch("[\"0us\", 0, 1, 14600], [\"0us\", 2, 1, 1460]", capture);
    let set = [("engine.ports", "auto"), ("engine.ports", "general"), ("engine.partitions", "one")];
    for way in set {
        let (outcome, records) = simulate(&plan(&text, &[way]), 1);
        let rows = &records.connections;
        // Host 2's packet takes its turn at host 1's port before all but the first of host 0's, so
        // they are 1.2 µs later.
        let back = |i: u64| 6_464 + 1_200 * i + if i > 0 || rows[6].acked == 0 { 1_200 } else { 0 };
        let acked = |at: u64| 1_460 * (0..10).filter(|i| back(*i) < at).count() as u64;
        let times: Vec<u64> = rows.iter().map(|row| row.at.as_ps() / 1_000_000).collect();
        assert_eq!(
            times,
            (1..=back(9) / 1_000).collect::<Vec<_>>(),
            "until the last is acknowledged: {way:?}"
        );
        for (row, at) in rows.iter().zip(1u64..) {
            assert_eq!((row.flow, row.src, row.dst, row.state), (0, 0, 1, "open"));
            assert_eq!(
                (row.acked, row.in_flight),
                (acked(1_000 * at), 14_600 - row.acked),
                "{at} µs, {way:?}"
            );
            assert_eq!((row.ssthresh, row.timeouts, row.retransmitted), (None, 0, 0));
            assert_eq!(row.rto, Time::from_ms(1));
            assert_eq!(row.srtt.is_some(), row.acked > 0);
            assert!(row.law.is_empty(), "NewReno steers by its window alone");
        }
        assert_eq!(rows[0].cwnd, 14_600);
        assert!(rows.last().unwrap().cwnd > 14_600);
        assert_eq!(outcome.sampled, [0].into());
    }
}

/// Nothing happens for a millisecond, the retransmission timeout: there is a row every 10 µs all
/// the same, whatever the partitions, and the records do not pile up until something does.
#[test]
fn silence_is_sampled_as_it_passes() {
    let failure = "[[failure]]\nlink = [\"host0\", \"switch0\"]\nat = \"0us\"\nuntil = \
                   \"500us\"\n[capture]\nconnections = \"10us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 1460]", failure);
    let rows = |partitions, threads| {
        simulate(&plan(&text, &[("engine.partitions", partitions)]), threads).1.connections
    };
    let rows = rows("one", 1).into_iter().zip(rows("auto", 2)).map(|(a, b)| {
        assert_eq!(a, b);
        a
    });
    let rows: Vec<_> = rows.collect();
    let times: Vec<u64> = rows.iter().map(|row| row.at.as_ps() / 10_000_000).collect();
    assert_eq!(times, (1..=100).collect::<Vec<_>>());
    assert!(rows.iter().all(|row| (row.state, row.timeouts, row.in_flight) == ("open", 0, 1_460)));
}

/// The most that are sampled, of those that are open at the first samples; a request is none unless
/// it is named.
#[test]
fn the_first_connections_are_sampled_and_no_more() {
    let rows = "[\"0us\", 0, 1, 14600], [\"5us\", 2, 1, 14600], [\"6us\", 1, 2, 14600], \
                [\"30us\", 0, 2, 14600]";
    let sampled = |connections: &str| {
        let text = one_switch(
            rows,
            &format!("[capture]\nconnections = {{ every = \"4us\", {connections} }}\n"),
        );
        let of =
            |partitions| simulate(&plan(&text, &[("engine.partitions", partitions)]), 1).0.sampled;
        assert_eq!(of("one"), of("auto"), "{connections}");
        of("auto").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(sampled("max = 2"), [0, 1]);
    assert_eq!(sampled("max = 9"), [0, 1, 2, 3]);
    assert_eq!(sampled("dst = 2"), [2, 3]);
    assert_eq!(sampled("dst = 2, src = [0]"), [3]);
    assert_eq!(sampled("flows = [1, 3]"), [1, 3]);
    assert_eq!(sampled("flows = [1, 3], src = 2"), [1]);
    let ask = |flows: &str| {
        let traffic = "[[traffic]]\nname = \"ask\"\nkind = \"incast\"\ndegree = 2\nresponse = \
                       \"14600\"\nrequest = 250\nreceiver = 0\n";
        let text = one_switch(
            "[\"0us\", 0, 1, 14600]",
            &format!("[capture]\nconnections = {{ every = \"1us\"{flows} }}\n{traffic}"),
        );
        simulate(&plan(&text, &[]), 1).0.sampled.into_iter().collect::<Vec<_>>()
    };
    assert_eq!((ask(""), ask(", flows = \"0..3\"")), (vec![0, 2, 4], vec![0, 1, 2, 3]));
}

/// Each law reports its own quantities, and of several transports each connection those of its own.
#[test]
fn each_control_law_tells_what_it_steers_by() {
    let more = "[[traffic]]\nname = \"other\"\nkind = \"flows\"\nrows = [[\"0us\", 2, 1, \
                14_600_000]]\ntransport = { kind = \"swift\" }\n[capture]\nconnections = \
                \"10us\"\n";
    let text = one_switch("[\"0us\", 0, 1, 14_600_000], [\"0us\", 2, 1, 14_600_000]", more);
    for (kind, expected) in
        [("newreno", &[][..]), ("cubic", &["w_max_bytes"]), ("dctcp", &["alpha"])]
    {
        let plan = plan(
            &text,
            &[("transport.kind", kind), ("duration", "5ms"), ("switch.buffer.size", "30KB")],
        );
        let names: Vec<&str> =
            millpond_sim::quantities(&plan).iter().map(|quantity| quantity.name).collect();
        assert_eq!(names, [expected, &["fcwnd_segments", "target_delay_us"]].concat(), "{kind}");
        let (_, records) = simulate(&plan, 1);
        // The most that any row of these flows reports: W_max has no value before the first loss.
        let most = |is: fn(u32) -> bool| {
            let rows = records.connections.iter().filter(|row| is(row.flow));
            rows.max_by_key(|row| row.law.len()).unwrap().clone()
        };
        let names = |is| most(is).law.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(|flow| flow < 2), expected, "{kind}");
        assert_eq!(names(|flow| flow == 2), ["fcwnd_segments", "target_delay_us"], "{kind}");
        let swift = most(|flow| flow == 2);
        let [(_, window), (_, target)] = swift.law[..] else { panic!() };
        // One switch on the way: 60 + 30 µs and what flow scaling adds for this window.
        assert!(
            (90.0..=390.0).contains(&target)
                && (swift.cwnd as f64 - window.max(1.0) * 1460.0).abs() < 1.0,
            "{window} {target}"
        );
        for (_, alpha) in most(|flow| flow < 2).law.iter().filter(|(name, _)| *name == "alpha") {
            assert!((0.0..=1.0).contains(alpha));
        }
    }
}

/// Two flows at 10 Gb/s each meet at the port to host 2, and so do their windows: its fullest
/// sample holds both, and their bytes are the sample's. A NIC holds its own flow alone.
#[test]
fn the_fullest_sample_of_a_port_has_its_contents_by_flow() {
    let capture = "[capture]\nqueues = { every = \"500ns\", flows = true, ports = [\"switch0\", \
        \"host1\"] }\n";
    let text = one_switch("[\"0us\", 0, 2, 300000], [\"0us\", 1, 2, 300000]", capture);
    let (outcome, records) = simulate(&plan(&text, &[]), 1);
    let (_, plain) = simulate(&plan(&text, &[("capture.queues.flows", "false")]), 1);
    assert_eq!((&records.flows, &records.queues), (&plain.flows, &plain.queues));
    for ((node, port), peak) in &outcome.peaks {
        let of_port = records.queues.iter().filter(|q| (q.node, q.port) == (*node, *port));
        assert_eq!(of_port.map(|q| q.bytes).max(), Some(peak.sample.bytes));
        let sum: u64 = peak.flows.iter().map(|share| share.bytes).sum();
        assert_eq!(sum, peak.sample.bytes, "{node:?} {port}");
        assert!(peak.flows.is_sorted_by_key(|share| std::cmp::Reverse(share.bytes)));
    }
    let flows = |node, port| {
        let shares = outcome.peaks[&(node, port)].flows.iter();
        let mut ends: Vec<_> = shares.map(|it| (it.flow, it.src, it.dst)).collect();
        ends.sort_unstable();
        ends
    };
    assert_eq!(flows(Node::Switch(0), 2), [(0, 0, 2), (1, 1, 2)]);
    assert_eq!(flows(Node::Host(1), 0), [(1, 1, 2)]);
}
