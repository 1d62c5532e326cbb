//! Any frames through all functions that read or write them (`bodies`), natively and by a seed.

use millpond_linux::bodies::inputs::Inputs;
use millpond_linux::bodies::{BODIES, Body};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The inputs that a body took, and whether it has failed.
#[derive(Clone, Default)]
struct Taken {
    count: u64,
    failed: bool,
}

/// Runs a body that has not failed yet. A failure prints the input.
fn run(body: &Body, taken: &mut Taken, bytes: &[u8]) {
    if taken.failed {
        return;
    }
    taken.count += 1;
    if catch_unwind(AssertUnwindSafe(|| (body.run)(bytes))).is_err() {
        taken.failed = true;
        let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        eprintln!("the body {} fails at {hex}", body.name);
    }
}

/// Fails if a body has failed.
fn judge(taken: &[Taken]) {
    let names = BODIES.iter().zip(taken).filter(|(_, it)| it.failed).map(|(body, _)| body.name);
    let names: Vec<&str> = names.collect();
    assert!(names.is_empty(), "these fail: {}", names.join(", "));
}

/// Runs inputs until the bodies have taken `most`, or for `time`.
fn hammer(seed: u64, most: u64, time: Duration) -> Vec<Taken> {
    let (mut source, start, mut printed) = (Inputs::new(seed), Instant::now(), Duration::ZERO);
    let mut taken = vec![Taken::default(); BODIES.len()];
    let total = |taken: &[Taken]| taken.iter().map(|it| it.count).sum::<u64>();
    let mut number = 0u64;
    while total(&taken) < most && start.elapsed() < time {
        for _ in 0..4096 {
            number += 1;
            let due = |takes_several: bool| {
                let is_due = move |body: &Body| {
                    body.takes_several == takes_several && number.is_multiple_of(body.each)
                };
                (0..BODIES.len()).filter(move |at| is_due(&BODIES[*at]))
            };
            let one = source.one();
            due(false).for_each(|at| run(&BODIES[at], &mut taken[at], one));
            if due(true).next().is_some() {
                let several = source.several();
                due(true).for_each(|at| run(&BODIES[at], &mut taken[at], several));
            }
        }
        if start.elapsed() > printed + Duration::from_secs(10) {
            printed = start.elapsed();
            eprintln!("seed {seed}: {} inputs in {:.0} s", total(&taken), printed.as_secs_f64());
        }
    }
    taken
}

fn of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The places whose functions read or write bytes of frames and datagrams, below `crates`.
const PLACES: [&str; 10] = [
    "core/src/overlay",
    "lab/src/address.rs",
    "linux/src/dataplane",
    "linux/src/edge",
    "linux/src/encapsulation.rs",
    "linux/src/fabric",
    "linux/src/limit/message.rs",
    "linux/src/netlink.rs",
    "linux/src/switch",
    "linux/src/tunnel",
];
/// Files of tests.
const TESTS: [&str; 2] = ["tests", "merging"];

fn files(place: &Path, into: &mut Vec<PathBuf>) {
    let is_test = |path: &Path| TESTS.iter().any(|name| path.file_stem().unwrap() == *name);
    if place.is_dir() {
        let all = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| !is_test(path)).for_each(|path| files(&path, into));
    } else {
        into.push(place.to_path_buf());
    }
}

/// The functions of a source whose parameters hold bytes, without those of its tests.
fn functions(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let line = code[..at].rsplit('\n').next().unwrap();
        let name = code[at + 3..].split(['(', '<']).next().unwrap();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if line.contains("//") || !is_name {
            continue;
        }
        let parameters = code[at..].split(['{', ';']).next().unwrap();
        let parameters = parameters.split("->").next().unwrap();
        if ["[u8", "IoSlice<", "Outgoing<"].iter().any(|kind| parameters.contains(kind)) {
            found.push(name);
        }
    }
    found.sort_unstable();
    found
}

/// Each body is a fuzz target, and a function that is not on the list is one that no body runs.
#[test]
fn each_function_that_takes_a_frames_bytes_is_on_the_list_of_bodies() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let targets = crates.parent().unwrap().join("fuzz/fuzz_targets");
    for body in BODIES {
        let target = std::fs::read_to_string(targets.join(format!("{}.rs", body.name)));
        assert!(target.is_ok_and(|text| text.contains(&format!("run({:?}", body.name))));
    }
    for line in include_str!("frames.txt").lines().filter(|line| !line.starts_with('#')) {
        let (file, rest) = line.split_once(": ").unwrap();
        let (names, bodies) = rest.split_once(" -> ").unwrap();
        listed.insert(file, names.split(' ').collect());
        for body in bodies.split(' ').filter(|body| !["kernel", "unit"].contains(body)) {
            assert!(targets.join(format!("{body}.rs")).is_file(), "{file}: no target {body}");
        }
    }
    let mut all = Vec::new();
    PLACES.iter().for_each(|place| files(&crates.join(place), &mut all));
    let mut missing = Vec::new();
    for path in all {
        let (text, file) = (std::fs::read_to_string(&path).unwrap(), path.strip_prefix(crates));
        let file = file.unwrap().to_str().unwrap();
        let (found, known) = (functions(&text), listed.remove(file).unwrap_or_default());
        if found != known {
            missing.push(format!("{file}: {} (listed: {})", found.join(" "), known.join(" ")));
        }
    }
    missing.extend(listed.keys().map(|file| format!("{file}: no such file")));
    let missing = missing.join("\n");
    assert!(missing.is_empty(), "tests/frames.txt differs from the sources:\n{missing}");
}

#[test]
fn valid_frames_fail_no_body() {
    let mut taken = vec![Taken::default(); BODIES.len()];
    for input in Inputs::new(0).valid() {
        BODIES.iter().zip(&mut taken).for_each(|(body, taken)| run(body, taken, &input));
    }
    judge(&taken);
}

#[test]
fn changed_frames_fail_no_body() {
    let taken = hammer(of("PROPTEST_RNG_SEED").unwrap_or(1), u64::MAX, Duration::from_secs(5));
    judge(&taken);
    assert!(taken.iter().all(|it| it.count > 0), "each body takes inputs");
}

/// With `MILLPOND_FRAMES=1000000000`, and with `--ignored --nocapture` behind `cargo test`'s `--`.
#[test]
#[ignore = "minutes to hours: so many inputs as MILLPOND_FRAMES says"]
fn so_many_changed_frames_fail_no_body() {
    let seed = of("MILLPOND_SEED").unwrap_or(2);
    let inputs = of("MILLPOND_FRAMES").unwrap_or(10_000_000);
    let taken = hammer(seed, inputs, Duration::MAX);
    for (body, Taken { count, .. }) in BODIES.iter().zip(&taken) {
        println!("{:>14} {count} inputs", body.name);
    }
    judge(&taken);
    println!("seed {seed}: no failure");
}
