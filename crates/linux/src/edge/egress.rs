//! Egress: a frame for a peer is cut into packets, which the host node stamps, and handed to what
//! carries them.
//!
//! One decision a super-segment, before it is cut, so all its packets have the same stamp (Presto,
//! section 3.1). Packets other than TCP's take the path that their flow's hash says: nobody
//! restores order for them.
//!
//! A flow that was forgotten begins anew with a random flowcell number, newer or older than what
//! its receiver may remember: 16 bits can promise neither. Receive offload by the safe rules takes
//! up either.
//!
//! Invariant: packets of one flowcell go to one path, in order.

use super::Edge;
use super::link::{Driver, Link};
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::FlowKey;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Checksums, Header, Segmenter, View};
use crate::dataplane::metadata;
use crate::dataplane::packet::Packet as Bytes;
use crate::encapsulation::Encapsulation;
use millpond_core::edge::flowcell::Rule;
use millpond_core::host::{Cut, Egress, EgressStages, Label, Segment, Stream};
use millpond_core::packet::{Body, NONE};
use millpond_core::random::mix64;
use millpond_core::{HostId, Packet, Time};

/// A flow that is silent for longer is forgotten: no shorter than a retransmission timeout.
const IDLE: Time = Time::from_s(30);
/// The same of one that has sent no payload, as a request that nobody answers.
const IDLE_WITHOUT_DATA: Time = Time::from_s(3);
/// The same of all where more than half of [`FLOWS_MAX`] are known.
const IDLE_WHEN_CROWDED: Time = Time::from_s(1);
/// Flows that one call of [`Edge::evict`] looks at.
const EVICTION_STEPS: usize = 256;
/// The most flows that are known, either way: who opens more makes these, and no others', keep one
/// path.
pub(super) const FLOWS_MAX: usize = 1 << 16;

/// Carries packets to a peer.
pub trait Carrier {
    /// Takes all packets of one stamp, and ends those that it cannot carry.
    ///
    /// # Errors
    /// The reason why a packet was dropped.
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        peer: usize,
        stamp: Encapsulation,
        packets: &mut Vec<Bytes>,
    ) -> Result<(), Drop>;
}

/// A flow that this machine sends.
pub(super) struct Sending {
    egress: Box<Egress>,
    /// When its last segment was sent, and over which path.
    last: Time,
    label: u16,
    /// Its payload so far.
    bytes: u64,
}

/// The known state of a flow that this machine sends.
pub struct Sent {
    /// Which.
    pub key: FlowKey,
    /// When its last segment was sent.
    pub last: Time,
    /// Over which path.
    pub label: u16,
    /// Its payload so far.
    pub bytes: u64,
}

impl Sending {
    fn new(rule: &Rule, key: u64, hash: u32) -> Option<Sending> {
        let label = Label::new(rule, key, hash, key as u16);
        let stages = EgressStages { label: Some(Box::new(label)), ..EgressStages::default() };
        Some(Sending { egress: Egress::new(None, stages)?, last: Time::ZERO, label: 0, bytes: 0 })
    }
}

/// The kernel's connection, of which only the segment is known.
struct Unknown;

impl Stream for Unknown {
    fn written(&self) -> u64 {
        u64::MAX
    }
    fn acked(&self) -> u64 {
        0
    }
    fn would_send(&self) -> bool {
        true
    }
}

impl Edge {
    /// Takes a frame for one peer. Packets that wait keep a reference to the frame's buffer. A
    /// partial checksum that this completes is complete for the next peer, too, and the frame says
    /// so.
    ///
    /// # Errors
    /// [`Drop::Nowhere`] if the peer has no path, the reason why the frame cannot be cut into
    /// packets, or the reason why the carrier dropped a packet.
    pub fn send(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &mut Frame,
        view: &View,
        peer: usize,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        // A panic may have left packets of another frame.
        self.driver.forget_leaving();
        let labels = self
            .driver
            .labels
            .get(peer)
            .filter(|labels| !labels.is_empty())
            .ok_or(Drop::Nowhere)?;
        let bytes = frame.bytes(buffers);
        let key = view.layers().map(|layers| FlowKey::of(bytes, layers, view.vlan, peer as u16));
        let hash = key.map_or(0, |key| key.hash(&self.driver.keys));
        let mut segment = describe(bytes, view);
        let first = &mut segment.first;
        (first.stamp, first.flow, first.dst) = (now, hash, peer as HostId);
        first.entropy = labels[hash as usize % labels.len()].into();
        let headers = view
            .layers()
            .map_or(frame.length - view.ethernet, |layers| layers.payload - layers.network);
        let mss = if frame.offload.gso_size > 0 { frame.offload.gso_size.into() } else { u32::MAX };
        let cut = Cut { mss, header: headers as u32, headers: headers as u32 };
        let partial = cut_frame(frame, view, buffers, &mut self.driver)?;

        let flags = view
            .tcp()
            .map(|layers| tcp::flags(&buffers.bytes(frame.buffer)[frame.start..], layers));
        let is_over = flags.is_some_and(|flags| flags & (tcp::FIN | tcp::RST) != 0);
        let sending = key.filter(|_| flags.is_some()).and_then(|key| self.sending(hash, key));
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        match sending {
            Some(at) => {
                let Sending { egress, last, bytes, .. } = &mut self.flows[at];
                (*last, *bytes) = (now, *bytes + u64::from(segment.len));
                egress.queue.room(now, segment.len);
                self.host.send_staged(now, egress, &Unknown, segment, None, cut, &mut link);
                if let Some(first) = self.driver.leaving.first() {
                    self.flows[at].label = self.driver.packets[*first].entropy as u16;
                }
            }
            None => {
                self.host.send(now, None, segment, cut, &mut link);
            }
        }
        if let Some(at) = sending.filter(|_| is_over) {
            self.flows.remove(at);
        }
        self.carry(now, buffers, partial, carrier)
    }

