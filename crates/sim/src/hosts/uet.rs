//! Ultra Ethernet: packets in any order, their answers, and the credit of a receiving host.
//!
//! A connection has one packet at a time below it, in its NIC's queue or in transmission: so those
//! of a host take turns. A packet without payload goes to the NIC at once, with the highest
//! priority.
//!
//! Invariant: after every event of a sender it has been pumped; while a host has a connection to
//! give credit to, it will be called.

use super::*;
use crate::endpoint::uet::{Came, PacketIn, Probe, Pull};
use millpond_core::counters::Named;
use millpond_core::host::{Cut, Segment};
use millpond_core::packet::Selective;
use millpond_core::packet::uet::{CONTROL_PRIORITY, HEADERS};

/// The counts of the connections of a partition's hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UetCounts {
    acks: u64,
    nacks: u64,
    pulls: u64,
    probes: u64,
}

impl UetCounts {
    pub(super) fn tell(&self, named: &mut Named) {
        named.add("acks", self.acks);
        named.add("nacks", self.nacks);
        named.add("pulls", self.pulls);
        named.add("probes", self.probes);
    }
}

/// The state of credit of so many hosts, if receivers give any in this run.
pub(super) fn of_hosts<T: Default + Clone>(shared: &Shared, count: usize) -> Vec<T> {
    let gives = shared.transport.uet.iter().any(|cfg| cfg.control.has_credit());
    if gives { vec![T::default(); count] } else { Vec::new() }
}

/// The senders of a NIC that have their packet in it.
#[derive(Clone, Debug, Default)]
pub(super) struct NicSenders {
    /// Packets that wait, and do not know yet when they leave.
    waiting: u32,
    /// When the others leave, in ascending order.
    departures: VecDeque<Time>,
}

impl NicSenders {
    /// A packet has joined that leaves at `departs`; [`Time::MAX`]: that is not known.
    fn joins(&mut self, departs: Time) {
        match departs {
            Time::MAX => self.waiting += 1,
            known => self.departures.push_back(known),
        }
    }

    /// A packet that waited leaves at `at`.
    pub(super) fn leaves(&mut self, at: Time) {
        self.waiting = self.waiting.saturating_sub(1);
        self.departures.push_back(at);
    }

    /// How many have one that has not left by `now`.
    fn count(&mut self, now: Time) -> u32 {
        while self.departures.front().is_some_and(|at| *at <= now) {
            self.departures.pop_front();
        }
        self.waiting + self.departures.len() as u32
    }
}

/// The value that switches hash of a packet: its connection and its entropy value.
fn entropy(hash: u32, value: u16) -> u32 {
    mix64(u64::from(hash) << 16 | u64::from(value)) as u32
}

/// The class of what has no payload.
fn control() -> TrafficClass {
    TrafficClass::default().with_priority(CONTROL_PRIORITY)
}

impl Hosts {
    /// As `pump`, of a connection whose packets come in any order.
    pub(super) fn pump_packets(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        while self.send_packet(now, slot, fabric) {}
        let cfg = &self.shared.transport.uet;
        let sending = self.senders.at(slot);
        let nic = self.nic_senders.get_mut(sending.host as usize);
        let senders = 1 + nic.map_or(0, |it| it.count(now));
        let probe = sending.sender.packets().and_then(|it| it.takes_probe(now, senders, cfg));
        if let Some(Probe { psn, target, value, requests }) = probe {
            self.uet_counts.probes += 1;
            let body = Body::UetProbe { psn, target, slot, value };
            let mut packet =
                Way::of_sender(sending).packet(body, now, self.shared.header, control());
            packet.entropy = entropy(sending.hash, value);
            packet.flags |= if requests { flags::ASKS } else { 0 };
            let (node, mut link) = at_host!(self, sending.host, fabric);
            node.answer(now, packet, None, || None, &mut link);
            self.note_departures(fabric);
        }
        self.keep_timer(slot, fabric);
    }

