//! The reports of agents about connections: opened, complete, acknowledged, failed.

use super::{Connection, Load, Timer};
use millpond_agent::wire::Order;
use millpond_core::Time;
use millpond_lab::load::Sink;
use millpond_lab::load::connection::{Opening, Role, Side};
use millpond_lab::load::info::TcpInfo;
use millpond_lab::load::ledger::Follows;
use std::io::{Error, ErrorKind};

/// How long after a delivery the world looks for an acknowledgement that has no time stamp.
const SWEEP: Time = Time::from_ms(50);

/// The side of a connection that a host has.
fn side(connection: &Connection, host: u32) -> Side {
    if connection.opening.dst == host { Side::Server } else { Side::Client }
}

/// An end of a connection that reports.
pub(super) struct From<'r> {
    pub host: u32,
    pub connection: u32,
    /// Its `struct tcp_info`.
    pub info: &'r [u8],
}

impl Load<'_> {
    pub(super) fn on_opened(&mut self, number: u32) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.is_open = true;
        if connection.client.to_send > 0 {
            connection.client.first_sent = Some(self.now);
            connection.client.socket.unacknowledged =
                std::mem::take(&mut connection.client.to_send);
        }
    }

    /// An end has all bytes of a message.
    pub(super) fn on_received(&mut self, from: From<'_>, sink: &mut dyn Sink) {
        let Some(connection) = self.connections.get_mut(&from.connection) else { return };
        let side = side(connection, from.host);
        let message =
            if side == Side::Client { connection.answer() } else { connection.opening.bytes };
        let Some(end) = connection.end_mut(side) else { return };
        end.socket.info = TcpInfo::parse(from.info);
        end.socket.whole += message;
        let received = end.socket.whole;
        self.count(self.now, from.connection, side, received);
        self.go_on(from.connection, side, sink);
    }

    /// Goes on after a complete message. Answers and calls are agents' own.
    fn go_on(&mut self, number: u32, side: Side, sink: &mut dyn Sink) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let follows = self.ledger.received(now, connection, side, sink);
        if (matches!(connection.opening.role, Role::Exchange { .. }), side) == (true, Side::Server)
        {
            connection.client.socket.unacknowledged = 0;
        }
        match follows {
            Follows::Delivery => self.settle(number, sink),
            Follows::Answer => {
                let bytes = connection.answer();
                let Some(server) = &mut connection.server else { return };
                server.first_sent = server.first_sent.or(Some(now));
                server.socket.unacknowledged = bytes;
            }
            Follows::Thought(at) => self.set_timer(at, Timer::Answer(number)),
            Follows::Call => {}
            Follows::Question(at) => self.set_timer(at, Timer::Ask(number)),
            Follows::Nothing => self.forget(number),
        }
    }

    /// An end's last byte is acknowledged.
    pub(super) fn on_acknowledged(&mut self, from: From<'_>, sink: &mut dyn Sink) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&from.connection) else { return };
        let side = side(connection, from.host);
        let is_sender = connection.sender() == Some(side);
        let Some(end) = connection.end_mut(side) else { return };
        end.socket.info = TcpInfo::parse(from.info);
        end.socket.unacknowledged = 0;
        end.acked = end.acked.or(is_sender.then_some(now));
        self.settle(from.connection, sink);
    }

    /// Ends a flow that is delivered and acknowledged; a delivered one waits for that.
    pub(super) fn settle(&mut self, number: u32, sink: &mut dyn Sink) {
        let Some(connection) = self.connections.get(&number) else { return };
        if !connection.is_over() {
            if connection.delivered.is_some() {
                self.set_timer(self.now.saturating_add(SWEEP), Timer::Sweep(number));
            }
            return;
        }
        let next = self.ledger.end(self.now, connection, sink);
        self.forget(number);
        next.into_iter().for_each(|opening| self.begin(opening));
    }

    /// A connection is no more, and its flow stays unfinished. One whose port a program of its host
    /// has takes the next port.
    pub(super) fn on_failed(&mut self, host: u32, number: u32, errno: u32) {
        let Some(connection) = self.connections.get(&number) else { return };
        let error = Error::from_raw_os_error(errno as i32);
        let opening = connection.opening;
        if error.kind() == ErrorKind::AddrInUse && host == opening.src && !connection.is_open {
            self.connections.remove(&number);
            self.order(opening.dst, &Order::Close { connection: number });
            return self.open(opening);
        }
        self.ledger.fail(connection, &error);
        self.forget(number);
    }

    /// Has both ends forget a connection, and counts what they have counted.
    fn forget(&mut self, number: u32) {
        let Some(connection) = self.connections.remove(&number) else { return };
        let Opening { src, dst, .. } = connection.opening;
        self.ports.remove(&(src, connection.port));
        connection.ends().for_each(|end| self.ledger.close(&end.socket.info));
        for host in [src, dst] {
            self.order(host, &Order::Close { connection: number });
        }
    }
}
