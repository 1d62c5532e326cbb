//! A collective under way at one rank: how far its lanes have come.
//!
//! Invariant: a lane takes its steps in order, each when the messages that it waits for have
//! arrived and its computation is over; what arrives early is counted.

use crate::collective::{Collective, Send};
use crate::computations::Computations;
use millpond_core::Time;
use std::collections::BTreeMap;

/// By lane and step: messages that have arrived for a step to come.
pub(crate) type Early = BTreeMap<(u32, u32), u32>;

/// The sender of what lanes send, which calls them back.
pub(crate) trait Exit {
    /// Sends the message of a lane's step on its channel.
    fn send(&mut self, lane: u32, turn: u32, channel: u32, send: Send);
    /// Calls [`Lanes::wake`] at a time.
    fn wake(&mut self, at: Time);
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The step that it waits for, computes for, or takes.
    step: u32,
    /// When its computation for that step ends, if it computes.
    busy: Option<Time>,
}

/// The lanes of a collective at one rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    rank: u32,
    lanes: Vec<Lane>,
    open: u32,
    early: Early,
    computations: Computations,
}

impl Lanes {
    /// Of a rank that begins, for which these messages have arrived.
    pub fn new(rank: u32, collective: &Collective, early: Early) -> Lanes {
        let open = collective.lanes();
        let lanes = vec![Lane::default(); open as usize];
        Lanes { rank, lanes, open, early, computations: Computations::of_job(collective.ranks) }
    }

    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    pub fn into_computations(self) -> Computations {
        self.computations
    }

    /// Takes each lane as far as it goes.
    pub fn run(&mut self, now: Time, collective: &Collective, exit: &mut impl Exit) {
        for lane in 0..self.lanes.len() as u32 {
            self.advance(now, lane, collective, exit);
        }
    }

    pub fn arrived(
        &mut self,
        now: Time,
        lane: u32,
        step: u32,
        collective: &Collective,
        exit: &mut impl Exit,
    ) {
        *self.early.entry((lane, step)).or_insert(0) += 1;
        let waits = |lane: &Lane| lane.step == step && lane.busy.is_none();
        if self.lanes.get(lane as usize).is_some_and(waits) {
            self.advance(now, lane, collective, exit);
        }
    }

    /// A time has come for which [`Exit::wake`] was asked.
    pub fn wake(&mut self, now: Time, collective: &Collective, exit: &mut impl Exit) {
        for lane in 0..self.lanes.len() as u32 {
            let state = &mut self.lanes[lane as usize];
            if state.busy.is_some_and(|until| until <= now) {
                state.busy = None;
                self.take(lane, collective, exit);
                self.advance(now, lane, collective, exit);
            }
        }
    }

    /// Takes the steps of a lane whose messages are there.
    fn advance(&mut self, now: Time, lane: u32, collective: &Collective, exit: &mut impl Exit) {
        loop {
            let step = self.lanes[lane as usize].step;
            let Some(needs) = collective.step(self.rank, lane, step) else {
                self.open -= 1;
                return;
            };
            if needs.awaits > 0 {
                if self.early.get(&(lane, step)).is_none_or(|there| *there < needs.awaits) {
                    return;
                }
                self.early.remove(&(lane, step));
            }
            if needs.work > Time::ZERO {
                let until = now.saturating_add(needs.work);
                self.lanes[lane as usize].busy = Some(until);
                self.computations.add(now, until);
                return exit.wake(until);
            }
            self.take(lane, collective, exit);
        }
    }

    /// Sends the messages of a lane's step, and goes to the next.
    fn take(&mut self, lane: u32, collective: &Collective, exit: &mut impl Exit) {
        let step = self.lanes[lane as usize].step;
        collective
            .sends(self.rank, lane, step, |channel, send| exit.send(lane, step, channel, send));
        self.lanes[lane as usize].step += 1;
    }
}
