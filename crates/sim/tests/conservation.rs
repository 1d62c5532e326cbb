//! Whatever the network, the traffic and the mechanisms: packets and bytes are conserved, every
//! flow that starts makes one record that makes sense, and the number of threads changes nothing.

use crate::common::{self, fingerprint, plan, simulate};
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::registry::Choice;
use millpond_core::switch::path::PathParams;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn topology() -> impl Strategy<Value = String> {
    let rate = prop::sample::select(vec!["1Gbps", "10Gbps", "25Gbps", "40Gbps"]);
    let delay = prop::sample::select(vec!["0us", "100ns", "1us", "7us"]);
    let link = |rate: &str, delay: &str| format!("{{ rate = \"{rate}\", delay = \"{delay}\" }}");
    (0..4, 2..5u32, 1..4u32, 2..5u32, rate.clone(), rate, delay.clone(), delay).prop_map(
        move |(kind, a, b, c, host_rate, fabric_rate, host_delay, fabric_delay)| {
            let (host, fabric) = (link(host_rate, host_delay), link(fabric_rate, fabric_delay));
            match kind {
                0 => format!(
                    "kind = \"leaf-spine\"\nleaves = {a}\nspines = {b}\nhosts-per-leaf = \
                     {c}\nhost-link = {host}\nfabric-link = {fabric}"
                ),
                1 => format!(
                    "kind = \"fat-tree\"\nk = 4\nhost-link = {host}\nfabric-link = {fabric}"
                ),
                2 => format!("kind = \"single-switch\"\nhosts = {}\nhost-link = {host}", a + c),
                _ => format!(
                    "kind = \"dumbbell\"\nhosts-per-side = {a}\nhost-link = {host}\nbottleneck = \
                     {fabric}"
                ),
            }
        },
    )
}

fn switch() -> impl Strategy<Value = String> {
    let buffer = prop::sample::select(vec![
        "{ kind = \"per-port\", size = \"3KB\" }",
        "{ kind = \"per-port\", size = \"30KB\" }",
        "{ kind = \"per-port\", packets = 5 }",
        "{ kind = \"shared\", size = \"60KB\", alpha = 0.5 }",
        "{ kind = \"shared\", size = \"200KB\", alpha = 4.0 }",
        "{ kind = \"pools\", size = \"2MB\", headroom = \"3KB\" }",
        "{ kind = \"pools\", size = \"400KB\", headroom = \"1KB\", egress-limit = \"always\", \
         queue-min = 100 }",
    ]);
    let pause = prop::sample::select(vec![
        "{ kind = \"none\" }",
        "{ kind = \"pfc\" }",
        "{ kind = \"pfc\", alpha = 0.01, pause-time = \"5us\", recheck = \"2us\", resume = false }",
        "{ kind = \"pfc\", alpha = 4.0, frames = \"each-arrival\", resume-offset = \"3KB\" }",
    ]);
    let marking = prop::sample::select(vec![
        "{ kind = \"none\" }",
        "{ kind = \"ecn\", threshold-packets = 3 }",
        "{ kind = \"ecn\", threshold-bytes = \"10KB\", at = \"dequeue\" }",
        "{ kind = \"red\", at = \"dequeue\", min-threshold = \"2KB\", max-threshold = \"20KB\" }",
    ]);
    let path = prop::sample::select(
        PathParams::place().mechanisms.iter().map(|m| m.kind).collect::<Vec<_>>(),
    );
    (buffer, pause, marking, path, deflection()).prop_map(
        |(buffer, pause, marking, path, deflection)| {
            // A mechanism that moves packets from one queue to another does not go with pools, nor
            // a pause with ports by themselves.
            let moves = deflection.contains("vertigo") && buffer.contains("pools");
            let buffer = if moves { "{ kind = \"shared\", size = \"100KB\" }" } else { buffer };
            let pause = if buffer.contains("per-port") { "{ kind = \"none\" }" } else { pause };
            // A pause that stops flows needs queues of flows.
            let stops_flows = deflection.contains("dynamic-queues") && pause.contains("pfc");
            let pause =
                if stops_flows { "{ kind = \"bfc\", interval = \"700ns\" }" } else { pause };
            format!(
                "buffer = {buffer}\npause = {pause}\nmarking = {marking}\npath = {{ kind = \
                 \"{path}\" }}\n{deflection}"
            )
        },
    )
}

