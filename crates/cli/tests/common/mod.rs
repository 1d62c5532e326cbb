//! Runs the `millpond` binary as a user would and looks at what it leaves.

#![allow(dead_code)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
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
        let unique = format!(
            "millpond-cli-{}-{}-{name}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
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
    /// With `s.toml` in it, which is this scenario.
    pub fn with(name: &str, scenario: &str) -> Dir {
        let dir = Dir::new(name);
        dir.write("s.toml", scenario);
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
    /// Its content.
    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
    /// The command, in this folder.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = millpond(words);
        command
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
    pub fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
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
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
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

/// The exit code and the output of a command.
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

/// The text of a message, whatever the width that it was wrapped to: one line, without the
/// wrapping's marks.
pub fn flat(bytes: &[u8]) -> String {
    text(bytes).replace(['│', '×', '·'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A shipped scenario, with what makes it short enough for a test.
pub struct Shipped {
    pub name: String,
    /// Names of its variants; empty: it has none.
    pub variants: Vec<String>,
    /// Overrides that shorten it.
    pub short: Vec<String>,
}

/// Its command is the first line of its golden table.
pub const GOLDEN_COMMAND: &str = "millpond run scenarios/";

impl Shipped {
    /// The scenario of this name in `scenarios/`.
    fn of(name: &str) -> Shipped {
        let golden = root().join("tests/golden").join(format!("{name}.txt"));
        let table = fs::read_to_string(&golden).unwrap_or_default();
        let command = table
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(&format!("{GOLDEN_COMMAND}{name}.toml")));
        let overrides = command.unwrap_or_else(|| {
            panic!(
                "{}: its first line must be `{GOLDEN_COMMAND}{name}.toml [--set KEY=VALUE]…`",
                golden.display()
            )
        });
        let short = overrides.split(" --set ").skip(1).map(|set| set.trim().to_string()).collect();
        let parsed = millpond_scenario::Scenario::load(&scenario(name)).unwrap();
        Shipped {
            name: name.to_string(),
            variants: parsed.variants().iter().map(|v| v.to_string()).collect(),
            short,
        }
    }
    /// Its variants as `--variant` arguments; a scenario without variants has one, without a name.
    pub fn arms(&self) -> Vec<Option<&str>> {
        if self.variants.is_empty() {
            vec![None]
        } else {
            self.variants.iter().map(|v| Some(v.as_str())).collect()
        }
    }
    /// The words of a short run of one variant: `run FILE --set … --variant … --out … --quiet`.
    pub fn run(&self, variant: Option<&str>, out: &Path, more: &[&str]) -> Command {
        let mut command = millpond(["run"]);
        command.arg(scenario(&self.name));
        for set in &self.short {
            command.args(["--set", set]);
        }
        if let Some(variant) = variant {
            command.args(["--variant", variant]);
        }
        command.arg("--out").arg(out).arg("--quiet").args(more);
        command
    }
}

/// The names of the files in a folder that end so, without their ends.
pub fn stems(folder: &str, extension: &str) -> Vec<String> {
    names(&root().join(folder))
        .iter()
        .filter_map(|n| n.strip_suffix(extension))
        .map(str::to_string)
        .collect()
}

/// All shipped scenarios.
pub static SHIPPED: LazyLock<Vec<Shipped>> =
    LazyLock::new(|| stems("scenarios", ".toml").iter().map(|name| Shipped::of(name)).collect());

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

/// A results folder without what may differ from run to run.
pub fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(dir);
    assert!(files.remove("manifest.json").is_some(), "{} has a manifest", dir.display());
    let summary = files.get_mut("summary.json").expect("there is a summary");
    *summary = without_run(summary).into_bytes();
    files
}

/// The difference between two folders: their files' names, or the first file whose bytes differ.
pub fn difference(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    if names(a) != names(b) {
        return Some(format!("other files: {:?} and {:?}", names(a), names(b)));
    }
    let (name, bytes) = a.iter().find(|(name, bytes)| *bytes != &b[*name])?;
    let at = bytes.iter().zip(&b[name]).take_while(|(x, y)| x == y).count();
    let around = |bytes: &[u8]| text(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())]);
    Some(format!("{name} differs at byte {at}:\n{}\n{}", around(bytes), around(&b[name])))
}

/// The report shows the scenario and what the command line has changed in it: there, and only
/// there, `set` may be seen.
pub fn with_default(
    contents: &BTreeMap<String, Vec<u8>>,
    key: &str,
    value: &str,
    default: &str,
) -> BTreeMap<String, Vec<u8>> {
    let mut contents = contents.clone();
    let mut report = text(&contents["report.html"]);
    let last = key.rsplit('.').next().unwrap();
    for (key, quote) in [(key, ""), (last, "\""), (last, "&quot;"), (last, "&#34;")] {
        let equals = if quote.is_empty() { "=" } else { " = " };
        let written = |value: &str| format!("{key}{equals}{quote}{value}{quote}");
        report = report.replace(&written(value), &written(default));
    }
    contents.insert("report.html".to_string(), report.into_bytes());
    contents
}

pub fn summary(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap()
}

/// The text (its only one) of a JSON document; anything before or after it is an error.
pub fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e} in {}", text(bytes)))
}
