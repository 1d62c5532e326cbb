//! Sending through the stages of a host: limits, importance, ranks, labels.
//!
//! A refusal by a limit is a local failure to send: nothing was sent, nothing is lost, and the
//! transport keeps the segment. So it is with what TLT forces out. A pure ACK that is refused is
//! gone, as in the kernel; a SYN is sent again by its timer.
//!
//! One loop hands down for all combinations of stages. A limit that never acts therefore changes
//! nothing.
//!
//! A connection's marker (TLT) may put what it knows to be lost in the place of the transport's
//! next segment; and when the transport has sent what it may and the clock would stop, it forces a
//! packet out, whatever window and NIC say.
//!
//! Invariant: a connection that is marked has an important packet in flight, or its echo, while
//! anything of it is unacknowledged.

use super::nic_paths::leaves_by;
use super::sending::{first_packet, wake_when_room};
use super::*;
use crate::endpoint::Config;
use millpond_core::host::{Leave, Seen, Segment, Stream};
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

/// Which stages a connection has that its loop asks.
#[derive(Clone, Copy)]
pub(super) struct Stages {
    pub(super) is_limited: bool,
    pub(super) is_marked: bool,
    pub(super) is_switched: bool,
}

impl Stages {
    pub(super) fn of(egress: &mut Egress) -> Stages {
        Stages {
            is_limited: egress.is_limited(),
            is_marked: egress.marker().is_some(),
            is_switched: egress.is_switched(),
        }
    }

    /// Whether nobody stands between the connection and its NIC.
    pub(super) fn are_none(self) -> bool {
        !self.is_limited && !self.is_marked && !self.is_switched
    }
}

