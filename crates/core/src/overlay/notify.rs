//! The receiver's side: which records go to peers, when, and when again.
//!
//! Per target it is OPEN or PAUSED. Each change has a new number. A PAUSE leaves at once, any other
//! record half a feedback time after the last one at the earliest. A pause is repeated each quarter
//! of the TTL: of three refreshes two may be lost, and the third comes in time although it takes
//! its way (a third of the TTL would leave it none). If data of the target arrives later than half
//! a feedback time after the PAUSE, that is repeated at once: it may have been lost. A RESUME is
//! repeated after a feedback time, and then the target is forgotten.
//!
//! Where more than `flows` flows of one application are paused, the application is paused in their
//! place until half as many are. While an application is paused, for that or by the driver's will,
//! its flows are not named by themselves.
//!
//! Invariant: a target has one record to be sent, the latest; a peer is sent no more than
//! `datagrams` datagrams in half a feedback time.

use super::{Config, FlowKey, PeerId, Record, Target, Word};
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Why a target is paused: by the driver's will, or for the number of its flows.
const BY_DRIVER: u8 = 1;
const BY_NUMBER: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Notice {
    seq: u64,
    /// None of the bits: it may go on.
    causes: u8,
    queued: u32,
    /// When it was last sent, and whether the present change was.
    sent: Option<Time>,
    is_announced: bool,
    /// When it is due; [`Time::MAX`]: a record of its application covers it.
    due: Time,
    again: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Side {
    seq: u64,
    notices: BTreeMap<Target, Notice>,
    due: BTreeSet<(Time, Target)>,
    flows: BTreeMap<Target, u32>,
    /// Datagrams since `since`.
    since: Time,
    datagrams: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notifier {
    config: Config,
    sides: BTreeMap<PeerId, Side>,
}

impl Notifier {
    pub fn new(config: Config) -> Notifier {
        Notifier { config, sides: BTreeMap::new() }
    }
    /// `target`, which `peer` sends, is to pause.
    pub fn pause(&mut self, now: Time, peer: PeerId, target: Target, queued: u64) {
        let side = self.sides.entry(peer).or_default();
        let is_new = side.pause(now, target, BY_DRIVER, queued);
        if !is_new {
            return;
        }
        let Target::Flow(flow) = target else { return side.cover(target) };
        let application = Target::application(&flow);
        let count = side.flows.entry(application).or_insert(0);
        *count += 1;
        if *count == self.config.flows + 1 {
            side.pause(now, application, BY_NUMBER, queued);
        }
        if side.is_paused(&application, BY_NUMBER | BY_DRIVER) {
            side.set_due(target, Time::MAX);
        }
    }
    /// `target` may go on.
    pub fn resume(&mut self, now: Time, peer: PeerId, target: Target) {
        let Some(side) = self.sides.get_mut(&peer) else { return };
        let half = self.config.feedback / 2;
        let Target::Flow(flow) = target else {
            let speaks = side.is_paused(&target, BY_DRIVER) && !side.is_paused(&target, BY_NUMBER);
            let covers = speaks && target != Target::Peer;
            if covers {
                side.uncover(now, target);
            }
            // Those that stay paused are named first.
            side.resume(if covers { now + half } else { now }, target, BY_DRIVER, half);
            return;
        };
        if !side.resume(now, target, BY_DRIVER, half) {
            return;
        }
        let application = Target::application(&flow);
        let Some(count) = side.flows.get_mut(&application) else { return };
        *count -= 1;
        let left = *count;
        if left == 0 {
            side.flows.remove(&application);
        }
        if left <= self.config.flows / 2 && side.is_paused(&application, BY_NUMBER) {
            if !side.is_paused(&application, BY_DRIVER) {
                side.uncover(now, application);
            }
            // Those that stay paused are named first.
            side.resume(now + half, application, BY_NUMBER, half);
        }
    }
    /// Whether `target`, which `peer` sends, is to pause by the driver's will.
    pub fn is_paused(&self, peer: PeerId, target: &Target) -> bool {
        self.sides.get(&peer).is_some_and(|side| side.is_paused(target, BY_DRIVER))
    }
    /// Data of `flow` has come from `peer`: if it should have been paused, the PAUSE may have been
    /// lost.
    pub fn arrived(&mut self, now: Time, peer: PeerId, flow: &FlowKey) {
        let Some(side) = self.sides.get_mut(&peer) else { return };
        for target in [Target::Peer, Target::application(flow), Target::Flow(*flow)] {
            let Some(notice) = side
                .notices
                .get(&target)
                .filter(|notice| notice.causes != 0 && notice.due != Time::MAX)
            else {
                continue;
            };
            if notice.sent.is_some_and(|sent| now >= sent + self.config.feedback / 2)
                && notice.due > now
            {
                side.set_due(target, now);
            }
        }
    }
    /// The peer has restarted without any state.
    pub fn restarted(&mut self, now: Time, peer: PeerId) {
        let Some(side) = self.sides.get_mut(&peer) else { return };
        let all: Vec<Target> = side.notices.keys().copied().collect();
        for target in all {
            let notice = &side.notices[&target];
            if notice.causes == 0 {
                side.forget(target);
            } else if notice.due != Time::MAX {
                side.set_due(target, now);
            }
        }
    }
    /// The records to `peer` now in one datagram: at most `most`, pauses first.
    pub fn poll(&mut self, now: Time, peer: PeerId, most: usize) -> Vec<Record> {
        let Some(side) = self.sides.get_mut(&peer) else { return Vec::new() };
        if side.due.first().is_none_or(|(due, _)| *due > now) {
            return Vec::new();
        }
        if now >= side.since + self.config.feedback / 2 {
            (side.since, side.datagrams) = (now, 0);
        }
        if side.datagrams >= self.config.datagrams {
            return Vec::new();
        }
        side.datagrams += 1;
        let due: Vec<Target> = side
            .due
            .iter()
            .take_while(|(due, _)| *due <= now)
            .take(most)
            .map(|(_, target)| *target)
            .collect();
        let mut records: Vec<Record> =
            due.into_iter().map(|target| side.next_record(now, target, &self.config)).collect();
        records.sort_by_key(|record| record.word == Word::Resume);
        records
    }
    /// The time of the next word to `peer`.
    pub fn deadline(&self, peer: PeerId) -> Option<Time> {
        let side = self.sides.get(&peer)?;
        let (due, _) = side.due.first().filter(|(due, _)| *due != Time::MAX)?;
        let is_used_up = side.datagrams >= self.config.datagrams;
        Some(if is_used_up { (*due).max(side.since + self.config.feedback / 2) } else { *due })
    }
    /// Targets of `peer` that something is known of.
    pub fn len(&self, peer: PeerId) -> usize {
        self.sides.get(&peer).map_or(0, |side| side.notices.len())
    }
}

impl Side {
    /// Whether this cause is new to the target.
    fn pause(&mut self, now: Time, target: Target, cause: u8, queued: u64) -> bool {
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        if let Some(notice) = self.notices.get_mut(&target).filter(|notice| notice.causes != 0) {
            notice.queued = queued;
            let is_new = notice.causes & cause == 0;
            notice.causes |= cause;
            return is_new;
        }
        self.seq += 1;
        let sent = self.notices.get(&target).and_then(|notice| notice.sent);
        if let Some(old) = self.notices.get(&target) {
            self.due.remove(&(old.due, target));
        }
        let notice = Notice {
            seq: self.seq,
            causes: cause,
            queued,
            sent,
            is_announced: false,
            due: now,
            again: true,
        };
        self.notices.insert(target, notice);
        self.due.insert((now, target));
        true
    }
    /// Whether the target had this cause to pause.
    fn resume(&mut self, now: Time, target: Target, cause: u8, half: Time) -> bool {
        let Some(notice) =
            self.notices.get_mut(&target).filter(|notice| notice.causes & cause != 0)
        else {
            return false;
        };
        notice.causes &= !cause;
        if notice.causes != 0 {
            return true;
        }
        let Some(sent) = notice.sent else {
            // Nobody was notified, so there is nothing to take back.
            self.forget(target);
            return true;
        };
        self.seq += 1;
        (notice.seq, notice.is_announced, notice.queued) = (self.seq, false, 0);
        self.set_due(target, now.max(sent + half));
        true
    }
    fn is_paused(&self, target: &Target, cause: u8) -> bool {
        self.notices.get(target).is_some_and(|notice| notice.causes & cause != 0)
    }
    fn set_due(&mut self, target: Target, due: Time) {
        if let Some(notice) = self.notices.get_mut(&target) {
            self.due.remove(&(notice.due, target));
            self.due.insert((due, target));
            notice.due = due;
        }
    }
    fn forget(&mut self, target: Target) {
        if let Some(notice) = self.notices.remove(&target) {
            self.due.remove(&(notice.due, target));
        }
    }
    /// An application speaks for its flows.
    fn cover(&mut self, application: Target) {
        let covered: Vec<Target> = self
            .notices
            .iter()
            .filter(|(target, notice)| notice.causes != 0 && target.is_flow_of(&application))
            .map(|(t, _)| *t)
            .collect();
        covered.into_iter().for_each(|target| self.set_due(target, Time::MAX));
    }
    /// The flows that an application spoke for speak for themselves.
    fn uncover(&mut self, now: Time, application: Target) {
        let covered: Vec<Target> = self
            .notices
            .iter()
            .filter(|(target, notice)| notice.due == Time::MAX && target.is_flow_of(&application))
            .map(|(t, _)| *t)
            .collect();
        covered.into_iter().for_each(|target| self.set_due(target, now));
    }
    fn next_record(&mut self, now: Time, target: Target, config: &Config) -> Record {
        let Some(notice) = self.notices.get_mut(&target) else {
            unreachable!("what is due is known")
        };
        let word = match (notice.causes != 0, notice.is_announced) {
            (false, _) => Word::Resume,
            (true, false) => Word::Pause,
            (true, true) => Word::Refresh,
        };
        let ttl = u32::try_from(config.ttl.as_ps() / Time::from_us(1).as_ps()).unwrap_or(u32::MAX);
        let record = Record { word, target, seq: notice.seq, queued: notice.queued, rate: 0, ttl };
        (notice.sent, notice.is_announced) = (Some(now), true);
        if notice.causes != 0 {
            self.set_due(target, now + config.ttl / 4);
        } else if std::mem::replace(&mut notice.again, false) {
            self.set_due(target, now + config.feedback);
        } else {
            self.forget(target);
        }
        record
    }
}
