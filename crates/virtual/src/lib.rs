//! World `virtual`: a scenario's hosts as real Linux kernels, in virtual time.
//!
//! ```text
//!  agent ─ sockets ─ kernel TCP ─ virtio ──► site: NIC, edge, shim ──► Fabric: switches, links
//!    ▲                              ▲         ▲
//!    └── orders, reports ── site ───┴─────────┴── calendar: windows, clocks
//! ```
//!
//! | file | content |
//! |---|---|
//! | `kernels`, `memory` | which kernel runs, whether it can, and how many fit |
//! | `image` | the initial file system of a guest: the agent |
//! | `schedule` | a guest's clock |
//! | `device` | a guest's network interface |
//! | `guest` | one kernel: a process, its clock, its interfaces |
//! | `site` | a host: a guest, its interfaces by the calendar, the stages above its link |
//! | `calendar` | guests and network in one time |
//! | `load` | the plan's traffic: orders for agents, and what their reports mean |
//! | `modelled` | hosts that are no kernels (`host.linux`) |
//! | `limits` | `[[limit]]`, by `millpond limit` or HTB in guests |
//! | `programs` | the scenario's programs |
//! | `console` | the user's commands while the world stands |
//! | `core` | one core for kernels that run one after another |
//! | `cost` | `host.receive-cpu`: cores that take what arrives |
//! | `watch` | the interface of a run's watcher |
//! | `run` | a run from boot to end |
//!
//! The network, the stages between a host and its link, and the records are the lab's
//! (`millpond-lab`), whose switches are the simulator's.
//!
//! Invariant: a result depends on the plan, the kernel and the image, and on nothing else of the
//! machine.

mod calendar;
mod console;
mod core;
mod cost;
mod device;
mod error;
mod guest;
mod image;
pub mod kernels;
mod limits;
mod load;
mod memory;
mod modelled;
mod programs;
mod run;
mod schedule;
mod site;
mod watch;

pub use error::Error;
pub use limits::{Class, Reading};
pub use run::{Outcome, Settings, check, note, run};
pub use watch::Watch;

/// The needs of this world beside a kernel: each by its name, found or missing.
pub fn needs() -> Vec<(&'static str, Result<String, String>)> {
    let has = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).exists())
    };
    let setarch = match has("setarch") {
        true => Ok("yes".to_string()),
        false => Err("missing: it is of util-linux".to_string()),
    };
    let shm = std::fs::metadata("/dev/shm");
    let shm = shm.map_err(|e| format!("{e}: mount -t tmpfs tmpfs /dev/shm"));
    let memory = memory::available().map(|mb| format!("{mb} MB free: {} hosts", mb / 16));
    vec![
        ("setarch", setarch),
        ("/dev/shm", shm.map(|_| "yes".to_string())),
        ("memory", memory.ok_or_else(|| "/proc/meminfo has no MemAvailable".to_string())),
    ]
}
