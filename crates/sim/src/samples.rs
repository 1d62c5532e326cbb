//! Samples: what a partition's queues, deliveries and connections are at exact virtual times.
//!
//! The lab samples by the same [`Clock`], [`QueueSampler`] and [`Chosen`].
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
use millpond_core::packet::{PacketId, Packets};
use millpond_core::switch::{QueueView, Switch};
use millpond_core::{FlowId, HostId, Packet, Time};
use millpond_results::{ConnectionRecord, FlowShare, Node, QueueRecord};
use millpond_scenario::plan::{CapturePlan, ConnectionCapture, QueueCapture};
use millpond_scenario::topology::End;
use std::collections::{BTreeMap, BTreeSet};

pub struct Clock {
    period: Time,
    /// The next one; `Time::MAX`: never.
    due: Time,
}

impl Clock {
    /// The first one is due a period after `from`. Without a period: never.
    pub fn new(period: Option<Time>, from: Time) -> Clock {
        let due = period.map_or(Time::MAX, |period| from.saturating_add(period));
        Clock { period: period.unwrap_or_default(), due }
    }

    /// When the next sample is due; `Time::MAX`: never.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether a sample is due at `at`; then the next one is due a period later.
    pub fn strikes(&mut self, at: Time) -> bool {
        let strikes = self.due == at;
        if strikes {
            self.due = at.saturating_add(self.period);
        }
        strikes
    }

    /// Leaves out the samples that are due before `until`.
    pub fn skip(&mut self, until: Time) {
        let behind = until.saturating_sub(self.due);
        if behind > Time::ZERO {
            let periods = behind.as_ps().div_ceil(self.period.as_ps());
            self.due = self.due.saturating_add(Time::from_ps(periods * self.period.as_ps()));
        }
    }
}

pub struct Samplers {
    queues: QueueSampler,
    /// The fullest sample of each port, if the plan asks for contents.
    pub peaks: Option<BTreeMap<(Node, u16), Peak>>,
    connections: Option<ConnectionSampler>,
    goodput: Clock,
    /// Of each sample of the goodput, bytes by class since the beginning.
    pub delivered: Vec<Vec<u64>>,
}

