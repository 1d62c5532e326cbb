//! The reports of agents about connections: opened, complete, acknowledged, failed.

use super::{Connection, Load, Timer, order};
use crate::calendar::Orders;
use millpond_agent::wire::Order;
use millpond_core::Time;
use millpond_lab::load::Sink;
use millpond_lab::load::connection::{Opening, Role, Side};
use millpond_lab::load::info::TcpInfo;
use std::io::{Error, ErrorKind};

/// How long after a delivery the world looks for an acknowledgement that has no time stamp.
const SWEEP: Time = Time::from_ms(50);

/// The side of a connection that a host has.
fn side(connection: &Connection, host: u32) -> Side {
    if connection.opening.dst == host { Side::Server } else { Side::Client }
}

impl Load<'_> {
    pub(super) fn on_opened(&mut self, now: Time, number: u32) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        it.is_open = true;
        if it.client.to_send > 0 {
            it.client.first_sent = Some(now);
            it.client.socket.unacknowledged = std::mem::take(&mut it.client.to_send);
        }
    }

    /// An end has all bytes of a message.
    pub(super) fn on_received(
        &mut self,
        now: Time,
        host: u32,
        (number, info): (u32, &[u8]),
        (orders, sink): (&mut Orders, &mut dyn Sink),
    ) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        let (side, role) = (side(it, host), it.opening.role);
        let message = if side == Side::Client { it.answer() } else { it.opening.bytes };
        let Some(end) = it.end_mut(side) else { return };
        end.socket.info = TcpInfo::parse(info);
        end.socket.whole += message;
        let received = end.socket.whole;
        self.count(now, (number, side), received);
        match (role, side) {
            (Role::OneWay | Role::Shuffle { .. }, _) | (Role::Exchange { .. }, Side::Client) => {
                self.deliver(now, number, (orders, sink));
            }
            (Role::Exchange { .. }, Side::Server) => self.asked(now, number),
            (Role::Rpc { .. }, Side::Server) => self.answered(now, number),
            (Role::Rpc { .. }, Side::Client) => self.called(now, number, (orders, sink)),
            (Role::Probe { .. }, Side::Client) => self.probed(now, number, (orders, sink)),
            (Role::Probe { .. }, Side::Server) => {}
        }
    }

    fn deliver(&mut self, now: Time, number: u32, (orders, sink): (&mut Orders, &mut dyn Sink)) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        self.ledger.deliver(now, it, sink);
        self.settle(now, number, (orders, sink));
    }

    /// A server has all of a request.
    fn asked(&mut self, now: Time, number: u32) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        it.answers = true;
        it.client.socket.unacknowledged = 0;
        match self.ledger.recorder.thinks(it.opening.class, it.opening.flow + 1) {
            Time::ZERO => self.answered(now, number),
            time => self.set_timer(now.saturating_add(time), Timer::Answer(number)),
        }
    }

    /// An agent has answered by itself.
    fn answered(&mut self, now: Time, number: u32) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        let bytes = it.answer();
        let Some(server) = &mut it.server else { return };
        server.first_sent = server.first_sent.or(Some(now));
        server.socket.unacknowledged = bytes;
    }

    /// A call is complete, and its agent has begun the next one, if there is to be one.
    fn called(&mut self, now: Time, number: u32, (orders, sink): (&mut Orders, &mut dyn Sink)) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        if !self.ledger.call(now, it, sink) {
            self.forget(now, number, orders);
        }
    }

    /// A probe is answered, and asks again when the period is over.
    fn probed(&mut self, now: Time, number: u32, (orders, sink): (&mut Orders, &mut dyn Sink)) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        match self.ledger.probe(now, it, sink) {
            Some(next) => self.set_timer(next, Timer::Ask(number)),
            None => self.forget(now, number, orders),
        }
    }

    /// An end's last byte is acknowledged.
    pub(super) fn on_acknowledged(
        &mut self,
        now: Time,
        host: u32,
        (number, info): (u32, &[u8]),
        (orders, sink): (&mut Orders, &mut dyn Sink),
    ) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        let side = side(it, host);
        let is_sender = it.sender() == Some(side);
        let Some(end) = it.end_mut(side) else { return };
        end.socket.info = TcpInfo::parse(info);
        end.socket.unacknowledged = 0;
        end.acked = end.acked.or(is_sender.then_some(now));
        self.settle(now, number, (orders, sink));
    }

    /// Ends a flow that is delivered and acknowledged; a delivered one waits for that.
    pub(super) fn settle(
        &mut self,
        now: Time,
        number: u32,
        (orders, sink): (&mut Orders, &mut dyn Sink),
    ) {
        let Some(it) = self.connections.get(&number) else { return };
        let opening = it.opening;
        if !it.is_over() {
            if it.delivered.is_some() {
                self.set_timer(now.saturating_add(SWEEP), Timer::Sweep(number));
            }
            return;
        }
        self.ledger.end(it, sink);
        self.forget(now, number, orders);
        if let Role::Shuffle { source } = opening.role
            && let Some(next) = self.ledger.agenda.shuffle(now, source, opening.src)
        {
            self.begin(now, next, orders);
        }
    }

    /// A connection is no more, and its flow stays unfinished. One whose port a program of its host
    /// has takes the next port.
    pub(super) fn on_failed(
        &mut self,
        now: Time,
        host: u32,
        (number, errno): (u32, u32),
        orders: &mut Orders,
    ) {
        let Some(it) = self.connections.get(&number) else { return };
        let error = Error::from_raw_os_error(errno as i32);
        let Opening { src, dst, .. } = it.opening;
        if error.kind() == ErrorKind::AddrInUse && host == src && !it.is_open {
            let opening = it.opening;
            self.connections.remove(&number);
            order(now, dst, &Order::Close { connection: number }, orders);
            return self.open(now, opening, orders);
        }
        self.ledger.fail(it, &error);
        self.forget(now, number, orders);
    }

    /// Has both ends forget a connection, and counts what they have counted.
    fn forget(&mut self, now: Time, number: u32, orders: &mut Orders) {
        let Some(it) = self.connections.remove(&number) else { return };
        let Opening { src, dst, .. } = it.opening;
        self.ports.remove(&(src, it.port));
        for end in [Some(&it.client), it.server.as_ref()].into_iter().flatten() {
            self.ledger.close(&end.socket.info);
        }
        for host in [src, dst] {
            order(now, host, &Order::Close { connection: number }, orders);
        }
    }
}
