//! Real programs on hosts of a lab: one thread starts them, passes their output on, and ends them.
//!
//! A program is `sh -c COMMAND` in its host's namespace and in a process group of its own, so that
//! a signal reaches all of its processes. The thread observes an exit without reaping the process:
//! until the end no other group can have its number.
//!
//! Memory holds no output: what a pipe gives goes to the [`Sink`], up to a bound a program.
//!
//! Invariant: when [`run`] returns, or unwinds, every process group of a program has been killed.
//! Processes that have left their group end with the lab's world.

use crate::address;
use crate::command::path;
use crate::load::Cgroup;
use crate::output::{Output, Sink};
use millpond_results::Program;
use millpond_scenario::plan::{Plan, ProgramPlan};
use millpond_worlds::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const GRACE: Duration = Duration::from_secs(2);
/// From SIGKILL until output that is still to come is given up.
const DRAIN: Duration = Duration::from_millis(500);
/// Between two looks at whether programs have exited or the run is over.
const LOOK: Duration = Duration::from_millis(10);

/// Where programs run, and from when.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    pub plan: &'a Plan,
    pub namespaces: &'a [Namespace],
    pub began: Instant,
    /// Programs are in their host's, if it has one for all of its traffic.
    pub cgroups: &'a [Cgroup],
    /// For their temporary files (`TMPDIR`). It ends with the lab.
    pub folder: &'a Path,
}

#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// In the order of the scenario.
    pub programs: Vec<Program>,
    pub warnings: Vec<String>,
    /// Whether `stop` came before the exit of a program that the run awaits.
    pub interrupted: bool,
}

/// The end of a program, in this kernel or another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// Its status, as `wait` has it.
    pub exit: Option<u32>,
    /// Whether SIGTERM came before its exit.
    pub is_ended: bool,
    pub is_killed: bool,
}

impl Ending {
    /// Its exit status, unless a signal has ended it.
    fn code(self) -> Option<u32> {
        self.exit.filter(|exit| exit & 0x7f == 0).map(|exit| exit >> 8 & 0xff)
    }

    /// The end in words; `grace` is the time from SIGTERM to SIGKILL.
    pub fn status(self, grace: &str) -> String {
        match (self.is_killed, self.is_ended, self.exit, self.code()) {
            (true, ..) => format!("killed: did not end {grace} after SIGTERM"),
            (_, true, ..) => "ended with the run".to_string(),
            (.., Some(code)) => format!("exit status {code}"),
            (_, _, Some(exit), None) => format!("ended by signal {}", exit & 0x7f),
            (_, _, None, None) => "unknown".to_string(),
        }
    }

    /// Whether it has failed: it exited by itself with another status than 0.
    pub fn fails(self) -> bool {
        !self.is_ended && self.code() != Some(0)
    }
}

/// A status of `waitid` as `wait` has it.
fn status_of(exit: &WaitIdStatus) -> u32 {
    let code = exit.exit_status().map(|code| code << 8);
    code.or(exit.terminating_signal()).unwrap_or(0).cast_unsigned()
}

pub struct Started {
    child: Child,
    pid: Pid,
    /// By stream; `None`: at its end.
    pipes: [Option<OwnedFd>; 2],
    ending: Ending,
}

impl Running for Started {
    fn ending(&self) -> Ending {
        self.ending
    }
}

impl Started {
    fn is_quiet(&self) -> bool {
        self.ending.exit.is_some() && self.pipes.iter().all(Option::is_none)
    }

    /// Observes its exit, and leaves the process to be reaped.
    fn look(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.ending.exit.is_none() {
            let exit = waitid(WaitId::Pid(self.pid), options).ok().flatten();
            self.ending.exit = exit.as_ref().map(status_of);
        }
    }

    fn signal(&self, signal: Signal) {
        // Its group may have ended.
        let _ = kill_process_group(self.pid, signal);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A program of a plan, whoever runs it.
pub struct One<'a, S> {
    pub plan: &'a ProgramPlan,
    pub output: Output<'a>,
    pub state: State<S>,
}

/// A program's way through a run.
pub enum State<S> {
    Waiting,
    Started(S),
    Failed(io::Error),
}

/// A program that has started.
pub trait Running {
    /// How it has ended, if it has.
    fn ending(&self) -> Ending;
}

impl Running for Ending {
    fn ending(&self) -> Ending {
        *self
    }
}

/// A plan's programs, which wait for their times.
pub fn waiting<S>(plan: &Plan) -> Vec<One<'_, S>> {
    let one = |plan| One { plan, output: Output::new(plan), state: State::Waiting };
    plan.programs.iter().map(one).collect()
}

