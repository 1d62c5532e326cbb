//! Matching of messages with receives.
//!
//! A message takes the first of the posted receives, in the order of posting, that agrees in source
//! and tag; a receive takes the first of the unexpected messages, in the order of arrival. [`ANY`]
//! agrees with all.
//!
//! Invariant: no posted receive agrees with an unexpected message.

use super::ANY;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub from: u32,
    pub tag: u32,
    pub bytes: u64,
    pub operation: u32,
    pub cpu: u8,
    pub nic: u8,
}

/// Receives and messages that wait for their counterparts at a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Matching {
    posted: VecDeque<(u32, u32, u32)>,
    unexpected: VecDeque<Arrival>,
}

fn agrees(from: u32, tag: u32, message: &Arrival) -> bool {
    (from == ANY || from == message.from) && (tag == ANY || tag == message.tag)
}

impl Matching {
    /// A receive is posted; the message that it takes, if one is there.
    pub fn post(&mut self, operation: u32, from: u32, tag: u32) -> Option<Arrival> {
        let at = self.unexpected.iter().position(|message| agrees(from, tag, message));
        let found = at.and_then(|at| self.unexpected.remove(at));
        if found.is_none() {
            self.posted.push_back((operation, from, tag));
        }
        found
    }

    /// A message arrives; the receive that takes it, if one is posted.
    pub fn arrive(&mut self, message: Arrival) -> Option<u32> {
        let at = self.posted.iter().position(|(_, from, tag)| agrees(*from, *tag, &message));
        let found = at.and_then(|at| self.posted.remove(at));
        if found.is_none() {
            self.unexpected.push_back(message);
        }
        found.map(|(operation, ..)| operation)
    }

    pub fn posted(&self) -> impl Iterator<Item = u32> {
        self.posted.iter().map(|(operation, ..)| *operation)
    }

    pub fn unexpected(&self) -> impl Iterator<Item = &Arrival> {
        self.unexpected.iter()
    }
}
