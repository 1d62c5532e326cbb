//! Stamps what is for a peer with a label and a flowcell, cuts it into packets, and hands those to what carries them.
//!
//! One decision a super-segment, before it is cut, so all its packets have the same stamp (Presto, section 3.1). What is not TCP
//! takes the path that its flow's hash says: nobody restores order for it.
//!
//! Invariant: packets of one flowcell go to one path, in order.

use super::flow::{FlowKey, Keys};
use super::packet::Packet;
use crate::encapsulation::Encapsulation;
use crate::frame::{Checksums, Header, Segmenter, View};
use crate::switch::buffers::Buffers;
use crate::switch::counters::Drop;
use crate::switch::node::Frame;
use millpond_core::Time;
use millpond_core::edge::flowcell::{Flowcells, Rule, Stamp, counted};

/// A flow that is silent for longer is forgotten.
const IDLE: Time = Time::from_s(30);

/// What carries packets to a peer.
pub trait Carrier {
    /// Takes packets of one stamp, all of them; those that it cannot carry it ends, and tells why.
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        peer: usize,
        stamp: Encapsulation,
        packets: &mut Vec<Packet>,
    ) -> Result<(), Drop>;
}

/// The sending half of an edge.
pub struct Sender {
    flows: Flowcells<FlowKey>,
    keys: Keys,
    /// The labels that lead to each peer, as its schedule has them.
    labels: Vec<Vec<u16>>,
    /// The packets of one super-segment.
    packets: Vec<Packet>,
}

impl Sender {
    /// By this rule, with these lists of labels, one a peer; none is empty.
    pub fn new(rule: Rule, labels: Vec<Vec<u16>>) -> Sender {
        let keys = Keys::default();
        Sender { flows: Flowcells::new(rule, IDLE, keys.drawn()), keys, labels, packets: Vec::new() }
    }

    /// Takes a frame for one peer. What it keeps of the frame's buffer it refers to. A checksum that it makes whole there is whole for the
    /// next peer, too, and the frame says so.
    pub fn send(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &mut Frame,
        view: &View,
        peer: usize,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        let range = frame.start..frame.start + frame.length;
        let labels = self.labels.get(peer).filter(|labels| !labels.is_empty()).ok_or(Drop::Nowhere)?;
        let bytes = &buffers.bytes(frame.buffer)[range.clone()];
        let key = view.layers().map(|layers| FlowKey::of(bytes, layers, peer as u16));
        let hash = key.map_or(0, |key| key.hash(&self.keys));
        let Stamp { label, flowcell } = match key.zip(view.tcp()) {
            Some((key, l)) => {
                let len = counted((l.end - l.payload) as u32, (l.payload - l.network) as u32);
                self.flows.stamp(now, hash, key, len, labels)
            }
            None => Stamp { label: labels[hash as usize % labels.len()], flowcell: 0 },
        };
        let cut =
            view.layers().filter(|l| frame.offload.partial && frame.offload.is_at(l) || frame.offload.gso_size > 0);
        let partial = cut.is_some();
        match cut {
            Some(layers) => {
                let mut segmenter = Segmenter::new(bytes, *layers, frame.offload.gso_size.into(), Checksums::Partial);
                let mut header = Header::default();
                while let Some(payload) = segmenter.next(&mut header) {
                    let payload = payload.start + range.start..payload.end + range.start;
                    self.packets.push(Packet::new(header, frame.buffer, payload));
                }
            }
            None => {
                let bytes = &mut buffers.bytes_mut(frame.buffer)[range.clone()];
                frame.offload.fill(bytes).map_err(|_| Drop::BadOffload)?;
                let headers = view.layers().map_or(range.len(), |l| l.payload);
                self.packets.push(Packet::of_frame(buffers, frame.buffer, range, headers));
            }
        }
        buffers.retain(frame.buffer, self.packets.iter().filter(|p| p.has_payload()).count() as u32);
        carrier.carry(now, buffers, peer, Encapsulation { label, flowcell, partial }, &mut self.packets)
    }

    /// Forgets some of the flows that are idle.
    pub fn evict(&mut self, now: Time) {
        self.flows.evict(now);
    }
    /// How many flows it knows.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}
