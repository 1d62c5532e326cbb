//! Limits at a host: what its virtual queues make of segments that leave and of packets that arrive.
//!
//! A super-segment meets them where the kernel's cgroup hook is: the transport has built it, the NIC has not cut it. A
//! refusal is a local failure to send: nothing was sent, nothing is lost, and the transport keeps the segment. A pure ACK
//! that is refused is gone, as in the kernel; a SYN is sent again by its timer. Packets that arrive are decided on one by
//! one, since nothing merges them here; there a drop is a loss.
//!
//! Hosts without limits never come here: a flow of a host with limits has no room in the eyes of the ordinary
//! [`pump`](Hosts::pump), its NIC asks, and packets that arrive come by the way of links that fail.
//!
//! Invariant: the audit holds: what is refused is not injected, what waits is queued, what is dropped on arrival is
//! dropped for the reason `limit`.

use super::sending::{advance, first_packet, size_packet, transmit_begun, wake_when_room};
use super::*;
use crate::fabric::Receiver as LinkEnd;
use crate::limiter::{LimitCounts, Seen};
use millpond_core::counters::DropReason;
use millpond_core::limit::Verdict;

impl Hosts {
    /// As `pump`, of a flow whose host has limits: each segment is looked at, decided on, and only then sent.
    #[cold]
    pub(super) fn pump_at_limit(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        // To be looked at when a segment leaves only if it waits for that: a look is an attempt here, and may be refused.
        if let Some(share) = &mut self.senders.at(slot).share {
            share.wanted = false;
        }
        loop {
            let shared = &*self.shared;
            let it = self.senders.at(slot);
            let Some(share) = &mut it.share else { return };
            let Some(room) = share.room_at_limit(now, shared.segment_max) else {
                return wake_when_room(it, shared, fabric);
            };
            let room = if it.sender.is_probing() { shared.mss } else { room };
            let Some(next) = it.sender.peek(now, room, &shared.transport) else { return };
            let Some(limited) = self.hosts[it.host as usize].nic.limited() else { return };
            let seen = Seen {
                class: Some(it.opening.class),
                payload: next.len,
                packets: next.len.div_ceil(shared.mss).max(1),
                in_flight: if next.syn { 0 } else { it.sender.packets_out(&shared.transport) },
                srtt: it.sender.srtt(),
                ecn: next.ecn as u32,
            };
            let leave = limited.limiter.leave(now, &seen);
            if leave.refused && !next.syn {
                if leave.reduce {
                    it.sender.reduce(now, &shared.transport);
                }
                it.sender.refused(now, leave.reduce, &shared.transport);
                return;
            }
            it.sender.accepted();
            let Some(mut segment) = it.sender.poll_send(now, room, &shared.transport) else { return };
            if leave.refused {
                return; // a SYN: its timer is set
            }
            if leave.mark && segment.ecn == Ecn::Ect {
                segment.ecn = Ecn::Ce;
            }
            let packets = cut(now, slot, it, &segment, shared, fabric);
            if let Some(share) = &mut it.share {
                share.add(segment.len, Time::MAX);
            }
            if leave.reduce {
                it.sender.reduce(now, &shared.transport);
            }
            let host = it.host;
            if leave.at > now {
                let order = limited.limiter.hold(&leave, packets);
                fabric.events.push(leave.at, Key::new(Class::Release, host, order));
            } else {
                self.give(now, host, packets, fabric);
            }
        }
    }

    /// One packet of a host with limits: an acknowledgement, or an answer to a handshake.
    #[cold]
    pub(super) fn put_at_limit(&mut self, now: Time, host: u32, id: PacketId, fabric: &mut Fabric) {
        let flow = fabric.packets[id].flow;
        let seen = Seen {
            class: self.class_of(flow),
            payload: fabric.packets[id].payload as u32,
            packets: 1,
            // The direction that an acknowledgement answers has a connection of its own here, and sends nothing.
            in_flight: 0,
            srtt: Time::ZERO,
            ecn: fabric.packets[id].ecn() as u32,
        };
        let Some(limited) = self.hosts[host as usize].nic.limited() else { return };
        let leave = limited.limiter.leave(now, &seen);
        if leave.refused {
            fabric.withdraw(id);
        } else if leave.at > now {
            let order = limited.limiter.hold(&leave, vec![id]);
            fabric.events.push(leave.at, Key::new(Class::Release, host, order));
        } else {
            self.give(now, host, vec![id], fabric);
        }
    }

