//! One rank of a job at work: it takes the steps of its collective as messages arrive.
//!
//! A round is one instance of the collective. A rank begins its next round when its own part of the
//! last one is over, whatever others do, so messages of rounds and steps to come may arrive early.
//!
//! Invariant: memory is that of the lanes of one round and of the messages that arrived early.

use crate::collective::Send;
use crate::job::Job;
use millpond_core::Time;
use std::collections::BTreeMap;

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// How much.
    pub bytes: u64,
    /// The round that it belongs to.
    pub round: u32,
    /// The lane.
    pub lane: u32,
    /// The receiver's step that waits for it.
    pub step: u32,
}

/// A rank's part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which round.
    pub round: u32,
    /// When the rank began it, with its computation.
    pub began: Time,
    /// When it could send its first message.
    pub ready: Time,
    /// When all messages for it were there.
    pub ended: Time,
    /// How long it computed.
    pub computed: Time,
}

/// Who carries a rank's messages and calls it back.
pub trait Driver {
    /// Sends a message to a rank of the same job, on a channel. Messages of one channel to one rank
    /// arrive in this order.
    fn send(&mut self, to: u32, channel: u32, message: Message);
    /// Calls [`Worker::wake`] at a time.
    fn wake(&mut self, at: Time);
    /// The rank has ended its part of a round.
    fn ended(&mut self, span: Span);
}

/// A lane of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The step that it waits for, computes for, or takes.
    step: u32,
    /// When its computation for that step ends, if it computes.
    busy: Option<Time>,
}

/// A rank at work.
#[derive(Clone, Debug)]
pub struct Worker {
    rank: u32,
    round: u32,
    lanes: Vec<Lane>,
    /// Lanes that have steps left.
    open: u32,
    /// By (round, lane, step): messages that have arrived for a step to come.
    early: BTreeMap<(u32, u32, u32), u32>,
    span: Span,
    /// The round has begun to send.
    is_ready: bool,
}

impl Worker {
    /// A rank that has not begun.
    pub fn new(rank: u32) -> Worker {
        let zero = Time::ZERO;
        Worker {
            rank,
            round: 0,
            lanes: Vec::new(),
            open: 0,
            early: BTreeMap::new(),
            span: Span { round: 0, began: zero, ready: zero, ended: zero, computed: zero },
            is_ready: false,
        }
    }

    /// Whether all rounds are over.
    pub fn is_done(&self, job: &Job) -> bool {
        self.round >= job.rounds
    }

    /// How many rounds are over.
    pub fn rounds(&self) -> u32 {
        self.round
    }

    /// Whether no message has arrived that no step has taken.
    pub fn is_settled(&self) -> bool {
        self.early.is_empty()
    }

    /// The job begins.
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
        if !self.is_ready {
            self.run(now, job, driver);
            return self.go_on(now, job, driver);
        }
        for lane in 0..self.lanes.len() as u32 {
            let state = &mut self.lanes[lane as usize];
            if state.busy.is_some_and(|until| until <= now) {
                state.busy = None;
                self.take(lane, job, driver);
                self.advance(now, lane, job, driver);
            }
        }
        self.go_on(now, job, driver);
    }

    /// A message has arrived.
    pub fn arrived(&mut self, now: Time, message: &Message, job: &Job, driver: &mut impl Driver) {
        let Message { round, lane, step, .. } = *message;
        *self.early.entry((round, lane, step)).or_insert(0) += 1;
        let waits = |lane: &Lane| lane.step == step && lane.busy.is_none();
        if self.is_ready && round == self.round && self.lanes.get(lane as usize).is_some_and(waits)
        {
            self.advance(now, lane, job, driver);
            self.go_on(now, job, driver);
        }
    }

    /// Begins a round with the rank's computation; whether that is over at once.
    fn begin(&mut self, now: Time, job: &Job, driver: &mut impl Driver) -> bool {
        let computed = job.pace.compute(self.rank, self.round);
        let gap = if self.round == 0 { Time::ZERO } else { job.pace.gap };
        let began = now.saturating_add(gap);
        let ready = began.saturating_add(computed);
        self.span = Span { round: self.round, began, ready, ended: ready, computed };
        self.is_ready = false;
        if ready > now {
            driver.wake(ready);
        }
        ready <= now
    }

    /// The rank has computed: it takes each lane as far as it goes.
    fn run(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        self.is_ready = true;
        self.open = job.collective.lanes();
        self.lanes.clear();
        self.lanes.resize(self.open as usize, Lane::default());
        for lane in 0..self.lanes.len() as u32 {
            self.advance(now, lane, job, driver);
        }
    }

    /// Takes the steps of a lane whose messages are there.
    fn advance(&mut self, now: Time, lane: u32, job: &Job, driver: &mut impl Driver) {
        loop {
            let step = self.lanes[lane as usize].step;
            let Some(needs) = job.collective.step(self.rank, lane, step) else {
                self.open -= 1;
                return;
            };
            let key = (self.round, lane, step);
            if needs.awaits > 0 {
                if self.early.get(&key).is_none_or(|there| *there < needs.awaits) {
                    return;
                }
                self.early.remove(&key);
            }
            if needs.work > Time::ZERO {
                let until = now.saturating_add(needs.work);
                self.lanes[lane as usize].busy = Some(until);
                self.span.computed += needs.work;
                return driver.wake(until);
            }
            self.take(lane, job, driver);
        }
    }

    /// Sends the messages of a lane's step, and goes to the next.
    fn take(&mut self, lane: u32, job: &Job, driver: &mut impl Driver) {
        let step = self.lanes[lane as usize].step;
        let channel = job.collective.channel(lane);
        job.collective.sends(self.rank, lane, step, |Send { to, bytes, step }| {
            let message = Message { bytes: bytes.max(1), round: self.round, lane, step };
            driver.send(to, channel, message);
        });
        self.lanes[lane as usize].step += 1;
    }

    /// Begins the next rounds while the present one is over.
    fn go_on(&mut self, now: Time, job: &Job, driver: &mut impl Driver) {
        while self.open == 0 {
            self.span.ended = now;
            driver.ended(self.span);
            self.round += 1;
            if self.is_done(job) || !self.begin(now, job, driver) {
                return;
            }
            self.run(now, job, driver);
        }
    }
}
