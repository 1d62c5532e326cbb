//! Samples: what connections have received by some time, and how their senders stand.
//!
//! An agent answers samples in the order in which it was asked, so the front of a host's queue says
//! what a report is for.
//!
//! Invariant: bytes count for the time before a sample that were read before it.

use super::{Connection, Load, Timer, at};
use crate::calendar::Orders;
use millpond_agent::wire::Order;
use millpond_core::{FlowId, Time};
use millpond_lab::load::Sink;
use millpond_lab::load::connection::{Role, Side};
use millpond_lab::load::info::TcpInfo;
use millpond_results::ConnectionRecord;
use millpond_scenario::plan::ConnectionCapture;
use std::collections::BTreeMap;

/// The shortest span of time.
const INSTANT: Time = Time::from_ps(1);

/// The purpose of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    /// Measuring begins after it.
    WarmUp,
    /// Bytes that were read before this time.
    Goodput(Time),
    /// A row for each connection.
    Connections(Time),
    /// Whether a delivered flow is acknowledged.
    Sweep,
    /// The run is over.
    End,
}

/// An end of a connection, as its agent reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub connection: u32,
    pub side: Side,
    pub received: u64,
    pub unsent: u64,
    pub info: TcpInfo,
}

/// The rows of a sample of connections, as they come.
#[derive(Default)]
pub(super) struct Rows {
    rows: BTreeMap<FlowId, ConnectionRecord>,
    /// Hosts that have not answered.
    left: u32,
}