    /// What was held back is due.
    pub fn on_release(&mut self, now: Time, host: u32, order: u32, fabric: &mut Fabric) {
        let Some(limited) = self.hosts[host as usize].nic.limited() else { return };
        let packets = limited.limiter.release(now, order);
        self.give(now, host, packets, fabric);
    }

    /// Gives packets to the NIC behind the limits, and tells their flow when the segment leaves.
    fn give(&mut self, now: Time, host: u32, packets: Vec<PacketId>, fabric: &mut Fabric) {
        let it = &mut self.hosts[host as usize];
        let Some(limited) = it.nic.limited() else { return };
        for id in packets {
            let packet = fabric.packets[id];
            match limited.nic.offer(now, it.out, id, fabric) {
                Offered::Waits(Some((id, departs))) => self.begun.push(Departure { out: it.out, id, departs }),
                Offered::Waits(None) | Offered::Asks => {}
                Offered::Departs(departs) if packet.has(flags::LAST) => {
                    if let Some(sending) = self.senders.get(packet.slot(), packet.flow)
                        && let Some(share) = &mut sending.share
                    {
                        share.leaves(departs);
                        if share.wanted {
                            wake_when_room(sending, &self.shared, fabric);
                        }
                    }
                }
                Offered::Departs(_) => {}
            }
        }
        if !self.begun.is_empty() {
            transmit_begun(&mut self.begun, &mut self.senders, &self.shared, fabric);
        }
    }

    /// Whether a packet that has arrived by a link that is looked at gets in: a host's limits on what arrives decide.
    #[cold]
    pub fn admits(&mut self, now: Time, to: LinkEnd, id: PacketId, fabric: &mut Fabric) -> bool {
        let LinkEnd::Host(host) = to else { return true };
        if !matches!(self.hosts[host as usize].nic, Nic::Limited(_)) {
            return true;
        }
        let packet = fabric.packets[id];
        let class = self.class_of(packet.flow);
        let Some(limited) = self.hosts[host as usize].nic.limited() else { return true };
        let seen = Seen {
            class,
            payload: packet.payload as u32,
            packets: 1,
            in_flight: u32::MAX,
            srtt: Time::ZERO,
            ecn: packet.ecn() as u32,
        };
        let verdict = limited.limiter.arrive(now, &seen);
        if verdict.has(Verdict::DROP) {
            fabric.discard(id, DropReason::Limit);
            return false;
        }
        if verdict.has(Verdict::CE) && packet.ecn() == Ecn::Ect {
            fabric.packets[id].mark();
        }
        true
    }

    /// The class of a connection that has an end here.
    fn class_of(&mut self, flow: FlowId) -> Option<u16> {
        if let Some(slot) = self.receivers.slot_of(flow) {
            return Some(self.receivers.at(slot).opening.class);
        }
        let slot = self.senders.slot_of(flow)?;
        Some(self.senders.at(slot).opening.class)
    }

    /// Adds what the limits here have seen to `counts`, by limit and direction.
    pub fn count_limits(&mut self, counts: &mut BTreeMap<(u16, bool), LimitCounts>) {
        for limited in self.hosts.iter_mut().filter_map(|host| host.nic.limited()) {
            for (limit, ingress, its) in limited.limiter.counts() {
                counts.entry((limit, ingress)).or_default().merge(&its);
            }
        }
    }
}

/// Cuts a segment into packets that are not given to the NIC yet.
fn cut(
    now: Time,
    slot: u32,
    it: &mut Sending,
    segment: &Outgoing,
    shared: &Shared,
    fabric: &mut Fabric,
) -> Vec<PacketId> {
    let mut packet = first_packet(now, slot, it, segment);
    let mut rest = segment.len;
    let mut packets = Vec::with_capacity(rest.div_ceil(shared.mss).max(1) as usize);
    loop {
        rest = size_packet(now, it, &mut packet, rest, shared);
        fabric.audit.injected.add(packet.size);
        packets.push(fabric.packets.insert(packet));
        if rest == 0 {
            return packets;
        }
        advance(&mut packet);
        packet.flags &= !flags::CWR;
    }
}
