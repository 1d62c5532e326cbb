//! Flows end: completions, queries, failures, and the records of them.
//!
//! Invariant: each flow that started makes exactly one record.

use super::super::connection::{Connection, End, Opening, Role, Side};
use super::super::info::TcpInfo;
use super::super::records::Seen;
use super::*;
use std::io;

impl Engine<'_> {
    /// The receiver has all bytes of a flow.
    pub(super) fn deliver(&mut self, now: Time, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.delivered = Some(now);
        let opening = connection.opening;
        if let Some(query) = opening.query {
            self.answered(now, query);
        }
        let (flow, host) = match opening.role {
            Role::Exchange { .. } => (opening.flow + 1, opening.src),
            _ => (opening.flow, opening.dst),
        };
        let mut due = Vec::new();
        self.dependents.delivered(now, (flow, opening.class), host, &mut due);
        for (at, flow) in due {
            self.to_start += 1;
            self.set_timer(at, Timer::Waited(flow));
        }
    }

    fn answered(&mut self, now: Time, query: u32) {
        let Some(pending) = self.queries.get_mut(&query) else { return };
        pending.completed += 1;
        if pending.completed == pending.query.degree
            && let Some(Pending { query, completed }) = self.queries.remove(&query)
        {
            self.goes_on &= self.sink.query(self.recorder.query(&query, completed, Some(now)));
        }
    }

    /// A flow is delivered and acknowledged.
    pub(super) fn end(&mut self, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let record = self.recorder.flow(&seen(connection));
        let opening = connection.opening;
        self.drop_connection(key);
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= self.sink.flow(record);
        if let Role::Shuffle { source } = opening.role {
            let now = self.clock.now();
            self.next_of_shuffle(now, source, opening.src);
        }
    }

    /// The record of the flow or call that a connection leaves unfinished.
    fn unfinished(&self, c: &Connection) -> FlowRecord {
        match c.opening.role {
            Role::Rpc { .. } => self.recorder.call(&c.opening, c.asked, None),
            _ => self.recorder.flow(&seen(c)),
        }
    }

    /// A connection is no more. Its flow stays unfinished.
    pub(super) fn fail(&mut self, key: Key, error: &io::Error) {
        let Some(connection) = self.connections.get(key) else { return };
        let Opening { flow, src, dst, .. } = connection.opening;
        self.counts.fail(error, || format!("flow {flow} from host {src} to host {dst}"));
        if !connection.is_probe() {
            self.failed.push(self.unfinished(connection));
            self.counts.failed += 1;
            self.active -= 1;
        }
        self.drop_connection(key);
    }

    /// A flow's connection cannot even begin to open.
    pub(super) fn fail_opening(&mut self, opening: &Opening, error: &io::Error) {
        let Opening { flow, src, dst, role, .. } = *opening;
        self.counts.fail(error, || format!("flow {flow} from host {src} to host {dst}"));
        if !matches!(role, Role::Probe { .. }) {
            self.failed.push(self.recorder.opening(opening));
            self.counts.failed += 1;
            self.active -= 1;
        }
    }

    /// Closes a connection, and counts what its sockets have counted.
    pub(super) fn drop_connection(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else { return };
        let Opening { src, dst, .. } = connection.opening;
        let address = self.settings.places[src as usize].address;
        self.peers.remove(&(address, connection.port, dst));
        self.ports.remove(&(src, connection.port));
        for end in [Some(connection.client), connection.server].into_iter().flatten() {
            let info = TcpInfo::of(&end.socket);
            self.counts.retransmitted += u64::from(info.retransmitted);
            self.counts.timeouts += u64::from(info.timeouts);
            self.counts.out_of_order += u64::from(info.out_of_order);
            socket::close(end.socket);
        }
    }

    /// The run is over: hands over the records of what is not, and returns the counts.
    pub(super) fn conclude(mut self) -> Counts {
        let end = self.clock.now().min(self.plan.horizon);
        (self.counts.ended, self.counts.interrupted) = (end, !self.goes_on);
        let open: Vec<Key> = self.connections.iter().map(|(key, _)| key).collect();
        for key in open {
            if let Some(connection) = self.connections.get(key) {
                if !connection.is_probe() {
                    self.failed.push(self.unfinished(connection));
                }
                for side in [Side::Client, Side::Server] {
                    if end > self.plan.warm_up && is_sending(connection, side) {
                        self.counts.pairs.entry(connection.pair(side)).or_insert(0);
                    }
                }
            }
            self.drop_connection(key);
        }
        self.failed.sort_by_key(|record| (record.flow, record.start));
        for record in std::mem::take(&mut self.failed) {
            self.sink.flow(record);
        }
        for Pending { query, completed } in std::mem::take(&mut self.queries).into_values() {
            self.sink.query(self.recorder.query(&query, completed, None));
        }
        (self.counts.late, self.counts.waiting) = self.dependents.not_started();
        self.counts.goodput = self.goodput.finish(end);
        self.counts.sampled = self.chosen.take().map(Chosen::flows).unwrap_or_default();
        self.counts
    }
}

/// A connection's flow as it stands. A response that has not begun has its request's sender.
fn seen(c: &Connection) -> Seen<'_> {
    let sender = match c.opening.role {
        Role::Exchange { .. } if c.answers => Side::Server,
        _ => Side::Client,
    };
    let is_of_sender = c.sender() == Some(sender);
    let (sending, receiving) = (c.end(sender), c.end(sender.other()));
    let info = |end: Option<&End>| end.map(|end| TcpInfo::of(&end.socket)).unwrap_or_default();
    Seen {
        opening: &c.opening,
        answers: c.answers,
        delivered: c.delivered,
        first_sent: sending.and_then(|end| end.first_sent),
        acked: sending.and_then(|end| end.acked),
        sent: info(sending),
        received: info(receiving.filter(|_| is_of_sender)),
    }
}

/// Whether an end has bytes that are not acknowledged, or not sent; probes do not count.
fn is_sending(connection: &Connection, side: Side) -> bool {
    let waits = |end: &End| {
        end.to_send > 0 || end.first_sent.is_some() && socket::unacknowledged(&end.socket) > 0
    };
    !connection.is_probe() && connection.end(side).is_some_and(waits)
}
