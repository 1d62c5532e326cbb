//! What the switch does for virtual machines, whose memory it reads and writes.
//!
//! Their rounds come after the other ports', as those of applications do: a guest is looked at in
//! every round while the switch is awake, and asked to kick before it sleeps.
//!
//! Invariant: a frame that waits for a guest is counted as sent when it has it, or as lost when the
//! guest goes first.

use super::buffers::Buffers;
use super::counters::Drop;
use super::node::{Node, Remote};
use super::slot::{Outgoing, Slot, whole};
use crate::frame::parse;
use crate::port::shared::Fate;
use crate::port::vhost::Reading;
use crate::port::{Port, Vhost};
use millpond_core::Time;
use std::io::IoSlice;

/// When a frame is tried again though the guest has not kicked.
pub(super) const PATIENCE: Time = Time::from_ms(10);
/// Frames of a guest that are handled before others have their turn.
const BURST: usize = 32;

impl Slot {
    /// Hands over a frame that the guest does not take as it is: each of its packets is one of its
    /// own from here on, so that none waits twice.
    #[cold]
    pub(super) fn put_whole(&mut self, now: Time, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<Fate, Drop> {
        self.fits(frame)?;
        let (mut packet, mut scratch) = (Vec::new(), Vec::new());
        whole(frame, flat, |offload, pieces| {
            packet.clear();
            pieces.iter().for_each(|piece| packet.extend_from_slice(piece));
            let view = parse(&packet).ok_or(Drop::BadOffload)?;
            let (pieces, length) = ([IoSlice::new(&packet)], packet.len());
            let one = Outgoing { view, offload: *offload, pieces: &pieces, length, sender: frame.sender };
            self.put_one(now, &one, &mut scratch).map(|_| ())
        })?;
        Ok(Fate::Left)
    }

    /// The virtual machine that the port is, if it is one.
    pub fn vhost(&mut self) -> Option<&mut Vhost> {
        self.port.as_mut().and_then(Port::vhost)
    }

    /// What is to be shown of the guest.
    pub fn guest(&self) -> Option<Reading> {
        let Some(Port::Vhost(guest)) = &self.port else { return None };
        let (waiting_frames, waiting_bytes) = self.queue.waiting();
        Some(Reading { waiting_frames, waiting_bytes, ..guest.reading() })
    }

    /// What waited for a guest that has gone is lost.
    pub(super) fn lose_guest(&mut self) {
        (0..self.queue.clear()).for_each(|_| self.counters.drop(Drop::LossGuestExit));
    }

    /// Looks after what has happened at a guest's descriptors.
    fn attend(&mut self, now: Time, flat: &mut Vec<u8>) {
        let Some(guest) = self.vhost() else { return };
        let attended = guest.attend();
        if attended.has_ended {
            self.lose_guest();
        } else if attended.may_write && !self.queue.is_empty() {
            self.queue.retry();
            self.drain(now, flat);
        }
    }
}

impl Node {
    /// Does what a guest's port is due, and handles what it has for now. Whether there was something.
    pub fn serve_guest(
        &mut self,
        now: Time,
        port: usize,
        has_events: bool,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> bool {
        if has_events {
            self.attend(now, port);
        }
        !self.is_stopped() && self.receive(now, port, BURST, buffers, remote) > 0
    }
    fn attend(&mut self, now: Time, port: usize) {
        let Node { slots, flat, .. } = self;
        slots[port].attend(now, flat);
    }
    /// Signals guests what was done for them in a round.
    pub fn flush_guests(&mut self, ports: &[usize]) {
        for port in ports {
            if let Some(guest) = self.slots.get_mut(*port).and_then(Slot::vhost) {
                guest.flush();
            }
        }
    }
    /// Whether no guest has anything, and each will wake the switch.
    pub(super) fn guests_may_sleep(&mut self) -> bool {
        self.slots.iter_mut().filter_map(Slot::vhost).all(|guest| guest.may_sleep())
    }
    /// The switch is awake.
    pub(super) fn wake_guests(&mut self) {
        self.slots.iter_mut().filter_map(Slot::vhost).for_each(|guest| guest.awake());
    }
}
