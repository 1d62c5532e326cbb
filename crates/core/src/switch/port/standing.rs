//! A port that stands still: what its pauses hold, and what its watchdog does about it.
//!
//! Invariant: a packet that a watchdog drops has left the port's counts, its memory and its
//! admission, as if the link had taken it.

use super::GeneralPort;
use crate::context::Context;
use crate::packet::{Packet, PacketId, Packets};
use crate::random::Random;
use crate::switch::buffer::Memory;
use crate::switch::pause::{PauseTarget, Watchdog, WatchdogTerms};
use crate::switch::queue::{PausedSet, Queue};
use crate::units::Time;

impl GeneralPort {
    /// A pause that lasts too long ends.
    pub fn guard(&mut self, terms: WatchdogTerms) {
        self.watchdog = Some(Box::new(Watchdog::new(terms)));
        self.is_guarded = true;
    }

    /// Whether its watchdog drops a packet that comes.
    pub fn keeps_out(&self, packet: &Packet) -> bool {
        self.watchdog.as_ref().is_some_and(|watchdog| watchdog.drops(packet.priority()))
    }

    /// Storms that its watchdog has found.
    pub fn storms(&self) -> u64 {
        self.watchdog.as_ref().map_or(0, |watchdog| watchdog.storms)
    }

    /// The port's watchdog, and what is paused.
    pub fn watchdog(&mut self) -> Option<(&mut Watchdog, PausedSet)> {
        self.watchdog.as_deref_mut().map(|watchdog| (watchdog, self.paused))
    }

    /// A priority has a storm: it is paused no more. The packets that its watchdog drops leave the
    /// queue.
    pub fn on_storm(
        &mut self,
        now: Time,
        priority: u8,
        packets: &Packets,
        memory: &mut Memory,
        random: &Random,
    ) -> Vec<PacketId> {
        self.paused.put(priority, false);
        let mut dropped = Vec::new();
        if self.watchdog.as_ref().is_none_or(|watchdog| !watchdog.drops(priority)) {
            return dropped;
        }
        let waiting: Vec<PacketId> =
            std::iter::from_fn(|| self.queue.pop(PausedSet::default())).map(|it| it.id).collect();
        for id in waiting {
            let packet = &packets[id];
            if packet.priority() != priority {
                self.queue.push(id, packet);
                continue;
            }
            self.forget(now, packet, memory, random);
            dropped.push(id);
        }
        dropped
    }

    /// A packet has been taken out of the queue otherwise than by the link.
    pub(super) fn forget(
        &mut self,
        now: Time,
        packet: &Packet,
        memory: &mut Memory,
        random: &Random,
    ) {
        let context = Context { now, packet, view: self.view(), random };
        self.admission.on_dequeue(&context);
        self.marking.on_dequeue(&context);
        self.bytes -= packet.size as u64;
        self.packets -= 1;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.leaves(packet.priority());
        }
        memory.give(self.number, packet);
    }

    /// The packets that wait, in no order.
    pub fn waiting(&self) -> Vec<PacketId> {
        self.queue.waiting()
    }

    /// The packets that can never leave while these targets are paused, each with the one that
    /// holds it. A guaranteed rate lets all leave.
    pub fn held(&self, paused: &[PauseTarget], packets: &Packets) -> Vec<(PacketId, PauseTarget)> {
        let Some(first) = paused.first().filter(|_| self.floor.is_none()) else {
            return Vec::new();
        };
        let mut queue = self.queue.clone();
        if let Queue::DynamicQueues(flows) = &mut queue {
            flows.pause_only(paused);
        }
        let mut set = PausedSet::default();
        paused.iter().filter_map(|target| target.queue()).for_each(|queue| set.put(queue, true));
        while queue.pop(set).is_some() {}
        if let Queue::DynamicQueues(flows) = &queue {
            return flows.behind_heads();
        }
        let holder = |id: PacketId| {
            let own = PauseTarget::Priority(packets[id].priority());
            if paused.contains(&own) { own } else { *first }
        };
        queue.waiting().into_iter().map(|id| (id, holder(id))).collect()
    }
}
