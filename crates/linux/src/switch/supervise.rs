//! The parent of a switch that `apply` has started: it starts the switch again after a signal or a
//! panic has ended it.
//!
//! Under systemd the service does the same (`packaging/systemd`).
//!
//! Invariant: a switch that was asked to end, or that could not start, does not start again. One
//! that finds no configuration or another switch, since `remove` or `apply` came first, ends.

use super::error::Error;
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, exit};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The exit status of a process one of whose threads has panicked, as of a panic.
pub(super) const PANICKED: i32 = 101;
/// The variable that has a supervised process's restarts as JSON.
const RESTARTS: &str = "MILLPOND_SWITCH_RESTARTS";
/// The wait before the first restart, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// After so long a life the wait begins anew.
const SOUND: Duration = Duration::from_secs(60);
/// Signals by which somebody ends a process on purpose.
const ASKED: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Restarts of a switch by its supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    pub count: u32,
    /// When the former process ended, in seconds since 1970.
    pub unix_s: u64,
    /// The end of the former process: its signal, or the exit status of a panic.
    pub reason: String,
}

/// This process's restarts; `None`: it has no supervisor.
pub(super) fn restarts() -> Option<Restarts> {
    serde_json::from_str(&std::env::var(RESTARTS).ok()?).ok()
}

/// Runs this program's command in a child, until that ends in order. `first` prepares the first
/// one.
///
/// # Errors
/// [`Error::Kernel`] if no child starts. A child that ends with a failure ends the process with the
/// same status.
pub(super) fn supervise(first: impl Fn(&mut Command)) -> Result<(), Error> {
    // The terminal's signals are not for it.
    let _ = rustix::process::setsid();
    let program = std::env::current_exe().map_err(|e| Error::kernel("finding the program", e))?;
    let status = run(FIRST_WAIT, |restarts| {
        let mut command = Command::new(&program);
        let text = serde_json::to_string(restarts).unwrap_or_default();
        command.args(std::env::args_os().skip(1)).env(RESTARTS, text);
        if restarts.count == 0 {
            first(&mut command);
        }
        command
    })
    .map_err(|e| Error::kernel("starting the switch", e))?;
    match status.success() {
        true => Ok(()),
        false => exit(status.code().unwrap_or(1)),
    }
}

/// Runs commands, each with the restarts before it, until one ends in order.
fn run(first: Duration, command: impl Fn(&Restarts) -> Command) -> std::io::Result<ExitStatus> {
    let (mut wait, mut restarts) = (first, Restarts::default());
    loop {
        let began = Instant::now();
        let status = command(&restarts).spawn()?.wait()?;
        let killed = status.signal().is_some_and(|signal| !ASKED.contains(&signal));
        if !killed && status.code() != Some(PANICKED) {
            return Ok(status);
        }
        if began.elapsed() > SOUND {
            wait = first;
        }
        log::error!("the switch ended by {status}; it starts again in {} ms", wait.as_millis());
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        restarts = Restarts { count: restarts.count + 1, unix_s, reason: status.to_string() };
        std::thread::sleep(wait);
        wait = (2 * wait).min(LAST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn starts_again_after_signals_and_panics_alone() {
        let ends = ["kill -9 $$", "exit 101", "kill -SEGV $$", "exit 3"];
        for (from, times) in [(0, 4), (3, 1)] {
            let started = RefCell::new(Vec::new());
            let status = run(Duration::ZERO, |restarts| {
                started.borrow_mut().push(restarts.clone());
                let mut command = Command::new("sh");
                command.args(["-c", ends[from + restarts.count as usize]]);
                command
            });
            let started = started.into_inner();
            assert_eq!((status.unwrap().code(), started.len()), (Some(3), times));
            let reasons: Vec<&str> = started.iter().map(|it| &it.reason[..]).collect();
            let all = ["", "signal: 9 (SIGKILL)", "exit status: 101", "signal: 11 (SIGSEGV)"];
            assert_eq!(reasons, all[..times]);
            assert!(started[1..].iter().all(|it| it.unix_s > 1_700_000_000));
        }
        let asked = run(Duration::ZERO, |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "kill -TERM $$"]);
            command
        });
        assert_eq!(asked.unwrap().signal(), Some(libc::SIGTERM));
    }
}
