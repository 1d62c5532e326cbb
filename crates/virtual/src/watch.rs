//! The interface of whoever watches a run.
//!
//! Invariant: a run reports each thing once, in the order of virtual time.

use millpond_core::Time;
use millpond_lab::Record;
use millpond_lab::load::Sink;

/// Watches a run, and may end it: each method returns whether the run goes on.
pub trait Watch: Sink {
    /// Takes samples of queues and packets that the plan captures.
    fn recorded(&mut self, _batch: &[Record]) -> bool {
        true
    }
    /// Takes bytes of a program's `stdout` or `stderr`; none when it starts.
    fn output(&mut self, _program: &str, _stream: &str, _bytes: &[u8]) -> bool {
        true
    }
    /// Takes a response time that a program of this class has written.
    fn response(&mut self, _class: &str, _time: Time) -> bool {
        true
    }
    /// Called several times a second of wall-clock time.
    fn edge(&mut self, _now: Time, _hops: u64, _started: u64, _completed: u64) -> bool {
        true
    }
}