/// Whether every program that the run awaits has exited.
pub fn awaits_none<S: Running>(all: &[One<'_, S>]) -> bool {
    let is_over = |state: &State<S>| match state {
        State::Waiting => false,
        State::Started(started) => started.ending().exit.is_some(),
        State::Failed(_) => true,
    };
    all.iter().filter(|one| one.plan.awaits).all(|one| is_over(&one.state))
}

/// The programs as results have them, and warnings for the user; `grace` is the time from SIGTERM
/// to SIGKILL.
pub fn ended<S: Running>(all: &[One<'_, S>], grace: &str) -> (Vec<Program>, Vec<String>) {
    let end = |one: &One<'_, S>| {
        let (status, fails) = match &one.state {
            State::Waiting => ("not started".to_string(), true),
            State::Failed(error) => (format!("cannot start: {error}"), true),
            State::Started(started) => (started.ending().status(grace), started.ending().fails()),
        };
        one.output.end(status, fails)
    };
    let (programs, warnings): (_, Vec<_>) = all.iter().map(end).unzip();
    (programs, warnings.concat())
}

/// Runs a plan's programs until `is_over` is set and those that the run awaits have exited, or
/// `stop` is set. Then it ends the others.
pub fn run(
    settings: &Settings<'_>,
    is_over: &AtomicBool,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
) -> Ended {
    let all = waiting(settings.plan);
    let mut programs = Programs { settings, all, sink, buffer: vec![0; 64 << 10] };
    while !(stop.load(Relaxed) || is_over.load(Relaxed) && awaits_none(&programs.all)) {
        let next = programs.start();
        programs.pass(next.min(LOOK));
    }
    let interrupted = !awaits_none(&programs.all);
    programs.end();
    let (programs, warnings) = ended(&programs.all, &format!("{} s", GRACE.as_secs()));
    Ended { programs, warnings, interrupted }
}

struct Programs<'a> {
    settings: &'a Settings<'a>,
    all: Vec<One<'a, Started>>,
    sink: &'a mut dyn Sink,
    buffer: Vec<u8>,
}

impl Programs<'_> {
    /// Starts what is due; returns the time to the next start.
    fn start(&mut self) -> Duration {
        let mut next = LOOK;
        for one in &mut self.all {
            if !matches!(one.state, State::Waiting) {
                continue;
            }
            let due = self.settings.began + one.plan.start.to_duration();
            let left = due.saturating_duration_since(Instant::now());
            if left > Duration::ZERO {
                next = next.min(left);
                continue;
            }
            one.output.begin(self.sink);
            let namespace = &self.settings.namespaces[one.plan.host as usize];
            let of_host = |it: &&Cgroup| it.host == one.plan.host && it.classes.is_none();
            let cgroup = self.settings.cgroups.iter().find(of_host);
            let started = spawn(namespace, cgroup, self.settings.folder, one.plan);
            one.state = started.map_or_else(State::Failed, State::Started);
        }
        next
    }

    /// Waits for output, at most so long, and passes it on; then looks who has exited.
    fn pass(&mut self, wait: Duration) {
        let pipes = self.all.iter().filter_map(|one| match &one.state {
            State::Started(started) => Some(started.pipes.iter().flatten()),
            _ => None,
        });
        let mut fds: Vec<_> =
            pipes.flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as _ };
        let _ = poll(&mut fds, Some(&time));
        for one in &mut self.all {
            one.read(&mut self.buffer, self.sink);
            if let State::Started(started) = &mut one.state {
                started.look();
            }
        }
    }

    fn started(&mut self) -> impl Iterator<Item = &mut Started> {
        self.all.iter_mut().filter_map(|one| match &mut one.state {
            State::Started(started) => Some(started),
            _ => None,
        })
    }

    /// Ends what still runs: SIGTERM, and after a while SIGKILL.
    fn end(&mut self) {
        self.started().for_each(|started| {
            started.ending.is_ended = started.ending.exit.is_none();
            started.signal(Signal::TERM);
        });
        self.settle(GRACE);
        self.started().for_each(|started| {
            started.ending.is_killed = started.ending.exit.is_none();
            started.signal(Signal::KILL);
        });
        self.settle(DRAIN);
    }

    /// Passes output on until all programs have exited and their pipes are closed, at most so long.
    fn settle(&mut self, most: Duration) {
        let began = Instant::now();
        loop {
            self.pass(LOOK / 10);
            if self.started().all(|started| started.is_quiet()) || began.elapsed() > most {
                return;
            }
        }
    }
}

impl One<'_, Started> {
    fn read(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) {
        let State::Started(started) = &mut self.state else { return };
        for (stream, pipe) in started.pipes.iter_mut().enumerate() {
            let Some(fd) = pipe else { continue };
            let count = match rustix::io::read(&*fd, &mut *buffer) {
                Ok(count) => count,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
                Err(_) => 0,
            };
            if count == 0 {
                *pipe = None;
                continue;
            }
            self.output.take(stream, &buffer[..count], sink);
        }
    }
}

/// A shell's text: enter a cgroup, then run a command.
const IN_CGROUP: &str = "echo 0 >\"$0/cgroup.procs\" && exec sh -c \"$1\"";

/// Starts a program in a namespace and a cgroup.
fn spawn(
    namespace: &Namespace,
    cgroup: Option<&Cgroup>,
    folder: &Path,
    plan: &ProgramPlan,
) -> io::Result<Started> {
    let text = plan.expanded(address::ip);
    let mut command = Command::new("sh");
    match cgroup {
        None => command.args(["-c", &text]),
        Some(cgroup) => command.args(["-c", IN_CGROUP]).arg(&cgroup.folder).arg(&text),
    };
    command.process_group(0).env("TMPDIR", folder).env("PATH", path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = namespace.spawn(&mut command)?;
    let pid = Pid::from_child(&child);
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let started = Started { child, pid, pipes, ending: Ending::default() };
    started.pipes.iter().flatten().try_for_each(|pipe| ioctl_fionbio(pipe, true))?;
    Ok(started)
}
