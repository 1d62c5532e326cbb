//! No flow is faster than its ideal time, whatever the network, the paths, the transport and the
//! traffic; and every flow and call that is complete has one.

use crate::common::{plan, simulate};
use millpond_core::Time;
use proptest::prelude::*;

/// Any rate, also such as gives no whole picoseconds a byte.
fn rate() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "1Gbps", "2500Mbps", "3Gbps", "7Gbps", "10Gbps", "10Gbps", "25Gbps", "40Gbps", "100Gbps",
    ])
}
fn delay() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["0us", "37ns", "500ns", "1us", "5us", "20us"])
}
fn link() -> impl Strategy<Value = (&'static str, &'static str)> {
    (rate(), delay())
}

/// Built-in networks whose fabric is as fast as the hosts, faster or slower.
fn built_in() -> impl Strategy<Value = (String, u64)> {
    let table =
        |(rate, delay): (&str, &str)| format!("{{ rate = \"{rate}\", delay = \"{delay}\" }}");
    (0..4, 2..4u32, 1..5u32, 1..3u32, link(), link()).prop_map(
        move |(kind, leaves, spines, hosts, host, fabric)| {
            let (host, fabric) = (table(host), table(fabric));
            match kind {
                0 | 1 => (
                    format!(
                        "kind = \"leaf-spine\"\nleaves = {leaves}\nspines = \
                         {spines}\nhosts-per-leaf = {hosts}\nhost-link = {host}\nfabric-link = \
                         {fabric}"
                    ),
                    u64::from(leaves * hosts),
                ),
                2 => (
                    format!(
                        "kind = \"fat-tree\"\nk = 4\nhost-link = {host}\nfabric-link = {fabric}"
                    ),
                    16,
                ),
                _ => (
                    format!(
                        "kind = \"dumbbell\"\nhosts-per-side = {leaves}\nhost-link = \
                         {host}\nbottleneck = {fabric}"
                    ),
                    u64::from(2 * leaves),
                ),
            }
        },
    )
}

/// Leaves with hosts of any rate, and links of any rate and delay between any switches, several
/// between some.
fn drawn() -> impl Strategy<Value = (String, u64)> {
    let hosts = prop::collection::vec((0..3u32, link()), 3..7);
    let chain = prop::collection::vec(link(), 5);
    let more = prop::collection::vec((0..6u32, 0..6u32, link()), 0..9);
    (hosts, chain, more).prop_map(|(hosts, chain, more)| {
        let entry = |a: String, b: String, (rate, delay): (&str, &str)| {
            format!("{{ a = \"{a}\", b = \"{b}\", rate = \"{rate}\", delay = \"{delay}\" }}")
        };
        let mut links: Vec<String> = Vec::new();
        for (h, (leaf, link)) in hosts.iter().enumerate() {
            // One host on each of the first two leaves, so that there is a way between leaves.
            let leaf = if h < 2 { h as u32 } else { *leaf };
            links.push(entry(format!("host{h}"), format!("s{leaf}"), *link));
        }
        // All switches hang together, and then as it comes.
        for (i, link) in chain.into_iter().enumerate() {
            links.push(entry(
                format!("s{}", if i < 2 { i } else { i / 2 }),
                format!("s{}", i + 1),
                link,
            ));
        }
        links.extend(
            more.into_iter()
                .filter(|(a, b, _)| a != b)
                .map(|(a, b, link)| entry(format!("s{a}"), format!("s{b}"), link)),
        );
        let names: Vec<String> = (0..6).map(|s| format!("{{ name = \"s{s}\" }}")).collect();
        let (names, links) = (names.join(", "), links.join(", "));
        let graph =
            format!("{{ hosts = {}, switches = [{names}], links = [{links}] }}", hosts.len());
        (format!("kind = \"file\"\ngraph = {graph}"), hosts.len() as u64)
    })
}

