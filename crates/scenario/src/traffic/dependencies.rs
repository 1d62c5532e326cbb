//! Flows that start when others are delivered, as in collective operations and staged shuffles.
//!
//! The dependencies are a graph without cycles, which a plan has from the beginning. Its nodes
//! are flows, and barriers: a traffic that waits for whole traffics has one for each of them, which
//! counts deliveries at a host of its own.
//!
//! A delivery is news, and news travels: at its own host it is known at once, at another after the
//! propagation delay of the quickest way there. So a flow starts at the latest, over all that it
//! waits for, of delivery + max(its delay, that way). No time depends on how the network is
//! simulated, and none is before its cause.
//!
//! Invariant: a node counts each of those that it waits for once; flows are numbered from
//! `first_flow` in the order of their lists, whatever starts first.

use super::Arrival;
use super::emitted::Emitted;
use super::news::News;
use crate::settings::flows::FlowTable;
use crate::topology::Topology;
use millpond_core::{FlowId, HostId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node of the graph: a flow's place in its order, or behind all flows a barrier's.
pub type NodeId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// When it starts, if it waits for nothing; otherwise how long after what it waits for.
    pub start: Time,
    pub src: HostId,
    pub dst: HostId,
    pub bytes: u64,
    pub class: u16,
    /// It does not start from here on.
    pub stop: Time,
}

#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// The id of the first of `flows`; the others have the next.
    pub first_flow: FlowId,
    /// Flows that wait, or are waited for by id.
    pub flows: Vec<Dependent>,
    /// The lists that name flows, by the place of their first.
    ids: BTreeMap<NodeId, Arc<FlowTable>>,
    /// By barrier: the host where it is counted.
    homes: Vec<HostId>,
    /// By node: deliveries that it waits for.
    waits_for: Vec<u64>,
    /// By node: where its successors begin in `successors`.
    first: Vec<u32>,
    successors: Vec<NodeId>,
    /// By class: the barrier that counts its flows.
    barriers: BTreeMap<u16, NodeId>,
    /// How news travels to where it is awaited.
    news: News,
}

impl Dependencies {
    /// The place of a flow, if it is one of these.
    pub fn node(&self, flow: FlowId) -> Option<NodeId> {
        flow.checked_sub(self.first_flow).filter(|node| (*node as usize) < self.flows.len())
    }

    /// The barrier that counts this class's flows, if they are none of these.
    pub fn barrier(&self, class: u16) -> Option<NodeId> {
        self.barriers.get(&class).copied()
    }

    /// The nodes that wait for a node.
    pub fn successors(&self, node: NodeId) -> &[NodeId] {
        let from = self.first[node as usize] as usize;
        &self.successors[from..self.first[node as usize + 1] as usize]
    }

    /// How many deliveries a node waits for.
    pub fn waits_for(&self, node: NodeId) -> u64 {
        self.waits_for[node as usize]
    }

    /// The flow, if the node is one and not a barrier.
    pub fn flow(&self, node: NodeId) -> Option<&Dependent> {
        self.flows.get(node as usize)
    }

    /// Where a node waits: a flow at its source.
    pub fn home(&self, node: NodeId) -> HostId {
        match self.flow(node) {
            Some(flow) => flow.src,
            None => self.homes[node as usize - self.flows.len()],
        }
    }

    /// When a node can go on, as far as it waits for something that happened at `host` at `now`.
    pub fn earliest(&self, now: Time, host: HostId, node: NodeId) -> Time {
        let delay = self.flow(node).map_or(Time::ZERO, |flow| flow.start);
        now.saturating_add(delay.max(self.news.way(host, self.home(node))))
    }

    pub fn arrival(&self, node: NodeId, at: Time) -> Option<Arrival> {
        let Dependent { src, dst, bytes, class, .. } = *self.flow(node)?;
        Some(Arrival {
            at,
            src,
            dst,
            bytes,
            response: 0,
            class,
            flow: self.first_flow + node,
            query: None,
        })
    }

    /// The lists that name flows, each with the id of its first flow.
    pub(super) fn lists(&self) -> impl Iterator<Item = (FlowId, &FlowTable)> {
        self.ids.iter().map(|(first, table)| (self.first_flow + first, &**table))
    }

    /// The name of a flow in its list.
    pub fn id(&self, node: NodeId) -> Option<&str> {
        let (first, table) = self.ids.range(..=node).next_back()?;
        table.id((node - first) as usize)
    }
}

/// Those of the graph's flows that wait for nothing, in the order of their starts.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    pub graph: Arc<Dependencies>,
    pub order: Arc<[NodeId]>,
    pub next: usize,
}

