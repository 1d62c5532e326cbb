//! Dynamic queues: a FIFO for each flow, as long as there are enough of them (BFC, Goyal et al.,
//! NSDI 2022 §4.1).
//!
//! A flow is a number, a hash of what the fabric distinguishes flows by (VFID). Its first packet
//! takes a FIFO that is nobody's, or else one that is empty, or else any. It keeps that FIFO while
//! it has packets there, and for a while after (`sticky`): a flow that pauses for a moment does not
//! change its place, nor lose it to another. FIFO 0 is for what has no payload: it is served first
//! and never paused. The others are served in turn, a packet each.
//!
//! Pauses stop flows, not FIFOs: a FIFO stands still while the flow of its first packet is paused.
//!
//! Invariant: a flow's packets are in one FIFO, in the order in which they came; what is served is
//! of no paused flow.

use super::{PausedSet, Waiting};
use crate::packet::{Packet, PacketId};
use crate::random::mix64;
use crate::registry::About;
use crate::switch::pause_frame::PauseTarget;
use crate::units::Time;
use std::collections::{BTreeMap, VecDeque};

pub(super) const ABOUT: About = About {
    summary: "a FIFO for each flow while there are enough, served in turn; a pause can stop one \
              flow",
    source: "BFC: Goyal et al.: Backpressure flow control, NSDI 2022 §4.1",
    ..About::PLAIN
};

crate::params! {
    /// The keys of dynamic queues: a FIFO for each flow (BFC, NSDI 2022 §4.1).
    pub struct DynamicQueuesParams {
        /// FIFOs of a port, the one for what has no payload among them. Off means as many as there
        /// are flows. Source: 32, BFC, NSDI 2022 §4; a NIC has one a flow.
        #[within(2..=65536)]
        pub queues: Option<u32> = Some(32),
        /// Numbers that flows can have: a flow's is its hash, and flows with one number are one.
        /// Source: 16384, BFC, NSDI 2022 §4.
        #[within(2..=65536)]
        pub vfids: u32 = 16_384,
        /// How long a flow without packets keeps its FIFO. Source: twice BFC's round trip of a hop,
        /// which is 2us.
        pub sticky: Time = Time::from_us(4),
    }
}

/// A queue's report on the FIFO that a packet is in, or was in before it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The packet's flow.
    pub vfid: u16,
    /// Bytes that wait in its FIFO.
    pub bytes: u64,
    /// FIFOs that have packets and are not paused, but for the first.
    pub active: u32,
}

/// A FIFO.
#[derive(Clone, Debug, Default)]
struct Fifo {
    waiting: VecDeque<(PacketId, u16, u16)>,
    bytes: u64,
    /// Until when it is kept for the flow that left it last.
    kept_until: Time,
}

/// A flow that has packets here, or had some a moment ago.
#[derive(Clone, Copy, Debug)]
struct Flow {
    fifo: u32,
    packets: u32,
    idle_from: Time,
}

/// The FIFOs of a port.
#[derive(Clone, Debug)]
pub struct DynamicQueues {
    fifos: Vec<Fifo>,
    /// How many there may be.
    most: usize,
    vfids: u32,
    sticky: Time,
    flows: BTreeMap<u16, Flow>,
    /// By flow: from when and until when it is paused.
    paused: BTreeMap<u16, (Time, Time)>,
    /// How long pauses that are over have lasted, summed.
    lasted: Time,
    /// When the driver will call for a pause that runs out then.
    asked: Vec<Time>,
    now: Time,
    /// The FIFO that was served last.
    turn: usize,
    packets: usize,
    /// How often no FIFO was empty.
    shared: u64,
}

