//! Flows that wait for others: deliveries are counted, and the last one starts what waits.
//!
//! Invariant: a flow starts at the latest of the times that its deliveries allow, whatever their
//! order.

use super::*;
use millpond_scenario::traffic::Dependencies;
use std::collections::BTreeSet;

impl<'a> Engine<'a> {
    fn graph(&self) -> Option<&'a Dependencies> {
        self.plan.traffic.dependencies.as_deref()
    }

    /// A flow of a class is delivered at a host: those that wait for it may go on.
    pub(super) fn tell_delivered(&mut self, now: Time, (flow, class): (FlowId, u16), host: u32) {
        let Some(graph) = self.graph() else { return };
        match graph.node(flow) {
            Some(node) => self.tell_successors(now, host, graph, node),
            None => {
                if let Some(barrier) = graph.barrier(class) {
                    self.tell_waiting(now, host, graph, barrier);
                }
            }
        }
    }

    fn tell_successors(&mut self, now: Time, host: u32, graph: &Dependencies, node: NodeId) {
        for waits in graph.successors(node) {
            self.tell_waiting(now, host, graph, *waits);
        }
    }

    /// One of those that a node waits for is delivered.
    fn tell_waiting(&mut self, now: Time, host: u32, graph: &Dependencies, node: NodeId) {
        let at = graph.earliest(now, host, node);
        let (left, so_far) = self.left.entry(node).or_insert((graph.waits_for(node), Time::ZERO));
        (*left, *so_far) = (left.saturating_sub(1), at.max(*so_far));
        if *left > 0 {
            return;
        }
        let at = *so_far;
        self.left.remove(&node);
        let Some(flow) = graph.flow(node) else {
            return self.tell_successors(at, graph.home(node), graph, node);
        };
        let id = graph.first_flow + node;
        if at >= flow.stop.min(self.plan.horizon) {
            self.counts.late.push(id);
            return;
        }
        self.to_start += 1;
        self.set_timer(at, Timer::Waited(id));
    }

    /// A flow that has waited starts.
    pub(super) fn start_waited(&mut self, at: Time, flow: FlowId) {
        let arrival = self.graph().and_then(|graph| graph.arrival(graph.node(flow)?, at));
        if let Some(arrival) = arrival {
            self.start(&arrival);
        }
    }

    /// Notes that a flow has started, if it is one that waits or is waited for by id.
    pub(super) fn note_start(&mut self, flow: FlowId) {
        if self.graph().is_some_and(|graph| graph.node(flow).is_some()) {
            self.waited_started.push(flow);
        }
    }

    /// Lists the dependent flows that did not start: those that nothing held up are late.
    pub(super) fn count_not_started(&mut self) {
        let Some(graph) = self.graph() else { return };
        let started: BTreeSet<FlowId> = self.waited_started.iter().copied().collect();
        let late: BTreeSet<FlowId> = self.counts.late.iter().copied().collect();
        let all =
            (0..graph.flows.len() as u32).filter(|n| !started.contains(&(graph.first_flow + n)));
        let is_late = |n: &u32| graph.waits_for(*n) == 0 || late.contains(&(graph.first_flow + n));
        let (late, waiting): (Vec<u32>, Vec<u32>) = all.partition(is_late);
        let ids = |nodes: Vec<u32>| nodes.into_iter().map(|n| graph.first_flow + n).collect();
        (self.counts.late, self.counts.waiting) = (ids(late), ids(waiting));
    }
}
