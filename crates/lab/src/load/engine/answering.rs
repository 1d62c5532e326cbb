//! Complete messages: an answer, the next call, the next question or a delivery follows.

use super::super::connection::{Role, Side};
use super::*;

impl Engine<'_> {
    /// An end has all bytes of a message.
    pub(super) fn received(&mut self, now: Time, key: Key, side: Side) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let opening = connection.opening;
        match (opening.role, side) {
            (Role::OneWay | Role::Shuffle { .. }, _) | (Role::Exchange { .. }, Side::Client) => {
                self.ledger.deliver(now, connection, self.sink);
            }
            (Role::Exchange { .. }, Side::Server) => {
                match self.ledger.recorder.thinks(opening.class, opening.flow + 1) {
                    Time::ZERO => self.answer(key),
                    time => {
                        connection.answers = true;
                        self.set_timer(now.saturating_add(time), Timer::Answer(key));
                    }
                }
            }
            (Role::Rpc { .. } | Role::Probe { .. }, Side::Server) => self.answer(key),
            (Role::Rpc { .. }, Side::Client) => self.called(now, key),
            (Role::Probe { .. }, Side::Client) => self.probed(now, key),
        }
    }

    /// A server sends its answer.
    pub(super) fn answer(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let opening = connection.opening;
        let bytes = connection.answer();
        connection.answers = true;
        connection.client.to_receive += bytes;
        if opening.role.is_persistent()
            && let Some(server) = &mut connection.server
        {
            // The next request.
            server.to_receive += opening.bytes;
        }
        self.write(key, Side::Server, bytes);
    }

    /// A call is complete; the next one follows.
    fn called(&mut self, now: Time, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let bytes = connection.opening.bytes;
        match self.ledger.call(now, connection, self.sink) {
            true => self.write(key, Side::Client, bytes),
            false => self.drop_connection(key),
        }
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, key: Key) {
        let now = self.clock.now();
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.asked = now;
        let bytes = connection.opening.bytes;
        self.write(key, Side::Client, bytes);
    }

    /// A probe is answered, and asks again when the period is over.
    fn probed(&mut self, now: Time, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match self.ledger.probe(now, connection, self.sink) {
            Some(next) => self.set_timer(next, Timer::Ask(key)),
            None => self.drop_connection(key),
        }
    }
}
