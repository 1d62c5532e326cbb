//! Processes of a world, which have its name in their environment.
//!
//! Invariant: the calling process is never one of them.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::{Duration, Instant};

/// The variable that has the name.
pub const MARK: &str = "MILLPOND_WORLD";
/// How long processes may take to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Processes that have the mark of this world, and their children that have kept it. One that has
/// ended and was not waited for has no environment, and is none.
fn of(world: &str) -> Vec<Pid> {
    let mark = format!("{MARK}={world}");
    let own = std::process::id();
    let has_mark = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let marked = pids.filter(|pid| *pid != own).filter(has_mark);
    marked.filter_map(|pid| Pid::from_raw(pid as i32)).collect()
}

/// Kills the processes of a world, and waits until none is left.
pub fn kill_all(world: &str) {
    let start = Instant::now();
    loop {
        let left = of(world);
        if left.is_empty() || start.elapsed() > PATIENCE {
            return;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
