//! A kernel's TCP as an endpoint. It hands down frames when it likes, so the stages learn its
//! streams from what passes, and a flow that may not send is held behind it.
//!
//! Invariant: packets of a flow leave in the order in which they came; a flow that is not held and
//! has packets has one turn.

use super::{Host, HostWire, Ingress, Stream};
use crate::overlay::{Change, Target};
use crate::packet::overlay::Whom;
use crate::packet::{Body, FlowId, HostId, Packet, flags};
use crate::units::Time;
use std::collections::{BTreeMap, VecDeque};

/// More than a window of a kernel's: what lies so far back counts as acknowledged.
const WINDOW: u64 = 16 << 20;

/// The 32-bit sequence numbers of one direction of a connection as offsets that never wrap. An
/// offset is at most 2^31 from the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    last: u64,
}

impl Offsets {
    /// Beginning with this number.
    pub fn new(seq: u32) -> Offsets {
        // One cycle in, so that what comes before it has an offset, too.
        Offsets { last: (1 << 32) + u64::from(seq) }
    }

    /// The offset of a number, which is the nearest to the latest.
    pub fn of(&mut self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.last as u32) as i32;
        let offset = self.last.saturating_add_signed(ahead.into());
        self.last = self.last.max(offset);
        offset
    }

    /// Puts its offset in the place of a packet's number.
    fn give(&mut self, packet: &mut Packet) {
        if let Body::Data { seq, .. } = &mut packet.body {
            *seq = self.of(*seq as u32);
        }
    }
}

/// A stream that a kernel sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelSending {
    /// Since its first packet with payload.
    offsets: Option<Offsets>,
    /// Where what was sent ends.
    end: u64,
}

impl KernelSending {
    /// A packet with payload leaves: as an endpoint would describe it, with an offset. One that
    /// ends before what was sent is a retransmission.
    #[inline]
    pub fn describe(&mut self, packet: Packet) -> Packet {
        let mut described = packet;
        let offsets = self.offsets.get_or_insert_with(|| Offsets::new(packet.seq() as u32));
        offsets.give(&mut described);
        let end = described.seq() + u64::from(packet.payload);
        if end <= self.end {
            described.flags |= flags::RETRANSMISSION;
        }
        self.end = self.end.max(end);
        described
    }
}

impl Stream for KernelSending {
    fn written(&self) -> u64 {
        self.end
    }
    fn acked(&self) -> u64 {
        self.end.saturating_sub(WINDOW)
    }
    fn would_send(&self) -> bool {
        true
    }
}

/// A stream that a kernel receives, as far as its order is restored.
pub struct KernelReceiving {
    offsets: Offsets,
    /// Where what was handed up ends.
    pub next: u64,
    /// The stages' own.
    pub ingress: Option<Box<Ingress>>,
    /// When its last packet came.
    pub last: Time,
}

impl KernelReceiving {
    /// Of a connection whose next byte has this number.
    pub fn new(now: Time, seq: u32) -> KernelReceiving {
        let offsets = Offsets::new(seq);
        KernelReceiving { offsets, next: offsets.last, ingress: None, last: now }
    }

    /// Packets that are held for their order.
    pub fn kept(&self) -> usize {
        self.ingress.as_ref().map_or(0, |ingress| ingress.kept())
    }

    /// A packet with payload has come: gives it its offset.
    pub fn arrived(&mut self, now: Time, packet: &mut Packet) {
        self.last = now;
        self.offsets.give(packet);
    }
}

/// A flow with packets that wait.
struct Flow<T> {
    class: u16,
    packets: VecDeque<T>,
    /// Since when it is held, if it is.
    held_since: Option<Time>,
}

/// A flow of this host, by its identity at other hosts' virtual switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// Where it goes to.
    pub to: HostId,
    /// Its number.
    pub flow: FlowId,
}

