//! Connections and their two ends.
//!
//! Invariant: whoever has the sockets, here or in another kernel, the two ends of a connection and
//! its times mean the same.

use super::info::Socket;
use millpond_core::{FlowId, Time};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    OneWay,
    /// The same, and the source host's next flow of this source follows.
    Shuffle {
        /// The source, by its place in the plan.
        source: u16,
    },
    /// The client sends a request, and the server, when it has thought, a response.
    Exchange {
        /// Bytes of the response.
        response: u64,
    },
    /// Requests and responses in turn, for ever.
    Rpc {
        /// Bytes of each response.
        response: u64,
        /// No request starts from here on.
        stop: Time,
    },
    /// Questions and answers of the flow's size, each question at its time.
    Probe {
        /// From one question to the next.
        period: Time,
        /// No question starts from here on.
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
    Client,
    Server,
}

impl Side {
    /// The end on the other side.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// One end, with its socket or what stands for it.
#[derive(Debug)]
pub struct End<S> {
    pub socket: S,
    /// Bytes that the socket has not taken.
    pub to_send: u64,
    /// Bytes until the message is complete.
    pub to_receive: u64,
    /// When the socket was offered the first byte.
    pub first_sent: Option<Time>,
    /// When the last byte was acknowledged, if that was to be stamped.
    pub acked: Option<Time>,
}

impl<S: Socket> End<S> {
    /// An end that has nothing to send.
    pub fn new(socket: S, to_receive: u64) -> End<S> {
        End { socket, to_send: 0, to_receive, first_sent: None, acked: None }
    }

    /// Whether it has bytes that are not acknowledged, or not sent.
    pub fn is_sending(&self) -> bool {
        self.to_send > 0 || self.first_sent.is_some() && self.socket.unacknowledged() > 0
    }
}

/// The flow of a connection, as its client opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The flow of the client's bytes; that of the server's, if any, is the next.
    pub flow: FlowId,
    pub class: u16,
    pub src: u32,
    pub dst: u32,
    /// Bytes of the flow, of the request, of a probe.
    pub bytes: u64,
    /// The query that it belongs to.
    pub query: Option<u32>,
    pub start: Time,
    pub role: Role,
}

#[derive(Debug)]
pub struct Connection<S> {
    pub opening: Opening,
    pub port: u16,
    /// Whether the handshake is over for the client.
    pub is_open: bool,
    pub client: End<S>,
    /// `None` before it is accepted.
    pub server: Option<End<S>>,
    /// Whether the server has all of an exchange's request.
    pub answers: bool,
    /// When the flow's last byte was read.
    pub delivered: Option<Time>,
    /// When the present call began, or the present question was written.
    pub asked: Time,
    /// When the present question was due.
    pub due: Time,
}

impl<S: Socket> Connection<S> {
    /// A connection whose client begins to connect.
    pub fn new(opening: Opening, port: u16, socket: S) -> Connection<S> {
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

    /// An end, if there is one.
    pub fn end(&self, side: Side) -> Option<&End<S>> {
        match side {
            Side::Client => Some(&self.client),
            Side::Server => self.server.as_ref(),
        }
    }

    /// An end, if there is one.
    pub fn end_mut(&mut self, side: Side) -> Option<&mut End<S>> {
        match side {
            Side::Client => Some(&mut self.client),
            Side::Server => self.server.as_mut(),
        }
    }

    pub fn ends(&self) -> impl Iterator<Item = &End<S>> {
        [Some(&self.client), self.server.as_ref()].into_iter().flatten()
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

    /// Bytes that the server answers with.
    pub fn answer(&self) -> u64 {
        match self.opening.role {
            Role::OneWay | Role::Shuffle { .. } => 0,
            Role::Exchange { response } | Role::Rpc { response, .. } => response,
            Role::Probe { .. } => self.opening.bytes,
        }
    }

    /// Whether the flow is delivered and its last byte acknowledged.
    pub fn is_over(&self) -> bool {
        let sender = self.sender().and_then(|side| self.end(side));
        self.delivered.is_some() && sender.is_some_and(|end| end.acked.is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_begin_at_the_flows_own_and_leave_listeners_out() {
        assert_eq!(ports(5, 9000..9001).next(), Some(1029));
        assert_eq!(ports(5, 1029..1031).next(), Some(1031));
        let all: std::collections::BTreeSet<u16> = ports(u32::MAX, 9000..9002).collect();
        let has = [9000, 9001, 9002].map(|port| all.contains(&port));
        assert_eq!((all.len(), has), (64_510, [false, false, true]));
    }
}
