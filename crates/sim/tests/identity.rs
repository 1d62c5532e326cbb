//! Determinism is law: the same records and counts for any number of threads, partitions, and either kind of port.

mod common;

use common::{fingerprint, plan};

const LEAF_SPINE: &str = r#"
    name = "identity"
    duration = "3ms"
    seed = 3
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 2
    hosts-per-leaf = 6
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "20Gbps", delay = "2us" }
    [switch]
    buffer = { kind = "per-port", size = "60KB" }
    [transport]
    kind = "dctcp"
    [[traffic]]
    name = "background"
    kind = "poisson"
    sizes = "web-search"
    load = 0.7
    [[traffic]]
    name = "incast"
    kind = "incast"
    degree = 10
    response = "20KB"
    rate = 3000
    request = 250
    [[traffic]]
    name = "rpc"
    kind = "rpc"
    clients = 2
    servers = 2
    request = 200
    response = "10KB"
    connections = 1
"#;

const FAT_TREE: &str = r#"
    name = "identity-fat-tree"
    duration = "100ms"
    until = "flows-complete"
    [topology]
    kind = "fat-tree"
    k = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [switch]
    path = { kind = "spray" }
    buffer = { kind = "per-port", size = "30KB" }
    [transport]
    kind = "cubic"
    [[traffic]]
    name = "shuffle"
    kind = "shuffle"
    size = "50KB"
    concurrency = 2
"#;

#[test]
fn threads_do_not_change_a_result() {
    for text in [LEAF_SPINE, FAT_TREE] {
        let plan = plan(text, &[]);
        let one = fingerprint(&plan, 1);
        for threads in [2, 3] {
            assert_eq!(one, fingerprint(&plan, threads), "{threads} threads");
        }
    }
}

#[test]
fn partitions_do_not_change_a_result() {
    for text in [LEAF_SPINE, FAT_TREE] {
        let many = fingerprint(&plan(text, &[]), 1);
        assert_eq!(many, fingerprint(&plan(text, &[("engine.partitions", "one")]), 1));
    }
}

#[test]
fn the_kind_of_port_does_not_change_a_result() {
    for text in [LEAF_SPINE, FAT_TREE] {
        let fast = fingerprint(&plan(text, &[]), 2);
        assert_eq!(fast, fingerprint(&plan(text, &[("engine.ports", "general")]), 2));
    }
}

#[test]
fn seeds_change_a_result() {
    let a = fingerprint(&plan(LEAF_SPINE, &[]), 1);
    assert_ne!(a, fingerprint(&plan(LEAF_SPINE, &[("seed", "4")]), 1));
}
