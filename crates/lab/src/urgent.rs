//! The scheduling class and the cores of the lab's threads: whatever else runs on the machine,
//! packets leave on time. The fabric's thread has the last core for itself; the load's thread has
//! the others.
//!
//! Invariant: a thread that may not have it goes on as it is; lateness is measured either way.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A thread of the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Moves packets.
    Fabric,
    /// Makes traffic.
    Load,
}

/// Prepares the calling thread for its role.
pub fn prepare(role: Role) {
    pin(role);
    urgent();
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
        Role::Load => others.iter().for_each(|core| own.set(*core)),
    }
    let _ = sched_setaffinity(None, &own);
}

/// Gives the calling thread the real-time class, at its lowest priority: before all ordinary
/// processes, and after the kernel's own threads. The kernel leaves others 5 % of the time
/// (`sched_rt_runtime_us`). Whether it was granted; it needs CAP_SYS_NICE.
#[allow(unsafe_code)]
fn urgent() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads the parameters, which outlive it; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