/// Which path, who is served next, who goes elsewhere: what brings packets to several ways and out
/// of order.
fn switch() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "path = { kind = \"ecmp\" }",
        "path = { kind = \"spray\" }",
        "path = { kind = \"spray\", order = \"round-robin\" }",
        "path = { kind = \"spray\" }\nbuffer = { kind = \"per-port\", size = \"20KB\" }",
        "path = { kind = \"power-of-n\" }",
        "path = { kind = \"balanced\" }",
        "path = { kind = \"labels\" }",
        "path = { kind = \"spray\" }\nqueue = { kind = \"srpt\" }",
        "path = { kind = \"ecmp\" }\nqueue = { kind = \"srpt\" }\ndeflection = { kind = \
         \"vertigo\" }\nbuffer = { kind = \"per-port\", size = \"9KB\" }",
        "path = { kind = \"power-of-n\" }\ndeflection = { kind = \"dibs\" }\nbuffer = { kind = \
         \"per-port\", size = \"9KB\" }",
        "path = { kind = \"ecmp\" }\ndeflection = { kind = \"canary\" }\nbuffer = { kind = \
         \"per-port\", size = \"9KB\" }\nadmission = { kind = \"aifo\" }",
        "path = { kind = \"spray\" }\nbuffer = { kind = \"pools\", size = \"40MB\", headroom = \
         \"200KB\" }\npause = { kind = \"pfc\" }",
    ])
}

fn host() -> impl Strategy<Value = String> {
    let form = prop::sample::select(vec![
        "",
        "mtu = 9000\n",
        "frame-overhead = 38\n",
        "mss = 536\n",
        "stack-delay = \"3us\"\n",
    ]);
    let offload = prop::sample::select(vec!["\"off\"", "\"64KiB\""]);
    let edge = prop::sample::select(vec![
        "",
        "",
        "[edge]\nload-balancing = { kind = \"presto\" }\n",
        "[edge]\nload-balancing = { kind = \"presto\", threshold = 3000, order = \"shuffled\" }\n",
        "[edge]\nload-balancing = { kind = \"flowlet\", gap = \"5us\" }\n",
    ]);
    (form, offload, edge).prop_map(|(form, offload, edge)| {
        let gro = if edge.is_empty() {
            ""
        } else {
            "receive-offload = { kind = \"presto-gro\", coalescing = \"0us\" }\n"
        };
        format!(
            "[host]\n{form}segment-offload = {offload}\nnic = {{ per-flow-limit = \"off\" \
             }}\n{gro}{edge}"
        )
    })
}

fn transport() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec!["newreno", "cubic", "dctcp", "swift"]);
    // A first window of a megabyte and none that closes: then nothing but the network takes time.
    let window = prop::sample::select(vec!["1", "2", "10", "10000", "10000"]);
    let more = prop::sample::select(vec![
        "",
        "",
        "silly-window-avoidance = false\n",
        "silly-window-avoidance = false\nreceive-buffer = 20001\nwindow-validation = false\n",
        "receive-buffer = 9001\n",
        "rank = { kind = \"remaining-bytes\" }\nordering = { kind = \"timeout\", timeout = \
         \"50us\" }\n",
        "importance = { kind = \"tlt\" }\n",
        "delayed-ack = 2\ndelayed-ack-timeout = \"30us\"\n",
    ]);
    let order = prop::sample::select(vec![
        "dupack-threshold = \"off\"\n",
        "dupack-threshold = \"off\"\n",
        "dupack-threshold = 3\n",
    ]);
    (kind, any::<bool>(), window, more, order).prop_map(|(kind, handshake, window, more, order)| {
        format!(
            "[transport]\nkind = \"{kind}\"\nhandshake = {handshake}\ninitial-window = \
             {window}\nmin-rto = \"1ms\"\n{order}{more}"
        )
    })
}

/// Flows of every size around whole packets, most of them alone in the network, and all that asks
/// and answers.
fn traffic(apart: bool) -> impl Strategy<Value = (Vec<(u64, u64, u64)>, String, bool, bool)> {
    let size = || {
        prop::sample::select(vec![
            1u64, 100, 496, 536, 700, 1_459, 1_460, 1_461, 1_500, 2_200, 2_919, 2_921, 4_381,
            8_961, 14_600, 14_601, 30_000, 100_001, 292_000, 1_000_000,
        ])
    };
    let rows = prop::collection::vec((any::<u16>(), any::<u16>(), size()), 1..12);
    let other = (0..6, size(), size()).prop_map(|(kind, a, b)| {
        let (a, b) = (a.min(100_001), b.min(100_001));
        match kind {
            0 | 1 => format!(
                "kind = \"rpc\"\nclients = 1\nservers = 1\nconnections = 1\nrequest = \
                 {a}\nresponse = {b}"
            ),
            2 => format!(
                "kind = \"incast\"\ndegree = 1\nresponse = {a}\nrequest = {b}\nperiod = \
                 \"700us\"\nthink-time = \"3us\"\nthink-deviation = \"2us\""
            ),
            3 => format!("kind = \"shuffle\"\nsize = {a}\nconcurrency = 1"),
            4 => format!(
                "kind = \"poisson\"\nsizes = {}\nload = 0.2\nload-base = \"host-links\"",
                a.max(1_460)
            ),
            _ => format!("kind = \"permutation\"\nsize = {a}\nstagger = \"100us\""),
        }
    });
    (rows, other, any::<bool>()).prop_map(move |(rows, other, both)| {
        let rows =
            rows.into_iter().map(|(a, b, size)| (u64::from(a), u64::from(b), size)).collect();
        (rows, other, apart, both)
    })
}

