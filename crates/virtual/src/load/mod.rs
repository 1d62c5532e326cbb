//! The plan's traffic: what the world orders of agents, and what it makes of their reports.
//!
//! The same flows as in the simulator and the lab: agenda, connections, ledger and records are the
//! lab's. A connection has the number of its flow, which both of its ends have. Nothing here waits
//! or reads a clock: the calendar calls when something is due and when something was reported.
//!
//! | file | content |
//! |---|---|
//! | `opening` | flows open connections |
//! | `reports` | what agents report of connections |
//! | `sampling` | what connections have received by some time, and how they stand |
//!
//! The orders that follow from a report reach agents a window later, but for answers and calls,
//! which agents make by themselves.
//!
//! Invariant: each flow that starts makes exactly one record, and nothing starts before its time,
//! or at or after the horizon.

mod opening;
mod reports;
mod sampling;
#[cfg(test)]
mod tests;

use crate::calendar::Orders;
use millpond_agent::wire::{self, Order, Report};
use millpond_core::Time;
use millpond_lab::load::connection::{self, Side};
use millpond_lab::load::info::{Socket, TcpInfo};
use millpond_lab::load::ledger::Ledger;
use millpond_lab::load::{Counts, Sink};
use millpond_scenario::plan::Plan;
use millpond_sim::samples::Chosen;
use reports::From;
use sampling::Sampling;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// The port at which hosts listen for the first class of traffic.
pub use millpond_lab::load::PORT;

/// An action that is due at a time. Samples come before what else happens at their instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Horizon,
    WarmUp,
    /// A sample of what was read is due.
    Goodput,
    Connections,
    Probes,
    /// A connection makes no further calls.
    Cease(u32),
    Answer(u32),
    Ask(u32),
    /// A delivered flow's acknowledgement is looked for.
    Sweep(u32),
}

/// An end of a connection, in a guest.
#[derive(Debug, Default)]
struct Remote {
    info: TcpInfo,
    unacknowledged: u64,
    /// Bytes of whole messages that it has received, and bytes that were counted.
    whole: u64,
    counted: u64,
}

impl Socket for Remote {
    fn info(&self) -> TcpInfo {
        self.info
    }
    fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }
}

type Connection = connection::Connection<Remote>;

/// The counts of agents since they booted, summed over hosts.
pub type Counters = BTreeMap<String, u64>;

pub struct Load<'a> {
    plan: &'a Plan,
    /// The counts so far, and what is to come.
    pub ledger: Ledger<'a>,
    timers: BinaryHeap<Reverse<(Time, Timer)>>,
    connections: BTreeMap<u32, Connection>,
    ports: BTreeSet<(u32, u16)>,
    chosen: Option<Chosen>,
    /// By host: samples that its agent was asked for.
    samples: Vec<VecDeque<Sampling>>,
    rows: sampling::Rows,
    /// Counters of all hosts' kernels, once the run is over.
    pub counters: Counters,
    /// Hosts whose counters are missing, once they were asked for.
    left: Option<u32>,
    ended: Option<Time>,
    /// The time of what happens, and what it orders.
    now: Time,
    orders: Orders,
}

