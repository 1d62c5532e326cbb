//! Receiving: data, acknowledgements, handshakes, and what comes too late.

use super::sending::transmit_begun;
use super::*;
use millpond_core::edge::flowcell::counted;

impl Hosts {
    /// A packet has arrived at one of this partition's hosts.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        if !self.queues.is_empty() {
            return self.enqueue(now, host, id, fabric);
        }
        let packet = fabric.deliver(id);
        self.take_up(now, host, &packet, fabric);
    }

    /// What has arrived, or what receive offload has let through, for the transport.
    #[inline(always)] // in the per-packet path, and after a poll
    pub(super) fn take_up(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        match packet.kind() {
            Kind::Data => self.on_data(now, host, packet, fabric),
            Kind::Ack => self.on_ack(now, packet, fabric),
            Kind::Syn => self.on_syn(now, host, packet, fabric),
            Kind::SynAck => self.on_syn_ack(now, packet, fabric),
        }
        fabric.packets.release(packet.side);
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(it) = self.senders.get(packet.peer, packet.flow) else { return };
        let Body::Ack { ack, slot, hops } = packet.body else { return };
        it.peer = slot;
        let sack = fabric.packets.side(packet);
        let mapping = fabric.packets.side(packet).copied();
        let ack = AckIn { ack, ece: packet.has(flags::ECE), sack, stamp: packet.stamp, hops, mapping };
        if it.marker.is_none() || marking::sees(it, packet, &ack) {
            it.sender.on_ack(now, &ack, &self.shared.transport);
        }
        if it.sender.is_done() && !it.opening.role.is_persistent() {
            self.end(now, packet.peer, fabric);
        } else {
            self.pump(now, packet.peer, fabric);
        }
    }

    /// A SYN-ACK (RFC 9293 §3.5): as a SYN, it takes no sequence space here.
    #[cold]
    pub(super) fn on_syn_ack(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(it) = self.senders.get(packet.peer, packet.flow) else { return };
        it.peer = packet.slot();
        let mapping = fabric.packets.side(packet).copied();
        it.sender.on_syn_ack(now, packet.stamp, mapping, &self.shared.transport);
        self.pump(now, packet.peer, fabric);
    }

    /// A SYN.
    #[cold]
    pub(super) fn on_syn(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = self.receivers.slot_of(packet.flow).unwrap_or(NONE);
        if let Some(it) = self.receivers.get(slot, packet.flow)
            && !it.any
        {
            it.handshake.answered(now);
        }
        let mapping = fabric.packets.side::<Mapping>(packet).copied();
        let hash = five_tuple_hash(packet.dst, packet.src, packet.flow);
        let mut answer = Packet {
            body: Body::SynAck { slot },
            stamp: packet.stamp,
            flow: packet.flow,
            src: packet.dst,
            dst: packet.src,
            entropy: of_subflow(hash, mapping),
            peer: packet.slot(),
            size: packet.size,
            class: TrafficClass::default().with_priority(packet.priority()),
            ttl: TTL,
            ..Packet::default()
        };
        if let Some(mapping) = mapping {
            fabric.packets.attach(&mut answer, mapping);
        }
        self.put(now, host, answer, fabric);
    }

    #[inline]
    pub(super) fn on_data(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        self.data::<false>(now, host, packet, fabric);
    }

    /// Data that an ordering buffer has let through.
    #[inline(never)]
    pub(super) fn on_data_in_order(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        self.data::<true>(now, host, packet, fabric);
    }

    #[inline]
    fn data<const ORDERED: bool>(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let slot = if packet.peer != NONE { packet.peer } else { self.receivers.slot_of(packet.flow).unwrap_or(NONE) };
        let (shared, seq) = (&*self.shared, packet.seq());
        let Some(it) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        if !ORDERED && shared.ordering.is_some() && (seq > it.delivered || it.ordering.is_some()) {
            return self.on_unordered(now, slot, packet, fabric);
        }
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
        let data = DataIn {
            seq,
            len: packet.payload as u32,
            ce: packet.ecn() == Ecn::Ce,
            cwr: packet.has(flags::CWR),
            stamp: packet.stamp,
            mapping: fabric.packets.side(packet).copied(),
        };
        let arrived = it.receiver.on_data(now, data, &shared.transport);
        it.out_of_order += arrived.out_of_order as u32;
        let news = arrived.in_order_upto - it.delivered;
        if now >= shared.plan.warm_up {
            it.measured += news;
        }
        it.delivered = arrived.in_order_upto;
        let deadline = it.receiver.deadline();
        if deadline < it.timer_at {
            let key = Key::new(Class::ReceiverTimer, it.host, packet.flow);
            fabric.events.cancel(it.timer_at, key);
            it.timer_at = deadline;
            fabric.events.push(deadline, key);
        }
        let complete = news > 0 && it.delivered >= it.ends;
        let importance = packet.class.importance();
        if importance == Importance::Control {
            for ack in arrived.acks.iter().flatten() {
                self.acknowledge(now, slot, ack, Importance::Control, fabric);
            }
        } else {
            self.echo(now, slot, importance, arrived.acks, fabric);
        }
        if complete {
            self.complete(now, slot, fabric);
        }
    }

    /// Data for a connection that is over: a late copy, which is acknowledged at once like any duplicate
    /// (RFC 9293 §3.10.7.4). Its sender is gone, so only the size of the answer matters.
    #[cold]
    pub(super) fn on_stray(&mut self, now: Time, host: u32, packet: &Packet, fabric: &mut Fabric) {
        let answer = Packet {
            body: Body::Ack { ack: packet.seq() + u64::from(packet.payload), slot: NONE, hops: 0 },
            stamp: packet.stamp,
            flow: packet.flow,
            src: packet.dst,
            dst: packet.src,
            entropy: five_tuple_hash(packet.dst, packet.src, packet.flow),
            peer: packet.slot(),
            size: self.shared.header as u16,
            class: TrafficClass::default().with_priority(packet.priority()),
            ttl: TTL,
            ..Packet::default()
        };
        self.put(now, host, answer, fabric);
    }

    /// A receiver's delayed acknowledgement is due.
    pub fn on_receiver_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let it = self.receivers.at(slot);
        if it.timer_at != now {
            return;
        }
        it.timer_at = Time::MAX;
        let ack = it.receiver.on_timer(now, &self.shared.transport);
        let deadline = it.receiver.deadline();
        if deadline != Time::MAX {
            it.timer_at = deadline;
            fabric.events.push(deadline, Key::new(Class::ReceiverTimer, it.host, flow));
        }
        if let Some(ack) = ack {
            self.acknowledge(now, slot, &ack, Importance::Control, fabric);
        }
    }

    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        slot: u32,
        ack: &AckOut,
        importance: Importance,
        fabric: &mut Fabric,
    ) {
        let it = self.receivers.at(slot);
        let mut packet = Packet {
            body: Body::Ack { ack: ack.ack, slot, hops: it.hops },
            stamp: ack.stamp,
            flow: it.opening.flow,
            src: it.opening.dst,
            dst: it.opening.src,
            entropy: of_subflow(it.hash, ack.mapping),
            side: Side::NONE,
            peer: it.opening.sender_slot,
            rank: 0,
            size: (self.shared.header + ack.sack.option_len()) as u16,
            payload: 0,
            flags: if ack.ece { flags::ECE } else { 0 },
            ingress: 0,
            class: TrafficClass::new(it.priority, importance, Ecn::NotEct),
            ttl: TTL,
            path: 0,
        };
        if ack.sack.count > 0 {
            fabric.packets.attach(&mut packet, ack.sack);
        }
        if let Some(mapping) = ack.mapping {
            fabric.packets.attach(&mut packet, mapping);
        }
        if let Some(edge) = &mut it.edge {
            edge.stamp(now, counted(0, u32::from(packet.size)), &mut packet);
        }
        let host = it.host;
        self.put(now, host, packet, fabric);
    }

    /// Gives one packet to a host's NIC.
    #[inline]
    pub(super) fn put(&mut self, now: Time, host: u32, packet: Packet, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        fabric.audit.injected.add(packet.size);
        let id = fabric.packets.insert(packet);
        match it.nic.offer(now, it.out, id, fabric) {
            Offered::Departs(_) | Offered::Waits(None) => {}
            Offered::Waits(Some((id, departs))) => {
                self.begun.push(Departure { out: it.out, id, departs });
                transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
            }
            Offered::Asks => self.put_at_limit(now, host, id, fabric),
        }
    }
}
