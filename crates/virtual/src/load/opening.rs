//! Flows open connections, and probes and servers send when it is time.

use super::{Connection, Load, PORT, Remote, Timer, order};
use crate::calendar::Orders;
use millpond_agent::wire::Order;
use millpond_core::Time;
use millpond_lab::address;
use millpond_lab::load::connection::{End, Opening, Role, ports};
use std::io::{Error, ErrorKind};

/// The address of a host, as agents have it.
fn address(host: u32) -> [u8; 4] {
    address::ip(host).octets()
}

impl Load<'_> {
    /// Counts a flow's start, and opens its connection.
    pub(super) fn begin(&mut self, now: Time, opening: Opening, orders: &mut Orders) {
        self.ledger.begin();
        self.open(now, opening, orders);
        if let Role::Rpc { stop, .. } = opening.role
            && stop < self.plan.horizon
        {
            self.set_timer(stop, Timer::Cease(opening.flow));
        }
    }

    /// Has both ends make a connection, unless no port of the client's host is free.
    pub(super) fn open(&mut self, now: Time, opening: Opening, orders: &mut Orders) {
        let Opening { flow, class, src, dst, bytes, role, .. } = opening;
        let last = PORT + self.plan.traffic.classes.len() as u16;
        let mut free = ports(flow, PORT..last).filter(|port| !self.ports.contains(&(src, *port)));
        let Some(from) = free.next() else {
            return self.ledger.fail_opening(&opening, &Error::from(ErrorKind::AddrInUse));
        };
        self.ports.insert((src, from));
        let port = PORT + class;
        let mut it = Connection::new(opening, from, Remote::default());
        it.server = Some(End::new(Remote::default(), bytes));
        let answer = it.answer();
        let thinks = self.ledger.recorder.thinks(class, flow + 1) > Time::ZERO;
        let is_exchange = matches!(role, Role::Exchange { .. });
        // A probe sends its questions when they are due.
        let (send, receive) = if it.is_probe() { (0, 0) } else { (bytes, answer) };
        it.client.to_send = send;
        self.connections.insert(flow, it);
        let awaits = Order::Await {
            connection: flow,
            peer: address(src),
            from,
            port,
            receive: bytes,
            answer: if is_exchange && thinks { 0 } else { answer },
            is_watched: is_exchange,
        };
        order(now, dst, &awaits, orders);
        let calls = matches!(role, Role::Rpc { .. });
        let to = address(dst);
        let opens = Order::Open { connection: flow, from, to, port, send, receive, calls };
        order(now, src, &opens, orders);
    }

    /// Opens the connections of probes, which ask when they are due.
    pub(super) fn open_probes(&mut self, now: Time, orders: &mut Orders) {
        for opening in self.ledger.agenda.probes() {
            self.open(now, opening, orders);
            self.set_timer(opening.start, Timer::Ask(opening.flow));
        }
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, now: Time, number: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        it.asked = now;
        let Opening { src, bytes, .. } = it.opening;
        let sends =
            Order::Send { connection: number, send: bytes, receive: bytes, is_watched: false };
        order(now, src, &sends, orders);
    }

    /// A connection makes no further calls.
    pub(super) fn cease(&mut self, now: Time, number: u32, orders: &mut Orders) {
        if let Some(it) = self.connections.get(&number) {
            order(now, it.opening.src, &Order::Cease { connection: number }, orders);
        }
    }

    /// A server has thought, and answers.
    pub(super) fn answer(&mut self, now: Time, number: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        let send = it.answer();
        let Some(server) = &mut it.server else { return };
        server.first_sent = Some(now);
        server.socket.unacknowledged = send;
        let sends = Order::Send { connection: number, send, receive: 0, is_watched: true };
        order(now, it.opening.dst, &sends, orders);
    }
}
