//! The credit of a receiving host, and the senders that share a NIC.
//!
//! A connection has one packet at a time below it, in its NIC's queue or in transmission: so those
//! of a host take turns.
//!
//! Invariant: while a host has a connection to give credit to, it will be called.

use super::{Hosts, Way};
use crate::endpoint::uet::Pull;
use crate::endpoint::{Beside, Receiver};
use crate::event::HostEvent;
use crate::fabric::Fabric;
use crate::shared::Shared;
use millpond_core::Time;
use millpond_core::packet::{Body, Packet, flags};
use std::collections::VecDeque;

/// The state of credit of so many hosts, if receivers give any in this run.
pub fn of_hosts<T: Default + Clone>(shared: &Shared, count: usize) -> Vec<T> {
    let gives = shared.transport.uet.iter().any(|cfg| cfg.control.has_credit());
    if gives { vec![T::default(); count] } else { Vec::new() }
}

/// The senders of a NIC that have their packet in it.
#[derive(Clone, Debug, Default)]
pub struct NicSenders {
    /// Packets that wait, of which it is open when they leave.
    waiting: u32,
    /// When the others leave, in ascending order.
    departures: VecDeque<Time>,
}

impl NicSenders {
    /// A packet has joined that leaves at `departs`; [`Time::MAX`]: that is not known.
    pub fn joins(&mut self, departs: Time) {
        match departs {
            Time::MAX => self.waiting += 1,
            known => self.departures.push_back(known),
        }
    }

    /// A packet that waited leaves at `at`.
    pub fn leaves(&mut self, at: Time) {
        self.waiting = self.waiting.saturating_sub(1);
        self.departures.push_back(at);
    }

    /// How many have one that has not left by `now`.
    pub fn count(&mut self, now: Time) -> u32 {
        while self.departures.front().is_some_and(|at| *at <= now) {
            self.departures.pop_front();
        }
        self.waiting + self.departures.len() as u32
    }
}

impl Hosts {
    /// A packet or a probe has arrived, and was answered so or not at all: its sender may want
    /// credit.
    pub fn ask_for_credit(
        &mut self,
        now: Time,
        host: u32,
        slot: u32,
        packet: &Packet,
        answer: Option<Body>,
        fabric: &mut Fabric,
    ) {
        let Receiver::Uet(end) = &self.receivers.at(slot).receiver else { return };
        if !end.config(&self.shared.transport.uet).control.has_credit() {
            return;
        }
        let (target, requests) = match packet.body {
            Body::UetData { target, .. } => (target, false),
            Body::UetProbe { target, .. } => (target, packet.has(flags::ASKS)),
            _ => return,
        };
        let insists = requests || matches!(answer, Some(Body::UetNack { .. }));
        if let Some(at) = self.pacers[host as usize].ask(now, packet.flow, target, insists) {
            fabric.call(at, host, HostEvent::Credit);
        }
    }

    pub fn on_credit(&mut self, now: Time, host: u32, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(cfg) = shared.transport.uet.iter().find(|cfg| cfg.control.has_credit()) else {
            return;
        };
        let id = self.hosts[host as usize].id;
        let rate = shared.plan.topology.links[id as usize].rate;
        let (pull, next) = self.pacers[host as usize].next(now, rate, cfg);
        if let Some(at) = next {
            fabric.call(at, host, HostEvent::Credit);
        }
        let Some(Pull { flow, credit, is_slow }) = pull else { return };
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let receiving = self.receivers.at(slot);
        let (host, way) = (receiving.host, Way::of_receiver(receiving));
        let beside = Beside::new(now, Body::UetPull { credit, slot, is_slow });
        self.put_beside(now, host, way, beside, fabric);
    }
}
