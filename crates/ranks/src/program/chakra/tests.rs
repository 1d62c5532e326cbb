//! Traces by hand: the bytes of a file, times beside GOAL's and formulas, and the errors.

use super::super::{Costs, Network, ideal, read as read_goal};
use super::message::{Attribute, Bools, Node, Value, Values, kind};
use super::*;
use crate::collective::Operation as Op;
use millpond_core::Time;
use proptest::prelude::*;

/// A node of a kind with its attributes.
fn node(id: u64, name: &str, kind: i32, after: &[u64], attributes: &[(&str, Value)]) -> Node {
    Node {
        id,
        name: name.into(),
        kind,
        data: after.to_vec(),
        attributes: attributes.iter().map(|(name, it)| Attribute::new(name, it.clone())).collect(),
        ..Node::default()
    }
}

fn compute(id: u64, us: u64, after: &[u64]) -> Node {
    Node { duration_us: us, ..node(id, "mm", kind::COMPUTE, after, &[]) }
}

fn send(id: u64, to: i32, bytes: i64, tag: i32, after: &[u64]) -> Node {
    let (to, bytes) = (Value::Int32(to), Value::Int64(bytes));
    let all = [("comm_dst", to), ("comm_size", bytes), ("comm_tag", Value::Int32(tag))];
    node(id, "send", kind::SEND, after, &all)
}

fn receive(id: u64, from: u32, tag: u64, after: &[u64]) -> Node {
    let all = [("comm_src", Value::Uint32(from)), ("comm_tag", Value::Uint64(tag))];
    node(id, "recv", kind::RECEIVE, after, &all)
}

fn collective(id: u64, comm_type: i64, bytes: i64, after: &[u64]) -> Node {
    let all = [("comm_type", Value::Int64(comm_type)), ("comm_size", Value::Int64(bytes))];
    node(id, "coll", kind::COLLECTIVE, after, &all)
}

fn with(mut node: Node, name: &str, value: Value) -> Node {
    node.attributes.push(Attribute::new(name, value));
    node
}

fn of_group(node: Node, group: &str) -> Node {
    with(node, "pg_name", Value::Text(group.into()))
}

fn read_bytes(ranks: &[Vec<u8>], groups: Option<&str>) -> Result<Program, ProgramError> {
    let names: Vec<String> = (0..ranks.len()).map(|rank| format!("t.{rank}.et")).collect();
    let files: Vec<File<'_>> =
        names.iter().zip(ranks).map(|(name, bytes)| File { name, bytes }).collect();
    read(&files, groups.map(|text| File { name: "groups.json", bytes: text.as_bytes() }))
}

fn read_nodes(ranks: &[Vec<Node>], groups: Option<&str>) -> Result<Program, ProgramError> {
    let traces: Vec<Vec<u8>> = ranks.iter().map(|nodes| write(nodes)).collect();
    read_bytes(&traces, groups)
}

fn error(ranks: &[Vec<Node>]) -> String {
    read_nodes(ranks, None).unwrap_err().to_string()
}

/// No latency and no costs but a nanosecond a byte: a message of s bytes takes s − 1 ns.
fn network() -> Network {
    let (zero, eager) = (Time::ZERO, Some(u64::MAX));
    let costs = Costs { message: zero, byte: zero, gap: zero, gap_byte: Time::from_ns(1), eager };
    Network { latency: zero, costs }
}

/// Finish times in ns.
fn finish(ranks: &[Vec<Node>], groups: Option<&str>) -> Vec<u64> {
    let program = read_nodes(ranks, groups).unwrap_or_else(|error| panic!("{error}"));
    let times = ideal(&program, &network()).unwrap_or_else(|error| panic!("{error}"));
    times.iter().map(|time| time.as_ps() / 1000).collect()
}

