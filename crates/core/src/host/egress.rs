//! Egress: the stages between an endpoint and the link, in their order.
//!
//! A limit decides on a super-segment where the kernel's cgroup hook sees it: the endpoint has it
//! ready, nothing has cut it. A segment that may pass is cut, and each packet is stamped: its
//! importance, its rank, its label. Then the segment joins its flow's queue, and its packets the
//! NIC, at once or at the time of departure that the limit has given it.
//!
//! Three entrances are for what is one packet: [`Host::answer`] an acknowledgement, [`Host::force`]
//! what TLT forces out, [`Host::put`] what no connection stands behind. None of them asks for room
//! in the flow's queue.
//!
//! Invariant: a packet that a limit refuses has been stamped by nothing and counted by nothing but
//! the limit.

use super::flows::Ingress;
use super::nic::Offered;
use super::stream::Stream;
use super::{Call, FlowQueue, Host, HostWire, KernelSending, Label, Leave, Seen, importance, rank};
use crate::edge::flowcell::{Rule, counted};
use crate::edge::{Feedback, Ranker};
use crate::importance::Marker;
use crate::packet::{Body, Ecn, Importance, Packet, PacketId, flags};
use crate::switch::pause::PauseFrame;
use crate::units::Time;

/// A segment that an endpoint hands down.
pub struct Segment {
    /// Its first packet, without sizes.
    pub first: Packet,
    /// Payload, in bytes.
    pub len: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// The largest payload of a packet, in bytes.
    pub mss: u32,
    /// Headers and framing on the wire.
    pub header: u32,
    /// Headers of IP and of what it carries, which a segment without payload counts for.
    pub headers: u32,
}

impl Cut {
    /// Sizes a segment's next packet, of which `rest` bytes were left; returns how many are left
    /// now.
    #[inline(always)]
    fn next(self, packet: &mut Packet, rest: u32) -> u32 {
        let payload = rest.min(self.mss);
        packet.payload = payload as u16;
        packet.size = (payload + self.header) as u16;
        if rest == payload {
            packet.flags |= flags::LAST;
        }
        rest - payload
    }
}

/// A connection's state at the host that it sends from.
pub struct Egress {
    /// The segments that it has waiting in the NIC.
    pub queue: FlowQueue,
    stages: Option<Box<EgressStages>>,
}

/// The conditions on which a connection hands down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub is_limited: bool,
    /// Its host decides which of its connections sends next, and in whose queue that waits.
    pub is_scheduled: bool,
    /// It hands down packets one by one, and others beside them.
    pub is_by_packets: bool,
    /// Its host's virtual switch may hold it, and takes from it what the NIC has room for.
    pub is_switched: bool,
    /// Its subflows have queues of their own in several NICs.
    pub is_split: bool,
    /// It has a [`EgressStages::marker`].
    pub is_marked: bool,
    /// It has a [`EgressStages::place`]: its NIC asks it for each packet.
    pub is_pulled: bool,
}

/// The stages above the queue that a connection has.
#[derive(Default)]
pub struct EgressStages {
    /// The conditions on which it hands down.
    pub conditions: Conditions,
    /// Its place in the round of its NIC's queue pairs, where the NIC asks for each packet.
    pub place: Option<u32>,
    /// Which of its packets are important.
    pub marker: Option<Box<Marker>>,
    /// Its packets' ranks.
    pub ranker: Option<Box<Ranker>>,
    pub label: Option<Box<Label>>,
}

impl EgressStages {
    /// Ranks a packet, and labels it where it is the first of a segment that counts for so many
    /// bytes.
    #[inline]
    fn stamp<S: Stream, W: HostWire>(
        &mut self,
        now: Time,
        packet: &mut Packet,
        segment: Option<u32>,
        stream: &S,
        wire: &mut W,
    ) {
        if packet.payload > 0
            && let Some(ranker) = self.ranker.as_deref_mut()
        {
            rank::stamp(ranker, now, packet, stream);
        }
        if let Some((label, bytes)) = self.label.as_deref_mut().zip(segment) {
            label.stamp(now, packet, bytes, wire);
        }
    }
}

