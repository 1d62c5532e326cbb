//! Commands of programs: whether this machine has their first word.
//!
//! Invariant: a command that a shell could run is never refused. Builtins, assignments and compound
//! commands are left to the shell.

use crate::Error;
use millpond_scenario::plan::Plan;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Words that the shell itself runs.
const BUILTINS: [&str; 44] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "declare", "do", "done",
    "echo", "eval", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash",
    "if", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "source", "test", "then", "time", "times", "trap", "true", "ulimit", "until", "while",
];
const SELDOM: [&str; 6] = ["type", "umask", "unalias", "unset", "wait", "let"];

/// Packages of usual programs that have another name.
const PACKAGES: [(&str, &str); 14] = [
    ("memcached", "memcached"),
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("nginx", "nginx"),
    ("iperf3", "iperf3"),
    ("iperf", "iperf"),
    ("netperf", "netperf"),
    ("netserver", "netperf"),
    ("wrk", "wrk"),
    ("ab", "apache2-utils"),
    ("nc", "netcat-openbsd"),
    ("ping", "iputils-ping"),
    ("socat", "socat"),
];

/// The program that a command runs first; `None`: that is the shell's business.
fn program(command: &str) -> Option<&str> {
    let command = command.trim_start();
    let end = command.find(|c: char| c.is_whitespace() || "|&;<>()".contains(c));
    let (word, rest) = command.split_at(end.unwrap_or(command.len()));
    if word == "exec" {
        return program(rest);
    }
    let is_plain = |c: char| c.is_alphanumeric() || "_.+-/@".contains(c);
    let is_function = rest.trim_start().starts_with('(');
    let is_shells = BUILTINS.contains(&word) || SELDOM.contains(&word) || is_function;
    (!word.is_empty() && word.chars().all(is_plain) && !is_shells).then_some(word)
}

/// Whether `word` is an executable: a path, or a name in one of `folders`.
fn exists(word: &str, folders: &[PathBuf]) -> bool {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    match word.contains('/') {
        true => runs(Path::new(word)),
        false => folders.iter().any(|folder| runs(&folder.join(word))),
    }
}

/// The package to install, as an instruction.
pub(crate) fn advice(word: &str) -> String {
    match PACKAGES.iter().find(|(name, _)| *name == word) {
        Some((_, package)) => format!("apt-get install {package}"),
        None => "install it, or correct the command".to_string(),
    }
}

/// Where programs are found: `PATH`, and last the folder of this program, so that commands can use
/// `millpond lab ask` wherever it is.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let own = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_path_buf()));
    std::env::split_paths(&path).chain(own).collect()
}

/// The same as a program's `PATH`.
pub(crate) fn path() -> OsString {
    std::env::join_paths(folders()).unwrap_or_default()
}

/// Refuses a plan with a program that this machine lacks.
///
/// # Errors
/// [`Error::Unsupported`] with the first such program, and what to install.
pub fn check(plan: &Plan) -> Result<(), Error> {
    let folders = folders();
    for one in &plan.programs {
        let missing = program(&one.command).filter(|word| !exists(word, &folders));
        if let Some(word) = missing {
            let place = if word.contains('/') { "no executable" } else { "not in PATH" };
            let reason = format!("{word} is {place}: {}", advice(word));
            return Err(Error::unsupported(format!("program.{}.command", one.name), reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_first_word_is_the_program() {
        for (command, word) in [
            ("iperf3 -c 10.0.0.1 -t 5", Some("iperf3")),
            ("  memcached|cat", Some("memcached")),
            ("exec ./a.sh; b", Some("./a.sh")),
            ("sleep 1 && x", Some("sleep")),
            ("while true; do x; done", None),
            ("echo a", None),
            ("A=b x", None),
            ("$X a", None),
            ("{ a; }", None),
            ("(a)", None),
            ("f() { a; }; f", None),
            ("[ -e a ] && b", None),
            ("'a b'", None),
            ("", None),
        ] {
            assert_eq!(program(command), word, "{command}");
        }
    }

    #[test]
    fn executables_are_found_in_folders_and_by_path() {
        let folders = [PathBuf::from("/bin")];
        assert!(exists("sh", &folders) && exists("/bin/sh", &[]) && !exists("sh", &[]));
        assert!(!exists("/etc/passwd", &[]) && !exists("millpond-lacks-this", &folders));
    }

    #[test]
    fn usual_programs_have_their_packages() {
        assert_eq!(advice("redis-cli"), "apt-get install redis-tools");
        assert!(advice("x").starts_with("install it"));
    }
}
