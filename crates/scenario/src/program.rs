//! Programs: the real processes of a lab's hosts (`[[program]]`).
//!
//! Invariant: a plan's programs have names of their own that can name files, and their commands
//! name only hosts that exist.

use crate::error::Report;
use crate::file_name::check_file_name;
use crate::settings::Settings;
use crate::settings::program::ProgramParams;
use crate::topology::Topology;
use millpond_core::Time;
use std::collections::BTreeSet;
use std::fmt::Display;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPlan {
    pub name: String,
    pub host: u32,
    /// The command as the scenario has it, with its arguments.
    pub command: String,
    pub start: Time,
    /// Whether the run lasts until it exits.
    pub awaits: bool,
    /// The class of the response times that its standard output has, one a line.
    pub responses: Option<String>,
}

impl ProgramPlan {
    /// The command with hosts' addresses in place of `{address}` and `{hostN}`.
    pub fn expanded<A: Display>(&self, address: impl Fn(u32) -> A) -> String {
        let text = |piece| match piece {
            Piece::Text(text) | Piece::Unknown(text) => text.to_string(),
            Piece::Own => address(self.host).to_string(),
            Piece::Host(host) => address(host).to_string(),
        };
        pieces(&self.command).into_iter().map(text).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// `{address}`.
    Own,
    /// `{hostN}`.
    Host(u32),
    /// `{hostX}`, where X is no number of a host.
    Unknown(&'a str),
}

/// The meaning of a word in braces; `None`: it belongs to the command.
fn placeholder(braced: &str) -> Option<Piece<'_>> {
    let word = &braced[1..braced.len() - 1];
    if word == "address" {
        return Some(Piece::Own);
    }
    let number = word.strip_prefix("host")?;
    let is_word = number.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let is_number = number.chars().all(|c| c.is_ascii_digit());
    let host = number.parse().ok().filter(|_| is_number);
    is_word.then(|| host.map_or(Piece::Unknown(braced), Piece::Host))
}

/// The parts of a command. `${name}` is the shell's.
fn pieces(command: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (at, _) in command.match_indices('{') {
        let end = command[at..].find('}').map(|length| at + length + 1);
        let Some(end) = end.filter(|_| !command[..at].ends_with('$')) else { continue };
        let Some(piece) = placeholder(&command[at..end]) else { continue };
        pieces.extend([Piece::Text(&command[from..at]), piece]);
        from = end;
    }
    pieces.push(Piece::Text(&command[from..]));
    pieces
}

/// The programs of a plan; faults go to the report.
pub(crate) fn programs(s: &Settings, topology: &Topology, report: &mut Report) -> Vec<ProgramPlan> {
    let lasts = s.run.until.is_none() || s.programs.iter().any(|p| p.awaits);
    if let (true, false, Some(first)) = (s.traffic.is_empty(), lasts, s.programs.first()) {
        let text = "the run ends before its programs start: it has no traffic, ends when flows \
                    are complete, and awaits no program";
        let place = format!("program.{}", first.name());
        let help = "write awaits = true, or a duration in place of until";
        report.clash(&place, text, help);
    }
    let plans: Vec<ProgramPlan> =
        s.programs.iter().flat_map(|p| each(s, p, topology.hosts, report)).collect();
    let mut names = BTreeSet::new();
    if let Some(twice) = plans.iter().find(|plan| !names.insert(&plan.name)) {
        let problem = format!("two programs are called {:?}", twice.name);
        let place = format!("program.{}", twice.name);
        report.clash(&place, problem, "give each its own name");
    }
    plans
}

/// A program of each of its hosts.
fn each(s: &Settings, p: &ProgramParams, hosts: u32, report: &mut Report) -> Vec<ProgramPlan> {
    let mut wrong = |key: &str, message: String| {
        let path = format!("program.{}.{key}", p.name());
        report.wrong(&path, message);
    };
    if let Err(message) = check_file_name(&p.name(), "a program's files") {
        wrong("name", message);
    }
    let members = match p.host.members(hosts) {
        Ok(members) => members.unwrap_or_else(|| (0..hosts).collect()),
        Err(message) => {
            wrong("host", message);
            Vec::new()
        }
    };
    let command = match p.arguments.as_str() {
        "" => p.command.clone(),
        arguments => format!("{} {arguments}", p.command),
    };
    if p.command.trim().is_empty() {
        wrong("command", "is empty".into());
    }
    if command.contains('\0') {
        wrong("command", "has a zero byte, which no command can have".into());
    }
    for piece in pieces(&command) {
        let unknown = match piece {
            Piece::Host(host) if host >= hosts => format!("{{host{host}}}"),
            Piece::Unknown(word) => word.to_string(),
            _ => continue,
        };
        let last = hosts - 1;
        wrong("command", format!("{unknown} is no host; hosts are {{host0}} to {{host{last}}}"));
    }
    if let Some(class) = &p.responses
        && s.traffic.iter().any(|traffic| traffic.name() == *class)
    {
        wrong("responses", format!("{class:?} is the class of a traffic"));
    }
    let is_one = members.len() == 1;
    let one = |host: u32| ProgramPlan {
        name: if is_one { p.name() } else { format!("{}-{host}", p.name()) },
        host,
        command: command.clone(),
        start: p.start,
        awaits: p.awaits,
        responses: p.responses.clone(),
    };
    members.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(command: &str) -> String {
        let command = command.to_string();
        let name = "a".to_string();
        let (start, responses) = (Time::ZERO, None);
        let program = ProgramPlan { name, host: 2, command, start, awaits: false, responses };
        program.expanded(|host| format!("10.0.0.{host}"))
    }

    #[test]
    fn addresses_replace_placeholders_and_other_braces_stay() {
        assert_eq!(
            expanded("a -l {address} -c {host0}:{host12}"),
            "a -l 10.0.0.2 -c 10.0.0.0:10.0.0.12"
        );
        for command in ["awk '{print $1}'", "{ echo {}; }", "echo ${host1} ${hostname}", "{", "a{b"]
        {
            assert_eq!(expanded(command), command);
        }
        assert_eq!(expanded("awk '{print \"{host1}\"}'"), "awk '{print \"10.0.0.1\"}'");
        assert_eq!(expanded("é{address}é"), "é10.0.0.2é");
    }

    #[test]
    fn words_like_a_host_are_unknown() {
        for word in ["{host}", "{hostX}", "{host-1}", "{host99999999999}", "{hosts}"] {
            assert_eq!(pieces(word)[1], Piece::Unknown(word));
        }
    }
}
