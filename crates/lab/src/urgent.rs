//! The priority and the cores of the lab's threads, so that packets leave on time beside other
//! work. The fabric's thread stays on the last core, the load's thread and programs on the others.
//!
//! Invariant: neither changes what is sent, only how late it is.

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::Cell;

/// The highest priority, as `nice` counts.
const HIGHEST: i32 = -20;

thread_local! {
    static IS_APART: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread has been prepared, and the fabric's thread has another core.
pub fn is_apart() -> bool {
    IS_APART.get()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Moves packets.
    Fabric,
    Load,
    /// Starts programs, which inherit its cores.
    Programs,
}

/// Prepares the calling thread for its role.
pub fn prepare(role: Role) {
    pin(role);
    if role != Role::Programs {
        hurry();
    }
}

/// Keeps the calling thread to its role's cores, if there are two or more.
fn pin(role: Role) {
    let Ok(all) = sched_getaffinity(None) else { return };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
    let Some((last, others)) = cores.split_last().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    let mut own = CpuSet::new();
    match role {
        Role::Fabric => own.set(*last),
        Role::Load | Role::Programs => others.iter().for_each(|core| own.set(*core)),
    }
    IS_APART.set(sched_setaffinity(None, &own).is_ok());
}

/// Gives the calling thread the highest priority of ordinary threads; it needs CAP_SYS_NICE.
///
/// Not the real-time class: a core that a real-time thread keeps busy gives the kernel's deferred
/// work 5 % of its time in one piece, and packets are then tens of milliseconds late.
fn hurry() {
    // A thread that may not have it goes on as it is; lateness is measured either way.
    let _ = setpriority_process(None, HIGHEST);
}