/// Admission, order of service, deflection, and how fresh the views are that they read.
fn deflection() -> impl Strategy<Value = String> {
    let pairs = prop::sample::select(vec![
        ("fifo", "{ kind = \"none\" }"),
        ("strict-priority", "{ kind = \"none\" }"),
        ("sp-pifo", "{ kind = \"none\" }"),
        ("dynamic-queues", "{ kind = \"none\" }"),
        ("srpt", "{ kind = \"none\" }"),
        ("srpt", "{ kind = \"vertigo\" }"),
        ("fifo", "{ kind = \"dibs\" }"),
        ("fifo", "{ kind = \"simple\" }"),
        ("fifo", "{ kind = \"canary\" }"),
        ("strict-priority", "{ kind = \"canary\", mark = true, artifact-quirks = true }"),
        ("fifo", "{ kind = \"canary-pisa\", cells = 100 }"),
    ]);
    let admission = prop::sample::select(vec![
        "{ kind = \"drop-tail\" }",
        "{ kind = \"drop-tail\" }",
        "{ kind = \"aifo\", sample-period = 2 }",
        "{ kind = \"distribution\" }",
        "{ kind = \"distribution\", mean = \"ewma\" }",
        "{ kind = \"last-packet\", threshold = \"3KB\" }",
        "{ kind = \"probabilistic\", min-threshold = \"2KB\", burst-headroom = 0.2 }",
        "{ kind = \"red\", min-threshold = \"3KB\", max-threshold = \"9KB\" }",
        "{ kind = \"wred\", min-threshold = \"2KB\", max-threshold = \"12KB\", weight = 0.1 }",
    ]);
    let occupancy = prop::sample::select(vec![
        "{ kind = \"exact\" }",
        "{ kind = \"exact\" }",
        "{ kind = \"refreshed\", period = \"3us\" }",
        "{ kind = \"refreshed\", period = \"700ns\", written-at = \"departures\" }",
    ]);
    (pairs, admission, occupancy).prop_map(|((queue, deflection), admission, occupancy)| {
        format!(
            "queue = {{ kind = \"{queue}\" }}\ndeflection = {deflection}\nadmission = \
             {admission}\noccupancy = {occupancy}"
        )
    })
}

fn transport() -> impl Strategy<Value = String> {
    prop_oneof![3 => streams(), 2 => queue_pairs(), 1 => messages()]
}

/// The kinds of transport of queue pairs, or those of TCPs.
fn kinds(of_queue_pairs: bool) -> Vec<&'static str> {
    let mechanisms = TransportKind::place().mechanisms.iter().map(|mechanism| mechanism.kind);
    let is_meant =
        |family: Family| if of_queue_pairs { family == Family::Rdma } else { family.is_tcp() };
    let is_one =
        |kind: &&str| TransportKind::of_kind(kind).is_some_and(|it| is_meant(it.demands().family));
    mechanisms.filter(is_one).collect()
}

fn messages() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "",
        "homa-rtt-bytes = 3000\nhoma-overcommitment = 1",
        "homa-rtt-bytes = 1\nhoma-grant-bytes = 1\nhoma-unscheduled-cutoffs = [1, 2, 3, 4, 5, 6]",
        "homa-grant-bytes = 100000\nhoma-overcommitment = 9\nhoma-resend-priority = \"off\"",
    ]);
    let interval = prop::sample::select(vec!["30us", "200us", "2ms"]);
    let gives_up = prop::sample::select(vec!["40", "2", "\"off\""]);
    (keys, interval, 1..4u32, gives_up).prop_map(|(keys, interval, ping, gives_up)| {
        format!(
            "kind = \"homa\"\nhoma-resend-interval = \"{interval}\"\nhoma-ping-after = \
             {ping}\nhoma-abort-after = {gives_up}\n{keys}"
        )
    })
}