/// The tables: the flows alone, the other traffic alone, or both at once.
fn tables(
    hosts: u64,
    (rows, other, apart, both): (Vec<(u64, u64, u64)>, String, bool, bool),
) -> String {
    let row = |(i, (a, b, size)): (usize, &(u64, u64, u64))| {
        let at = if apart { i as u64 * 1_000 } else { i as u64 * 7 };
        let src = a % hosts;
        format!("[\"{at}us\", {src}, {}, {size}]", (src + 1 + b % (hosts - 1)) % hosts)
    };
    let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
    let flows =
        format!("[[traffic]]\nname = \"flows\"\nkind = \"flows\"\nrows = [{}]\n", rows.join(", "));
    let other = format!("[[traffic]]\nname = \"other\"\n{other}\n");
    match (apart, both) {
        (true, true) => flows,
        (true, false) => other,
        _ => flows + &other,
    }
}

fn scenario() -> impl Strategy<Value = String> {
    let network = prop_oneof![built_in(), drawn(), drawn()];
    let traffic = prop_oneof![traffic(true), traffic(true), traffic(false)];
    (any::<u32>(), network, host(), switch(), transport(), traffic).prop_map(
        |(seed, (network, hosts), host, switch, transport, traffic)| {
            let traffic = tables(hosts, traffic);
            format!(
                "name = \"any\"\nseed = {seed}\nduration = \
                 \"12ms\"\n[topology]\n{network}\n{host}[switch]\n{switch}\n{transport}{traffic}"
            )
        },
    )
}

/// Hosts with several NICs of any rate and delay: bonds to one switch and to two, rails, planes,
/// and servers with an inner switch.
fn several_nics() -> impl Strategy<Value = (String, u64)> {
    let table =
        |(rate, delay): (&str, &str)| format!("{{ rate = \"{rate}\", delay = \"{delay}\" }}");
    let bonds = (prop::collection::vec((0..2u32, link()), 3..9), link()).prop_map(
        |(nics, (rate, delay))| {
            // Two hosts have the first two NICs; the others are of either.
            let mut links = vec![format!(
                "{{ a = \"s0\", b = \"s1\", rate = \"{rate}\", delay = \"{delay}\" }}"
            )];
            links.extend(nics.iter().enumerate().map(|(i, (switch, (rate, delay)))| {
                format!(
                    "{{ a = \"host{}\", b = \"s{switch}\", rate = \"{rate}\", delay = \
                     \"{delay}\" }}",
                    i % 2
                )
            }));
            let switches = "{ name = \"s0\" }, { name = \"s1\" }";
            let links = links.join(", ");
            let graph = format!("{{ hosts = 2, switches = [{switches}], links = [{links}] }}");
            // A switch without hosts is none of tier 0, which a bond to one switch leaves.
            (format!("kind = \"file\"\ngraph = {graph}"), 2)
        },
    );
    let built = (0..4, link(), link()).prop_map(move |(kind, host, fabric)| {
        let (host, fabric) = (table(host), table(fabric));
        let links = format!("host-link = {host}\nfabric-link = {fabric}");
        match kind {
            0 | 1 => (
                format!(
                    "kind = \"dual-tor\"\npairs = 2\nhosts-per-pair = 2\nspines = 2\ntwo-planes \
                     = {}\n{links}",
                    kind == 0
                ),
                4,
            ),
            2 => (
                format!(
                    "kind = \"rail-optimised\"\nsegments = 2\nservers-per-segment = 2\nrails = \
                     3\nspines = 2\n{links}"
                ),
                4,
            ),
            _ => (
                format!(
                    "kind = \"rail-optimised\"\nsegments = 2\nservers-per-segment = 2\nrails = \
                     2\nspines = 2\ninner-switch = true\n{links}"
                ),
                8,
            ),
        }
    });
    prop_oneof![bonds, built]
}

