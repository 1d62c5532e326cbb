//! Connections open: arrivals, closed loops and probes.

use super::super::connection::{Opening, Role, Side, ports};
use super::super::table::Connection;
use super::*;
use std::io;
use std::os::fd::AsFd;

/// More unsent bytes than this do not wait in a socket's buffer.
const UNSENT_MAX: u32 = 1 << 18;

impl Engine<'_> {
    /// Starts flows that are due together.
    pub(super) fn start(&mut self, starts: &mut Vec<Opening>) {
        if let Some(first) = starts.first() {
            self.note_lateness(first.start);
        }
        for opening in starts.drain(..) {
            if matches!(opening.role, Role::OneWay | Role::Exchange { .. }) {
                self.prepared.note_start();
            }
            self.begin(opening);
        }
    }

    /// Counts how late it is for what was to start at `at`.
    fn note_lateness(&mut self, at: Time) {
        self.ledger.counts.lateness.add(self.clock.now().saturating_sub(at));
    }

    /// Counts a flow's start, opens its connection and writes its bytes.
    pub(super) fn begin(&mut self, opening: Opening) {
        self.ledger.begin();
        match self.open(opening) {
            Ok(key) => self.write(key, Side::Client, opening.bytes),
            Err(error) => self.ledger.fail_opening(&opening, &error),
        }
    }

    pub(super) fn open(&mut self, opening: Opening) -> io::Result<Key> {
        let places = self.settings.places;
        let (src, dst) = (opening.src, opening.dst);
        let address = places[src as usize].address;
        let (client, own) = match self.prepared.take(opening.flow) {
            Some(ready) => ready,
            None => self.bound(opening.flow, src, opening.class)?,
        };
        let key = opening.flow;
        self.connections.insert(key, Connection::new(opening, own, client));
        self.ports.insert((src, own));
        self.peers.insert((address, own, dst), key);
        let to = SocketAddrV4::new(places[dst as usize].address, self.port(opening.class));
        let Some(connection) = self.connections.get(&key) else { return Ok(key) };
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
            match socket::bind_to(&client, SocketAddrV4::new(address, port)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                done => return done.map(|()| (client, port)),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Opens the connections of probes, which ask when they are due.
    pub(super) fn open_probes(&mut self) {
        for opening in self.ledger.agenda.probes() {
            match self.open(opening) {
                Ok(key) => self.set_timer(opening.start, Timer::Ask(key)),
                Err(error) => self.ledger.fail_opening(&opening, &error),
            }
        }
    }

    /// Lets an end send so many bytes more; an end that is not connected sends them when it is.
    pub(super) fn write(&mut self, key: Key, side: Side, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
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
