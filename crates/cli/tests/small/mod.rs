//! What the tests of the command share: a folder of their own, a small scenario, and the command itself.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Sixteen hosts, half loaded, and queries that are too large for their buffer.
pub const SMALL: &str = r#"
name = "small"
duration = "4ms"

[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 8
host-link = { rate = "10Gbps", delay = "1us" }
fabric-link = { rate = "40Gbps", delay = "5us" }

[transport]
kind = "dctcp"
min-rto = "1ms"

[[traffic]]
name = "background"
kind = "poisson"
sizes = "cache-follower"
load = 0.5

[[traffic]]
name = "queries"
kind = "incast"
degree = 12
response = "40KB"
rate = 2000
receiver = "random"
request = "none"

[[variant]]
name = "ecmp"
set = { "switch.path.kind" = "ecmp" }

[[variant]]
name = "cubic"
set = { "transport.kind" = "cubic", "switch.marking.kind" = "none" }
"#;

/// A fresh folder with the scenario in it, removed with the test.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("millpond-cli-{}-{name}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Dir(std::env::temp_dir().join(unique));
        std::fs::create_dir_all(&dir.0).unwrap();
        std::fs::write(dir.at("small.toml"), SMALL).unwrap();
        dir
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command, in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a command said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// Checks the exit code.
    pub fn ends(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

/// All files of this name below a folder, sorted.
pub fn files(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, name));
        } else if path.file_name().is_some_and(|n| n == name) {
            found.push(path);
        }
    }
    found.sort();
    found
}
