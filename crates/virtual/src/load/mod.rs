//! The plan's traffic: what the world orders of agents, and what it makes of their reports.
//!
//! The same flows as in the simulator and the lab, whose records these are: ids, sizes and starts
//! come from the plan. A connection has a number that both of its ends know. Nothing here waits or
//! reads a clock: the calendar calls when something is due and when something was reported.
//!
//! | file | content |
//! |---|---|
//! | `opening` | arrivals, closed loops and probes open connections |
//! | `reports` | what agents report of connections |
//! | `sampling` | what connections have received by some time, and how they stand |
//! | `ending` | the end of flows and of the run |
//!
//! What follows from a report reaches agents a window later, but for answers and calls, which agents
//! make by themselves.
//!
//! Invariant: each flow that starts makes exactly one record, and nothing starts before its time, or
//! at or after the horizon.

mod ending;
mod opening;
mod reports;
mod sampling;

use crate::calendar::Orders;
use crate::error::Error;
use millpond_agent::wire::{Order, Report};
use millpond_core::{FlowId, Time};
use millpond_lab::address;
use millpond_lab::load::connection::{Opening, Side};
use millpond_lab::load::dependents::Dependents;
use millpond_lab::load::goodput::Goodput;
use millpond_lab::load::info::TcpInfo;
use millpond_lab::load::records::Recorder;
use millpond_lab::load::{Counts, Sink};
use millpond_results::FlowRecord;
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::{Arrivals, Event, Query, SourceKind};
use millpond_sim::samples::Chosen;
use sampling::Sampling;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::iter::Peekable;

/// The port at which hosts listen for the first class of traffic.
pub use millpond_lab::load::PORT;

/// How long after a delivery the world looks for an acknowledgement that has no time stamp.
const SWEEP: Time = Time::from_ms(50);

/// An action that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Probes connect.
    Probes(u16),
    /// A source's closed loops begin.
    Loop(u16),
    /// A flow that has waited starts.
    Waited(FlowId),
    /// A server has thought.
    Answer(u32),
    /// A probe asks.
    Ask(u32),
    /// A delivered flow's acknowledgement is looked for.
    Sweep(u32),
    /// Measuring begins.
    WarmUp,
    /// A sample of what was read is due.
    Goodput,
    /// Connections are sampled.
    Connections,
    /// The run ends.
    Horizon,
}

/// A query under way, and its complete flows.
struct Pending {
    query: Query,
    completed: u32,
}

/// A connection under way.
struct Connection {
    opening: Opening,
    port: u16,
    /// Whether a response is under way.
    answers: bool,
    delivered: Option<Time>,
    first_sent: Option<Time>,
    acked: Option<Time>,
    /// When the present call or question began, and when it was due.
    asked: Time,
    due: Time,
    /// By side: bytes of whole messages that it has received, and bytes that were counted.
    messages: [u64; 2],
    counted: [u64; 2],
    /// By side, as last reported.
    info: [TcpInfo; 2],
}

fn at(side: Side) -> usize {
    usize::from(side == Side::Server)
}

/// What agents have counted since they booted, summed over hosts.
pub type Counters = BTreeMap<String, u64>;

/// The traffic of a plan.
pub struct Load<'a> {
    plan: &'a Plan,
    recorder: Recorder<'a>,
    arrivals: Peekable<Arrivals>,
    /// By time and then in the order in which they were set.
    timers: BinaryHeap<Reverse<(Time, u64, Timer)>>,
    timers_set: u64,
    connections: BTreeMap<u32, Connection>,
    opened: u32,
    /// Ports that hosts' clients have.
    ports: BTreeSet<(u32, u16)>,
    queries: BTreeMap<u32, Pending>,
    /// By source and host: flows of a shuffle that have started.
    shuffled: BTreeMap<(u16, u32), u32>,
    dependents: Dependents<'a>,
    /// Flows and calls under way, and loops and waited flows among the timers.
    active: u64,
    to_start: u64,
    /// Records of what errors have ended.
    failed: Vec<FlowRecord>,
    goodput: Goodput,
    chosen: Option<Chosen>,
    /// By host: samples that its agent was asked for.
    samples: Vec<VecDeque<Sampling>>,
    /// Rows of the present sample of connections, and hosts that have not answered.
    rows: sampling::Rows,
    /// Whether bytes that are read are measured, by host.
    measures: Vec<bool>,
    /// Counts so far.
    pub counts: Counts,
    /// Counters of all hosts' kernels, once the run is over.
    pub counters: Counters,
    /// Hosts whose counters are missing, once they were asked for.
    left: Option<u32>,
    /// Whether neither the sink nor the caller has ended the run.
    pub goes_on: bool,
    ended: Option<Time>,
}

