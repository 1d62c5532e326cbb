//! Programs by hand: LogGOPSim's own results, its binary form byte by byte, and what is refused.

use super::*;
use crate::collective::{Algorithm, Collective, Operation as Op, Send};
use millpond_core::Time;
use proptest::prelude::*;
use std::fmt::Write;

/// Finish times in ns.
fn finish(text: &str) -> Vec<u64> {
    let program = read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let times = ideal(&program, &Network::default()).unwrap_or_else(|error| panic!("{error}"));
    times.iter().map(|time| time.as_ps() / 1000).collect()
}

fn error(text: &str) -> String {
    match read(text.as_bytes()) {
        Ok(program) => ideal(&program, &Network::default()).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

/// A collective of one lane as a program: each step's sends require the receives of the step.
fn goal(operation: Op, algorithm: Algorithm, ranks: u32, bytes: u64) -> String {
    let collective = Collective::plain(operation, algorithm, ranks, bytes);
    let collective_step = |rank: u32, step: u32| collective.step(rank, 0, step).is_some();
    // By receiver and step: who sends, and how much.
    let mut inbox: Vec<(u32, u32, u32, u64)> = Vec::new();
    for rank in 0..ranks {
        let mut step = 0;
        while collective_step(rank, step) {
            collective
                .sends(rank, 0, step, |_, it: Send| inbox.push((it.to, it.step, rank, it.bytes)));
            step += 1;
        }
    }
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let _ = writeln!(text, "rank {rank} {{");
        let mut step = 0;
        while collective_step(rank, step) {
            let of_step = inbox.iter().filter(|it| (it.0, it.1) == (rank, step));
            let mut receives = Vec::new();
            for (n, (_, _, from, bytes)) in of_step.enumerate() {
                let _ = writeln!(text, "r{step}x{n}: recv {bytes}b from {from} tag {step}");
                receives.push(format!("r{step}x{n}"));
            }
            let mut n = 0;
            collective.sends(rank, 0, step, |_, it| {
                let label = format!("s{step}x{n}");
                let _ = writeln!(text, "{label}: send {}b to {} tag {}", it.bytes, it.to, it.step);
                for receive in &receives {
                    let _ = writeln!(text, "{label} requires {receive}");
                }
                n += 1;
            });
            step += 1;
        }
        text.push_str("}\n");
    }
    text
}

/// LogGOPSim's results with its default parameters.
#[test]
fn collectives_finish_when_loggopsim_says() {
    use Algorithm::*;
    let reduce = finish(&goal(Op::Reduce, Binomial, 8, 1_024));
    assert_eq!(reduce, [34_914, 24_776, 13_138, 13_138, 1_500, 1_500, 1_500, 1_500]);
    assert_eq!(finish(&goal(Op::Barrier, Dissemination, 16, 1)), [22_000; 16]);
    assert_eq!(finish(&goal(Op::AllReduce, Ring, 4, 65_536)), [622_788; 4]);
    assert_eq!(finish(&goal(Op::AllReduce, HalvingDoubling, 8, 65_536)), [721_092; 8]);
    for algorithm in [Linear, Pairwise] {
        let times = finish(&goal(Op::AllToAll, algorithm, 8, 8 * 4_096));
        assert_eq!(times, [210_490; 8], "{algorithm:?}");
    }
}

fn ping_pong(bytes: u64) -> String {
    format!(
        "num_ranks 2\nrank 0 {{\nl1: send {bytes}b to 1 tag 1\nl2: recv {bytes}b from 1 tag 2\n\
         l2 requires l1\n}}\nrank 1 {{\nl1: recv {bytes}b from 0 tag 1\n\
         l2: send {bytes} b to 0 tag 2\nl2 requires l1 // back\n}}\n"
    )
}

#[test]
fn ping_pongs_take_loggopsims_time() {
    let times = [(1, 11_000), (1_024, 23_276), (65_535, 797_408), (65_536, 797_420)];
    for (bytes, time) in times {
        assert_eq!(finish(&ping_pong(bytes))[0], time, "{bytes}");
    }
}

#[test]
fn late_receive_holds_up_a_rendezvous_and_no_eager_send() {
    let text = |bytes: u64| {
        format!(
            "num_ranks 2\nrank 0 {{\na: send {bytes}b to 1\nb: calc 100\nb requires a\n}}\n\
             rank 1 {{\na: calc 20000\nb: recv {bytes}b from 0\nb requires a\n}}"
        )
    };
    assert_eq!(finish(&text(1_024)), [1_600, 27_638]);
    assert_eq!(finish(&text(100_000)), [20_100, 621_494]);
}

#[test]
fn computations_share_a_cpu_in_the_order_of_issue() {
    let text = "num_ranks 1\nrank 0 { /* two\n*/\na: calc 100\nb: calc 200\nc: calc 300 cpu 1\n\
                d: calc 50 cpu 1\nd requires b\n}";
    assert_eq!(finish(text), [350]);
    // An operation that requires the beginning alone goes on at once.
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 10 cpu 1\nb irequires a\n}";
    assert_eq!(finish(text), [100]);
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 10 cpu 1\nb requires a\n}";
    assert_eq!(finish(text), [110]);
}

