//! Counts of a run: flows, bytes, lateness and errors.
//!
//! Invariant: counts are of the whole run, but for what is measured, which begins after the
//! warm-up.

use crate::lateness::Lateness;
use millpond_core::{FlowId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Flows and calls that have started.
    pub started: u64,
    /// Flows and calls that are complete.
    pub completed: u64,
    /// Flows and calls that an error has ended.
    pub failed: u64,
    /// Bytes that receiving applications have read after the warm-up; probes do not count.
    pub bytes_measured: u64,
    /// The same by (sending host, receiving host), for Jain's index. Pairs that had something to
    /// send and delivered nothing have zero.
    pub pairs: BTreeMap<(u32, u32), u64>,
    /// Delays of flows' starts against their schedule.
    pub lateness: Lateness,
    /// Errors of single connections, by kind.
    pub errors: BTreeMap<String, Failure>,
    /// Segments sent again, of all sockets.
    pub retransmitted: u64,
    /// Expiries of retransmission timers, of all sockets.
    pub timeouts: u64,
    /// Data packets that arrived before an earlier one, of all sockets.
    pub out_of_order: u64,
    /// Bytes that receiving applications have read since the beginning, by class, at each multiple
    /// of `[capture] goodput`.
    pub goodput: Vec<Vec<u64>>,
    pub sampled: BTreeSet<FlowId>,
    /// Flows whose last acknowledgement had no time stamp; their `sender_last` is up to 50 ms late.
    pub unstamped: u64,
    /// Dependent flows that wait for flows which were not delivered.
    pub waiting: Vec<FlowId>,
    /// Dependent flows whose start would have been after their stop or the end.
    pub late: Vec<FlowId>,
    pub ended: Time,
    /// Whether somebody stopped it before its end.
    pub interrupted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub count: u64,
    /// The first one: which flow, and what happened.
    pub first: String,
}

impl Counts {
    /// Counts an error of a connection.
    pub fn fail(&mut self, error: &io::Error, what: impl FnOnce() -> String) {
        let kind = error.kind().to_string();
        let first = || Failure { count: 0, first: format!("{}: {error}", what()) };
        self.errors.entry(kind).or_insert_with(first).count += 1;
    }
}
