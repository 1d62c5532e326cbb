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
    pub(super) fn notify_delivered(&mut self, now: Time, opening: &Opening, fabric: &mut Fabric) {
        let shared = self.shared.clone();
        let Some(graph) = shared.plan.traffic.dependencies.as_deref() else { return };
        let host = shared.hosts_of(opening).1;
        let barrier = graph.barrier(opening.class);
        let node = graph.node(opening.flow);
        let waiting = node.map_or(barrier.as_slice(), |node| graph.successors(node));
        waiting.iter().for_each(|node| self.notify_waiting(now, host, graph, *node, fabric));
    }

    fn notify_waiting(
        &mut self,
        now: Time,
        host: HostId,
        graph: &Dependencies,
        node: NodeId,
        fabric: &mut Fabric,
    ) {
        let (at, home) = (graph.earliest(now, host, node), graph.home(node));
        let partition = self.shared.partition_of_host(home);
        let cell = |host: HostId| fabric.events.of_host(self.shared.local_host(host));
        if partition == fabric.partition && cell(host) == cell(home) {
            self.on_news(node, at, fabric);
        } else {
            self.waiting.under_way += 1;
            fabric.post(partition, Note::News { node, at });
        }
    }

    /// One of those that a node waits for is delivered, and lets it go on at `at`.
    pub(super) fn on_news(&mut self, node: NodeId, at: Time, fabric: &mut Fabric) {
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
            let notify =
                |of: &NodeId| self.notify_waiting(at, graph.home(node), graph, *of, fabric);
            return graph.successors(node).iter().for_each(notify);
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
