//! PicNIC's queue before a ring (Kumar and others, SIGCOMM 2019): bounded, and it measures waits.

use super::application::ApplicationCore;
use crate::packet::{Packet, PacketId};
use crate::units::Time;
use std::collections::VecDeque;

/// A queue that measures how long packets wait in it.
pub(super) struct Measured {
    /// With the time of its coming, and its bytes.
    pub(super) waiting: VecDeque<(PacketId, Time, u16)>,
    size: usize,
    /// Since it was last asked: bytes that left, and the longest that one has waited.
    pub(super) left: u64,
    pub(super) longest: Time,
}

impl Measured {
    pub(super) fn new(size: u32) -> Measured {
        Measured { waiting: VecDeque::new(), size: size as usize, left: 0, longest: Time::ZERO }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether there was room for it.
    pub(super) fn push(&mut self, now: Time, id: PacketId, packet: &Packet) -> bool {
        let has_room = self.waiting.len() < self.size;
        if has_room {
            self.waiting.push_back((id, now, packet.size));
        }
        has_room
    }

    /// Moves packets to the ring while it has room.
    pub(super) fn fill(&mut self, now: Time, core: &mut ApplicationCore) {
        while core.room() > 0
            && let Some((id, came, bytes)) = self.waiting.pop_front()
        {
            core.push(id);
            self.left += u64::from(bytes);
            self.longest = self.longest.max(now.saturating_sub(came));
        }
    }
}