/// ASTRA-sim's all-reduce of 1 MB on four ranks, byte by byte.
fn all_reduce_of_astra_sim() -> Vec<u8> {
    let mut bytes = vec![0x07, 0x0a, 0x05];
    bytes.extend(b"0.0.4");
    bytes.extend([0x48, 0x12, 0x14]);
    bytes.extend(b"COMM_COLL_NODE_x_ARx");
    bytes.extend([0x18, 0x07]);
    bytes.extend([0x52, 0x0e, 0x0a, 0x09]);
    bytes.extend(b"is_cpu_op");
    bytes.extend([0xd8, 0x01, 0x00]);
    bytes.extend([0x52, 0x0d, 0x0a, 0x09]);
    bytes.extend(b"comm_type");
    bytes.extend([0x48, 0x00]);
    bytes.extend([0x52, 0x0f, 0x0a, 0x09]);
    bytes.extend(b"comm_size");
    bytes.extend([0x48, 0x80, 0x80, 0x40]);
    bytes
}

#[test]
fn trace_is_read_byte_by_byte() {
    let bytes = all_reduce_of_astra_sim();
    assert_eq!(bytes.len(), 81);
    let program = read_bytes(&vec![bytes.clone(); 4], None).unwrap();
    assert_eq!((program.calls.len(), program.groups.len()), (1, 1));
    let of = &program.calls[0].collective;
    assert_eq!((of.operation, of.bytes, of.ranks), (Op::AllReduce, 1_048_576, 4));
    assert!(program.ranks[0].name(0).starts_with("node 0 \"COMM_COLL_NODE_x_ARx\""));
    let times = ideal(&program, &network()).unwrap();
    assert_eq!(times, [Time::from_ns(6 * (262_144 - 1)); 4]);
    // Cut between messages it is a shorter trace, cut elsewhere no trace.
    for len in 0..bytes.len() {
        let cut = read_bytes(&[bytes[..len].to_vec()], None);
        match len {
            0 => assert!(cut.unwrap_err().message.contains("the file is empty")),
            8 => assert!(cut.unwrap().ranks[0].operations.is_empty()),
            _ => assert!(cut.unwrap_err().place.starts_with("t.0.et: byte "), "{len}"),
        }
    }
}

/// The same program as GOAL and as traces; the traces' order in the file is not that of ids.
#[test]
fn messages_and_computations_take_goals_time() {
    let goal = "num_ranks 2\n\
                rank 0 {\na: calc 5000 cpu 1\nb: send 1000b to 1 tag 7 cpu 2\n\
                c: recv 500b from 1 tag 8 cpu 2\nd: calc 3000 cpu 1\ne: calc 2000 cpu 0\n\
                b requires a\nc requires b\nd requires c\n}\n\
                rank 1 {\na: recv 1000b from 0 tag 7 cpu 2\nb: calc 4000 cpu 1\n\
                c: send 500b to 0 tag 8 cpu 2\nb requires a\nc requires b\n}\n";
    let goal = read_goal(goal.as_bytes()).unwrap();
    let cpu = with(compute(9, 2, &[]), "is_cpu_op", Value::Bool(true));
    let mut zero = vec![
        cpu,
        compute(4, 3, &[3]),
        receive(3, 1, 8, &[2]),
        send(2, 1, 1_000, 7, &[1]),
        compute(1, 5, &[]),
    ];
    // A dependency of control waits as one of data does, and once if a node has both.
    zero[1].control = vec![3];
    zero[3].control = std::mem::take(&mut zero[3].data);
    let one = vec![receive(1, 0, 7, &[]), compute(2, 4, &[1]), send(3, 0, 500, 8, &[2])];
    let traces = read_nodes(&[zero, one], None).unwrap();
    for network in [network(), Network::default()] {
        let times = ideal(&goal, &network).unwrap();
        assert_eq!(ideal(&traces, &network).unwrap(), times);
        assert!(times[0] > Time::from_us(13));
    }
}

