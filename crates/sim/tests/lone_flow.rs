//! A flow that is alone in an empty network takes its ideal time, whichever transport it has,
//! whatever the switches and hosts do beside it, and however long the network's round trip is:
//! every amount that is left to a rule ("auto") follows the network.
//!
//! The beginning is a transport's own law: a TCP's slow start from its initial window, TAS' from
//! its initial rate. So these get one that fills the longest round trip here. HPCC's law leaves a
//! twentieth of the link free (`hpcc-eta`, and so does PowerTCP), and so much more is its bound.

use crate::common::{exact, simulate};
use millpond_core::congestion::{Family, TransportKind};
use millpond_core::registry::Choice;

/// Above the ideal time at most.
const MOST: f64 = 1.05;

/// By name: the network, and a flow between its ends that are furthest apart.
const NETWORKS: &[(&str, &str, (u32, u32))] = &[
    ("single-switch", "kind = \"single-switch\"\nhosts = 4", (0, 3)),
    ("leaf-spine", "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts-per-leaf = 2", (0, 2)),
    (
        "leaf-spine 100G",
        "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\nhost-link = { rate = \
         \"100Gbps\", delay = \"1us\" }\nfabric-link = { rate = \"100Gbps\", delay = \"5us\" }",
        (0, 2),
    ),
    ("fat-tree", "kind = \"fat-tree\"\nk = 4", (0, 15)),
    (
        "dumbbell",
        "kind = \"dumbbell\"\nhosts-per-side = 2\nhost-link = { rate = \"10Gbps\", delay = \
         \"5us\" }\nbottleneck = { rate = \"10Gbps\", delay = \"5us\" }",
        (0, 2),
    ),
    (
        "long dumbbell",
        "kind = \"dumbbell\"\nhosts-per-side = 2\nhost-link = { rate = \"10Gbps\", delay = \
         \"50us\" }\nbottleneck = { rate = \"10Gbps\", delay = \"50us\" }",
        (0, 2),
    ),
    (
        "file",
        "kind = \"file\"\ngraph = { hosts = 2, switches = [{ name = \"a\" }, { name = \"b\" }, { \
         name = \"c\" }], links = [{ a = \"host0\", b = \"a\", rate = \"25Gbps\", delay = \"2us\" \
         }, { a = \"host1\", b = \"b\", rate = \"25Gbps\", delay = \"2us\" }, { a = \"a\", b = \
         \"c\", rate = \"25Gbps\", delay = \"20us\" }, { a = \"c\", b = \"b\", rate = \"25Gbps\", \
         delay = \"20us\" }] }",
        (0, 1),
    ),
];

/// An acknowledgement behind a receive offload stands for up to 64 KB, and slow start grows by all
/// of it: the offload costs no round trips.
#[test]
fn slow_start_behind_a_receive_offload_takes_no_more_round_trips() {
    let time = |offload: &str| {
        let text = format!(
            "until = \"flows-complete\"\n[topology]\nkind = \"dumbbell\"\nhosts-per-side = \
             1\nhost-link = {{ rate = \"100Gbps\", delay = \"20us\" }}\nbottleneck = {{ rate = \
             \"100Gbps\", delay = \"200us\" }}\n[switch]\nbuffer = {{ kind = \"per-port\", size \
             = \"100MB\" }}\n[host]\nreceive-offload = {offload}\n[transport]\nkind = \
             \"newreno\"\n[[traffic]]\nkind = \"flows\"\nrows = [[\"0us\", 0, 1, 5000000]]\n"
        );
        let (_, records) = simulate(&exact(&text, &[]), 1);
        records.flows[0].fct().unwrap().as_us_f64()
    };
    let (plain, merged) =
        (time("{ kind = \"none\" }"), time("{ kind = \"stock-gro\", coalescing = \"20us\" }"));
    assert!(merged < 1.1 * plain, "{merged} µs behind the offload, {plain} without");
}

/// 12 bytes of each packet are time stamps: a flow of 14.48 MB takes 10,000 packets of 1,448 bytes
/// instead of 9,918 of 1,460.
#[test]
fn time_stamps_take_twelve_bytes_of_each_packet() {
    let text = "until = \"flows-complete\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
                [transport]\nkind = \"newreno\"\ninitial-window = 1000\n[[traffic]]\nkind = \
                \"flows\"\nrows = [[\"0us\", 0, 1, 14480000]]\n";
    let time = |is_on: &str| {
        let plan = exact(text, &[("transport.timestamps", is_on)]);
        let payload = plan.transport.mss;
        let (_, records) = simulate(&plan, 1);
        let flow = &records.flows[0];
        (payload, flow.fct().unwrap().as_us_f64(), flow.slowdown().unwrap())
    };
    let ((most, plain, _), (less, stamped, slowdown)) = (time("false"), time("true"));
    assert_eq!((most, less), (Some(1460), Some(1448)));
    assert!((stamped / plain - 1460.0 / 1448.0).abs() < 1e-3, "{stamped} and {plain} µs");
    assert!(slowdown < 1.01, "the ideal time counts them: {slowdown}");
}

