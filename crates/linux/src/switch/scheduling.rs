//! The processor time of a running switch: the kernel's group that it is in, and what it gets.
//!
//! Linux divides processors among sessions first (autogroups, sched(7)). A switch in the session of
//! a shell shares one group's part with all that the shell has started. So a switch that `apply`
//! starts leads a session of its own, whose priority is [`NICE`].
//!
//! Invariant: a look at a process changes nothing of it.

use crate::limit::doctor::{Finding, State};
use rustix::process::{self, Pid};
use std::fs;
use std::time::Duration;

/// The priority of a switch that `apply` starts, in its session and of its session: three times the
/// weight of a tenant's. With -10, nine times, other programs of a packet's way starved on two busy
/// cores.
const NICE: i32 = -5;
const LOOK: Duration = Duration::from_millis(500);
/// A switch that gets less of the time in which it could run has too little.
const ENOUGH: f64 = 0.9;

/// Leads a session of its own, with a priority that is above those of tenants where the process
/// may have one.
pub(super) fn lead() {
    let _ = process::setsid();
    let _ = process::setpriority_process(None, NICE);
    let _ = fs::write("/proc/self/autogroup", NICE.to_string());
}

/// The time of a thread, in nanoseconds: on a processor, and waiting for one.
fn times(pid: u32) -> Option<[f64; 2]> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    Some([numbers.next()?, numbers.next()?])
}

/// The session of a process; 0 for the kernel's own threads.
fn session(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have spaces and brackets: state, parent, group, session.
    text.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

fn others(session_of: u32, pid: u32) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|other| *other != pid && session(*other) == Some(session_of)).count()
}

/// The cgroup by which the kernel divides processors, if the process is in one; sessions do not
/// count there.
fn cgroup(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let divides = |line: &&str| {
        let controllers = line.split(':').nth(1).unwrap_or_default();
        controllers.split(',').any(|name| name == "cpu") || line.starts_with("0::")
    };
    let path = text.lines().find(divides)?.splitn(3, ':').nth(2)?;
    Some(path.to_string()).filter(|path| path != "/")
}

pub(super) fn examine(pid: u32) -> Option<Finding> {
    let before = times(pid)?;
    std::thread::sleep(LOOK);
    let after = times(pid)?;
    let [ran, waited] = [0, 1].map(|which| after[which] - before[which]);
    let share = (ran + waited > 0.0).then(|| ran / (ran + waited));
    let nice = process::getpriority_process(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    let count = session(pid).map_or(0, |session| others(session, pid));
    let group = match cgroup(pid) {
        Some(path) => format!("cgroup {path}"),
        None if count == 0 => "a session of its own".into(),
        None => format!("a session with {count} other processes"),
    };
    let shared = cgroup(pid).is_none() && count > 0;
    let got = share.map_or("it slept".into(), |share| {
        format!("on a processor for {:.0} % of the time in which it could run", 100.0 * share)
    });
    let is_fine = !shared && share.is_none_or(|share| share >= ENOUGH);
    Some(Finding::new(
        "processor",
        is_fine,
        State::Lacking,
        format!("{group}, nice {nice}; {got}"),
        "frames wait while the switch does, and are lost beyond its queues: start it by `apply` or \
         as a service, raise its priority (Nice=, CPUWeight=), or leave it a processor",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A program that ends with the test.
    struct Program(Child);

    impl Program {
        fn start(command: &[&str]) -> Program {
            let mut program = Command::new(command[0]);
            program.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null());
            Program(program.stderr(Stdio::null()).spawn().unwrap())
        }
    }

    impl Drop for Program {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_that_runs_has_a_group_and_a_share() {
        // One that spins in this session, and one that sleeps in its own.
        let busy = Program::start(&["sh", "-c", "while :; do :; done"]);
        let idle = Program::start(&["setsid", "sleep", "60"]);
        while session(idle.0.id()) != Some(idle.0.id()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let [spins, sleeps] = [&busy, &idle].map(|program| examine(program.0.id()).unwrap());
        assert!(spins.found.contains("% of the time"), "{}", spins.found);
        let alone = |finding: &Finding| !finding.found.contains("other processes");
        assert!(alone(&sleeps) && sleeps.found.contains("it slept"), "{}", sleeps.found);
        if cgroup(std::process::id()).is_none() {
            assert!(!alone(&spins) && spins.state == State::Lacking, "{}", spins.found);
            assert_eq!(sleeps.state, State::Ok);
        }
        assert!(examine(u32::MAX).is_none());
    }
}