fn queue_pairs() -> impl Strategy<Value = String> {
    let recovery = prop::sample::select(vec![
        "{ kind = \"go-back-n\", timeout = \"300us\" }",
        "{ kind = \"go-back-n\", timeout = \"1ms\", nack-interval = \"20us\" }",
        "{ kind = \"selective\" }",
        "{ kind = \"selective\", bdp-limit = \"off\", resend = \"all\", nack-interval = \"0us\" }",
        "{ kind = \"selective\", bdp-limit = 3000, timeout-low = \"40us\", few = 1 }",
    ]);
    let rdma = prop::sample::select(vec![
        "",
        "ack-interval = 5\nnotification = \"answers\"",
        "flow-control = \"static\"\nwindow = 9000\ncnp-priority = 7\nack-priority = 1",
        "flow-control = \"rate\"\ncnp-interval = \"4us\"\ncnp-on-reordering = true",
        "flow-control = \"none\"\nbase-rtt = \"10us\"\nnack-priority = 3",
    ]);
    let edge = prop::sample::select(vec![
        "",
        "",
        "rank = { kind = \"remaining-bytes\" }\nordering = { kind = \"timeout\", timeout = \
         \"50us\" }",
        "importance = { kind = \"tlt\" }",
        "importance = { kind = \"tlt\", every = 3 }",
    ]);
    (prop::sample::select(kinds(true)), recovery, rdma, edge).prop_map(
        |(kind, recovery, rdma, edge)| {
            format!("kind = \"{kind}\"\n{edge}\n[rdma]\nrecovery = {recovery}\n{rdma}\n")
        },
    )
}

fn streams() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(kinds(false));
    let rto = prop::sample::select(vec![
        "min-rto = \"300us\"",
        "min-rto = \"1ms\"",
        "fixed-rto = \"500us\"",
    ]);
    let window = prop::sample::select(vec![1, 2, 10, 40]);
    let threshold = prop::sample::select(vec!["1", "3", "\"off\""]);
    let edge = prop::sample::select(vec![
        "",
        "fast-recovery = \"reno\"\nwindow-validation = false\nsilly-window-avoidance = \
         false\nreceive-buffer = 20001",
        "rank = { kind = \"remaining-bytes\", idle = \"100us\" }",
        "rank = { kind = \"remaining-bytes\" }\nordering = { kind = \"timeout\", timeout = \
         \"50us\" }",
        "rank = { kind = \"attained-service\" }\nordering = { kind = \"timeout\" }",
        "importance = { kind = \"tlt\" }",
    ]);
    (kind, any::<(bool, bool, bool)>(), rto, window, 1..4u32, threshold, edge).prop_map(
        |(kind, (handshake, sack, limited), rto, window, delayed, threshold, edge)| {
            format!(
                "kind = \"{kind}\"\nhandshake = {handshake}\nsack = {sack}\nlimited-transmit = \
                 {limited}\n{rto}\ninitial-rto = \"1ms\"\ninitial-window = {window}\ndelayed-ack \
                 = {delayed}\ndelayed-ack-timeout = \"100us\"\ndupack-threshold = \
                 {threshold}\n{edge}"
            )
        },
    )
}

