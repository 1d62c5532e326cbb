//! A host's messages: those of its own that go out, in its outbox's order, and the grants to those
//! that come in.
//!
//! In the NIC the messages that go out share one queue of the host's. Grants are given after each
//! piece of a message that waits for some.
//!
//! Invariant: after every event of a message its receiver's schedule has it exactly if it waits for
//! grants.

use super::{Hosts, Way, arm};
use crate::endpoint::homa::{self, Asked, NIC_PACKETS, Outbox, Schedule};
use crate::endpoint::{Beside, Receiver};
use crate::fabric::Fabric;
use crate::shared::Shared;
use millpond_core::Time;
use millpond_core::host::Egress;
use millpond_core::packet::{Body, Packet};

/// The state that a host has beside its connections, where messages are sent.
pub struct Messages {
    pub outbox: Outbox,
    /// The part of its messages that is in the NIC.
    pub egress: Egress,
    schedule: Schedule,
}

impl Messages {
    /// Of each of so many hosts, if messages are sent in this run.
    pub fn of_hosts(shared: &Shared, count: usize) -> Vec<Messages> {
        let Some(cfg) = shared.transport.homa.first() else { return Vec::new() };
        let bound = NIC_PACKETS * u64::from(cfg.mss);
        let of_host = |_| Messages {
            outbox: Outbox::default(),
            egress: Egress::plain(Some(bound)),
            schedule: Schedule::default(),
        };
        (0..count).map(of_host).collect()
    }
}

fn message(receiver: &mut Receiver) -> Option<&mut homa::Receiver> {
    if let Receiver::Homa(end) = receiver { Some(end) } else { None }
}

impl Hosts {
    fn reply(&mut self, now: Time, slot: u32, body: Body, fabric: &mut Fabric) {
        let receiving = self.receivers.at(slot);
        let (host, way) = (receiving.host, Way::of_receiver(receiving));
        self.put_beside(now, host, way, Beside::new(now, body), fabric);
    }

    /// A piece of a message has arrived: the schedule has it if it waits for grants, and those are
    /// granted whose turn it is.
    pub fn schedule_message(
        &mut self,
        now: Time,
        host: u32,
        slot: u32,
        packet: &Packet,
        fabric: &mut Fabric,
    ) {
        let Some(message) = message(&mut self.receivers.at(slot).receiver) else { return };
        let wants = message.wants_grants().then(|| message.remaining());
        let schedule = &mut self.messages[host as usize].schedule;
        if wants.is_some() || schedule.has(packet.flow) {
            schedule.put(packet.flow, packet.src, slot, wants);
            self.grant(now, host, fabric);
        }
    }

    /// Grants those whose turn it is at a host.
    fn grant(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(cfg) = shared.transport.homa.first() else { return };
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            let turns = self.messages[host as usize].schedule.turns(cfg.overcommitment);
            for (rank, &(flow, slot)) in turns.iter().enumerate() {
                let receiving = self.receivers.at(slot);
                let src = receiving.opening.src;
                let Some(message) = message(&mut receiving.receiver) else { continue };
                let priority = cfg.scheduled_priority(rank, turns.len());
                let granted = message.grant(now, priority, &shared.transport.homa);
                let (number, wants) = (message.number(), message.wants_grants());
                arm(receiving, fabric);
                if let Some(upto) = granted {
                    self.reply(now, slot, Body::Grant { upto, slot, number, priority }, fabric);
                }
                if !wants {
                    // It waits for nothing more: another one's turn.
                    self.messages[host as usize].schedule.put(flow, src, slot, None);
                    goes_on = true;
                }
            }
        }
    }

    /// The timer of a message that comes in has fired: asks for what is missing, or gives it up.
    pub fn after_message_timer(&mut self, now: Time, slot: u32, fabric: &mut Fabric) {
        let cfg = &self.shared.transport.homa;
        let receiving = self.receivers.at(slot);
        let (host, flow, src) = (receiving.host, receiving.opening.flow, receiving.opening.src);
        let Some(message) = message(&mut receiving.receiver) else { return };
        let number = message.number();
        if message.takes_asks() {
            for Asked { from, len, priority } in message.missing(cfg) {
                self.reply(now, slot, Body::Resend { from, len, slot, number, priority }, fabric);
            }
        } else if message.is_given_up(cfg) {
            self.messages[host as usize].schedule.put(flow, src, slot, None);
            self.grant(now, host, fabric);
        }
    }
}