#[test]
fn wildcards_take_messages_in_the_order_of_arrival() {
    let text = "num_ranks 3\nrank 0 {\na: recv 8b from -1 tag -1\nb: recv 8b from -1 tag 7\n\
                b requires a\n}\nrank 1 {\nsend 8b to 0 tag 3\n}\n\
                rank 2 {\na: calc 9000\nb: send 8b to 0 tag 7\nb requires a\n}";
    let times = finish(text);
    assert_eq!(times[0], 9_000 + 1_500 + 2_500 + 1_500 + 7 * 6);
}

#[test]
fn errors_name_lines_ranks_and_labels() {
    for (text, what) in [
        ("", "line 1: there is no num_ranks"),
        ("num_ranks 2\nrank 1 {\n}", "line 2: rank 1: rank 0 comes next"),
        ("num_ranks 1\nrank 0 {\ncalc 5\n", "rank 0: its block has no end"),
        ("num_ranks 2\nrank 0 {\n}", "rank 1: num_ranks says 2, and 1 have a block"),
        ("num_ranks 1\nrank 0 {\nb requires a\n}", "line 3: the label \"b\" is not defined above"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1\n}", "line 4: the label \"a\" is used twice"),
        ("num_ranks 1\nrank 0 {\nsend 5b to 4\n}", "line 3: rank 4: there are 1, from 0"),
        ("num_ranks 1\nrank 0 {\nsend 5b to -1\n}", "line 3: a send names its rank"),
        ("num_ranks 1\nrank 0 {\ncalc 5 cpu 256\n}", "line 3: a cpu 256 is more than 255"),
        ("num_ranks 1\nrank 0 {\ntag: calc 5\n}", "line 3: \"tag\" is a keyword"),
        ("num_ranks 1\nrank 0 {\ncalc 5 nic 1\n}", "line 3: \"nic\" is too much"),
        ("num_ranks 1\nrank 0 {\nrecv 5b from 0 tag 4294967296\n}", "a tag 4294967296 is more"),
        ("num_ranks 1 /* open\n", "line 1: the comment has no end"),
    ] {
        let found = error(text);
        assert!(found.contains(what), "{text:?}: {found}");
    }
}

#[test]
fn what_cannot_end_is_named() {
    let cycle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nb requires a\n\
                 c requires b\nb requires c\n}";
    let found = error(cycle);
    assert!(found.starts_with("rank 0: operations wait for each other: "), "{found}");
    assert!(found.contains("b (calc 2)") && found.contains("c (calc 3)"), "{found}");
    assert!(!found.contains("calc 1"), "{found}");
    let unmatched = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 1\n}\n\
                     rank 1 {\nx: recv 8b from 0 tag 2\ny: calc 5\ny requires x\n}";
    let found = error(unmatched);
    for part in [
        "rank 1: 1 receives without a message: x (recv 8b from 0 tag 2)",
        "1 messages without a receive: a (send 8b to 1 tag 1) of rank 0",
        "1 operations never began",
    ] {
        assert!(found.contains(part), "{found}");
    }
    let deadlock = "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n\
                    rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}";
    assert!(error(deadlock).contains("a (recv 1b from 1 tag 0)"), "{}", error(deadlock));
}

