//! The memory of a world's kernels, before any of them starts.
//!
//! Invariant: a world that passes fits into what this machine has free.

use crate::error::Error;

/// The memory that a kernel touches at rest and under load, in MB: 10 to 16 were measured.
const TOUCHED: u64 = 16;

/// Memory that this machine has free, in MB; `None`: unknown.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb / 1024)
}

/// Refuses more kernels than there is memory for.
pub fn check(hosts: u32) -> Result<(), Error> {
    let needed = u64::from(hosts) * TOUCHED;
    match available() {
        Some(available) if available < needed => Err(Error::Memory { hosts, needed, available }),
        _ => Ok(()),
    }
}
