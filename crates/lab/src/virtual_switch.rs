//! A host's virtual switch: the simulator's own node ([`millpond_core::host::virtual_switch`])
//! between the link and the host's kernel.
//!
//! | file | content |
//! |---|---|
//! | `link` | what the node asks of its driver, for packets that have bytes |
//! | `waiting` | data of the kernel that may not leave yet |
//! | `words` | the switches' own packets as frames |
//!
//! Cores of the switch and of applications are the scenario's: their work takes its time in the
//! fabric's schedule, and none of this machine's cores. A packet with payload reaches the kernel
//! when its application's core has served it. The kernel's receive window plays no part in that.
//!
//! A kernel cannot be asked for its next segment. So a flow is held behind the kernel: what the
//! kernel sends of it waits here, and its timers go on. The port of a connection names its class of
//! traffic ([`crate::load`]), and so its application; other packets have none.
//!
//! Invariant: what arrives is handed up or dropped once, no earlier than the node says; what leaves
//! keeps the order of its flow.

mod link;
#[cfg(test)]
mod tests;
mod waiting;
mod words;

use crate::load::class_of;
use link::Link;
use millpond_core::counters::{Count, Counters, DropReason};
use millpond_core::host::{Call, Expecting, Flows, Host, HostConfig, Nic};
use millpond_core::overlay::Change;
use millpond_core::packet::{Kind, NONE};
use millpond_core::registry::Choice;
use millpond_core::{FlowId, Packet, Time};
use millpond_linux::dataplane::buffers::Buffers;
use millpond_linux::fabric::{Held, Left};
use millpond_scenario::plan::Plan;
use millpond_sim::equip;
use std::collections::VecDeque;
use waiting::Waiting;

/// Connections end in the kernel. All that the node learns of one is its class of traffic, which
/// stands in the place of the connection's slot ([`Packet::peer`]).
struct Kernel;

impl Flows for Kernel {
    fn class(&self, packet: &Packet) -> Option<u16> {
        (packet.peer != NONE).then_some(packet.peer as u16)
    }
    fn expecting(&mut self, _: &Packet) -> Option<Expecting<'_>> {
        None
    }
    fn receiving(&mut self, _: FlowId) -> Option<Expecting<'_>> {
        None
    }
}

/// The virtual switch of a host.
pub struct VirtualSwitch {
    kind: &'static str,
    classes: u16,
    node: Host<()>,
    link: Link,
    /// Packets that it has let through.
    up: VecDeque<Left>,
    /// Data that waits to leave; `None`: nobody holds senders back.
    waiting: Option<Waiting>,
}

impl VirtualSwitch {
    /// Of a plan's host; `None`: it has none.
    pub fn new(plan: &Plan, host: u32) -> Option<Box<VirtualSwitch>> {
        let rate = plan.topology.links[host as usize].rate;
        let virtual_switch = Some(equip::virtual_switch(plan, host, rate)?);
        let nic = Nic::Driver;
        let config = HostConfig { nic, limit: None, receive: None, virtual_switch, ordering: None };
        let speaks = plan.edge.virtual_switch.speaking().is_some();
        Some(Box::new(VirtualSwitch {
            kind: plan.edge.virtual_switch.kind(),
            classes: plan.traffic.classes.len() as u16,
            node: Host::new(config),
            link: Link::default(),
            up: VecDeque::new(),
            waiting: speaks.then(Waiting::default),
        }))
    }

    /// A packet has reached the host.
    pub fn arrive(&mut self, mut left: Left, buffers: &mut Buffers) {
        self.call_until(left.at);
        let at = left.at;
        let id = if left.packet.kind() == Kind::Overlay {
            let words = words::read(&left.held, buffers);
            left.held.bytes.end(buffers);
            self.link.keep_words(left.packet, words)
        } else {
            left.packet.peer = class_of(&left.held, self.classes).map_or(NONE, u32::from);
            self.link.keep(left)
        };
        self.node.on_arrival(at, id, &mut self.link);
        self.link.free(buffers);
    }

