//! Ingress: the stages between the link and an endpoint, in their order.
//!
//! A packet that arrives waits in a ring for a poll, and for the core's work on it if that costs
//! something. A virtual switch has that ring in its place; what it hands up comes to the ring of
//! the stack behind it. Receive offload merges packets to segments. The ordering buffer of its
//! connection holds what is early. The limit decides last, on what the endpoint would be handed, as
//! the kernel's cgroup hook does: a merged segment is charged for all of its packets, and a refusal
//! loses them all.
//!
//! The endpoint is handed one segment at a time ([`Host::hand_up`]). It answers by the entrances of
//! `egress` before it asks for the next, so the ordering buffer and the limit see where it stands.
//!
//! To the network and its audit a packet has arrived as soon as the ring has taken it.
//!
//! Invariant: every packet that arrives is handed up or discarded once, each flow's in the order in
//! which its stages let it through.

use super::flows::{Expecting, Flows};
use super::order::Order;
use super::received::Received;
use super::{Call, Host, HostWire, Receive, Seen, VirtualSwitch};
use crate::counters::DropReason;
use crate::limit::Verdict;
use crate::overlay::Change;
use crate::packet::{Ecn, FlowId, HostId, PacketId};
use crate::units::Time;
use std::collections::VecDeque;

/// A host's state for what arrives.
pub(super) struct Arrival<K> {
    pub(super) receive: Option<Receive<K>>,
    /// The virtual switch in the receive ring's place.
    pub(super) switch: Option<Box<VirtualSwitch>>,
    /// How long an ordering buffer may hold a packet.
    ordering: Option<Time>,
    is_limited: bool,
    /// Segments that the offload has let through.
    up: VecDeque<Received>,
    /// Segments that order has let through.
    due: VecDeque<Received>,
}

impl<K: Copy + Eq> Arrival<K> {
    /// `None`: what arrives is handed up as it comes.
    pub(super) fn new(
        receive: Option<Receive<K>>,
        switch: Option<Box<VirtualSwitch>>,
        ordering: Option<Time>,
        is_limited: bool,
    ) -> Option<Box<Arrival<K>>> {
        let has_any = receive.is_some() || switch.is_some() || ordering.is_some() || is_limited;
        let (up, due) = (VecDeque::new(), VecDeque::new());
        has_any.then(|| Box::new(Arrival { receive, switch, ordering, is_limited, up, due }))
    }

    pub(super) fn kept(&self) -> usize {
        let waiting = self.up.iter().chain(&self.due).count();
        let switched = self.switch.as_ref().map_or(0, |switch| switch.kept());
        waiting + switched + self.receive.as_ref().map_or(0, |receive| receive.kept())
    }

    /// The next segment that is in order, as far as that is restored.
    fn next<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        flows: &mut F,
        wire: &mut W,
    ) -> Option<Received> {
        loop {
            if let Some(received) = self.due.pop_front() {
                return Some(received);
            }
            let received = self.up.pop_front()?;
            let Some(timeout) = self.ordering else { return Some(received) };
            let packet = &wire.packets()[received.id];
            if !packet.is_data() {
                return Some(received);
            }
            let packet = *packet;
            let Some(Expecting { next, ingress }) = flows.expecting(&packet) else {
                return Some(received);
            };
            let has_buffer = ingress.as_ref().is_some_and(|ingress| ingress.order.is_some());
            super::passes!(Order);
            if packet.seq() <= next && !has_buffer {
                return Some(received);
            }
            let ingress = ingress.get_or_insert_default();
            let order = ingress.order.get_or_insert_with(|| Box::new(Order::new(timeout, next)));
            order.arrive(now, &packet, received, &mut self.due, wire);
        }
    }
}