/// The third packet of the handshake keeps the receiver's interrupt busy for 10 us.
#[test]
fn a_handshakes_acknowledgement_is_a_packet_of_its_own() {
    let text = "until = \"flows-complete\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
                host-link = { rate = \"10Gbps\", delay = \"10us\" }\n[host]\n\
                nic = { interrupts = true }\n[transport]\nkind = \"newreno\"\n[[traffic]]\n\
                kind = \"flows\"\nrows = [[\"0us\", 0, 1, 1000]]\n";
    let time = |is_on: &str| {
        let (_, records) = simulate(&exact(text, &[("transport.handshake-ack", is_on)]), 1);
        records.flows[0].fct().unwrap().as_us_f64()
    };
    let (without, with) = (time("false"), time("true"));
    assert!((7.0..10.0).contains(&(with - without)), "{with} and {without} µs");
}

/// Bytes of the flow.
const BYTES: u64 = 1_000_000;

/// Segments that fill the longest round trip of these networks.
const WINDOW: u32 = 1_000;

fn text(kind: &TransportKind, network: &str, (src, dst): (u32, u32), tables: &str) -> String {
    let begins = match kind {
        TransportKind::Tas(_) => "tas-initial-rate = \"100Gbps\"\n".to_string(),
        _ if kind.demands().family.is_tcp() => format!("initial-window = {WINDOW}\n"),
        _ => String::new(),
    };
    let queue = match kind.demands().family {
        Family::Homa => "[switch]\nqueue = { kind = \"strict-priority\" }\n",
        _ => "",
    };
    format!(
        "name = \"lone\"\nuntil = \
         \"flows-complete\"\n[topology]\n{network}\n{queue}[transport]\nkind = \
         \"{}\"\n{begins}[[traffic]]\nname = \"f\"\nkind = \"flows\"\nrows = [[\"0us\", {src}, \
         {dst}, {BYTES}]]\n{tables}",
        kind.kind()
    )
}

fn most(kind: &TransportKind) -> f64 {
    match kind {
        TransportKind::Hpcc(p) => MOST / p.hpcc_eta,
        TransportKind::Powertcp(p) => MOST / p.powertcp_eta,
        _ => MOST,
    }
}

/// The flow's time over its ideal one; nothing may be sent twice.
fn slowdown(text: &str, set: &[(&str, &str)]) -> f64 {
    let (outcome, records) = simulate(&exact(text, set), 1);
    let flow = &records.flows[0];
    let fct = flow.fct().unwrap_or_else(|| panic!("it ends: {text}"));
    assert_eq!((outcome.hosts.retransmitted, outcome.hosts.timeouts), (0, 0), "{set:?} {text}");
    fct.as_us_f64() / flow.ideal.as_us_f64()
}

/// Those that are too slow, of a transport under these settings on each network.
fn slow(kind: &TransportKind, tables: &str, set: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, network, ends) in NETWORKS {
        let found = slowdown(&text(kind, network, *ends, tables), set);
        if found > most(kind) {
            wrong.push(format!("{} on {name} with {set:?}: {found:.3}", kind.kind()));
        }
    }
    wrong
}

fn kinds() -> impl Iterator<Item = TransportKind> {
    TransportKind::place()
        .mechanisms
        .iter()
        .map(|m| TransportKind::of_kind(m.kind).expect("it is registered"))
}

#[test]
fn a_lone_flow_takes_its_ideal_time_with_every_transport() {
    let wrong: Vec<String> = kinds().flat_map(|kind| slow(&kind, "", &[])).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// IRN's timeouts follow the round trip.
#[test]
fn no_timeout_of_a_queue_pair_ends_before_its_answer() {
    let pairs = kinds().filter(|kind| kind.demands().family == Family::Rdma);
    let set = [("rdma.recovery.kind", "selective")];
    let wrong: Vec<String> = pairs.flat_map(|kind| slow(&kind, "", &set)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A mechanism of a switch or host that may act on others leaves a lone flow alone, if nothing but
/// its name is written.
#[test]
fn no_mechanism_slows_a_lone_flow_by_its_name_alone() {
    let tlt = [("switch.admission.kind", "color-aware"), ("transport.importance.kind", "tlt")];
    let aifo = [("switch.admission.kind", "aifo"), ("transport.rank.kind", "remaining-bytes")];
    let bfc = [("switch.queue.kind", "dynamic-queues"), ("switch.pause.kind", "bfc")];
    let pfc = [
        ("switch.buffer.kind", "pools"),
        ("switch.buffer.size", "90MB"),
        ("switch.pause.kind", "pfc"),
    ];
    let sets: [&[(&str, &str)]; 7] = [
        &tlt,
        &aifo,
        &bfc,
        &pfc,
        &[("switch.admission.kind", "red")],
        &[("switch.marking.kind", "red")],
        &[("switch.buffer.kind", "shared")],
    ];
    let dctcp = TransportKind::default();
    let mut wrong: Vec<String> = sets.iter().flat_map(|set| slow(&dctcp, "", set)).collect();
    let server = "[[application]]\nhosts = \"all\"\n";
    for kind in ["lossy", "backpressure", "flow-queues", "backdraft", "picnic"] {
        wrong.extend(slow(&dctcp, server, &[("edge.virtual-switch.kind", kind)]));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Credits are asked for first, which takes a round trip.
    for (name, network, ends) in NETWORKS {
        let plan = exact(
            &text(&dctcp, network, *ends, server),
            &[("edge.virtual-switch.kind", "credits")],
        );
        let flow = &simulate(&plan, 1).1.flows[0];
        let found =
            (flow.fct().expect("it ends") - plan.round_trip).as_us_f64() / flow.ideal.as_us_f64();
        assert!(found <= MOST, "{name}: {found:.3}");
    }
}
