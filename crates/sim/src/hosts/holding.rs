//! Flows behind a virtual switch whose peers decide who may send: one that was asked to pause, or
//! waits for a credit or for its turn at a rate, hands nothing down, and its timer stands still.
//! The others take turns at the NIC: it is handed more only while less than `nic-limit` waits in
//! it, or what a pause cannot stop any more would have no bound.
//!
//! A message (Homa) is held by leaving its host's outbox. It needs no turn: a host has two packets
//! of its messages in its NIC at most. A host that holds one answers a RESEND with BUSY, and its
//! PINGs wait.
//!
//! A handshake is exempt: a connection that opens by one learns that it is held when that is over.
//! Acknowledgements are another connection's direction, and never held.
//!
//! Invariant: a flow is held exactly while its host's overlay holds it, from its first data on; one
//! that may go on is pumped at once, several of one record in the order of their numbers.

use super::*;
use millpond_core::overlay::Change;
use millpond_core::packet::overlay::Whom;

impl Sending {
    /// Whether its retransmission timer stands still.
    pub(super) fn is_frozen(&self, shared: &Shared) -> bool {
        shared.freezes
            && self.sender.freezes()
            && self.egress.as_ref().is_some_and(|egress| egress.queue.is_held())
    }
}

impl Hosts {
    /// The longest segment that a connection may hand down now, if any.
    #[inline(always)] // hosts without such a switch ask it for each segment
    pub(super) fn most(
        &mut self,
        now: Time,
        slot: u32,
        is_switched: bool,
        fabric: &mut Fabric,
    ) -> Option<u32> {
        if !is_switched {
            return Some(self.shared.segment_max);
        }
        if !self.may_leave(slot) {
            return None;
        }
        match self.shared.is_admitted {
            false => Some(self.shared.segment_max),
            true => self.admitted(now, slot, fabric),
        }
    }

    /// The bytes that a connection may hand down by credits or rates; where these are none it is
    /// held. A handshake is exempt.
    #[inline(never)]
    fn admitted(&mut self, now: Time, slot: u32, fabric: &mut Fabric) -> Option<u32> {
        let shared = &*self.shared;
        let sending = self.senders.at(slot);
        let next = sending.sender.peek(now, shared.segment_max, &shared.transport)?;
        if next.syn {
            return Some(shared.segment_max);
        }
        let backlog = sending.sender.written().saturating_sub(sending.sender.sent_in_order());
        let wants = backlog.max(u64::from(next.len)).div_ceil(u64::from(shared.mss)).max(1);
        let wants = u32::try_from(wants).unwrap_or(u32::MAX);
        let packets = self.ask_for(now, slot, wants, fabric);
        let shared = &*self.shared;
        (packets > 0).then(|| packets.saturating_mul(shared.mss).min(shared.segment_max))
    }

    /// Whether a connection may hand down a packet that TLT forces out, beyond its window.
    pub(super) fn may_force(&mut self, now: Time, slot: u32, fabric: &mut Fabric) -> bool {
        let sending = self.senders.at(slot);
        if !sending.egress.as_ref().is_some_and(|egress| egress.conditions().is_switched) {
            return true;
        }
        if !self.may_leave(slot) {
            return false;
        }
        if !self.shared.is_admitted || self.senders.at(slot).sender.sent_in_order() == 0 {
            return true;
        }
        self.ask_for(now, slot, 1, fabric) > 0
    }

    /// How many packets a connection may hand down by credits or rates, of those that it would;
    /// where that is none it is held.
    fn ask_for(&mut self, now: Time, slot: u32, wants: u32, fabric: &mut Fabric) -> u32 {
        let sending = self.senders.at(slot);
        let Opening { class, flow, dst, .. } = sending.opening;
        let (node, mut link) = at_host!(self, sending.host, fabric);
        let packets = node.admit(now, class, flow, wants, dst, &mut link);
        if packets == 0
            && let Some(egress) = &mut sending.egress
        {
            egress.queue.hold(now);
        }
        packets
    }

    /// Whether a connection may hand down a segment; if its NIC is full, it waits for its turn.
    fn may_leave(&mut self, slot: u32) -> bool {
        let sending = self.senders.at(slot);
        let Some(egress) = &mut sending.egress else { return true };
        if egress.queue.is_held() {
            return false;
        }
        let host = &mut self.hosts[sending.host as usize];
        if host.node.waiting() < self.shared.switch_limit {
            return true;
        }
        if !std::mem::replace(&mut egress.queue.is_queued, true) {
            host.turns.push_back((slot, sending.opening.flow));
        }
        false
    }

    /// A connection has handed down a segment, of which its host's switch is notified: it may be
    /// held until more may leave.
    #[cold]
    pub(super) fn handed_down(&mut self, now: Time, slot: u32, len: u32, fabric: &mut Fabric) {
        let packets = len.div_ceil(self.shared.mss);
        let sending = self.senders.at(slot);
        let Opening { class, flow, dst, .. } = sending.opening;
        let host = sending.host;
        let (node, mut link) = at_host!(self, host, fabric);
        node.handed_down(now, class, flow, packets, dst, &mut link);
        // A connection that asks before each segment is held by the answer. Others would be pumped
        // from in here.
        if !self.shared.is_admitted {
            self.obey(now, host, fabric);
        }
    }

    /// Less may wait in a host's NIC: those go on whose turn it is.
    #[inline(never)]
    pub(super) fn take_turns(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        while self.hosts[host as usize].node.waiting() < self.shared.switch_limit {
            let Some((slot, flow)) = self.hosts[host as usize].turns.pop_front() else { return };
            let Some(sending) = self.senders.get(slot, flow) else { continue };
            if let Some(egress) = &mut sending.egress {
                egress.queue.is_queued = false;
            }
            self.pump(now, slot, fabric);
        }
    }

    /// Does what other switches have ordered a host to do.
    pub(super) fn obey(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        while let Some(change) = self.hosts[host as usize].node.next_change(now) {
            for slot in self.covered(host, &change) {
                self.settle_held(now, slot, fabric);
            }
        }
    }

    /// The connections that a change is about, in the order of their flows.
    fn covered(&self, host: u32, change: &Change) -> Vec<u32> {
        if let Whom::Flow { flow, .. } = Whom::of(&change.target) {
            return self.senders.slot_of(flow).into_iter().collect();
        }
        let is_meant = |it: &Sending| it.host == host && it.opening.dst == change.peer;
        let mut flows: Vec<FlowId> =
            self.senders.iter().filter(|(_, it)| is_meant(it)).map(|(flow, _)| flow).collect();
        flows.sort_unstable();
        flows.into_iter().filter_map(|flow| self.senders.slot_of(flow)).collect()
    }

    /// Holds a connection, or lets it go on, as its host was ordered.
    #[inline(never)]
    pub(super) fn settle_held(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let sending = self.senders.at(slot);
        let Opening { class, flow, dst, .. } = sending.opening;
        let is_held = self.hosts[sending.host as usize].node.is_held(class, flow, dst);
        let Some(egress) = &mut sending.egress else { return };
        match (egress.queue.held_since(), is_held) {
            (None, true) => {
                egress.queue.hold(now);
                if egress.conditions().is_scheduled {
                    self.put_in_turn(slot, None);
                }
            }
            (Some(since), false) => {
                egress.queue.release();
                let held = now.saturating_sub(since);
                self.counters.held += held;
                if self.shared.freezes {
                    sending.sender.thaw(now, held);
                }
                self.pump(now, slot, fabric);
            }
            _ => (),
        }
    }
}
