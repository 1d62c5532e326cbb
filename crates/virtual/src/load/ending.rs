//! The end of flows, and of the run.
//!
//! Invariant: each flow that started makes exactly one record.

use super::sampling::Sampling;
use super::{Connection, Load, Pending, Timer, at};
use crate::calendar::Orders;
use millpond_agent::wire::Order;
use millpond_core::Time;
use millpond_lab::load::connection::{Opening, Role, Side};
use millpond_lab::load::info::TcpInfo;
use millpond_lab::load::records::Seen;
use millpond_lab::load::{Counts, Sink};
use millpond_results::FlowRecord;
use millpond_sim::samples::Chosen;

impl Load<'_> {
    /// The receiver has all bytes of a flow.
    pub(super) fn deliver(
        &mut self,
        now: Time,
        connection: u32,
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        it.delivered = Some(now);
        let opening = it.opening;
        if let Some(query) = opening.query {
            self.answered(now, query, sink);
        }
        let (flow, host) = match opening.role {
            Role::Exchange { .. } => (opening.flow + 1, opening.src),
            _ => (opening.flow, opening.dst),
        };
        let mut due = Vec::new();
        self.dependents.delivered(now, (flow, opening.class), host, &mut due);
        for (time, flow) in due {
            self.to_start += 1;
            self.set_timer(time, Timer::Waited(flow));
        }
        self.settle(now, connection, orders, sink);
    }

    fn answered(&mut self, now: Time, query: u32, sink: &mut dyn Sink) {
        let Some(pending) = self.queries.get_mut(&query) else { return };
        pending.completed += 1;
        if pending.completed == pending.query.degree
            && let Some(Pending { query, completed }) = self.queries.remove(&query)
        {
            self.goes_on &= sink.query(self.recorder.query(&query, completed, Some(now)));
        }
    }

    /// A flow is delivered and acknowledged.
    pub(super) fn end_flow(
        &mut self,
        now: Time,
        connection: u32,
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(it) = self.connections.get(&connection) else { return };
        let (record, opening) = (self.recorder.flow(&seen(it)), it.opening);
        self.forget(connection, now, orders);
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= sink.flow(record);
        if let Role::Shuffle { source } = opening.role {
            self.next_of_shuffle(now, source, opening.src, orders);
        }
    }

    /// The record of the flow or call that a connection leaves unfinished.
    pub(super) fn unfinished(&self, it: &Connection) -> FlowRecord {
        match it.opening.role {
            Role::Rpc { .. } => self.recorder.call(&it.opening, it.asked, None),
            _ => self.recorder.flow(&seen(it)),
        }
    }

    /// Has both ends forget a connection, and counts what they have counted.
    pub(super) fn forget(&mut self, connection: u32, now: Time, orders: &mut Orders) {
        let Some(it) = self.connections.remove(&connection) else { return };
        let Opening { src, dst, .. } = it.opening;
        self.ports.remove(&(src, it.port));
        let out_of_order = it.info.iter().map(|info| u64::from(info.out_of_order)).sum::<u64>();
        self.counts.out_of_order += out_of_order;
        for host in [src, dst] {
            self.order(now, host, Order::Close { connection }, orders);
        }
    }

    /// Nothing is to happen any more: asks agents for what they know.
    pub fn stop(&mut self, now: Time, orders: &mut Orders) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(now);
        self.timers.clear();
        self.sample_all(now, Sampling::End, orders);
        for host in 0..self.plan.topology.hosts {
            self.order(now, host, Order::Count, orders);
        }
        self.left = Some(self.plan.topology.hosts);
    }

    /// The run is over: hands over the records of what is not, and returns the counts.
    pub fn conclude(mut self, now: Time, sink: &mut dyn Sink) -> Counts {
        let end = self.ended.unwrap_or(now).min(self.plan.horizon);
        (self.counts.ended, self.counts.interrupted) = (end, !self.goes_on);
        for it in std::mem::take(&mut self.connections).into_values() {
            if !it.is_probe() {
                let record = self.unfinished(&it);
                self.failed.push(record);
            }
            let out_of_order = it.info.iter().map(|info| u64::from(info.out_of_order));
            self.counts.out_of_order += out_of_order.sum::<u64>();
        }
        self.failed.sort_by_key(|record| (record.flow, record.start));
        for record in std::mem::take(&mut self.failed) {
            sink.flow(record);
        }
        for Pending { query, completed } in std::mem::take(&mut self.queries).into_values() {
            sink.query(self.recorder.query(&query, completed, None));
        }
        (self.counts.late, self.counts.waiting) = self.dependents.not_started();
        self.counts.goodput = self.goodput.finish(end);
        self.counts.sampled = self.chosen.take().map(Chosen::flows).unwrap_or_default();
        let counter = |name: &str| self.counters.get(name).copied().unwrap_or(0);
        self.counts.timeouts = counter("TCPTimeouts");
        self.counts.retransmitted = counter("RetransSegs");
        self.counts
    }
}

/// A connection's flow as it stands. A response that has not begun has its request's sender.
fn seen(it: &Connection) -> Seen<'_> {
    let sender = match it.opening.role {
        Role::Exchange { .. } if it.answers => Side::Server,
        _ => Side::Client,
    };
    let is_of_sender = it.sender() == Some(sender);
    let received = if is_of_sender { it.info[at(sender.other())] } else { TcpInfo::default() };
    Seen {
        opening: &it.opening,
        answers: it.answers,
        delivered: it.delivered,
        first_sent: it.first_sent,
        acked: it.acked,
        sent: it.info[at(sender)],
        received,
    }
}
