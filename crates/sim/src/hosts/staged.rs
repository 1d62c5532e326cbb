//! Sending through the stages of a host: limits, importance, ranks, labels.
//!
//! A refusal by a limit is a local failure to send: nothing was sent, nothing is lost, and the
//! transport keeps the segment. A pure ACK that is refused is gone, as in the kernel; a SYN is sent
//! again by its timer.
//!
//! A connection's marker (TLT) may put what it knows to be lost in the place of the transport's next
//! segment; and when the transport has sent what it may and the clock would stop, it forces a packet
//! out, whatever window and NIC say.
//!
//! Invariant: a connection that is marked has an important packet in flight, or its echo, while
//! anything of it is unacknowledged.

use super::sending::{first_packet, wake_when_room};
use super::*;
use crate::endpoint::Config;
use millpond_core::host::{Seen, Segment, Stream};
use millpond_core::importance::{Forced, Standing};

/// A connection's stream, as stages ask about it.
struct Written<'a>(&'a Sender, &'a Config);

impl Stream for Written<'_> {
    fn written(&self) -> u64 {
        self.0.written()
    }
    fn acked(&self) -> u64 {
        self.0.acked()
    }
    fn would_send(&self) -> bool {
        self.0.would_send(self.1)
    }
    fn ends_message(&self, at: u64) -> bool {
        self.0.ends_message(at)
    }
}

impl Hosts {
    /// As `pump`, of a connection that has stages.
    #[inline(never)]
    pub(super) fn pump_staged(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let Some(egress) = &mut self.senders.at(slot).egress else { return };
        if egress.is_scheduled() {
            return self.pump_message(now, slot, fabric);
        }
        let (is_limited, is_marked) = (egress.is_limited(), egress.marker().is_some());
        let is_switched = egress.is_switched();
        if is_limited {
            self.pump_limited(now, slot, is_switched, fabric);
        } else {
            self.pump_stamped(now, slot, (is_marked, is_switched), fabric);
        }
        if is_marked {
            self.keep_clock(now, slot, fabric);
        }
    }

    /// Of a host without limits.
    fn pump_stamped(&mut self, now: Time, slot: u32, (is_marked, is_switched): (bool, bool), fabric: &mut Fabric) {
        loop {
            let Some(most) = self.most(now, slot, is_switched, fabric) else { return };
            let shared = &*self.shared;
            let it = self.senders.at(slot);
            let Some(egress) = &mut it.egress else { return };
            let Some(room) = egress.queue.room(now, most) else {
                return wake_when_room(it, shared, fabric);
            };
            if is_marked && self.sends_instead(now, slot, room, fabric) {
                continue;
            }
            let (it, shared) = (self.senders.at(slot), &*self.shared);
            let Some(out) = it.sender.poll_send(now, room, &shared.transport) else { return };
            let segment = Segment { first: first_packet(now, slot, it, &out), len: out.len };
            let (node, mut link) = at_host!(self, it.host, fabric);
            let Some(egress) = &mut it.egress else { return };
            let stream = Written(&it.sender, &shared.transport);
            link.mapping = out.mapping.map(|mapping| (mapping, out.seq));
            link.telemetry = out.telemetry();
            node.send_staged(now, egress, &stream, segment, None, shared.cut_of(&out), &mut link);
            self.note_departures(fabric);
            if self.shared.is_metered {
                self.handed_down(now, slot, out.len, fabric);
            }
        }
    }

