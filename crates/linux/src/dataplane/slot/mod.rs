//! A port's place in the switch: its state, the frames that wait for it, and its mirror.
//!
//! Its device takes a frame, or the frame waits (`egress`). The slot writes a frame as it came if
//! the port takes super-segments, else as whole packets.
//!
//! Invariant: each lost frame is counted, also those that wait when the interface goes.

mod applications;
mod guests;

use super::budget::Budget;
use super::buffers::{Buffers, Frame, ROOM};
use super::counters::{Counters, Drop};
use super::egress::{Egress, PATIENCE};
use super::fault;
use super::frame::neighbour::Guard;
use super::frame::parse::ETHERNET;
use super::frame::{HEADER_MAX, pause};
use super::loops::Watch;
use super::metadata;
use super::mirror::Mirror;
use super::outgoing::{Kept, Outgoing, whole};
use super::port::shared::Fate;
use super::port::{Port, Received, Refusal};
use super::vlan::{Vlans, untagged};
use millpond_core::{Packet, Time};
use std::io::IoSlice;

/// The least payload of a super-segment's packets, unless a port's configuration has another. A
/// sender with more header than payload sends no useful data.
pub const GSO_LEAST: u16 = 256;

/// One port and what is known of it.
pub struct Slot {
    pub name: String,
    /// The port; `None`: its interface is gone, or was never there.
    pub port: Option<Port>,
    /// The most bytes that IP may have in a packet to it.
    pub mtu: usize,
    /// The least payload of packets that its super-segments may be cut into, where those are many.
    pub gso_least: u16,
    pub vlans: Vlans,
    /// The addresses that frames from it may claim; `None`: any.
    pub guard: Option<Guard>,
    /// The search for a loop behind it.
    pub watch: Watch,
    pub counters: Counters,
    pub mirror: Option<Mirror>,
    /// The cost that frames from it may cause in this round.
    pub entrance: Budget,
    /// The frames that wait for its device.
    pub(crate) queue: Egress<Kept>,
}

impl Slot {
    /// A port, or the place of one, that has done nothing yet.
    pub fn new(name: impl Into<String>, port: Option<Port>, mtu: usize) -> Slot {
        let (vlans, counters, queue) = (Vlans::default(), Counters::default(), Egress::default());
        Slot {
            name: name.into(),
            port,
            mtu,
            gso_least: GSO_LEAST,
            vlans,
            guard: None,
            watch: Watch::default(),
            counters,
            mirror: None,
            entrance: Budget::default(),
            queue,
        }
    }

    /// Bytes of the Ethernet header that its frames have in the switch. Where a port carries all
    /// VLANs the tags are those of who is behind it, and come on top.
    pub fn ethernet(&self) -> usize {
        ETHERNET + self.vlans.tag()
    }