/// All families over several NICs, their choices, and messages of a collective or other traffic.
fn over_several_nics() -> impl Strategy<Value = String> {
    let choice = prop::sample::select(vec!["hash", "plane", "rail"]);
    let transport = prop_oneof![
        transport(),
        prop::sample::select(vec![
            "mptcp\"\nmptcp-subflows = 2\ninitial-window = 1000\nmin-rto = \"1ms",
            "mptcp\"\nmptcp-subflows = 8\ninitial-window = 1000\nmin-rto = \"1ms",
            "mptcp\"\nmptcp-subflows = 3\nhandshake = true\nmin-rto = \"1ms",
            "dcqcn",
            "hpcc",
            "uet",
            "homa",
        ])
        .prop_map(|kind| format!("[transport]\nkind = \"{kind}\"\n")),
    ];
    let presto = "receive-offload = { kind = \"presto-gro\", coalescing = \"0us\" }\n[edge]\n\
                  load-balancing = { kind = \"presto\" }\n";
    let edge = (0..2).prop_map(move |sprays| if sprays == 1 { presto } else { "" });
    let job = prop::sample::select(vec![
        "op = \"all-reduce\"\nsize = \"300KB\"\nchannels = 2",
        "op = \"broadcast\"\nsize = \"200KB\"\nrepeat = 2",
    ]);
    let traffic = prop_oneof![
        traffic(true).prop_map(|traffic| (Some(traffic), "")),
        traffic(false).prop_map(|traffic| (Some(traffic), "")),
        job.prop_map(|keys| (None, keys)),
    ];
    (any::<u32>(), several_nics(), choice, transport, edge, traffic).prop_map(
        |(seed, (network, hosts), choice, transport, edge, (traffic, job))| {
            let traffic = match traffic {
                Some(traffic) => tables(hosts, traffic),
                None => format!("[[traffic]]\nkind = \"collective\"\n{job}\n"),
            };
            let is_tcp = ["newreno", "cubic", "dctcp", "swift"]
                .iter()
                .any(|kind| transport.contains(&format!("\"{kind}\"")));
            let (edge, queue) = match (is_tcp, transport.contains("homa")) {
                (true, _) => (edge, "fifo"),
                (false, true) => ("", "strict-priority"),
                _ => ("", "fifo"),
            };
            format!(
                "name = \"any\"\nseed = {seed}\nduration = \"12ms\"\n[topology]\n{network}\n\
                 [host]\nnic = {{ choice = {{ kind = \"{choice}\" }}, per-flow-limit = \"off\" \
                 }}\n{edge}[switch]\nqueue = {{ kind = \"{queue}\" \
                 }}\n{transport}{traffic}"
            )
        },
    )
}

