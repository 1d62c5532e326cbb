//! Rank programs over packets, by hand: the network of the collectives' tests.

use crate::common::{File, assert_nothing_changes, exact, plan, simulate};
use millpond_core::Time;

/// T(1 MB): 250 packets of 4,000 bytes and 40 of headers over two links of 100 Gb/s and 1 µs.
const T_1MB: u64 = 83_123_200;
const US: u64 = 1_000_000;

/// A scenario that runs a file on four hosts.
fn scenario(file: &File, keys: &str) -> String {
    format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n\
             [topology]\nkind = \"single-switch\"\nhosts = 4\n\
             host-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[host]\nmtu = 4040\n\
             [transport]\nkind = \"dcqcn\"\n[rdma]\nack-interval = 1000000\n\
             [[traffic]]\nname = \"job\"\nkind = \"goal\"\nfile = {:?}\n{keys}\n",
        file.0.to_str().unwrap()
    )
}

/// When each rank ended.
fn ends(name: &str, text: &str, keys: &str) -> Vec<u64> {
    let file = File::new(name, text);
    let (outcome, records) = simulate(&exact(&scenario(&file, keys), &[]), 1);
    assert_eq!(outcome.unmatched, millpond_sim::Unmatched::default());
    let mut ranks = records.ranks;
    ranks.sort_by_key(|rank| rank.rank);
    ranks.iter().map(|rank| rank.ended.as_ps()).collect()
}

#[test]
fn ping_pong_takes_two_messages() {
    let text = "num_ranks 2\nrank 0 {\na: send 1000000b to 1\nb: recv 1000000b from 1\n\
                b requires a\n}\nrank 1 {\na: recv 1000000b from 0\nb: send 1000000b to 0\n\
                b requires a\n}\n";
    // The answer to the ping (44 bytes) is a hop ahead of the pong; eager sends end at once.
    let eager = ends("ping", text, "eager = \"2MB\"");
    assert_eq!(eager, [2 * T_1MB + 3_520, T_1MB]);
    // A rendezvous: rank 1 learns 2 µs after the pong's end that it is matched.
    let rendezvous = ends("rendezvous", text, "eager = 1000");
    assert_eq!(rendezvous, [2 * T_1MB + 3_520, 2 * T_1MB + 3_520 + 2 * US]);
    // The sender learns of the match although its connection is over.
    let own = ends("own", text, "eager = 1000\nconnections = \"per-message\"");
    assert_eq!(own, rendezvous);
}

/// Both receives are posted at one instant, so the news of both arrive at another, long after.
#[test]
fn matches_of_one_instant_call_the_sender_once() {
    let receiver = "a: calc 9000000\nb: recv 2000b from 0\nb requires a\n";
    let text = format!(
        "num_ranks 3\nrank 0 {{\nsend 2000b to 1\nsend 2000b to 2\n}}\n\
         rank 1 {{\n{receiver}}}\nrank 2 {{\n{receiver}}}\n"
    );
    let file = File::new("instant", &text);
    let text = scenario(&file, "eager = 1000").replace("delay = \"1us\"", "delay = \"1ms\"");
    for threads in [1, 3] {
        let (outcome, mut records) = simulate(&exact(&text, &[]), threads);
        assert_eq!(outcome.unmatched, millpond_sim::Unmatched::default());
        records.ranks.sort_by_key(|rank| rank.rank);
        let ends: Vec<u64> = records.ranks.iter().map(|rank| rank.ended.as_ps() / US).collect();
        assert_eq!(ends, [11_000, 9_000, 9_000]);
    }
}

