//! Receiving: data, acknowledgements, handshakes, and what comes too late.

use super::*;
use crate::endpoint::Beside;
use millpond_core::edge::Feedback;
use millpond_core::packet::End;

impl Hosts {
    /// A packet has arrived at one of this partition's hosts.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        if !self.hosts[host as usize].node.is_open() {
            return self.receive(now, host, id, fabric);
        }
        fabric.arrived(id);
        let mut packet = fabric.packets.take(id);
        self.take_up(now, host, &mut packet, fabric);
    }

    /// A packet that has arrived, or that the host's stages have let through, for the transport.
    #[inline(always)] // in the per-packet path, and behind the stages
    pub(super) fn take_up(
        &mut self,
        now: Time,
        host: u32,
        packet: &mut Packet,
        fabric: &mut Fabric,
    ) {
        match packet.kind() {
            Kind::Data | Kind::RdmaData => self.on_data(now, host, packet, fabric),
            Kind::Ack => self.on_ack(now, packet, fabric),
            _ => self.take_up_rare(now, host, packet, fabric),
        }
        fabric.packets.release(packet.side);
    }

    /// One that is neither a stream's data nor its acknowledgement.
    #[inline(never)] // keeps the per-packet path small
    fn take_up_rare(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        match packet.kind() {
            Kind::Syn => self.on_syn(now, host, packet, fabric),
            Kind::SynAck => self.on_syn_ack(now, packet, fabric),
            kind => match kind.end() {
                End::Sender => self.on_packet(now, host, packet, fabric),
                End::Receiver => self.on_receivers_packet(now, packet, fabric),
                // The virtual switch has read it; without one nobody sends any.
                End::Host => {}
            },
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        let Body::Ack { ack, slot, hops } = packet.body else { return };
        sending.peer = slot;
        let sack = fabric.packets.side(packet);
        let mapping = fabric.packets.side(packet).copied();
        let ack =
            AckIn { ack, ece: packet.has(flags::ECE), sack, stamp: packet.stamp, hops, mapping };
        if stages_let_see(now, sending, packet, &ack) {
            sending.sender.on_ack(now, &ack, &self.shared.transport);
        }
        self.go_on(now, packet, fabric);
    }

    /// A receiver's packet that is no stream's has arrived.
    #[inline(never)]
    fn on_receivers_packet(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        sending.peer = packet.slot();
        let (ack, hops) = match packet.body {
            Body::RdmaAck { ack, hops, .. } | Body::Nack { ack, hops, .. } => (ack, hops),
            _ => (sending.sender.acked(), 0),
        };
        let (packets, is_frozen) = (&fabric.packets, sending.is_frozen(&self.shared));
        let (ece, stamp, sack) = (packet.has(flags::ECE), packet.stamp, packets.side(packet));
        let ack = AckIn { ack, ece, sack, stamp, hops, mapping: None };
        if stages_let_see(now, sending, packet, &ack) {
            let rewinds = sending.sender.rewinds();
            let incoming = Incoming { packet, packets, ack, is_frozen };
            let answer = sending.sender.on_packet(now, &incoming, &self.shared.transport);
            if sending.sender.rewinds() > rewinds
                && let Some(marker) = sending.egress.as_mut().and_then(|egress| egress.marker())
            {
                marker.on_rewind();
            }
            if let Some(body) = answer {
                let (host, way) = (sending.host, Way::of_sender(sending));
                self.put_beside(now, host, way, Beside::new(now, body), fabric);
            }
        }
        self.go_on(now, packet, fabric);
    }

    /// The sender of an answered packet goes on, or its connection ends.
    #[inline(always)] // in the per-packet path
    pub(super) fn go_on(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let sending = self.senders.at(packet.peer);
        if sending.sender.is_done() && !sending.opening.role.is_persistent() {
            self.end(now, packet.peer, fabric);
        } else {
            self.pump(now, packet.peer, fabric);
        }
    }

    /// A SYN-ACK (RFC 9293 §3.5): as a SYN, it takes no sequence space here.
    #[cold]
    pub(super) fn on_syn_ack(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        sending.peer = packet.slot();
        let mapping = fabric.packets.side(packet).copied();
        sending.sender.on_syn_ack(now, packet.stamp, mapping, &self.shared.transport);
        if self.shared.plan.transport.handshake_ack {
            let (host, way, size) = (sending.host, Way::of_sender(sending), self.shared.header);
            let body = Body::Ack { ack: 0, slot: NONE, hops: 0 };
            let class = TrafficClass::default().with_priority(packet.priority());
            // No sender takes it, if one is here.
            let answer = Packet { peer: NONE, ..way.by(mapping).packet(body, now, size, class) };
            self.put(now, host, answer, mapping, fabric);
        }
        if self.shared.has_overlay {
            self.settle_held(now, packet.peer, fabric);
        }
        self.pump(now, packet.peer, fabric);
    }

    #[cold]
    pub(super) fn on_syn(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = self.receivers.slot_of(packet.flow).unwrap_or(NONE);
        if let Some(receiving) = self.receivers.get(slot, packet.flow)
            && !receiving.any
        {
            receiving.handshake.answered(now);
        }
        let mapping = fabric.packets.side::<Mapping>(packet).copied();
        let class = TrafficClass::default().with_priority(packet.priority());
        let (way, size) = (Way::back(packet).by(mapping), u32::from(packet.size));
        let answer = way.packet(Body::SynAck { slot }, packet.stamp, size, class);
        self.put(now, host, answer, mapping, fabric);
    }

    #[inline]
    pub(super) fn on_data(
        &mut self,
        now: Time,
        host: u32,
        packet: &mut Packet,
        fabric: &mut Fabric,
    ) {
        let slot = wire::slot_of(&self.receivers, packet);
        let (shared, seq) = (&*self.shared, packet.seq());
        let Some(receiving) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        note_way(now, receiving, packet);
        let data = DataIn {
            seq,
            len: packet.payload as u32,
            ce: packet.ecn() == Ecn::Ce,
            cwr: packet.has(flags::CWR),
            stamp: packet.stamp,
            asks: packet.has(flags::ASKS),
            mapping: fabric.packets.side(packet).copied(),
        };
        let subflow = data.mapping.map(|mapping| mapping.subflow);
        let arrived = receiving.receiver.on_data(now, data, &shared.transport);
        let complete = note_delivery(now, receiving, &arrived, shared, fabric);
        let importance = packet.class.importance();
        if packet.kind() == Kind::RdmaData {
            self.answer_pair(now, slot, packet, arrived.acks, fabric);
        } else if importance == Importance::Control {
            for ack in arrived.acks.iter().flatten() {
                self.acknowledge(now, slot, ack, subflow, Importance::Control, fabric);
            }
        } else {
            self.echo(now, slot, importance, arrived.acks, fabric);
        }
        if complete {
            self.complete(now, slot, fabric);
        }
    }

    /// A packet has arrived of a family whose data has no one sequence: data, or a question.
    #[inline(never)]
    fn on_packet(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = wire::slot_of(&self.receivers, packet);
        let Some(receiving) = self.receivers.get(slot, packet.flow) else {
            return match packet.kind() {
                Kind::Busy => {}
                _ => self.on_stray(now, host, packet, fabric),
            };
        };
        let shared = &*self.shared;
        if packet.payload > 0 || packet.has(flags::TRIMMED) {
            note_way(now, receiving, packet);
        }
        let (arrived, answer) = receiving.receiver.on_packet(now, packet, slot, &shared.transport);
        let is_complete = match &arrived {
            Some(arrived) => note_delivery(now, receiving, arrived, shared, fabric),
            None => false,
        };
        arm(receiving, fabric);
        let way = Way::of_receiver(receiving);
        let (body, at) = (answer.as_ref().map(|answer| answer.body), receiving.host);
        if let Some(answer) = answer {
            self.put_beside(now, at, way, answer, fabric);
        }
        match packet.kind() {
            Kind::HomaData => self.schedule_message(now, host, slot, packet, fabric),
            _ => self.ask_for_credit(now, host, slot, packet, body, fabric),
        }
        if is_complete {
            self.complete(now, slot, fabric);
        }
    }

    /// Data for a connection that is over: a late copy, which is acknowledged at once like any
    /// duplicate (RFC 9293 §3.10.7.4). Its sender is gone, so only the size of the answer matters.
    #[cold]
    pub(super) fn on_stray(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let protocol = packet.kind().protocol();
        let priority = protocol.control_priority.unwrap_or(packet.priority());
        let class = TrafficClass::default().with_priority(priority);
        let size = self.shared.header;
        let answer = Way::back(packet).packet((protocol.late)(packet), packet.stamp, size, class);
        self.put(now, host, answer, None, fabric);
    }

    /// A receiver's delayed acknowledgement is due.
    pub fn on_receiver_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let receiving = self.receivers.at(slot);
        if receiving.timer_at != now {
            return;
        }
        receiving.timer_at = Time::MAX;
        let ack = receiving.receiver.on_timer(now, &self.shared.transport);
        let deadline = receiving.receiver.deadline();
        if deadline != Time::MAX {
            receiving.timer_at = deadline;
            fabric.call(deadline, receiving.host, HostEvent::ReceiverTimer(flow));
        }
        if let Some((ack, subflow)) = ack {
            self.acknowledge(now, slot, &ack, subflow, Importance::Control, fabric);
        } else if !self.messages.is_empty() {
            self.after_message_timer(now, slot, fabric);
        }
    }

    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        slot: u32,
        ack: &AckOut,
        subflow: Option<u8>,
        importance: Importance,
        fabric: &mut Fabric,
    ) {
        let receiving = self.receivers.at(slot);
        let mapping = subflow.map(|subflow| Mapping { subflow, data: receiving.delivered });
        let body = Body::Ack { ack: ack.ack, slot, hops: receiving.hops };
        let size = self.shared.header + ack.sack.option_len();
        let class = TrafficClass::new(receiving.priority, importance, Ecn::NotEct);
        let mut packet =
            Way::of_receiver(receiving).by(mapping).packet(body, ack.stamp, size, class);
        packet.flags = if ack.ece { flags::ECE } else { 0 };
        let host = nic_paths::answers_by(receiving, &mut packet, mapping);
        let (node, mut link) = at_host!(self, host, fabric);
        link.sack = (ack.sack.count > 0).then_some(&ack.sack);
        link.mapping = mapping.map(|mapping| (mapping, 0));
        node.answer(
            now,
            packet,
            receiving.ingress.as_deref_mut(),
            || Some(receiving.opening.class),
            &mut link,
        );
        self.note_departures(fabric);
    }

    /// Gives one packet to a host that no connection here stands behind; of several NICs to the one
    /// whose address the packet has.
    fn put(
        &mut self,
        now: Time,
        host: u32,
        packet: Packet,
        mapping: Option<Mapping>,
        fabric: &mut Fabric,
    ) {
        let host =
            if self.shared.nics.is_none() { host } else { self.shared.local_host(packet.src) };
        let class = || wire::class_of(host, &self.senders, &self.receivers, packet.flow);
        let (node, mut link) = at_host!(self, host, fabric);
        link.mapping = mapping.map(|mapping| (mapping, 0));
        node.put(now, packet, class, &mut link);
        self.note_departures(fabric);
    }

    /// Data that TLT has marked has arrived, and these are the acknowledgements to send: the one
    /// that answers it is its echo, if it is important, and leaves at once.
    #[inline(never)]
    fn echo(
        &mut self,
        now: Time,
        slot: u32,
        importance: Importance,
        acks: [Option<AckOut>; 2],
        fabric: &mut Fabric,
    ) {
        let echo = importance.echo();
        if echo == Importance::Control {
            for ack in acks.into_iter().flatten() {
                self.acknowledge(now, slot, &ack, None, Importance::Control, fabric);
            }
            return;
        }
        self.counters.marking.echoes[usize::from(echo == Importance::ForcedEcho)] += 1;
        let [first, second] = acks;
        if let (Some(before), Some(_)) = (&first, &second) {
            self.acknowledge(now, slot, before, None, Importance::Control, fabric);
        }
        let receiving = self.receivers.at(slot);
        if let Some(ack) = second
            .or(first)
            .or_else(|| receiving.receiver.acknowledge(false, &self.shared.transport))
        {
            self.acknowledge(now, slot, &ack, None, echo, fabric);
        }
    }
}

