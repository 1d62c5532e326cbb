//! The order in which a plan's traffic begins: arrivals, closed loops, probes, and flows that wait
//! for others.
//!
//! Whoever makes the traffic takes what is due, and reports deliveries, which start other flows. It
//! keeps the connections; the agenda has none.
//!
//! Invariant: the agenda reads no clock and yields each flow once. A dependent flow starts at the
//! latest of the times that its deliveries allow, whatever their order.

use super::connection::{Opening, Role};
use millpond_core::{FlowId, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{
    Arrival, Arrivals, Dependencies, Event, NodeId, ProbePair, Query, SourceKind,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter::Peekable;

/// Traffic that begins at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Begin {
    Loop(u16),
    Waited(FlowId),
}

/// A plan's traffic that is to come.
pub struct Agenda<'a> {
    plan: &'a Plan,
    arrivals: Peekable<Arrivals>,
    /// By time and then in the order in which they were set.
    timers: BinaryHeap<Reverse<(Time, u64, Begin)>>,
    timers_set: u64,
    /// Queries under way, and their complete flows.
    queries: BTreeMap<u32, (Query, u32)>,
    /// By source and host: flows of a shuffle that have started.
    shuffled: BTreeMap<(u16, u32), u32>,
    /// By flow or barrier: deliveries that it waits for, and its earliest time so far.
    left: BTreeMap<NodeId, (u64, Time)>,
    /// Flows that have started, of those that wait or are waited for by id.
    started: BTreeSet<FlowId>,
    /// Flows whose start would have been after their stop or the end.
    late: BTreeSet<FlowId>,
}

