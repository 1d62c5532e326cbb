//! The notices that are due to other switches of what they send to an application.
//!
//! A flow is asked to pause, or to go on, by its queue. Where the port has no shared
//! memory left, all applications (address, port, protocol) that others send to here are notified
//! together, as in the simulator. The overlay sends the notices, once a round.
//!
//! Invariant: who was asked to pause is asked to go on, also when the application ends.

use millpond_core::Bytes;
use millpond_core::flow_queues::{FlowQueues, Verdict};
use millpond_core::overlay::{FlowKey, Senders, Target};
use std::collections::BTreeSet;

/// Applications that are notified together; those beyond are notified flow by flow.
const SENDERS_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub peer: u16,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The target is to pause: so much waits.
    Pause(Target, Bytes),
    Resume(Target),
    /// Data of a target has come that was asked to pause: so much waits.
    Arrived(FlowKey, Target, Bytes),
}

#[derive(Debug, Default)]
pub struct Notices {
    /// By switch: the applications that it sends to.
    senders: Senders<(u16, Target)>,
    /// Flows that were asked to pause.
    flows: BTreeSet<(u16, FlowKey)>,
    due: Vec<Notice>,
}

impl Notices {
    /// Data of a flow has come, and the queues have answered so.
    pub fn arrived<P>(&mut self, peer: u16, flow: FlowKey, verdict: &Verdict<P>, queued: Bytes) {
        let application = Target::application(&flow);
        if self.senders.len() < SENDERS_MAX
            && self.senders.arrived((peer, application), verdict.rung)
        {
            let pause = |(peer, target)| Notice { peer, what: What::Pause(target, queued) };
            self.due.extend(self.senders.iter().map(pause));
        }
        // A flow that is notified now has a record of its own, in its turn.
        if verdict.is_notified && self.flows.contains(&(peer, flow)) {
            self.due.push(Notice { peer, what: What::Arrived(flow, Target::Flow(flow), queued) });
        } else if self.senders.is_paused() {
            self.due.push(Notice { peer, what: What::Arrived(flow, application, queued) });
        }
    }
    /// A flow's queue pauses it, or lets it go on.
    pub fn flow(&mut self, peer: u16, flow: FlowKey, is_pause: bool, queued: Bytes) {
        let target = Target::Flow(flow);
        let what = if is_pause { What::Pause(target, queued) } else { What::Resume(target) };
        self.due.push(Notice { peer, what });
        if is_pause {
            self.flows.insert((peer, flow));
        } else {
            self.flows.remove(&(peer, flow));
        }
    }
    /// Ends the pause of all, when memory allows it: `shared` is what anybody may take.
    pub fn settle<F: Copy + Eq, P: Copy + Default>(
        &mut self,
        queues: &FlowQueues<F, P>,
        shared: Bytes,
    ) {
        if self.senders.is_paused() && self.senders.calms(queues, shared) {
            self.resume_all();
        }
    }
    fn resume_all(&mut self) {
        self.due.extend(
            self.senders.iter().map(|(peer, target)| Notice { peer, what: What::Resume(target) }),
        );
    }
    /// The application has ended: everybody may go on.
    pub fn end(&mut self) {
        if self.senders.is_paused() {
            self.resume_all();
        }
        self.senders = Senders::default();
        let flows = std::mem::take(&mut self.flows).into_iter();
        self.due.extend(
            flows.map(|(peer, flow)| Notice { peer, what: What::Resume(Target::Flow(flow)) }),
        );
    }
    pub fn expire(&mut self) {
        self.senders.forget();
    }
    /// The notices that are due, which then count as given.
    pub fn take(&mut self, into: &mut Vec<Notice>) {
        into.append(&mut self.due);
    }
    /// Flows that are asked to pause.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}
