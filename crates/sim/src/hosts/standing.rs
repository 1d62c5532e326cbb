//! The signs of a stalled run: which flows are open, what they have tried, and whether any byte has
//! moved.

use super::*;

/// An open connection that has bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenFlow {
    pub flow: FlowId,
    /// The two hosts, of which each must reach the other.
    pub ends: (HostId, HostId),
    pub timeouts: u32,
    /// No timer of its own lets it send again: it waits for its peer or for room.
    pub waits: bool,
    /// When its next timer is due.
    pub deadline: Time,
}

impl Hosts {
    /// The open flows whose senders are here, in no order. Probes are none.
    pub fn open_flows(&self) -> impl Iterator<Item = OpenFlow> + '_ {
        let open = |sending: &&Sending| {
            !sending.opening.role.is_probe()
                && sending.sender.written() > 0
                && !sending.sender.is_done()
        };
        self.senders.iter().map(|(_, sending)| sending).filter(open).map(|sending| OpenFlow {
            flow: sending.opening.flow,
            ends: self.shared.hosts_of(&sending.opening),
            timeouts: sending.sender.counters().timeouts,
            waits: sending.sender.waits()
                || sending.egress.as_ref().is_some_and(|egress| egress.queue.is_held()),
            deadline: sending.sender.deadline(),
        })
    }

    /// Bytes acknowledged at open senders and delivered at open receivers; a difference
    /// between two is progress.
    pub fn moved(&self) -> (u64, u64) {
        let senders = self.senders.iter().filter(|(_, sending)| !sending.opening.role.is_probe());
        let receivers =
            self.receivers.iter().filter(|(_, receiving)| !receiving.opening.role.is_probe());
        (
            senders.fold(0, |sum, (_, sending)| sum.wrapping_add(sending.sender.acked())),
            receivers.fold(0, |sum, (_, receiving)| sum.wrapping_add(receiving.delivered)),
        )
    }

    /// Whether a server here still thinks about an answer, or a rank computes.
    pub fn thinks(&self) -> bool {
        !self.answers.is_empty() || !self.ranks.waking.is_empty()
    }
}
