//! Size: a network of ten thousand hosts, ten million connections, and the barrier's model. Minutes
//! each, so they run in `make test-full` only, and they build what they measure with the release
//! profile.

use crate::common::{self, Dir, json, root, succeed};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// One at a time: they are about memory and cores.
static ALONE: Mutex<()> = Mutex::new(());

/// The command as users build it, without the checks of a test build.
fn release() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let mut build = Command::new(env!("CARGO"));
    succeed(
        build.args(["build", "--release", "--locked", "-p", "millpond-cli"]).current_dir(root()),
    );
    root().join(target).join("release/millpond")
}

fn run(text: &str, words: &[&str]) -> Value {
    let dir = Dir::new("scale");
    let scenario = dir.write("scale.toml", text);
    let mut command = Command::new(release());
    command
        .arg("run")
        .arg(scenario)
        .args(["--json", "--quiet"])
        .args(words)
        .arg("--out")
        .arg(dir.at("out"));
    let summary = json(&succeed(&mut command).stdout);
    assert_eq!(
        (&summary["status"], &summary["audit"]["conserved"]),
        (&"complete".into(), &true.into())
    );
    summary
}

fn peak_rss(summary: &Value) -> u64 {
    summary["run"]["peak_rss_bytes"].as_u64().expect("the system tells")
}

/// A fat tree of k = 36, one flow each: it builds, it finishes, and a host costs at most 32 KB.
#[test]
#[ignore = "a minute and hundreds of megabytes: 11,664 hosts"]
fn eleven_thousand_hosts_take_at_most_32_kb_each() {
    let _alone = ALONE.lock();
    let text = r#"
        name = "k36"
        until = "flows-complete"
        duration = "1s"
        [topology]
        kind = "fat-tree"
        k = 36
        host-link = { rate = "10Gbps", delay = "1us" }
        fabric-link = { rate = "10Gbps", delay = "1us" }
        [[traffic]]
        kind = "permutation"
        size = "100KB"
        "#;
    for threads in ["1", "2"] {
        let summary = run(text, &["--threads", threads]);
        assert_eq!(summary["flows"]["completed"], 11_664);
        let a_host = peak_rss(&summary) as f64 / 11_664.0;
        println!("{threads} threads: {a_host:.0} bytes a host, {} s", summary["run"]["wall_s"]);
        assert!(a_host <= 32_000.0, "{threads} threads: {a_host} bytes a host");
    }
}

/// Connections are recycled: ten million of them, a few at a time, take the memory of one million.
#[test]
#[ignore = "minutes: 11 million connections"]
fn ten_million_connections_take_the_memory_of_one_million() {
    let _alone = ALONE.lock();
    let text = |count: u32| {
        format!(
            r#"
            name = "short"
            until = "flows-complete"
            [topology]
            kind = "leaf-spine"
            leaves = 2
            spines = 2
            hosts-per-leaf = 8
            host-link = {{ rate = "10Gbps", delay = "1us" }}
            fabric-link = {{ rate = "40Gbps", delay = "1us" }}
            [[traffic]]
            kind = "poisson"
            sizes = 1000
            load = 0.4
            load-base = "host-links"
            count = {count}
            "#
        )
    };
    let of = |count: u32| {
        let summary = run(&text(count), &["--threads", "2"]);
        assert_eq!(summary["flows"]["completed"], count);
        let rss = peak_rss(&summary);
        println!("{count} connections: {rss} bytes, {} s", summary["run"]["wall_s"]);
        rss
    };
    let (million, ten) = (of(1_000_000), of(10_000_000));
    assert!(ten as f64 <= 1.2 * million as f64, "{million} bytes for a million, {ten} for ten");
}

/// loom runs the barrier's model through every interleaving. It needs a build of its own (`--cfg
/// loom`).
#[test]
#[ignore = "a minute: builds the simulator with --cfg loom"]
fn every_interleaving_of_the_barrier() {
    let _alone = ALONE.lock();
    let target = root().join("target/loom");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "-p", "millpond-sim", "--lib", "--release", "--locked", "barrier"])
        .current_dir(root());
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target);
    let output = succeed(&mut command);
    let said = common::text(&output.stdout);
    assert!(said.contains("every_interleaving_of_two_windows ... ok"), "{said}");
}