fn traffic() -> impl Strategy<Value = String> {
    let one = (0..8, prop::sample::select(vec![1u64, 1_460, 9_999, 60_000]), 1..4u32).prop_map(
        |(kind, size, n)| match kind {
            0 => format!(
                "kind = \"poisson\"\nsizes = {}\nload = 0.{}\nload-base = \"host-links\"",
                size.max(1_460),
                2 * n
            ),
            1 => format!(
                "kind = \"incast\"\ndegree = {n}\nresponse = {size}\nperiod = \"200us\"\nrequest \
                 = 50\nthink-time = \"{}us\"",
                n - 1
            ),
            2 => format!(
                "kind = \"incast\"\ndegree = {n}\nresponse = {size}\nrate = 3000.0\nrequest = \
                 \"none\""
            ),
            3 => format!("kind = \"permutation\"\nsize = {size}\nstagger = \"{n}us\""),
            4 => format!("kind = \"shuffle\"\nsize = {size}\nconcurrency = {n}"),
            5 => format!(
                "kind = \"rpc\"\nclients = 1\nservers = 1\nconnections = {n}\nrequest = \
                 100\nresponse = {size}"
            ),
            6 => format!("kind = \"probe\"\nsize = {size}\nperiod = \"{n}0us\""),
            _ => format!("kind = \"random\"\nsize = {size}"),
        },
    );
    prop::collection::vec(one, 1..4).prop_map(|list| {
        let tables = list
            .iter()
            .enumerate()
            .map(|(i, keys)| format!("[[traffic]]\nname = \"t{i}\"\n{keys}\n"));
        tables.collect::<String>()
    })
}

fn host() -> impl Strategy<Value = String> {
    let offload = prop::sample::select(vec!["\"off\"", "\"64KiB\"", "4000"]);
    let nic = prop::sample::select(vec![
        "{ }",
        "{ per-flow-limit = \"off\" }",
        "{ per-flow-limit = 1500, buffer = { kind = \"per-port\", packets = 20 } }",
    ]);
    // The host's keys end with its table, and the edge's begin another.
    let edge = prop::sample::select(vec![
        "",
        "",
        "receive-offload = { kind = \"stock-gro\" }\n[edge]\nload-balancing = { kind = \
         \"flowlet\", gap = \"20us\" }",
        "receive-offload = { kind = \"presto-gro\" }\n[edge]\nload-balancing = { kind = \
         \"presto\" }",
        "receive-offload = { kind = \"presto-gro\", rules = \"safe\", min = \"1us\", initial = \
         \"3us\", flow-held-max = 9000, coalescing = \"2us\", budget = 3 \
         }\n[edge]\nload-balancing = { kind = \"presto\", threshold = 3000, order = \"shuffled\" }",
        "receive-offload = { kind = \"stock-gro\", labels = \"kept\", coalescing = \"0us\" }",
        "receive-cpu = { per-packet = \"2us\", ring = 5 }",
        "[edge]\nload-balancing = { kind = \"plb\", threshold = 8, rounds = 2, idle-rounds = 1, \
         suspend = \"50us\" }",
        "receive-offload = { kind = \"stock-gro\", coalescing = \"0us\" }\nreceive-cpu = { \
         per-byte = \"2ns\", ring = 80 }",
        "receive-offload = { kind = \"presto-gro\", min = \"1us\", initial = \"3us\", budget = 3 \
         }\nreceive-cpu = { ring = 20, cores = 3 }\n[edge]\nload-balancing = { kind = \"presto\", \
         threshold = 3000 }",
        "[edge]\nvirtual-switch = { kind = \"lossy\", ring = 9, cores = 2 }",
        "receive-offload = { kind = \"presto-gro\" }\n[edge]\nload-balancing = { kind = \
         \"presto\" }\nvirtual-switch = { kind = \"backdraft\", memory = \"20KB\" }",
        "receive-offload = { kind = \"stock-gro\" }\n[edge]\nvirtual-switch = { kind = \
         \"credits\", memory = \"20KB\" }",
        "[edge]\nvirtual-switch = { kind = \"backpressure\", ring = 40, queue = 20, batch = 3 }",
        "[edge]\nvirtual-switch = { kind = \"flow-queues\", memory = \"20KB\", max-queues = 2, \
         doorbells = \"counted\" }",
        "[edge]\nvirtual-switch = { kind = \"backdraft\", memory = \"20KB\", control-loss = 0.3, \
         application-flows = 1 }",
        "[edge]\nvirtual-switch = { kind = \"backdraft\", headroom = 9000, flow-cap = 3, \
         freeze-timers = false, cores = 2 }",
        "[edge]\nvirtual-switch = { kind = \"backdraft\", overlay = \"timed\", flow-cap = 7, \
         control-loss = 0.2 }",
        "[edge]\nvirtual-switch = { kind = \"backdraft\", overlay = \"episode\", memory = \
         \"20KB\", control-loss = 0.1 }",
        "[edge]\nvirtual-switch = { kind = \"credits\", memory = \"20KB\", control-loss = 0.2, \
         repeat = \"200us\" }",
        "[edge]\nvirtual-switch = { kind = \"credits\", window = 3000, overcommit = 9, ring = 40, \
         freeze-timers = false }",
        "[edge]\nvirtual-switch = { kind = \"picnic\", queue = 20, control-loss = 0.1, cores = 2, \
         target = \"9us\" }",
    ]);
    // Exact hosts, and lots: much happens at one instant.
    let jitter = prop::sample::select(vec!["", "jitter = \"off\"\n", "jitter = { packets = 0 }\n"]);
    let times = (prop::sample::select(vec!["0us", "2us"]), jitter);
    (offload, nic, times, prop::sample::select(vec![0, 38]), edge).prop_map(
        |(offload, nic, (delay, jitter), overhead, edge)| {
            format!(
                "segment-offload = {offload}\nnic = {nic}\nstack-delay = \
                 \"{delay}\"\nframe-overhead = {overhead}\n{jitter}{edge}"
            )
        },
    )
}

