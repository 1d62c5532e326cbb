//! Connections of the load's own sockets, by the numbers of their flows, which events carry.
//!
//! Invariant: a number names one connection for ever: a flow opens once.

use super::connection::{self, Side};
use millpond_core::FlowId;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// A connection, both ends of which this process has.
pub(super) type Connection = connection::Connection<OwnedFd>;
/// The flow of its client's bytes.
pub(super) type Key = FlowId;
pub(super) type Connections = BTreeMap<Key, Connection>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Listener(u32),
    End(Key, Side),
}

const LISTENER: u64 = 1 << 63;

impl Token {
    pub fn encode(self) -> u64 {
        match self {
            Token::Listener(number) => LISTENER | u64::from(number),
            Token::End(key, side) => u64::from(key) << 1 | u64::from(side == Side::Server),
        }
    }

    pub fn decode(bits: u64) -> Token {
        if bits & LISTENER != 0 {
            return Token::Listener(bits as u32);
        }
        Token::End((bits >> 1) as Key, if bits & 1 == 0 { Side::Client } else { Side::Server })
    }
}

/// A connection as its server can identify it: the client's address and port, and the server's
/// host.
pub(super) type Peer = (Ipv4Addr, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_what_it_was_made_of() {
        for token in [
            Token::Listener(7),
            Token::End(3, Side::Server),
            Token::End(Key::MAX, Side::Client),
            Token::End(Key::MAX, Side::Server),
        ] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }
}