impl Roots {
    pub fn new(graph: Arc<Dependencies>) -> Roots {
        let is_root = |node: &NodeId| {
            let flow = &graph.flows[*node as usize];
            graph.waits_for(*node) == 0 && flow.start < flow.stop
        };
        let mut order: Vec<NodeId> = (0..graph.flows.len() as u32).filter(is_root).collect();
        order.sort_by_key(|node| (graph.flows[*node as usize].start, *node));
        Roots { order: order.into(), graph, next: 0 }
    }

    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        let node = *self.order.get(self.next)?;
        self.next += 1;
        let start = self.graph.flows[node as usize].start;
        Some((start, Emitted::Numbered(self.graph.arrival(node, start)?)))
    }
}

/// The graph while traffics are read.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    flows: Vec<Dependent>,
    ids: BTreeMap<NodeId, Arc<FlowTable>>,
    /// By traffic that is waited for: whom its barrier lets go on.
    barriers: Vec<Barrier>,
    /// Between flows: who is waited for, and who waits.
    edges: Vec<(NodeId, NodeId)>,
}

#[derive(Debug, Default)]
struct Barrier {
    traffic: u16,
    /// The flows that it counts, where they are the graph's own.
    own: std::ops::Range<u32>,
    /// How many it counts of a class, where they are not.
    of_class: Option<u64>,
    /// Traffics that wait for it, and their flows.
    waiting: Vec<std::ops::Range<u32>>,
}

impl Builder {
    /// Adds a traffic's flows; those of a list may wait for each other. Returns their places.
    pub fn add(
        &mut self,
        flows: Vec<Dependent>,
        table: Option<&Arc<FlowTable>>,
    ) -> std::ops::Range<u32> {
        let first = self.flows.len() as u32;
        self.flows.extend(flows);
        if let Some(table) = table.filter(|table| table.waits.is_some()) {
            self.ids.insert(first, table.clone());
            for (row, after) in table.waits.iter().flat_map(|waits| waits.after.iter().enumerate())
            {
                self.edges.extend(after.iter().map(|other| (first + other, first + row as u32)));
            }
        }
        first..self.flows.len() as u32
    }

    /// A traffic that others wait for.
    pub fn waited_for(&mut self, traffic: u16) {
        self.barriers.push(Barrier { traffic, ..Barrier::default() });
    }

    pub fn counts_own(&mut self, traffic: u16, own: std::ops::Range<u32>) {
        self.barriers
            .iter_mut()
            .filter(|barrier| barrier.traffic == traffic)
            .for_each(|barrier| barrier.own = own.clone());
    }

    /// Its flows are none of the graph's, and so many.
    pub fn counts(&mut self, traffic: u16, count: u64) {
        let of_class = Some(count);
        self.barriers
            .iter_mut()
            .filter(|barrier| barrier.traffic == traffic)
            .for_each(|barrier| barrier.of_class = of_class);
    }

    /// These flows wait for all of a traffic, which must be one that others wait for.
    pub fn wait(&mut self, traffic: u16, flows: std::ops::Range<u32>) {
        if let Some(barrier) = self.barriers.iter_mut().find(|barrier| barrier.traffic == traffic) {
            barrier.waiting.push(flows);
        }
    }

    pub fn len(&self) -> u64 {
        self.flows.len() as u64
    }

    /// The graph, whose flows are numbered from `first_flow`; `None` if there is none.
    pub fn finish(self, first_flow: FlowId, topology: &Topology) -> Option<Arc<Dependencies>> {
        if self.flows.is_empty() {
            return None;
        }
        let flows = self.flows.len() as u32;
        let mut edges = self.edges;
        let (mut homes, mut by_class, mut extra) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (at, barrier) in self.barriers.iter().enumerate() {
            let node = flows + at as u32;
            let waiting = || barrier.waiting.iter().cloned().flatten();
            homes.push(waiting().next().map_or(0, |first| self.flows[first as usize].src));
            edges.extend(barrier.own.clone().map(|own| (own, node)));
            edges.extend(waiting().map(|waits| (node, waits)));
            if let Some(count) = barrier.of_class {
                by_class.insert(barrier.traffic, node);
                extra.insert(node, count);
            }
        }
        let nodes = flows as usize + homes.len();
        let mut waits_for = vec![0u64; nodes];
        edges.iter().for_each(|(_, waits)| waits_for[*waits as usize] += 1);
        extra.into_iter().for_each(|(node, count)| waits_for[node as usize] += count);
        edges.sort_unstable();
        let mut first = vec![0u32; nodes + 1];
        edges.iter().for_each(|(from, _)| first[*from as usize + 1] += 1);
        (0..nodes).for_each(|node| first[node + 1] += first[node]);
        let mut graph = Dependencies {
            first_flow,
            flows: self.flows,
            ids: self.ids,
            homes,
            waits_for,
            first,
            successors: edges.into_iter().map(|(_, waits)| waits).collect(),
            barriers: by_class,
            news: News::default(),
        };
        let waiting = (0..nodes as u32).filter(|node| graph.waits_for(*node) > 0);
        graph.news = News::to(waiting.map(|node| graph.home(node)), topology);
        Some(Arc::new(graph))
    }
}