/// One rank with `calc 7`, byte by byte.
fn one_calc() -> Vec<u8> {
    let mut bytes = 4223u64.to_le_bytes().to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([0, 0]);
    [22u64, 73].iter().for_each(|offset| bytes.extend(offset.to_le_bytes()));
    bytes.extend([1u32, 1, 0].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(0u32.to_le_bytes());
    bytes.push(3);
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(7u64.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([0, 0]);
    [0u32; 4].iter().for_each(|n| bytes.extend(n.to_le_bytes()));
    bytes
}

#[test]
fn binary_is_read_byte_by_byte() {
    let bytes = one_calc();
    assert_eq!(bytes.len(), 81);
    let program = read(&bytes).unwrap();
    let text = read(b"num_ranks 1\nrank 0 {\ncalc 7\n}").unwrap();
    assert_eq!(program.ranks[0].operations, text.ranks[0].operations);
    assert_eq!(ideal(&program, &Network::default()).unwrap(), [Time::from_ns(7)]);
    for len in 8..bytes.len() {
        let cut = read(&bytes[..len]).unwrap_err().to_string();
        assert!(cut.starts_with("byte ") || cut.starts_with("rank "), "{len}: {cut}");
    }
    let mut spoiled = bytes.clone();
    spoiled[..8].copy_from_slice(&2342u64.to_le_bytes());
    assert!(read(&spoiled).unwrap_err().message.contains("in place"));
    // The operation says that it waits for another, and nothing names it.
    let mut waits = bytes.clone();
    waits[42] = 1;
    assert!(read(&waits).unwrap_err().message.contains("waits for 0 others, and the file says 1"));
    let mut kind = bytes;
    kind[46] = 9;
    assert!(read(&kind).unwrap_err().message.contains("type 9"));
}

proptest! {
    #[test]
    fn any_bytes_are_a_program_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200), magic in any::<bool>(),
    ) {
        if magic && bytes.len() >= 14 {
            bytes[..8].copy_from_slice(&4223u64.to_le_bytes());
            bytes[9..12].fill(0);
        }
        if let Ok(program) = read(&bytes) {
            let _ = ideal(&program, &Network::default());
        }
    }

    #[test]
    fn any_text_is_a_program_or_an_error(
        body in "(num_ranks 1\nrank 0 \\{\n)?((a|b): |)(send|recv|calc|b requires a|\\}|[ 0-9ab])\
                 {0,6}( (to|from|tag|cpu|b) [0-9-]{0,3}){0,4}\n?\\}?",
    ) {
        let _ = read(body.as_bytes());
    }
}

/// Two layers on four ranks, two by two: L = 0 with o = 0 and G = 1 ns a byte, so that a ring of
/// two ranks takes two halves of its size less two nanoseconds.
#[test]
fn simai_layers_take_their_time() {
    let text = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 \
                ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n2\n\
                embed -1 1000 ALLREDUCE 100 1 NONE 0 1 NONE 0 10\n\
                mlp -1 2000 NONE 0 500 ALLREDUCE 8000 700 REDUCESCATTER 6000 10\n";
    let mut costs = Network::default().costs;
    (costs.message, costs.gap, costs.gap_byte) = (Time::ZERO, Time::ZERO, Time::from_ns(1));
    let network = Network { latency: Time::ZERO, costs };
    let run = |iterations| {
        let program = simai::read(text, iterations).unwrap();
        let times = ideal(&program, &network).unwrap();
        assert_eq!(times, [times[0]; 4]);
        times[0].as_ps() / 1000
    };
    // Forward: 1000, an all-reduce of 4,096 bytes (2 × 2,047 ns), 2000. Back: 500, 8,000 bytes
    // (2 × 3,999), 700, then the data-parallel reduce-scatter of 6,000 (2,999) beside 1 + 1, and
    // the updates.
    let forward = 1_000 + 2 * 2_047 + 2_000;
    let back = 500 + 2 * 3_999 + 700;
    assert_eq!(run(1), forward + back + 2_999 + 10);
    // The second iteration's first layer goes on at once; its second layer waits for its gradient,
    // which has long come.
    assert_eq!(run(2), 2 * (forward + back) + 2 + 10 + 2_999 + 10);
}

