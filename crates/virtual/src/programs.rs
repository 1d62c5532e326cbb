//! The scenario's programs: started at their times by agents, from the machine's own files, which
//! guests see read-only.
//!
//! Times are virtual, a program's own clock too. The output of programs is passed on as it comes; a
//! pipe's bytes cost no virtual time.
//!
//! Invariant: every program of the plan ends with a status, and the run does not end before those
//! that it awaits.

use crate::calendar::Orders;
use millpond_agent::wire::{self, BODY_MAX, Order};
use millpond_core::Time;
use millpond_lab::address;
use millpond_lab::output::Sink;
use millpond_lab::programs::{Ending, One, State, awaits_none, ended, waiting};
use millpond_results::Program;
use millpond_scenario::plan::Plan;
use std::path::{Path, PathBuf};

/// From SIGTERM to SIGKILL, and from that to the end.
const GRACE: Time = Time::from_ms(100);
/// A command, and where this program is, must fit into one order.
pub const COMMAND_MAX: usize = BODY_MAX - 256;
const TERM: u8 = 15;
const KILL: u8 = 9;

pub struct Programs<'a> {
    all: Vec<One<'a, Ending>>,
    /// When the next signal is due, once the run is to end.
    signals: Option<(Time, u8)>,
}

impl<'a> Programs<'a> {
    pub fn new(plan: &'a Plan) -> Programs<'a> {
        Programs { all: waiting(plan), signals: None }
    }

    /// Whether every program that the run awaits has exited.
    pub fn awaits_none(&self) -> bool {
        awaits_none(&self.all)
    }

    /// Whether none runs, or those that do have been given up.
    pub fn are_over(&self) -> bool {
        !self.all.iter().any(runs) || self.signals == Some((Time::MAX, 0))
    }

    pub fn next(&self) -> Option<Time> {
        if let Some((at, _)) = self.signals {
            return Some(at).filter(|at| *at < Time::MAX);
        }
        let waits = self.all.iter().filter(|one| matches!(one.state, State::Waiting));
        waits.map(|one| one.plan.start).min()
    }

    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Time, sink: &mut dyn Sink, orders: &mut Orders) {
        if let Some((at, signal)) = self.signals.filter(|(at, _)| *at <= now) {
            return self.signal(at, signal, orders);
        }
        if self.signals.is_some() {
            return;
        }
        for (number, one) in (0..).zip(&mut self.all) {
            if !matches!(one.state, State::Waiting) || one.plan.start > now {
                continue;
            }
            one.state = State::Started(Ending::default());
            one.output.begin(sink);
            let command = with_own_path(one.plan.expanded(address::ip));
            order(now, one.plan.host, Order::Run { program: number, command }, orders);
        }
    }

    /// The run is to end: has those that run end, too.
    pub fn stop(&mut self, now: Time, orders: &mut Orders) {
        if self.signals.is_none() {
            self.signal(now, TERM, orders);
        }
    }

    fn signal(&mut self, now: Time, signal: u8, orders: &mut Orders) {
        if signal == 0 {
            self.signals = Some((Time::MAX, 0));
            return;
        }
        for (number, one) in (0..).zip(&mut self.all).filter(|(_, one)| runs(one)) {
            let State::Started(ending) = &mut one.state else { continue };
            match signal {
                KILL => ending.is_killed = true,
                _ => ending.is_ended = true,
            }
            order(now, one.plan.host, Order::Signal { program: number, signal }, orders);
        }
        let next = if signal == TERM { KILL } else { 0 };
        self.signals = Some((now.saturating_add(GRACE), next));
    }

    pub fn wrote(&mut self, program: u16, stream: u8, bytes: &[u8], sink: &mut dyn Sink) {
        if let Some(one) = self.all.get_mut(usize::from(program)) {
            one.output.take(usize::from(stream == 2), bytes, sink);
        }
    }

    pub fn exited(&mut self, program: u16, status: u32) {
        if let Some(One { state: State::Started(ending), .. }) =
            self.all.get_mut(usize::from(program))
        {
            ending.exit = Some(status);
        }
    }

    /// The programs as results have them, and warnings for the user.
    pub fn ended(self) -> (Vec<Program>, Vec<String>) {
        ended(&self.all, &GRACE.to_string())
    }
}

/// Whether a program has started, and has not exited.
fn runs(one: &One<'_, Ending>) -> bool {
    matches!(&one.state, State::Started(ending) if ending.exit.is_none())
}

/// A command that finds this program, too, such as for `millpond limit`.
pub fn with_own_path(command: String) -> String {
    let own = std::env::current_exe().ok();
    let folder = own.as_deref().and_then(std::path::Path::parent);
    match folder.map(|it| it.display().to_string()).filter(|it| !it.contains('\'')) {
        Some(folder) => format!("PATH=\"$PATH:\"'{folder}'\n{command}"),
        None => command,
    }
}

/// The machine's files that a shell command names: by their path, or as programs of the search
/// path.
pub fn files(command: &str) -> Vec<PathBuf> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    let words = command.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    let find = |word: &str| {
        let folders = millpond_agent::wire::PATH.split(':').map(Path::new);
        let places: Vec<PathBuf> = match word.contains('/') {
            true => vec![word.into()],
            false => folders.map(|folder| folder.join(word)).collect(),
        };
        places.into_iter().find(|place| place.is_absolute() && place.is_file())
    };
    words.filter_map(find).collect()
}

fn order(at: Time, host: u32, order: Order, orders: &mut Orders) {
    orders.push((at, host, wire::bytes(&order)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commands_files_are_its_programs_and_paths() {
        let found =
            files("exec sh -c 'cat /etc/passwd>out; no-such-program 10.213.0.1 ../x'|wc -l");
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["sh", "cat", "passwd", "wc"]);
    }
}
