//! Samples: what a partition's queues, deliveries and connections are at exact virtual times.
//!
//! A sample is taken between events, just before all that happens at its instant, and is no event
//! itself: it changes nothing and costs one comparison a window where none is asked for. All
//! partitions sample at the same times, so who is where does not matter.
//!
//! A connection sampler keeps to the first `max` connections that it finds, in the order of (time,
//! flow). The director does the same for all partitions together: of what is first there, nothing
//! can have been left out here.
//!
//! Invariant: samples are a function of the plan alone, for any number of partitions and threads
//! and either kind of port.

use crate::hosts::Hosts;
use crate::switch_node::SwitchNode;
use millpond_core::{FlowId, Time};
use millpond_results::{ConnectionRecord, Node, QueueRecord};
use millpond_scenario::plan::{CapturePlan, ConnectionCapture, QueueCapture};
use millpond_scenario::topology::End;
use std::collections::BTreeSet;
use std::sync::Arc;

/// When samples are due.
struct Clock {
    /// From one to the next.
    period: Time,
    /// The next one; `Time::MAX`: never.
    due: Time,
}

impl Clock {
    /// `None`: never.
    fn new(period: Option<Time>) -> Clock {
        Clock { period: period.unwrap_or_default(), due: period.unwrap_or(Time::MAX) }
    }

    /// Whether a sample is due at `at`; then the next one is due a period later.
    fn strikes(&mut self, at: Time) -> bool {
        let strikes = self.due == at;
        if strikes {
            self.due = at.saturating_add(self.period);
        }
        strikes
    }
}

/// All samplers of a partition.
pub struct Samplers {
    queues: QueueSampler,
    connections: Option<ConnectionSampler>,
    goodput: Clock,
    /// Of each sample of the goodput, bytes by class since the beginning.
    pub delivered: Vec<Vec<u64>>,
}

impl Samplers {
    /// As the plan asks, of these switches and hosts.
    pub fn new(plan: &CapturePlan, switches: &[SwitchNode], hosts: &Hosts) -> Samplers {
        Samplers {
            queues: QueueSampler::new(plan.queues.as_ref(), switches, hosts),
            connections: plan.connections.clone().map(ConnectionSampler::new),
            goodput: Clock::new(plan.goodput),
            delivered: Vec::new(),
        }
    }

    /// When the next sample is due, if that is before `end`.
    pub fn next(&self, end: Time) -> Option<Time> {
        let connections = self.connections.as_ref().map_or(Time::MAX, |sampler| sampler.clock.due);
        Some(self.queues.clock.due.min(self.goodput.due).min(connections)).filter(|due| *due < end)
    }

    /// When the next row of a connection may be due. A window that has one is not skipped for want
    /// of events, or the rows of a long silence would all be in memory at its end.
    pub fn next_connection(&self, hosts: &Hosts) -> Option<Time> {
        self.connections.as_ref().filter(|_| hosts.has_senders()).map(|sampler| sampler.clock.due)
    }

    /// Takes the samples that are due at `at`, before which everything has been served.
    pub fn sample(&mut self, at: Time, switches: &mut [SwitchNode], hosts: &mut Hosts) {
        if self.queues.clock.strikes(at) {
            self.queues.sample(at, switches, hosts);
        }
        if self.goodput.strikes(at) {
            self.delivered.push(hosts.delivered());
        }
        if let Some(connections) = &mut self.connections
            && connections.clock.strikes(at)
        {
            connections.sample(at, hosts);
        }
    }

    /// The run ends at `end`: what was delivered by then is known without what happens at that
    /// instant.
    pub fn finish(&mut self, end: Time, hosts: &Hosts) {
        if self.goodput.strikes(end) {
            self.delivered.push(hosts.delivered());
        }
    }

    /// How many rows wait.
    pub fn waiting(&self) -> usize {
        self.queues.records.len()
            + self.connections.as_ref().map_or(0, |sampler| sampler.records.len())
    }

    /// Hands over the rows that wait.
    pub fn take(&mut self) -> (Vec<QueueRecord>, Vec<ConnectionRecord>) {
        let connections =
            self.connections.as_mut().map(|sampler| std::mem::take(&mut sampler.records));
        (std::mem::take(&mut self.queues.records), connections.unwrap_or_default())
    }
}