#[test]
fn computations_of_processor_and_accelerator_overlap() {
    let cpu = |id, us| with(compute(id, us, &[]), "is_cpu_op", Value::Int32(1));
    let load = Node { duration_us: 2, ..node(9, "load", kind::LOAD, &[], &[]) };
    let ranks = [vec![compute(0, 3, &[]), compute(1, 4, &[]), cpu(2, 5), cpu(3, 1), load]];
    assert_eq!(finish(&ranks, None), [9_000]);
}

/// A send of any size ends when its message has arrived, though its receive is posted later.
#[test]
fn send_waits_for_no_receive() {
    let sender = vec![send(0, 1, 1_000_000, 0, &[]), compute(1, 100, &[0])];
    let receiver = vec![compute(0, 5_000, &[]), receive(1, 0, 0, &[0])];
    let program = read_nodes(&[sender, receiver], None).unwrap();
    let ends = |eager: Option<u64>| {
        let Network { latency, costs } = network();
        let network =
            Network { latency: latency + Time::from_us(2), costs: Costs { eager, ..costs } };
        ideal(&program, &network).unwrap().iter().map(|time| time.as_ps() / 1_000).collect()
    };
    let all: [Vec<u64>; 3] = [None, Some(65_535), Some(1_000_000)].map(ends);
    assert_eq!(all.map(|times| times[0]), [102_000, 5_100_000, 100_000]);
    // Nor does the end of the program wait for one that is never posted.
    let program = read_nodes(&[vec![send(4, 1, 8, 0, &[])], vec![]], None).unwrap();
    assert_eq!(
        program.notes,
        ["t.0.et: node 4 \"send\" (send 8b to 1 tag 0): no rank receives \
                                this message (1 in all)"]
    );
    let Network { latency, costs } = network();
    assert!(ideal(&program, &Network { latency, costs: Costs { eager: None, ..costs } }).is_ok());
}

#[test]
fn what_a_run_does_not_follow_is_a_note_once() {
    let with_all = |id| {
        let node = with(send(id, 1, 8, 0, &[]), "comm_priority", Value::Int32(3));
        let node = with(with(node, "rf_id", Value::Int32(1)), "stream", Value::Int32(7));
        Node { start_us: 4, outputs: Some(Values::default()), ..node }
    };
    let own = vec![receive(0, 0, 0, &[]), receive(1, 0, 0, &[])];
    assert_eq!(
        read_nodes(&[vec![send(0, 1, 8, 0, &[])], own.clone()], None).unwrap().notes.len(),
        0
    );
    let notes = read_nodes(&[vec![with_all(0), with_all(1)], own], None).unwrap().notes;
    assert_eq!(
        notes,
        [
            "t.0.et: node 0 \"send\": comm_priority (2 nodes) is not followed: the lowest id \
             goes first, whatever its priority",
            "t.0.et: node 0 \"send\": start_time_micros (2 nodes) is not followed: nodes begin \
             when those that they wait for have ended",
            "t.0.et: node 0 \"send\": not read, and without effect on times: outputs, \
             rf_id, stream",
        ]
    );
}

/// A receive waits beside, and the collective of the lower id goes first.
#[test]
fn communications_of_a_rank_go_one_at_a_time() {
    let ranks: Vec<Vec<Node>> = (0..2)
        .map(|rank| {
            let other = 1 - rank;
            vec![
                collective(5, 0, 2_000, &[]),
                collective(1, 0, 4_000, &[]),
                receive(2, other, 0, &[]),
                send(3, other as i32, 101, 0, &[]),
                compute(4, 9, &[1]),
            ]
        })
        .collect();
    // Two halves of 2,000 bytes; then 9 µs beside 100 ns and two halves of 1,000.
    assert_eq!(finish(&ranks, None), [2 * 1_999 + 9_000; 2]);
    let short: Vec<Vec<Node>> = ranks.iter().map(|nodes| nodes[..4].to_vec()).collect();
    // The send ends when the network has it, and the all-reduce begins then.
    assert_eq!(finish(&short, None), [2 * 1_999 + 2 * 999; 2]);
}

