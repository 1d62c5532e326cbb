//! Sending: what the windows and the NIC allow is handed down, cut into packets, and queued.
//!
//! Invariant: after every event of a sender it has been pumped, and its timer event is no later than its deadline.

use super::*;
use millpond_core::edge::Outbound;
use millpond_core::edge::flowcell::counted;
use millpond_core::switch::pause::PauseFrame;

impl Hosts {
    /// Hands down what the windows and the NIC allow, and keeps the timer armed.
    #[inline]
    pub(super) fn pump(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        loop {
            let shared = &*self.shared;
            let it = self.senders.at(slot);
            let room = match &mut it.share {
                None => shared.segment_max,
                Some(share) => match share.room(now, shared.segment_max) {
                    Some(room) => room,
                    None if share.is_behind_limit() => {
                        self.pump_at_limit(now, slot, fabric);
                        break;
                    }
                    None => {
                        wake_when_room(it, shared, fabric);
                        break;
                    }
                },
            };
            if it.marker.is_some() && self.sends_instead(now, slot, room, fabric) {
                continue;
            }
            let (it, shared) = (self.senders.at(slot), &*self.shared);
            let Some(out) = it.sender.poll_send(now, room, &shared.transport) else { break };
            let host = &mut self.hosts[it.host as usize];
            hand_down(now, slot, it, &out, host, shared, fabric, &mut self.begun);
            if !self.begun.is_empty() {
                transmit_begun(&mut self.begun, &mut self.senders, shared, fabric);
            }
        }
        if self.senders.at(slot).marker.is_some() {
            self.keep_clock(now, slot, fabric);
        }
        let it = self.senders.at(slot);
        let deadline = it.sender.deadline();
        if deadline < it.timer_at {
            let key = Key::new(Class::SenderTimer, it.host, it.opening.flow);
            fabric.events.cancel(it.timer_at, key);
            it.timer_at = deadline;
            fabric.events.push(deadline, key);
        }
    }

    /// A general NIC's link is free.
    pub fn on_nic_ready(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        if let Some((id, departs)) = it.nic.on_ready(now, it.out, fabric) {
            self.begun.push(Departure { out: it.out, id, departs });
            transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
        }
    }

    /// A pause frame has reached a NIC.
    pub fn on_pause(&mut self, now: Time, host: u32, frame: PauseFrame, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        if let Some((id, departs)) = it.nic.on_pause(now, it.out, frame, fabric) {
            self.begun.push(Departure { out: it.out, id, departs });
            transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
        }
    }

    /// A flow's segment has left its NIC.
    pub fn on_nic_room(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        if let Some(share) = &mut self.senders.at(slot).share {
            if share.wake_at != now {
                return;
            }
            share.wake_at = Time::MAX;
        }
        self.pump(now, slot, fabric);
    }

    /// A sender's timer event is due; the deadline may have moved since.
    pub fn on_sender_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let it = self.senders.at(slot);
        if it.timer_at != now {
            return;
        }
        it.timer_at = Time::MAX;
        let timeouts = it.sender.counters().timeouts;
        it.sender.on_timer(now, &self.shared.transport);
        if let Some(marker) = &mut it.marker
            && it.sender.counters().timeouts > timeouts
        {
            marker.on_timeout();
        }
        self.pump(now, slot, fabric);
    }
}

/// The first packet of a segment, without its size.
#[inline(always)]
pub(super) fn first_packet(now: Time, slot: u32, it: &mut Sending, segment: &Outgoing) -> Packet {
    let mut packet = Packet {
        body: match segment.syn {
            false => Body::Data { seq: segment.seq, slot, flowcell: 0 },
            true => Body::Syn { slot, flowcell: 0 },
        },
        stamp: now,
        flow: it.opening.flow,
        src: it.opening.src,
        dst: it.opening.dst,
        entropy: of_subflow(it.hash, segment.mapping),
        side: Side::NONE,
        peer: it.peer,
        rank: 0,
        size: 0,
        payload: 0,
        flags: (if segment.retransmission { flags::RETRANSMISSION } else { 0 })
            | (if segment.cwr { flags::CWR } else { 0 }),
        ingress: 0,
        class: TrafficClass::new(it.priority, Importance::Control, segment.ecn),
        ttl: TTL,
        path: 0,
    };
    if segment.len > 0 && it.first_sent.is_none() {
        it.first_sent = Some(now);
    }
    if let Some(edge) = &mut it.edge {
        edge.stamp(now, counted(segment.len, HEADER), &mut packet);
    }
    packet
}