/// A rank's connections for one message each are bounded: later messages wait for one to end, and
/// each has its record, also if the run ends before.
#[test]
fn messages_wait_for_a_connection_of_their_own() {
    let sends: String = (0..5_000).map(|n| format!("s{n}: send 100b to 1 tag {n}\n")).collect();
    let receives: String =
        (0..5_000).map(|n| format!("r{n}: recv 100b from 0 tag {n}\n")).collect();
    let text = format!("num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{receives}}}\n");
    let file = File::new("many", &text);
    let of = |duration: &str| {
        let text = scenario(&file, "connections = \"per-message\"")
            .replace("\"1s\"", duration)
            .replace("dcqcn", "newreno")
            .replace("[rdma]\nack-interval", "#");
        let (outcome, records) = simulate(&exact(&text, &[]), 1);
        (outcome.audit.injected.packets, records.flows)
    };
    let (_, flows) = of("\"1s\"");
    let ids: std::collections::BTreeSet<u32> = flows.iter().map(|flow| flow.flow).collect();
    assert_eq!((flows.len(), ids.len()), (5_000, 5_000));
    assert!(flows.iter().all(|flow| flow.finish.is_some() && flow.start == Time::ZERO));
    // No SYN arrives within a microsecond: those of 4,096 messages leave, and the others wait.
    let (syns, early) = of("\"1us\"");
    assert_eq!((syns, early.len()), (4_096, 5_000));
    assert!(early.iter().all(|flow| flow.finish.is_none()));
    let ids: std::collections::BTreeSet<u32> = early.iter().map(|flow| flow.flow).collect();
    assert_eq!(ids.len(), 5_000);
}

/// A cpu takes o for each message, and computations of one cpu follow each other.
#[test]
fn computations_and_costs_take_their_time() {
    let text = "num_ranks 2\nrank 0 {\na: calc 50000\nb: send 1000000b to 1\nc: calc 7000\n\
                b requires a\nc requires b\nd: calc 1000 cpu 1\n}\n\
                rank 1 {\na: recv 1000000b from 0\nb: calc 3000\nb requires a\n}\n";
    let free = ends("calc", text, "eager = \"2MB\"");
    assert_eq!(free, [57 * US, 50 * US + T_1MB + 3 * US]);
    let spans = |rank: usize| {
        let file = File::new("spans", text);
        let (_, records) = simulate(&exact(&scenario(&file, "eager = \"2MB\""), &[]), 1);
        records.ranks.into_iter().find(|it| it.rank as usize == rank).unwrap().computations
    };
    let from = |from: u64, until: u64| (Time::from_ps(from), Time::from_ps(until));
    // The calc of 1,000 ns overlaps with that of 50,000, and c follows the send at once.
    assert_eq!(spans(0), [from(0, 57 * US)]);
    assert_eq!(spans(1), [from(50 * US + T_1MB, 53 * US + T_1MB)]);
    let costly = ends("costs", text, "eager = \"2MB\"\nmessage-cost = \"2us\"");
    assert_eq!(costly, [59 * US, 54 * US + T_1MB + 3 * US]);
}

#[test]
fn a_rank_sends_to_itself_and_alone() {
    let text = "num_ranks 1\nrank 0 {\na: send 8b to 0 tag 4\nb: recv 8b from -1 tag -1\n\
                c: calc 5000\nc requires b\n}\n";
    assert_eq!(ends("self", text, ""), [5 * US]);
    assert_eq!(ends("self-rendezvous", text, "eager = 0"), [5 * US]);
}

#[test]
fn what_never_matches_ends_the_run_and_is_named() {
    let text = "num_ranks 2\nrank 0 {\nx: send 8b to 1 tag 1\n}\n\
                rank 1 {\ny: recv 8b from 0 tag 2\nz: calc 5\nz requires y\n}\n";
    let file = File::new("unmatched", text);
    let (outcome, records) = simulate(&exact(&scenario(&file, ""), &[]), 1);
    assert!(outcome.is_stalled() && outcome.unmatched.is_end);
    let [(0, 1, what)] = &outcome.unmatched.ranks[..] else { panic!("{:?}", outcome.unmatched) };
    assert!(what.contains("y (recv 8b from 0 tag 2)"), "{what}");
    assert!(what.contains("x (send 8b to 1 tag 1) of rank 0"), "{what}");
    assert_eq!((records.ranks.len(), records.collectives.len()), (1, 1));
    assert_eq!(records.collectives[0].end, None);
    // Cut off by its end, a run has no deadlock.
    let far = scenario(&file, "").replace("tag 1", "tag 2").replace("1s", "1us");
    std::fs::write(&file.0, text.replace("tag 1", "tag 2")).unwrap();
    let (outcome, _) = simulate(&exact(&far, &[]), 1);
    assert!(!outcome.is_stalled() && !outcome.unmatched.ranks.is_empty());
}