    /// The number of a flow, which may be new; `None`: there is no room.
    fn sending(&mut self, hash: u32, key: FlowKey) -> Option<u32> {
        if let Some(at) = self.flows.find(hash, key) {
            return Some(at);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        self.key = mix64(self.key ^ u64::from(hash));
        let sending = Sending::new(&self.driver.rule, self.key, hash)?;
        Some(self.flows.insert(hash, key, sending))
    }

    /// Hands over what the node has let out, which is of one stamp.
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        partial: bool,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        let driver = &mut self.driver;
        debug_assert_eq!(
            driver.leaving.len(),
            driver.cut.len(),
            "the node cuts a segment as the frame was cut"
        );
        let Some(first) = driver.leaving.first().map(|id| driver.packets[*id]) else {
            return Ok(());
        };
        let stamp =
            Encapsulation { label: first.entropy as u16, flowcell: first.flowcell(), partial };
        for id in driver.leaving.drain(..) {
            driver.packets.remove(id);
        }
        carrier.carry(now, buffers, first.dst as usize, stamp, &mut driver.cut)
    }

    /// Forgets idle flows, of some hundred that it looks at.
    pub(super) fn forget_idle(&mut self, now: Time) {
        let most = if self.flows.len() > FLOWS_MAX / 2 { IDLE_WHEN_CROWDED } else { IDLE };
        let idle = |flow: &Sending| if flow.bytes > 0 { most } else { most.min(IDLE_WITHOUT_DATA) };
        self.flows.evict(EVICTION_STEPS, |flow| now.saturating_sub(flow.last) > idle(flow));
    }
    /// The flows that it sends.
    pub fn sent(&self) -> impl Iterator<Item = Sent> {
        self.flows.numbers().map(|at| {
            let Sending { last, label, bytes, .. } = self.flows[at];
            Sent { key: self.flows.flow(at), last, label, bytes }
        })
    }
    /// How many flows it sends.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}

/// A frame as a segment, by what its headers say.
fn describe(bytes: &[u8], view: &View) -> Segment {
    let seq = view.tcp().map_or(0, |layers| tcp::seq(bytes, layers).into());
    let body = Body::Data { seq, slot: NONE, flowcell: 0 };
    let first =
        Packet { body, src: NONE, class: metadata::class(bytes, view), ..Packet::default() };
    Segment { first, len: view.layers().map_or(0, |layers| (layers.end - layers.payload) as u32) }
}

/// Cuts a frame into the packets that the node will make of its segment; whether their checksums
/// are partial.
fn cut_frame(
    frame: &mut Frame,
    view: &View,
    buffers: &mut Buffers,
    driver: &mut Driver,
) -> Result<bool, Drop> {
    let range = frame.start..frame.start + frame.length;
    let cut = view
        .layers()
        .filter(|l| frame.offload.partial && frame.offload.is_at(l) || frame.offload.gso_size > 0);
    match cut {
        Some(layers) => {
            let bytes = &buffers.bytes(frame.buffer)[range.clone()];
            let mut segmenter =
                Segmenter::new(bytes, *layers, frame.offload.gso_size.into(), Checksums::Partial);
            let mut header = Header::default();
            while let Some(payload) = segmenter.next(&mut header) {
                let payload = payload.start + range.start..payload.end + range.start;
                driver.cut.push(Bytes::new(header, frame.buffer, payload));
            }
        }
        None => {
            let bytes = &mut buffers.bytes_mut(frame.buffer)[range.clone()];
            frame.offload.fill(bytes).map_err(|_| Drop::BadOffload)?;
            let headers = view.layers().map_or(range.len(), |l| l.payload);
            driver.cut.push(Bytes::of_frame(buffers, frame.buffer, range, headers));
        }
    }
    buffers.retain(
        frame.buffer,
        driver.cut.iter().filter(|packet| packet.has_payload()).count() as u32,
    );
    Ok(cut.is_some())
}
