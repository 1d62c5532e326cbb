//! Messages (Homa): what a host decides over all of its own that go out, and over all that come in.
//!
//! On the way out the host's outbox says whose packet is next, and what the NIC holds of them is
//! one queue of the host's, not one of each connection. On the way in the host's schedule says
//! whose turn it is to be granted, after each piece of a message that waits for grants.
//!
//! A packet without payload goes to the NIC at once, with the highest priority, and asks for no
//! room.
//!
//! Invariant: after every event of a message its host's outbox knows how urgent it is, and its
//! receiver's schedule whether it waits for grants.

use super::*;
use crate::endpoint::homa::{Asked, Came, NIC_PACKETS, Outbox, Schedule, Stands};
use millpond_core::counters::Named;
use millpond_core::host::{EgressStages, Segment};
use millpond_core::packet::homa::CONTROL_PRIORITY;

/// The state that a host has beside its connections, where messages are sent.
pub(super) struct Messages {
    outbox: Outbox,
    /// The part of its messages that is in the NIC.
    egress: Box<Egress>,
    schedule: Schedule,
}

/// The counts of the messages of a partition's hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageCounts {
    grants: u64,
    resends: u64,
    busies: u64,
    pings: u64,
    unknowns: u64,
    aborted: u64,
}

impl MessageCounts {
    pub(super) fn tell(&self, named: &mut Named) {
        named.add("grants", self.grants);
        named.add("resends", self.resends);
        named.add("busy", self.busies);
        named.add("pings", self.pings);
        named.add("unknown", self.unknowns);
        named.add("aborted", self.aborted);
    }
}

/// Of each of so many hosts, if messages are sent in this run.
pub(super) fn of_hosts(shared: &Shared, count: usize) -> Vec<Messages> {
    let Some(cfg) = shared.transport.homa.first() else { return Vec::new() };
    let of_host = |_| {
        let bound = Some(NIC_PACKETS * u64::from(cfg.mss));
        let egress =
            Egress::new(bound, EgressStages::default()).expect("a bound is something to keep");
        Messages { outbox: Outbox::default(), egress, schedule: Schedule::default() }
    };
    (0..count).map(of_host).collect()
}

impl Hosts {
    /// As `pump`, of a connection that sends messages.
    pub(super) fn pump_message(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let (host, flow) = (sending.host, sending.opening.flow);
        let Some(message) = sending.sender.message() else { return };
        message.begin(now, &self.shared.transport.homa);
        let (number, urgency) = (message.number(), message.urgency());
        let urgency = urgency
            .filter(|_| sending.egress.as_ref().is_none_or(|egress| !egress.queue.is_held()));
        if message.takes_ping() {
            self.message_counts.pings += 1;
            self.say(now, slot, Body::Ping { slot, number }, fabric);
        }
        self.messages[host as usize].outbox.put(flow, slot, urgency);
        self.pump_messages(now, host, fabric);
    }

    /// A message may not send: others of its host go before it.
    pub(super) fn put_off(&mut self, slot: u32) {
        let sending = self.senders.at(slot);
        self.messages[sending.host as usize].outbox.put(sending.opening.flow, slot, None);
    }

    /// Hands down the packets of a host's messages that its NIC has room for.
    fn pump_messages(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let cut = self.shared.cut();
        loop {
            let Messages { outbox, egress, .. } = &mut self.messages[host as usize];
            let Some((flow, slot)) = outbox.next() else { return };
            if egress.queue.room(now, cut.mss).is_none() {
                return self.wake_messages(host, fabric);
            }
            let sending = self.senders.at(slot);
            let Some(message) = sending.sender.message() else { return };
            let piece = message.next(now, &self.shared.transport.homa);
            outbox.put(flow, slot, message.urgency());
            let Some(piece) = piece else { continue };
            sending.first_sent.get_or_insert(now);
            let number = piece.number;
            let body = Body::HomaData { offset: piece.offset, length: piece.length, slot, number };
            let mut first = Way::of_sender(sending).packet(body, now, 0, control());
            first.class = first.class.with_priority(piece.priority);
            first.flags = if piece.is_again { flags::RETRANSMISSION } else { 0 };
            let segment = Segment { first, len: piece.len };
            let (node, mut link) = at_host!(self, host, fabric);
            let is_awaited = sending.is_awaited;
            node.send(now, Some(&mut egress.queue), segment, cut, &mut link);
            self.note_departures(fabric);
            if is_awaited {
                self.messages_left(now, slot, fabric);
            }
        }
    }

