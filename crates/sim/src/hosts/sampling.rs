//! Sampling: which connections are open, and what a connection's sending end looks like from
//! outside.
//!
//! Invariant: looking changes nothing.

use super::*;
use millpond_results::ConnectionRecord;
use millpond_scenario::plan::ConnectionCapture;

impl Hosts {
    pub fn has_senders(&self) -> bool {
        !self.senders.is_empty()
    }

    /// The open connections here that a capture means, in no order.
    pub fn sampled_by(&self, capture: &ConnectionCapture) -> Vec<FlowId> {
        let meant = |(flow, it): (FlowId, &Sending)| self.is_meant(capture, it).then_some(flow);
        match &capture.flows {
            Some(flows) => {
                let open =
                    |flow: &FlowId| Some((*flow, self.senders.look(self.senders.slot_of(*flow)?)));
                flows.iter().filter_map(open).filter_map(meant).collect()
            }
            None => self.senders.iter().filter_map(meant).collect(),
        }
    }

    /// A connection as it is at `at`, if it is open here.
    pub fn connection(&self, at: Time, flow: FlowId) -> Option<ConnectionRecord> {
        let sending = self.senders.look(self.senders.slot_of(flow)?);
        let (sender, opening) = (&sending.sender, &sending.opening);
        let (src, dst) = self.shared.hosts_of(opening);
        let (standing, sent) = (sender.standing(&self.shared.transport), sender.counters());
        Some(ConnectionRecord {
            at,
            flow,
            class: opening.class,
            src,
            dst,
            state: standing.state,
            cwnd: standing.cwnd,
            ssthresh: Some(standing.ssthresh).filter(|bytes| *bytes < u64::MAX),
            in_flight: standing.in_flight,
            acked: sender.acked(),
            srtt: Some(sender.srtt()).filter(|srtt| *srtt > Time::ZERO),
            rto: sender.rto(),
            retransmitted: sent.retransmitted,
            timeouts: sent.timeouts,
            law: standing.law,
        })
    }

    /// Whether a capture means a connection. Requests, which are short and no flow of the results,
    /// must be named. A note makes a server's half of a persistent connection, at a time that
    /// depends on who shares a partition; so the half counts from its first message on.
    fn is_meant(&self, capture: &ConnectionCapture, it: &Sending) -> bool {
        let Opening { role, class, .. } = it.opening;
        let (src, dst) = self.shared.hosts_of(&it.opening);
        let carries_flows = match role {
            Role::Pings | Role::Pongs => false,
            Role::Request { .. } => capture.flows.is_some(),
            Role::RpcResponses => it.sender.written() > 0,
            _ => true,
        };
        carries_flows && capture.means(class, src, dst)
    }
}
