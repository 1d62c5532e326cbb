//! Sending through the stages of a host: limits, importance, ranks, labels.
//!
//! A refusal by a limit is a local failure to send: nothing was sent, nothing is lost, and the
//! transport keeps the segment. So it is with what TLT forces out. A pure ACK that is refused is
//! gone, as in the kernel; a SYN is sent again by its timer.
//!
//! One loop hands down for all combinations of stages. A limit that never acts therefore changes
//! nothing.
//!
//! A connection's marker (TLT) may put a lost range in the place of the transport's next segment;
//! and when the transport has sent what it may and the clock would stop, it forces a packet out,
//! whatever window and NIC allow.
//!
//! Invariant: a connection that is marked has an important packet in flight, or its echo, while
//! anything of it is unacknowledged.

use super::nic_paths::{leaves_by, wake_split};
use super::sending::{first_packet, wake_when_room};
use super::*;
use crate::endpoint::uet::entropy;
use crate::endpoint::{Beside, Config};
use millpond_core::host::{Conditions, Leave, Seen, Segment, Stream};
use millpond_core::importance::{Forced, Standing};
use millpond_core::packet::homa::CONTROL_PRIORITY;

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
    /// As `pump`, of a connection that has stages, or takes turns with others.
    #[inline(never)]
    pub(super) fn pump_staged(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return };
        let stages = egress.conditions();
        if stages.is_limited {
            // A look is an attempt there, and may be refused: one that nobody waits for when a
            // segment leaves has no place.
            egress.queue.is_wanted = false;
        }
        let (host, takes_turns) = (sending.host, stages.is_pulled || stages.is_scheduled);
        if takes_turns {
            self.ask_for_turn(now, slot);
        } else {
            while self.send_next(now, slot, stages, fabric) {}
        }
        if stages.is_by_packets {
            self.send_beside(now, slot, fabric);
        }
        if takes_turns {
            self.pull(now, host, fabric);
        }
        if stages.is_marked {
            self.keep_clock(now, slot, fabric);
        }
    }

    /// Sends what a connection has beside its data.
    fn send_beside(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let host = sending.host;
        if let Some(nic) = self.nic_senders.get_mut(host as usize) {
            sending.sender.shares_nic(1 + nic.count(now));
        }
        if let Some(beside) = sending.sender.beside(now, slot, &self.shared.transport) {
            let way = Way::of_sender(sending);
            self.put_beside(now, host, way, beside, fabric);
        }
    }

    /// A packet without payload that asks for no room leaves at once, with the highest priority.
    pub(crate) fn put_beside(
        &mut self,
        now: Time,
        host: u32,
        way: Way,
        beside: Beside,
        fabric: &mut Fabric,
    ) {
        let Beside { body, stamp, value, flags, selective } = beside;
        let class = TrafficClass::default().with_priority(CONTROL_PRIORITY);
        let mut packet = way.packet(body, stamp, self.shared.header, class);
        packet.flags = flags;
        if let Some(value) = value {
            packet.entropy = entropy(packet.entropy, value);
        }
        if let Some(selective) = selective {
            fabric.packets.attach(&mut packet, selective);
        }
        self.beside[packet.kind() as usize] += 1;
        let (node, mut link) = at_host!(self, host, fabric);
        node.answer(now, packet, None, || None, &mut link);
        self.note_departures(fabric);
    }

    /// How much a connection may hand down now, at most `most`. Where that is nothing, it is called
    /// when there is room. One whose turn it is has room.
    fn room(
        &mut self,
        now: Time,
        slot: u32,
        stages: Conditions,
        most: u32,
        fabric: &mut Fabric,
    ) -> Option<u32> {
        let sending = self.senders.at(slot);
        if stages.is_scheduled {
            return Some(most);
        }
        let room = match &mut sending.paths {
            Some(paths) if stages.is_split => {
                let (room, full) = paths.room(now, most);
                sending.sender.pass_by(paths.subflows(full));
                room
            }
            _ => sending.egress.as_mut()?.queue.room(now, most),
        };
        if room.is_none() {
            match stages.is_split {
                true => wake_split(now, sending, &self.shared, fabric),
                false => wake_when_room(sending, &self.shared, fabric),
            }
        }
        room
    }

    /// Hands down a segment, if everybody allows one: the virtual switch, the NIC's queue, the
    /// limits, and the transport. Returns whether to go on.
    pub(super) fn send_next(
        &mut self,
        now: Time,
        slot: u32,
        stages: Conditions,
        fabric: &mut Fabric,
    ) -> bool {
        let most = match stages.is_by_packets {
            true => Some(self.shared.mss),
            false => self.most(now, slot, stages.is_switched, fabric),
        };
        let Some(most) = most else { return false };
        let Some(room) = self.room(now, slot, stages, most, fabric) else { return false };
        let sending = self.senders.at(slot);
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
        if let Some(nic) = self.nic_senders.get_mut(sending.host as usize) {
            sending.sender.shares_nic(1 + nic.count(now));
        }
        let Some(mut out) = sending.sender.poll_send(now, room, &shared.transport) else {
            if stages.is_split {
                wake_split(now, sending, shared, fabric);
            }
            return false;
        };
        if leave.is_some_and(|leave| leave.mark) && out.ecn == Ecn::Ect {
            out.ecn = Ecn::Ce;
        }
        self.hand_down(now, slot, stages, out, leave, fabric);
        true
    }

    /// A segment of a connection goes through the stages to its NIC.
    #[inline(never)]
    pub(super) fn hand_down(
        &mut self,
        now: Time,
        slot: u32,
        stages: Conditions,
        out: Outgoing,
        leave: Option<Leave>,
        fabric: &mut Fabric,
    ) {
        let (sending, shared) = (self.senders.at(slot), &*self.shared);
        let mut first = first_packet(now, slot, sending, &out);
        let cut = shared.cut_of(&out);
        let host = leaves_by(now, sending, shared, &out, &mut first);
        let segment = Segment { first, len: out.len };
        let (node, mut link) = at_host!(self, host, fabric);
        let egress = match (&mut sending.paths, &mut sending.egress) {
            (Some(paths), _) if stages.is_split => paths.egress(out.mapping),
            _ if stages.is_scheduled => &mut self.messages[host as usize].egress,
            (_, Some(egress)) => egress,
            _ => return,
        };
        let stream = Written(&sending.sender, &shared.transport);
        link.mapping = out.mapping.map(|mapping| (mapping, out.seq));
        link.collects = out.collects_telemetry();
        let departs =
            node.send_staged(now, egress, &stream, segment, leave.as_ref(), cut, &mut link);
        if leave.is_some_and(|leave| leave.reduce) {
            sending.sender.reduce(now, &shared.transport);
        }
        if stages.is_by_packets
            && !stages.is_scheduled
            && let Some(nic) = self.nic_senders.get_mut(host as usize)
        {
            nic.joins(departs);
        }
        self.note_departures(fabric);
        if self.shared.is_metered && stages.is_switched {
            self.handed_down(now, slot, out.len, fabric);
        }
    }

    /// Asks a host's limits about the transport's next segment, of at most `room` bytes. `None`:
    /// there is none, or it may not leave, and the transport has the refusal.
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
            nxt: sending.sender.sent_in_order(),
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
        let mut first = first_packet(now, slot, sending, &out);
        let cut = shared.cut_of(&out);
        let host = leaves_by(now, sending, shared, &out, &mut first);
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
