//! The senders to a port, and whether all of them are asked to pause together.
//!
//! Flows that are asked to pause one after the other need the sum of their headroom, since each
//! fills the link in turn. So where a port has no shared memory left, all who send there are asked
//! at once, and all may go on when its headroom is there and half of its memory.
//!
//! Invariant: while they are asked to pause, whoever is new is asked, too.

use crate::flow_queues::{FlowQueues, Rung};
use crate::units::Bytes;
use std::collections::BTreeSet;

/// The senders of one port; `S` names one.
#[derive(Clone, Debug)]
pub struct Senders<S> {
    all: BTreeSet<S>,
    is_paused: bool,
}

impl<S> Default for Senders<S> {
    fn default() -> Self {
        Senders { all: BTreeSet::new(), is_paused: false }
    }
}

impl<S: Copy + Ord> Senders<S> {
    /// Data of `sender` has come, and queues have answered by `rung`. Whether all are to be asked
    /// to pause now.
    pub fn arrived(&mut self, sender: S, rung: Rung) -> bool {
        let is_new = self.all.insert(sender);
        let pauses = rung >= Rung::Flows && (!self.is_paused || is_new);
        self.is_paused |= pauses;
        pauses || (is_new && self.is_paused)
    }
    /// Whether all may go on now, of `memory` bytes that anybody may take.
    pub fn calms<F: Copy + Eq, P: Copy + Default>(
        &mut self,
        queues: &FlowQueues<F, P>,
        memory: Bytes,
    ) -> bool {
        let is_calm = queues.is_headroom_full() && queues.queued().0 <= memory.0 / 2;
        is_calm && std::mem::take(&mut self.is_paused)
    }
    /// Whether they are asked to pause.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }
    pub fn iter(&self) -> impl Iterator<Item = S> {
        self.all.iter().copied()
    }
    pub fn len(&self) -> usize {
        self.all.len()
    }
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// Forgets them, if they are not asked to pause.
    pub fn forget(&mut self) {
        if !self.is_paused {
            self.all.clear();
        }
    }
}
