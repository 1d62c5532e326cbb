//! `millpond lab` as a user meets it: a run under kernel TCP, the simulator beside it, and nothing
//! left behind.

#![cfg(all(feature = "linux", target_os = "linux"))]

use crate::common::{Dir, summary, text};
use millpond_worlds::{World, needs};
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Three servers answer one client, five times.
const INCAST: &str = r#"
duration = "10ms"
topology = { kind = "single-switch", hosts = 4 }
transport = { kind = "cubic" }
[[traffic]]
kind = "incast"
degree = 3
response = "20KB"
period = "1ms"
stop = "5ms"
"#;

/// The namespaces that a process' labs have made.
fn namespaces(child: &Child) -> Vec<String> {
    let of = format!("mp-lab-{}-", child.id());
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&of)).collect()
}

fn has_worlds() -> Result<(), millpond_worlds::Error> {
    World::new("probe").map(drop)
}

#[test]
fn a_scenario_runs_under_kernel_tcp() {
    needs!(has_worlds());
    let scratch = Dir::with("run", INCAST);
    let out = scratch.output(&["lab", "s.toml", "--scale", "200", "--out", "r"]);
    // A machine that is busy with other tests may be late.
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    let summary = summary(&scratch.at("r"));
    assert_eq!((&summary["world"], &summary["flows"]["completed"]), (&"lab".into(), &15.into()));
    assert_eq!(summary["audit"]["conserved"], true);
    // 20 KB at 50 Mb/s take 3.2 ms alone, and three of them 9.8 ms.
    let p50 = summary["fct_us"]["all"]["p50"].as_f64().unwrap();
    assert!((3_200.0..80_000.0).contains(&p50), "{p50}");
    assert!(summary["packets"]["sent"].as_u64().unwrap() > 15 * 14);
    let warnings = summary["warnings"].to_string();
    assert!(warnings.contains("scale 200") && warnings.contains("initial-rto is 1s"), "{warnings}");
    assert!(scratch.at("r/report.html").exists());
}

#[test]
fn the_simulator_runs_the_same_flows_beside_it() {
    needs!(has_worlds());
    let scratch = Dir::with("beside", INCAST);
    let args = ["compare", "s.toml", "--worlds", "sim,lab", "--scale", "100", "--out", "w"];
    let out = scratch.output(&args);
    let [sim, lab] = ["w/sim", "w/lab"].map(|folder| summary(&scratch.at(folder)));
    // A machine that is busy with other tests may be late; then the command and the table say so.
    let (is_invalid, table) = (lab["status"] == "invalid", text(&out.stdout));
    let code = if is_invalid { 4 } else { 0 };
    assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
    assert_eq!(table.contains("lab (invalid)"), is_invalid, "{table}");
    assert_eq!((&sim["world"], &lab["world"]), (&"sim".into(), &"lab".into()));
    assert_eq!(sim["flows"]["started"], lab["flows"]["started"]);
    let p50 = |summary: &serde_json::Value| summary["fct_us"]["all"]["p50"].as_f64().unwrap();
    // On an idle machine they differ by a few percent.
    assert!((0.5..3.0).contains(&(p50(&lab) / p50(&sim))), "{} {}", p50(&sim), p50(&lab));
    assert_eq!(sim["scenario"], lab["scenario"]);
    assert!(table.contains("Difference to sim"));
}

#[test]
fn a_lab_that_is_late_is_invalid_among_several_runs_too() {
    needs!(has_worlds());
    let scratch = Dir::with("late", INCAST);
    // Unslowed, a round trip is a few microseconds, and no machine starts flows as punctually.
    let args = ["lab", "s.toml", "--scale", "1", "--seeds", "2", "--out", "r"];
    let out = scratch.output(&args);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    assert!(table.contains("base (invalid)"), "{table}");
    let manifest = fs::read_to_string(scratch.at("r/manifest.json")).unwrap();
    assert!(manifest.contains("\"world\": \"lab\""), "{manifest}");
}

#[test]
fn what_one_variant_may_not_is_refused_before_another_runs() {
    needs!(has_worlds());
    let variants = "[[variant]]\nname = \"good\"\n[[variant]]\nname = \"bad\"\n\
                    set = { transport.kind = \"homa\" }\n";
    let scratch = Dir::with("variants", &format!("{INCAST}{variants}"));
    let out = scratch.output(&["lab", "s.toml", "--scale", "100", "--out", "r"]);
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("bad: lab: ") && error.contains("\"homa\""), "{error}");
    assert!(fs::read_dir(scratch.path()).unwrap().count() == 1, "{error}");
}