/// Of what is complete: nothing without an ideal time, nothing faster.
fn holds(text: &str) {
    let (_, records) = simulate(&plan(text, &[]), 1);
    for flow in &records.flows {
        let Some(fct) = flow.fct() else { continue };
        assert!(
            flow.ideal > Time::ZERO && flow.slowdown().is_some(),
            "complete and without a slowdown: {flow:?}"
        );
        assert!(
            fct >= flow.ideal,
            "faster than alone, {} of {}: {flow:?}\n{text}",
            fct,
            flow.ideal
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_flow_is_faster_than_alone(text in scenario()) {
        holds(&text);
    }

    #[test]
    fn no_flow_over_several_nics_is_faster_than_alone(text in over_several_nics()) {
        holds(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5_000,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "minutes: the same property on many more networks"]
    fn no_flow_of_very_many_networks_is_faster_than_alone(text in scenario()) {
        holds(&text);
    }
}

/// Slowdowns of flows in a leaf-spine network of 10 Gb/s hosts, alone and one after the other.
fn slowdowns(fabric: &str, spines: u32, sizes: &[u64], set: &[(&str, &str)]) -> Vec<f64> {
    let row = |(i, size): (usize, &u64)| format!("[\"{}ms\", 0, 2, {size}]", 5 * i);
    let rows: Vec<String> = sizes.iter().enumerate().map(row).collect();
    let text = format!(
        "name = \"alone\"\nduration = \"100ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = \
         2\nspines = {spines}\nhosts-per-leaf = 2\nhost-link = {{ rate = \"10Gbps\", delay = \
         \"1us\" }}\nfabric-link = {{ rate = \"{fabric}\", delay = \"2us\" }}\n[switch]\nbuffer = \
         {{ kind = \"per-port\", size = \"9MB\" }}\n[host]\njitter = \"off\"\nnic = {{ \
         per-flow-limit = \"off\" }}\n[transport]\nkind = \"newreno\"\ninitial-window = \
         10000\ndupack-threshold = \"off\"\nhandshake = false\n[[traffic]]\nkind = \
         \"flows\"\nrows = [{}]\n",
        rows.join(", ")
    );
    let (_, records) = simulate(&plan(&text, set), 1);
    let mut flows = records.flows;
    flows.sort_by_key(|flow| flow.flow);
    flows.iter().map(|flow| flow.slowdown().expect("it is complete")).collect()
}

/// The bound is near what can be had, and it is the same for all choices of paths: what spraying
/// gains over one path shows.
#[test]
fn spraying_over_slow_links_is_near_the_bound_and_one_path_is_not() {
    let turns = [("switch.path.kind", "spray"), ("switch.path.order", "round-robin")];
    for size in [100_000, 1_000_000, 1_000_001] {
        let spray = slowdowns("2500Mbps", 4, &[size], &turns)[0];
        assert!((1.0..1.12).contains(&spray), "{size} sprayed: {spray}");
        let hashed = slowdowns("2500Mbps", 4, &[size], &[])[0];
        assert!((3.4..4.1).contains(&hashed), "{size} on one path: {hashed}");
    }
    // Where the hosts' links are the bottleneck, one path of an idle network is as good as any.
    for fabric in ["10Gbps", "40Gbps"] {
        let one = slowdowns(fabric, 4, &[1, 1_460, 2_920, 14_600, 100_001, 1_000_000], &[]);
        assert!(one.iter().all(|slowdown| *slowdown == 1.0), "{fabric}: {one:?}");
    }
    let two = slowdowns("10Gbps", 4, &[1_461], &turns)[0];
    assert_eq!(two, 1.0, "a small last packet has overtaken by another way");
}

/// A connection that takes both NICs of its hosts is bound by both: its slowdown is near 1, and
/// that of any other connection is, too.
#[test]
fn a_lone_connection_is_near_the_bound_of_the_nics_that_it_takes() {
    let text = |transport: &str| {
        format!(
            "name = \"a\"\nuntil = \"flows-complete\"\n[topology]\nkind = \"dual-tor\"\npairs = \
             2\nhosts-per-pair = 2\n[transport]\n{transport}\n[[traffic]]\nkind = \
             \"flows\"\nrows = [[\"0us\", 0, 2, 30000000]]\n"
        )
    };
    for transport in ["kind = \"mptcp\"", "kind = \"newreno\"\ninitial-window = 1000"] {
        let (_, records) = simulate(&plan(&text(transport), &[]), 1);
        let slowdown = records.flows[0].slowdown().unwrap();
        assert!((1.0..1.15).contains(&slowdown), "{transport}: {slowdown}");
    }
}

/// A flow that is delivered and not acknowledged when the run ends has its slowdown, and so has
/// each call.
#[test]
fn complete_is_complete_before_its_last_acknowledgement() {
    let text = "name = \"end\"\nduration = \"30us\"\n[topology]\nkind = \
                \"dumbbell\"\nhosts-per-side = 2\nbottleneck = { rate = \"10Gbps\", delay = \
                \"5us\" }\n[host]\njitter = \"off\"\n[transport]\nhandshake = \
                false\n[[traffic]]\nkind = \"flows\"\nrows = [[\"15us\", 0, 2, \
                1460]]\n[[traffic]]\nkind = \"rpc\"\npairs = [\"1-3\"]\nrequest = 100\nresponse = \
                1460\nconnections = 1\n";
    let (_, records) = simulate(&plan(text, &[]), 1);
    let flow = records.flows.iter().find(|flow| flow.src == 0).expect("it has started");
    assert!(flow.finish.is_some() && flow.sender_last.is_none(), "{flow:?}");
    assert_eq!(flow.slowdown(), Some(1.0));
    let calls: Vec<f64> =
        records.flows.iter().filter(|f| f.dst == 1).filter_map(|f| f.slowdown()).collect();
    // An acknowledgement of 32 ns leaves before the answer.
    assert_eq!(calls.len(), 1);
    assert!(calls[0] > 1.0 && calls[0] < 1.01, "{calls:?}");
}