impl DynamicQueues {
    pub(super) fn new(params: &DynamicQueuesParams) -> DynamicQueues {
        DynamicQueues {
            fifos: vec![Fifo::default(); 2],
            most: params.queues.map_or(usize::MAX, |queues| queues.max(2) as usize),
            vfids: params.vfids.clamp(2, 1 << 16),
            sticky: params.sticky,
            flows: BTreeMap::new(),
            paused: BTreeMap::new(),
            lasted: Time::ZERO,
            asked: Vec::new(),
            now: Time::ZERO,
            turn: 0,
            packets: 0,
            shared: 0,
        }
    }

    /// Time has come to `now`: pauses that have run out are over, and flows that have been idle for
    /// long are forgotten.
    pub fn settle(&mut self, now: Time) {
        if now == self.now {
            return;
        }
        self.now = now;
        self.asked.retain(|at| *at > now);
        if self.paused.values().any(|(_, until)| *until <= now) {
            let over = |(from, until): &(Time, Time)| until.saturating_sub(*from);
            self.lasted += self
                .paused
                .values()
                .filter(|span| span.1 <= now)
                .map(over)
                .fold(Time::ZERO, |a, b| a + b);
            self.paused.retain(|_, (_, until)| *until > now);
        }
        if self.flows.len() > 2 * self.packets + 64 {
            let sticky = self.sticky;
            self.flows
                .retain(|_, flow| flow.packets > 0 || flow.idle_from.saturating_add(sticky) > now);
        }
    }

    /// The number of a packet's flow.
    pub fn vfid(&self, packet: &Packet) -> u16 {
        self.vfid_of(packet.entropy)
    }

    /// The number of the flow of this entropy.
    pub fn vfid_of(&self, entropy: u32) -> u16 {
        ((u64::from(entropy) * u64::from(self.vfids)) >> 32) as u16
    }

    /// Stops a flow until then, or lets it go on at a time that has passed.
    pub fn pause(&mut self, now: Time, vfid: u16, until: Time) {
        self.settle(now);
        if until > now {
            self.paused.entry(vfid).and_modify(|span| span.1 = until).or_insert((now, until));
        } else if let Some((from, _)) = self.paused.remove(&vfid) {
            self.lasted += now.saturating_sub(from);
        }
    }

    /// Pauses these flows for good, and no other.
    pub fn pause_only(&mut self, targets: &[PauseTarget]) {
        let flow = |target: &PauseTarget| match target {
            PauseTarget::Flow(vfid) => Some((*vfid, (Time::ZERO, Time::MAX))),
            PauseTarget::Priority(_) => None,
        };
        self.paused = targets.iter().filter_map(flow).collect();
    }

    /// All packets that wait, each with the flow of its FIFO's first packet.
    pub fn behind_heads(&self) -> Vec<(PacketId, PauseTarget)> {
        let of = |fifo: &Fifo| {
            let head = fifo.waiting.front().map_or(0, |head| head.1);
            fifo.waiting
                .iter()
                .map(|waiting| (waiting.0, PauseTarget::Flow(head)))
                .collect::<Vec<_>>()
        };
        self.fifos.iter().flat_map(of).collect()
    }

    /// Whether a flow is paused.
    pub fn is_paused(&self, vfid: u16) -> bool {
        self.paused.contains_key(&vfid)
    }

    /// Until when a flow is paused, if it is; the time may have passed.
    pub fn paused_until(&self, vfid: u16) -> Option<Time> {
        self.paused.get(&vfid).map(|(_, until)| *until)
    }

    /// How long flows have been paused by `now`, summed.
    pub fn paused_time(&self, now: Time) -> Time {
        self.paused
            .values()
            .fold(self.lasted, |sum, (from, until)| sum + now.min(*until).saturating_sub(*from))
    }

    /// When the first of the pauses that hold something ends, or never.
    pub fn next_resume(&self) -> Time {
        let heads = self.fifos.iter().skip(1).filter_map(|fifo| fifo.waiting.front());
        heads
            .filter_map(|(_, vfid, _)| self.paused.get(vfid))
            .map(|(_, until)| *until)
            .min()
            .unwrap_or(Time::MAX)
    }

