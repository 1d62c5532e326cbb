//! What a virtual switch counts, over a whole run.
//!
//! Invariant: names are those of the results, and the same for every kind that counts the thing.

use super::ApplicationCounts;
use crate::counters::{Count, Named};

/// What a switch has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rounds of its cores.
    pub rounds: u64,
    /// Queues that these looked at.
    pub polls: u64,
    /// Packets that they took.
    pub packets: u64,
    /// Doorbells.
    pub doorbells: u64,
    /// Packets that found a receive ring full.
    pub ring_drops: u64,
    /// Packets that found no room behind it.
    pub drops: u64,
    /// Payload of both, which has crossed the network for nothing.
    pub wasted: u64,
    /// Times that polling stopped.
    pub stops: u64,
    /// What applications have served.
    pub served: ApplicationCounts,
    /// Of flow queues, if it has them.
    pub flows: Option<FlowCounts>,
    /// Words said to other switches, if it says any: PAUSE, REFRESH, RESUME.
    pub words: Option<[u64; 3]>,
}

/// What its flow queues have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Flows told to pause.
    pub pauses: u64,
    /// Flows told to go on.
    pub resumes: u64,
    /// The most bytes that waited in the queues of one core of an application.
    pub peak_bytes: u64,
    /// Bytes that wait now.
    pub queued: u64,
}

impl Counts {
    /// Tells them by name.
    pub fn tell(&self, named: &mut Named) {
        let Counts { rounds, polls, packets, doorbells, ring_drops, drops, wasted, stops, served, .. } = *self;
        named.add("rounds", rounds);
        named.add("polls", polls);
        named.add("packets", packets);
        named.add("polls-per-1000-packets", Count::Mean(u128::from(polls) * 1000, packets));
        named.add("ring-drops", ring_drops);
        named.add("drops", drops);
        named.add("wasted-bytes", wasted);
        named.add("stops", stops);
        named.add("served-packets", served.packets);
        named.add("served-bytes", served.bytes);
        named.add("served-us", Count::Micros(served.busy));
        let Some(flows) = self.flows else { return };
        named.add("doorbells", doorbells);
        named.add("peak-bytes", Count::Max(flows.peak_bytes));
        named.add("queued-bytes", flows.queued);
        let Some([pauses, refreshes, resumes]) = self.words else { return };
        named.add("flow-pauses", flows.pauses);
        named.add("flow-resumes", flows.resumes);
        named.add("pauses", pauses);
        named.add("refreshes", refreshes);
        named.add("resumes", resumes);
    }
}
