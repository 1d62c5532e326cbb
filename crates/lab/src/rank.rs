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

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::edge::AttainedServiceParams;
    use millpond_linux::dataplane::frame::parse;

    /// The key of a connection from this port.
    fn key(port: u8) -> FlowKey {
        let mut frame = [0; 54];
        (frame[12], frame[14], frame[17], frame[23]) = (8, 0x45, 40, 6);
        (frame[26], frame[30], frame[35], frame[46]) = (10, 11, port, 0x50);
        let view = parse(&frame).unwrap();
        FlowKey::of(&frame, view.tcp().unwrap(), None, 0)
    }

    /// The ranks of packets of 1000 bytes that begin at these offsets of a connection.
    fn ranks(of: &mut Ranks, port: u8, at: Time, offsets: &[u64]) -> Vec<u64> {
        let rank = |offset: &u64| {
            let mut packet = Packet { flow: port.into(), payload: 1000, ..Packet::default() };
            // Sequence numbers wrap soon after the connection begins.
            let seq = u64::from((u32::MAX - 1500).wrapping_add(*offset as u32));
            packet.body = Body::Data { seq, slot: 0, flowcell: 0 };
            of.rank(at, &mut packet, key(port));
            u64::from(packet.rank)
        };
        offsets.iter().map(rank).collect()
    }

    #[test]
    fn each_connection_has_attained_what_it_has_sent_itself() {
        let params = RankParams::AttainedService(AttainedServiceParams::default());
        let mut all = Ranks::new(&params).unwrap();
        let now = Time::from_ms(1);
        assert_eq!(ranks(&mut all, 1, now, &[0, 1000, 2000, 3000]), [0, 1, 2, 3]);
        assert_eq!(ranks(&mut all, 2, now, &[0, 1000]), [0, 1], "another connection's are its own");
        // A packet that is sent again is not one more.
        let again = ranks(&mut all, 1, now, &[1000, 4000]);
        assert!(again[0] <= 1 && again[1] == 4, "{again:?}");
    }

    #[test]
    fn a_pure_acknowledgement_has_no_rank_and_silence_forgets() {
        let params = RankParams::AttainedService(AttainedServiceParams::default());
        let mut all = Ranks::new(&params).unwrap();
        let mut packet = Packet::default();
        all.rank(Time::ZERO, &mut packet, key(1));
        assert_eq!((packet.rank, all.flows.len()), (0, 0));
        ranks(&mut all, 1, Time::from_ms(1), &[0, 1000]);
        all.evict(Time::from_s(1));
        assert_eq!(all.flows.len(), 1);
        all.evict(Time::from_s(60));
        assert_eq!(all.flows.len(), 0);
    }
}