impl Egress {
    /// Of a connection with these stages, which may have so much waiting in the NIC; `None` where
    /// there is nothing to keep.
    pub fn new(bound: Option<u64>, mut stages: EgressStages) -> Option<Box<Egress>> {
        stages.conditions.is_marked = stages.marker.is_some();
        stages.conditions.is_pulled = stages.place.is_some();
        let is_empty = stages.conditions == Conditions::default()
            && stages.ranker.is_none()
            && stages.label.is_none();
        let stages = (!is_empty).then(|| Box::new(stages));
        let has_any = bound.is_some() || stages.is_some();
        has_any.then(|| Box::new(Egress { queue: FlowQueue::new(bound), stages }))
    }

    /// A queue in a NIC that several connections or a subflow share.
    pub fn plain(bound: Option<u64>) -> Egress {
        Egress { queue: FlowQueue::new(bound), stages: None }
    }

    /// Whether it has any stage above the queue: then it hands down by [`Host::send_staged`].
    #[inline]
    pub fn is_staged(&self) -> bool {
        self.stages.is_some()
    }

    /// The conditions on which it hands down.
    pub fn conditions(&self) -> Conditions {
        self.stages.as_ref().map_or(Conditions::default(), |stages| stages.conditions)
    }

    /// Chooses the NIC of the next segment, of `len` bytes, among so many with so many labels each:
    /// that of its flowcell's path.
    pub fn choose_nic(
        &mut self,
        now: Time,
        rule: &Rule,
        len: u32,
        cut: Cut,
        nics: usize,
        labels: usize,
    ) -> usize {
        let label = self.stages.as_mut().and_then(|stages| stages.label.as_deref_mut());
        label.map_or(0, |label| label.choose(now, rule, counted(len, cut.headers), nics, labels))
    }

    /// Its place in the round of its NIC's queue pairs, where the NIC asks for each packet.
    #[inline]
    pub fn place(&self) -> Option<u32> {
        self.stages.as_ref()?.place
    }

    /// The marker of its important packets.
    #[inline]
    pub fn marker(&mut self) -> Option<&mut Marker> {
        self.stages.as_mut()?.marker.as_deref_mut()
    }

    /// An acknowledgement has come for it.
    #[inline]
    pub fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Some(label) = self.stages.as_mut().and_then(|stages| stages.label.as_deref_mut()) {
            label.on_feedback(now, feedback);
        }
    }

    /// A central scheduler gives it a label for its further segments; `None`: its own again.
    pub fn pin(&mut self, label: Option<u16>) {
        if let Some(mine) = self.stages.as_mut().and_then(|stages| stages.label.as_deref_mut()) {
            mine.pin(label);
        }
    }

    pub fn timed_out(&mut self, now: Time) {
        let Some(stages) = self.stages.as_deref_mut() else { return };
        if let Some(marker) = stages.marker.as_deref_mut() {
            marker.on_timeout();
        }
        if let Some(label) = stages.label.as_deref_mut() {
            label.timed_out(now);
        }
    }

    /// Its connection is over: what its marker has counted.
    pub fn marked(&self) -> Option<&Marker> {
        self.stages.as_ref()?.marker.as_deref()
    }
}

impl<K: Copy + Eq> Host<K> {
    /// The limits' verdict on a segment that an endpoint has ready and has not sent. Where it is
    /// refused the endpoint keeps it.
    pub fn ask(&mut self, now: Time, seen: &Seen) -> Leave {
        match &mut self.limit {
            Some(limit) => limit.leave(now, seen),
            None => Leave::at_once(now),
        }
    }

    /// A segment of a connection that has no stage above its queue.
    #[inline]
    pub fn send<W: HostWire>(
        &mut self,
        now: Time,
        queue: Option<&mut FlowQueue>,
        segment: Segment,
        cut: Cut,
        wire: &mut W,
    ) -> Time {
        let Segment { first: mut packet, len } = segment;
        let mut rest = len;
        let departs = loop {
            rest = cut.next(&mut packet, rest);
            let id = wire.inject(packet);
            let offered = self.nic.offer(now, id, wire);
            if rest == 0 {
                // Even if packets before it were dropped, which is as if they had departed.
                break if let Offered::Departs(at) = offered { at } else { Time::MAX };
            }
            goes_on(&mut packet);
        };
        if let Some(queue) = queue {
            queue.join(len, packet.src, departs);
        }
        departs
    }

