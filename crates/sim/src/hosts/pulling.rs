//! Queue pairs whose NIC asks them for each packet, in a [`Round`].
//!
//! The NIC asks when its link is free: acknowledgements and what TLT forces out go first, as in
//! HPCC's released simulator. So a queue pair decides what a packet carries, and stamps it, as the
//! packet leaves.
//!
//! Where a run has transports of other families, their packets wait in the NIC's queue, and a link
//! that is never free would starve queue pairs. There each queue pair has a packet in that queue
//! (`Config::nic_bound`), and the NIC asks none.
//!
//! Invariant: while a queue pair may send and no pause stops it, its NIC is transmitting, and asks
//! again when it is not.

use super::staged::Stages;
use super::*;

impl Hosts {
    /// As `pump`, of a queue pair whose NIC asks for its packets.
    pub(super) fn pump_pair(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        self.look_at_pair(now, slot);
        let host = self.senders.at(slot).host;
        self.pull(now, host, fabric);
    }

    /// Whether a queue pair may send now, for its host's round.
    fn look_at_pair(&mut self, now: Time, slot: u32) {
        let is_ready = self.senders.at(slot).sender.is_ready(now, &self.shared.transport);
        self.put_in_round(slot, is_ready);
    }

    /// Puts a queue pair in its host's round if it is ready to send and not held, and else takes
    /// it out.
    fn put_in_round(&mut self, slot: u32, is_ready: bool) {
        let sending = self.senders.at(slot);
        let Some(egress) = &sending.egress else { return };
        let Some(place) = egress.place() else { return };
        let may_send = is_ready && !egress.queue.is_held();
        self.hosts[sending.host as usize].round.put(sending.priority, (place, slot), may_send);
    }

    /// A NIC may be free: it asks the queue pairs of its host.
    #[inline]
    pub(super) fn pull(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        while !self.hosts[host as usize].round.is_empty() {
            let (node, mut link) = at_host!(self, host, fabric);
            let next = match node.link_free_at(now, &mut link) {
                Some(at) => Err(at),
                None => self.next_pair(now, host),
            };
            self.note_departures(fabric);
            match next {
                Ok(slot) => self.serve_pair(now, slot, fabric),
                Err(Time::MAX) => return,
                Err(at) => {
                    if let Some(replaced) = self.hosts[host as usize].round.asks(now, at) {
                        let key = Key::from(Due::Host(host, HostEvent::Pull));
                        fabric.events.cancel(replaced, key);
                        fabric.events.push(at, key);
                    }
                    return;
                }
            }
        }
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

    /// The NIC takes a packet of a queue pair.
    fn serve_pair(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return };
        let Some(place) = egress.place() else { return };
        let stages = Stages::of(egress);
        let (host, priority) = (sending.host, sending.priority);
        self.hosts[host as usize].round.serve(priority, place);
        let has_sent = self.send_next(now, slot, stages, fabric);
        if has_sent && stages.are_none() {
            self.put_in_round(slot, self.senders.look(slot).sender.is_ready_still());
        } else {
            self.look_at_pair(now, slot);
        }
        if !has_sent {
            // Its host's virtual switch lets it wait, and calls it.
            self.hosts[host as usize].round.put(priority, (place, slot), false);
        }
        if stages.is_marked {
            self.keep_clock(now, slot, fabric);
        }
        self.keep_timer(slot, fabric);
    }

    /// A NIC asks its queue pairs, as it was due.
    pub fn on_pull(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        if self.hosts[host as usize].round.is_due(now) {
            self.pull(now, host, fabric);
        }
    }

    /// A queue pair is over.
    pub(super) fn leave_round(&mut self, ended: &Sending, slot: u32) {
        if let Some(place) = ended.egress.as_ref().and_then(|egress| egress.place()) {
            self.hosts[ended.host as usize].round.put(ended.priority, (place, slot), false);
        }
    }
}