    /// Whether the driver is still to be asked for a call then; `is_pause`: since a pause runs out.
    pub fn asks(&mut self, at: Time, is_pause: bool) -> bool {
        let is_new = !self.asked.contains(&at);
        if is_new && is_pause {
            self.asked.push(at);
        }
        is_new
    }

    /// The report on a packet's FIFO; none for a packet without payload.
    pub fn load(&self, packet: &Packet) -> Option<Load> {
        if !packet.is_data() {
            return None;
        }
        let vfid = self.vfid(packet);
        let bytes = self.flows.get(&vfid).map_or(0, |flow| self.fifos[flow.fifo as usize].bytes);
        let is_active =
            |fifo: &&Fifo| fifo.waiting.front().is_some_and(|head| !self.is_paused(head.1));
        let active = self.fifos.iter().skip(1).filter(is_active).count() as u32;
        Some(Load { vfid, bytes, active })
    }

    /// Times that a flow had to share a FIFO.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// The FIFO of a flow's packet that has come.
    fn fifo_of(&mut self, vfid: u16) -> u32 {
        if let Some(flow) = self.flows.get(&vfid)
            && (flow.packets > 0 || flow.idle_from.saturating_add(self.sticky) > self.now)
        {
            return flow.fifo;
        }
        let mut all = self.fifos.iter().skip(1);
        let nobodys = all.position(|fifo| fifo.waiting.is_empty() && fifo.kept_until <= self.now);
        if nobodys.is_none() && self.fifos.len() < self.most {
            self.fifos.push(Fifo::default());
            return self.fifos.len() as u32 - 1;
        }
        let empty = || self.fifos.iter().skip(1).position(|fifo| fifo.waiting.is_empty());
        match nobodys.or_else(empty) {
            Some(at) => at as u32 + 1,
            None => {
                self.shared += 1;
                1 + (mix64(self.shared << 16 | u64::from(vfid)) % (self.fifos.len() as u64 - 1))
                    as u32
            }
        }
    }

    pub(super) fn push(&mut self, id: PacketId, packet: &Packet) {
        self.packets += 1;
        let (mut at, mut vfid) = (0, 0);
        if packet.is_data() {
            vfid = self.vfid(packet);
            at = self.fifo_of(vfid);
            let flow = self.flows.entry(vfid).or_insert(Flow {
                fifo: at,
                packets: 0,
                idle_from: Time::ZERO,
            });
            (flow.fifo, flow.packets) = (at, flow.packets + 1);
        }
        let fifo = &mut self.fifos[at as usize];
        fifo.waiting.push_back((id, vfid, packet.size));
        fifo.bytes += u64::from(packet.size);
    }

