//! Samples: what connections have received by some time, and how their senders stand.
//!
//! An agent answers samples in the order in which it was asked, so the front of a host's queue
//! names the purpose of a report.
//!
//! Invariant: bytes count for the time before a sample that were read before it.

use super::{Load, Timer};
use millpond_agent::wire::Order;
use millpond_core::{FlowId, Time};
use millpond_lab::load::Sink;
use millpond_lab::load::connection::Side;
use millpond_lab::load::info::TcpInfo;
use millpond_lab::load::records;
use millpond_results::ConnectionRecord;
use std::collections::BTreeMap;

const INSTANT: Time = Time::from_ps(1);
/// The most connections of an order.
const ASKED_MAX: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sampling {
    /// Bytes that were read before this time.
    Read(Time),
    /// A row for each connection; whether the host's part of the sample ends with it.
    Connections(Time, bool),
    /// Whether a delivered flow is acknowledged.
    Sweep,
    End(Time),
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

/// Rows of samples of connections, by time and flow as they come, and how many hosts have not
/// answered.
#[derive(Default)]
pub(super) struct Rows(BTreeMap<Time, (u32, BTreeMap<FlowId, ConnectionRecord>)>);

impl Load<'_> {
    /// Asks an agent, which answers in this very instant.
    fn sample(&mut self, host: u32, sampling: Sampling, which: Vec<u32>) {
        self.samples[host as usize].push_back(sampling);
        self.order(host, &Order::Sample(which));
    }

    /// Asks all agents for all of their connections.
    pub(super) fn sample_all(&mut self, sampling: Sampling) {
        super::kernels(self.plan).for_each(|host| self.sample(host, sampling, Vec::new()));
    }

    /// Asks the senders of the connections that are captured, for the sample that was due at `at`.
    pub(super) fn sample_connections(&mut self, at: Time) {
        let Some(capture) = &self.plan.capture.connections else { return };
        let Some(chosen) = &mut self.chosen else { return };
        let open = records::under_way(capture, self.connections.values());
        let chosen = chosen.choose(|_| open.keys().copied().collect());
        let mut asked: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (connection, side) in chosen.iter().filter_map(|flow| open.get(flow)) {
            asked.entry(connection.pair(*side).0).or_default().push(connection.opening.flow);
        }
        if !asked.is_empty() {
            self.rows.0.insert(at, (asked.len() as u32, BTreeMap::new()));
        }
        for (host, which) in asked {
            let last = which.chunks(ASKED_MAX).len() - 1;
            for (index, some) in which.chunks(ASKED_MAX).enumerate() {
                self.sample(host, Sampling::Connections(at, index == last), some.to_vec());
            }
        }
        self.set_timer(at.saturating_add(capture.every), Timer::Connections);
    }

    /// Looks whether a flow that was delivered a while ago is acknowledged.
    pub(super) fn sweep(&mut self, number: u32) {
        let Some(connection) = self.connections.get(&number) else { return };
        let Some(side) = connection.sender() else { return };
        self.sample(connection.pair(side).0, Sampling::Sweep, vec![number]);
    }

    /// A side of a connection has received so many bytes by `at`.
    pub(super) fn count(&mut self, at: Time, number: u32, side: Side, received: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let Some(end) = connection.end_mut(side) else { return };
        let new = received.saturating_sub(end.socket.counted);
        end.socket.counted += new;
        self.ledger.read(at, connection, side, new);
    }

    pub(super) fn on_sampled(&mut self, host: u32, sampled: &Sampled, sink: &mut dyn Sink) {
        let Some(sampling) = self.samples[host as usize].front().copied() else { return };
        let Sampled { connection: number, side, received, unsent, info } = *sampled;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let is_late =
            connection.delivered.is_some() && connection.sender() == Some(side) && unsent == 0;
        let Some(end) = connection.end_mut(side) else { return };
        (end.socket.info, end.socket.unacknowledged) = (info, unsent);
        match sampling {
            Sampling::Read(at) | Sampling::End(at) => {
                self.count(at.saturating_sub(INSTANT), number, side, received);
            }
            Sampling::Connections(at, _) => {
                let Some(capture) = &self.plan.capture.connections else { return };
                if let Some(flow) = records::sampled_flow(capture, connection, side)
                    && let Some(row) = records::sample(at, flow, connection, side)
                    && let Some((_, rows)) = self.rows.0.get_mut(&at)
                {
                    rows.insert(flow, row);
                }
            }
            Sampling::Sweep => {
                if is_late && end.acked.is_none() {
                    end.acked = Some(self.now);
                    self.ledger.counts.unstamped += 1;
                }
                self.settle(number, sink);
            }
        }
    }

    /// An agent has reported all of a sample.
    pub(super) fn on_sample_ends(&mut self, host: u32, sink: &mut dyn Sink) {
        let ended = self.samples[host as usize].pop_front();
        let Some(Sampling::Connections(at, true)) = ended else { return };
        if let Some((left, _)) = self.rows.0.get_mut(&at) {
            *left -= 1;
        }
        // A sample whose agents are late holds up those after it.
        while let Some(first) = self.rows.0.first_entry().filter(|first| first.get().0 == 0) {
            for row in first.remove().1.into_values() {
                self.ledger.goes_on &= sink.connection(row);
            }
        }
    }
}
