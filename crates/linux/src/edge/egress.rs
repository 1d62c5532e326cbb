//! Egress: a frame for a peer is cut into packets, which the host node stamps, and handed to what
//! carries them.
//!
//! One decision a super-segment, before it is cut, so all its packets have the same stamp (Presto,
//! section 3.1). Packets other than TCP's take the path of their flow's hash: nobody
//! restores order for them.
//!
//! A flow that was forgotten begins anew with a random flowcell number, newer or older than what
//! its receiver may remember: 16 bits can promise neither. Receive offload by the safe rules takes
//! up either.
//!
//! Invariant: packets of one flowcell go to one path, in order.

use super::Edge;
use super::link::Link;
use crate::dataplane::buffers::{Buffers, Frame};
use crate::dataplane::counters::Drop;
use crate::dataplane::flow::FlowKey;
use crate::dataplane::frame::parse::tcp;
use crate::dataplane::frame::{Offload, View};
use crate::dataplane::held::{Held, cut};
use crate::dataplane::metadata;
use crate::encapsulation::Encapsulation;
use millpond_core::edge::Ranker;
use millpond_core::edge::flowcell::counted;
use millpond_core::host::{Egress, EgressStages, KernelSending, Label, Turn};
use millpond_core::packet::{Body, NONE, flags};
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

#[derive(Clone, Copy)]
pub struct Departure<'a> {
    pub frame: &'a Frame,
    pub view: &'a View,
    /// Its first packet.
    pub first: Packet,
}

/// Carries packets away: over paths to a peer, or on a link.
pub trait Carrier {
    /// Takes the packets of a segment, which have one stamp, with their frames. Ends those that it
    /// cannot carry.
    ///
    /// # Errors
    /// The reason why a packet was dropped.
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        packets: &[Packet],
        frames: &mut Vec<Held>,
    ) -> Result<(), Drop>;

    /// Whether it takes data of a virtual switch now.
    fn has_room(&self, _now: Time) -> bool {
        true
    }
}

impl Encapsulation {
    /// As a packet was stamped.
    pub fn of(packet: &Packet, frame: &Held) -> Encapsulation {
        Encapsulation {
            label: packet.entropy as u16,
            flowcell: packet.flowcell(),
            partial: frame.offload.partial,
        }
    }
}

/// A flow that this machine sends.
pub(super) struct Sending {
    egress: Box<Egress>,
    stream: KernelSending,
    /// When its last segment was sent, and over which path.
    last: Time,
    label: u16,
    bytes: u64,
}

/// The known state of a flow that this machine sends.
pub struct Sent {
    pub key: FlowKey,
    /// When its last segment was sent.
    pub last: Time,
    pub label: u16,
    pub bytes: u64,
}

