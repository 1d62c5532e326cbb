//! Connections open: arrivals, closed loops and probes.

use super::{Connection, Load, PORT, Timer, address};
use crate::calendar::Orders;
use millpond_agent::wire::Order;
use millpond_core::{FlowId, Time};
use millpond_lab::load::connection::{Opening, Role, ports};
use millpond_lab::load::info::TcpInfo;
use millpond_scenario::traffic::{Arrival, SourceKind};

impl Load<'_> {
    /// An open-loop flow starts.
    pub(super) fn start(&mut self, arrival: &Arrival, orders: &mut Orders) {
        let role = match arrival.response {
            0 => Role::OneWay,
            response => Role::Exchange { response },
        };
        self.dependents.note_start(arrival.flow);
        self.begin_flow(
            Opening {
                flow: arrival.flow,
                class: arrival.class,
                src: arrival.src,
                dst: arrival.dst,
                bytes: arrival.bytes,
                query: arrival.query,
                start: arrival.at,
                role,
            },
            orders,
        );
    }

    /// Counts a flow's start, and opens its connection.
    fn begin_flow(&mut self, opening: Opening, orders: &mut Orders) {
        self.counts.started += 1;
        self.active += 1;
        if self.open(opening, orders).is_none() {
            let error = std::io::Error::from(std::io::ErrorKind::AddrInUse);
            let Opening { flow, src, dst, .. } = opening;
            self.counts.fail(&error, || format!("flow {flow} from host {src} to host {dst}"));
            self.failed.push(self.recorder.opening(&opening));
            self.counts.failed += 1;
            self.active -= 1;
        }
    }

    /// The first free port of a flow's client.
    fn port(&self, flow: FlowId, src: u32) -> Option<u16> {
        let last = PORT + self.plan.traffic.classes.len() as u16;
        ports(flow, PORT..last).find(|port| !self.ports.contains(&(src, *port)))
    }

    /// Has both ends make a connection; its number. `None`: no port is free.
    fn open(&mut self, opening: Opening, orders: &mut Orders) -> Option<u32> {
        let Opening { flow, class, src, dst, bytes, start, role, .. } = opening;
        let from = self.port(flow, src)?;
        self.ports.insert((src, from));
        let connection = self.opened;
        self.opened += 1;
        let port = PORT + class;
        let thinks = self.recorder.thinks(class, flow + 1);
        let (send, receive, answer, calls) = match role {
            Role::OneWay | Role::Shuffle { .. } => (bytes, 0, 0, false),
            Role::Exchange { response } if thinks > Time::ZERO => (bytes, response, 0, false),
            Role::Exchange { response } => (bytes, response, response, false),
            Role::Rpc { response, .. } => (bytes, response, response, true),
            Role::Probe { .. } => (0, 0, bytes, false),
        };
        let is_watched = matches!(role, Role::Exchange { .. });
        let peer = address(src);
        let awaits =
            Order::Await { connection, peer, from, port, receive: bytes, answer, is_watched };
        self.order(start, dst, awaits, orders);
        let to = address(dst);
        let opens = Order::Open { connection, from, to, port, send, receive, calls };
        self.order(start, src, opens, orders);
        let state = Connection {
            opening,
            port: from,
            answers: false,
            delivered: None,
            first_sent: None,
            acked: None,
            asked: start,
            due: start,
            messages: [0; 2],
            counted: [0; 2],
            info: [TcpInfo::default(); 2],
        };
        self.connections.insert(connection, state);
        Some(connection)
    }

    /// A source's closed loops begin.
    pub(super) fn start_loop(&mut self, at: Time, source: u16, orders: &mut Orders) {
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        match &traffic.kind {
            SourceKind::Open | SourceKind::Probe { .. } => {}
            SourceKind::Shuffle { concurrency, .. } => {
                for host in 0..self.plan.topology.hosts {
                    (0..*concurrency).for_each(|_| self.next_of_shuffle(at, source, host, orders));
                }
            }
            SourceKind::Rpc { connections, request, response, stop, first_flow, .. } => {
                for (index, (client, server)) in (0..).zip(connections) {
                    let opening = Opening {
                        flow: first_flow + 2 * index,
                        class: traffic.class,
                        src: *client,
                        dst: *server,
                        bytes: *request,
                        query: None,
                        start: at,
                        role: Role::Rpc { response: *response, stop: *stop },
                    };
                    self.begin_flow(opening, orders);
                }
            }
        }
    }

    /// Starts a host's next flow of a shuffle, if there is one.
    pub(super) fn next_of_shuffle(&mut self, at: Time, source: u16, src: u32, orders: &mut Orders) {
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        let SourceKind::Shuffle { size, stop, order, first_flow, .. } = &traffic.kind else {
            return;
        };
        let destinations = &order[src as usize];
        let started = self.shuffled.entry((source, src)).or_insert(0);
        let Some(dst) = destinations.get(*started as usize).filter(|_| at < *stop) else { return };
        let flow = first_flow + src * destinations.len() as u32 + *started;
        *started += 1;
        let opening = Opening {
            flow,
            class: traffic.class,
            src,
            dst: *dst,
            bytes: *size,
            query: None,
            start: at,
            role: Role::Shuffle { source },
        };
        self.begin_flow(opening, orders);
    }

    /// Opens the connections of a source of probes, which ask when they are due.
    pub(super) fn open_probes(&mut self, source: u16, orders: &mut Orders) {
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        let SourceKind::Probe { pairs, size, period, start, stop, first_flow } = &traffic.kind
        else {
            return;
        };
        for (index, pair) in (0..).zip(pairs) {
            let at = start.saturating_add(pair.phase);
            if at >= *stop {
                continue;
            }
            let opening = Opening {
                flow: first_flow + 2 * index,
                class: traffic.class,
                src: pair.src,
                dst: pair.dst,
                bytes: *size,
                query: None,
                start: Time::ZERO,
                role: Role::Probe { period: *period, stop: *stop },
            };
            if let Some(connection) = self.open(opening, orders) {
                if let Some(it) = self.connections.get_mut(&connection) {
                    it.due = at;
                }
                self.set_timer(at, Timer::Ask(connection));
            }
        }
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, now: Time, connection: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        it.asked = now;
        let Opening { src, bytes, .. } = it.opening;
        let order = Order::Send { connection, send: bytes, receive: bytes, is_watched: false };
        self.order(now, src, order, orders);
    }

    /// A server has thought, and answers.
    pub(super) fn answer(&mut self, now: Time, connection: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        let Role::Exchange { response } = it.opening.role else { return };
        it.first_sent = Some(now);
        let dst = it.opening.dst;
        let order = Order::Send { connection, send: response, receive: 0, is_watched: true };
        self.order(now, dst, order, orders);
    }
}