    /// A segment of a connection that has stages; of a host with limits, one that may leave.
    /// Returns when its last packet leaves, or [`Time::MAX`] where that is not known.
    #[allow(clippy::too_many_arguments)]
    pub fn send_staged<S: Stream, W: HostWire>(
        &mut self,
        now: Time,
        egress: &mut Egress,
        stream: &S,
        segment: Segment,
        leave: Option<&Leave>,
        cut: Cut,
        wire: &mut W,
    ) -> Time {
        let Egress { queue, stages } = egress;
        let Some(stages) = stages.as_deref_mut() else {
            return self.send(now, Some(queue), segment, cut, wire);
        };
        let Segment { first: mut packet, len } = segment;
        let mut held = leave.filter(|leave| leave.at > now).map(|_| Vec::new());
        let (mut rest, mut departs, mut is_first) = (len, Time::MAX, true);
        loop {
            rest = cut.next(&mut packet, rest);
            if packet.payload > 0
                && let Some(marker) = stages.marker.as_deref_mut()
            {
                let is_last = rest == 0 && !stream.would_send();
                let ends = stream.ends_message(packet.seq() + u64::from(packet.payload));
                importance::stamp(marker, &mut packet, is_last, ends);
            }
            let segment = is_first.then(|| counted(len, cut.headers));
            stages.stamp(now, &mut packet, segment, stream, wire);
            if std::mem::take(&mut is_first) {
                queue.join(len, packet.src, Time::MAX);
            }
            let id = wire.inject(packet);
            match &mut held {
                Some(held) => held.push(id),
                None if leave.is_some() => self.give(now, id, wire),
                None => match self.nic.offer(now, id, wire) {
                    Offered::Departs(at) => departs = at,
                    Offered::Waits => departs = Time::MAX,
                },
            }
            if rest == 0 {
                break;
            }
            goes_on(&mut packet);
        }
        if departs != Time::MAX {
            queue.settle(departs);
        }
        if let (Some(held), Some(leave)) = (held, leave) {
            self.hold(leave, held, wire);
        }
        departs
    }

    /// A segment of a kernel's connection: packets that are cut, and that limits and importance
    /// have passed. It counts for so many bytes.
    pub fn send_cut<W: HostWire>(
        &mut self,
        now: Time,
        egress: &mut Egress,
        stream: &mut KernelSending,
        segment: u32,
        packets: impl Iterator<Item = Packet>,
        wire: &mut W,
    ) {
        let Some(stages) = egress.stages.as_deref_mut() else { return };
        let mut first: Option<Packet> = None;
        for mut packet in packets {
            let mut described = if packet.payload > 0 { stream.describe(packet) } else { packet };
            let bytes = first.is_none().then_some(segment);
            stages.stamp(now, &mut described, bytes, stream, wire);
            let first = first.get_or_insert(described);
            (packet.rank, packet.entropy) = (described.rank, first.entropy);
            packet.set_flowcell(first.flowcell());
            self.put_cut(now, packet, wire);
        }
    }

    /// A packet of a kernel that has no stage.
    pub fn put_cut<W: HostWire>(&mut self, now: Time, packet: Packet, wire: &mut W) {
        self.nic.put(now, packet, wire);
    }

    /// An acknowledgement of a connection; `class`: of its traffic.
    #[inline]
    pub fn answer<W: HostWire>(
        &mut self,
        now: Time,
        packet: Packet,
        ingress: Option<&mut Ingress>,
        class: impl FnOnce() -> Option<u16>,
        wire: &mut W,
    ) {
        if self.limit.is_some() || ingress.is_some() {
            return self.answer_staged(now, packet, ingress, class, wire);
        }
        let id = wire.inject(packet);
        self.nic.offer(now, id, wire);
    }

    #[inline(never)]
    fn answer_staged<W: HostWire>(
        &mut self,
        now: Time,
        mut packet: Packet,
        ingress: Option<&mut Ingress>,
        class: impl FnOnce() -> Option<u16>,
        wire: &mut W,
    ) {
        let leave = self.ask_for_one(now, &packet, class);
        if leave.refused {
            return;
        }
        if let Some(label) = ingress.and_then(|ingress| ingress.label.as_deref_mut()) {
            let bytes = counted(0, u32::from(packet.size));
            label.stamp(now, &mut packet, bytes, wire);
        }
        self.send_one(now, packet, &leave, wire);
    }

