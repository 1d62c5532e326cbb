//! Flows that wait for others: deliveries are counted where each waits, and the last one starts it.
//!
//! News of a delivery to another cell goes by a note, which is read at the next edge. It is never
//! late: what it lets go on is at least a way to another cell later than the delivery, and so
//! beyond that edge.
//!
//! Invariant: a flow starts at the latest time of its news, in whatever order they are read.

use super::*;
use millpond_scenario::traffic::{Dependencies, NodeId};

/// Flows and barriers that wait at a partition's hosts.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By flow or barrier: deliveries that it still waits for, and when it can go on as far as is
    /// known.
    left: BTreeMap<NodeId, (u64, Time)>,
    /// News on its way and starts to come. Over all partitions it is zero if nothing is about to
    /// start.
    pub under_way: i64,
    /// Flows of the plan's dependencies that have started.
    pub started: Vec<FlowId>,
    /// Those whose time would have been after their stop or the end.
    pub late: Vec<FlowId>,
}

impl Hosts {
    /// A flow is delivered here: notifies those that wait for it.
    pub(super) fn tell_delivered(&mut self, now: Time, opening: &Opening, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(graph) = shared.plan.traffic.dependencies.as_deref() else { return };
        let host = shared.hosts_of(opening).1;
        match graph.node(opening.flow) {
            Some(node) => self.tell_successors(now, host, (graph, node), fabric),
            None => {
                if let Some(barrier) = graph.barrier(opening.class) {
                    self.tell_waiting(now, host, (graph, barrier), fabric);
                }
            }
        }
    }

    fn tell_successors(
        &mut self,
        now: Time,
        host: HostId,
        of: (&Dependencies, NodeId),
        fabric: &mut Fabric,
    ) {
        let (graph, node) = of;
        for &waits in graph.successors(node) {
            self.tell_waiting(now, host, (graph, waits), fabric);
        }
    }

    fn tell_waiting(
        &mut self,
        now: Time,
        host: HostId,
        to: (&Dependencies, NodeId),
        fabric: &mut Fabric,
    ) {
        let (graph, node) = to;
        let (at, home) = (graph.earliest(now, host, node), graph.home(node));
        let partition = self.shared.partition_of_host(home);
        let cell = |host: HostId| fabric.events.of_host(self.shared.local_host(host));
        if partition == fabric.partition && cell(host) == cell(home) {
            self.hear(node, at, fabric);
        } else {
            self.waiting.under_way += 1;
            fabric.post(partition, Note::News { node, at });
        }
    }

    /// One of those that a node waits for is delivered, and lets it go on at `at`.
    pub(super) fn hear(&mut self, node: NodeId, at: Time, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(graph) = shared.plan.traffic.dependencies.as_deref() else { return };
        let (left, so_far) =
            self.waiting.left.entry(node).or_insert((graph.waits_for(node), Time::ZERO));
        (*left, *so_far) = (*left - 1, at.max(*so_far));
        if *left > 0 {
            return;
        }
        let at = *so_far;
        self.waiting.left.remove(&node);
        let Some(flow) = graph.flow(node) else {
            return self.tell_successors(at, graph.home(node), (graph, node), fabric);
        };
        let id = graph.first_flow + node;
        if at >= flow.stop.min(shared.plan.horizon) {
            self.waiting.late.push(id);
            return;
        }
        self.waiting.under_way += 1;
        let cell = fabric.events.of_host(shared.local_host(flow.src));
        fabric.events.push_to(cell, at, Due::StartWaited(id).into());
    }

    /// A flow that has waited starts.
    pub fn start_waited(&mut self, now: Time, flow: FlowId, fabric: &mut Fabric) {
        self.waiting.under_way -= 1;
        let graph = self.shared.plan.traffic.dependencies.as_deref();
        let arrival = graph.and_then(|graph| graph.arrival(graph.node(flow)?, now));
        if let Some(arrival) = arrival {
            self.start(now, &arrival, fabric);
        }
    }

    /// Notes that a flow has started, if it is one that waits or is waited for by id.
    pub(super) fn note_start(&mut self, flow: FlowId) {
        let graph = self.shared.plan.traffic.dependencies.as_deref();
        if graph.is_some_and(|graph| graph.node(flow).is_some()) {
            self.waiting.started.push(flow);
        }
    }
}
