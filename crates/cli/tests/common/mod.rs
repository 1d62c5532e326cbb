//! Runs the `millpond` binary as a user would and looks at what it leaves.

#![allow(dead_code)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The binary under test.
pub const MILLPOND: &str = env!("CARGO_BIN_EXE_millpond");

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

/// A fresh folder for one test, removed with it.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("millpond-cli-{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Dir(std::env::temp_dir().join(unique));
        fs::create_dir_all(&dir.0).unwrap();
        dir
    }
    /// With `small.toml` in it, which is [`SMALL`].
    pub fn small(name: &str) -> Dir {
        let dir = Dir::new(name);
        dir.write("small.toml", SMALL);
        dir
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        path
    }
    /// What is in it.
    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
    /// The command, in this folder.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = millpond(words);
        command.current_dir(&self.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
    /// Runs it to its end.
    pub fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().unwrap())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files of this name below a folder, sorted.
pub fn find(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find(&path, name));
        } else if path.file_name().is_some_and(|n| n == name) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The path of a shipped scenario.
pub fn scenario(name: &str) -> PathBuf {
    root().join("scenarios").join(format!("{name}.toml"))
}

/// `millpond` with these words.
pub fn millpond<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(MILLPOND);
    command.args(words);
    command
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output.stderr));
    output
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

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a message says, whatever the width that it was wrapped to: one line, without the wrapping's marks.
pub fn flat(bytes: &[u8]) -> String {
    text(bytes).replace(['│', '×', '·'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A shipped scenario, with what makes it short enough for a test.
pub struct Shipped {
    pub name: &'static str,
    /// Names of its variants; empty: it has none.
    pub variants: &'static [&'static str],
    /// Overrides that shorten it.
    pub short: &'static [&'static str],
}

impl Shipped {
    /// Its variants as `--variant` arguments; a scenario without variants has one, without a name.
    pub fn arms(&self) -> Vec<Option<&'static str>> {
        if self.variants.is_empty() { vec![None] } else { self.variants.iter().copied().map(Some).collect() }
    }
    /// The words of a short run of one variant: `run FILE --set … --variant … --out … --quiet`.
    pub fn run(&self, variant: Option<&str>, out: &Path, more: &[&str]) -> Command {
        let mut command = millpond(["run"]);
        command.arg(scenario(self.name));
        for set in self.short {
            command.args(["--set", set]);
        }
        if let Some(variant) = variant {
            command.args(["--variant", variant]);
        }
        command.arg("--out").arg(out).arg("--quiet").args(more);
        command
    }
}

/// All shipped scenarios; a test sees to it that none is left out.
pub const SHIPPED: &[Shipped] = &[
    Shipped {
        name: "admission",
        variants: &[
            "drop-tail",
            "wred",
            "probabilistic",
            "last-packet",
            "canary-wred",
            "canary-probabilistic",
            "canary-last-packet",
            "canary",
            "canary-quirks",
        ],
        short: &[],
    },
    Shipped {
        name: "deflection",
        variants: &[
            "ecmp",
            "red",
            "aifo",
            "sp-pifo",
            "dibs",
            "simple",
            "vertigo",
            "canary",
            "canary-stale",
            "canary-distribution",
            "canary-pisa",
        ],
        short: &["duration=30ms"],
    },
    Shipped { name: "dumbbell", variants: &["dctcp", "cubic", "newreno"], short: &[] },
    Shipped { name: "edge", variants: &["presto", "stock-gro", "hashed", "flowlet", "ecmp", "core"], short: &[] },
    Shipped {
        name: "fat-tree-permutation",
        variants: &["ecmp", "spray", "spray-tolerant"],
        short: &["traffic.permutation.size=300KB"],
    },
    Shipped { name: "flows", variants: &[], short: &[] },
    Shipped {
        name: "incast",
        variants: &["dctcp", "newreno", "short-timeout", "small-window"],
        short: &["duration=100ms"],
    },
    Shipped {
        name: "limit",
        variants: &["dctcp", "cubic", "mixed", "edt", "htb", "ingress"],
        short: &["duration=150ms"],
    },
    Shipped { name: "lossless", variants: &["drop", "pfc", "pfc-released", "tlp", "tlt"], short: &["duration=4ms"] },
    Shipped {
        name: "microburst",
        variants: &["ecmp", "spray", "shared-buffer", "cubic"],
        short: &["duration=10ms", "warm-up=2ms"],
    },
    Shipped {
        name: "ordering",
        variants: &["ordered", "unordered", "impatient", "ecmp", "attained-service"],
        short: &["duration=10ms"],
    },
    Shipped { name: "rpc", variants: &["with-bulk", "hardly-any-bulk"], short: &["duration=10ms", "warm-up=1ms"] },
    Shipped { name: "sawtooth", variants: &["dctcp", "newreno"], short: &[] },
    Shipped { name: "shuffle", variants: &["two-at-a-time", "four-at-a-time"], short: &["traffic.shuffle.size=200KB"] },
    Shipped {
        name: "swift-incast",
        variants: &["swift", "short-target", "shallow-buffer", "dctcp", "newreno"],
        short: &["duration=100ms"],
    },
];

pub fn shipped(name: &str) -> &'static Shipped {
    SHIPPED.iter().find(|s| s.name == name).unwrap()
}

/// The files of a results folder, by name.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), fs::read(dir.join(&name)).unwrap())).collect()
}

/// `summary.json` without its object `run`, byte for byte.
pub fn without_run(summary: &[u8]) -> String {
    let text = text(summary);
    let from = text.find("\n  \"run\": {").expect("summary.json has an object `run`");
    let to = from + text[from..].find("\n  },").expect("the object ends") + "\n  },".len();
    format!("{}{}", &text[..from], &text[to..])
}

pub fn summary(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap()
}

/// The text (its only one) of a JSON document; anything before or after it is an error.
pub fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e} in {}", text(bytes)))
}