    /// Makes all calls that are due by `seen`. Nothing that comes later has arrived before that.
    pub fn run(&mut self, seen: Time, buffers: &mut Buffers) {
        self.call_until(seen);
        self.link.free(buffers);
    }

    fn call_until(&mut self, until: Time) {
        while let Some((at, call)) = self.link.due(until) {
            self.call(at, call);
        }
    }

    fn call(&mut self, at: Time, call: Call) {
        let has_news = self.node.on_switch(at, call, &mut Kernel, &mut self.link);
        while let Some(id) = self.node.hand_up(at, &mut Kernel, &mut self.link) {
            self.up.extend(self.link.take(at, id));
        }
        if has_news {
            self.obey(at);
        }
    }

    /// Holds flows, or lets them go on, as other switches have asked.
    fn obey(&mut self, now: Time) {
        while let Some(change) = self.node.next_change(now) {
            let Change { peer, target, .. } = change;
            let node = &self.node;
            if let Some(waiting) = &mut self.waiting {
                waiting.settle(now, (peer, &target), |class, flow| node.is_held(class, flow, peer));
            }
        }
    }

    /// The next packet that it has let through.
    pub fn next_up(&mut self) -> Option<Left> {
        self.up.pop_front()
    }

    /// The next packet for another host's switch, with its frame.
    pub fn next_word(&mut self) -> Option<(Packet, Vec<u8>)> {
        let (packet, words) = self.link.said.pop_front()?;
        Some((packet, words::frame(&packet, &words)))
    }

    /// Takes a packet that the kernel has sent, if it has to wait: data whose flow another switch
    /// may hold. Returns any other.
    pub fn leave(&mut self, now: Time, packet: Packet, held: Held) -> Option<(Packet, Held)> {
        let Some(waiting) = &mut self.waiting else { return Some((packet, held)) };
        let class = class_of(&held, self.classes).filter(|_| packet.payload > 0);
        let Some(class) = class else { return Some((packet, held)) };
        let node = &self.node;
        let is_held = || node.is_held(class, packet.flow, packet.dst);
        waiting.join(now, class, (packet, held), is_held);
        None
    }

    /// The next packet that may leave now, if there is one.
    pub fn next_leaving(&mut self, now: Time) -> Option<(Packet, Held)> {
        loop {
            let turn = self.waiting.as_mut()?.next_turn()?;
            let (class, flow, to) = (turn.class, turn.flow, turn.to);
            let wants = (flow, turn.packets);
            let may = self.node.admit(now, class, wants, to, &mut self.link) > 0;
            let leaves = self.waiting.as_mut()?.take_turn(now, (to, flow), may);
            if leaves.is_some() {
                self.node.handed_down(now, class, (flow, 1), to, &mut self.link);
                self.obey(now);
                return leaves;
            }
        }
    }

    /// When it is to be called; `has_room` is when the NIC takes more data.
    pub fn deadline(&self, has_room: Time) -> Option<Time> {
        let has_turns = self.waiting.as_ref().is_some_and(Waiting::has_turns);
        self.link.deadline().into_iter().chain(has_turns.then_some(has_room)).min()
    }

    /// Adds what it has counted.
    pub fn count(&self, all: &mut Counters) {
        let Some(node) = self.node.virtual_switch() else { return };
        let named = all.of(self.kind);
        node.counts().tell(named);
        if let Some(waiting) = &self.waiting {
            named.add("held-us", Count::Micros(waiting.held()));
        }
    }

    /// Packets that it has dropped, and their bytes.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.link.counters.discarded(reason)
    }

    /// The bytes of all of these.
    pub fn dropped_bytes(&self) -> u64 {
        self.link.dropped_bytes
    }

    /// Packets that have arrived and wait here, and their bytes.
    pub fn kept(&self) -> (u64, u64) {
        self.link.kept()
    }
}
