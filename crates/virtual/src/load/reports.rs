//! What agents report of connections: opened, complete, acknowledged, failed.

use super::{Connection, Load, SWEEP, Timer, at};
use crate::calendar::Orders;
use millpond_core::Time;
use millpond_lab::load::Sink;
use millpond_lab::load::connection::{Opening, Role, Side};
use millpond_lab::load::info::TcpInfo;

/// The side of a connection that a host has.
fn side(connection: &Connection, host: u32) -> Side {
    if connection.opening.dst == host { Side::Server } else { Side::Client }
}

impl Connection {
    pub(super) fn is_probe(&self) -> bool {
        matches!(self.opening.role, Role::Probe { .. })
    }

    /// The end whose bytes the record is of; `None`: there is a record a message.
    pub(super) fn sender(&self) -> Option<Side> {
        match self.opening.role {
            Role::OneWay | Role::Shuffle { .. } => Some(Side::Client),
            Role::Exchange { .. } => Some(Side::Server),
            Role::Rpc { .. } | Role::Probe { .. } => None,
        }
    }

    /// Bytes of the messages that a side receives.
    fn message(&self, side: Side) -> u64 {
        match (self.opening.role, side) {
            (Role::Exchange { response } | Role::Rpc { response, .. }, Side::Client) => response,
            _ => self.opening.bytes,
        }
    }

    /// The pair of hosts, in the direction of what a side sends.
    pub(super) fn pair(&self, sender: Side) -> (u32, u32) {
        let Opening { src, dst, .. } = self.opening;
        match sender {
            Side::Client => (src, dst),
            Side::Server => (dst, src),
        }
    }
}

impl Load<'_> {
    pub(super) fn on_opened(&mut self, now: Time, connection: u32) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        if it.sender() == Some(Side::Client) {
            it.first_sent = Some(now);
        }
    }

    /// An end has all bytes of a message.
    pub(super) fn on_received(
        &mut self,
        now: Time,
        host: u32,
        (connection, info): (u32, &[u8]),
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        if self.has_stopped() {
            return;
        }
        let Some(it) = self.connections.get_mut(&connection) else { return };
        let side = side(it, host);
        it.info[at(side)] = TcpInfo::of_bytes(info);
        it.messages[at(side)] += it.message(side);
        let received = it.messages[at(side)];
        let role = it.opening.role;
        self.count_received(now, connection, side, received);
        match (role, side) {
            (Role::OneWay | Role::Shuffle { .. }, _) | (Role::Exchange { .. }, Side::Client) => {
                self.deliver(now, connection, orders, sink);
            }
            (Role::Exchange { .. }, Side::Server) => self.asked(now, connection),
            (Role::Rpc { stop, .. }, Side::Client) => {
                self.called(now, connection, stop, orders, sink);
            }
            (Role::Probe { period, stop }, Side::Client) => {
                self.probed(now, connection, (period, stop), orders, sink);
            }
            (Role::Rpc { .. } | Role::Probe { .. }, Side::Server) => {}
        }
    }

    /// A server has all of a request.
    fn asked(&mut self, now: Time, connection: u32) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        it.answers = true;
        it.first_sent = Some(now);
        let thinks = self.recorder.thinks(it.opening.class, it.opening.flow + 1);
        if thinks > Time::ZERO {
            it.first_sent = None;
            self.set_timer(now.saturating_add(thinks), Timer::Answer(connection));
        }
    }

    /// A call is complete; its agent has begun the next one.
    fn called(
        &mut self,
        now: Time,
        connection: u32,
        stop: Time,
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        let record = self.recorder.call(&it.opening, it.asked, Some(now));
        it.asked = now;
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= sink.flow(record);
        if now >= stop {
            return self.forget(connection, now, orders);
        }
        self.counts.started += 1;
        self.active += 1;
    }

    /// A probe is answered: measures it, and asks again when the period is over.
    fn probed(
        &mut self,
        now: Time,
        connection: u32,
        (period, stop): (Time, Time),
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        let asked = it.asked;
        let next = it.due.saturating_add(period).max(now);
        it.due = next;
        if asked >= self.plan.warm_up {
            self.goes_on &= sink.rtt(now.saturating_sub(asked));
        }
        if next < stop {
            self.set_timer(next, Timer::Ask(connection));
        } else {
            self.forget(connection, now, orders);
        }
    }

    /// A flow's last byte is acknowledged.
    pub(super) fn on_acknowledged(
        &mut self,
        now: Time,
        host: u32,
        (connection, info): (u32, &[u8]),
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        if self.has_stopped() {
            return;
        }
        let Some(it) = self.connections.get_mut(&connection) else { return };
        let side = side(it, host);
        it.info[at(side)] = TcpInfo::of_bytes(info);
        if it.sender() == Some(side) {
            it.acked = Some(now);
        }
        self.settle(now, connection, orders, sink);
    }

    /// A flow that is delivered waits for its acknowledgement, or is over.
    pub(super) fn settle(
        &mut self,
        now: Time,
        connection: u32,
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(it) = self.connections.get(&connection) else { return };
        if it.delivered.is_none() {
            return;
        }
        match it.acked {
            Some(_) => self.end_flow(now, connection, orders, sink),
            None => self.set_timer(now.saturating_add(SWEEP), Timer::Sweep(connection)),
        }
    }

    /// A connection is no more. Its flow stays unfinished.
    pub(super) fn on_failed(&mut self, connection: u32, errno: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get(&connection) else { return };
        let error = std::io::Error::from_raw_os_error(errno as i32);
        let Opening { flow, src, dst, start, .. } = it.opening;
        self.counts.fail(&error, || format!("flow {flow} from host {src} to host {dst}"));
        if !it.is_probe() {
            let record = self.unfinished(it);
            self.failed.push(record);
            self.counts.failed += 1;
            self.active -= 1;
        }
        self.forget(connection, start, orders);
    }
}
