//! The switch's work for virtual machines, whose memory it reads and writes; `attached` has their
//! rounds.
//!
//! Invariant: a frame that waits for a guest is counted as sent when it has it, or as lost when the
//! guest goes first.

use super::Slot;
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::parse;
use crate::dataplane::outgoing::{Outgoing, whole};
use crate::dataplane::port::Port;
use crate::dataplane::port::shared::Fate;
use crate::dataplane::port::vhost::Reading;
use millpond_core::Time;
use std::io::IoSlice;

/// When a frame is tried again though the guest has not kicked.
pub(super) const PATIENCE: Time = Time::from_ms(10);

impl Slot {
    /// Hands over a frame that the guest does not take as it is: each of its packets is one of its
    /// own from here on, so that none waits twice.
    #[cold]
    pub(super) fn put_whole(
        &mut self,
        now: Time,
        frame: &Outgoing<'_>,
        flat: &mut Vec<u8>,
    ) -> Result<Fate, Drop> {
        self.fits(frame)?;
        let (mut packet, mut scratch) = (Vec::new(), Vec::new());
        whole(frame, flat, |offload, pieces| {
            packet.clear();
            pieces.iter().for_each(|piece| packet.extend_from_slice(piece));
            let view = parse(&packet).ok_or(Drop::BadOffload)?;
            let pieces = [IoSlice::new(&packet)];
            let one = Outgoing { sender: frame.sender, ..Outgoing::of(view, *offload, &pieces) };
            self.put_one(now, &one, &mut scratch).map(|_| ())
        })?;
        Ok(Fate::Left)
    }

    /// The reading of the guest that is shown.
    pub fn guest(&self) -> Option<Reading> {
        let Some(Port::Vhost(guest)) = &self.port else { return None };
        let (waiting_frames, waiting_bytes) = self.queue.waiting();
        Some(Reading { waiting_frames, waiting_bytes, ..guest.reading() })
    }

    /// Frames that waited for a guest that has gone are lost.
    fn lose_guest(&mut self) {
        (0..self.queue.clear()).for_each(|_| self.counters.drop(Drop::LossGuestExit));
    }

    pub(super) fn detach_guest(&mut self) {
        if let Some(Port::Vhost(guest)) = &mut self.port {
            guest.detach();
        }
        self.lose_guest();
    }

    /// Looks after what has happened at a guest's descriptors. Whether frames that waited may go
    /// on.
    pub(super) fn attend_guest(&mut self, now: Time, flat: &mut Vec<u8>) -> bool {
        let Some(Port::Vhost(guest)) = &mut self.port else { return false };
        let attended = guest.attend();
        if attended.has_ended {
            self.lose_guest();
        }
        let goes_on = attended.may_write && !self.queue.is_empty();
        if goes_on {
            self.queue.retry();
            self.drain(now, flat);
        }
        goes_on
    }
}
