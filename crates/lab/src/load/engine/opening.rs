//! Connections open: arrivals, closed loops and probes.

use super::super::connection::{Connection, Opening, Role, Side, Token, ports};
use super::*;
use millpond_scenario::traffic::Arrival;
use std::io;
use std::os::fd::AsFd;

/// More unsent bytes than this do not wait in a socket's buffer.
const UNSENT_MAX: u32 = 1 << 18;

impl Engine<'_> {
    /// An open-loop flow starts.
    pub(super) fn start(&mut self, arrival: &Arrival) {
        let role = match arrival.response {
            0 => Role::OneWay,
            response => Role::Exchange { response },
        };
        self.prepared.note_start();
        self.dependents.note_start(arrival.flow);
        self.note_lateness(arrival.at);
        self.begin(Opening {
            flow: arrival.flow,
            class: arrival.class,
            src: arrival.src,
            dst: arrival.dst,
            bytes: arrival.bytes,
            query: arrival.query,
            start: arrival.at,
            role,
        });
    }

    /// Counts how late it is for what was to start at `at`.
    fn note_lateness(&mut self, at: Time) {
        self.counts.lateness.add(self.clock.now().saturating_sub(at));
    }

    /// Counts a flow's start, opens its connection and writes its bytes.
    fn begin(&mut self, opening: Opening) {
        self.counts.started += 1;
        self.active += 1;
        match self.open(opening) {
            Ok(key) => self.write(key, Side::Client, opening.bytes),
            Err(error) => self.fail_opening(&opening, &error),
        }
    }

    /// Begins to connect.
    pub(super) fn open(&mut self, opening: Opening) -> io::Result<Key> {
        let places = self.settings.places;
        let (src, dst) = (opening.src, opening.dst);
        let address = places[src as usize].address;
        let (client, own) = match self.prepared.take(opening.flow) {
            Some(ready) => ready,
            None => self.bound(opening.flow, src, opening.class)?,
        };
        let key = self.connections.insert(Connection::new(opening, own, client));
        self.ports.insert((src, own));
        self.peers.insert((address, own, dst), key);
        let to = SocketAddrV4::new(places[dst as usize].address, self.port(opening.class));
        let Some(connection) = self.connections.get(key) else { return Ok(key) };
        let socket = &connection.client.socket;
        let begun = socket::begin_connecting(socket, to)
            .and_then(|()| watch(&self.epoll, socket, Token::End(key, Side::Client)));
        if let Err(error) = begun {
            self.drop_connection(key);
            return Err(error);
        }
        Ok(key)
    }

    /// Makes a client's socket for a class of traffic, bound to a free port of its host.
    pub(super) fn bound(
        &mut self,
        flow: FlowId,
        src: u32,
        class: u16,
    ) -> io::Result<(OwnedFd, u16)> {
        let Settings { places, congestion, .. } = *self.settings;
        let client = match self.makers.of(src, class) {
            Some(cgroup) => self.makers.take(cgroup)?,
            None => {
                self.namespaces.enter(src)?;
                socket::tcp((!self.is_default[src as usize]).then_some(congestion))?
            }
        };
        let address = places[src as usize].address;
        let last = self.port(self.plan.traffic.classes.len() as u16);
        for port in ports(flow, self.settings.port..last) {
            if self.ports.contains(&(src, port)) {
                continue;
            }
            match socket::bind_to(&client, (address, port)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                done => return done.map(|()| (client, port)),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// A source's closed loops begin.
    pub(super) fn start_loop(&mut self, at: Time, source: u16) {
        self.note_lateness(at);
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        match &traffic.kind {
            SourceKind::Open | SourceKind::Probe { .. } => {}
            SourceKind::Shuffle { concurrency, .. } => {
                for host in 0..self.plan.topology.hosts {
                    (0..*concurrency).for_each(|_| self.next_of_shuffle(at, source, host));
                }
            }
            SourceKind::Rpc { connections, request, response, stop, first_flow, .. } => {
                for (index, (client, server)) in connections.iter().enumerate() {
                    self.begin(Opening {
                        flow: first_flow + 2 * index as u32,
                        class: traffic.class,
                        src: *client,
                        dst: *server,
                        bytes: *request,
                        query: None,
                        start: at,
                        role: Role::Rpc { response: *response, stop: *stop },
                    });
                }
            }
        }
    }

    /// Starts a host's next flow of a shuffle, if there is one.
    pub(super) fn next_of_shuffle(&mut self, at: Time, source: u16, src: u32) {
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        let SourceKind::Shuffle { size, stop, order, first_flow, .. } = &traffic.kind else {
            return;
        };
        let destinations = &order[src as usize];
        let started = self.shuffled.entry((source, src)).or_insert(0);
        let Some(dst) = destinations.get(*started as usize) else { return };
        if at >= *stop {
            return;
        }
        let flow = first_flow + src * destinations.len() as u32 + *started;
        *started += 1;
        self.begin(Opening {
            flow,
            class: traffic.class,
            src,
            dst: *dst,
            bytes: *size,
            query: None,
            start: at,
            role: Role::Shuffle { source },
        });
    }

    /// Opens the connections of a source of probes, which ask when they are due.
    pub(super) fn open_probes(&mut self, source: usize) {
        let traffic = &self.plan.traffic.sources[source];
        let SourceKind::Probe { pairs, size, period, start, stop, first_flow } = &traffic.kind
        else {
            return;
        };
        for (index, pair) in pairs.iter().enumerate() {
            let at = start.saturating_add(pair.phase);
            if at >= *stop {
                continue;
            }
            let opening = Opening {
                flow: first_flow + 2 * index as u32,
                class: traffic.class,
                src: pair.src,
                dst: pair.dst,
                bytes: *size,
                query: None,
                start: at,
                role: Role::Probe { period: *period, stop: *stop },
            };
            match self.open(opening) {
                Ok(key) => self.set_timer(at, Timer::Ask(key)),
                Err(error) => self.fail_opening(&opening, &error),
            }
        }
    }

    /// Lets an end send so many bytes more; an end that is not connected sends them when it is.
    pub(super) fn write(&mut self, key: Key, side: Side, bytes: u64) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let is_open = connection.is_open || side == Side::Server;
        let Some(end) = connection.end_mut(side) else { return };
        if bytes > u64::from(UNSENT_MAX) {
            // Without it the flow only takes more memory.
            let _ = socket::bound_unsent(&end.socket, UNSENT_MAX);
        }
        end.to_send += bytes;
        if is_open {
            self.send(key, side);
        }
    }
}

/// Has all events of a socket reported, each once.
pub(super) fn watch(epoll: &OwnedFd, socket: impl AsFd, token: Token) -> io::Result<()> {
    use epoll::EventFlags;
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    Ok(epoll::add(epoll, socket, epoll::EventData::new_u64(token.encode()), flags)?)
}
