//! `millpond limit` as a user meets it: errors of a file have their place, and what is not there is said. Nothing is installed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("millpond-limit-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
    /// Runs `millpond limit …` with an empty folder in the place of the bpf file system.
    fn limit(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.arg("limit").args(args).arg("--bpffs").arg(&self.0).output().unwrap()
    }
    fn apply(&self, text: &str) -> (Option<i32>, String) {
        let file = self.0.join("limits.toml");
        fs::write(&file, text).unwrap();
        let out = self.limit(&["apply", "--dry-run", file.to_str().unwrap()]);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn has_cgroups() -> bool {
    let there = millpond_linux::limit::cgroup::Hierarchy::find().is_ok();
    if !there {
        eprintln!("skipped: no cgroup v2 is mounted");
    }
    there
}

#[test]
fn errors_have_their_place() {
    if !has_cgroups() {
        return;
    }
    let scratch = Scratch::new("errors");
    let cases = [
        ("[[limit]]\nname = \"a\"\nrate = \"10 furlongs\"\n", ["limits.toml:3:8", "furlongs"]),
        ("[[limit]]\nname = \"a\"\nrate = \"0bps\"\n", ["limits.toml:3:8", "cannot be held"]),
        ("[[limit]]\nname = \"a\"\nrate = \"90000Gbps\"\n", ["limits.toml:3:8", "cannot be held"]),
        ("[[limit]]\nname = \"a\"\ndirecton = \"both\"\n", ["limits.toml:3:1", "direction"]),
        ("[[limit]]\nname = \"a\"\nscopes = [\"b\"]\n", ["limits.toml:3:10", "there is no limit"]),
    ];
    for (text, expected) in cases {
        let (code, said) = scratch.apply(text);
        assert_eq!(code, Some(2), "{text}: {said}");
        expected.iter().for_each(|e| assert!(said.contains(e), "{e} not in {said}"));
    }
    assert_eq!(scratch.apply("[[limit]]\nname = \"a\"\nrate = \"10gbps\"\n").0, Some(0));
}

#[test]
fn nothing_is_installed() {
    let scratch = Scratch::new("nothing");
    let shown = scratch.limit(&["show", "--json"]);
    assert_eq!((shown.status.code(), shown.stdout.as_slice()), (Some(0), b"{\"limits\": []}\n".as_slice()));
    assert_eq!(scratch.limit(&["show"]).status.code(), Some(1));
    assert_eq!(scratch.limit(&["remove", "--all"]).status.code(), Some(0));
    assert_eq!(scratch.limit(&["remove"]).status.code(), Some(2));
    assert_eq!(scratch.limit(&["apply", "no-such-file.toml"]).status.code(), Some(1));
}

#[test]
fn what_only_changes_or_reads_mounts_nothing() {
    if !has_cgroups() {
        return;
    }
    let scratch = Scratch::new("mounts");
    for args in [&["show"][..], &["remove", "a"], &["set", "a", "rate=1Mbps"], &["observe", "a"]] {
        let out = scratch.limit(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("no limits are installed"), "{args:?}: {said}");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(scratch.0.to_str().unwrap()), "{args:?} has mounted a file system");
    }
}
