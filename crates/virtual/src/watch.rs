//! Who watches a run.
//!
//! Invariant: what is told is told once, in the order of virtual time.

use millpond_core::Time;
use millpond_lab::Record;
use millpond_lab::load::Sink;
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};

/// Who watches a run, and may end it: each method returns whether it goes on.
pub trait Watch: Sink {
    /// Takes what the plan captures of queues and packets.
    fn recorded(&mut self, batch: &[Record]) -> bool;
    /// Takes bytes of a program's `stdout` or `stderr`; none when it starts.
    fn output(&mut self, program: &str, stream: &str, bytes: &[u8]) -> bool;
    /// Takes a response time that a program of this class has written.
    fn response(&mut self, class: &str, time: Time) -> bool;
    /// Called several times a second of wall-clock time.
    fn edge(&mut self, now: Time, hops: u64, started: u64, completed: u64) -> bool;
}

/// Who watches, as the sink of records that a load wants.
pub struct Into<'a>(pub &'a mut dyn Watch);

impl Sink for Into<'_> {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.0.flow(record)
    }
    fn query(&mut self, record: QueryRecord) -> bool {
        self.0.query(record)
    }
    fn rtt(&mut self, rtt: Time) -> bool {
        self.0.rtt(rtt)
    }
    fn connection(&mut self, record: ConnectionRecord) -> bool {
        self.0.connection(record)
    }
}
