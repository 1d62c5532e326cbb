//! The simulator as a host sees it: [`HostWire`] over a partition's links and events, [`Flows`]
//! over its connections.
//!
//! Invariant: a call that a host asks for is an event with the key of what it asks.

use super::*;
use crate::slab::Slab;
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::{self, Counters};
use millpond_core::host::{Call, Expecting, Flows, HostWire, Labels, Received, offload};
use millpond_core::packet::{Side, Telemetry};
use millpond_core::{Packets, Sack};

/// A segment's last packet leaves its host.
pub(crate) struct Departed {
    slot: u32,
    flow: FlowId,
    at: Time,
    host: u32,
    kind: Kind,
}

/// The work of one poll of a receive queue, or of its timer.
#[derive(Clone, Debug)]
pub struct PollRecord {
    pub at: Time,
    pub host: HostId,
    /// The packets that it took, in the order of their arrival; none if it was the timer.
    pub taken: Vec<Packet>,
    /// The segments that went up, each as one packet.
    pub up: Vec<Packet>,
    pub counters: Counters,
}

/// One host's link, timers and packets.
pub(crate) struct Link<'a> {
    pub(crate) fabric: &'a mut Fabric,
    pub(crate) shared: &'a Shared,
    pub(crate) departed: &'a mut Vec<Departed>,
    pub(crate) polls: &'a mut Vec<PollRecord>,
    /// The host, by number in the partition and in the network.
    pub(crate) host: u32,
    pub(crate) id: HostId,
    pub(crate) out: u32,
    /// The SACK that the next packet carries.
    pub(crate) sack: Option<&'a Sack>,
    /// Of a subflow: where the packets belong in the stream, and the offset in the subflow at which
    /// that is so.
    pub(crate) mapping: Option<(Mapping, u64)>,
    /// Of a queue pair's data: switches write on it.
    pub(crate) collects: bool,
    /// Of a queue pair's answer: what they have written on the data that it answers.
    pub(crate) written: Side,
}

/// A host's node and its [`Link`].
macro_rules! at_host {
    ($hosts:expr, $host:expr, $fabric:expr) => {{
        let host: u32 = $host;
        let Host { id, out, node, .. } = &mut $hosts.hosts[host as usize];
        let link = $crate::hosts::wire::Link {
            fabric: $fabric,
            shared: &$hosts.shared,
            departed: &mut $hosts.departed,
            polls: &mut $hosts.poll_records,
            host,
            id: *id,
            out: *out,
            sack: None,
            mapping: None,
            collects: false,
            written: millpond_core::packet::Side::NONE,
        };
        (node, link)
    }};
}
pub(crate) use at_host;

impl Link<'_> {
    #[cold]
    fn attach_sack(&mut self, packet: &mut Packet) {
        if let Some(sack) = self.sack.take() {
            self.fabric.packets.attach(packet, *sack);
        }
    }

    #[inline]
    fn key(&self, call: Call) -> Key {
        match call {
            Call::Ready => Due::PortReady(self.out),
            call => Due::Host(self.host, HostEvent::Call(call)),
        }
        .into()
    }
}

impl HostWire for Link<'_> {
    type Flow = offload::Flow;

    #[inline]
    fn packets(&mut self) -> &mut Packets {
        &mut self.fabric.packets
    }
    #[inline]
    fn inject(&mut self, mut packet: Packet) -> PacketId {
        if self.sack.is_some() {
            self.attach_sack(&mut packet);
        }
        if let Some((mapping, from)) = self.mapping {
            let further = mapping.further(packet.seq() - from);
            self.fabric.packets.attach(&mut packet, further);
        }
        if self.collects {
            self.fabric.packets.attach(&mut packet, Telemetry::EMPTY);
        }
        self.fabric.packets.give(&mut packet, std::mem::take(&mut self.written));
        self.fabric.audit.injected.add(packet.size);
        self.fabric.packets.insert(packet)
    }
    #[inline]
    fn transmit(&mut self, id: PacketId, departs: Time) {
        self.fabric.transmit(self.out, id, departs);
    }
    #[inline]
    fn departs(&mut self, last: &Packet, at: Time) {
        let (slot, flow, host, kind) = (last.slot(), last.flow, self.host, last.kind());
        self.departed.push(Departed { slot, flow, at, host, kind });
    }
    #[inline]
    fn call(&mut self, at: Time, call: Call) {
        self.fabric.events.push(at, self.key(call));
    }
    #[inline]
    fn recall(&mut self, at: Time, call: Call) {
        self.fabric.events.cancel(at, self.key(call));
    }
    fn labels(&mut self, now: Time, src: HostId, dst: HostId) -> Labels<'_> {
        let plan = self
            .shared
            .labels
            .as_ref()
            .expect("a connection has labels only where there is a plan of them");
        Labels {
            rule: &plan.rule,
            is_followed: plan.is_followed,
            list: plan.between(now, src, dst),
        }
    }
    #[inline]
    fn arrived(&mut self, id: PacketId) {
        self.fabric.arrived(id);
    }
    fn headers(&mut self, id: PacketId) -> Option<gro::Arrival<offload::Flow>> {
        Some(offload::headers(&self.fabric.packets, id))
    }
    fn merge(&mut self, released: gro::Released<'_, offload::Flow, PacketId>) -> Received {
        offload::merge(released, &mut self.fabric.packets)
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        self.fabric.discard(id, reason);
    }
    fn discard_received(&mut self, received: Received, reason: DropReason) {
        self.fabric.discard_received(received, reason);
    }
    fn records_polls(&self) -> bool {
        self.shared.plan.capture.polls
    }
    fn polled(&mut self, now: Time, taken: Vec<Packet>, up: &[Received], counters: &Counters) {
        let up = up.iter().map(|received| self.fabric.packets[received.id]).collect();
        self.polls.push(PollRecord { at: now, host: self.id, taken, up, counters: *counters });
    }
}