/// The packet behind this one.
#[inline(always)]
pub(super) fn advance(packet: &mut Packet) {
    if let Body::Data { seq, .. } = &mut packet.body {
        *seq += u64::from(packet.payload);
    }
}

/// Cuts off a segment's next packet, of which `rest` bytes were left; returns how many are left now.
#[inline(always)]
pub(super) fn size_packet(now: Time, it: &mut Sending, packet: &mut Packet, rest: u32, shared: &Shared) -> u32 {
    let payload = rest.min(shared.mss);
    let rest = rest - payload;
    fill_packet(now, it, packet, payload, shared);
    if rest == 0 {
        packet.flags |= flags::LAST;
    }
    if let Some(marker) = &mut it.marker
        && payload > 0
    {
        let last = rest == 0 && !it.sender.would_send(&shared.transport);
        let importance = marker.on_packet(packet.seq(), payload, last);
        packet.class = packet.class.with_importance(importance);
    }
    rest
}

/// Gives a packet its payload, its size and its rank.
#[inline(always)]
pub(super) fn fill_packet(now: Time, it: &mut Sending, packet: &mut Packet, payload: u32, shared: &Shared) {
    packet.payload = payload as u16;
    packet.size = (payload + shared.header) as u16;
    if let Some(ranker) = &mut it.ranker
        && payload > 0
    {
        let (again, written, acked) = (packet.has(flags::RETRANSMISSION), it.sender.written(), it.sender.acked());
        packet.rank = ranker.rank(now, &Outbound { seq: packet.seq(), len: payload, again, written, acked });
    }
}

/// Cuts a segment into packets and gives them to the NIC.
#[inline]
#[allow(clippy::too_many_arguments)]
fn hand_down(
    now: Time,
    slot: u32,
    it: &mut Sending,
    segment: &Outgoing,
    host: &mut Host,
    shared: &Shared,
    fabric: &mut Fabric,
    begun: &mut Vec<Departure>,
) {
    let mut packet = first_packet(now, slot, it, segment);
    let mut rest = segment.len;
    let mut departs = Time::MAX;
    loop {
        rest = size_packet(now, it, &mut packet, rest, shared);
        if let Some(mapping) = segment.mapping {
            let before = u64::from(segment.len - rest) - u64::from(packet.payload);
            packet.side = Side::NONE; // the packet before this one keeps its own
            fabric.packets.attach(&mut packet, mapping.further(before));
        }
        fabric.audit.injected.add(packet.size);
        let id = fabric.packets.insert(packet);
        match host.nic.offer(now, host.out, id, fabric) {
            Offered::Departs(at) => departs = at,
            Offered::Waits(begins) => {
                // Even if packets before it were dropped, which is as if they had departed.
                departs = Time::MAX;
                if let Some((id, departs)) = begins {
                    begun.push(Departure { out: host.out, id, departs });
                }
            }
            // A host with limits does not come here.
            Offered::Asks => {}
        }
        if rest == 0 {
            break;
        }
        advance(&mut packet);
        // RFC 3168 §6.1.2: CWR on the first packet only, as a NIC that cuts segments sends it.
        packet.flags &= !flags::CWR;
    }
    if let Some(share) = &mut it.share {
        share.add(segment.len, departs);
    }
}

/// Puts what general NICs have begun to send on their links, and tells the flows whose segments leave.
pub(super) fn transmit_begun(
    begun: &mut Vec<Departure>,
    senders: &mut Slab<Sending>,
    shared: &Shared,
    fabric: &mut Fabric,
) {
    for Departure { out, id, departs } in begun.drain(..) {
        let packet = fabric.packets[id];
        fabric.transmit(out, id, departs);
        if packet.has(flags::LAST)
            && let Some(it) = senders.get(packet.slot(), packet.flow)
            && let Some(share) = &mut it.share
        {
            share.leaves(departs);
            if share.wanted {
                wake_when_room(it, shared, fabric);
            }
        }
    }
}

/// Schedules the flow's next look at its NIC for when its first segment has left, if it has anything to send.
pub(super) fn wake_when_room(it: &mut Sending, shared: &Shared, fabric: &mut Fabric) {
    let Some(share) = &mut it.share else { return };
    share.wanted = it.sender.would_send(&shared.transport);
    let at = share.first_leaves();
    if share.wanted && at != Time::MAX && share.wake_at == Time::MAX {
        share.wake_at = at;
        fabric.events.push(at, Key::new(Class::NicRoom, it.host, it.opening.flow));
    }
}
