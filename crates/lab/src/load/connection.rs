//! Connections and their two ends, both of which this process has.
//!
//! Invariant: a key names one connection for ever: its place may be used again, its generation is
//! not.

use millpond_core::{FlowId, Time};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client sends a flow.
    OneWay,
    /// The same, and the source host's next flow of this source follows.
    Shuffle {
        /// Which.
        source: u16,
    },
    /// The client sends a request, and the server, when it has thought, a response.
    Exchange {
        /// Its bytes.
        response: u64,
    },
    /// Requests and responses in turn, for ever.
    Rpc {
        /// Bytes of a response.
        response: u64,
        /// No call begins at or after this.
        stop: Time,
    },
    /// Questions and answers of the flow's size, each question at its time.
    Probe {
        /// From one question to the next.
        period: Time,
        /// No question is asked at or after this.
        stop: Time,
    },
}

impl Role {
    /// Whether it makes a record a message, and lives on.
    pub fn is_persistent(self) -> bool {
        matches!(self, Role::Rpc { .. } | Role::Probe { .. })
    }
}

/// An end, by its part in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has connected.
    Client,
    /// It has accepted.
    Server,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// One end.
#[derive(Debug)]
pub(super) struct End {
    pub socket: OwnedFd,
    /// Bytes that the socket has not taken.
    pub to_send: u64,
    /// Bytes until the message is complete.
    pub to_receive: u64,
    /// When the socket was offered the first byte.
    pub first_sent: Option<Time>,
    /// When the last byte was acknowledged, if that was to be stamped.
    pub acked: Option<Time>,
}

impl End {
    pub fn new(socket: OwnedFd, to_receive: u64) -> End {
        End { socket, to_send: 0, to_receive, first_sent: None, acked: None }
    }
}

/// The flow of a connection, as its client opens it.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The flow of the client's bytes; that of the server's, if any, is the next.
    pub flow: FlowId,
    /// Its class of traffic.
    pub class: u16,
    /// The client's host.
    pub src: u32,
    /// The server's.
    pub dst: u32,
    /// Bytes of the flow, of the request, of a probe.
    pub bytes: u64,
    /// The query that it is of, if any.
    pub query: Option<u32>,
    /// When it was to start.
    pub start: Time,
    /// Its purpose.
    pub role: Role,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub opening: Opening,
    /// Of the client.
    pub port: u16,
    /// Whether the handshake is over for the client.
    pub is_open: bool,
    pub client: End,
    /// `None` before it is accepted.
    pub server: Option<End>,
    /// Whether the server has all of an exchange's request.
    pub answers: bool,
    /// When the flow's last byte was read.
    pub delivered: Option<Time>,
    /// When the present call began, or the present question was written.
    pub asked: Time,
    /// When the present question was due.
    pub due: Time,
}

impl Connection {
    pub fn new(opening: Opening, port: u16, socket: OwnedFd) -> Connection {
        Connection {
            opening,
            port,
            is_open: false,
            client: End::new(socket, 0),
            server: None,
            answers: false,
            delivered: None,
            asked: opening.start,
            due: opening.start,
        }
    }

    pub fn end(&self, side: Side) -> Option<&End> {
        match side {
            Side::Client => Some(&self.client),
            Side::Server => self.server.as_ref(),
        }
    }

    pub fn end_mut(&mut self, side: Side) -> Option<&mut End> {
        match side {
            Side::Client => Some(&mut self.client),
            Side::Server => self.server.as_mut(),
        }
    }

    pub fn is_probe(&self) -> bool {
        matches!(self.opening.role, Role::Probe { .. })
    }

    /// The end whose bytes the record is of; `None`: there is a record a message.
    pub fn sender(&self) -> Option<Side> {
        match self.opening.role {
            Role::OneWay | Role::Shuffle { .. } => Some(Side::Client),
            Role::Exchange { .. } => Some(Side::Server),
            Role::Rpc { .. } | Role::Probe { .. } => None,
        }
    }

