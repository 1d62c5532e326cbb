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
                self.deliver(now, key);
            }
            (Role::Exchange { .. }, Side::Server) => {
                match self.recorder.thinks(opening.class, opening.flow + 1) {
                    Time::ZERO => self.answer(key),
                    time => {
                        connection.answers = true;
                        self.set_timer(now.saturating_add(time), Timer::Answer(key));
                    }
                }
            }
            (Role::Rpc { .. } | Role::Probe { .. }, Side::Server) => self.answer(key),
            (Role::Rpc { stop, .. }, Side::Client) => self.called(now, key, stop),
            (Role::Probe { period, stop }, Side::Client) => self.probed(now, key, (period, stop)),
        }
    }

    /// A server sends its answer.
    pub(super) fn answer(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let opening = connection.opening;
        let bytes = match opening.role {
            Role::Exchange { response } | Role::Rpc { response, .. } => response,
            _ => opening.bytes,
        };
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
    fn called(&mut self, now: Time, key: Key, stop: Time) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let record = self.recorder.call(&connection.opening, connection.asked, Some(now));
        connection.asked = now;
        let bytes = connection.opening.bytes;
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= self.sink.flow(record);
        if now >= stop {
            return self.drop_connection(key);
        }
        self.counts.started += 1;
        self.active += 1;
        self.write(key, Side::Client, bytes);
    }

    /// A probe asks, as it is due.
    pub(super) fn ask(&mut self, key: Key) {
        let now = self.clock.now();
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.asked = now;
        let bytes = connection.opening.bytes;
        self.write(key, Side::Client, bytes);
    }

    /// A probe is answered: measures it, and asks again when the period is over.
    fn probed(&mut self, now: Time, key: Key, (period, stop): (Time, Time)) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let asked = connection.asked;
        let next = connection.due.saturating_add(period).max(now);
        connection.due = next;
        if asked >= self.plan.warm_up {
            self.goes_on &= self.sink.rtt(now.saturating_sub(asked));
        }
        if next < stop {
            self.set_timer(next, Timer::Ask(key));
        } else {
            self.drop_connection(key);
        }
    }
}
