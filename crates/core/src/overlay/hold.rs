//! The sender's side: which targets may not send, and until when.
//!
//! Per target it is RUN or HELD. A PAUSE or REFRESH that is not older than the latest record
//! holds it for its TTL, a RESUME that is not older ends that, and so does time. The keeper
//! remembers a pause for a while after it ended, so that what arrives late is known to be late. A
//! target need not be known otherwise: a pause may come before its flow's first packet.
//!
//! Invariant: no target is held for longer than `longest` after the last PAUSE or REFRESH of it.

use super::{Config, FlowKey, PeerId, Record, Target, Word};
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A target may no longer send, or may again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The peer that sent it: the record is about traffic to that peer.
    pub peer: PeerId,
    /// The target that it is about. Another may still hold what it covers ([`Keeper::is_held`]).
    pub target: Target,
    pub is_held: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Hold {
    seq: u64,
    is_held: bool,
    /// When it is over: the pause, or the memory of it.
    until: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keeper {
    config: Config,
    holds: BTreeMap<(PeerId, Target), Hold>,
    ends: BTreeSet<(Time, PeerId, Target)>,
    counts: BTreeMap<PeerId, u32>,
    late: u64,
    beyond: u64,
}

impl Keeper {
    pub fn new(config: Config) -> Keeper {
        Keeper {
            config,
            holds: BTreeMap::new(),
            ends: BTreeSet::new(),
            counts: BTreeMap::new(),
            late: 0,
            beyond: 0,
        }
    }

    /// A record of a peer has come.
    pub fn on_record(&mut self, now: Time, peer: PeerId, record: &Record) -> Option<Change> {
        let (key, is_held) = ((peer, record.target), record.word != Word::Resume);
        let ttl = Time::from_us(u64::from(record.ttl)).min(self.config.longest);
        let until = now.saturating_add(if is_held { ttl } else { self.config.longest });
        let was_held = match self.holds.get(&key) {
            Some(hold) if record.seq < hold.seq => {
                self.late += 1;
                return None;
            }
            Some(hold) => {
                self.ends.remove(&(hold.until, peer, record.target));
                hold.is_held
            }
            None => {
                let count = self.counts.entry(peer).or_insert(0);
                // A peer with too many targets may still pause all that is sent to it.
                if *count >= self.config.targets && record.target != Target::Peer {
                    self.beyond += 1;
                    return None;
                }
                *count += 1;
                false
            }
        };
        self.holds.insert(key, Hold { seq: record.seq, is_held, until });
        self.ends.insert((until, peer, record.target));
        (is_held != was_held).then_some(Change { peer, target: record.target, is_held })
    }

    /// A pause that ends by itself: to be asked for, when [`Keeper::deadline`] has come, until
    /// there is no more.
    pub fn expire(&mut self, now: Time) -> Option<Change> {
        while let Some(&(until, peer, target)) =
            self.ends.first().filter(|(until, ..)| *until <= now)
        {
            self.ends.pop_first();
            let hold = self.holds.get_mut(&(peer, target))?;
            if hold.is_held {
                // Its number is remembered: a refresh may be on its way, and so may what is older.
                hold.is_held = false;
                hold.until = until.saturating_add(self.config.longest).max(now + Time::from_ps(1));
                self.ends.insert((hold.until, peer, target));
                return Some(Change { peer, target, is_held: false });
            }
            self.holds.remove(&(peer, target));
            self.counts.entry(peer).and_modify(|count| *count -= 1);
        }
        None
    }
    pub fn deadline(&self) -> Option<Time> {
        self.ends.first().map(|(until, ..)| *until)
    }
    /// The peer has restarted: its earlier records are void.
    pub fn forget(&mut self, peer: PeerId, changed: &mut impl FnMut(Change)) {
        let all: Vec<Target> = self
            .holds
            .range((peer, Target::Peer)..)
            .map_while(|((p, t), _)| (*p == peer).then_some(*t))
            .collect();
        for target in all {
            if let Some(hold) = self.holds.remove(&(peer, target)) {
                self.ends.remove(&(hold.until, peer, target));
                if hold.is_held {
                    changed(Change { peer, target, is_held: false });
                }
            }
        }
        self.counts.remove(&peer);
    }
    /// Whether nothing is known of any target.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }
    pub fn held(&self) -> usize {
        self.holds.values().filter(|hold| hold.is_held).count()
    }
    /// Whether a flow that goes to `peer` may not send.
    pub fn is_held(&self, peer: PeerId, flow: &FlowKey) -> bool {
        let held = |target| self.holds.get(&(peer, target)).is_some_and(|hold| hold.is_held);
        held(Target::Flow(*flow)) || held(Target::application(flow)) || held(Target::Peer)
    }
    /// Records that came too late to count.
    pub fn late(&self) -> u64 {
        self.late
    }
    /// Records of targets beyond those that are remembered of a peer.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }
}