/// Takes note of what has come of a connection; whether its present flow or message is whole now.
#[inline(always)] // in the per-packet path
fn note_delivery(
    now: Time,
    it: &mut Receiving,
    arrived: &Arrived,
    shared: &Shared,
    fabric: &mut Fabric,
) -> bool {
    it.out_of_order += arrived.out_of_order as u32;
    let news = arrived.in_order_upto - it.delivered;
    if now >= shared.plan.warm_up {
        it.measured += news;
    }
    it.delivered = arrived.in_order_upto;
    arm(it, fabric);
    news > 0 && it.delivered >= it.ends
}

/// Takes note of data's way to its connection.
#[inline(always)] // in the per-packet path
fn note_way(now: Time, it: &mut Receiving, packet: &Packet) {
    if !it.any {
        it.any = true;
        it.path = packet.path;
        it.handshake.first_data(now, packet.has(flags::RETRANSMISSION));
    }
    if it.path != packet.path {
        it.path_changes += 1;
        it.path = packet.path;
    }
    it.hops = TTL.wrapping_sub(packet.ttl);
}

/// Keeps a receiving end's timer armed.
#[inline(always)] // in the per-packet path
pub(crate) fn arm(it: &mut Receiving, fabric: &mut Fabric) {
    let deadline = it.receiver.deadline();
    if deadline < it.timer_at {
        let key = Key::from(Due::Host(it.host, HostEvent::ReceiverTimer(it.opening.flow)));
        fabric.events.cancel(it.timer_at, key);
        it.timer_at = deadline;
        fabric.events.push(deadline, key);
    }
}

/// Shows an acknowledgement to the stages of its connection; whether the transport may see it.
#[inline(always)] // in the per-packet path
pub(super) fn stages_let_see(
    now: Time,
    it: &mut Sending,
    packet: &Packet,
    ack: &AckIn<'_>,
) -> bool {
    match &mut it.egress {
        Some(egress) if egress.is_staged() => {
            let (from, sent) = (it.sender.acked(), it.sender.sent_in_order());
            egress.on_feedback(now, &Feedback { from, to: ack.ack, sent, is_marked: ack.ece });
            sees(egress, packet, ack, from)
        }
        _ => true,
    }
}

/// Shows an acknowledgement to a connection's marker, if it has one; whether the transport may see
/// it.
#[inline(never)]
fn sees(egress: &mut Egress, packet: &Packet, ack: &AckIn<'_>, acked: u64) -> bool {
    let Some(marker) = egress.marker() else { return true };
    let blocks = ack.sack.map_or(&[][..], |sack| &sack.blocks[..usize::from(sack.count)]);
    marker.on_ack(packet.class.importance(), ack.ack, blocks, acked)
}
