//! The books of a run: flows begin, are delivered, end or fail, and each makes its records.
//!
//! Whoever makes the traffic owns the connections and their sockets; the ledger counts, and gives
//! the sink its records.
//!
//! Invariant: each flow that starts makes exactly one record.

use super::Sink;
use super::agenda::Agenda;
use super::connection::{Connection, Opening, Role, Side};
use super::counts::Counts;
use super::goodput::Goodput;
use super::info::{Socket, TcpInfo};
use super::records::Recorder;
use millpond_core::Time;
use millpond_results::FlowRecord;
use millpond_scenario::plan::Plan;
use std::io;

/// Counts and records of a run.
pub struct Ledger<'a> {
    pub plan: &'a Plan,
    pub agenda: Agenda<'a>,
    pub recorder: Recorder<'a>,
    pub counts: Counts,
    /// Whether neither the sink nor the caller has ended the run.
    pub goes_on: bool,
    goodput: Goodput,
    active: u64,
    /// Records of what errors have ended.
    failed: Vec<FlowRecord>,
}

/// The step after an end has all bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nothing more: the connection is over.
    Nothing,
    /// The flow is delivered, and over when its last byte is acknowledged.
    Delivery,
    Answer,
    /// The server answers at this time.
    Thought(Time),
    Call,
    /// The probe asks again at this time.
    Question(Time),
}

