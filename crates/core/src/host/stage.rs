//! The stages in core's one order, and a record of what passes them, for tests of drivers.
//!
//! Invariant: without the feature `record-stages` nothing is recorded, and nothing costs.

/// The stages of the picture: those of egress in the order in which a packet passes them, then
/// those of ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Limit,
    Importance,
    Rank,
    Label,
    FlowQueue,
    Nic,
    Ring,
    Core,
    Offload,
    Order,
    LimitUp,
}

/// A packet passes a stage.
#[cfg(not(any(test, feature = "record-stages")))]
#[inline(always)]
pub fn passes(_: Stage) {}

#[cfg(any(test, feature = "record-stages"))]
pub use record::{passes, record, recorded};

#[cfg(any(test, feature = "record-stages"))]
mod record {
    use super::Stage;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Mutex, PoisonError};
    use std::thread::ThreadId;

    static IS_ON: AtomicBool = AtomicBool::new(cfg!(test));
    static PASSED: Mutex<Vec<(ThreadId, Stage)>> = Mutex::new(Vec::new());

    /// A packet passes a stage.
    pub fn passes(stage: Stage) {
        if IS_ON.load(Relaxed) {
            let mut all = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((std::thread::current().id(), stage));
        }
    }

    /// Records from now on what passes stages, on all threads.
    pub fn record() {
        recorded(None);
        IS_ON.store(true, Relaxed);
    }

    /// Takes the record of a thread, or of all.
    pub fn recorded(thread: Option<ThreadId>) -> Vec<Stage> {
        let mut all = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.extract_if(.., |(of, _)| thread.is_none_or(|thread| thread == *of));
        own.map(|(_, stage)| stage).collect()
    }
}