impl Samplers {
    /// As the plan asks, of these switches and hosts.
    pub fn new(plan: &CapturePlan, switches: &[SwitchNode], hosts: &Hosts) -> Samplers {
        let sites = &hosts.shared.plan.topology.switches;
        let switches = switches.iter().map(|it| (it.index, sites[it.index as usize].ports));
        let topology = &hosts.shared.plan.topology;
        let nics = hosts
            .hosts
            .iter()
            .map(|host| (host.id, (topology.host_of(host.id), topology.nic_number(host.id))));
        Samplers {
            queues: QueueSampler::new(plan.queues.as_ref(), Time::ZERO, switches, nics),
            peaks: plan.queues.as_ref().filter(|queues| queues.flows).map(|_| BTreeMap::new()),
            connections: plan.connections.clone().map(ConnectionSampler::new),
            goodput: Clock::new(plan.goodput, Time::ZERO),
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
    pub fn sample(
        &mut self,
        at: Time,
        switches: &mut [SwitchNode],
        hosts: &mut Hosts,
        packets: &Packets,
    ) {
        let before = self.queues.records.len();
        let all = switches.iter_mut().map(|it| (it.index, &mut it.switch));
        self.queues.sample(at, all, |host| hosts.hosts[host as usize].node.occupancy(at));
        if let Some(peaks) = &mut self.peaks {
            for sample in &self.queues.records[before..] {
                let highest = peaks.get(&(sample.node, sample.port));
                if highest.map_or(0, |peak| peak.sample.bytes) < sample.bytes {
                    let waiting = waiting_at(sample, switches, hosts);
                    let peak = Peak::of(sample, waiting.iter().map(|id| &packets[*id]), hosts);
                    peaks.insert((sample.node, sample.port), peak);
                }
            }
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

    pub fn waiting(&self) -> usize {
        self.queues.records.len()
            + self.connections.as_ref().map_or(0, |sampler| sampler.records.len())
    }

    /// Hands over the rows that wait.
    pub fn take(&mut self) -> (Vec<QueueRecord>, Vec<ConnectionRecord>) {
        let connections =
            self.connections.as_mut().map(|sampler| std::mem::take(&mut sampler.records));
        (self.queues.take(), connections.unwrap_or_default())
    }
}

/// The fullest sample of a port, of several the first.
#[derive(Clone, Debug)]
pub struct Peak {
    pub sample: QueueRecord,
    /// Its bytes by flow and direction, the most first.
    pub flows: Vec<FlowShare>,
}

impl Peak {
    fn of<'a>(
        sample: &QueueRecord,
        packets: impl Iterator<Item = &'a Packet>,
        hosts: &Hosts,
    ) -> Peak {
        let topology = &hosts.shared.plan.topology;
        let mut flows: BTreeMap<(FlowId, HostId, HostId), u64> = BTreeMap::new();
        for packet in packets {
            let ends = [packet.src, packet.dst].map(|nic| topology.host_of(nic));
            *flows.entry((packet.flow, ends[0], ends[1])).or_default() += u64::from(packet.size);
        }
        let share = |((flow, src, dst), bytes)| FlowShare { flow, src, dst, bytes };
        let mut flows: Vec<FlowShare> = flows.into_iter().map(share).collect();
        // Stable: flows of equal bytes stay in the order of their numbers.
        flows.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        Peak { sample: *sample, flows }
    }
}

/// The packets that wait at the port of this sample.
fn waiting_at(sample: &QueueRecord, switches: &[SwitchNode], hosts: &Hosts) -> Vec<PacketId> {
    match sample.node {
        Node::Switch(index) => {
            let node = switches.iter().find(|it| it.index == index);
            node.map_or(Vec::new(), |node| node.switch.waiting(sample.port))
        }
        Node::Host(host) => {
            let nic = hosts.shared.plan.topology.nics(host).nth(usize::from(sample.port));
            nic.map_or(Vec::new(), |nic| {
                hosts.hosts[hosts.shared.local_host(nic) as usize].node.waiting_packets()
            })
        }
    }
}

/// Samples of the queues of some switches' ports and some hosts' NICs.
pub struct QueueSampler {
    clock: Clock,
    /// By port of all switches here, one after the other: whether it is sampled. Empty: all are.
    chosen: Vec<bool>,
    /// NICs here that are sampled: the place among those here, the host, and the NIC's number.
    nics: Vec<(u32, (HostId, u16))>,
    /// By port of all switches here, then by sampled NIC: whether it held anything at the last
    /// sample.
    held: Vec<bool>,
    records: Vec<QueueRecord>,
}

impl QueueSampler {
    /// As a plan asks, from a period after `from` on: of these switches (number and ports) and NICs
    /// (address, with host and number). Without a capture no sample is ever due.
    pub fn new(
        capture: Option<&QueueCapture>,
        from: Time,
        switches: impl Iterator<Item = (u32, u16)>,
        hosts: impl Iterator<Item = (u32, (HostId, u16))>,
    ) -> QueueSampler {
        let (mut chosen, mut nics) = (Vec::new(), Vec::new());
        if let Some(ports) = capture.and_then(|capture| capture.ports.as_ref()) {
            let has = |end: End| ports.binary_search(&end).is_ok();
            for (switch, count) in switches {
                chosen.extend((0..count).map(|port| has(End::Switch { switch, port })));
            }
            let chosen = (0..).zip(hosts).filter(|(_, (address, _))| has(End::Host(*address)));
            nics = chosen.map(|(place, (_, nic))| (place, nic)).collect();
        }
        let clock = Clock::new(capture.map(|c| c.every), from);
        QueueSampler { clock, chosen, nics, held: Vec::new(), records: Vec::new() }
    }

    /// When the next sample is due; `Time::MAX`: never.
    pub fn due(&self) -> Time {
        self.clock.due()
    }

    /// All queues are empty until `until`: leaves out samples before it that would find nothing
    /// new.
    pub fn skip(&mut self, until: Time) {
        if !self.held.contains(&true) {
            self.clock.skip(until);
        }
    }

    /// Takes the sample that is due at `at`, if one is: the chosen ports that hold something just
    /// before, and those that have become empty since the last sample. `nic` returns what waits in
    /// the NIC of a host, by its place among those here.
    pub fn sample<'a>(
        &mut self,
        at: Time,
        switches: impl Iterator<Item = (u32, &'a mut Switch)>,
        mut nic: impl FnMut(u32) -> QueueView,
    ) {
        if !self.clock.strikes(at) {
            return;
        }
        let QueueSampler { chosen, nics, held, records, .. } = self;
        let mut flat = 0;
        let mut found = |node, port, view: QueueView| {
            if flat == held.len() {
                held.push(false);
            }
            let QueueView { packets, bytes } = view;
            if packets > 0 || held[flat] {
                records.push(QueueRecord { at, node, port, bytes, packets });
            }
            held[flat] = packets > 0;
            flat += 1;
        };
        let mut port_here = 0;
        for (index, switch) in switches {
            let node = Node::Switch(index);
            switch.occupancy(at, |port, view| {
                if chosen.get(port_here).copied().unwrap_or(chosen.is_empty()) {
                    found(node, port, view);
                }
                port_here += 1;
            });
        }
        for (place, (host, number)) in nics {
            found(Node::Host(*host), *number, nic(*place));
        }
    }

    /// Hands over the rows that wait.
    pub fn take(&mut self) -> Vec<QueueRecord> {
        std::mem::take(&mut self.records)
    }
}

/// The connections that a capture keeps to: the first `max` that it finds open, of several at a
/// time the lowest numbers.
pub struct Chosen {
    capture: ConnectionCapture,
    flows: BTreeSet<FlowId>,
}

impl Chosen {
    /// None yet.
    pub fn new(capture: ConnectionCapture) -> Chosen {
        Chosen { capture, flows: BTreeSet::new() }
    }

    /// Those to sample now, in ascending order, some of which may be over. `open` returns the open
    /// ones that the capture means, in any order; it is asked while there is room for more.
    pub fn choose(
        &mut self,
        open: impl FnOnce(&ConnectionCapture) -> Vec<FlowId>,
    ) -> &BTreeSet<FlowId> {
        let room = self.capture.max - self.flows.len();
        if room > 0 {
            let mut open = open(&self.capture);
            open.retain(|flow| !self.flows.contains(flow));
            open.sort_unstable();
            self.flows.extend(open.into_iter().take(room));
        }
        &self.flows
    }

    pub fn flows(self) -> BTreeSet<FlowId> {
        self.flows
    }
}

struct ConnectionSampler {
    clock: Clock,
    chosen: Chosen,
    /// The findings, in the order of (time, flow).
    records: Vec<ConnectionRecord>,
}

impl ConnectionSampler {
    fn new(capture: ConnectionCapture) -> ConnectionSampler {
        let clock = Clock::new(Some(capture.every), Time::ZERO);
        ConnectionSampler { clock, chosen: Chosen::new(capture), records: Vec::new() }
    }

    /// A row for each chosen connection that is open just before `at`.
    fn sample(&mut self, at: Time, hosts: &Hosts) {
        let chosen = self.chosen.choose(|capture| hosts.sampled_by(capture));
        self.records.extend(chosen.iter().filter_map(|flow| hosts.connection(at, *flow)));
    }
}

/// Of the connections that partitions have sampled, those that the run keeps.
pub struct ConnectionFilter {
    max: usize,
    kept: BTreeSet<FlowId>,
}

impl ConnectionFilter {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_keeps_to_its_multiples_when_it_skips() {
        let us = Time::from_us;
        let mut clock = Clock::new(Some(us(10)), us(3));
        assert!(!clock.strikes(us(10)) && clock.strikes(us(13)));
        clock.skip(us(23));
        assert_eq!(clock.due(), us(23));
        clock.skip(us(54));
        assert_eq!(clock.due(), us(63));
        let mut never = Clock::new(None, us(3));
        never.skip(us(9));
        assert_eq!(never.due(), Time::MAX);
    }
}
