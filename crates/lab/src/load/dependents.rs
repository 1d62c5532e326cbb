//! Flows that wait for others: deliveries are counted, and the last one starts what waits.
//!
//! Invariant: a flow starts at the latest of the times that its deliveries allow, whatever their
//! order.

use millpond_core::{FlowId, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{Arrival, Dependencies, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The flows of a plan that wait.
pub struct Dependents<'a> {
    graph: Option<&'a Dependencies>,
    horizon: Time,
    /// By flow or barrier: deliveries that it waits for, and its earliest time so far.
    left: BTreeMap<NodeId, (u64, Time)>,
    started: Vec<FlowId>,
    late: Vec<FlowId>,
}

impl<'a> Dependents<'a> {
    /// Of a plan, before anything is delivered.
    pub fn new(plan: &'a Plan) -> Dependents<'a> {
        Dependents {
            graph: plan.traffic.dependencies.as_deref(),
            horizon: plan.horizon,
            left: BTreeMap::new(),
            started: Vec::new(),
            late: Vec::new(),
        }
    }

    /// A flow of a class is delivered at a host: those that wait for it may go on, at their times,
    /// which are appended to `due`.
    pub fn delivered(
        &mut self,
        now: Time,
        (flow, class): (FlowId, u16),
        host: u32,
        due: &mut Vec<(Time, FlowId)>,
    ) {
        let Some(graph) = self.graph else { return };
        match graph.node(flow) {
            Some(node) => self.tell_successors(now, host, (graph, node), due),
            None => {
                if let Some(barrier) = graph.barrier(class) {
                    self.tell_waiting(now, host, (graph, barrier), due);
                }
            }
        }
    }

    fn tell_successors(
        &mut self,
        now: Time,
        host: u32,
        (graph, node): (&'a Dependencies, NodeId),
        due: &mut Vec<(Time, FlowId)>,
    ) {
        for waits in graph.successors(node) {
            self.tell_waiting(now, host, (graph, *waits), due);
        }
    }

    /// One of those that a node waits for is delivered.
    fn tell_waiting(
        &mut self,
        now: Time,
        host: u32,
        (graph, node): (&'a Dependencies, NodeId),
        due: &mut Vec<(Time, FlowId)>,
    ) {
        let at = graph.earliest(now, host, node);
        let (left, so_far) = self.left.entry(node).or_insert((graph.waits_for(node), Time::ZERO));
        (*left, *so_far) = (left.saturating_sub(1), at.max(*so_far));
        if *left > 0 {
            return;
        }
        let at = *so_far;
        self.left.remove(&node);
        let Some(flow) = graph.flow(node) else {
            return self.tell_successors(at, graph.home(node), (graph, node), due);
        };
        let id = graph.first_flow + node;
        match at >= flow.stop.min(self.horizon) {
            true => self.late.push(id),
            false => due.push((at, id)),
        }
    }

    /// A flow that has waited, as it starts at `at`.
    pub fn arrival(&self, at: Time, flow: FlowId) -> Option<Arrival> {
        self.graph.and_then(|graph| graph.arrival(graph.node(flow)?, at))
    }

    /// Notes that a flow has started, if it is one that waits or is waited for by id.
    pub fn note_start(&mut self, flow: FlowId) {
        if self.graph.is_some_and(|graph| graph.node(flow).is_some()) {
            self.started.push(flow);
        }
    }

    /// Lists the dependent flows that did not start: those that nothing held up, which are late,
    /// and those that wait.
    pub fn not_started(&self) -> (Vec<FlowId>, Vec<FlowId>) {
        let Some(graph) = self.graph else { return Default::default() };
        let started: BTreeSet<FlowId> = self.started.iter().copied().collect();
        let late: BTreeSet<FlowId> = self.late.iter().copied().collect();
        let all =
            (0..graph.flows.len() as u32).filter(|n| !started.contains(&(graph.first_flow + n)));
        let is_late = |n: &u32| graph.waits_for(*n) == 0 || late.contains(&(graph.first_flow + n));
        let (late, waiting): (Vec<u32>, Vec<u32>) = all.partition(is_late);
        let ids = |nodes: Vec<u32>| nodes.into_iter().map(|n| graph.first_flow + n).collect();
        (ids(late), ids(waiting))
    }
}
