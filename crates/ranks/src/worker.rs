//! One rank of a job at work: it takes the steps of its collective as messages arrive.
//!
//! A round is one instance of the collective. A rank begins its next round when its own part of the
//! last one is over, whatever others do, so messages of rounds to come may arrive early.
//!
//! Invariant: memory is that of the lanes of one round and of the messages that arrived early.

use crate::collective::Send;
use crate::computations::Computations;
use crate::driver::{Driver, Message, Span};
use crate::job::Job;
use crate::lanes::{Early, Exit, Lanes};
use millpond_core::Time;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Worker {
    rank: u32,
    round: u32,
    /// The present round's, once it may send.
    lanes: Option<Lanes>,
    /// By round: messages that have arrived for one to come.
    early: BTreeMap<u32, Early>,
    span: Span,
}

/// A round's way to the driver.
struct OfRound<'a, D> {
    round: u32,
    driver: &'a mut D,
}

impl<D: Driver> Exit for OfRound<'_, D> {
    fn send(&mut self, lane: u32, turn: u32, channel: u32, Send { to, bytes, step }: Send) {
        let (bytes, round, turn) = (bytes.max(1), self.round, Some(turn));
        let message = Message { bytes, call: 0, round, lane, step, turn };
        self.driver.send(to, channel, message);
    }
    fn wake(&mut self, at: Time) {
        self.driver.wake(at);
    }
}

impl Worker {
    /// A rank that has not begun.
    pub fn new(rank: u32) -> Worker {
        let zero = Time::ZERO;
        let span = Span {
            round: 0,
            began: zero,
            ready: zero,
            ended: zero,
            computed: zero,
            computations: Vec::new(),
        };
        Worker { rank, round: 0, lanes: None, early: BTreeMap::new(), span }
    }

    pub fn is_done(&self, job: &Job) -> bool {
        self.round >= job.rounds
    }

    /// Whether no message has arrived that no step has taken.
    pub fn is_settled(&self) -> bool {
        self.early.is_empty()
    }

    pub fn start(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        if !self.is_done(job) && self.begin(now, job, driver) {
            self.run(now, job, driver);
            self.go_on(now, job, driver);
        }
    }

    /// A time has come for which [`Driver::wake`] was asked.
    pub fn wake(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        if self.is_done(job) {
            return;
        }
        match &mut self.lanes {
            None => self.run(now, job, driver),
            Some(lanes) => {
                lanes.wake(now, &job.collective, &mut OfRound { round: self.round, driver });
            }
        }
        self.go_on(now, job, driver);
    }

    pub fn arrived(&mut self, now: Time, message: &Message, job: &Job, driver: &mut impl Driver) {
        let Message { round, lane, step, .. } = *message;
        match &mut self.lanes {
            Some(lanes) if round == self.round => {
                let mut exit = OfRound { round, driver };
                lanes.arrived(now, lane, step, &job.collective, &mut exit);
                self.go_on(now, job, driver);
            }
            _ => *self.early.entry(round).or_default().entry((lane, step)).or_insert(0) += 1,
        }
    }

    /// Begins a round with the rank's computation; whether that is over at once.
    fn begin(&mut self, now: Time, job: &Job, driver: &mut impl Driver) -> bool {
        let computed = job.pace.compute(self.rank, self.round);
        let gap = if self.round == 0 { Time::ZERO } else { job.pace.gap };
        let began = now.saturating_add(gap);
        let ready = began.saturating_add(computed);
        self.span = Span {
            round: self.round,
            began,
            ready,
            ended: ready,
            computed,
            computations: Vec::new(),
        };
        if ready > now {
            driver.wake(ready);
        }
        ready <= now
    }

    /// The rank has computed: it takes each lane as far as it goes.
    fn run(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        let early = self.early.remove(&self.round).unwrap_or_default();
        let mut lanes = Lanes::new(self.rank, &job.collective, early);
        lanes.run(now, &job.collective, &mut OfRound { round: self.round, driver });
        self.lanes = Some(lanes);
    }

    /// Begins the next rounds while the present one is over.
    fn go_on(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        while let Some(lanes) = self.lanes.take_if(|lanes| lanes.is_over()) {
            let Computations { total, spans, .. } = lanes.into_computations();
            self.span.ended = now;
            self.span.computed += total;
            self.span.computations = spans;
            driver.ended(self.span.clone());
            self.round += 1;
            if self.is_done(job) || !self.begin(now, job, driver) {
                return;
            }
            self.run(now, job, driver);
        }
    }
}
