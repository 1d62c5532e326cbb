//! A rank at its work, be that a collective or a program.
//!
//! Invariant: a driver calls both in the same way.

use crate::computations::Computations;
use crate::driver::{Driver, Message, Span};
use crate::job::Job;
use crate::program::{Arrival, Carrier, Costs, Event, Executor, Moment, Piece, Program};
use crate::worker::Worker;
use millpond_core::Time;
use std::sync::Arc;

/// The work of the ranks of a job.
#[derive(Clone, Debug)]
pub enum Work {
    Collective(Job),
    Program {
        program: Arc<Program>,
        /// The costs of messages to the ranks' cpus; the network has costs of its own.
        costs: Costs,
    },
}

impl Work {
    /// How many rounds each rank does.
    pub fn rounds(&self) -> u32 {
        match self {
            Work::Collective(job) => job.rounds,
            Work::Program { .. } => 1,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Rank {
    number: u32,
    began: Time,
    at: At,
}

#[derive(Clone, Debug)]
enum At {
    Collective(Worker),
    Program(Box<Executor>),
}

/// Passes a program's messages on, but for those of a rank to itself.
struct Post<'a, D> {
    driver: &'a mut D,
    own: u32,
    to_itself: Vec<Arrival>,
    matched: Vec<u32>,
}

impl<D: Driver> Carrier for Post<'_, D> {
    fn send(&mut self, to: u32, message: Arrival) {
        if to == self.own {
            return self.to_itself.push(message);
        }
        let Arrival { tag, bytes, operation, cpu, nic, .. } = message;
        let lane = u32::from(cpu) | u32::from(nic) << 8;
        let bytes = bytes.max(1);
        let message = Message { bytes, call: 0, round: tag, lane, step: operation, turn: None };
        self.driver.send(to, nic.into(), message);
    }
    fn send_piece(&mut self, to: u32, piece: Piece) {
        let Piece { groups, number: round, lane, step, turn, bytes } = piece;
        let (bytes, call, turn) = (bytes.max(1), groups + 1, Some(turn));
        self.driver.send(to, 0, Message { bytes, call, round, lane, step, turn });
    }
    fn match_of(&mut self, message: &Arrival) {
        match message.from == self.own {
            true => self.matched.push(message.operation),
            false => self.driver.matched(message.from, message.operation),
        }
    }
    fn wake(&mut self, at: Time) {
        self.driver.wake(at);
    }
}

impl Rank {
    /// A rank that has not begun.
    pub fn new(number: u32, work: &Work) -> Rank {
        let at = match work {
            Work::Collective(_) => At::Collective(Worker::new(number)),
            Work::Program { program, costs } => {
                At::Program(Box::new(Executor::new(number, program, *costs)))
            }
        };
        Rank { number, began: Time::ZERO, at }
    }

    /// Whether all of its work is done.
    pub fn is_done(&self, work: &Work) -> bool {
        match (&self.at, work) {
            (At::Collective(worker), Work::Collective(job)) => worker.is_done(job),
            (At::Program(executor), _) => executor.is_done(),
            _ => true,
        }
    }

    pub fn start(&mut self, now: Time, work: &Work, driver: &mut impl Driver) {
        self.began = now;
        match (&mut self.at, work) {
            (At::Collective(worker), Work::Collective(job)) => worker.start(now, job, driver),
            _ => self.execute(now, Event::Start, work, driver),
        }
    }

    /// A time has come for which [`Driver::wake`] was asked.
    pub fn wake(&mut self, now: Time, work: &Work, driver: &mut impl Driver) {
        match (&mut self.at, work) {
            (At::Collective(worker), Work::Collective(job)) => worker.wake(now, job, driver),
            _ => self.execute(now, Event::Wake, work, driver),
        }
    }

    /// A message of another rank has arrived.
    pub fn arrived(
        &mut self,
        now: Time,
        from: u32,
        message: &Message,
        work: &Work,
        driver: &mut impl Driver,
    ) {
        match (&mut self.at, work) {
            (At::Collective(worker), Work::Collective(job)) => {
                worker.arrived(now, message, job, driver);
            }
            _ => {
                let Message { bytes, call, round, lane, step, turn } = *message;
                let (cpu, nic) = (lane as u8, (lane >> 8) as u8);
                let call = match call.checked_sub(1) {
                    Some(groups) => {
                        let turn = turn.unwrap_or_default();
                        Event::Piece(Piece { groups, number: round, lane, step, turn, bytes })
                    }
                    None => {
                        let (tag, operation) = (round, step);
                        Event::Arrived(Arrival { from, tag, bytes, operation, cpu, nic })
                    }
                };
                self.execute(now, call, work, driver);
            }
        }
    }

    /// A send of this rank's program is matched.
    pub fn matched(&mut self, now: Time, operation: u32, work: &Work, driver: &mut impl Driver) {
        self.execute(now, Event::Matched(operation), work, driver);
    }

    /// The rest of a program at the end, by names; `None`: nothing.
    pub fn left(&self, work: &Work) -> Option<String> {
        match (&self.at, work) {
            (At::Program(executor), Work::Program { program, .. }) => {
                program.left(self.number, &executor.unmatched())
            }
            _ => None,
        }
    }

    /// Calls a program's executor, and again for what it sends to itself.
    fn execute(&mut self, now: Time, event: Event, work: &Work, driver: &mut impl Driver) {
        let (At::Program(executor), Work::Program { program, .. }) = (&mut self.at, work) else {
            return;
        };
        let was_done = executor.is_done();
        let is_start = matches!(event, Event::Start);
        let mut post =
            Post { driver, own: self.number, to_itself: Vec::new(), matched: Vec::new() };
        let mut next = Some(event);
        while let Some(event) = next {
            executor.act(event, &mut Moment { now, program, carrier: &mut post });
            let matched = post.matched.pop().map(Event::Matched);
            next = matched.or_else(|| {
                let first = !post.to_itself.is_empty();
                first.then(|| Event::Arrived(post.to_itself.remove(0)))
            });
        }
        if executor.is_done() && (is_start || !was_done) {
            let (began, ended) = (self.began, now);
            let Computations { total: computed, spans: computations, .. } =
                executor.computations().clone();
            driver.ended(Span { round: 0, began, ready: began, ended, computed, computations });
        }
    }
}
