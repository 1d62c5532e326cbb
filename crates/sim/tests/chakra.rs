//! Chakra's traces over packets: beside GOAL, beside collectives, and the traces of the scenario.

use crate::common::{assert_nothing_changes, exact, simulate};
use millpond_ranks::program::chakra::message::{Attribute, Node, Value, kind};
use millpond_ranks::program::chakra::write;
use millpond_scenario::Scenario;
use std::path::{Path, PathBuf};

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    /// The traces of ranks, as job.RANK.et.
    fn new(name: &str, ranks: &[Vec<Node>]) -> Folder {
        let own = format!("millpond-chakra-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&folder).unwrap();
        for (rank, nodes) in ranks.iter().enumerate() {
            std::fs::write(folder.join(format!("job.{rank}.et")), write(nodes)).unwrap();
        }
        Folder(folder)
    }

    /// The traffic of its traces.
    fn traffic(&self, keys: &str) -> String {
        format!("kind = \"chakra\"\nfile = {:?}\n{keys}\n", self.0.join("job").to_str().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Four hosts at a switch, with a traffic.
fn scenario(traffic: &str) -> String {
    format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n\
         [topology]\nkind = \"single-switch\"\nhosts = 4\n\
         host-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[host]\nmtu = 4040\n\
         [transport]\nkind = \"dcqcn\"\n[rdma]\nack-interval = 1000000\n\
         [[traffic]]\nname = \"job\"\n{traffic}\n"
    )
}

/// When each rank ended, and how many messages there were.
fn ends(text: &str) -> (Vec<u64>, usize) {
    let (outcome, records) = simulate(&exact(text, &[]), 1);
    assert_eq!(outcome.unmatched, millpond_sim::Unmatched::default());
    let mut ranks = records.ranks;
    ranks.sort_by_key(|rank| rank.rank);
    (ranks.iter().map(|rank| rank.ended.as_ps()).collect(), records.flows.len())
}

fn error(traffic: &str) -> String {
    let scenario = Scenario::parse("s", &scenario(traffic));
    scenario.and_then(|it| it.plan(None, &[], None)).expect_err(traffic).to_string()
}

fn node(id: u64, name: &str, kind: i32, after: &[u64], attributes: &[(&str, i64)]) -> Node {
    let attribute = |(name, value): &(&str, i64)| Attribute::new(name, Value::Int64(*value));
    Node {
        id,
        name: name.into(),
        kind,
        data: after.to_vec(),
        attributes: attributes.iter().map(attribute).collect(),
        ..Node::default()
    }
}

fn compute(id: u64, name: &str, us: u64, after: &[u64]) -> Node {
    Node { duration_us: us, ..node(id, name, kind::COMPUTE, after, &[]) }
}

fn send(id: u64, name: &str, to: u32, (bytes, tag): (i64, i64), after: &[u64]) -> Node {
    let all = [("comm_dst", to.into()), ("comm_size", bytes), ("comm_tag", tag)];
    node(id, name, kind::SEND, after, &all)
}

fn receive(id: u64, name: &str, from: u32, (bytes, tag): (i64, i64), after: &[u64]) -> Node {
    let all = [("comm_src", from.into()), ("comm_size", bytes), ("comm_tag", tag)];
    node(id, name, kind::RECEIVE, after, &all)
}

fn collective(id: u64, name: &str, comm_type: i64, bytes: i64, after: &[u64]) -> Node {
    node(id, name, kind::COLLECTIVE, after, &[("comm_type", comm_type), ("comm_size", bytes)])
}

/// The traces of `scenarios/ai/chakra.toml`: see there.
fn step() -> Vec<Vec<Node>> {
    const MICRO_BATCHES: i64 = 4;
    const ACTIVATIONS: i64 = 1_000_000;
    (0..4)
        .map(|rank| {
            let (is_first, peer) = (rank < 2, (rank + 2) % 4);
            let mut nodes = Vec::new();
            let mut id = 0;
            let mut last: Vec<u64> = Vec::new();
            let mut push = |mut node: Node| {
                node.id = id;
                id += 1;
                nodes.push(node);
                id - 1
            };
            for batch in 0..MICRO_BATCHES {
                let size = (ACTIVATIONS, batch);
                if is_first {
                    let done = push(compute(0, "forward", 40, &last));
                    push(send(0, "activations", peer, size, &[done]));
                    last = vec![done];
                } else {
                    let there = push(receive(0, "activations", peer, size, &[]));
                    let forward = push(compute(0, "forward", 40, &[&last[..], &[there]].concat()));
                    let done = push(compute(0, "backward", 80, &[forward]));
                    let size = (ACTIVATIONS, MICRO_BATCHES + batch);
                    push(send(0, "gradients", peer, size, &[done]));
                    last = vec![done];
                }
            }
            if is_first {
                for batch in 0..MICRO_BATCHES {
                    let size = (ACTIVATIONS, MICRO_BATCHES + batch);
                    let there = push(receive(0, "gradients", peer, size, &[]));
                    last = vec![push(compute(0, "backward", 80, &[&last[..], &[there]].concat()))];
                }
            }
            let group = if is_first { "stage0" } else { "stage1" };
            let reduced = |name: &str, after: &[u64]| {
                let mut all_reduce = collective(0, name, 0, 4_000_000, after);
                all_reduce.attributes.push(Attribute::new("pg_name", Value::Text(group.into())));
                all_reduce
            };
            let first = push(reduced("all-reduce of layer 1", &last));
            let weights = push(compute(0, "weight gradient of layer 0", 60, &last));
            let second = push(reduced("all-reduce of layer 0", &[weights]));
            let update = push(compute(0, "update", 20, &[first, second]));
            push(node(0, "end of step", kind::COLLECTIVE, &[update], &[("comm_type", 9)]));
            nodes
        })
        .collect()
}

/// `MILLPOND_BLESS=1` writes them.
#[test]
#[allow(clippy::disallowed_methods)] // it writes the fixture, and changes no result
fn traces_of_the_scenario_are_those_of_its_description() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ai/chakra");
    for (rank, nodes) in step().iter().enumerate() {
        let (file, bytes) = (folder.join(format!("step.{rank}.et")), write(nodes));
        if std::env::var_os("MILLPOND_BLESS").is_some() {
            std::fs::write(&file, &bytes).unwrap();
        }
        assert!(std::fs::read(&file).unwrap() == bytes, "{file:?} differs: MILLPOND_BLESS=1");
    }
}

/// The step's computations and messages, one after another where they depend on each other.
#[test]
fn step_of_the_scenario_takes_at_least_its_critical_path() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ai/chakra.toml");
    let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let variants = [("packed", 800), ("round-robin", 1_000), ("round-robin-balanced", 100)];
    for (variant, beyond) in variants {
        let plan = scenario.plan(Some(variant), &[], None).unwrap_or_else(|e| panic!("{e}"));
        let (outcome, records) = simulate(&plan, 2);
        assert!(!outcome.is_stalled(), "{:?}", outcome.unmatched);
        // 2 × 2 × 4 messages of the pipeline, 4 × 2 × 2 of the rings, 4 × 2 of the barrier.
        assert_eq!(records.flows.len(), 16 + 16 + 8);
        let us = |time: u64| time / 1_000_000;
        for rank in &records.ranks {
            let (computed, ended) = (us(rank.computed.as_ps()), us(rank.ended.as_ps()));
            assert_eq!(computed, 4 * (40 + 80) + 60 + 20);
            // Forward once at stage 0, all of stage 1, back once at stage 0, the update; a
            // message each way takes 80 µs, and two all-reduces after each other 320 µs each.
            // Rings of both stages can share an uplink, which takes them twice the time; balanced
            // paths are apart.
            let least = 40 + 4 * 120 + 80 + 20 + 2 * 80 + 2 * 320;
            assert!((least..least + beyond).contains(&ended), "{variant}: {ended}");
        }
    }
}

