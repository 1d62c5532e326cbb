//! The ordering buffer of a host, below its kernel's TCP: the core's [`Ordering`], one a
//! connection.
//!
//! Data packets that come early wait for those before them, up to the scenario's time. Packets
//! without payload pass.
//!
//! Invariant: every packet that arrives is handed up once, in order as far as the buffer restores
//! it.

use crate::stream::Offsets;
use millpond_core::edge::Ordering;
use millpond_core::flow_table::FlowTable;
use millpond_core::packet::Body;
use millpond_core::{Packet, Time};
use millpond_linux::dataplane::flow::FlowKey;
use millpond_linux::fabric::Left;
use std::collections::BTreeSet;

/// A connection that is silent for longer is forgotten.
const IDLE: Time = Time::from_s(30);
/// Connections whose order is restored.
const FLOWS_MAX: usize = 1 << 16;
/// Connections that one call of [`Orders::evict`] looks at.
const STEPS: usize = 256;

struct Receiving {
    offsets: Offsets,
    buffer: Ordering<Left>,
    /// The entry of `timers`; `Time::MAX`: none.
    timer: Time,
    last: Time,
}

/// The connections of a host that receive.
pub struct Orders {
    timeout: Time,
    flows: FlowTable<FlowKey, Receiving>,
    /// When which connection's first packet has waited long enough.
    timers: BTreeSet<(Time, u32)>,
}

impl Orders {
    /// Of a host; `None`: order is not restored.
    pub fn new(timeout: Option<Time>) -> Option<Orders> {
        timeout.map(|timeout| Orders {
            timeout,
            flows: FlowTable::default(),
            timers: BTreeSet::new(),
        })
    }

    /// A packet has arrived: `up` takes all that are due now, in order.
    pub fn arrive(&mut self, now: Time, left: Left, key: FlowKey, mut up: impl FnMut(Left)) {
        let Packet { body, payload, flow, .. } = left.packet;
        let seq = match body {
            Body::Data { seq, .. } if payload > 0 => seq as u32,
            _ => return up(left),
        };
        let Some(at) = self.flow(flow, key, seq) else { return up(left) };
        let receiving = &mut self.flows[at];
        receiving.last = now;
        let seq = receiving.offsets.of(seq);
        let mut next = receiving.buffer.arrive(now, seq, payload.into(), left);
        while let Some(left) = next {
            up(left);
            next = receiving.buffer.next();
        }
        self.arm(at);
    }

    /// A connection opens: its first byte of data follows this number. An older one of the same
    /// addresses and ports is over.
    pub fn open(&mut self, now: Time, flow: u32, key: FlowKey, seq: u32) {
        let seq = seq.wrapping_add(1);
        let Some(at) = self.flow(flow, key, seq) else { return };
        let receiving = &mut self.flows[at];
        receiving.last = now;
        if receiving.buffer.is_empty() {
            receiving.offsets = Offsets::new(seq);
            receiving.buffer = Ordering::new(self.timeout, receiving.offsets.now());
        }
    }

    fn flow(&mut self, hash: u32, key: FlowKey, seq: u32) -> Option<u32> {
        if let Some(at) = self.flows.find(hash, key) {
            return Some(at);
        }
        if self.flows.len() >= FLOWS_MAX {
            return None;
        }
        let offsets = Offsets::new(seq);
        let buffer = Ordering::new(self.timeout, offsets.now());
        let receiving = Receiving { offsets, buffer, timer: Time::MAX, last: Time::ZERO };
        Some(self.flows.insert(hash, key, receiving))
    }

    fn arm(&mut self, at: u32) {
        let receiving = &mut self.flows[at];
        let deadline = receiving.buffer.deadline();
        if deadline != receiving.timer {
            self.timers.remove(&(receiving.timer, at));
            receiving.timer = deadline;
            if deadline != Time::MAX {
                self.timers.insert((deadline, at));
            }
        }
    }

    /// When [`Orders::expire`] is due.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Hands up what has waited long enough.
    pub fn expire(&mut self, now: Time, mut up: impl FnMut(Left)) {
        while let Some((due, at)) = self.timers.first().copied()
            && due <= now
        {
            self.timers.remove(&(due, at));
            self.flows[at].timer = Time::MAX;
            while let Some(left) = self.flows[at].buffer.expire(now) {
                up(left);
            }
            self.arm(at);
        }
    }

    /// Forgets some of the connections that are idle. One that holds packets is not.
    pub fn evict(&mut self, now: Time) {
        let idle = |flow: &Receiving| flow.buffer.is_idle() && now.saturating_sub(flow.last) > IDLE;
        self.flows.evict(STEPS, idle);
    }
}