    /// Hands down a packet, if window, credit and the NIC allow one; whether they did.
    fn send_packet(&mut self, now: Time, slot: u32, fabric: &mut Fabric) -> bool {
        let shared = &*self.shared;
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return false };
        if egress.queue.room(now, shared.mss).is_none() {
            sending::wake_when_room(sending, shared, fabric);
            return false;
        }
        let Some(packets) = sending.sender.packets() else { return false };
        let nic = self.nic_senders.get_mut(sending.host as usize);
        let senders = 1 + nic.map_or(0, |it| it.count(now));
        let Some(piece) = packets.next(now, senders, &shared.transport.uet) else { return false };
        let own = packets.config(&shared.transport.uet);
        let cut = Cut { mss: own.mss, header: own.header, headers: HEADERS };
        sending.first_sent.get_or_insert(now);
        let body = Body::UetData { psn: piece.psn, target: piece.target, slot, value: piece.value };
        let class = TrafficClass::new(sending.priority, Importance::Control, Ecn::Ect);
        let mut first = Way::of_sender(sending).packet(body, now, 0, class);
        first.entropy = entropy(sending.hash, piece.value);
        first.flags = (if piece.is_again { flags::RETRANSMISSION } else { 0 })
            | (if piece.asks { flags::ASKS } else { 0 });
        let segment = Segment { first, len: piece.len.into() };
        let (node, mut link) = at_host!(self, sending.host, fabric);
        let queue = sending.egress.as_deref_mut().map(|egress| &mut egress.queue);
        let departs = node.send(now, queue, segment, cut, &mut link);
        if let Some(nic) = self.nic_senders.get_mut(sending.host as usize) {
            nic.joins(departs);
        }
        self.note_departures(fabric);
        true
    }

    /// A packet, what a switch has left of one, or a probe has arrived.
    #[inline(never)]
    pub(super) fn on_packet(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = wire::slot_of(&self.receivers, packet);
        let shared = self.shared.clone();
        let cfg = &shared.transport.uet;
        let Some(it) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        let Some(packets) = it.receiver.packets() else { return };
        let credit = packets.config(cfg).control.has_credit();
        let (came, target) = match packet.body {
            Body::UetData { psn, target, value, .. } => {
                let came = PacketIn {
                    psn,
                    len: packet.payload,
                    size: packet.size,
                    value,
                    is_marked: packet.ecn() == Ecn::Ce,
                    asks: packet.has(flags::ASKS),
                    is_trimmed: packet.has(flags::TRIMMED),
                };
                let is_ahead = packets.is_ahead(psn) && !came.is_trimmed;
                let answer = packets.on_data(&came, cfg);
                it.out_of_order += u32::from(is_ahead);
                receiving::note_way(now, it, packet);
                (answer, target)
            }
            Body::UetProbe { target, value, .. } => (packets.probed(value), target),
            _ => return,
        };
        let delivered = it.receiver.packets().map_or(0, |packets| packets.delivered());
        let news = delivered - it.delivered;
        if now >= shared.plan.warm_up {
            it.measured += news;
        }
        it.delivered = delivered;
        let is_complete = news > 0 && it.delivered >= it.ends;
        let requests = packet.kind() == Kind::UetProbe && packet.has(flags::ASKS);
        let insists = requests || came == Came::Nack;
        self.answer_packet(now, slot, packet, came, fabric);
        if credit
            && let Some(at) = self.pacers[host as usize].ask(now, packet.flow, target, insists)
        {
            fabric.events.push(at, Due::Host(host, HostEvent::Credit).into());
        }
        if is_complete {
            self.complete(now, slot, fabric);
        }
    }

    fn answer_packet(
        &mut self,
        now: Time,
        slot: u32,
        packet: &Packet,
        came: Came,
        fabric: &mut Fabric,
    ) {
        let receiving = self.receivers.at(slot);
        let (cause, value) = match packet.body {
            Body::UetData { psn, value, .. } | Body::UetProbe { psn, value, .. } => (psn, value),
            _ => return,
        };
        let body = match &came {
            Came::Quietly => return,
            Came::Ack(next, _) => Body::UetAck { next: *next, cause, slot },
            Came::Nack => Body::UetNack { psn: cause, slot, value },
        };
        let size = self.shared.header;
        let mut answer = Way::of_receiver(receiving).packet(body, packet.stamp, size, control());
        answer.entropy = entropy(receiving.hash, value);
        answer.flags = packet.flags & (flags::RETRANSMISSION | flags::LAST_HOP)
            | (if packet.ecn() == Ecn::Ce { flags::ECE } else { 0 })
            | (if packet.kind() == Kind::UetProbe { flags::ASKS } else { 0 });
        if let Came::Ack(_, selective) = came {
            self.uet_counts.acks += 1;
            fabric.packets.attach(&mut answer, selective);
        } else {
            self.uet_counts.nacks += 1;
        }
        let (node, mut link) = at_host!(self, receiving.host, fabric);
        node.answer(now, answer, None, || None, &mut link);
        self.note_departures(fabric);
    }

    /// An ACK, a NACK or a PULL.
    #[inline(never)]
    pub(super) fn on_word_of_packets(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        sending.peer = packet.slot();
        let cfg = &self.shared.transport.uet;
        let Some(packets) = sending.sender.packets() else { return };
        let rtt = now.saturating_sub(packet.stamp);
        let is_marked = packet.has(flags::ECE);
        match packet.body {
            Body::UetAck { next, .. } => {
                let Some(selective) = fabric.packets.side::<Selective>(packet) else { return };
                let delay = packets.delay(rtt);
                packets.on_ack(now, next, selective, (is_marked, rtt), cfg);
                if packet.has(flags::ASKS) {
                    packets.on_probe_answer(delay, cfg);
                }
            }
            Body::UetNack { psn, value, .. } => {
                let is_last_hop = packet.has(flags::LAST_HOP);
                packets.on_nack(now, psn, value, (is_marked, is_last_hop, rtt), cfg);
            }
            Body::UetPull { credit, .. } => packets.on_pull(credit, cfg),
            _ => {}
        }
        self.go_on(now, packet, fabric);
    }

    /// A host may give credit.
    pub(super) fn on_credit(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(cfg) = shared.transport.uet.iter().find(|cfg| cfg.control.has_credit()) else {
            return;
        };
        let id = self.hosts[host as usize].id;
        let rate = shared.plan.topology.links[id as usize].rate;
        let (pull, next) = self.pacers[host as usize].next(now, rate, cfg);
        if let Some(at) = next {
            fabric.events.push(at, Due::Host(host, HostEvent::Credit).into());
        }
        let Some(pull) = pull else { return };
        let Some(slot) = self.receivers.slot_of(pull.flow) else { return };
        self.send_pull(now, slot, pull, fabric);
    }

    fn send_pull(&mut self, now: Time, slot: u32, pull: Pull, fabric: &mut Fabric) {
        self.uet_counts.pulls += 1;
        let receiving = self.receivers.at(slot);
        let body = Body::UetPull { credit: pull.credit, slot, is_slow: pull.is_slow };
        let packet = Way::of_receiver(receiving).packet(body, now, self.shared.header, control());
        let (node, mut link) = at_host!(self, receiving.host, fabric);
        node.answer(now, packet, None, || None, &mut link);
        self.note_departures(fabric);
    }
}