/// The same program as GOAL and as traces.
#[test]
fn messages_and_computations_take_goals_time() {
    let text = "num_ranks 2\n\
                rank 0 {\na: calc 50000 cpu 1\nb: send 1000000b to 1 tag 7 cpu 2\n\
                c: calc 7000 cpu 1\nd: recv 2000b from 1 tag 8 cpu 2\ne: calc 9000 cpu 1\n\
                b requires a\nc requires b\nd requires b\ne requires d\n}\n\
                rank 1 {\na: recv 1000000b from 0 tag 7 cpu 2\nb: calc 3000 cpu 1\n\
                c: send 2000b to 0 tag 8 cpu 2\nb requires a\nc requires b\n}\n";
    let zero = vec![
        compute(1, "a", 50, &[]),
        send(2, "b", 1, (1_000_000, 7), &[1]),
        compute(3, "c", 7, &[2]),
        receive(4, "d", 1, (2_000, 8), &[2]),
        compute(5, "e", 9, &[4]),
    ];
    let one = vec![
        receive(10, "a", 0, (1_000_000, 7), &[]),
        compute(20, "b", 3, &[10]),
        send(30, "c", 0, (2_000, 8), &[20]),
    ];
    let folder = Folder::new("goal", &[zero, one]);
    let goal = folder.0.join("job.goal");
    std::fs::write(&goal, text).unwrap();
    for eager in ["2MB", "65535", "1000"] {
        let keys = format!("eager = {eager:?}").replace("\"65535\"", "65535");
        let keys = keys.replace("\"1000\"", "1000");
        let of_goal = format!("kind = \"goal\"\nfile = {:?}\n{keys}", goal.to_str().unwrap());
        let found = ends(&scenario(&folder.traffic(&keys)));
        assert_eq!(found, ends(&scenario(&of_goal)), "{eager}");
        assert!(found.0[0] > 50_000_000 + 83_123_200, "{found:?}");
    }
}

