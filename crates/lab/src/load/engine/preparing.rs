//! Sockets of flows that are to come, made while there is time: a burst starts in little more than
//! its `connect` calls.
//!
//! Invariant: a prepared socket is bound, and its port is taken; it is used by its flow alone.

use super::*;
use millpond_scenario::traffic::Arrival;
use std::collections::HashMap;

const READY_MAX: usize = 512;
/// Sockets that are made between two looks at events.
const STEP: usize = 8;
/// Less time than this is left alone.
const CALM: Duration = Duration::from_micros(300);

/// Sockets that wait for their flows.
pub(super) struct Prepared {
    /// Arrivals that have not been looked at.
    ahead: Arrivals,
    /// Arrivals looked at, and flows started.
    seen: u64,
    started: u64,
    ready: HashMap<FlowId, (OwnedFd, u16)>,
}

impl Prepared {
    pub fn new(plan: &Plan) -> Prepared {
        let ahead = plan.traffic.arrivals();
        Prepared { ahead, seen: 0, started: 0, ready: HashMap::new() }
    }

    /// The socket of a flow that starts, and its port, if it was prepared.
    pub fn take(&mut self, flow: FlowId) -> Option<(OwnedFd, u16)> {
        self.ready.remove(&flow)
    }

    pub fn note_start(&mut self) {
        self.started += 1;
    }

    /// The next arrival that has not started.
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let arrival = self.ahead.next_arrival()?;
            self.seen += 1;
            if self.seen > self.started {
                return Some(arrival);
            }
        }
    }
}

impl Engine<'_> {
    /// Prepares some of what comes, if nothing is due. Returns whether there is more to prepare.
    pub(super) fn prepare(&mut self, due: Time) -> bool {
        for _ in 0..STEP {
            if self.prepared.ready.len() >= READY_MAX || self.clock.until(due) <= CALM {
                return false;
            }
            let Some(arrival) = self.prepared.next() else { return false };
            // The flow asks again at its start for a socket that cannot be had now.
            if let Ok((socket, port)) = self.bound(arrival.flow, arrival.src, arrival.class) {
                self.ports.insert((arrival.src, port));
                self.prepared.ready.insert(arrival.flow, (socket, port));
            }
        }
        true
    }
}
