//! The counts of a virtual switch, over a whole run.
//!
//! Invariant: names are those of the results, and the same for every kind that counts the thing.

use super::{ApplicationCounts, VirtualSwitchParams};
use crate::counters::{Count, Named};
use crate::overlay::Word;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub rounds: u64,
    pub polls: u64,
    /// Packets that they took.
    pub packets: u64,
    pub doorbells: u64,
    /// Packets that found a receive ring full.
    pub ring_drops: u64,
    /// Packets that found no room behind it.
    pub drops: u64,
    /// Payload of both, which has crossed the network for nothing.
    pub wasted: u64,
    pub stops: u64,
    /// The counts of what applications have served.
    pub served: ApplicationCounts,
    /// Of flow queues, if it has them.
    pub flows: Option<FlowCounts>,
    /// Records sent to other switches, if it sends any.
    pub words: Option<Words>,
}

/// Records that it has sent to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    Pauses([u64; 3]),
    /// ASK, GRANT; and packets that came without leave.
    Credits([u64; 2], u64),
    Rates([u64; 2]),
}

impl Words {
    /// Of what was sent, by [`Word::index`].
    pub(super) fn new(params: &VirtualSwitchParams, sent: &[u64; Word::COUNT], late: u64) -> Words {
        let [pauses, refreshes, resumes, asks, grants, rates] = *sent;
        match params {
            VirtualSwitchParams::Credits(_) => Words::Credits([asks, grants], late),
            VirtualSwitchParams::Picnic(_) => Words::Rates([rates, resumes]),
            _ => Words::Pauses([pauses, refreshes, resumes]),
        }
    }
}

/// The counts of its flow queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    pub pauses: u64,
    pub resumes: u64,
    /// The most bytes that waited in the queues of one core of an application.
    pub peak_bytes: u64,
    /// Bytes that wait now.
    pub queued: u64,
}

impl Counts {
    pub fn report(&self, named: &mut Named) {
        let Counts {
            rounds,
            polls,
            packets,
            doorbells,
            ring_drops,
            drops,
            wasted,
            stops,
            served,
            ..
        } = *self;
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
        if let Some(flows) = self.flows {
            named.add("doorbells", doorbells);
            named.add("peak-bytes", Count::Max(flows.peak_bytes));
            named.add("queued-bytes", flows.queued);
        }
        match self.words {
            None => (),
            Some(Words::Pauses([pauses, refreshes, resumes])) => {
                let flows = self.flows.unwrap_or_default();
                named.add("flow-pauses", flows.pauses);
                named.add("flow-resumes", flows.resumes);
                named.add("pauses", pauses);
                named.add("refreshes", refreshes);
                named.add("resumes", resumes);
            }
            Some(Words::Credits([asks, grants], late)) => {
                named.add("asks", asks);
                named.add("grants", grants);
                named.add("late", late);
            }
            Some(Words::Rates([rates, resumes])) => {
                named.add("rates", rates);
                named.add("resumes", resumes);
            }
        }
    }
}