/// The records beside flows, and the limits of hosts.
fn others() -> impl Strategy<Value = String> {
    let capture = prop::sample::select(vec![
        "",
        "",
        "[capture]\nqueues = \"3us\"\nconnections = { every = \"5us\", max = 5 }\ngoodput = \
         \"50us\"\npcap = [\"host0\", \"host2\"]\n",
    ]);
    let limit = prop::sample::select(vec![
        "",
        "",
        "",
        "[[limit]]\nrate = \"1Gbps\"\nhosts = \"all\"\ndirection = \"both\"\n",
        "[[limit]]\nkind = \"htb\"\nrate = \"2Gbps\"\nhosts = \"0..1\"\n",
    ]);
    (capture, limit).prop_map(|(capture, limit)| format!("{capture}{limit}"))
}

/// Nothing, or a leaf that loses an uplink for a while, which the network learns of soon, late or
/// never; and then a host its link.
fn failures() -> impl Strategy<Value = String> {
    let one =
        (100..900u32, 1..1_500u32, prop::sample::select(vec!["0us", "30us", "400us", "never"]))
            .prop_map(|(at, lasts, converge)| {
                format!(
                    "[[failure]]\nlink = UP\nat = \"{at}us\"\nuntil = \"{}us\"\ndetect = \
                     \"20us\"\nconverge = \"{converge}\"\n",
                    at + lasts
                )
            });
    prop_oneof![Just(Vec::new()), prop::collection::vec(one, 1..3)].prop_map(|list| list.concat())
}

/// A link of the topology's first switch: its first uplink, or where it has none its first host's.
fn up_of(topology: &str) -> &'static str {
    let kinds = [
        ("leaf-spine", "[\"leaf0\", \"spine0\"]"),
        ("fat-tree", "[\"edge0\", \"agg0\"]"),
        ("dumbbell", "[\"switch0\", \"switch1\"]"),
    ];
    let kind = kinds.iter().find(|(kind, _)| topology.contains(kind));
    kind.map_or("[\"host0\", \"switch0\"]", |(_, link)| link)
}

