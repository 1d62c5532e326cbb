//! Flows open connections, and probes and servers send when it is time.

use super::{Connection, Load, PORT, Remote, Timer};
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
    pub(super) fn begin(&mut self, opening: Opening) {
        self.ledger.begin();
        self.open(opening);
        if let Role::Rpc { stop, .. } = opening.role
            && stop < self.plan.horizon
        {
            self.set_timer(stop, Timer::Cease(opening.flow));
        }
    }

    /// Has both ends make a connection, unless no port of the client's host is free.
    pub(super) fn open(&mut self, opening: Opening) {
        let Opening { flow, class, src, dst, bytes, role, .. } = opening;
        let last = PORT + self.plan.traffic.classes.len() as u16;
        let mut free = ports(flow, PORT..last).filter(|port| !self.ports.contains(&(src, *port)));
        let Some(from) = free.next() else {
            return self.ledger.fail_opening(&opening, &Error::from(ErrorKind::AddrInUse));
        };
        self.ports.insert((src, from));
        let port = PORT + class;
        let mut connection = Connection::new(opening, from, Remote::default());
        connection.server = Some(End::new(Remote::default(), bytes));
        let answer = connection.answer();
        let thinks = self.ledger.recorder.thinks(class, flow + 1) > Time::ZERO;
        let is_exchange = matches!(role, Role::Exchange { .. });
        // A probe sends its questions when they are due.
        let (send, receive) = if connection.is_probe() { (0, 0) } else { (bytes, answer) };
        connection.client.to_send = send;
        self.connections.insert(flow, connection);
        let awaits = Order::Await {
            connection: flow,
            peer: address(src),
            from,
            port,
            receive: bytes,
            answer: if is_exchange && thinks { 0 } else { answer },
            is_watched: is_exchange,
        };
        self.order(dst, &awaits);
        let calls = matches!(role, Role::Rpc { .. });
        let to = address(dst);
        let opens = Order::Open { connection: flow, from, to, port, send, receive, calls };
        self.order(src, &opens);
    }

    /// Opens the connections of probes, which ask when they are due.
    pub(super) fn open_probes(&mut self) {
        for opening in self.ledger.agenda.probes() {
            self.open(opening);
            self.set_timer(opening.start, Timer::Ask(opening.flow));
        }
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, number: u32) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.asked = self.now;
        let Opening { src, bytes, .. } = connection.opening;
        let sends =
            Order::Send { connection: number, send: bytes, receive: bytes, is_watched: false };
        self.order(src, &sends);
    }

    /// A connection makes no further calls.
    pub(super) fn cease(&mut self, number: u32) {
        if let Some(connection) = self.connections.get(&number) {
            self.order(connection.opening.src, &Order::Cease { connection: number });
        }
    }

    /// A server has thought, and answers.
    pub(super) fn answer(&mut self, number: u32) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let (dst, send) = (connection.opening.dst, connection.answer());
        let Some(server) = &mut connection.server else { return };
        server.first_sent = Some(self.now);
        server.socket.unacknowledged = send;
        self.order(dst, &Order::Send { connection: number, send, receive: 0, is_watched: true });
    }
}
