//! RCCC: the credit of a receiving host, for all connections that send to it.
//!
//! One pacer a host. It gives the next of its active connections up to 16 KB of credit by a PULL,
//! at most up to its sender's target, and then waits for as long as that takes at 99 % of the
//! link's rate. A connection becomes active when its sender's target rises, when a packet of it was
//! trimmed, and by a request to send. One that has credit up to its target is idle; when none is
//! active, idle ones get credit beyond that, slowly, up to a largest window ahead. The answer to a
//! request to send is therefore at least a PULL, which repeats a lost one: credit is a sum.
//!
//! Invariant: a connection's credit never falls, and no credit is given for the same wire time
//! twice.

use super::{CREDIT, Config};
use millpond_core::packet::FlowId;
use millpond_core::{Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// Units of credit in a PULL, at most.
const UNITS: u32 = 64;
/// Of the link's rate, in percent.
const PERCENT: u64 = 99;
/// Units for which the pacer waits where it could give none.
const IDLE_UNITS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    pub flow: FlowId,
    /// All credit so far, in units.
    pub credit: u32,
    pub is_slow: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    credit: u32,
    target: u32,
    is_active: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Pacer {
    connections: BTreeMap<FlowId, Turn>,
    active: VecDeque<FlowId>,
    /// For each time that a connection got all that it asked for: a slow PULL, which it gets when
    /// none is active. Those of one connection in a row are one entry, with their number.
    idle: VecDeque<(FlowId, u32)>,
    /// When it may give the next; `None`: it is not called.
    pub next_at: Option<Time>,
    /// When the credit that was given is used up.
    busy_until: Time,
}

impl Pacer {
    /// A packet with a sender's target has arrived; `insists`: it is to be answered by a PULL
    /// although the target may be no higher than before. Returns when the pacer is to be called, if
    /// it is not to be already.
    pub fn ask(&mut self, now: Time, flow: FlowId, target: u32, insists: bool) -> Option<Time> {
        let turn = self.connections.entry(flow).or_default();
        let rises = target > turn.target;
        turn.target = turn.target.max(target);
        if turn.is_active || !(rises || insists) {
            return None;
        }
        turn.is_active = true;
        self.active.push_back(flow);
        self.wake(now)
    }

    fn wake(&mut self, now: Time) -> Option<Time> {
        if self.next_at.is_some() {
            return None;
        }
        self.next_at = Some(self.busy_until.max(now));
        self.next_at
    }

    pub fn forget(&mut self, flow: FlowId) {
        self.connections.remove(&flow);
    }

    /// Its time has come: the next PULL, and when to call again.
    pub fn next(&mut self, now: Time, rate: Rate, cfg: &Config) -> (Option<Pull>, Option<Time>) {
        self.next_at = None;
        let pull = self.give(cfg);
        let units = pull.map_or(0, |(_, units)| u64::from(units));
        let units = if units > 0 { units } else { IDLE_UNITS };
        let paced = Rate(rate.bps() / 100 * PERCENT);
        self.busy_until = now + paced.transmission_time(units * CREDIT);
        if !self.active.is_empty() || !self.idle.is_empty() {
            self.next_at = Some(self.busy_until);
        }
        (pull.map(|(pull, _)| pull), self.next_at)
    }

    fn give(&mut self, cfg: &Config) -> Option<(Pull, u32)> {
        while let Some(flow) = self.active.pop_front() {
            let Some(turn) = self.connections.get_mut(&flow) else { continue };
            let units = UNITS.min(turn.target.saturating_sub(turn.credit));
            turn.credit += units;
            turn.is_active = turn.credit < turn.target;
            let (credit, is_active) = (turn.credit, turn.is_active);
            if is_active {
                self.active.push_back(flow);
            } else {
                self.rest(flow);
            }
            return Some((Pull { flow, credit, is_slow: false }, units));
        }
        let ahead = (cfg.terms.largest / CREDIT) as u32;
        while let Some((flow, times)) = self.idle.pop_front() {
            let Some(turn) = self.connections.get_mut(&flow) else { continue };
            turn.credit += UNITS;
            let (credit, goes_on) = (turn.credit, turn.credit < turn.target.saturating_add(ahead));
            if times > 1 {
                self.idle.push_front((flow, times - 1));
            }
            if goes_on {
                self.rest(flow);
            }
            return Some((Pull { flow, credit, is_slow: true }, UNITS));
        }
        None
    }

    /// A connection has all that it asked for.
    fn rest(&mut self, flow: FlowId) {
        match self.idle.back_mut() {
            Some((last, times)) if *last == flow => *times += 1,
            _ => self.idle.push_back((flow, 1)),
        }
    }
}
