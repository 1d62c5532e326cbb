//! RCCC: the credit of a receiving host, for all connections that send to it.
//!
//! One pacer a host. It gives the next of its active connections up to 16 KB of credit by a PULL,
//! at most up to what the sender has asked for, and then waits for as long as that takes at 99 % of
//! the link's rate. A connection that has all it asked for is idle; when none is active, idle ones
//! get credit beyond that, slowly, up to a largest window ahead. A PULL that is lost is repeated
//! for a sender that begs: credit is a sum, so to hear it twice changes nothing.
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

/// A PULL to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The connection's flow.
    pub flow: FlowId,
    /// All credit so far, in units.
    pub credit: u32,
    /// Nobody waits for it.
    pub is_slow: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    credit: u32,
    target: u32,
    is_active: bool,
    /// When it was last given some.
    given_at: Time,
}

/// A host's.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    connections: BTreeMap<FlowId, Turn>,
    active: VecDeque<FlowId>,
    idle: VecDeque<FlowId>,
    /// When it may give the next; `None`: it is not called.
    pub next_at: Option<Time>,
    /// When the credit that was given is used up.
    busy_until: Time,
}

impl Pacer {
    /// A sender has asked for credit up to `target`. Returns when the pacer is to be called, if it
    /// is not to be already.
    pub fn ask(&mut self, now: Time, flow: FlowId, target: u32) -> Option<Time> {
        let turn = self.connections.entry(flow).or_default();
        turn.target = turn.target.max(target);
        if turn.is_active || turn.credit >= turn.target {
            return None;
        }
        turn.is_active = true;
        self.idle.retain(|other| *other != flow);
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

    /// A sender has credit up to its target and begs for more: its last PULL, if that was given at
    /// least a round trip ago.
    pub fn repeat(&mut self, now: Time, flow: FlowId, cfg: &Config) -> Option<Pull> {
        let turn = self.connections.get_mut(&flow)?;
        if turn.is_active || turn.credit == 0 || now < turn.given_at + cfg.terms.base {
            return None;
        }
        turn.given_at = now;
        Some(Pull { flow, credit: turn.credit, is_slow: false })
    }

    /// A connection is over.
    pub fn forget(&mut self, flow: FlowId) {
        if self.connections.remove(&flow).is_some() {
            self.active.retain(|other| *other != flow);
            self.idle.retain(|other| *other != flow);
        }
    }

    /// Its time has come: the next PULL, and when to call again.
    pub fn next(&mut self, now: Time, rate: Rate, cfg: &Config) -> (Option<Pull>, Option<Time>) {
        self.next_at = None;
        let pull = self.give(now, cfg);
        let units = pull.map_or(IDLE_UNITS, |(_, units)| u64::from(units));
        let paced = Rate(rate.bps() / 100 * PERCENT);
        self.busy_until = now + paced.transmission_time(units * CREDIT);
        let goes_on = !self.active.is_empty() || pull.is_some() && !self.idle.is_empty();
        if goes_on {
            self.next_at = Some(self.busy_until);
        }
        (pull.map(|(pull, _)| pull), self.next_at)
    }

    fn give(&mut self, now: Time, cfg: &Config) -> Option<(Pull, u32)> {
        if let Some(flow) = self.active.pop_front() {
            let turn = self.connections.get_mut(&flow)?;
            let units = UNITS.min(turn.target - turn.credit);
            turn.credit += units;
            turn.given_at = now;
            turn.is_active = turn.credit < turn.target;
            let credit = turn.credit;
            let queue = if turn.is_active { &mut self.active } else { &mut self.idle };
            queue.push_back(flow);
            return Some((Pull { flow, credit, is_slow: false }, units));
        }
        let ahead = (cfg.terms.initial / CREDIT) as u32;
        for _ in 0..self.idle.len() {
            let flow = self.idle.pop_front()?;
            let turn = self.connections.get_mut(&flow)?;
            self.idle.push_back(flow);
            if turn.credit < turn.target.saturating_add(ahead) {
                turn.credit += UNITS;
                turn.given_at = now;
                return Some((Pull { flow, credit: turn.credit, is_slow: true }, UNITS));
            }
        }
        None
    }
}