#[test]
fn a_bad_file_or_too_few_hosts_is_an_error_with_its_place() {
    let wrong = |text: &str, keys: &str| {
        let file = File::new("wrong", text);
        let scenario =
            millpond_scenario::Scenario::parse("s", &self::scenario(&file, keys)).unwrap();
        scenario.plan(None, &[], None).unwrap_err().to_string()
    };
    let cycle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}";
    let found = wrong(cycle, "");
    assert!(found.contains("rank 0: operations wait for each other: "), "{found}");
    assert!(found.contains("a (calc 1)") && found.contains("b (calc 2)"), "{found}");
    assert!(wrong("num_ranks 1\nrank 0 {\nsend 5b to 4\n}", "").contains("line 3: rank 4"));
    let five: String = (0..5).map(|rank| format!("rank {rank} {{\n}}\n")).collect();
    assert!(wrong(&format!("num_ranks 5\n{five}"), "").contains("5 ranks"));
}

/// A layer of SimAI's on four ranks: 10 µs, then a ring all-reduce of 8 MB with its five answers.
#[test]
fn layers_of_simai_compute_and_reduce() {
    let head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 4 all_gpus: 4\n1\n";
    let layer = "mlp -1 10000 ALLREDUCE 8000000 0 NONE 0 0 NONE 0 0\n";
    let file = File::new("simai", &format!("{head}{layer}"));
    let text = scenario(&file, "").replace("\"goal\"", "\"simai\"");
    let (_, records) = simulate(&exact(&text, &[]), 1);
    // T(2 MB): 500 packets.
    let ring = 6 * (161_600_000 + 323_200 + 2 * US) + 5 * 3_520;
    assert!(records.ranks.iter().all(|rank| rank.ended.as_ps() == 10 * US + ring));
    assert!(records.ranks.iter().all(|rank| rank.computed == Time::from_us(10)));
    assert_eq!((records.ranks.len(), records.flows.len()), (4, 24));
    let twice = text.clone() + "iterations = 2\n";
    let (_, records) = simulate(&exact(&twice, &[]), 1);
    assert_eq!(records.flows.len(), 48);
}

/// Rings with wildcards, on a network of several partitions.
#[test]
fn programs_are_the_same_for_any_threads_and_partitions() {
    let mut text = "num_ranks 8\n".to_string();
    for rank in 0..8 {
        let (next, eager) = ((rank + 1) % 8, 30_000);
        text += &format!("rank {rank} {{\nc: calc {}\n", 1_000 * rank);
        for step in 0..4 {
            let before = if step == 0 { "c".into() } else { format!("r{}", step - 1) };
            text += &format!(
                "s{step}: send {}b to {next} tag {step}\ns{step} requires {before}\n\
                 r{step}: recv {}b from -1 tag {step}\nr{step} irequires s{step}\n",
                eager << step,
                eager << step
            );
        }
        text += "}\n";
    }
    let file = File::new("threads", &text);
    let scenario = format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nleaves = 4\nspines = 2\n\
         hosts-per-leaf = 2\n[[traffic]]\nkind = \"goal\"\nplacement = \"random\"\nfile = {:?}\n",
        file.0.to_str().unwrap()
    );
    let (outcome, records) = simulate(&plan(&scenario, &[]), 1);
    assert_eq!((records.ranks.len(), outcome.unmatched.ranks.len()), (8, 0));
    assert!(records.ranks.iter().all(|rank| rank.ended > Time::from_us(7)));
    assert_nothing_changes(&scenario, &[], &[2, 3]);
}
