//! The switch's work for applications, whose ports are memory that both share; `attached` has their
//! rounds.
//!
//! Invariant: a frame that waits for an application is counted as sent when it has it, or as lost
//! when the application goes first.

use super::Slot;
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::Offload;
use crate::dataplane::outgoing::{Outgoing, whole};
use crate::dataplane::port::shared::Fate;
use crate::dataplane::port::{Port, Shared};
use millpond_core::Time;
use std::io::IoSlice;

impl Slot {
    /// Hands a frame to the application, or makes it wait for it.
    pub(super) fn hand(
        &mut self,
        now: Time,
        frame: &Outgoing<'_>,
        flat: &mut Vec<u8>,
    ) -> Result<Fate, Drop> {
        self.fits(frame)?;
        let Some(Port::Shared(shared)) = &mut self.port else { return Err(Drop::PortGone) };
        let counters = &mut self.counters;
        let mut hand = |pieces: &[IoSlice<'_>]| {
            let fate = shared
                .send(now, &frame.view, frame.sender, pieces)
                .map_err(|refused| refused.reason())?;
            if fate == Fate::Left {
                counters.sent += 1;
                counters.sent_bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            }
            Ok(fate)
        };
        if frame.offload == Offload::default() {
            return hand(frame.pieces);
        }
        whole(frame, flat, |_, pieces| hand(pieces).map(|_| ())).map(|()| Fate::Left)
    }

    /// Does what an application needs before its frames are read. Whether there was something.
    pub(super) fn attend_application(
        &mut self,
        now: Time,
        has_events: bool,
        is_stopped: bool,
    ) -> bool {
        let Some(Port::Shared(shared)) = &mut self.port else { return false };
        if has_events {
            shared.attend();
        }
        if is_stopped {
            shared.take_back();
        }
        let counters = &mut self.counters;
        let worked = shared.tend(now, |length| {
            counters.sent += 1;
            counters.sent_bytes += length as u64;
        });
        self.lose_application();
        worked
    }

    /// Frames that waited for an application that has gone are lost.
    fn lose_application(&mut self) {
        let lost = self.shared().map_or(0, Shared::take_lost);
        (0..lost).for_each(|_| self.counters.drop(Drop::LossAppExit));
    }

    pub(super) fn detach_application(&mut self) {
        if let Some(shared) = self.shared() {
            shared.detach();
        }
        self.lose_application();
    }

    /// The application that the port is, if it is one.
    pub fn shared(&mut self) -> Option<&mut Shared> {
        self.port.as_mut().and_then(Port::shared)
    }
}