/// The connections that have an end at a host.
struct Ends<'a> {
    host: u32,
    senders: &'a Slab<Sending>,
    receivers: &'a mut Slab<Receiving>,
}

impl Flows for Ends<'_> {
    fn class(&self, packet: &Packet) -> Option<u16> {
        // Data carries the slot that it is for, but for that of the first round trip.
        match self.receivers.find(packet.peer, packet.flow) {
            Some(it) if packet.payload > 0 => Some(it.opening.class),
            _ => class_of(self.host, self.senders, self.receivers, packet.flow),
        }
    }
    #[inline]
    fn expecting(&mut self, packet: &Packet) -> Option<Expecting<'_>> {
        let slot = slot_of(self.receivers, packet);
        let receiving = self.receivers.get(slot, packet.flow)?;
        Some(Expecting { next: receiving.delivered, ingress: &mut receiving.ingress })
    }
    fn ends_message(&mut self, packet: &Packet) -> bool {
        let slot = slot_of(self.receivers, packet);
        let end = packet.seq() + u64::from(packet.payload);
        self.receivers.get(slot, packet.flow).is_some_and(|it| end >= it.ends)
    }
    fn is_ahead(&mut self, packet: &Packet, packets: &Packets) -> bool {
        let slot = slot_of(self.receivers, packet);
        let mapping = packets.side(packet).copied();
        self.receivers
            .get(slot, packet.flow)
            .is_some_and(|it| packet.seq() > it.receiver.expected(mapping))
    }
    fn receiving(&mut self, flow: FlowId) -> Option<Expecting<'_>> {
        let end = self.receivers.at(self.receivers.slot_of(flow)?);
        Some(Expecting { next: end.delivered, ingress: &mut end.ingress })
    }
}

/// The slot of the connection that a data packet is for, or [`NONE`].
#[inline]
pub(super) fn slot_of(receivers: &Slab<Receiving>, packet: &Packet) -> u32 {
    if packet.peer != NONE { packet.peer } else { receivers.slot_of(packet.flow).unwrap_or(NONE) }
}

/// The class of a connection that has an end at this host. An end at another host of the partition
/// does not count: which hosts share a partition changes no result.
pub(super) fn class_of(
    host: u32,
    senders: &Slab<Sending>,
    receivers: &Slab<Receiving>,
    flow: FlowId,
) -> Option<u16> {
    let receiving =
        receivers.slot_of(flow).map(|slot| receivers.look(slot)).filter(|it| it.host == host);
    let sending =
        || senders.slot_of(flow).map(|slot| senders.look(slot)).filter(|it| it.host == host);
    receiving.map(|it| it.opening.class).or_else(|| sending().map(|it| it.opening.class))
}

impl Hosts {
    /// A general NIC's link is free.
    pub fn on_nic_ready(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let (node, mut link) = at_host!(self, host, fabric);
        node.on_ready(now, &mut link);
        self.note_departures(fabric);
        if !self.hosts[host as usize].turns.is_empty() {
            self.take_turns(now, host, fabric);
        }
    }

    /// A pause frame has reached a NIC.
    pub fn on_pause(&mut self, now: Time, host: u32, frame: PauseFrame, fabric: &mut Fabric) {
        let (node, mut link) = at_host!(self, host, fabric);
        node.on_pause(now, frame, &mut link);
        self.note_departures(fabric);
        if !self.hosts[host as usize].round.is_empty() {
            self.pull(now, host, fabric);
        }
    }

