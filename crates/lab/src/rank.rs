//! Ranks of what a host's kernel sends, by the core's [`Ranker`].
//!
//! Attained service needs no knowledge of the application: the edge counts what a connection has
//! sent. Bytes left of a message are known to the application alone, so [`crate::support`] refuses
//! that kind.
//!
//! A retransmission is a packet that begins before the end of what was sent. The edge sees no
//! window of the kernel's, so it takes what lies 16 MiB back for acknowledged.
//!
//! Invariant: as many connections as the table holds have ranks; a packet of any other has rank 0,
//! the most important.

use crate::stream::Offsets;
use millpond_core::edge::{Outbound, RankParams, Ranker};
use millpond_core::flow_table::FlowTable;
use millpond_core::packet::Body;
use millpond_core::{Packet, Time};
use millpond_linux::dataplane::flow::FlowKey;

/// More than a window of the kernel's.
const WINDOW: u64 = 16 << 20;
/// A connection that is silent for longer is forgotten.
const IDLE: Time = Time::from_s(30);
/// Connections that have ranks.
const FLOWS_MAX: usize = 1 << 16;
/// Connections that one call of [`Ranks::evict`] looks at.
const STEPS: usize = 256;

struct Sending {
    ranker: Ranker,
    offsets: Offsets,
    /// Where what was sent ends.
    end: u64,
    last: Time,
}

/// The connections of a host that send.
pub struct Ranks {
    params: RankParams,
    flows: FlowTable<FlowKey, Sending>,
}

impl Ranks {
    /// Of a host; `None`: packets carry no rank.
    pub fn new(params: &RankParams) -> Option<Ranks> {
        Ranker::new(params)?;
        Some(Ranks { params: params.clone(), flows: FlowTable::default() })
    }

    /// Ranks a packet that leaves now, if it has payload of TCP.
    pub fn rank(&mut self, now: Time, packet: &mut Packet, key: FlowKey) {
        let Body::Data { seq, .. } = packet.body else { return };
        if packet.payload == 0 {
            return;
        }
        let Some(at) = self.flow(packet.flow, key, seq as u32) else { return };
        let flow = &mut self.flows[at];
        let (seq, len) = (flow.offsets.of(seq as u32), u32::from(packet.payload));
        let end = seq + u64::from(len);
        let again = end <= flow.end;
        flow.end = flow.end.max(end);
        flow.last = now;
        let acked = flow.end.saturating_sub(WINDOW);
        let outbound = Outbound { seq, len, again, written: flow.end, acked };
        packet.rank = flow.ranker.rank(now, &outbound);
    }

    /// The place of a connection, which may be new.
    fn flow(&mut self, hash: u32, key: FlowKey, seq: u32) -> Option<u32> {
        if let Some(at) = self.flows.find(hash, key) {
            return Some(at);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        let ranker = Ranker::new(&self.params)?;
        let offsets = Offsets::new(seq);
        let sending = Sending { ranker, end: offsets.now(), offsets, last: Time::ZERO };
        Some(self.flows.insert(hash, key, sending))
    }

    /// Forgets some of the connections that are idle.
    pub fn evict(&mut self, now: Time) {
        self.flows.evict(STEPS, |flow| now.saturating_sub(flow.last) > IDLE);
    }
}