/// Ranks share the collective of their group.
#[test]
fn each_collective_takes_its_time() {
    // By comm_type and comm_size on four ranks: the steps, and the bytes of each.
    for (comm_type, bytes, steps, each) in [
        (0, 4_000, 6, 1_000),
        (2, 1_000, 3, 1_000),
        (6, 4_000, 3, 1_000),
        (7, 4_000, 3, 1_000),
        (8, 4_000, 3, 1_000),
    ] {
        let ranks = vec![vec![collective(3, comm_type, bytes, &[])]; 4];
        assert_eq!(finish(&ranks, None), [steps * (each - 1); 4], "{comm_type}");
    }
    let broadcast = |root| {
        let all = [with(collective(0, 5, 1_000, &[]), "comm_src", Value::Int32(root))];
        finish(&vec![all.to_vec(); 4], None)
    };
    assert_eq!(broadcast(0), [0, 999, 999, 1_998]);
    // The root comes first, the others in their order.
    assert_eq!(broadcast(2), [999, 999, 0, 1_998]);
    let to = with(collective(0, 1, 1_000, &[]), "comm_dst", Value::Int32(3));
    assert_eq!(finish(&vec![vec![to]; 4], None)[3], 1_998);
    // Of one byte each, and without a size.
    let barrier = node(0, "barrier", kind::COLLECTIVE, &[], &[("comm_type", Value::Int32(9))]);
    let late = Node { data: vec![7], ..barrier.clone() };
    let ranks = [vec![barrier.clone()], vec![barrier], vec![compute(7, 6, &[]), late]];
    assert_eq!(finish(&ranks, None), [6_000; 3]);
    // Nothing to do: no bytes, or nobody else.
    assert_eq!(finish(&vec![vec![collective(0, 0, 0, &[])]; 2], None), [0, 0]);
    assert_eq!(finish(&[vec![collective(0, 0, 9, &[])]], None), [0]);
}

/// Ids differ between the ranks of a group.
#[test]
fn collectives_meet_by_group_and_order_of_issue() {
    let groups = "{\"0\": [0, 1], \"odd\": [3, 2], \"all\": [0, 1, 2, 3]}";
    let pair = |group: &str, id: u64, bytes: i64| of_group(collective(id, 0, bytes, &[]), group);
    let ranks = [
        vec![pair("0", 1, 8_000), of_group(collective(2, 0, 400, &[1]), "all")],
        // The second by its id is the first by its dependencies.
        vec![pair("0", 9, 8_000), of_group(collective(4, 0, 400, &[9]), "all")],
        vec![pair("odd", 3, 8_000), of_group(collective(5, 0, 400, &[3]), "all")],
        vec![pair("odd", 0, 8_000), of_group(collective(1, 0, 400, &[0]), "all")],
    ];
    assert_eq!(finish(&ranks, Some(groups)), [2 * 3_999 + 6 * 99; 4]);
    // The same groups, defined by the traces as PyTorch has them.
    let list = "['[{\"pg_name\": \"0\", \"ranks\": [0, 1]}, {\"pg_name\": \"odd\", \"ranks\": \
                [3, 2], \"group_size\": 2}, {\"pg_name\": \"all\", \"ranks\": []}]']";
    let inputs = Some(Values { values: list.into() });
    let init = node(99, "## process_group:init ##", kind::METADATA, &[], &[]);
    let init = Node { inputs, ..init };
    let defined: Vec<Vec<Node>> =
        ranks.iter().map(|nodes| nodes.iter().cloned().chain([init.clone()]).collect()).collect();
    assert_eq!(finish(&defined, None), finish(&ranks, Some(groups)));
}