impl Hosts {
    /// As `pump`, of a connection that has stages.
    #[inline(never)]
    pub(super) fn pump_staged(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return };
        if egress.is_scheduled() {
            return match sending.sender.packets() {
                Some(_) => self.pump_packets(now, slot, fabric),
                None => self.pump_message(now, slot, fabric),
            };
        }
        if egress.is_split() {
            return self.pump_subflows(now, slot, fabric);
        }
        let stages = Stages::of(egress);
        if stages.is_limited {
            // A look is an attempt there, and may be refused: one that nobody waits for when a
            // segment leaves has no place.
            egress.queue.is_wanted = false;
        }
        if egress.place().is_some() {
            self.pump_pair(now, slot, fabric);
        } else {
            while self.send_next(now, slot, stages, fabric) {}
        }
        if stages.is_marked {
            self.keep_clock(now, slot, fabric);
        }
    }

    /// Hands down a segment, if everybody allows one: the virtual switch, the NIC's queue, the
    /// limits, and the transport. Returns whether to go on.
    pub(super) fn send_next(
        &mut self,
        now: Time,
        slot: u32,
        stages: Stages,
        fabric: &mut Fabric,
    ) -> bool {
        let Some(most) = self.most(now, slot, stages.is_switched, fabric) else { return false };
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return false };
        let Some(room) = egress.queue.room(now, most) else {
            wake_when_room(sending, &self.shared, fabric);
            return false;
        };
        let room = if sending.sender.is_probing() { self.shared.mss } else { room };
        if stages.is_marked
            && let Some(left) = self.send_instead(now, slot, room, fabric)
        {
            return left;
        }
        let leave = if stages.is_limited {
            let Some(leave) = self.ask(now, slot, room) else { return false };
            Some(leave)
        } else {
            None
        };
        let (sending, shared) = (self.senders.at(slot), &*self.shared);
        let Some(mut out) = sending.sender.poll_send(now, room, &shared.transport) else {
            return false;
        };
        if leave.is_some_and(|leave| leave.mark) && out.ecn == Ecn::Ect {
            out.ecn = Ecn::Ce;
        }
        let (mut first, cut) = (first_packet(now, slot, sending, &out), shared.cut_of(&out));
        let host = leaves_by(now, sending, (shared, cut), (&mut first, out.len));
        let segment = Segment { first, len: out.len };
        let (node, mut link) = at_host!(self, host, fabric);
        let Some(egress) = &mut sending.egress else { return false };
        let stream = Written(&sending.sender, &shared.transport);
        link.mapping = out.mapping.map(|mapping| (mapping, out.seq));
        link.collects = out.collects_telemetry();
        node.send_staged(now, egress, &stream, segment, leave.as_ref(), cut, &mut link);
        if leave.is_some_and(|leave| leave.reduce) {
            sending.sender.reduce(now, &shared.transport);
        }
        self.note_departures(fabric);
        if self.shared.is_metered {
            self.handed_down(now, slot, out.len, fabric);
        }
        true
    }

    /// Asks a host's limits about the transport's next segment, of at most `room` bytes. `None`:
    /// there is none, or it may not leave, and the transport knows.
    fn ask(&mut self, now: Time, slot: u32, room: u32) -> Option<Leave> {
        let shared = &*self.shared;
        let sending = self.senders.at(slot);
        let next = sending.sender.peek(now, room, &shared.transport)?;
        let seen = Seen {
            class: Some(sending.opening.class),
            payload: next.len,
            packets: next.len.div_ceil(shared.mss).max(1),
            options: 0,
            in_flight: if next.syn { 0 } else { sending.sender.packets_out(&shared.transport) },
            srtt: sending.sender.srtt(),
            ecn: next.ecn as u32,
        };
        let leave = self.hosts[sending.host as usize].node.ask(now, &seen);
        if !leave.refused {
            sending.sender.accepted();
            return Some(leave);
        }
        if next.syn {
            sending.sender.accepted();
            // The SYN counts as sent, and its timer is set.
            sending.sender.poll_send(now, room, &shared.transport);
            return None;
        }
        if leave.reduce {
            sending.sender.reduce(now, &shared.transport);
        }
        sending.sender.refused(now, leave.reduce, &shared.transport);
        None
    }

    /// Puts what is known to be lost in the place of the transport's next segment, of at most
    /// `room` bytes. `None`: there is nothing to put there. Otherwise whether it left: a limit may
    /// refuse it, as it may that segment.
    fn send_instead(
        &mut self,
        now: Time,
        slot: u32,
        room: u32,
        fabric: &mut Fabric,
    ) -> Option<bool> {
        let sending = self.senders.at(slot);
        let transport = &self.shared.transport;
        if !sending.sender.is_recovering() {
            return None;
        }
        let next = sending.sender.peek(now, room, transport)?;
        let forced = sending.egress.as_mut()?.marker()?.instead(next.seq, self.shared.mss)?;
        let leave = self.force_out(now, slot, forced, fabric)?;
        let (sending, transport) = (self.senders.at(slot), &self.shared.transport);
        if leave.refused {
            sending.sender.refused(now, leave.reduce, transport);
        } else {
            sending.sender.displaced(forced.len);
        }
        Some(!leave.refused)
    }

    /// The transport has sent what it may: forces a packet out if the clock would stop. A flow that
    /// a virtual switch holds forces none: its timer stands still too, and it is pumped when it may
    /// go on.
    pub(super) fn keep_clock(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        if !self.may_force(now, slot, fabric) {
            return;
        }
        let sending = self.senders.at(slot);
        let standing = Standing {
            una: sending.sender.acked(),
            nxt: sending.sender.sent(),
            more: sending.sender.would_send(&self.shared.transport) || sending.sender.is_held(),
            recovering: sending.sender.is_recovering(),
        };
        let Some(marker) = sending.egress.as_mut().and_then(|egress| egress.marker()) else {
            return;
        };
        if let Some(forced) = marker.after_ack(standing, self.shared.mss) {
            self.force_out(now, slot, forced, fabric);
        }
    }

    /// Sends one packet of what was sent before. It asks for no room in the NIC, as an
    /// acknowledgement does not. Where a limit refuses it nothing was sent, and the clock is to be
    /// kept running at the next event.
    fn force_out(
        &mut self,
        now: Time,
        slot: u32,
        forced: Forced,
        fabric: &mut Fabric,
    ) -> Option<Leave> {
        let shared = &*self.shared;
        let sending = self.senders.at(slot);
        let out = sending.sender.forced(forced.seq, forced.len, &shared.transport)?;
        let (mut first, cut) = (first_packet(now, slot, sending, &out), shared.cut_of(&out));
        let host = leaves_by(now, sending, (shared, cut), (&mut first, out.len));
        let segment = Segment { first, len: out.len };
        let class = Some(sending.opening.class);
        let (node, mut link) = at_host!(self, host, fabric);
        let egress = sending.egress.as_mut()?;
        debug_assert!(!egress.queue.is_held(), "a held flow forces nothing out");
        let stream = Written(&sending.sender, &shared.transport);
        link.collects = out.collects_telemetry();
        let importance = forced.importance;
        let leave = node.force(now, egress, &stream, segment, importance, || class, cut, &mut link);
        match egress.marker() {
            Some(marker) if leave.refused => marker.on_refusal(&forced),
            _ => sending.sender.forced_out(),
        }
        if leave.reduce {
            sending.sender.reduce(now, &shared.transport);
        }
        self.note_departures(fabric);
        if self.shared.is_metered && !leave.refused {
            self.handed_down(now, slot, out.len, fabric);
        }
        Some(leave)
    }
}