    /// The pair of hosts, in the direction of what an end sends.
    pub fn pair(&self, sender: Side) -> (u32, u32) {
        let Opening { src, dst, .. } = self.opening;
        match sender {
            Side::Client => (src, dst),
            Side::Server => (dst, src),
        }
    }
}

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    slot: u32,
    generation: u32,
}

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A listener, by number.
    Listener(u32),
    /// An end of a connection.
    End(Key, Side),
}

const LISTENER: u64 = 1 << 63;
/// Generations and slots have 31 bits each.
const MASK: u32 = u32::MAX >> 1;

impl Token {
    pub fn encode(self) -> u64 {
        match self {
            Token::Listener(number) => LISTENER | u64::from(number),
            Token::End(key, side) => {
                let side = u64::from(side == Side::Server);
                u64::from(key.generation) << 32 | u64::from(key.slot) << 1 | side
            }
        }
    }

    pub fn decode(bits: u64) -> Token {
        if bits & LISTENER != 0 {
            return Token::Listener(bits as u32);
        }
        let key = Key { slot: bits as u32 >> 1, generation: (bits >> 32) as u32 };
        Token::End(key, if bits & 1 == 0 { Side::Client } else { Side::Server })
    }
}

/// Connections by key.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Each place with the generation that it has, or will have next.
    places: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
}

impl Connections {
    pub fn insert(&mut self, connection: Connection) -> Key {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[slot as usize];
        place.1 = Some(connection);
        Key { slot, generation: place.0 }
    }

    pub fn get(&self, key: Key) -> Option<&Connection> {
        let (generation, connection) = self.places.get(key.slot as usize)?;
        connection.as_ref().filter(|_| *generation == key.generation)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Connection> {
        let (generation, connection) = self.places.get_mut(key.slot as usize)?;
        connection.as_mut().filter(|_| *generation == key.generation)
    }

    pub fn remove(&mut self, key: Key) -> Option<Connection> {
        self.get(key)?;
        let place = &mut self.places[key.slot as usize];
        place.0 = (place.0 + 1) & MASK;
        self.free.push(key.slot);
        place.1.take()
    }

    /// All, with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Connection)> {
        self.places.iter().enumerate().filter_map(|(slot, (generation, connection))| {
            let key = Key { slot: slot as u32, generation: *generation };
            connection.as_ref().map(|connection| (key, connection))
        })
    }
}

/// Ports below this are left to others.
const FIRST_PORT: u16 = 1024;

/// The ports to try for a flow, from one that follows from its number, so that a run that is
/// repeated has the same ones.
pub fn ports(flow: FlowId, except: Range<u16>) -> impl Iterator<Item = u16> {
    let count = u32::from(u16::MAX - FIRST_PORT) + 1;
    (0..count)
        .map(move |i| FIRST_PORT + ((flow % count + i) % count) as u16)
        .filter(move |port| !except.contains(port))
}

/// A connection as its server can identify it: the client's address and port, and the server's
/// host.
pub(super) type Peer = (Ipv4Addr, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_what_it_was_made_of() {
        let key = Key { slot: MASK, generation: MASK };
        for token in [
            Token::Listener(7),
            Token::End(Key { slot: 3, generation: 0 }, Side::Server),
            Token::End(key, Side::Client),
            Token::End(key, Side::Server),
        ] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }

    #[test]
    fn ports_begin_at_the_flows_own_and_leave_listeners_out() {
        assert_eq!(ports(5, 9000..9001).next(), Some(1029));
        assert_eq!(ports(5, 1029..1031).next(), Some(1031));
        let all: std::collections::BTreeSet<u16> = ports(u32::MAX, 9000..9002).collect();
        let has = [9000, 9001, 9002].map(|port| all.contains(&port));
        assert_eq!((all.len(), has), (64_510, [false, false, true]));
    }
}