    /// A packet of a host's messages leaves its NIC then.
    #[cold]
    pub(super) fn message_leaves(&mut self, host: u32, at: Time, fabric: &mut Fabric) {
        let nic = self.hosts[host as usize].id;
        let queue = &mut self.messages[host as usize].egress.queue;
        queue.leaves(nic, at);
        if queue.is_wanted {
            self.wake_messages(host, fabric);
        }
    }

    /// Asks for a call when a packet of a host's messages has left.
    fn wake_messages(&mut self, host: u32, fabric: &mut Fabric) {
        if let Some(at) = self.messages[host as usize].egress.queue.wake(true) {
            fabric.events.push(at, Due::Host(host, HostEvent::RoomForMessages).into());
        }
    }

    /// A packet of a host's messages has left its NIC.
    pub fn on_room_for_messages(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let queue = &mut self.messages[host as usize].egress.queue;
        if queue.woken(now) {
            queue.is_wanted = false;
            self.pump_messages(now, host, fabric);
        }
    }

    /// A sending end says something that is no data.
    fn say(&mut self, now: Time, slot: u32, body: Body, fabric: &mut Fabric) {
        let size = self.shared.header;
        let sending = self.senders.at(slot);
        let (host, packet) =
            (sending.host, Way::of_sender(sending).packet(body, now, size, control()));
        let (node, mut link) = at_host!(self, host, fabric);
        node.answer(now, packet, None, || None, &mut link);
        self.note_departures(fabric);
    }

    /// A receiving end says something.
    fn reply(&mut self, now: Time, slot: u32, body: Body, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let packet = Way::of_receiver(receiving).packet(body, now, self.shared.header, control());
        let (node, mut link) = at_host!(self, receiving.host, fabric);
        node.answer(now, packet, None, || None, &mut link);
        self.note_departures(fabric);
    }

    /// A piece of a message has arrived.
    #[inline(never)]
    pub(super) fn on_message_data(
        &mut self,
        now: Time,
        host: u32,
        packet: &Packet,
        fabric: &mut Fabric,
    ) {
        let slot = wire::slot_of(&self.receivers, packet);
        let Body::HomaData { offset, length, number, .. } = packet.body else { return };
        let Some(it) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        receiving::note_way(now, it, packet);
        let Some(message) = it.receiver.message() else { return };
        let is_ahead = u64::from(offset) > message.received();
        let piece = (offset, u32::from(packet.payload));
        let came = message.on_data(now, (number, length), piece, &self.shared.transport.homa);
        let (delivered, wants) =
            (message.delivered(), message.wants_grants().then(|| message.remaining()));
        it.out_of_order += u32::from(is_ahead && came == Came::Part);
        let news = delivered - it.delivered;
        if now >= self.shared.plan.warm_up {
            it.measured += news;
        }
        it.delivered = delivered;
        let is_complete = news > 0 && it.delivered >= it.ends;
        receiving::arm(it, fabric);
        if came != Came::Part {
            self.reply(now, slot, Body::Done { slot, number }, fabric);
        }
        let schedule = &mut self.messages[host as usize].schedule;
        if wants.is_some() || schedule.has(packet.flow) {
            schedule.put(packet.flow, (packet.src, slot), wants);
            self.grant(now, host, fabric);
        }
        if is_complete {
            self.complete(now, slot, fabric);
        }
    }