impl<'a> Ledger<'a> {
    pub fn new(plan: &'a Plan) -> Ledger<'a> {
        Ledger {
            plan,
            agenda: Agenda::new(plan),
            recorder: Recorder::new(plan),
            counts: Counts::default(),
            goes_on: true,
            goodput: Goodput::new(plan.capture.goodput, plan.traffic.classes.len()),
            active: 0,
            failed: Vec::new(),
        }
    }

    /// Whether every flow of the plan is over.
    pub fn is_complete(&mut self) -> bool {
        self.active == 0 && self.agenda.is_over()
    }

    /// A flow or call begins. Probes make no records.
    pub fn begin(&mut self) {
        self.counts.started += 1;
        self.active += 1;
    }

    /// An end has read bytes of a connection.
    pub fn read<S: Socket>(&mut self, now: Time, c: &Connection<S>, reader: Side, bytes: u64) {
        if bytes == 0 || c.is_probe() {
            return;
        }
        self.goodput.add(now, c.opening.class, bytes);
        if now >= self.plan.warm_up {
            self.counts.bytes_measured += bytes;
            *self.counts.pairs.entry(c.pair(reader.other())).or_insert(0) += bytes;
        }
    }

    /// An end has all bytes of a message: what is recorded, and what follows.
    pub fn received<S: Socket>(
        &mut self,
        now: Time,
        c: &mut Connection<S>,
        side: Side,
        sink: &mut dyn Sink,
    ) -> Follows {
        let Opening { role, class, flow, .. } = c.opening;
        match (role, side) {
            (Role::OneWay | Role::Shuffle { .. }, _) | (Role::Exchange { .. }, Side::Client) => {
                self.deliver(now, c, sink);
                Follows::Delivery
            }
            (Role::Exchange { .. }, Side::Server) => {
                c.answers = true;
                match self.recorder.thinks(class, flow + 1) {
                    Time::ZERO => Follows::Answer,
                    time => Follows::Thought(now.saturating_add(time)),
                }
            }
            (Role::Rpc { .. } | Role::Probe { .. }, Side::Server) => Follows::Answer,
            (Role::Rpc { .. }, Side::Client) => match self.call(now, c, sink) {
                true => Follows::Call,
                false => Follows::Nothing,
            },
            (Role::Probe { .. }, Side::Client) => {
                self.probe(now, c, sink).map_or(Follows::Nothing, Follows::Question)
            }
        }
    }

    /// The receiver has all bytes of a flow.
    fn deliver<S: Socket>(&mut self, now: Time, c: &mut Connection<S>, sink: &mut dyn Sink) {
        c.delivered = Some(now);
        if let Some(query) = self.agenda.delivered(now, &c.opening) {
            let record = self.recorder.query(&query, query.degree, Some(now));
            self.goes_on &= sink.query(record);
        }
    }

    /// A flow is delivered and acknowledged.
    pub fn end<S: Socket>(
        &mut self,
        now: Time,
        c: &Connection<S>,
        sink: &mut dyn Sink,
    ) -> Option<Opening> {
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= sink.flow(self.recorder.flow(c));
        let Role::Shuffle { source } = c.opening.role else { return None };
        self.agenda.shuffle(now, source, c.opening.src)
    }

    /// A call is complete. Returns whether the next one begins.
    fn call<S: Socket>(&mut self, now: Time, c: &mut Connection<S>, sink: &mut dyn Sink) -> bool {
        let record = self.recorder.call(c, Some(now));
        c.asked = now;
        self.counts.completed += 1;
        self.active -= 1;
        self.goes_on &= sink.flow(record);
        let Role::Rpc { stop, .. } = c.opening.role else { return false };
        if now < stop {
            self.begin();
        }
        now < stop
    }

    /// A probe is answered. Returns when it asks again, if it does.
    fn probe<S: Socket>(
        &mut self,
        now: Time,
        c: &mut Connection<S>,
        sink: &mut dyn Sink,
    ) -> Option<Time> {
        let Role::Probe { period, stop } = c.opening.role else { return None };
        if c.asked >= self.plan.warm_up {
            self.goes_on &= sink.rtt(now.saturating_sub(c.asked));
        }
        c.due = c.due.saturating_add(period).max(now);
        (c.due < stop).then_some(c.due)
    }

    fn count_failure(&mut self, opening: &Opening, error: &io::Error) {
        let Opening { flow, src, dst, .. } = *opening;
        self.counts.fail(error, || format!("flow {flow} from host {src} to host {dst}"));
    }

    /// A connection is no more. Its flow stays unfinished.
    pub fn fail<S: Socket>(&mut self, c: &Connection<S>, error: &io::Error) {
        self.count_failure(&c.opening, error);
        if !c.is_probe() {
            self.failed.push(self.recorder.unfinished(c));
            self.counts.failed += 1;
            self.active -= 1;
        }
    }

    /// A flow's connection cannot even begin to open.
    pub fn fail_opening(&mut self, opening: &Opening, error: &io::Error) {
        self.count_failure(opening, error);
        if !matches!(opening.role, Role::Probe { .. }) {
            self.failed.push(self.recorder.opening(opening));
            self.counts.failed += 1;
            self.active -= 1;
        }
    }

    /// A socket is closed, which has counted this.
    pub fn close(&mut self, info: &TcpInfo) {
        self.counts.retransmitted += u64::from(info.retransmitted);
        self.counts.timeouts += u64::from(info.timeouts);
        self.counts.out_of_order += u64::from(info.out_of_order);
    }

    /// The run ends at `end` with this connection open.
    pub fn leave<S: Socket>(&mut self, end: Time, c: &Connection<S>) {
        if c.is_probe() {
            return;
        }
        self.failed.push(self.recorder.unfinished(c));
        for side in [Side::Client, Side::Server] {
            if end > self.plan.warm_up && c.end(side).is_some_and(|end| end.is_sending()) {
                self.counts.pairs.entry(c.pair(side)).or_insert(0);
            }
        }
    }

    /// The run ends at `end`, and all open connections are [left](Ledger::leave): hands over the
    /// records of what is unfinished, and returns the counts.
    pub fn conclude(mut self, end: Time, sink: &mut dyn Sink) -> Counts {
        (self.counts.ended, self.counts.interrupted) = (end, !self.goes_on);
        self.failed.sort_by_key(|record| (record.flow, record.start));
        for record in self.failed {
            sink.flow(record);
        }
        for (query, complete) in self.agenda.unanswered() {
            sink.query(self.recorder.query(&query, complete, None));
        }
        (self.counts.late, self.counts.waiting) = self.agenda.not_started();
        self.counts.goodput = self.goodput.finish(end);
        self.counts
    }
}
