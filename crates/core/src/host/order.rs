//! Order: the ordering buffer between receive offload and the transport, with its timer.
//!
//! A connection has a buffer from its first packet that is early to a timer that finds nothing
//! held, so a packet in order touches none.
//!
//! Invariant: while a packet is held its timer is due no later than its deadline, and a connection
//! without a buffer has handed up all that has arrived.

use super::received::Received;
use super::{Call, HostWire};
use crate::edge::Ordering;
use crate::packet::{FlowId, Packet};
use crate::units::Time;
use std::collections::VecDeque;

pub(super) struct Order {
    buffer: Ordering<Received>,
    /// When the driver was asked to call; `Time::MAX`: it was not.
    timer_at: Time,
}

impl Order {
    /// An empty one, of a connection that expects this byte next.
    pub(super) fn new(timeout: Time, next: u64) -> Order {
        Order { buffer: Ordering::new(timeout, next), timer_at: Time::MAX }
    }

    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// A segment of the stream, with `packet`'s headers, has arrived: what is due now, in order.
    pub(super) fn arrive<W: HostWire>(
        &mut self,
        now: Time,
        packet: &Packet,
        received: Received,
        due: &mut VecDeque<Received>,
        wire: &mut W,
    ) {
        let mut next = self.buffer.arrive(now, packet.seq(), u32::from(packet.payload), received);
        if next.is_none() {
            return self.arm(packet.flow, wire);
        }
        while let Some(received) = next {
            due.push_back(received);
            next = self.buffer.next();
        }
    }

    /// The timer: what has waited long enough is due. Whether nothing is left.
    pub(super) fn expire<W: HostWire>(
        &mut self,
        now: Time,
        flow: FlowId,
        due: &mut VecDeque<Received>,
        wire: &mut W,
    ) -> bool {
        if self.timer_at != now {
            return false;
        }
        self.timer_at = Time::MAX;
        while let Some(received) = self.buffer.expire(now) {
            due.push_back(received);
        }
        if !self.buffer.is_idle() {
            self.arm(flow, wire);
        }
        self.buffer.is_idle()
    }

    /// Its connection is over: frees what it holds, and takes back the timer.
    pub(super) fn close<W: HostWire>(mut self, flow: FlowId, wire: &mut W) {
        wire.recall(self.timer_at, Call::Order(flow));
        for received in self.buffer.drain() {
            wire.packets().remove(received.id);
        }
    }

    fn arm<W: HostWire>(&mut self, flow: FlowId, wire: &mut W) {
        let deadline = self.buffer.deadline();
        if deadline < self.timer_at {
            wire.recall(self.timer_at, Call::Order(flow));
            self.timer_at = deadline;
            wire.call(deadline, Call::Order(flow));
        }
    }
}
