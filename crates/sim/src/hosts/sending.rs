//! Sending: what the windows and the NIC allow is handed down.
//!
//! Invariant: after every event of a sender it has been pumped, and its timer event is no later
//! than its deadline.

use super::*;
use millpond_core::host::{Conditions, Segment};

impl Sending {
    /// The key of its timer's events.
    #[inline]
    pub(super) fn timer_key(&self) -> Key {
        Due::Host(self.host, HostEvent::SenderTimer(self.opening.flow)).into()
    }
}

impl Hosts {
    /// Hands down what the windows and the NIC allow, and keeps the timer armed: at once where no
    /// stage and no other connection stands between, as most do, and else by `pump_staged`.
    #[inline]
    pub(super) fn pump(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        loop {
            let shared = &*self.shared;
            let sending = self.senders.at(slot);
            let room = match &mut sending.egress {
                None => shared.segment_max,
                Some(egress) if egress.is_staged() => {
                    self.pump_staged(now, slot, fabric);
                    if self.senders.at(slot).is_frozen(&self.shared) {
                        return;
                    }
                    break;
                }
                Some(egress) => match egress.queue.room(now, shared.segment_max) {
                    Some(room) => room,
                    None => {
                        wake_when_room(sending, shared, fabric);
                        break;
                    }
                },
            };
            let Some(out) = sending.sender.poll_send(now, room, &shared.transport) else { break };
            if !out.form.is_stream() {
                self.hand_down(now, slot, Conditions::default(), out, None, fabric);
                continue;
            }
            let segment = Segment { first: stream_packet(now, slot, sending, &out), len: out.len };
            let (node, mut link) = at_host!(self, sending.host, fabric);
            link.mapping = out.mapping.map(|mapping| (mapping, out.seq));
            let queue = sending.egress.as_deref_mut().map(|egress| &mut egress.queue);
            node.send(now, queue, segment, shared.cut(), &mut link);
            self.note_departures(fabric);
        }
        if self.keep_timer(slot, fabric) {
            self.messages_left(now, slot, fabric);
        }
    }

    /// Keeps a sender's timer event no later than its deadline; whether lanes wait for messages.
    #[inline(always)]
    pub(super) fn keep_timer(&mut self, slot: u32, fabric: &mut Fabric) -> bool {
        let sending = self.senders.at(slot);
        let deadline = sending.sender.deadline();
        if deadline < sending.timer.at() {
            let (key, is_paced) = (sending.timer_key(), sending.sender.is_held());
            sending.timer.hasten(deadline, is_paced, key, &mut fabric.events);
        }
        sending.is_awaited
    }

    /// A flow's segment has left its NIC.
    pub fn on_nic_room(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        if self.senders.at(slot).is_woken(now) {
            self.pump(now, slot, fabric);
        }
    }

    /// A sender's timer event is due; the deadline may have moved since.
    pub fn on_sender_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.senders.slot_of(flow) else { return };
        let sending = self.senders.at(slot);
        if !sending.timer.fires(now) {
            return;
        }
        if self.shared.has_overlay && sending.is_frozen(&self.shared) {
            return; // it goes on when the flow does
        }
        let timeouts = sending.sender.counters().timeouts;
        sending.sender.on_timer(now, &self.shared.transport);
        if sending.sender.counters().timeouts > timeouts
            && let Some(egress) = &mut sending.egress
        {
            egress.timed_out(now);
        }
        self.pump(now, slot, fabric);
    }
}

/// The first packet of a segment, without its sizes.
pub(super) fn first_packet(now: Time, slot: u32, it: &mut Sending, segment: &Outgoing) -> Packet {
    let mut packet = stream_packet(now, slot, it, segment);
    segment.form.write(&mut packet, slot);
    packet
}

/// The same of a stream's segment.
#[inline(always)]
fn stream_packet(now: Time, slot: u32, it: &mut Sending, segment: &Outgoing) -> Packet {
    if segment.len > 0 && it.first_sent.is_none() {
        it.first_sent = Some(now);
    }
    let body = match segment.syn {
        true => Body::Syn { slot, flowcell: 0 },
        false => Body::Data { seq: segment.seq, slot, flowcell: 0 },
    };
    let class = TrafficClass::new(it.priority, Importance::Control, segment.ecn);
    let mut packet = Way::of_sender(it).by(segment.mapping).packet(body, now, 0, class);
    packet.flags = (if segment.retransmission { flags::RETRANSMISSION } else { 0 })
        | (if segment.cwr { flags::CWR } else { 0 });
    packet
}

/// Asks for a call when the flow's first segment has left its NIC, if the flow has anything to
/// send.
pub(super) fn wake_when_room(it: &mut Sending, shared: &Shared, fabric: &mut Fabric) {
    let Some(egress) = &mut it.egress else { return };
    if let Some(at) = egress.queue.wake(it.sender.would_send(&shared.transport)) {
        fabric.call(at, it.host, HostEvent::Call(Call::Room(it.opening.flow)));
    }
}