impl<'a> Agenda<'a> {
    pub fn new(plan: &'a Plan) -> Agenda<'a> {
        let mut agenda = Agenda {
            plan,
            arrivals: plan.traffic.arrivals().peekable(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            queries: BTreeMap::new(),
            shuffled: BTreeMap::new(),
            left: BTreeMap::new(),
            started: BTreeSet::new(),
            late: BTreeSet::new(),
        };
        for (index, source) in plan.traffic.sources.iter().enumerate() {
            match source.kind {
                SourceKind::Open | SourceKind::Probe { .. } | SourceKind::Job(_) => {}
                SourceKind::Shuffle { start, .. } | SourceKind::Rpc { start, .. } => {
                    agenda.set_timer(start, Begin::Loop(index as u16));
                }
            }
        }
        agenda
    }

    fn set_timer(&mut self, at: Time, begin: Begin) {
        self.timers.push(Reverse((at, self.timers_set, begin)));
        self.timers_set += 1;
    }

    /// When the next thing begins; `None`: nothing does before another delivery.
    pub fn next_time(&mut self) -> Option<Time> {
        let arrival = self.arrivals.peek().map(|event| match event {
            Event::Flow(flow) => flow.at,
            Event::Query(query) => query.at,
        });
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        arrival.into_iter().chain(timer).min()
    }

    /// Whether nothing begins any more before another delivery.
    pub fn is_over(&mut self) -> bool {
        self.next_time().is_none()
    }

    /// Takes the next thing, and appends the flows that start with it.
    pub fn take(&mut self, starts: &mut Vec<Opening>) {
        let Some(next) = self.next_time() else { return };
        let is_timer = self.timers.peek().is_some_and(|Reverse((at, ..))| *at == next);
        if let Some(Reverse((at, _, begin))) = is_timer.then(|| self.timers.pop()).flatten() {
            return match begin {
                Begin::Loop(source) => self.begin_loop(at, source, starts),
                Begin::Waited(flow) => {
                    let arrival =
                        self.graph().and_then(|graph| graph.arrival(graph.node(flow)?, at));
                    starts.extend(arrival.map(|arrival| self.arrive(&arrival)));
                }
            };
        }
        match self.arrivals.next() {
            Some(Event::Query(query)) => {
                self.queries.insert(query.query, (query, 0));
            }
            Some(Event::Flow(arrival)) => starts.push(self.arrive(&arrival)),
            None => {}
        }
    }

    fn arrive(&mut self, arrival: &Arrival) -> Opening {
        let flow = arrival.flow;
        if self.graph().is_some_and(|graph| graph.node(flow).is_some()) {
            self.started.insert(flow);
        }
        let role = match arrival.response {
            0 => Role::OneWay,
            response => Role::Exchange { response },
        };
        Opening {
            flow,
            class: arrival.class,
            src: arrival.src,
            dst: arrival.dst,
            bytes: arrival.bytes,
            query: arrival.query,
            start: arrival.at,
            role,
        }
    }

    fn begin_loop(&mut self, at: Time, source: u16, starts: &mut Vec<Opening>) {
        let plan = self.plan;
        let traffic = &plan.traffic.sources[usize::from(source)];
        match &traffic.kind {
            SourceKind::Open | SourceKind::Probe { .. } | SourceKind::Job(_) => {}
            SourceKind::Shuffle { concurrency, .. } => {
                for host in 0..plan.topology.hosts {
                    let next = (0..*concurrency).map_while(|_| self.shuffle(at, source, host));
                    starts.extend(next);
                }
            }
            SourceKind::Rpc { connections, request, response, stop, first_flow, .. } => {
                let opening = |(index, (client, server)): (usize, &(u32, u32))| Opening {
                    flow: first_flow + 2 * index as u32,
                    class: traffic.class,
                    src: *client,
                    dst: *server,
                    bytes: *request,
                    query: None,
                    start: at,
                    role: Role::Rpc { response: *response, stop: *stop },
                };
                let all = connections.iter().enumerate();
                let own = all.filter(|(_, (client, _))| plan.traffic.has(*client));
                starts.extend(own.map(opening));
            }
        }
    }

    /// A host's next flow of a shuffle, which starts at `at`, if there is one.
    pub fn shuffle(&mut self, at: Time, source: u16, src: u32) -> Option<Opening> {
        let traffic = &self.plan.traffic.sources[usize::from(source)];
        let SourceKind::Shuffle { size, stop, order, first_flow, .. } = &traffic.kind else {
            return None;
        };
        let destinations = &order[src as usize];
        let started = self.shuffled.entry((source, src)).or_insert(0);
        let dst = *destinations.get(*started as usize)?;
        if at >= *stop {
            return None;
        }
        let flow = first_flow + src * destinations.len() as u32 + *started;
        *started += 1;
        Some(Opening {
            flow,
            class: traffic.class,
            src,
            dst,
            bytes: *size,
            query: None,
            start: at,
            role: Role::Shuffle { source },
        })
    }

    /// The connections of probes; each starts with its first question.
    pub fn probes(&self) -> Vec<Opening> {
        let sources = self.plan.traffic.sources.iter();
        let of_source = sources.filter_map(|source| match &source.kind {
            SourceKind::Probe { pairs, size, period, start, stop, first_flow } => {
                let role = Role::Probe { period: *period, stop: *stop };
                let opening = move |(index, pair): (usize, &ProbePair)| Opening {
                    flow: first_flow + 2 * index as u32,
                    class: source.class,
                    src: pair.src,
                    dst: pair.dst,
                    bytes: *size,
                    query: None,
                    start: start.saturating_add(pair.phase),
                    role,
                };
                let starts = move |opening: &Opening| opening.start < *stop;
                let own = pairs.iter().enumerate().filter(|(_, it)| self.plan.traffic.has(it.src));
                Some(own.map(opening).filter(starts))
            }
            _ => None,
        });
        of_source.flatten().collect()
    }

    fn graph(&self) -> Option<&'a Dependencies> {
        self.plan.traffic.dependencies.as_deref()
    }

    /// The last byte of a flow was read: flows that wait for it may start. The query of which this
    /// was the last flow.
    pub fn delivered(&mut self, now: Time, opening: &Opening) -> Option<Query> {
        let (flow, host) = match opening.role {
            Role::Exchange { .. } => (opening.flow + 1, opening.src),
            _ => (opening.flow, opening.dst),
        };
        if let Some(graph) = self.graph() {
            match graph.node(flow) {
                Some(node) => self.count_successors(now, host, graph, node),
                None => {
                    if let Some(barrier) = graph.barrier(opening.class) {
                        self.count_down(now, host, graph, barrier);
                    }
                }
            }
        }
        let (query, complete) = self.queries.get_mut(&opening.query?)?;
        *complete += 1;
        let query = (*complete == query.degree).then_some(*query)?;
        self.queries.remove(&query.query);
        Some(query)
    }

    fn count_successors(&mut self, now: Time, host: u32, graph: &Dependencies, node: NodeId) {
        for waits in graph.successors(node) {
            self.count_down(now, host, graph, *waits);
        }
    }

    /// One of those that a node waits for is delivered.
    fn count_down(&mut self, now: Time, host: u32, graph: &Dependencies, node: NodeId) {
        let at = graph.earliest(now, host, node);
        let (left, so_far) = self.left.entry(node).or_insert((graph.waits_for(node), Time::ZERO));
        (*left, *so_far) = (left.saturating_sub(1), at.max(*so_far));
        if *left > 0 {
            return;
        }
        let at = *so_far;
        self.left.remove(&node);
        let Some(flow) = graph.flow(node) else {
            return self.count_successors(at, graph.home(node), graph, node);
        };
        let id = graph.first_flow + node;
        if at >= flow.stop.min(self.plan.horizon) {
            self.late.insert(id);
            return;
        }
        self.set_timer(at, Begin::Waited(id));
    }

    /// Queries that are not complete, each with its complete flows.
    pub fn unanswered(&mut self) -> impl Iterator<Item = (Query, u32)> + use<> {
        std::mem::take(&mut self.queries).into_values()
    }

    /// The dependent flows that did not start: those that were late, since nothing held them up or
    /// their start would have been after their stop, and those that wait for undelivered flows.
    pub fn not_started(&self) -> (Vec<FlowId>, Vec<FlowId>) {
        let Some(graph) = self.graph() else { return (Vec::new(), Vec::new()) };
        let nodes = 0..graph.flows.len() as u32;
        let all = nodes.map(|node| (node, graph.first_flow + node));
        let (late, waiting): (Vec<_>, Vec<_>) = all
            .filter(|(_, id)| !self.started.contains(id))
            .partition(|(node, id)| graph.waits_for(*node) == 0 || self.late.contains(id));
        let ids = |nodes: Vec<(u32, FlowId)>| nodes.into_iter().map(|(_, id)| id).collect();
        (ids(late), ids(waiting))
    }
}