#[test]
fn dims_of_a_whole_network_are_all_ranks() {
    let of = |dims: Value| vec![vec![with(collective(0, 0, 200, &[]), "involved_dim", dims)]; 2];
    let bools = |values: &[bool]| Value::Bools(Bools { values: values.to_vec() });
    assert_eq!(finish(&of(bools(&[true, true])), None), [2 * 99; 2]);
    assert!(error(&of(bools(&[true, false]))).contains("its involved_dim leaves out dimensions"));
}

#[test]
fn errors_name_files_and_nodes() {
    let text = |value: &str| Value::Text(value.into());
    let kind_of = |kind| vec![node(7, "odd", kind, &[], &[])];
    let late = |ranks: u64| compute(1, 1, &[ranks]);
    for (nodes, what) in [
        (kind_of(0), "t.0.et: node 7 \"odd\": its type is 0; types are 1 to 7"),
        (kind_of(8), "its type is 8"),
        (kind_of(kind::SEND), "a send has no comm_dst"),
        (kind_of(kind::RECEIVE), "a receive has no comm_src"),
        (kind_of(kind::COLLECTIVE), "a collective has no comm_type"),
        (vec![send(1, 2, 8, 0, &[])], "its comm_dst is rank 2: there are 2, from 0"),
        (vec![send(1, -1, 8, 0, &[])], "its comm_dst is -1"),
        (vec![send(1, 1, -8, 0, &[])], "its comm_size is -8"),
        (vec![receive(1, 0, u64::from(u32::MAX), &[])], "its comm_tag is 4294967295; 0 to"),
        (vec![with(send(1, 1, 8, 0, &[]), "comm_src", Value::Int32(1))], "sends from rank 1"),
        (vec![with(receive(1, 1, 0, &[]), "comm_dst", Value::Int32(1))], "receives at rank 1"),
        (vec![with(send(1, 1, 8, 0, &[]), "comm_size", text("8"))], "its comm_size is no integer"),
        (vec![with(send(1, 1, 8, 0, &[]), "comm_size", Value::Double(8.0))], "is no integer"),
        (vec![collective(1, 3, 8, &[])], "its comm_type 3, gather, is not supported"),
        (vec![collective(1, 4, 8, &[])], "its comm_type 4, scatter, is not supported"),
        (vec![collective(1, 10, 8, &[])], "its comm_type is 10"),
        (vec![collective(1, 2, 1 << 48, &[])], "from each of 2 ranks is more than"),
        (vec![of_group(collective(1, 0, 8, &[]), "x")], "\"x\" (pg_name) is not defined"),
        (vec![compute(1, u64::MAX / 999, &[])], "µs is more than"),
        (vec![with(compute(1, 0, &[]), "num_ops", Value::Int64(5))], "it has num_ops 5 and no"),
        (vec![with(compute(1, 1, &[]), "is_cpu_op", text("no"))], "its is_cpu_op is neither"),
        (vec![late(6)], "t.0.et: node 1 \"mm\": it depends on node 6, which the trace does not"),
        (vec![late(1)], "t.0.et: operations wait for each other: node 1 \"mm\" (calc 1000)"),
        (vec![compute(1, 1, &[]), compute(1, 2, &[])], "its id is that of node \"mm\""),
        (
            vec![collective(3, 0, 8, &[])],
            "t.1.et: rank 1 has 0 collectives of all ranks, and rank 0 has 1; the first without a \
             counterpart is node 3 \"coll\" (collective of 8b) of rank 0",
        ),
    ] {
        let found = error(&[nodes, vec![]]);
        assert!(found.contains(what), "{found}");
    }
    let found = error(&[vec![collective(3, 0, 8, &[])], vec![collective(4, 7, 8, &[])]]);
    let what = "t.1.et: node 4 \"coll\" (collective of 8b) is a reduce-scatter of 8b, collective \
                1 of all ranks; rank 0 has an all-reduce of 8b there, node 3";
    assert!(found.contains(what), "{found}");
    let cycle = error(&[vec![compute(1, 1, &[2]), compute(2, 1, &[1])]]);
    assert!(cycle.contains("node 1 \"mm\"") && cycle.contains("node 2 \"mm\""), "{cycle}");
}

