//! Complete messages: an answer, the next call, the next question or a delivery follows.

use super::super::connection::Side;
use super::super::ledger::Follows;
use super::*;

impl Engine<'_> {
    /// An end has all bytes of a message.
    pub(super) fn received(&mut self, now: Time, key: Key, side: Side) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let bytes = connection.opening.bytes;
        match self.ledger.received(now, connection, side, self.sink) {
            Follows::Delivery => {}
            Follows::Answer => self.answer(key),
            Follows::Thought(at) => self.set_timer(at, Timer::Answer(key)),
            Follows::Call => self.write(key, Side::Client, bytes),
            Follows::Question(at) => self.set_timer(at, Timer::Ask(key)),
            Follows::Nothing => self.drop_connection(key),
        }
    }

    pub(super) fn answer(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let opening = connection.opening;
        let bytes = connection.answer();
        connection.client.to_receive += bytes;
        if opening.role.is_persistent()
            && let Some(server) = &mut connection.server
        {
            // The next request.
            server.to_receive += opening.bytes;
        }
        self.write(key, Side::Server, bytes);
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, key: Key) {
        let now = self.clock.now();
        let Some(connection) = self.connections.get_mut(&key) else { return };
        connection.asked = now;
        let bytes = connection.opening.bytes;
        self.write(key, Side::Client, bytes);
    }
}
