//! The parent of a switch that `apply` has started: it starts the switch again after a signal or a
//! panic has ended it.
//!
//! Under systemd the service does the same (`packaging/systemd`).
//!
//! Invariant: a switch that was asked to end, or that could not start, does not start again. One
//! that finds no configuration or another switch, since `remove` or `apply` came first, ends.

use super::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, exit};
use std::time::{Duration, Instant};

/// The exit status of a process one of whose threads has panicked, as of a panic.
pub(super) const PANICKED: i32 = 101;
/// The variable that counts a supervised process's restarts.
const RESTARTS: &str = "MILLPOND_SWITCH_RESTARTS";
/// The wait before the first restart, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(10);
/// After so long a life the wait begins anew.
const SOUND: Duration = Duration::from_secs(60);
/// Signals by which somebody ends a process on purpose.
const ASKED: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// How often the supervisor has started this process again; `None`: it has no supervisor.
pub(super) fn restarts() -> Option<u32> {
    std::env::var(RESTARTS).ok()?.parse().ok()
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
    let status = run(FIRST_WAIT, |count| {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).env(RESTARTS, count.to_string());
        if count == 0 {
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

/// Runs commands, numbered from zero, until one ends in order.
fn run(first: Duration, command: impl Fn(u32) -> Command) -> std::io::Result<ExitStatus> {
    let mut wait = first;
    for count in 0.. {
        let began = Instant::now();
        let status = command(count).spawn()?.wait()?;
        let killed = status.signal().is_some_and(|signal| !ASKED.contains(&signal));
        if !killed && status.code() != Some(PANICKED) {
            return Ok(status);
        }
        if began.elapsed() > SOUND {
            wait = first;
        }
        log::error!("the switch ended by {status}; it starts again in {} ms", wait.as_millis());
        std::thread::sleep(wait);
        wait = (2 * wait).min(LAST_WAIT);
    }
    unreachable!("the count has no end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn starts_again_after_signals_and_panics_alone() {
        let ends = ["kill -9 $$", "exit 101", "kill -SEGV $$", "exit 3"];
        for (from, times) in [(0, 4), (3, 1)] {
            let started = Cell::new(0);
            let status = run(Duration::ZERO, |count| {
                started.set(count + 1);
                let mut command = Command::new("sh");
                command.args(["-c", ends[from + count as usize]]);
                command
            });
            assert_eq!((status.unwrap().code(), started.get()), (Some(3), times));
        }
        let asked = run(Duration::ZERO, |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "kill -TERM $$"]);
            command
        });
        assert_eq!(asked.unwrap().signal(), Some(libc::SIGTERM));
    }
}
