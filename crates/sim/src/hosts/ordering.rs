//! The ordering buffer between a receiving host's NIC and its transport, with its timer.
//!
//! What is held there has arrived as far as the network and its audit are concerned. Statistics of order are taken
//! behind it: they tell what the transport sees.
//!
//! A connection has a buffer from its first packet that is early to a timer that finds nothing held, so a packet in order
//! touches none.
//!
//! Invariant: while a packet is held its timer event is due no later than its deadline, and a connection without a buffer
//! has delivered all that has arrived.

use super::*;
use millpond_core::edge::Ordering;

/// A connection's buffer.
pub(super) struct Reorder {
    buffer: Ordering<Packet>,
    /// When a timer event is scheduled; `Time::MAX`: none is.
    timer_at: Time,
}

impl Reorder {
    /// Takes back the timer of a connection that is over.
    pub(super) fn cancel(&self, host: u32, flow: FlowId, fabric: &mut Fabric) {
        fabric.events.cancel(self.timer_at, Key::new(Class::OrderingTimer, host, flow));
    }

    fn arm(&mut self, host: u32, flow: FlowId, fabric: &mut Fabric) {
        let deadline = self.buffer.deadline();
        if deadline < self.timer_at {
            let key = Key::new(Class::OrderingTimer, host, flow);
            fabric.events.cancel(self.timer_at, key);
            self.timer_at = deadline;
            fabric.events.push(deadline, key);
        }
    }
}

impl Hosts {
    /// Data that is early, or for a connection that has a buffer: delivers what is due, in order. Apart from the path of
    /// those that have none, which is the faster for it.
    #[inline(never)]
    pub(super) fn on_unordered(&mut self, now: Time, slot: u32, packet: &Packet, fabric: &mut Fabric) {
        let it = self.receivers.at(slot);
        let (host, flow) = (it.host, packet.flow);
        let timeout = self.shared.ordering.unwrap_or(Time::MAX);
        let new = || Box::new(Reorder { buffer: Ordering::new(timeout, it.delivered), timer_at: Time::MAX });
        let order = it.ordering.get_or_insert_with(new);
        let mut next = order.buffer.arrive(now, packet.seq(), packet.payload as u32, *packet);
        if next.is_none() {
            return order.arm(host, flow, fabric);
        }
        while let Some(packet) = next {
            self.on_data_in_order(now, host, &packet, fabric);
            next = self.order_of(slot, flow).and_then(|order| order.buffer.next());
        }
    }

    /// A buffer has held a packet long enough, unless the gap has filled since.
    pub fn on_ordering_timer(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        let Some(slot) = self.receivers.slot_of(flow) else { return };
        let host = self.receivers.at(slot).host;
        match self.order_of(slot, flow) {
            Some(order) if order.timer_at == now => order.timer_at = Time::MAX,
            _ => return,
        }
        while let Some(packet) = self.order_of(slot, flow).and_then(|order| order.buffer.expire(now)) {
            self.on_data_in_order(now, host, &packet, fabric);
        }
        let Some(it) = self.receivers.get(slot, flow) else { return };
        match &mut it.ordering {
            Some(order) if order.buffer.is_idle() => it.ordering = None,
            Some(order) => order.arm(host, flow, fabric),
            None => {}
        }
    }

    fn order_of(&mut self, slot: u32, flow: FlowId) -> Option<&mut Reorder> {
        self.receivers.get(slot, flow)?.ordering.as_deref_mut()
    }
}