#[test]
fn errors_of_groups_name_them() {
    let ranks = [vec![of_group(collective(1, 0, 8, &[]), "tensor")], vec![]];
    for (groups, what) in [
        ("{", "groups.json: expected a JSON object of group names"),
        ("{\"a\": 3}", "the group \"a\" has no list of ranks"),
        ("{\"a\": []}", "the group \"a\" has no ranks"),
        ("{\"a\": [0, 2]}", "the group \"a\" has the rank 2; there are 2, from 0"),
        ("{\"a\": [1, 1]}", "the group \"a\" has the rank 1 twice"),
        ("{\"a\": [-1]}", "the group \"a\" has the rank -1"),
        ("{\"tensors\": [0, 1]}", "\"tensor\" (pg_name) is not defined; groups are \"tensors\""),
        ("{\"tensor\": [1]}", "its group \"tensor\" (pg_name) does not have rank 0"),
    ] {
        let found = read_nodes(&ranks, Some(groups)).unwrap_err().to_string();
        assert!(found.contains(what), "{groups}: {found}");
    }
    for (values, what) in [
        ("['[{\"pg_name\": \"0\"}]']", "t.0.et: node 5 \"\": the group \"0\" has no list of ranks"),
        ("['[{\"pg_name\": 0, \"ranks\": [7]}]']", "the group \"0\" has the rank 7"),
        ("['[{\"pg_name\" 0}]']", "the process groups in its inputs are no JSON"),
        ("pg_name", "but have no JSON list"),
    ] {
        let inputs = Some(Values { values: values.into() });
        let found = error(&[vec![Node { inputs, ..node(5, "", kind::METADATA, &[], &[]) }]]);
        assert!(found.contains(what), "{values}: {found}");
    }
}

#[test]
fn deadlocks_and_unmatched_receives_name_nodes() {
    let run = |ranks: &[Vec<Node>]| {
        let program = read_nodes(ranks, None).unwrap();
        ideal(&program, &network()).unwrap_err().to_string()
    };
    let found = run(&[vec![receive(4, 1, 9, &[])], vec![send(5, 0, 8, 1, &[])]]);
    assert!(found.contains("node 4 \"recv\" (recv 0b from 1 tag 9)"), "{found}");
    assert!(found.contains("node 5 \"send\" (send 8b to 0 tag 1) of rank 1"), "{found}");
    // Rank 1 sends after the collective that rank 0 begins with the message.
    let zero = vec![receive(1, 1, 0, &[]), collective(2, 0, 8, &[1])];
    let one = vec![collective(1, 0, 8, &[]), send(2, 0, 8, 0, &[1])];
    let found = run(&[zero, one]);
    assert!(found.contains("rank 0: 1 receives without a message: node 1 \"recv\""), "{found}");
}

proptest! {
    /// Files that begin as a trace, with bytes changed.
    #[test]
    fn any_bytes_are_traces_or_an_error(
        changes in prop::collection::vec((0usize..160, any::<u8>()), 0..6), len in 0usize..160,
    ) {
        let groups = "['[{\"pg_name\": \"0\", \"ranks\": []}]']";
        let inputs = Some(Values { values: groups.into() });
        let mut bytes = write(&[
            Node { inputs, ..node(1, "", kind::METADATA, &[], &[]) },
            of_group(collective(2, 0, 64, &[1]), "0"),
            send(3, 0, 8, 1, &[2]),
            receive(4, 0, 1, &[]),
        ]);
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(len.max(9));
        if let Ok(program) = read_bytes(&[bytes.clone(), bytes], None) {
            let _ = ideal(&program, &network());
        }
    }
}
