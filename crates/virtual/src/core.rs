//! One core for a world whose kernels run one after another: a wake-up on another core costs more
//! than the work that follows it (18 us a frame on one core, 34 us on two).
//!
//! Worlds that run side by side get cores in turn.
//!
//! Invariant: the thread is back on all of its cores when the [`Pinned`] is dropped.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Worlds of this process so far.
static WORLDS: AtomicUsize = AtomicUsize::new(0);

pub struct Pinned(Option<CpuSet>);

impl Pinned {
    /// Puts the calling thread, and processes that it starts, on one of its cores. Where that is
    /// refused the world is slower.
    pub fn new() -> Pinned {
        let Ok(all) = sched_getaffinity(None) else { return Pinned(None) };
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
        if cores.is_empty() {
            return Pinned(None);
        }
        // The last first: the first one has the machine's interrupts.
        let turn = WORLDS.fetch_add(1, Relaxed) % cores.len();
        let mut one = CpuSet::new();
        one.set(cores[cores.len() - 1 - turn]);
        Pinned(sched_setaffinity(None, &one).is_ok().then_some(all))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(all) = &self.0 {
            let _ = sched_setaffinity(None, all);
        }
    }
}
