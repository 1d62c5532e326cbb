//! Connections of the load's own sockets, by keys that events carry.
//!
//! Invariant: a key names one connection for ever: its place may be used again, its generation is
//! not.

use super::connection::{self, Side};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// A connection, both ends of which this process has.
pub(super) type Connection = connection::Connection<OwnedFd>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Listener(u32),
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

    pub fn iter(&self) -> impl Iterator<Item = (Key, &Connection)> {
        self.places.iter().enumerate().filter_map(|(slot, (generation, connection))| {
            let key = Key { slot: slot as u32, generation: *generation };
            connection.as_ref().map(|connection| (key, connection))
        })
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
}