#[test]
fn simai_errors_name_lines() {
    let head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n1\n";
    let layer = "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    assert!(simai::read(&format!("{head}{layer}"), 1).is_ok());
    for (text, what) in [
        (String::new(), "line 1: there is no policy"),
        ("DATA all_gpus: 4\n1".into(), "line 1: the policy \"DATA\" is not known"),
        ("HYBRID_TRANSFORMER ep: 1\n1".into(), "line 1: there is no all_gpus"),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 4\n0".into(), "no multiple"),
        (
            format!("{head}l -1 1 NONE 0\n{layer}"),
            "line 3: a layer has 12 fields, and this line has 5",
        ),
        (format!("{head}{layer} 7"), "line 3: a layer has 12 fields, and this line has 13"),
        (format!("{head}{layer}\nm{layer}"), "line 4: \"ml\" comes after the last of 1 layers"),
        (head.replace("\n1", "\n2") + layer, "2 layers are announced, and 1 follow"),
        (format!("\n\n{}", head.replace("all_gpus: 4", "all_gpus: 5")), "line 3: all_gpus 5 is no"),
        (
            format!("\n{}", head.replace("group: 2", "group: 0")),
            "line 2: model_parallel_NPU_group must",
        ),
        (head.lines().next().unwrap_or_default().into(), "there is no number of layers"),
        (
            format!("{head}{}", layer.replacen("NONE", "ALLTOSOME", 1)),
            "line 3: \"ALLTOSOME\" is no",
        ),
        (format!("{head}{}", layer.replacen("1 NONE", "x NONE", 1)), "line 3: a time: expected"),
    ] {
        let found = simai::read(&text, 1).unwrap_err().to_string();
        assert!(found.contains(what), "{text:?}: {found}");
    }
}

#[test]
fn simai_reports_each_key_that_is_not_run_once() {
    let layers = "2\nl -1 0 NONE 0 0 NONE 0 0 NONE 0 0\nm -1 0 NONE 0 0 NONE 0 0 NONE 0 0";
    let notes = |head: &str| simai::read(&format!("{head}\n{layers}"), 1).unwrap().notes;
    let plain = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 \
                 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0";
    assert_eq!(notes(plain), Vec::<String>::new());
    let staged = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 2 vpp: 4 ga: 8 \
                  all_gpus: 4 checkpoints: 1 checkpoint_initiates: 1 pp_comm: 16777216 new: 3";
    let found = notes(staged);
    for key in ["pp: 2", "vpp: 4", "ga: 8", "checkpoints: 1", "checkpoint_initiates: 1", "new: 3"] {
        let begin = format!("line 1: {key} is not run: ");
        assert_eq!(found.iter().filter(|note| note.starts_with(&begin)).count(), 1, "{found:?}");
    }
    assert!(found.iter().any(|note| note.contains("pp_comm: 16777216")) && found.len() == 7);
    let awaited = format!("{plain}\n{}", layers.replace("-1", "0"));
    let found = simai::read(&awaited, 1).unwrap().notes;
    assert_eq!(found, ["line 3: the dependency 0 is not followed: layers run in turn"]);
}

/// Groups of 16 ranks: tensor 2, data 4, two stages; experts in pairs of data ranks.
#[test]
fn simai_groups_are_megatrons_order() {
    let text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16\n1\n\
                l -1 0 ALLTOALL_EP 8 0 NONE 0 0 ALLREDUCE_DP_EP 8 0";
    let program = simai::read(text, 1).unwrap();
    let members = |division: usize, rank: u32| -> Vec<u32> {
        let size = [2, 4, 2, 2][division];
        (0..size).map(|place| program.groups[division].rank_at(rank, place)).collect()
    };
    assert_eq!(members(0, 5), [4, 5]);
    assert_eq!(members(1, 5), [1, 3, 5, 7]);
    assert_eq!(members(2, 5), [5, 7]);
    assert_eq!(members(3, 5), [1, 5]);
    assert_eq!(members(1, 12), [8, 10, 12, 14]);
    assert!(ideal(&program, &Network::default()).is_ok());
}