/// A node of each kind takes the time of the collective.
#[test]
fn collectives_take_the_time_of_collectives() {
    for (comm_type, op, given, size) in [
        (0, "all-reduce", 8_000_000, 8_000_000),
        (2, "all-gather", 1_000_000, 4_000_000),
        (7, "reduce-scatter", 4_000_000, 4_000_000),
        (6, "all-to-all", 4_000_000, 4_000_000),
        (5, "broadcast", 1_000_000, 1_000_000),
        (1, "reduce", 1_000_000, 1_000_000),
        (9, "barrier", 0, 1),
    ] {
        let ranks = vec![vec![collective(3, "x", comm_type, given, &[])]; 4];
        let folder = Folder::new(op, &ranks);
        let found = ends(&scenario(&folder.traffic("")));
        let alone = format!("kind = \"collective\"\nop = \"{op}\"\nsize = {size}\n");
        assert_eq!(found, ends(&scenario(&alone)), "{op}");
        assert!(found.1 >= 3, "{op}: {found:?}");
    }
}

#[test]
fn deadlocks_name_ranks_and_nodes() {
    let zero = vec![receive(1, "late", 1, (8, 0), &[]), collective(2, "sum", 0, 800, &[1])];
    let one = vec![collective(1, "sum", 0, 800, &[]), send(2, "after", 0, (8, 0), &[1])];
    let folder = Folder::new("deadlock", &[zero, one]);
    let (outcome, _) = simulate(&exact(&scenario(&folder.traffic("")), &[]), 1);
    assert!(outcome.is_stalled() && outcome.unmatched.is_end);
    let what: Vec<&String> = outcome.unmatched.ranks.iter().map(|(.., what)| what).collect();
    assert!(what[0].contains("node 1 \"late\" (recv 8b from 1 tag 0)"), "{what:?}");
    assert!(what[1].contains("node 1 \"sum\" (collective of 800b)"), "{what:?}");
}

#[test]
fn errors_name_the_trace_and_its_place() {
    let folder = Folder::new("wrong", &vec![vec![collective(3, "x", 0, 8, &[])]; 5]);
    let found = error(&folder.traffic(""));
    let expected = "`traffic.job.file`: 5 ranks from place 0 on, and there are 4 hosts";
    assert!(found.contains(expected), "{found}");
    assert!(error(&folder.traffic("stop = \"1us\"")).contains("traces end by themselves"));
    let last = folder.0.join("job.4.et");
    let bytes = std::fs::read(&last).unwrap();
    std::fs::write(&last, &bytes[..bytes.len() - 1]).unwrap();
    let found = error(&folder.traffic(""));
    assert!(found.contains("job.4.et: byte 8"), "{found}");
    std::fs::remove_file(&last).unwrap();
    let found = error(&folder.traffic("groups = \"none.json\""));
    assert!(found.contains("none.json") && found.contains("cannot be read"), "{found}");
    let found = error(&folder.traffic("digest = \"12\""));
    assert!(found.contains("it has changed"), "{found}");
    std::fs::remove_file(folder.0.join("job.1.et")).unwrap();
    let found = error(&folder.traffic(""));
    assert!(found.contains("job.1.et") && found.contains("one of rank 3"), "{found}");
}

#[test]
fn traces_are_the_same_for_any_threads_and_partitions() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ai/chakra");
    let (step, groups) = (file.join("step"), file.join("groups.json"));
    let text = format!(
        "duration = \"1s\"\nuntil = \"flows-complete\"\n[topology]\nleaves = 4\nspines = 2\n\
         hosts-per-leaf = 2\n[[traffic]]\nname = \"job\"\nkind = \"chakra\"\n\
         placement = \"random\"\nfile = {:?}\ngroups = {:?}\n",
        step.to_str().unwrap(),
        groups.to_str().unwrap()
    );
    assert_nothing_changes(&text, &[], &[2, 3]);
}