impl Load<'_> {
    /// Asks an agent, which answers in this very instant.
    fn sample(
        &mut self,
        now: Time,
        host: u32,
        (sampling, which): (Sampling, Vec<u32>),
        orders: &mut Orders,
    ) {
        self.samples[host as usize].push_back(sampling);
        self.order(now, host, Order::Sample(which), orders);
    }

    /// Asks all agents for all of their connections.
    pub(super) fn sample_all(&mut self, now: Time, sampling: Sampling, orders: &mut Orders) {
        (0..self.plan.topology.hosts)
            .for_each(|host| self.sample(now, host, (sampling, Vec::new()), orders));
    }

    /// Asks the senders of the connections that are captured.
    pub(super) fn sample_connections(&mut self, now: Time, orders: &mut Orders) {
        let Some(capture) = &self.plan.capture.connections else { return };
        let open: BTreeMap<FlowId, (u32, u32)> = self
            .connections
            .iter()
            .flat_map(|(number, it)| {
                [Side::Client, Side::Server].into_iter().filter_map(|side| {
                    let (host, _) = it.pair(side);
                    Some((flow(capture, it, side)?, (host, *number)))
                })
            })
            .collect();
        let Some(chosen) = &mut self.chosen else { return };
        let chosen = chosen.choose(|_| open.keys().copied().collect());
        let mut asked: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (host, number) in chosen.iter().filter_map(|flow| open.get(flow)) {
            asked.entry(*host).or_default().push(*number);
        }
        self.rows.left = asked.len() as u32;
        for (host, which) in asked {
            self.sample(now, host, (Sampling::Connections(now), which), orders);
        }
        self.set_timer(now.saturating_add(capture.every), Timer::Connections);
    }

    /// Looks whether a flow that was delivered a while ago is acknowledged.
    pub(super) fn sweep(&mut self, now: Time, connection: u32, orders: &mut Orders) {
        let Some(it) = self.connections.get(&connection) else { return };
        let (Some(side), None) = (it.sender(), it.acked) else { return };
        let (host, _) = it.pair(side);
        self.sample(now, host, (Sampling::Sweep, vec![connection]), orders);
    }

    /// A side of a connection has received so many bytes.
    pub(super) fn count_received(&mut self, at_time: Time, number: u32, side: Side, bytes: u64) {
        let Some(it) = self.connections.get_mut(&number) else { return };
        let new = bytes.saturating_sub(it.counted[at(side)]);
        it.counted[at(side)] += new;
        if it.is_probe() || new == 0 {
            return;
        }
        let sender = side.other();
        let pair = it.pair(sender);
        let class = it.opening.class;
        self.goodput.add(at_time, class, new);
        if self.measures[pair.1 as usize] {
            self.counts.bytes_measured += new;
            *self.counts.pairs.entry(pair).or_insert(0) += new;
        }
    }

    /// An agent tells of one end.
    pub(super) fn on_sampled(
        &mut self,
        now: Time,
        host: u32,
        end: &Sampled,
        orders: &mut Orders,
        sink: &mut dyn Sink,
    ) {
        let Some(sampling) = self.samples[host as usize].front().copied() else { return };
        let Some(it) = self.connections.get_mut(&end.connection) else { return };
        it.info[at(end.side)] = end.info;
        match sampling {
            Sampling::WarmUp => {
                let before = self.plan.warm_up.saturating_sub(INSTANT);
                self.count_received(before, end.connection, end.side, end.received);
            }
            Sampling::Goodput(time) => {
                let before = time.saturating_sub(INSTANT);
                self.count_received(before, end.connection, end.side, end.received);
            }
            Sampling::Connections(time) => {
                if let Some(capture) = &self.plan.capture.connections
                    && let Some(flow) = flow(capture, it, end.side)
                {
                    self.rows.rows.insert(flow, row(time, flow, it, end.side));
                }
            }
            Sampling::Sweep => {
                let is_late = it.delivered.is_some() && it.acked.is_none();
                if is_late && end.unsent == 0 && it.sender() == Some(end.side) {
                    it.acked = Some(now);
                    self.counts.unstamped += 1;
                }
                self.settle(now, end.connection, orders, sink);
            }
            Sampling::End => {
                let time = self.ended.unwrap_or(now).saturating_sub(INSTANT);
                let pair = it.pair(end.side);
                let is_sending = end.unsent > 0 && !it.is_probe();
                if is_sending && time > self.plan.warm_up {
                    self.counts.pairs.entry(pair).or_insert(0);
                }
                self.count_received(time, end.connection, end.side, end.received);
            }
        }
    }

    /// An agent has told all that a sample was to tell.
    pub(super) fn on_sample_ends(&mut self, host: u32, sink: &mut dyn Sink) {
        match self.samples[host as usize].pop_front() {
            Some(Sampling::WarmUp) => self.measures[host as usize] = true,
            Some(Sampling::Connections(_)) => {
                self.rows.left = self.rows.left.saturating_sub(1);
                if self.rows.left == 0 {
                    for row in std::mem::take(&mut self.rows.rows).into_values() {
                        self.goes_on &= sink.connection(row);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The flow that a side of a connection sends, if the capture means it and it is under way.
fn flow(capture: &ConnectionCapture, c: &Connection, side: Side) -> Option<FlowId> {
    let flow = c.opening.flow + u32::from(side == Side::Server);
    let (src, dst) = c.pair(side);
    let is_named = capture.flows.as_ref().is_none_or(|flows| flows.binary_search(&flow).is_ok());
    if !is_named || !capture.means(c.opening.class, src, dst) {
        return None;
    }
    let is_under_way = match (c.opening.role, side) {
        (Role::OneWay | Role::Shuffle { .. } | Role::Rpc { .. }, Side::Client) => true,
        // A request is no flow of the results: it must be named.
        (Role::Exchange { .. }, Side::Client) => capture.flows.is_some() && !c.answers,
        (Role::Exchange { .. }, Side::Server) => c.answers,
        (Role::Rpc { .. }, Side::Server) => true,
        (Role::OneWay | Role::Shuffle { .. }, Side::Server) | (Role::Probe { .. }, _) => false,
    };
    is_under_way.then_some(flow)
}

fn row(time: Time, flow: FlowId, c: &Connection, side: Side) -> ConnectionRecord {
    let info = c.info[at(side)];
    let (src, dst) = c.pair(side);
    ConnectionRecord {
        at: time,
        flow,
        class: c.opening.class,
        src,
        dst,
        state: info.state(),
        cwnd: info.cwnd(),
        ssthresh: info.ssthresh(),
        in_flight: info.in_flight(),
        acked: info.acked(side == Side::Client),
        srtt: Some(info.srtt).filter(|srtt| *srtt > Time::ZERO),
        rto: info.rto,
        retransmitted: info.retransmitted,
        timeouts: info.timeouts,
        // The kernel does not report what its control laws steer by.
        law: Vec::new(),
    }
}