    /// Grants those whose turn it is at a host.
    fn grant(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(cfg) = shared.transport.homa.first() else { return };
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            let turns = self.messages[host as usize].schedule.turns(cfg.overcommitment);
            for (rank, (flow, slot)) in turns.iter().enumerate() {
                let it = self.receivers.at(*slot);
                let src = it.opening.src;
                let Some(message) = it.receiver.message() else { continue };
                let priority = cfg.scheduled_priority(rank, turns.len());
                let granted = message.grant(now, priority, &shared.transport.homa);
                let (number, wants) = (message.number(), message.wants_grants());
                receiving::arm(it, fabric);
                if let Some(upto) = granted {
                    self.message_counts.grants += 1;
                    self.reply(
                        now,
                        *slot,
                        Body::Grant { upto, slot: *slot, number, priority },
                        fabric,
                    );
                }
                if !wants {
                    // It waits for nothing more: another one's turn.
                    self.messages[host as usize].schedule.put(*flow, (src, *slot), None);
                    goes_on = true;
                }
            }
        }
    }

    /// The timer of a message that comes in has fired: asks for what is missing, or gives it up.
    pub(super) fn after_message_timer(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let cfg = &self.shared.transport.homa;
        let receiving = self.receivers.at(slot);
        let (host, flow, src) = (receiving.host, receiving.opening.flow, receiving.opening.src);
        let Some(message) = receiving.receiver.message() else { return };
        let number = message.number();
        if message.takes_asks() {
            for Asked { from, len, priority } in message.missing(cfg) {
                self.message_counts.resends += 1;
                self.reply(now, slot, Body::Resend { from, len, slot, number, priority }, fabric);
            }
        } else if message.is_given_up(cfg) {
            self.messages[host as usize].schedule.put(flow, (src, slot), None);
            self.grant(now, host, fabric);
        }
    }

    /// Something about a message has arrived that is no data.
    #[inline(never)]
    pub(super) fn on_message_control(
        &mut self,
        now: Time,
        host: u32,
        packet: &Packet,
        fabric: &mut Fabric,
    ) {
        match packet.body {
            Body::Ping { number, .. } => self.on_ping(now, host, packet, number, fabric),
            Body::Busy { number, .. } => {
                let slot = wire::slot_of(&self.receivers, packet);
                let Some(it) = self.receivers.get(slot, packet.flow) else { return };
                let Some(message) = it.receiver.message() else { return };
                message.on_busy(now, number, &self.shared.transport.homa);
                receiving::arm(it, fabric);
            }
            _ => self.on_word_of_receiver(now, packet, fabric),
        }
    }

    /// A sender asks whether its message is there. The answer to one whose connection is over is as
    /// if it still were.
    fn on_ping(&mut self, now: Time, host: u32, packet: &Packet, number: u16, fabric: &mut Fabric) {
        let slot = wire::slot_of(&self.receivers, packet);
        let Some(receiving) = self.receivers.get(slot, packet.flow) else {
            return self.on_stray(now, host, packet, fabric);
        };
        let Some(message) = receiving.receiver.message() else { return };
        let body = match message.stands(number) {
            Stands::Done => Body::Done { slot, number },
            Stands::Unknown => Body::Unknown { slot, number },
            Stands::Granted { upto, priority } => Body::Grant { upto, slot, number, priority },
        };
        self.message_counts.unknowns += u64::from(matches!(body, Body::Unknown { .. }));
        self.reply(now, slot, body, fabric);
    }

    /// A grant, a RESEND, or an answer to a PING or to the whole message.
    fn on_word_of_receiver(&mut self, now: Time, packet: &Packet, fabric: &mut Fabric) {
        let Some(sending) = self.senders.get(packet.peer, packet.flow) else { return };
        sending.peer = packet.slot();
        let (slot, host, cfg) = (packet.peer, sending.host, &self.shared.transport.homa);
        let is_frozen = sending.is_frozen(&self.shared);
        let Some(message) = sending.sender.message() else { return };
        let mut busy = None;
        match packet.body {
            Body::Grant { upto, number, priority, .. } => {
                message.on_grant(now, number, upto, priority, cfg)
            }
            Body::Resend { from, len, number, priority, .. } => {
                let is_busy = match is_frozen {
                    true => message.puts_off(now, number, cfg),
                    false => message.on_resend(now, number, Asked { from, len, priority }, cfg),
                };
                busy = is_busy.then_some(Body::Busy { slot, number });
            }
            Body::Done { number, .. } => message.on_done(now, number, cfg),
            Body::Unknown { number, .. } => message.on_unknown(now, number, cfg),
            _ => {}
        }
        if let Some(body) = busy {
            self.message_counts.busies += 1;
            self.say(now, slot, body, fabric);
        }
        let sending = self.senders.at(slot);
        if sending.sender.is_done() {
            self.messages[host as usize].outbox.put(packet.flow, slot, None);
        }
        self.go_on(now, packet, fabric);
    }

    /// Counts what an end has given up, as it is freed.
    pub(super) fn count_aborted(&mut self, aborted: u32) {
        self.message_counts.aborted += u64::from(aborted);
    }
}

/// The class of what has no payload.
fn control() -> TrafficClass {
    TrafficClass::default().with_priority(CONTROL_PRIORITY)
}
