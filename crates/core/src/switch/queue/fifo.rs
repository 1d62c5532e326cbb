//! First in, first out.

use super::{PausedSet, Waiting};
use crate::packet::{Packet, PacketId};
use crate::registry::About;
use std::collections::VecDeque;

pub(super) const ABOUT: About =
    About { summary: "first in, first out", source: "the default of every switch", ..About::PLAIN };

crate::params! {
    /// A FIFO has no keys.
    pub struct FifoParams {}
}

/// One queue for all.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
}

impl Fifo {
    pub(super) fn new(_: &FifoParams) -> Fifo {
        Fifo::default()
    }
    #[inline]
    pub(super) fn push(&mut self, id: PacketId, packet: &Packet) {
        self.waiting.push_back(Waiting::new(id, packet));
    }
    #[inline]
    pub(super) fn pop(&mut self, paused: PausedSet) -> Option<Waiting> {
        if !paused.is_empty() { None } else { self.waiting.pop_front() }
    }
    pub(super) fn waiting(&self) -> Vec<PacketId> {
        self.waiting.iter().map(|waiting| waiting.id).collect()
    }
    pub(super) fn can_evict(&self, _: u32, _: u64, _: u32) -> bool {
        false
    }
    pub(super) fn evict(&mut self, _: u32) -> Option<PacketId> {
        None
    }
    pub(super) fn is_fifo(&self) -> bool {
        true
    }
}