/// Data that a kernel has sent and that may not leave yet: its flow is held, or it waits for its
/// turn at the NIC. Flows that may send take turns of a packet. A host keeps as much as its kernel
/// has under way, which congestion windows and socket buffers bound.
pub struct Backlog<T> {
    flows: BTreeMap<Turn, Flow<T>>,
    turns: VecDeque<Turn>,
    /// How long flows were held, summed over them.
    pub held: Time,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Backlog { flows: BTreeMap::new(), turns: VecDeque::new(), held: Time::ZERO }
    }
}

impl<T> Backlog<T> {
    /// Whether some flow may send.
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Flows that a target covers are held from now on, or go on.
    fn settle(
        &mut self,
        now: Time,
        peer: HostId,
        target: &Target,
        is_held: impl Fn(u16, FlowId) -> bool,
    ) {
        let of = |flow| Turn { to: peer, flow };
        let flows = match Whom::of(target) {
            Whom::Flow { flow, .. } => of(flow)..=of(flow),
            Whom::Host | Whom::Application(_) => of(0)..=of(FlowId::MAX),
        };
        for (turn, flow) in self.flows.range_mut(flows) {
            match (flow.held_since, is_held(flow.class, turn.flow)) {
                (None, true) => {
                    flow.held_since = Some(now);
                    self.turns.retain(|other| other != turn);
                }
                (Some(since), false) => {
                    flow.held_since = None;
                    self.held += now.saturating_sub(since);
                    self.turns.push_back(*turn);
                }
                _ => {}
            }
        }
    }
}

impl<K: Copy + Eq> Host<K> {
    /// A packet of a class waits for its flow's turn.
    pub fn wait<T>(&self, now: Time, turn: Turn, class: u16, packet: T, backlog: &mut Backlog<T>) {
        let Backlog { flows, turns, .. } = backlog;
        let flow = flows.entry(turn).or_insert_with(|| {
            let is_held = self.is_held(class, turn.flow, turn.to);
            if !is_held {
                turns.push_back(turn);
            }
            Flow { class, packets: VecDeque::new(), held_since: is_held.then_some(now) }
        });
        flow.packets.push_back(packet);
    }

    /// The next packet that may leave now, of the flow whose turn it is.
    pub fn next_leaving<T, W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        backlog: &mut Backlog<T>,
        wire: &mut W,
    ) -> Option<T> {
        loop {
            let turn = backlog.turns.pop_front()?;
            let Turn { to, flow: number } = turn;
            let Some(flow) = backlog.flows.get_mut(&turn) else { continue };
            let (class, wants) = (flow.class, flow.packets.len() as u32);
            if self.admit(now, class, number, wants, to, wire) == 0 {
                flow.held_since = Some(now);
                continue;
            }
            let packet = flow.packets.pop_front();
            match flow.packets.is_empty() {
                true => drop(backlog.flows.remove(&turn)),
                false => backlog.turns.push_back(turn),
            }
            self.handed_down(now, class, number, 1, to, wire);
            self.settle(now, backlog);
            return packet;
        }
    }

    /// Holds flows, or lets them go on, as other hosts' virtual switches have asked.
    pub fn settle<T>(&mut self, now: Time, backlog: &mut Backlog<T>) {
        while let Some(Change { peer, target, .. }) = self.next_change(now) {
            backlog.settle(now, peer, &target, |class, flow| self.is_held(class, flow, peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offsets_follow_numbers_across_their_wrap(
            first in any::<u32>(),
            steps in proptest::collection::vec(-60_000i64..1_000_000_000, 1..50),
        ) {
            let mut offsets = Offsets::new(first);
            let (mut at, mut most) = (0i64, 0i64);
            for step in steps {
                at = (most + step).max(-60_000);
                let got = offsets.of(first.wrapping_add(at as u32));
                prop_assert_eq!(got as i64 - (1i64 << 32) - i64::from(first), at);
                most = most.max(at);
            }
            prop_assert!(at <= most);
        }
    }
}