impl<'a> Load<'a> {
    /// Of a plan, at the beginning of its time.
    pub fn new(plan: &'a Plan) -> Load<'a> {
        let hosts = plan.topology.hosts as usize;
        let mut load = Load {
            plan,
            recorder: Recorder::new(plan),
            arrivals: plan.traffic.arrivals().peekable(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            connections: BTreeMap::new(),
            opened: 0,
            ports: BTreeSet::new(),
            queries: BTreeMap::new(),
            shuffled: BTreeMap::new(),
            dependents: Dependents::new(plan),
            active: 0,
            to_start: 0,
            failed: Vec::new(),
            goodput: Goodput::new(plan.capture.goodput, plan.traffic.classes.len()),
            chosen: None,
            samples: vec![VecDeque::new(); hosts],
            rows: sampling::Rows::default(),
            measures: vec![plan.warm_up == Time::ZERO; hosts],
            counts: Counts::default(),
            counters: Counters::new(),
            left: None,
            goes_on: true,
            ended: None,
        };
        load.begin();
        load
    }

    fn begin(&mut self) {
        for (index, source) in (0..).zip(&self.plan.traffic.sources) {
            match &source.kind {
                SourceKind::Open => {}
                SourceKind::Shuffle { start, .. } | SourceKind::Rpc { start, .. } => {
                    self.to_start += 1;
                    self.set_timer(*start, Timer::Loop(index));
                }
                SourceKind::Probe { .. } => self.set_timer(Time::ZERO, Timer::Probes(index)),
            }
        }
        let capture = &self.plan.capture;
        if let Some(connections) = &capture.connections {
            self.chosen = Some(Chosen::new(connections.clone()));
            self.set_timer(connections.every, Timer::Connections);
        }
        if let Some(period) = capture.goodput {
            self.set_timer(period, Timer::Goodput);
        }
        if self.plan.warm_up > Time::ZERO {
            self.set_timer(self.plan.warm_up, Timer::WarmUp);
        }
        if self.plan.horizon < Time::MAX {
            self.set_timer(self.plan.horizon, Timer::Horizon);
        }
    }

    fn set_timer(&mut self, at: Time, timer: Timer) {
        self.timers.push(Reverse((at, self.timers_set, timer)));
        self.timers_set += 1;
    }

    fn next_arrival(&mut self) -> Option<Time> {
        let at = |event: &Event| match event {
            Event::Flow(flow) => flow.at,
            Event::Query(query) => query.at,
        };
        let next = self.arrivals.peek().map(at);
        next.filter(|at| *at < self.plan.horizon && self.ended.is_none())
    }

    /// When something is due.
    pub fn next(&mut self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        self.next_arrival().into_iter().chain(timer).min()
    }

    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Time, orders: &mut Orders) {
        if self.next_arrival() == Some(now) {
            match self.arrivals.next() {
                Some(Event::Query(query)) => {
                    self.queries.insert(query.query, Pending { query, completed: 0 });
                }
                Some(Event::Flow(arrival)) => self.start(&arrival, orders),
                None => {}
            }
            return;
        }
        if self.timers.peek().is_none_or(|Reverse((at, ..))| *at > now) {
            return;
        }
        let Some(Reverse((at, _, timer))) = self.timers.pop() else { return };
        if self.ended.is_some() {
            return;
        }
        match timer {
            Timer::Probes(source) => self.open_probes(source, orders),
            Timer::Loop(source) => {
                self.to_start -= 1;
                self.start_loop(at, source, orders);
            }
            Timer::Waited(flow) => {
                self.to_start -= 1;
                if let Some(arrival) = self.dependents.arrival(at, flow) {
                    self.start(&arrival, orders);
                }
            }
            Timer::Answer(connection) => self.answer(now, connection, orders),
            Timer::Ask(connection) => self.ask(now, connection, orders),
            Timer::Sweep(connection) => self.sweep(now, connection, orders),
            Timer::WarmUp => self.sample_all(now, Sampling::WarmUp, orders),
            Timer::Goodput => {
                self.sample_all(now, Sampling::Goodput(now), orders);
                if let Some(period) = self.plan.capture.goodput {
                    self.set_timer(now.saturating_add(period), Timer::Goodput);
                }
            }
            Timer::Connections => self.sample_connections(now, orders),
            Timer::Horizon => self.stop(now, orders),
        }
    }

    /// An agent has reported something.
    pub fn on_report(
        &mut self,
        now: Time,
        host: u32,
        report: Report,
        (orders, sink): (&mut Orders, &mut dyn Sink),
    ) -> Result<(), Error> {
        match report {
            Report::Opened { connection } => self.on_opened(now, connection),
            Report::Received { connection, info } => {
                self.on_received(now, host, (connection, &info), orders, sink);
            }
            Report::Acknowledged { connection, info, .. } => {
                self.on_acknowledged(now, host, (connection, &info), orders, sink);
            }
            Report::Failed { connection, errno } => self.on_failed(connection, errno, orders),
            Report::Sampled { connection, is_server, received, unsent, info } => {
                let side = if is_server { Side::Server } else { Side::Client };
                let info = TcpInfo::of_bytes(&info);
                let end = sampling::Sampled { connection, side, received, unsent, info };
                self.on_sampled(now, host, &end, orders, sink);
            }
            Report::SampleEnds => self.on_sample_ends(host, sink),
            Report::Counters(list) => {
                for (name, value) in list {
                    *self.counters.entry(name).or_insert(0) += value;
                }
                self.left = self.left.map(|left| left.saturating_sub(1));
            }
            Report::Problem(text) => {
                return Err(Error::Guest { host, reason: text, console: String::new() });
            }
            Report::Hello | Report::Ready | Report::Output { .. } | Report::Exited { .. } => {}
        }
        Ok(())
    }

    /// Whether every flow of the plan is over.
    pub fn is_complete(&mut self) -> bool {
        self.active == 0 && self.to_start == 0 && self.next_arrival().is_none()
    }

    /// Whether the run was to end, and agents have told all.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether the run was to end.
    pub fn has_stopped(&self) -> bool {
        self.ended.is_some()
    }

    fn order(&self, at: Time, host: u32, order: Order, orders: &mut Orders) {
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        orders.push((at, host, bytes));
    }
}

/// The address of a host, as agents have it.
fn address(host: u32) -> [u8; 4] {
    address::ip(host).octets()
}