    /// Takes charge of a frame. Returns whether it left, waits, or stays with its sender; only an
    /// application's frame can be held.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Time,
        frame: &Outgoing<'_>,
        flat: &mut Vec<u8>,
    ) -> Result<Fate, Drop> {
        if !self.vlans.carries(frame.view.vlan) {
            return Err(Drop::ForeignVlan);
        }
        if self.watch.is_blocked() {
            return Err(Drop::Loop);
        }
        match self.vlans {
            Vlans::Access(_) => untagged(frame, |frame| self.put(now, frame, flat)),
            Vlans::All | Vlans::Trunk(_) => self.put(now, frame, flat),
        }
    }

    /// Reads a frame into a buffer, which the caller releases; `None`: there is nothing for now,
    /// and `Some(None)`: a frame cannot be had, and others may be behind it.
    pub fn read(&mut self, buffers: &mut Buffers) -> Option<Option<Frame>> {
        let buffer = buffers.take()?;
        let port = self.port.as_mut();
        let room = &mut buffers.bytes_mut(buffer)[ROOM..];
        let received = port.map_or(Received::Nothing, |port| port.receive(room));
        if let Received::Frame { start, length, offload } = received {
            return Some(Some(Frame { buffer, start: ROOM + start, length, offload }));
        }
        buffers.release(buffer);
        match received {
            Received::Refused(refusal) => self.counters.drop(refusal.reason()),
            Received::Gone => self.port = None,
            _ => {}
        }
        matches!(received, Received::Refused(_)).then_some(None)
    }

    /// Whether frames of a VLAN, or of none, leave there.
    pub fn takes(&self, vlan: Option<u16>) -> bool {
        self.vlans.carries(vlan) && !self.watch.is_blocked()
    }

    /// The same with a frame as it is to be at the port.
    fn put(&mut self, now: Time, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<Fate, Drop> {
        if let Some(Port::Shared(_)) = self.port {
            let handed = self.hand(now, frame, flat);
            if handed.is_ok() {
                self.show(false, frame.pieces);
            }
            return handed;
        }
        if let Some(Port::Vhost(guest)) = &self.port
            && !guest.takes(&frame.offload)
        {
            return self.put_whole(now, frame, flat);
        }
        self.put_one(now, frame, flat)
    }

    /// The same with a frame that the device takes as it is.
    pub(super) fn put_one(
        &mut self,
        now: Time,
        frame: &Outgoing<'_>,
        flat: &mut Vec<u8>,
    ) -> Result<Fate, Drop> {
        if !self.queue.is_idle(now) {
            self.enqueue(now, frame)?;
            self.drain(now, flat);
            return Ok(Fate::Left);
        }
        match self.write(frame, flat) {
            Err(Drop::PortFull) => self.queue.refuse_for(now, Kept::of(frame), self.patience()),
            written => written?,
        }
        Ok(Fate::Left)
    }

    /// Queues a frame behind others. A frame that the queue refuses counts as this port's.
    #[cold]
    fn enqueue(&mut self, now: Time, frame: &Outgoing<'_>) -> Result<(), Drop> {
        if self.port.is_none() {
            return Err(Drop::PortGone);
        }
        self.fits(frame)?;
        let size = u16::try_from(frame.length).unwrap_or(u16::MAX);
        // The first piece may end before IP's header, where a tag was taken out.
        let front = frame.front(HEADER_MAX);
        let class = metadata::class(&front, &frame.view);
        let packet = Packet { size, class, ..Packet::default() };
        if let Err(reason) = self.queue.offer(now, packet, || Kept::of(frame)) {
            self.counters.discard(reason);
        }
        Ok(())
    }

    /// Writes what waits, as far as the device takes it.
    pub fn drain(&mut self, now: Time, flat: &mut Vec<u8>) {
        while let Some(waiting) = self.queue.next(now) {
            let pieces = [IoSlice::new(&waiting.bytes)];
            let outgoing = Outgoing::of(waiting.view, waiting.offload, &pieces);
            let written = fault::caught(|| self.write(&outgoing, flat)).unwrap_or_else(|panic| {
                Err(panic.keep(format!("queue of port {}", self.name), &waiting.bytes))
            });
            match written {
                Ok(()) => {}
                Err(Drop::PortFull) => return self.queue.refuse_for(now, waiting, self.patience()),
                Err(Drop::NoGuest) => self.counters.drop(Drop::LossGuestExit),
                Err(reason) => self.counters.drop(reason),
            }
        }
    }

    /// How long its device is left alone after a refusal. A guest signals itself when it has room.
    fn patience(&self) -> Time {
        if let Some(Port::Vhost(_)) = self.port { guests::PATIENCE } else { PATIENCE }
    }

    /// Its interface is gone, and what waited for it.
    pub fn lose(&mut self) {
        self.detach();
        self.port = None;
        (0..self.queue.clear()).for_each(|_| self.counters.drop(Drop::PortGone));
    }

    /// Whether frames can come from it: a port of an application or a guest has one, and others
    /// are open.
    pub fn has_end(&self) -> bool {
        match &self.port {
            Some(Port::Shared(shared)) => shared.reading().pid.is_some(),
            Some(Port::Vhost(guest)) => guest.reading().is_up,
            port => port.is_some(),
        }
    }

    /// When [`Slot::drain`] is due; `None`: nothing waits.
    pub fn due(&self) -> Option<Time> {
        self.queue.due()
    }
    /// Pauses or resumes the queue, as a PAUSE frame of the neighbour asks.
    ///
    /// # Errors
    /// [`Drop::BadControl`] if the frame is no PAUSE frame.
    #[cold]
    pub fn obey(&mut self, now: Time, frame: &[u8], flat: &mut Vec<u8>) -> Result<(), Drop> {
        self.queue.pause(now, &pause::read(frame).ok_or(Drop::BadControl)?);
        self.drain(now, flat);
        Ok(())
    }

    /// Reads the interface's MTU, which somebody else may have changed.
    #[cold]
    pub fn renew_mtu(&mut self) {
        let device = self.port.as_ref().and_then(Port::device);
        self.mtu = device.and_then(|device| device.mtu().ok()).unwrap_or(self.mtu);
    }

    /// Whether its packets are no longer than the port takes.
    pub(super) fn fits(&self, frame: &Outgoing<'_>) -> Result<(), Drop> {
        let packet = frame.offload.longest(&frame.view, frame.length);
        if packet > frame.view.ethernet + self.mtu { Err(Drop::Oversized) } else { Ok(()) }
    }

    /// Shows a frame to who looks on.
    #[inline]
    pub fn show(&mut self, is_incoming: bool, pieces: &[IoSlice<'_>]) {
        self.mirror.take_if(|mirror| !mirror.show(is_incoming, pieces));
    }

    /// Writes a frame to the device.
    ///
    /// # Errors
    /// [`Drop::PortGone`] if the device is gone, [`Drop::Oversized`] if the frame exceeds its MTU,
    /// otherwise the device's reason.
    pub fn write(&mut self, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<(), Drop> {
        self.fits(frame)?;
        #[cfg(test)]
        frame.pieces.iter().for_each(|piece| fault::inject(piece, fault::AT_WRITER));
        let port = self.port.as_mut().ok_or(Drop::PortGone)?;
        if port.takes(&frame.offload, frame.is_lone()) {
            port.send(&frame.offload, frame.pieces).map_err(Refusal::reason)?;
            self.counters.sent_large += u64::from(frame.offload.gso_size > 0);
        } else {
            send_whole(port, frame, flat)?;
        }
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.length as u64;
        self.show(false, frame.pieces);
        Ok(())
    }
}

impl Slot {
    /// Does what is due before frames are read. Whether there was something.
    pub fn attend(
        &mut self,
        now: Time,
        has_events: bool,
        is_stopped: bool,
        flat: &mut Vec<u8>,
    ) -> bool {
        match &self.port {
            Some(Port::Shared(_)) => self.attend_application(now, has_events, is_stopped),
            Some(Port::Vhost(_)) if has_events => self.attend_guest(now, flat),
            _ => false,
        }
    }

    /// Whoever has attached is to go.
    pub fn detach(&mut self) {
        match &self.port {
            Some(Port::Shared(_)) => self.detach_application(),
            Some(Port::Vhost(_)) => self.detach_guest(),
            _ => {}
        }
    }
}

/// Writes the frame as packets, for a port that takes no others.
fn send_whole(port: &mut Port, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<(), Drop> {
    whole(frame, flat, |offload, pieces| port.send(offload, pieces).map_err(Refusal::reason))
}
