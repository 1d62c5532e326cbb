//! `[[program]]` as a user meets it: real programs on hosts of a lab talk over its network, their
//! output is kept, failures are reported, and no process is left behind.

#![cfg(all(feature = "linux", target_os = "linux"))]

use crate::common::{Dir, summary, text};
use millpond_worlds::{World, needs};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with a scenario of programs.
struct Scratch(Dir);

impl Scratch {
    fn new(name: &str, scenario: &str) -> Scratch {
        Scratch(Dir::with(name, &format!("{HEAD}{scenario}")))
    }

    fn command(&self, args: &[&str]) -> Command {
        self.0.command(args)
    }

    /// Runs the lab, and checks that nothing of it is left.
    fn lab(&self) -> Output {
        let mut command = self.command(&["lab", "s.toml", "--scale", "1", "--out", "r"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let out = child.wait_with_output().unwrap();
        assert_eq!(left(pid), Vec::<String>::new(), "{}", text(&out.stderr));
        out
    }

    fn read(&self, file: &str) -> String {
        let path = self.0.at("r").join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn summary(&self) -> serde_json::Value {
        summary(&self.0.at("r"))
    }

    fn status(&self, name: &str) -> String {
        let summary = self.summary();
        let programs = summary["programs"].as_array().unwrap();
        let one = programs.iter().find(|one| one["name"] == name).unwrap();
        one["status"].as_str().unwrap().to_string()
    }
}

const HEAD: &str = "duration = \"10ms\"\ntopology = { kind = \"single-switch\", hosts = 4, \
                    host-link = { rate = \"100Mbps\", delay = \"20us\" } }\n";

const TRAFFIC: &str = "[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n";

fn program(name: &str, host: u32, command: &str, more: &str) -> String {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[[program]]\nname = \"{name}\"\nhost = {host}\ncommand = \"{command}\"\n{more}\n")
}

/// Namespaces and processes of a process' labs.
fn left(pid: u32) -> Vec<String> {
    let of = format!("mp-lab-{pid}-");
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries("/run/netns").map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> = names.filter(|name| name.starts_with(&of)).collect();
    let mark = format!("MILLPOND_WORLD={of}");
    for entry in entries("/proc") {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|one| one.starts_with(mark.as_bytes())) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

fn has_worlds() -> Result<(), millpond_worlds::Error> {
    World::new("probe").map(drop)
}

/// This test binary in the role of a program: a shell cannot listen.
fn role(role: &str) -> String {
    let own = std::env::current_exe().unwrap();
    format!(
        "MILLPOND_TEST_ROLE='{role}' {} lab_programs::plays_a_role --exact --nocapture",
        own.display()
    )
}

/// The programs of other tests: `serve ADDRESS` and `ask ADDRESS`.
#[test]
fn plays_a_role() {
    let role = std::env::var("MILLPOND_TEST_ROLE").unwrap_or_default();
    let Some((role, address)) = role.split_once(' ') else { return };
    let address = format!("{address}:9000");
    if role == "serve" {
        let listener = TcpListener::bind(&address).unwrap();
        let (mut socket, peer) = listener.accept().unwrap();
        let mut word = [0; 5];
        socket.read_exact(&mut word).unwrap();
        println!("{} from {}", text(&word), peer.ip());
        socket.write_all(b"world").unwrap();
        // Until SIGTERM.
        std::thread::sleep(Duration::from_secs(100));
    }
    let connected = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        TcpStream::connect(&address).ok()
    });
    let mut socket = connected.unwrap();
    socket.write_all(b"hello").unwrap();
    let mut word = [0; 5];
    socket.read_exact(&mut word).unwrap();
    println!("{} from {}", text(&word), socket.peer_addr().unwrap().ip());
}

#[test]
fn programs_talk_over_the_labs_network_and_an_awaited_one_keeps_the_run_alive() {
    needs!(has_worlds());
    let ask = format!("sleep 0.5; {}", role("ask {host2}"));
    let programs = program("serve", 2, &role("serve {address}"), "")
        + &program("ask", 0, &ask, "start = \"1ms\"\nawaits = true");
    let scratch = Scratch::new("talk", &programs);
    let out = scratch.lab();
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    assert!(scratch.read("programs/serve.stdout").contains("hello from 10.213.0.1"));
    assert!(scratch.read("programs/ask.stdout").contains("world from 10.213.0.3"));
    assert_eq!(scratch.status("ask"), "exit status 0");
    assert_eq!(scratch.status("serve"), "ended with the run");
    let shown = text(&out.stdout);
    assert!(shown.contains("serve: ended with the run, ask: exit status 0"), "{shown}");
    let summary = scratch.summary();
    assert!(summary["packets"]["delivered"].as_u64().unwrap() > 6, "{summary}");
    assert_eq!(summary["audit"]["conserved"], true);
    assert!(scratch.read("report.html").contains("href=\"programs/ask.stdout\""));
    // A second run replaces the first: the files are the run's own.
    assert!(matches!(scratch.lab().status.code(), Some(0 | 4)));
}

#[test]
fn failures_of_programs_are_reported() {
    needs!(has_worlds());
    let programs =
        program("bad", 1, "sleep 0.3; echo fine; echo oops >&2; exit 3", "awaits = true")
            + &program("lost", 1, "true && millpond-lacks-this", "awaits = true")
            + &program("late", 1, "echo late", "start = \"1s\"")
            + &program("stubborn", 2, "trap '' TERM; while true; do sleep 1; done", "")
            + &program("parent", 3, "sleep 1000 & echo started", "")
            + &program("daemon", 3, "setsid sleep 1000 & exit", "");
    let scratch = Scratch::new("fail", &format!("{programs}{TRAFFIC}"));
    let out = scratch.lab();
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    assert_eq!(scratch.read("programs/bad.stdout"), "fine\n");
    assert_eq!(scratch.read("programs/bad.stderr"), "oops\n");
    assert_eq!(scratch.read("programs/parent.stdout"), "started\n");
    let warnings = scratch.summary()["warnings"].to_string();
    for expected in
        ["program bad: exit status 3: oops", "program lost: exit status 127: ", "late: not started"]
    {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
    assert_eq!(scratch.status("stubborn"), "killed: did not end 2 s after SIGTERM");
    assert_eq!(scratch.status("parent"), "exit status 0");
    assert!(!warnings.contains("parent"), "{warnings}");
}

#[test]
fn response_times_of_programs_on_several_hosts_are_calls_of_one_class() {
    needs!(has_worlds());
    let print = "for n in $(seq 100); do echo 5000; echo 7000; done; echo late";
    let programs = program("ask", 0, print, "awaits = true\nresponses = \"gets\"");
    let scratch = Scratch::new("responses", &programs.replace("host = 0", "host = \"1..2\""));
    let out = scratch.lab();
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    let summary = scratch.summary();
    let gets = &summary["latency_us"]["gets"];
    assert_eq!((&gets["count"], &gets["mean"]), (&400.into(), &6000.0.into()), "{gets}");
    assert_eq!((&gets["p50"], &gets["max"]), (&6000.0.into(), &7000.0.into()), "{gets}");
    let shown = text(&out.stdout) + &text(&out.stderr);
    assert!(shown.contains("program ask-2: 1 lines of its output are no response"), "{shown}");
    assert_eq!(scratch.status("ask-1"), "exit status 0");
}

#[test]
fn output_beyond_64_mib_is_counted_and_dropped() {
    needs!(has_worlds());
    let flood = program("flood", 1, "head -c 70000000 /dev/zero", "awaits = true");
    let scratch = Scratch::new("flood", &flood);
    let out = scratch.lab();
    assert!(matches!(out.status.code(), Some(0 | 4)), "{}", text(&out.stderr));
    let kept = fs::metadata(scratch.0.at("r/programs/flood.stdout")).unwrap().len();
    assert_eq!(kept, 64 << 20);
    let one = scratch.summary()["programs"][0].clone();
    assert_eq!(
        (&one["stdout_bytes"], &one["dropped_bytes"]),
        (&70_000_000.into(), &2_891_136.into())
    );
    let warnings = scratch.summary()["warnings"].to_string();
    assert!(warnings.contains("program flood: 2891136 bytes of output are not kept"), "{warnings}");
}

#[test]
fn a_missing_program_is_refused_before_anything_starts() {
    let programs = program("cache", 1, "memcached -u nobody -l {address}", "");
    let scratch = Scratch::new("missing", &programs);
    let out = scratch.command(&["lab", "s.toml", "--out", "r"]).env("PATH", "/nowhere").output();
    let out = out.unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    let expected = "`program.cache.command`: memcached is not in PATH: apt-get install memcached";
    assert!(error.contains(expected), "{error}");
    assert!(!scratch.0.at("r").exists() && !scratch.0.at("r.partial").exists());
}

#[test]
fn the_simulator_runs_no_programs_and_warns() {
    let cache = program("cache", 1, "memcached", "");
    let scratch = Scratch::new("sim", &format!("{cache}{TRAFFIC}"));
    let out = scratch.command(&["run", "s.toml", "--out", "r"]).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let warnings = scratch.summary()["warnings"].to_string();
    assert!(warnings.contains("the simulator runs no programs: cache did not run"), "{warnings}");
    assert!(!scratch.0.at("r/programs").exists());

    let scratch = Scratch::new("sim-alone", &cache);
    let out = scratch.command(&["run", "s.toml", "--out", "r"]).output().unwrap();
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    assert!(error.contains("the simulator runs no programs (cache)"), "{error}");
    assert!(!scratch.0.at("r").exists());
}

/// A lab whose program has started.
fn running(scratch: &Scratch) -> Child {
    let mut command = scratch.command(&["lab", "s.toml", "--scale", "1", "--out", "r"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !left(child.id()).iter().any(|what| what.starts_with("/proc")) {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn an_interrupted_lab_ends_its_programs_and_keeps_their_output() {
    needs!(has_worlds());
    let waits = program("waits", 1, "echo here; sleep 1000", "awaits = true");
    let scratch = Scratch::new("interrupted", &waits);
    let mut child = running(&scratch);
    std::thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(left(child.id()), Vec::<String>::new());
    assert_eq!(scratch.read("programs/waits.stdout"), "here\n");
    assert_eq!(scratch.status("waits"), "ended with the run");
}
