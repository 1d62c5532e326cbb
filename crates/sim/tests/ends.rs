//! Every transport ends what it begins, in bounded time: under loss for good, with small buffers,
//! and where credit or acknowledgements are lost. Connections last over several messages, with gaps
//! between them.

use crate::common::{queue_pairs, simulate};
use millpond_core::Time;
use millpond_core::registry::Choice;
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::TransportKind;
use proptest::prelude::*;

/// Longer than each run may take: a timeout backs off from 1 ms, and of a packet and its answer
/// half are lost at worst.
const BOUND: Time = Time::from_s(100);

/// Traffic by hosts 0 to 3.
const PATTERNS: [&str; 8] = [
    "kind = \"collective\"\nop = \"barrier\"\nrepeat = 20\ngap = \"10us\"\n",
    "kind = \"collective\"\nop = \"all-reduce\"\nsize = 60000\nrepeat = 3\n",
    "kind = \"collective\"\nop = \"all-to-all\"\nsize = 90000\nrepeat = 2\ngap = \"300us\"\n",
    "kind = \"collective\"\nop = \"broadcast\"\nsize = 40000\nconnections = \"per-message\"\n",
    "kind = \"incast\"\ndegree = 3\nresponse = 50000\nrequest = 50\ncount = 4\n",
    "kind = \"rpc\"\nclients = 2\nservers = 2\nconnections = 2\nresponse = 9000\nstop = \"1ms\"\n",
    "kind = \"flows\"\nrows = [[0, 0, 3, 200000], [0, 1, 3, 200000], [5, 2, 3, 1], [9, 3, 0, 9]]\n",
    "kind = \"collective\"\nop = \"barrier\"\nrepeat = 20\nconnections = \"per-message\"\n",
];

type Keys = Vec<(&'static str, &'static str)>;

/// Every transport as it is, and those whose control, recovery or timeout is another.
fn families() -> Vec<Keys> {
    let trims: [(&str, &str); 2] =
        [("switch.overflow.kind", "trim"), ("switch.queue.kind", "strict-priority")];
    let kinds = TransportKind::place().mechanisms.iter();
    let mut all: Vec<Keys> = kinds.map(|it| vec![("transport.kind", it.kind)]).collect();
    for control in ["nscc", "rccc", "both", "constant"] {
        for rto in ["auto", "10us", "300us"] {
            let uet = [
                ("transport.kind", "uet"),
                ("transport.uet-control", control),
                ("transport.uet-rto", rto),
            ];
            all.push([&uet[..], &trims].concat());
            all.push([&uet[..], &[("transport.uet-window", "5000B")]].concat());
            all.push([&uet[..], &[("transport.uet-sleek", "true")]].concat());
        }
    }
    for kind in queue_pairs() {
        all.push(vec![("transport.kind", kind), ("rdma.recovery.kind", "selective")]);
        all.push(vec![("transport.kind", kind), ("transport.importance.kind", "tlt")]);
    }
    all.push(vec![("transport.kind", "homa"), ("transport.homa-overcommitment", "1")]);
    all.push(vec![("transport.kind", "dctcp"), ("transport.fixed-rto", "1ms")]);
    all.push(vec![("transport.kind", "cubic"), ("transport.handshake", "false")]);
    all.push(vec![("transport.kind", "dctcp"), ("transport.importance.kind", "tlt")]);
    all
}

/// The plan of a family that runs a pattern beside a link that loses packets for good; an error if
/// they do not go together.
fn planned(
    family: &Keys,
    pattern: &str,
    loss: u32,
    buffer: &str,
    seed: u64,
) -> Result<Plan, String> {
    let text = format!(
        "name = \"ends\"\nuntil = \"flows-complete\"\nduration = \"1000s\"\n[topology]\nkind = \
         \"single-switch\"\nhosts = 4\nhost-link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = {{ kind = \"per-port\", size = \"{buffer}\" }}\n[transport]\nmin-rto = \
         \"1ms\"\ninitial-rto = \"1ms\"\n[[traffic]]\n{pattern}[[failure]]\nlink = [\"host3\", \
         \"switch0\"]\nat = \"0us\"\nloss = 0.{loss:02}\n"
    );
    let set: Vec<(String, String)> =
        family.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::parse("ends", &text).map_err(|error| error.to_string())?;
    scenario.plan(None, &set, Some(seed)).map_err(|error| error.to_string())
}

#[test]
fn every_family_takes_part() {
    for family in families() {
        let works = |pattern: &str| planned(&family, pattern, 5, "20KB", 1).is_ok();
        let count = PATTERNS.into_iter().filter(|pattern| works(pattern)).count();
        let why = planned(&family, PATTERNS[0], 5, "20KB", 1).err();
        assert!(count >= 4, "{family:?} runs {count} patterns: {why:?}");
    }
}

/// SLEEK's probes leave more often than requests to send, and must not put them off for ever.
#[test]
fn sleeks_probes_do_not_keep_a_sender_from_asking_for_credit() {
    let family = vec![
        ("transport.kind", "uet"),
        ("transport.uet-control", "both"),
        ("transport.uet-rto", "10us"),
        ("transport.uet-sleek", "true"),
    ];
    let plan = planned(&family, PATTERNS[5], 29, "8KB", 931).unwrap();
    let (outcome, _) = simulate(&plan, 1);
    assert_eq!((&outcome.standstill, outcome.simulated < BOUND), (&None, true));
}

/// TLT forces a copy of a lost message out, whose acknowledgement ends the connection although its
/// sender has not sent the message again by its own count: the lane goes on all the same.
#[test]
fn a_lane_goes_on_when_a_forced_copy_ends_its_message() {
    let text = "name = \"lane\"\nseed = 559\nduration = \"20s\"\nuntil = \"flows-complete\"\n\
        [topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 3\nhosts-per-leaf = 4\n\
        [transport]\nkind = \"rdma-dctcp\"\nimportance = { kind = \"tlt\" }\n[switch]\nbuffer = { \
        kind = \"shared\" }\n[[traffic]]\nname = \"t2\"\nkind = \"collective\"\nop = \"barrier\"\n\
        repeat = 2\nconnections = \"per-message\"\n[[failure]]\nlink = [\"leaf3\", \"spine1\"]\n\
        at = \"47us\"\nuntil = \"300us\"\ndetect = \"20us\"\n";
    let plan = Scenario::parse("lane", text).unwrap().plan(None, &[], None).unwrap();
    let (outcome, records) = simulate(&plan, 1);
    assert_eq!(outcome.standstill, None);
    assert!(records.flows.iter().all(|flow| flow.finish.is_some()));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each run ends all its flows within the bound.
    #[test]
    fn every_transport_ends_what_it_begins(
        family in prop::sample::select(families()),
        pattern in prop::sample::select(&PATTERNS[..]),
        loss in 0_u32..30,
        buffer in prop::sample::select(&["8KB", "20KB", "100KB"][..]),
        seed in 0_u64..1_000,
    ) {
        let plan = planned(&family, pattern, loss, buffer, seed);
        prop_assume!(plan.is_ok());
        let (outcome, _) = simulate(&plan.unwrap(), 1);
        prop_assert_eq!(&outcome.standstill, &None);
        prop_assert!(outcome.unmatched.ranks.is_empty(), "{:?}", outcome.unmatched);
        prop_assert!(outcome.simulated < BOUND, "at {}", outcome.simulated);
        prop_assert_eq!(outcome.hosts.started, outcome.hosts.completed);
    }
}