impl<K: Copy + Eq> Host<K> {
    /// Whether what arrives is handed up as it comes. Then no entrance below need be called.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.arrival.is_none()
    }

    /// A packet has arrived. Follow with [`Host::hand_up`], as each entrance below.
    pub fn on_arrival<W: HostWire<Flow = K>>(&mut self, now: Time, id: PacketId, wire: &mut W) {
        let Some(arrival) = &mut self.arrival else { return };
        if let Some(switch) = &mut arrival.switch {
            return switch.on_arrival(now, id, wire);
        }
        if !wire.passes_up(now, id) {
            return;
        }
        if let Some(receive) = &mut arrival.receive {
            return receive.on_arrival(now, id, wire);
        }
        wire.arrived(id);
        arrival.up.push_back(Received::one(id, &wire.packets()[id]));
    }

    /// A call that a stage asked for is due, [`Call::Room`] apart, which is the endpoint's. Follow
    /// with [`Host::hand_up`]. Returns whether [`Host::next_change`] is to be asked.
    pub fn on_call<F: Flows, W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        call: Call,
        flows: &mut F,
        wire: &mut W,
    ) -> bool {
        match call {
            Call::Room(_) => {}
            Call::Ready => self.on_ready(now, wire),
            Call::Release(order) => self.on_release(now, order, wire),
            Call::Poll(ring) => self.on_poll(now, ring, wire),
            Call::Held(ring) => self.on_held(now, ring, wire),
            Call::Worked(core) => self.on_worked(core),
            Call::Order(flow) => self.on_order(now, flow, flows, wire),
            Call::Switch(_) | Call::Application(_) | Call::Overlay => {
                return self.on_switch(now, call, flows, wire);
            }
        }
        false
    }

    pub fn on_poll<W: HostWire<Flow = K>>(&mut self, now: Time, ring: u16, wire: &mut W) {
        let Some(arrival) = &mut self.arrival else { return };
        let Some(receive) = &mut arrival.receive else { return };
        receive.on_poll(now, ring, &mut arrival.up, wire);
    }

    /// The packets that a ring's offload holds have waited long enough.
    pub fn on_held<W: HostWire<Flow = K>>(&mut self, now: Time, ring: u16, wire: &mut W) {
        let Some(arrival) = &mut self.arrival else { return };
        let Some(receive) = &mut arrival.receive else { return };
        receive.on_held(now, ring, &mut arrival.up, wire);
    }

    /// A core has done its work.
    pub fn on_worked(&mut self, core: u16) {
        let Some(arrival) = &mut self.arrival else { return };
        let Some(receive) = &mut arrival.receive else { return };
        receive.on_worked(core, &mut arrival.up);
    }

    /// The packets that a connection's ordering buffer holds have waited long enough, unless the
    /// gap has filled since.
    pub fn on_order<F: Flows, W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        flow: FlowId,
        flows: &mut F,
        wire: &mut W,
    ) {
        let Some(arrival) = &mut self.arrival else { return };
        let Some(ingress) = flows.receiving(flow).and_then(|it| it.ingress.as_deref_mut()) else {
            return;
        };
        let Some(order) = &mut ingress.order else { return };
        if order.expire(now, flow, &mut arrival.due, wire) {
            ingress.order = None;
        }
    }

    /// The next segment for the endpoint, if there is one.
    pub fn hand_up<F: Flows, W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        flows: &mut F,
        wire: &mut W,
    ) -> Option<PacketId> {
        let arrival = self.arrival.as_deref_mut()?;
        loop {
            let Some(received) = arrival.next(now, flows, wire) else {
                if let Some(receive) = &mut arrival.receive {
                    receive.taken_up(now, wire);
                }
                return None;
            };
            if arrival.is_limited
                && !self.limit.as_mut().is_none_or(|it| it.admits(now, received, flows, wire))
            {
                continue;
            }
            // A segment that a buffer has ordered is never out of order.
            if arrival.ordering.is_none()
                && let Some(core) = arrival.receive.as_mut().and_then(|receive| receive.finishing())
            {
                let packet = wire.packets()[received.id];
                let is_ahead = packet.is_data() && flows.is_ahead(&packet, wire.packets());
                core.found(is_ahead);
            }
            return Some(received.id);
        }
    }

    /// A core of the virtual switch has ended its round, a core of an application its service, or
    /// the overlay's time has come, by `call`. Whether [`Host::next_change`] is to be asked.
    pub fn on_switch<F: Flows, W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        call: Call,
        flows: &mut F,
        wire: &mut W,
    ) -> bool {
        let Some(arrival) = &mut self.arrival else { return false };
        let Some(switch) = &mut arrival.switch else { return false };
        match call {
            Call::Switch(core) => switch.on_round(now, core, &mut arrival.up, flows, wire),
            Call::Application(port) => {
                switch.on_application(now, port, &mut arrival.up, flows, wire)
            }
            _ if !switch.on_overlay(now) => return false,
            _ => (),
        }
        let has_news = switch.has_news(now);
        arrival.up.retain(|received| wire.passes_up(now, received.id));
        if let Some(receive) = &mut arrival.receive {
            for received in arrival.up.drain(..) {
                receive.wait(now, received.id, wire);
            }
        }
        if !has_news {
            return false;
        }
        while let Some(packet) = switch.next_word(now, wire) {
            let id = wire.inject(packet);
            self.nic.offer(now, id, wire);
        }
        switch.arm(now, wire);
        true
    }

    /// A target that may no longer, or may again, send: to be asked after [`Host::on_switch`] until
    /// there is no more.
    pub fn next_change(&mut self, now: Time) -> Option<Change> {
        self.switch_mut()?.next_change(now)
    }

    /// How many packets a flow from here may hand down, of those that it would: what other hosts'
    /// switches have granted it, or their rates allow. None: it waits until [`Host::next_change`]
    /// names it.
    pub fn admit<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        class: u16,
        flow: FlowId,
        wants: u32,
        to: HostId,
        wire: &mut W,
    ) -> u32 {
        let Some(switch) = self.switch_mut() else { return wants };
        let admitted = switch.admit(now, class, flow, to, wants);
        switch.arm(now, wire);
        admitted
    }

    /// A flow from here, which another host's switch may have asked to keep a rate or have granted
    /// something, has handed down so many packets. [`Host::next_change`] reports whether it may
    /// send more.
    pub fn handed_down<W: HostWire<Flow = K>>(
        &mut self,
        now: Time,
        class: u16,
        flow: FlowId,
        packets: u32,
        to: HostId,
        wire: &mut W,
    ) {
        let Some(switch) = self.switch_mut() else { return };
        switch.handed_down(now, class, flow, packets, to);
        switch.arm(now, wire);
    }

    /// Whether another host's switch has asked a flow from here to pause.
    pub fn is_held(&self, class: u16, flow: FlowId, to: HostId) -> bool {
        self.virtual_switch().is_some_and(|switch| switch.is_held(class, flow, to))
    }

    fn switch_mut(&mut self) -> Option<&mut super::VirtualSwitch> {
        self.arrival.as_mut()?.switch.as_deref_mut()
    }

    fn receive_mut(&mut self) -> Option<&mut super::Receive<K>> {
        self.arrival.as_mut()?.receive.as_mut()
    }

    /// Forgets some of the flows that are idle. Polls do it, too: for a driver with none at times.
    pub fn age(&mut self, now: Time) {
        if let Some(receive) = self.receive_mut() {
            receive.age(now);
        }
    }

    /// Receive offload keeps so many flows at most from now on.
    pub fn bound_flows(&mut self, flows: usize) {
        if let Some(receive) = self.receive_mut() {
            receive.bound(flows);
        }
    }

    /// The flow of this identity is over by its packets: receive offload need not remember it.
    pub fn over(&mut self, hash: u32, flow: K) {
        if let Some(receive) = self.receive_mut() {
            receive.over(hash, flow);
        }
    }

    /// It is about to stop: lets go all that waits for a poll or is held. Follow with
    /// [`Host::hand_up`].
    pub fn drain<W: HostWire<Flow = K>>(&mut self, now: Time, wire: &mut W) {
        let Some(arrival) = &mut self.arrival else { return };
        if let Some(receive) = &mut arrival.receive {
            receive.drain(now, &mut arrival.up, wire);
        }
    }
}

impl Host {
    /// A connection of so many subflows is over: receive offload need not remember it.
    pub fn forget(&mut self, flow: FlowId, subflows: u8) {
        if let Some(receive) = self.receive_mut() {
            receive.forget(flow, subflows);
        }
    }
}

impl super::Limiter {
    /// Whether what has arrived may go up.
    fn admits<F: Flows, W: HostWire>(
        &mut self,
        now: Time,
        received: Received,
        flows: &F,
        wire: &mut W,
    ) -> bool {
        let packet = &mut wire.packets()[received.id];
        let payload = u32::from(packet.payload);
        let seen = Seen {
            class: flows.class(packet),
            payload,
            packets: received.packets,
            options: self.options(received.bytes, payload, received.packets),
            in_flight: u32::MAX,
            srtt: Time::ZERO,
            ecn: packet.ecn() as u32,
        };
        let verdict = self.arrive(now, &seen);
        if verdict.has(Verdict::DROP) {
            wire.discard_received(received, DropReason::Limit);
            return false;
        }
        if verdict.has(Verdict::CE) && packet.ecn() == Ecn::Ect {
            packet.mark();
        }
        true
    }
}