impl Edge {
    /// Takes a frame for one peer. Packets that wait keep a reference to the frame's buffer. A
    /// partial checksum that this completes is complete for the next peer, too, and the
    /// frame's offload has it.
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
        self.driver.labels.get(peer).filter(|list| !list.is_empty()).ok_or(Drop::Nowhere)?;
        let is_whole = |layers| !frame.offload.partial || frame.offload.is_at(layers);
        if !view.layers().is_some_and(is_whole) && frame.offload.gso_size == 0 {
            let bytes = &mut buffers.bytes_mut(frame.buffer)[frame.start..][..frame.length];
            frame.offload.fill(bytes).map_err(|_| Drop::BadOffload)?;
        }
        let bytes = frame.bytes(buffers);
        let seq = view.tcp().map_or(0, |layers| tcp::seq(bytes, layers).into());
        let body = Body::Data { seq, slot: NONE, flowcell: 0 };
        let (dst, class) = (peer as HostId, metadata::class(bytes, view));
        let first = Packet { body, stamp: now, src: NONE, dst, class, ..Packet::default() };
        let key = view.layers().map(|layers| FlowKey::of(bytes, layers, view.vlan, peer as u16));
        let flow = key.map_or(0, |key| key.hash(&self.driver.keys));
        let first = Packet { flow, ..first };
        self.leave(now, buffers, Departure { frame, view, first }, carrier)
    }

    /// Takes a frame of the kernel through all stages.
    ///
    /// # Errors
    /// The reason why the carrier dropped a packet.
    pub fn leave(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        departure: Departure<'_>,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        self.pass(now, buffers, departure, true, carrier)
    }

    /// The frames that the shim has due in the kernel's name: forced packets and echoes. Each is to
    /// be sent by [`Edge::send_own`].
    pub fn due(&mut self, now: Time) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        if let Some(shim) = &mut self.driver.shim {
            shim.due(now, &mut |frame: &[u8]| frames.push(frame.to_vec()));
        }
        frames
    }

    /// Sends a frame of the shim's, which has its mark.
    pub fn send_own(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        bytes: &[u8],
        view: &View,
        first: Packet,
        carrier: &mut dyn Carrier,
    ) {
        // Without a buffer it is lost, as a packet can be.
        let Some(frame) = Frame::copy(bytes, Offload::default(), buffers) else { return };
        let departure = Departure { frame: &frame, view, first };
        let _ = self.pass(now, buffers, departure, false, carrier);
        buffers.release(frame.buffer);
    }

    /// Cuts a frame once, and sends its packets through the stages: importance, rank, label, what
    /// other hosts hold, and the carrier.
    fn pass(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        Departure { frame, view, mut first }: Departure<'_>,
        is_kernels: bool,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        // A panic may have left packets of another frame.
        self.driver.leaving.clear();
        let mut frames = std::mem::take(&mut self.cut);
        frames.clear();
        cut(frame, view, buffers, &mut frames);
        if let Some(shim) = self.driver.shim.as_mut().filter(|_| is_kernels) {
            for held in &mut frames {
                shim.outgoing(now, &mut held.bytes, &held.view, buffers);
            }
        }
        if let Some(list) = self.driver.labels.get(first.dst as usize).filter(|it| !it.is_empty()) {
            first.entropy = list[first.flow as usize % list.len()].into();
        }
        let bytes = frame.bytes(buffers);
        let key = view.tcp().map(|l| FlowKey::of(bytes, l, view.vlan, first.dst as u16));
        let bits = view.tcp().map_or(0, |layers| tcp::flags(bytes, layers));
        let sending = key.and_then(|key| self.sending(first.flow, key));
        let (framing, is_marked) = (self.framing, self.driver.shim.is_some());
        let packets = frames.iter().scan(first, move |next, held| {
            if is_marked {
                next.class = held.class();
            }
            Some(describe(next, held, framing))
        });
        let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
        match sending {
            Some(at) => {
                let Sending { egress, stream, last, bytes, label } = &mut self.flows[at];
                let len = view.layers().map_or(0, |layers| (layers.end - layers.payload) as u32);
                (*last, *bytes) = (now, *bytes + u64::from(len));
                let headers = view.layers().map_or(0, |l| (l.payload - l.network) as u32);
                let counts = counted(len, headers);
                self.host.send_cut(now, egress, stream, counts, packets, &mut link);
                *label = link.driver.leaving.first().map_or(0, |first| first.entropy as u16);
                if bits & (tcp::FIN | tcp::RST) != 0 {
                    self.flows.remove(at);
                }
            }
            None => packets.for_each(|packet| self.host.put_cut(now, packet, &mut link)),
        }
        let result = self.carry(now, buffers, &mut frames, carrier);
        self.cut = frames;
        result
    }

    /// Hands over what the node has let out; data that other hosts may hold takes its turn.
    fn carry(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frames: &mut Vec<Held>,
        carrier: &mut dyn Carrier,
    ) -> Result<(), Drop> {
        let mut packets = std::mem::take(&mut self.driver.leaving);
        debug_assert_eq!(packets.len(), frames.len(), "a packet a frame");
        if let Some(backlog) = &mut self.backlog {
            let all: Vec<(Packet, Held)> = packets.drain(..).zip(frames.drain(..)).collect();
            for (packet, held) in all {
                let class = self.kernel.class_of(&held).filter(|_| packet.payload > 0);
                let turn = Turn { to: packet.dst, flow: packet.flow };
                match class {
                    Some(class) => self.host.wait(now, turn, class, (packet, held), backlog),
                    None => {
                        packets.push(packet);
                        frames.push(held);
                    }
                }
            }
        }
        let result = match packets.is_empty() {
            true => Ok(()),
            false => carrier.carry(now, buffers, &packets, frames),
        };
        self.driver.leaving = packets;
        self.take_turns(now, buffers, carrier);
        result
    }

    /// Lets data leave that has waited for its turn, while the carrier has room.
    pub fn take_turns(&mut self, now: Time, buffers: &mut Buffers, carrier: &mut dyn Carrier) {
        while let Some(backlog) = &mut self.backlog
            && carrier.has_room(now)
        {
            let mut link = Link { driver: &mut self.driver, buffers, counters: &mut self.counters };
            let Some((packet, held)) = self.host.next_leaving(now, backlog, &mut link) else {
                return;
            };
            let _ = carrier.carry(now, buffers, &[packet], &mut vec![held]);
        }
    }

    /// The number of a flow, which may be new; `None`: it has no stages, or there is no room.
    fn sending(&mut self, hash: u32, key: FlowKey) -> Option<u32> {
        if let Some(at) = self.flows.find(hash, key) {
            return Some(at);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        self.key = mix64(self.key ^ u64::from(hash));
        let drawn = self.key;
        let label = |rule| Box::new(Label::new(rule, drawn, hash, drawn as u16));
        let label = self.driver.rule.as_ref().map(label);
        let ranker = Ranker::new(&self.rank).map(Box::new);
        let egress = Egress::new(None, EgressStages { label, ranker, ..EgressStages::default() })?;
        let stream = KernelSending::default();
        let sending = Sending { egress, stream, last: Time::ZERO, label: 0, bytes: 0 };
        Some(self.flows.insert(hash, key, sending))
    }

    /// Forgets idle flows, of some hundred that it looks at.
    pub(super) fn forget_idle(&mut self, now: Time) {
        let most = if self.flows.len() > FLOWS_MAX / 2 { IDLE_WHEN_CROWDED } else { IDLE };
        let idle = |flow: &Sending| if flow.bytes > 0 { most } else { most.min(IDLE_WITHOUT_DATA) };
        self.flows.evict(EVICTION_STEPS, |flow| now.saturating_sub(flow.last) > idle(flow));
    }
    pub fn sent(&self) -> impl Iterator<Item = Sent> {
        self.flows.numbers().map(|at| {
            let Sending { last, label, bytes, .. } = self.flows[at];
            Sent { key: self.flows.flow(at), last, label, bytes }
        })
    }
    pub fn flows(&self) -> usize {
        self.flows.len()
    }
}

/// The packet of the next part of a frame: as the one before it, with the part's own sizes, place
/// and class.
fn describe(next: &mut Packet, held: &Held, framing: u16) -> Packet {
    let (view, length) = (&held.view, held.bytes.length());
    let size = length - view.ethernet + usize::from(framing);
    let mut packet = *next;
    packet.payload = view.layers().map_or(0, |layers| (layers.end - layers.payload) as u16);
    packet.size = u16::try_from(size).unwrap_or(u16::MAX);
    if let Body::Data { seq, .. } = &mut next.body {
        *seq += u64::from(packet.payload);
    }
    next.flags &= !flags::CWR;
    packet
}
