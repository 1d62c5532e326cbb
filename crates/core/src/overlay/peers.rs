//! Which datagrams count: from known peers, made with their key, for this switch as it runs now,
//! and each of them once.
//!
//! A datagram names both epochs. So what was sent to this switch before it restarted counts no
//! more, whoever repeats it; the peer learns of the restart by a greeting. Within an epoch a window
//! of the last 64 numbers reports which have come (as in RFC 4303, section 3.4.3).
//!
//! A driver whose processes agree on keys of their own needs no epochs ([`Peers::meet`]).
//!
//! Invariant: the records of a datagram are handed on at most once, whatever is repeated.

use super::wire::{self, Head, Key};
use super::{PeerId, Record};
use crate::units::Time;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is none of ours.
    Form,
    /// Its sender is no configured peer.
    Stranger,
    /// It was not made with that peer's key, or not for us.
    Forged,
    /// It came before, or from before a restart.
    Replayed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub peer: PeerId,
    /// The peer has another epoch than before.
    pub is_restarted: bool,
    /// It was meant for this switch as it runs now; if not, its records are void.
    pub is_for_this_epoch: bool,
    pub records: Vec<Record>,
}

#[derive(Clone, Debug)]
struct Peer {
    key: Key,
    /// 0: unknown.
    epoch: u32,
    /// Of the last datagram to it.
    sent: u64,
    /// The greatest number that came, and by bits which of the 64 up to it.
    newest: u64,
    window: u64,
    is_to_be_greeted: bool,
    greeted: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Peers {
    me: PeerId,
    epoch: u32,
    feedback: Time,
    peers: BTreeMap<PeerId, Peer>,
}

impl Peers {
    /// Of the switch `me`, which greets a peer at most once a feedback time.
    pub fn new(me: PeerId, epoch: u32, feedback: Time) -> Peers {
        Peers { me, epoch: epoch.max(1), feedback, peers: BTreeMap::new() }
    }
    /// A peer, which is greeted at the next occasion.
    pub fn add(&mut self, peer: PeerId, key: Key) {
        let fresh = Peer {
            key,
            epoch: 0,
            sent: 0,
            newest: 0,
            window: 0,
            is_to_be_greeted: true,
            greeted: None,
        };
        self.peers.insert(peer, fresh);
    }
    /// A peer whose key is of its process and this one alone. Nothing of a former one opens, so
    /// both are in the same epoch and need no greeting.
    pub fn meet(&mut self, peer: PeerId, key: Key) {
        let epoch = self.epoch;
        let met = Peer {
            key,
            epoch,
            sent: 0,
            newest: 0,
            window: 0,
            is_to_be_greeted: false,
            greeted: None,
        };
        self.peers.insert(peer, met);
    }
    /// The peer's key has changed, and its process has not.
    pub fn rekey(&mut self, peer: PeerId, key: Key) {
        self.peers.entry(peer).and_modify(|peer| peer.key = key);
    }
    pub(super) fn open(&mut self, datagram: &[u8]) -> Result<Opened, Refused> {
        let head = wire::head(datagram).ok_or(Refused::Form)?;
        let peer = self.peers.get_mut(&head.from).ok_or(Refused::Stranger)?;
        if head.to != self.me || !wire::is_authentic(datagram, &peer.key) {
            return Err(Refused::Forged);
        }
        let records = wire::records(datagram).ok_or(Refused::Form)?;
        if head.epoch < peer.epoch {
            return Err(Refused::Replayed);
        }
        let is_restarted = head.epoch > peer.epoch && peer.epoch != 0;
        if head.epoch > peer.epoch {
            (peer.epoch, peer.newest, peer.window) = (head.epoch, 0, 0);
        }
        if !peer.is_first(head.number) {
            return Err(Refused::Replayed);
        }
        let is_for_this_epoch = head.to_epoch == self.epoch;
        peer.is_to_be_greeted = !is_for_this_epoch;
        Ok(Opened { peer: head.from, is_restarted, is_for_this_epoch, records })
    }
    /// Whether `peer` is to be greeted now, which is then done. `None`: there is no such peer.
    pub(super) fn greets(&mut self, now: Time, peer: PeerId) -> Option<bool> {
        let peer = self.peers.get_mut(&peer)?;
        let is_due =
            peer.is_to_be_greeted && peer.greeted.is_none_or(|last| now >= last + self.feedback);
        if is_due {
            (peer.greeted, peer.is_to_be_greeted) = (Some(now), false);
        }
        Some(is_due)
    }
    /// The datagram with `records`; `None`: there is no such peer.
    pub(super) fn seal(&mut self, to: PeerId, records: &[Record]) -> Option<Vec<u8>> {
        let peer = self.peers.get_mut(&to)?;
        peer.sent += 1;
        let head =
            Head { from: self.me, to, epoch: self.epoch, to_epoch: peer.epoch, number: peer.sent };
        Some(wire::encode(&head, records, &peer.key))
    }
}

impl Peer {
    /// Whether the datagram of this number has not come before; from now on it has.
    fn is_first(&mut self, number: u64) -> bool {
        if number > self.newest {
            let by = number - self.newest;
            self.window = if by < 64 { self.window << by } else { 0 } | 1;
            self.newest = number;
            return true;
        }
        let back = self.newest - number;
        let is_first = number > 0 && back < 64 && self.window & (1 << back) == 0;
        if is_first {
            self.window |= 1 << back;
        }
        is_first
    }
}