    /// An event of a host is due.
    pub fn on_event(&mut self, now: Time, host: u32, event: HostEvent, fabric: &mut Fabric) {
        match event {
            HostEvent::Call(Call::Room(flow)) => self.on_nic_room(now, flow, fabric),
            HostEvent::Call(Call::Ready) => self.on_nic_ready(now, host, fabric),
            HostEvent::Call(call) => self.on_call(now, host, call, fabric),
            HostEvent::RoomForMessages => self.on_room_for_messages(now, host, fabric),
            HostEvent::Pull => self.on_pull(now, host, fabric),
            HostEvent::Credit => self.on_credit(now, host, fabric),
            HostEvent::SenderTimer(flow) => self.on_sender_timer(now, flow, fabric),
            HostEvent::ReceiverTimer(flow) => self.on_receiver_timer(now, flow, fabric),
            HostEvent::Probe(flow) => self.on_probe(now, flow, fabric),
            HostEvent::Answer(flow) => self.on_answer(now, flow, fabric),
            HostEvent::Rank(number) => self.on_rank(now, number, fabric),
        }
    }

    /// A stage of a host's node asked to be called now.
    #[inline(never)]
    fn on_call(&mut self, now: Time, host: u32, call: Call, fabric: &mut Fabric) {
        let mut ends = Ends { host, senders: &self.senders, receivers: &mut self.receivers };
        let (node, mut link) = at_host!(self, host, fabric);
        let has_news = node.on_call(now, call, &mut ends, &mut link);
        self.note_departures(fabric);
        self.hand_up(now, host, fabric);
        if has_news {
            self.obey(now, host, fabric);
        }
    }

    /// A packet has arrived at a host that has stages for it.
    #[inline(never)]
    pub(super) fn receive(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        let host = self.reordering_nic(host);
        let (node, mut link) = at_host!(self, host, fabric);
        node.on_arrival(now, id, &mut link);
        self.hand_up(now, host, fabric);
    }

    /// Gives the endpoints what a host lets through, one after the other.
    fn hand_up(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        loop {
            let mut ends = Ends { host, senders: &self.senders, receivers: &mut self.receivers };
            let (node, mut link) = at_host!(self, host, fabric);
            let Some(id) = node.hand_up(now, &mut ends, &mut link) else { return };
            let mut packet = fabric.packets.take(id);
            self.take_up(now, host, &mut packet, fabric);
        }
    }

    /// Notifies flows that their segments leave, and wakes those that wait for it.
    #[inline]
    pub(crate) fn note_departures(&mut self, fabric: &mut Fabric) {
        if !self.departed.is_empty() {
            self.note_all_departures(fabric);
        }
    }

    fn note_all_departures(&mut self, fabric: &mut Fabric) {
        let mut departed = std::mem::take(&mut self.departed);
        for Departed { slot, flow, at, host, kind } in departed.drain(..) {
            if kind == Kind::HomaData {
                self.message_leaves(host, at, fabric);
                continue;
            }
            if kind == Kind::UetData
                && let Some(senders) = self.nic_senders.get_mut(host as usize)
            {
                senders.leaves(at);
            }
            self.leaves(slot, flow, host, at, fabric);
        }
        self.departed = departed;
    }

    /// Packets that have arrived and are not handed up yet.
    pub fn kept(&self) -> usize {
        let buffers = self.receivers.iter().filter_map(|(_, it)| it.ingress.as_ref());
        self.hosts.iter().map(|host| host.node.kept()).sum::<usize>()
            + buffers.map(|it| it.kept()).sum::<usize>()
    }

    /// The work of the cores of the hosts here by `now`; nothing if receiving costs nothing.
    pub fn cores(&self, now: Time) -> impl Iterator<Item = (HostId, CoreCounts)> + '_ {
        let cores = |host: &Host| {
            host.node.receive().map(|receive| (host.id, receive.cores(now).collect::<Vec<_>>()))
        };
        let hosts: Vec<_> = self.hosts.iter().filter_map(cores).collect();
        hosts.into_iter().flat_map(|(id, cores)| cores.into_iter().map(move |core| (id, core)))
    }

    /// The counts of receive offload; `None` if there is none.
    pub fn offload_counters(&self) -> Option<Counters> {
        let mut all = None;
        for counters in
            self.hosts.iter().filter_map(|host| host.node.receive()).flat_map(|it| it.offloads())
        {
            all.get_or_insert_with(Counters::default).merge(counters);
        }
        all
    }

    /// Adds what the limits here have seen to `counts`, by limit and direction.
    pub fn count_limits(&self, counts: &mut BTreeMap<(u16, bool), LimitCounts>) {
        for limiter in self.hosts.iter().filter_map(|host| host.node.limiter()) {
            for (limit, ingress, its) in limiter.counts() {
                counts.entry((limit, ingress)).or_default().merge(&its);
            }
        }
    }
}