    /// Of the paused queues that other kinds have, none is here.
    pub(super) fn pop(&mut self, _: PausedSet) -> Option<Waiting> {
        if self.packets == 0 {
            return None;
        }
        let count = self.fifos.len();
        let turns = (1..count).map(|step| 1 + (self.turn + step - 1) % (count - 1));
        let may = |at: &usize| {
            self.fifos[*at].waiting.front().is_some_and(|head| !self.is_paused(head.1))
        };
        let at = if self.fifos[0].waiting.is_empty() { turns.into_iter().find(may)? } else { 0 };
        let (id, vfid, size) = self.fifos[at].waiting.pop_front()?;
        self.fifos[at].bytes -= u64::from(size);
        self.packets -= 1;
        if at > 0 {
            self.turn = at;
            if let Some(flow) = self.flows.get_mut(&vfid) {
                flow.packets -= 1;
                flow.idle_from = self.now;
            }
            self.fifos[at].kept_until = self.now.saturating_add(self.sticky);
        }
        Some(Waiting { id, size })
    }
    pub(super) fn waiting(&self) -> Vec<PacketId> {
        self.fifos.iter().flat_map(|fifo| fifo.waiting.iter().map(|waiting| waiting.0)).collect()
    }
    pub(super) fn can_evict(&self, _: u32, _: u64, _: u32) -> bool {
        false
    }
    pub(super) fn evict(&mut self, _: u32) -> Option<PacketId> {
        None
    }
    pub(super) fn is_fifo(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Body;

    const NONE: PausedSet = PausedSet(0);

    fn queues(count: u32) -> DynamicQueues {
        DynamicQueues::new(&DynamicQueuesParams {
            queues: Some(count),
            ..DynamicQueuesParams::default()
        })
    }
    /// A packet of a flow: of 16384 numbers each has 2^18 hashes.
    fn of(flow: u32) -> Packet {
        Packet { entropy: flow << 18, size: 1000, ..Packet::default() }
    }
    fn all(it: &mut DynamicQueues) -> Vec<PacketId> {
        std::iter::from_fn(|| it.pop(NONE)).map(|waiting| waiting.id).collect()
    }

    #[test]
    fn flows_are_served_in_turn_and_control_first() {
        let mut it = queues(32);
        for (id, flow) in [(0, 7), (1, 7), (2, 7), (3, 8), (4, 9), (5, 8)] {
            it.push(id, &of(flow));
        }
        let ack = Packet { body: Body::Ack { ack: 0, slot: 0, hops: 0 }, size: 40, ..of(7) };
        it.push(6, &ack);
        assert_eq!(it.load(&of(7)), Some(Load { vfid: 7, bytes: 3000, active: 3 }));
        assert_eq!(it.load(&ack), None);
        assert_eq!(all(&mut it), [6, 0, 3, 4, 1, 5, 2]);
    }

    #[test]
    fn a_paused_flow_stops_its_fifo_and_no_other() {
        let mut it = queues(32);
        for (id, flow) in [(0, 7), (1, 8), (2, 7), (3, 8)] {
            it.push(id, &of(flow));
        }
        it.pause(Time::from_us(1), 7, Time::from_us(9));
        assert_eq!(it.load(&of(8)).map(|load| load.active), Some(1));
        assert_eq!(all(&mut it), [1, 3]);
        assert_eq!(it.next_resume(), Time::from_us(9));
        it.settle(Time::from_us(9));
        assert_eq!(all(&mut it), [0, 2]);
        assert_eq!(it.paused_time(Time::from_us(20)), Time::from_us(8));
        it.pause(Time::from_us(20), 7, Time::from_us(30));
        it.pause(Time::from_us(23), 7, Time::from_us(23));
        assert!(!it.is_paused(7));
        assert_eq!(it.paused_time(Time::from_us(40)), Time::from_us(11));
    }

    /// Two FIFOs for payload: the third flow shares one; and a flow keeps its own for a while.
    #[test]
    fn fifos_are_shared_only_where_none_is_empty_and_flows_keep_theirs() {
        let mut it = queues(3);
        it.push(0, &of(1));
        it.push(1, &of(2));
        assert_eq!(it.shared(), 0);
        it.push(2, &of(3));
        assert_eq!(it.shared(), 1);
        assert_eq!(all(&mut it).len(), 3);
        let kept = it.flows[&1].fifo;
        it.settle(Time::from_us(3));
        it.push(3, &of(9));
        it.push(4, &of(1));
        assert_eq!(it.flows[&1].fifo, kept, "within the time that it keeps it");
        all(&mut it);
        it.settle(Time::from_us(30));
        it.push(5, &of(8));
        it.push(6, &of(1));
        assert_eq!(it.flows[&1].fifo, 2, "the first that is empty");
        let mut nic = DynamicQueues::new(&DynamicQueuesParams {
            queues: None,
            ..DynamicQueuesParams::default()
        });
        (0..200).for_each(|flow| nic.push(flow, &of(flow)));
        assert_eq!((nic.fifos.len(), nic.shared()), (201, 0));
    }
}
