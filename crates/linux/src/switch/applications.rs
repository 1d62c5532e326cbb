//! What the switch does for applications, whose ports are memory that both share.
//!
//! Their rounds come after the other ports': what was done for them is shown once a round.
//!
//! Invariant: a frame that waits for an application is counted as sent when it has it, or as lost
//! when the application goes first.

use super::buffers::Buffers;
use super::counters::Drop;
use super::node::{Node, Remote};
use super::slot::{Outgoing, Slot, whole};
use crate::frame::Offload;
use crate::port::shared::Fate;
use crate::port::{Port, Shared};
use millpond_core::Time;
use std::io::IoSlice;

/// Frames of an application that are handled before others have their turn: they are short, and cost
/// no system call.
const BURST: usize = 64;

impl Slot {
    /// Hands a frame to the application, or makes it wait for it.
    pub(super) fn hand(&mut self, now: Time, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<Fate, Drop> {
        self.fits(frame)?;
        let Some(Port::Shared(shared)) = &mut self.port else { return Err(Drop::PortGone) };
        let counters = &mut self.counters;
        let mut hand = |pieces: &[IoSlice<'_>]| {
            let fate = shared.send(now, &frame.view, frame.sender, pieces).map_err(|refused| refused.reason())?;
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

    /// What is to be done for an application before its frames are read. Whether there was something.
    fn tend(&mut self, now: Time) -> bool {
        let Some(Port::Shared(shared)) = &mut self.port else { return false };
        let counters = &mut self.counters;
        let worked = shared.tend(now, |length| {
            counters.sent += 1;
            counters.sent_bytes += length as u64;
        });
        (0..shared.take_lost()).for_each(|_| counters.drop(Drop::LossAppExit));
        worked
    }

    /// The application that the port is, if it is one.
    pub fn shared(&mut self) -> Option<&mut Shared> {
        self.port.as_mut().and_then(Port::shared)
    }

    /// Its application or guest, if it has one, is to go.
    pub fn detach(&mut self) {
        if let Some(guest) = self.vhost() {
            guest.detach();
            self.lose_guest();
        }
        if let Some(shared) = self.shared() {
            shared.detach();
            let lost = shared.take_lost();
            (0..lost).for_each(|_| self.counters.drop(Drop::LossAppExit));
        }
    }
}

impl Node {
    /// Does what an application's port is due, and handles what it has for now. Whether there was
    /// something.
    pub fn serve_shared(
        &mut self,
        now: Time,
        port: usize,
        has_events: bool,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> bool {
        if has_events && let Some(shared) = self.slots[port].shared() {
            shared.attend();
        }
        let is_stopped = self.is_stopped();
        if is_stopped && let Some(shared) = self.slots[port].shared() {
            shared.take_back();
        }
        let worked = self.slots[port].tend(now);
        if is_stopped {
            return worked;
        }
        self.receive(now, port, BURST, buffers, remote) > 0 || worked
    }
    /// Shows applications what was done for them in a round.
    pub fn flush_shared(&mut self, ports: &[usize]) {
        for port in ports {
            if let Some(shared) = self.slots.get_mut(*port).and_then(Slot::shared) {
                shared.flush();
            }
        }
    }
    /// Whether no application and no guest has anything, and each will wake the switch.
    pub fn may_sleep(&mut self) -> bool {
        self.slots.iter_mut().filter_map(Slot::shared).all(|shared| shared.may_sleep()) && self.guests_may_sleep()
    }
    /// The switch is awake.
    pub fn awake(&mut self) {
        self.slots.iter_mut().filter_map(Slot::shared).for_each(|shared| shared.awake());
        self.wake_guests();
    }
}