impl<'a> Load<'a> {
    /// Of a plan, at the beginning of its time.
    pub fn new(plan: &'a Plan) -> Load<'a> {
        let capture = &plan.capture;
        let never = Time::MAX;
        let connections = capture.connections.as_ref().map_or(never, |it| it.every);
        let warm_up = if plan.warm_up > Time::ZERO { plan.warm_up } else { never };
        let timers = [
            (plan.horizon, Timer::Horizon),
            (warm_up, Timer::WarmUp),
            (capture.goodput.unwrap_or(never), Timer::Goodput),
            (connections, Timer::Connections),
            (Time::ZERO, Timer::Probes),
        ];
        Load {
            plan,
            ledger: Ledger::new(plan),
            timers: timers.into_iter().filter(|(at, _)| *at < never).map(Reverse).collect(),
            connections: BTreeMap::new(),
            ports: BTreeSet::new(),
            chosen: capture.connections.clone().map(Chosen::new),
            samples: vec![VecDeque::new(); plan.topology.hosts as usize],
            rows: sampling::Rows::default(),
            counters: Counters::new(),
            left: None,
            ended: None,
            now: Time::ZERO,
            orders: Orders::new(),
        }
    }

    fn set_timer(&mut self, at: Time, timer: Timer) {
        self.timers.push(Reverse((at, timer)));
    }

    fn next_timer(&self) -> Option<Time> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// When something is due; `None`: nothing before another report.
    pub fn next(&mut self) -> Option<Time> {
        if self.ended.is_some() {
            return None;
        }
        let start = self.ledger.agenda.next_time().filter(|at| *at < self.plan.horizon);
        start.into_iter().chain(self.next_timer()).min()
    }

    /// Does the next thing that is due by `now`.
    pub fn on_time(&mut self, now: Time, orders: &mut Orders) {
        let Some(next) = self.next().filter(|next| *next <= now) else { return };
        self.now = now;
        if self.next_timer() != Some(next) {
            let mut starts = Vec::new();
            self.ledger.agenda.take(&mut starts);
            starts.into_iter().for_each(|opening| self.begin(opening));
        } else if let Some(Reverse((_, timer))) = self.timers.pop() {
            self.on_timer(next, timer);
        }
        orders.append(&mut self.orders);
    }

    fn on_timer(&mut self, at: Time, timer: Timer) {
        match timer {
            Timer::Horizon => self.end(),
            Timer::WarmUp => self.sample_all(Sampling::Read(at)),
            Timer::Goodput => {
                self.sample_all(Sampling::Read(at));
                if let Some(period) = self.plan.capture.goodput {
                    self.set_timer(at.saturating_add(period), Timer::Goodput);
                }
            }
            Timer::Connections => self.sample_connections(at),
            Timer::Probes => self.open_probes(),
            Timer::Cease(number) => self.cease(number),
            Timer::Answer(number) => self.answer(number),
            Timer::Ask(number) => self.ask(number),
            Timer::Sweep(number) => self.sweep(number),
        }
    }

    pub fn on_report(
        &mut self,
        now: Time,
        host: u32,
        report: Report,
        sink: &mut dyn Sink,
        orders: &mut Orders,
    ) {
        self.now = now;
        match report {
            Report::Sampled { connection, is_server, received, unsent, info } => {
                let side = if is_server { Side::Server } else { Side::Client };
                let info = TcpInfo::parse(&info);
                let end = sampling::Sampled { connection, side, received, unsent, info };
                self.on_sampled(host, &end, sink);
            }
            Report::SampleEnds => self.on_sample_ends(host, sink),
            Report::Counters(list) => {
                for (name, value) in list {
                    *self.counters.entry(name).or_insert(0) += value;
                }
                self.left = self.left.map(|left| left.saturating_sub(1));
            }
            // Such as a SYN that was sent twice and comes when its flow is over.
            Report::Problem(text) => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
                self.ledger.counts.fail(&error, || format!("host {host}: {text}"));
            }
            // The run has ended before.
            _ if self.ended.is_some_and(|ended| now >= ended) => {}
            Report::Opened { connection } => self.on_opened(connection),
            Report::Received { connection, info } => {
                self.on_received(From { host, connection, info: &info }, sink);
            }
            Report::Acknowledged { connection, info, .. } => {
                self.on_acknowledged(From { host, connection, info: &info }, sink);
            }
            Report::Failed { connection, errno } => self.on_failed(host, connection, errno),
            Report::Hello | Report::Ready | Report::Output { .. } | Report::Exited { .. } => {}
        }
        orders.append(&mut self.orders);
    }

    /// Whether every flow of the plan is over.
    pub fn is_complete(&mut self) -> bool {
        self.ledger.is_complete()
    }

    /// Whether the run was to end, and agents have reported all.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether the run was to end.
    pub fn has_stopped(&self) -> bool {
        self.ended.is_some()
    }

    /// The run ends at `now`: asks agents for how their connections stand.
    pub fn stop(&mut self, now: Time, orders: &mut Orders) {
        self.now = now;
        self.end();
        orders.append(&mut self.orders);
    }

    fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let ended = self.now.min(self.plan.horizon);
        self.ended = Some(ended);
        self.sample_all(Sampling::End(ended));
        if self.plan.programs.is_empty() && self.plan.limits.is_empty() {
            self.count_all();
        }
    }

    /// All is over, programs too: asks agents for their kernels' counters.
    pub fn ask_counters(&mut self, now: Time, orders: &mut Orders) {
        self.now = now;
        self.count_all();
        orders.append(&mut self.orders);
    }

    fn count_all(&mut self) {
        if self.left.is_none() {
            let kernels = kernels(self.plan);
            kernels.clone().for_each(|host| self.order(host, &Order::Count));
            self.left = Some(kernels.count() as u32);
        }
    }

    fn order(&mut self, host: u32, order: &Order) {
        self.orders.push((self.now, host, wire::bytes(order)));
    }

    /// The run is over: hands over the records of what is not, and returns the counts. Segments
    /// sent again and timeouts are those of the hosts' kernels.
    pub fn conclude(mut self, now: Time, sink: &mut dyn Sink) -> Counts {
        let end = self.ended.unwrap_or(now).min(self.plan.horizon);
        for it in self.connections.values() {
            self.ledger.leave(end, it);
            it.ends().for_each(|end| self.ledger.close(&end.socket.info));
        }
        let mut counts = self.ledger.conclude(end, sink);
        counts.sampled = self.chosen.take().map(Chosen::flows).unwrap_or_default();
        let counter = |name: &str| self.counters.get(name).copied().unwrap_or(0);
        counts.timeouts = counter("TCPTimeouts");
        counts.retransmitted = counter("RetransSegs");
        counts
    }
}

/// The hosts of a plan that are kernels, in ascending order.
pub fn kernels(plan: &Plan) -> impl Iterator<Item = u32> + Clone + '_ {
    (0..plan.topology.hosts).filter(|host| plan.host.is_linux(*host))
}