#[test]
fn what_kernel_tcp_lacks_is_refused_by_its_key() {
    needs!(has_worlds());
    let scratch = Dir::with("refused", INCAST);
    let cases = [
        ("transport.kind=hpcc", "`transport.kind`: Linux has no \"hpcc\""),
        ("transport.kind=homa", "`transport.kind`: Linux has no \"homa\""),
        ("transport.kind=tas", "`transport.kind`: Linux has no \"tas\""),
        ("transport.rank.kind=remaining-bytes", "`transport.rank`: only the application"),
        ("edge.load-balancing.kind=plb", "`edge.load-balancing`: \"plb\""),
    ];
    for (set, expected) in cases {
        let out = scratch.output(&["lab", "s.toml", "--set", set]);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{set}: {error}");
        assert!(error.contains(expected), "{set}: {error}");
        assert!(!scratch.at("out").exists(), "{set}");
    }
}

/// A lab that runs for long, when its namespaces are there.
fn long_lab(scratch: &Dir) -> Child {
    let args = ["lab", "s.toml", "--scale", "10000", "--out", "r"];
    let mut command = scratch.command(&args);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while namespaces(&child).len() < 4 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn an_interrupted_lab_keeps_what_there_is_and_leaves_no_namespace() {
    needs!(has_worlds());
    let scratch = Dir::with("interrupted", INCAST);
    let mut child = long_lab(&scratch);
    std::thread::sleep(Duration::from_millis(700));
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(namespaces(&child), Vec::<String>::new());
    assert_eq!(summary(&scratch.at("r"))["status"], "interrupted");
}

#[test]
fn the_next_lab_removes_what_a_killed_one_has_left() {
    needs!(has_worlds());
    let scratch = Dir::with("killed", INCAST);
    let mut child = long_lab(&scratch);
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    // A lab of another test may have removed them by now.
    let out = scratch.output(&["lab", "s.toml", "--scale", "100", "--out", "again"]);
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    assert_eq!(namespaces(&child), Vec::<String>::new());
}

/// A network of 64 hosts that stays up.
const MANY: &str = "duration = \"1s\"\ntransport = { kind = \"cubic\" }\n[topology]\n\
                    kind = \"single-switch\"\nhosts = 64\n\
                    host-link = { rate = \"100Mbps\", delay = \"20us\" }\n[[traffic]]\n\
                    kind = \"permutation\"\nsize = \"1KB\"\n";

/// Brings 64 hosts up, and returns the lab's process once `lab list` has them.
fn many(scratch: &Dir, name: &str) -> Child {
    let began = Instant::now();
    let mut command = scratch.command(&["lab", "up", "s.toml", "--name", name]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_up =
        || text(&scratch.output(&["lab", "list"]).stdout).contains(&format!("lab {name} is"));
    while !is_up() {
        // A second on an idle machine; this is no measurement.
        assert!(began.elapsed() < Duration::from_secs(30), "64 hosts are not up after 30 s");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(namespaces(&child).len(), 64);
    child
}

#[test]
fn a_lab_of_64_hosts_is_up_within_30_seconds_and_leaves_nothing_however_it_ends() {
    needs!(has_worlds());
    let scratch = Dir::with("many", MANY);
    let name = format!("many-{}", std::process::id());
    for how in ["lab down", "Ctrl-C", "kill -9"] {
        let mut child = many(&scratch, &name);
        let ask = "cat /proc/sys/net/ipv4/tcp_congestion_control; ip route";
        let entered = scratch.output(&["lab", "exec", "--lab", &name, "63", "--", "sh", "-c", ask]);
        // Programs have the scenario's TCP, whatever this machine's default is.
        assert!(text(&entered.stdout).contains("cubic"), "{how}: {}", text(&entered.stdout));
        match how {
            "lab down" => {
                assert!(scratch.output(&["lab", "down", "--lab", &name]).status.success());
            }
            "Ctrl-C" => signal(&child, rustix::process::Signal::INT),
            _ => signal(&child, rustix::process::Signal::KILL),
        }
        child.wait().unwrap();
        if how == "kill -9" {
            // It removes what is left of a lab that died. A lab of another test may be at it.
            scratch.output(&["lab", "list"]);
            let began = Instant::now();
            while !namespaces(&child).is_empty() && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        assert_eq!(namespaces(&child), Vec::<String>::new(), "{how}");
        let listed = text(&scratch.output(&["lab", "list"]).stdout);
        assert!(!listed.contains(&name), "{how}: {listed}");
        let labs = std::path::Path::new("/run/millpond/labs");
        let left = fs::read_dir(labs).unwrap().flatten().map(|entry| entry.file_name());
        let left: Vec<_> = left.filter(|file| file.to_string_lossy().contains(&name)).collect();
        assert!(left.is_empty(), "{how}: {left:?}");
    }
}
