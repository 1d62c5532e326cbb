//! The interface of whoever watches a run.
//!
//! Invariant: a run reports each thing once, in the order of virtual time.

use millpond_core::Time;
use millpond_lab::{Record, load, output};
use millpond_results::{CollectiveRecord, RankRecord};

/// Watches a run, and may end it: methods that return a value return whether the run goes on.
pub trait Watch: load::Sink + output::Sink {
    /// Takes samples of queues and packets that the plan captures.
    fn recorded(&mut self, _batch: &[Record]) -> bool {
        true
    }
    /// Takes a modelled rank's part of a round of its job.
    fn rank(&mut self, _record: &RankRecord) -> bool {
        true
    }
    /// Takes a round of a job of modelled ranks.
    fn collective(&mut self, _record: &CollectiveRecord) -> bool {
        true
    }
    /// Called several times a second of wall-clock time.
    fn edge(&mut self, _now: Time, _hops: u64, _started: u64, _completed: u64) -> bool {
        true
    }
}
