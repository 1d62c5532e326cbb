//! Connections end: completions, failures, and the end of the run.
//!
//! Invariant: a connection that ends is in the ledger before its sockets are closed.

use super::super::connection::Opening;
use super::super::info::Socket;
use super::*;
use std::io;

impl Engine<'_> {
    /// A flow is delivered and acknowledged.
    pub(super) fn end(&mut self, key: Key) {
        let Some(connection) = self.connections.get(&key) else { return };
        let next = self.ledger.end(self.clock.now(), connection, self.sink);
        self.drop_connection(key);
        next.into_iter().for_each(|opening| self.begin(opening));
    }

    /// A connection is no more. Its flow stays unfinished.
    pub(super) fn fail(&mut self, key: Key, error: &io::Error) {
        let Some(connection) = self.connections.get(&key) else { return };
        self.ledger.fail(connection, error);
        self.drop_connection(key);
    }

    /// Closes a connection, and counts what its sockets have counted.
    pub(super) fn drop_connection(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(&key) else { return };
        let Opening { src, dst, .. } = connection.opening;
        let address = self.settings.places[src as usize].address;
        self.peers.remove(&(address, connection.port, dst));
        self.ports.remove(&(src, connection.port));
        for end in [Some(connection.client), connection.server].into_iter().flatten() {
            self.ledger.close(&end.socket.info());
            socket::close(end.socket);
        }
    }

    /// The run is over: hands over the records of what is not, and returns the counts.
    pub(super) fn conclude(mut self) -> Counts {
        let end = self.clock.now().min(self.plan.horizon);
        let open: Vec<Key> = self.connections.keys().copied().collect();
        for key in open {
            if let Some(connection) = self.connections.get(&key) {
                self.ledger.leave(end, connection);
            }
            self.drop_connection(key);
        }
        let mut counts = self.ledger.conclude(end, self.sink);
        counts.sampled = self.chosen.take().map(Chosen::flows).unwrap_or_default();
        counts
    }
}