/// Samples of queues.
struct QueueSampler {
    clock: Clock,
    /// By port of all switches here, one after the other: whether it is sampled. Empty: all are.
    chosen: Vec<bool>,
    /// Hosts here whose NICs are sampled.
    nics: Vec<u32>,
    /// By port of all switches here, then by sampled NIC: whether it held anything at the last
    /// sample.
    held: Vec<bool>,
    /// What was found.
    records: Vec<QueueRecord>,
}

impl QueueSampler {
    fn new(capture: Option<&QueueCapture>, switches: &[SwitchNode], hosts: &Hosts) -> QueueSampler {
        let (mut chosen, mut nics) = (Vec::new(), Vec::new());
        if let Some(ports) = capture.and_then(|capture| capture.ports.as_ref()) {
            let sites = &hosts.shared.plan.topology.switches;
            let has = |end: End| ports.binary_search(&end).is_ok();
            for it in switches {
                chosen.extend(
                    (0..sites[it.index as usize].ports)
                        .map(|port| has(End::Switch { switch: it.index, port })),
                );
            }
            nics = (0..hosts.hosts.len() as u32)
                .filter(|n| has(End::Host(hosts.hosts[*n as usize].id)))
                .collect();
        }
        let held = Vec::new();
        QueueSampler {
            clock: Clock::new(capture.map(|c| c.every)),
            chosen,
            nics,
            held,
            records: Vec::new(),
        }
    }

    /// The chosen ports that hold something just before `at`, and those that have become empty
    /// since the last sample.
    fn sample(&mut self, at: Time, switches: &mut [SwitchNode], hosts: &mut Hosts) {
        let QueueSampler { chosen, nics, held, records, .. } = self;
        let mut flat = 0;
        let mut found = |node, port, bytes, packets| {
            if flat == held.len() {
                held.push(false);
            }
            if packets > 0 || held[flat] {
                records.push(QueueRecord { at, node, port, bytes, packets });
            }
            held[flat] = packets > 0;
            flat += 1;
        };
        let mut port_here = 0;
        for it in switches {
            let node = Node::Switch(it.index);
            it.switch.occupancy(at, |port, view| {
                if chosen.get(port_here).copied().unwrap_or(chosen.is_empty()) {
                    found(node, port, view.bytes, view.packets);
                }
                port_here += 1;
            });
        }
        for nic in nics {
            let host = &mut hosts.hosts[*nic as usize];
            let view = host.node.occupancy(at);
            found(Node::Host(host.id), 0, view.bytes, view.packets);
        }
    }
}

/// Samples of connections.
struct ConnectionSampler {
    clock: Clock,
    capture: Arc<ConnectionCapture>,
    /// Those that are sampled here.
    chosen: BTreeSet<FlowId>,
    /// What was found, in the order of (time, flow).
    records: Vec<ConnectionRecord>,
}

impl ConnectionSampler {
    fn new(capture: ConnectionCapture) -> ConnectionSampler {
        let clock = Clock::new(Some(capture.every));
        ConnectionSampler {
            clock,
            capture: Arc::new(capture),
            chosen: BTreeSet::new(),
            records: Vec::new(),
        }
    }

    /// A row for each chosen connection that is open just before `at`.
    fn sample(&mut self, at: Time, hosts: &Hosts) {
        let room = self.capture.max - self.chosen.len();
        if room > 0 {
            let mut open = hosts.sampled_by(&self.capture);
            open.retain(|flow| !self.chosen.contains(flow));
            open.sort_unstable();
            self.chosen.extend(open.into_iter().take(room));
        }
        self.records.extend(self.chosen.iter().filter_map(|flow| hosts.connection(at, *flow)));
    }
}

/// Of the connections that partitions have sampled, those that the run keeps.
pub struct ConnectionFilter {
    max: usize,
    kept: BTreeSet<FlowId>,
}

impl ConnectionFilter {
    /// As the plan asks.
    pub fn new(plan: &CapturePlan) -> ConnectionFilter {
        ConnectionFilter {
            max: plan.connections.as_ref().map_or(0, |c| c.max),
            kept: BTreeSet::new(),
        }
    }

    /// Whether a row is kept. Rows come in the order of (time, flow).
    pub fn keeps(&mut self, record: &ConnectionRecord) -> bool {
        self.kept.contains(&record.flow)
            || (self.kept.len() < self.max && self.kept.insert(record.flow))
    }

    /// The flows of the rows that were kept.
    pub fn kept(self) -> BTreeSet<FlowId> {
        self.kept
    }
}