    /// A packet that TLT forces out of what was sent before. Returns what the limits make of it:
    /// where they refuse it nothing was sent.
    #[allow(clippy::too_many_arguments)]
    pub fn force<S: Stream, W: HostWire>(
        &mut self,
        now: Time,
        egress: &mut Egress,
        stream: &S,
        segment: Segment,
        importance: Importance,
        class: impl FnOnce() -> Option<u16>,
        cut: Cut,
        wire: &mut W,
    ) -> Leave {
        let Segment { first: mut packet, len } = segment;
        (packet.payload, packet.size) = (len as u16, (len + cut.header) as u16);
        let leave = self.ask_for_one(now, &packet, class);
        if leave.refused {
            return leave;
        }
        if leave.mark && packet.ecn() == Ecn::Ect {
            packet.mark();
        }
        packet.class = packet.class.with_importance(importance);
        super::passes!(Importance);
        if let Some(stages) = egress.stages.as_deref_mut() {
            let segment = Some(counted(len, cut.headers));
            stages.stamp(now, &mut packet, segment, stream, wire);
        }
        self.send_one(now, packet, &leave, wire);
        leave
    }

    /// A packet that no connection here stands behind: an answer to a handshake or to a late copy.
    pub fn put<W: HostWire>(
        &mut self,
        now: Time,
        packet: Packet,
        class: impl FnOnce() -> Option<u16>,
        wire: &mut W,
    ) {
        let leave = self.ask_for_one(now, &packet, class);
        if leave.refused {
            return;
        }
        self.send_one(now, packet, &leave, wire);
    }

    /// Packets that have waited for their departure are due.
    pub fn on_release<W: HostWire>(&mut self, now: Time, order: u32, wire: &mut W) {
        let Some(limit) = &mut self.limit else { return };
        for id in limit.release(now, order) {
            self.give(now, id, wire);
        }
    }

    /// The NIC's link may be free.
    #[inline]
    pub fn on_ready<W: HostWire>(&mut self, now: Time, wire: &mut W) {
        self.nic.on_ready(now, wire);
    }

    /// A pause frame has reached the NIC.
    pub fn on_pause<W: HostWire>(&mut self, now: Time, frame: PauseFrame, wire: &mut W) {
        self.nic.on_pause(now, frame, wire);
    }

    /// The limits' verdict on one packet. Where nobody would keep it and they refuse it, it is
    /// gone, as in the kernel.
    fn ask_for_one(
        &mut self,
        now: Time,
        packet: &Packet,
        class: impl FnOnce() -> Option<u16>,
    ) -> Leave {
        let Some(limit) = &mut self.limit else { return Leave::at_once(now) };
        let payload = u32::from(packet.payload);
        let seen = Seen {
            class: class(),
            payload,
            packets: 1,
            options: limit.options(u32::from(packet.size), payload, 1),
            // The packet that it answers is another connection's, and one that is forced out was
            // sent before.
            in_flight: 0,
            srtt: Time::ZERO,
            ecn: packet.ecn() as u32,
        };
        limit.leave(now, &seen)
    }

    fn send_one<W: HostWire>(&mut self, now: Time, packet: Packet, leave: &Leave, wire: &mut W) {
        let id = wire.inject(packet);
        if leave.at > now {
            self.hold(leave, vec![id], wire);
        } else {
            self.give(now, id, wire);
        }
    }

    /// Keeps packets until the departure that the limit has given them.
    fn hold<W: HostWire>(&mut self, leave: &Leave, packets: Vec<PacketId>, wire: &mut W) {
        let Some(limit) = &mut self.limit else { return };
        let order = limit.hold(leave, packets);
        wire.call(leave.at, Call::Release(order));
    }

    /// Gives a packet to the NIC, of a segment whose departure its queue does not have yet.
    fn give<W: HostWire>(&mut self, now: Time, id: PacketId, wire: &mut W) {
        let packet = wire.packets()[id];
        if let Offered::Departs(at) = self.nic.offer(now, id, wire)
            && packet.has(flags::LAST)
        {
            wire.departs(&packet, at);
        }
    }
}

/// From a packet of a segment to the next.
#[inline(always)]
fn goes_on(packet: &mut Packet) {
    if let Body::Data { seq, .. } | Body::RdmaData { seq, .. } = &mut packet.body {
        *seq += u64::from(packet.payload);
    }
    // RFC 3168 §6.1.2: CWR on the first packet only, as a NIC that cuts segments sends it.
    packet.flags &= !flags::CWR;
}