fn scenario() -> impl Strategy<Value = String> {
    let rest = (others(), traffic(), failures(), any::<bool>());
    (any::<u32>(), topology(), host(), switch(), transport(), rest).prop_map(
        |(
            seed,
            topology,
            mut host,
            switch,
            mut transport,
            (mut others, traffic, failures, until),
        )| {
            if transport.contains("kind = \"mptcp\"") {
                // Nothing that goes by the offsets of one TCP.
                let keys =
                    ["rank", "importance"].iter().filter_map(|key| transport.find(key)).min();
                transport.truncate(keys.unwrap_or(transport.len()));
                others.truncate(others.find("[[limit]]").unwrap_or(others.len()));
                host.truncate(host.find("\n[edge]").unwrap_or(host.len()));
            }
            if transport.contains("[rdma]") || transport.contains("kind = \"homa\"") {
                // Nothing that merges what arrives, or decides on a TCP's segments.
                others.truncate(others.find("[[limit]]").unwrap_or(others.len()));
                host.truncate(host.find("receive-offload").unwrap_or(host.len()));
            }
            let admits = host.contains("\"credits\"") || host.contains("\"picnic\"");
            let is_other = transport.contains("[rdma]") || transport.contains("kind = \"homa\"");
            if admits && is_other
                || transport.contains("kind = \"homa\"") && !host.contains("virtual-switch")
            {
                host.truncate(host.find("\n[edge]").or(host.find("[edge]")).unwrap_or(host.len()));
            }
            if host.contains("virtual-switch") {
                others += "[[application]]\nwork = \"3us\"\nmean = \"2us\"\nring = 4\ncores = \
                           2\nstall-every = \"200us\"\n";
            }
            let traffic = format!("{others}{traffic}{}", failures.replace("UP", up_of(&topology)));
            // A run that ends with its flows also checks that nothing is forgotten.
            let until = if until { "until = \"flows-complete\"" } else { "" };
            format!(
                "name = \"any\"\nseed = {seed}\nduration = \"3ms\"\nwarm-up = \"300us\"\n{until}\n\
                 [topology]\n{topology}\n[host]\n{host}\n[switch]\n{switch}\n[transport]\n\
                 {transport}\n{traffic}"
            )
        },
    )
}

/// One run: what must hold of any.
fn holds(text: &str) {
    let plan = plan(text, &[]);
    let (outcome, records) = simulate(&plan, 1);
    let audit = &outcome.audit;
    let accounted =
        audit.delivered.packets + audit.dropped_total().packets + audit.in_flight.packets;
    assert_eq!(audit.injected.packets, accounted);
    let accounted = audit.delivered.bytes + audit.dropped_total().bytes + audit.in_flight.bytes;
    assert_eq!(audit.injected.bytes, accounted);
    // Every packet that is delivered has crossed its two host links at least.
    assert!(audit.hops >= 2 * audit.delivered.packets);

    let hosts = plan.topology.hosts;
    // Ideal times count on full segments. Short ones are forwarded sooner: at most by a packet's
    // time at each hop, and there are five of 12 us.
    let is_cut_short = text.contains("silly-window-avoidance = false");
    let sooner =
        if is_cut_short { millpond_core::Time::from_us(60) } else { millpond_core::Time::ZERO };
    for flow in &records.flows {
        assert!(flow.src < hosts && flow.dst < hosts && flow.src != flow.dst && flow.bytes > 0);
        assert!(flow.start <= outcome.simulated);
        assert!(
            flow.finish.is_none_or(|finish| finish >= flow.start && finish <= outcome.simulated)
        );
        assert!(
            flow.fct().is_none_or(|fct| fct + sooner >= flow.ideal),
            "faster than alone: {flow:?}"
        );
        assert_eq!(flow.slowdown().is_some(), flow.finish.is_some(), "{flow:?}");
    }
    let numbers: BTreeSet<(u32, millpond_core::Time)> =
        records.flows.iter().map(|f| (f.flow, f.start)).collect();
    assert_eq!(numbers.len(), records.flows.len(), "a flow makes one record");
    for query in &records.queries {
        assert!(query.completed <= query.degree && query.client < hosts);
        assert_eq!(query.finish.is_some(), query.completed == query.degree);
    }

    let one = fingerprint(&plan, 1);
    assert_eq!(one, fingerprint(&plan, 2), "two threads");
    let same = |key: &str, value: &str| fingerprint(&common::plan(text, &[(key, value)]), 2);
    assert_eq!(one, same("engine.ports", "general"), "general ports");
    assert_eq!(one, same("engine.partitions", "one"), "one partition");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_small_network_conserves_its_packets(text in scenario()) {
        holds(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "minutes: the same property on many more networks"]
    fn any_of_very_many_small_networks_conserves_its_packets(text in scenario()) {
        holds(&text);
    }
}
