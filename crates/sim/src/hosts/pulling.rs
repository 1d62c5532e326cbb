//! Connections whose host decides which of them sends next: queue pairs, which their NIC asks for
//! each packet, in a [`Round`], and messages, which are sent by their host's outbox.
//!
//! The NIC asks queue pairs when its link is free: acknowledgements and what TLT forces out go
//! first, as in HPCC's released simulator. So a queue pair decides what a packet carries, and
//! stamps it, as the packet leaves. Messages are sent while fewer than two packets of theirs are in
//! the NIC.
//!
//! Where a run has transports of other families, their packets wait in the NIC's queue, and a link
//! that is never free would starve queue pairs. There each queue pair has a packet in that queue
//! (`Config::nic_bound`), and the NIC asks none.
//!
//! Invariant: while a queue pair may send and no pause stops it, its NIC is transmitting, and asks
//! again when it is not. After every event of a message its host's outbox has its urgency.

use super::*;

impl Hosts {
    /// Asks a connection how urgently it would send now, for its host's order.
    pub(super) fn ask_for_turn(&mut self, now: Time, slot: u32) {
        let urgency = self.senders.at(slot).sender.urgency(now, &self.shared.transport);
        self.put_in_turn(slot, urgency);
    }

    /// Gives a connection its place in its host's order, or none if it may not send, or is held.
    pub(super) fn put_in_turn(&mut self, slot: u32, urgency: Option<u64>) {
        let sending = self.senders.at(slot);
        let is_held = sending.egress.as_ref().is_some_and(|egress| egress.queue.is_held());
        let urgency = urgency.filter(|_| !is_held);
        place(&mut self.hosts, &mut self.messages, sending, slot, urgency);
    }

    pub(super) fn leave_turn(&mut self, ended: &Sending, slot: u32) {
        place(&mut self.hosts, &mut self.messages, ended, slot, None);
    }

    /// A host's NIC may take more: those send whose turn it is.
    #[inline]
    pub(super) fn pull(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        while let Some(slot) = self.whose_turn(now, host, fabric) {
            self.serve(now, slot, fabric);
        }
    }

    /// The connection whose turn it is. Where that is none for now, asks to be called.
    fn whose_turn(&mut self, now: Time, host: u32, fabric: &mut Fabric) -> Option<u32> {
        if let Some(messages) = self.messages.get_mut(host as usize) {
            let (_, slot) = messages.outbox.next()?;
            let has_room = messages.egress.queue.room(now, self.shared.mss).is_some();
            if !has_room {
                self.wake_messages(host, fabric);
            }
            return has_room.then_some(slot);
        }
        if self.hosts[host as usize].round.is_empty() {
            return None;
        }
        let (node, mut link) = at_host!(self, host, fabric);
        let next = match node.link_free_at(now, &mut link) {
            Some(at) => Err(at),
            None => self.next_pair(now, host),
        };
        self.note_departures(fabric);
        if let Err(at) = next
            && at < Time::MAX
            && let Some(replaced) = self.hosts[host as usize].round.asks(now, at)
        {
            let key = Key::from(Due::Host(host, HostEvent::Pull));
            fabric.events.cancel(replaced, key);
            fabric.events.push(at, key);
        }
        next.ok()
    }

    /// The queue pair whose turn it is, or when to ask again: no pause ends before that.
    fn next_pair(&self, now: Time, host: u32) -> Result<u32, Time> {
        let Host { node, round, .. } = &self.hosts[host as usize];
        let resumes_at = std::cell::Cell::new(Time::MAX);
        let passes = |paused_until: Option<Time>| {
            resumes_at.set(resumes_at.get().min(paused_until.unwrap_or(Time::MAX)));
            paused_until.is_none()
        };
        let of_flow = |slot: u32| node.flow_resumes_at(now, self.senders.look(slot).hash);
        let next = round.next(
            |priority| passes(node.priority_resumes_at(now, priority)),
            |slot| passes(of_flow(slot)),
        );
        next.ok_or(resumes_at.get())
    }

    /// The NIC takes a packet of a connection.
    fn serve(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return };
        let stages = egress.conditions();
        if let Some(place) = egress.place() {
            self.hosts[sending.host as usize].round.serve(sending.priority, place);
        }
        let has_sent = self.send_next(now, slot, stages, fabric);
        if has_sent && !stages.is_limited && !stages.is_marked && !stages.is_switched {
            self.put_in_turn(slot, self.senders.look(slot).sender.urgency_still());
        } else {
            self.ask_for_turn(now, slot);
        }
        if !has_sent {
            // Its host's virtual switch lets it wait, and calls it.
            self.put_in_turn(slot, None);
        }
        if stages.is_marked {
            self.keep_clock(now, slot, fabric);
        }
        if self.keep_timer(slot, fabric) && stages.is_scheduled {
            self.messages_left(now, slot, fabric);
        }
    }

    /// A NIC asks its queue pairs, as it was due.
    pub fn on_pull(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        if self.hosts[host as usize].round.is_due(now) {
            self.pull(now, host, fabric);
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
            fabric.call(at, host, HostEvent::RoomForMessages);
        }
    }

    /// A packet of a host's messages has left its NIC.
    pub fn on_room_for_messages(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let queue = &mut self.messages[host as usize].egress.queue;
        if queue.woken(now) {
            queue.is_wanted = false;
            self.pull(now, host, fabric);
        }
    }
}

/// Gives a connection its place in its host's order, if it is in one.
fn place(
    hosts: &mut [Host],
    messages: &mut [Messages],
    it: &Sending,
    slot: u32,
    urgency: Option<u64>,
) {
    let Some(egress) = &it.egress else { return };
    if let Some(place) = egress.place() {
        let round = &mut hosts[it.host as usize].round;
        round.put(it.priority, place, slot, urgency.is_some());
    } else if egress.conditions().is_scheduled {
        messages[it.host as usize].outbox.put(it.opening.flow, slot, urgency);
    }
}