    /// Of a host with limits: each segment is looked at, decided on, and only then sent.
    fn pump_limited(&mut self, now: Time, slot: u32, is_switched: bool, fabric: &mut Fabric) {
        // To be looked at when a segment leaves only if it waits for that: a look is an attempt here, and may be refused.
        if let Some(egress) = &mut self.senders.at(slot).egress {
            egress.queue.is_wanted = false;
        }
        loop {
            let Some(most) = self.most(now, slot, is_switched, fabric) else { return };
            let shared = &*self.shared;
            let it = self.senders.at(slot);
            let Some(egress) = &mut it.egress else { return };
            let Some(room) = egress.queue.room(now, most) else {
                return wake_when_room(it, shared, fabric);
            };
            let room = if it.sender.is_probing() { shared.mss } else { room };
            let Some(next) = it.sender.peek(now, room, &shared.transport) else { return };
            let seen = Seen {
                class: Some(it.opening.class),
                payload: next.len,
                packets: next.len.div_ceil(shared.mss).max(1),
                in_flight: if next.syn { 0 } else { it.sender.packets_out(&shared.transport) },
                srtt: it.sender.srtt(),
                ecn: next.ecn as u32,
            };
            let (node, mut link) = at_host!(self, it.host, fabric);
            let leave = node.ask(now, &seen);
            if leave.refused && !next.syn {
                if leave.reduce {
                    it.sender.reduce(now, &shared.transport);
                }
                it.sender.refused(now, leave.reduce, &shared.transport);
                return;
            }
            it.sender.accepted();
            let Some(mut out) = it.sender.poll_send(now, room, &shared.transport) else { return };
            if leave.refused {
                return; // a SYN: its timer is set
            }
            if leave.mark && out.ecn == Ecn::Ect {
                out.ecn = Ecn::Ce;
            }
            let segment = Segment { first: first_packet(now, slot, it, &out), len: out.len };
            let Some(egress) = &mut it.egress else { return };
            let stream = Written(&it.sender, &shared.transport);
            node.send_staged(now, egress, &stream, segment, Some(&leave), shared.cut(), &mut link);
            if leave.reduce {
                it.sender.reduce(now, &shared.transport);
            }
            self.note_departures(fabric);
            if self.shared.is_metered {
                self.handed_down(now, slot, out.len, fabric);
            }
        }
    }

    /// Whether the place of the transport's next segment, of at most `room` bytes, is taken by what is known to be lost.
    fn sends_instead(&mut self, now: Time, slot: u32, room: u32, fabric: &mut Fabric) -> bool {
        let it = self.senders.at(slot);
        let transport = &self.shared.transport;
        if !it.sender.is_recovering() {
            return false;
        }
        let Some(next) = it.sender.peek(now, room, transport) else { return false };
        let Some(marker) = it.egress.as_mut().and_then(|egress| egress.marker()) else { return false };
        let Some(forced) = marker.instead(next.seq, self.shared.mss) else { return false };
        it.sender.displaced(forced.len);
        self.force_out(now, slot, forced, fabric);
        true
    }

    /// The transport has sent what it may: forces a packet out if the clock would stop.
    fn keep_clock(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let it = self.senders.at(slot);
        let standing = Standing {
            una: it.sender.acked(),
            nxt: it.sender.sent(),
            more: it.sender.would_send(&self.shared.transport) || it.sender.is_held(),
            recovering: it.sender.is_recovering(),
        };
        let Some(marker) = it.egress.as_mut().and_then(|egress| egress.marker()) else { return };
        if let Some(forced) = marker.after_ack(standing, self.shared.mss) {
            self.force_out(now, slot, forced, fabric);
        }
    }

    /// Sends one packet of what was sent before. It asks for no room in the NIC, as an acknowledgement does not.
    fn force_out(&mut self, now: Time, slot: u32, forced: Forced, fabric: &mut Fabric) {
        let shared = &*self.shared;
        let it = self.senders.at(slot);
        let Some(out) = it.sender.forced(forced.seq, forced.len, &shared.transport) else { return };
        let segment = Segment { first: first_packet(now, slot, it, &out), len: out.len };
        let class = Some(it.opening.class);
        let (node, mut link) = at_host!(self, it.host, fabric);
        let Some(egress) = &mut it.egress else { return };
        let stream = Written(&it.sender, &shared.transport);
        link.telemetry = out.telemetry();
        node.force(now, egress, &stream, segment, forced.importance, || class, shared.cut_of(&out), &mut link);
        self.note_departures(fabric);
    }
}
