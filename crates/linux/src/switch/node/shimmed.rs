//! Ports whose TCP has an importance shim: single packets out, frames that the shim sends, frames
//! for the host.
//!
//! Invariant: a frame passes the shim between the switch's checks and its forwarding, with the tag
//! that it has in the switch. Each packet that goes no further is counted at its port.

use super::{Node, Round};
use crate::dataplane::buffers::{FRAME_MAX, Frame, ROOM};
use crate::dataplane::counters::Drop;
use crate::dataplane::fault;
use crate::dataplane::frame::{Offload, View, parse};
use crate::dataplane::outgoing::Outgoing;
use crate::dataplane::port::shared::{Fate, Sender};
use crate::switch::importance::HostShim;
use millpond_core::Time;
use std::io::IoSlice;

impl Node {
    fn shim(&mut self, port: usize) -> Option<&mut HostShim> {
        self.shims.get_mut(port)?.as_deref_mut()
    }

    /// Whether a frame from a port passes a shim.
    #[inline]
    pub(super) fn is_shimmed(&self, port: usize, view: &View) -> bool {
        self.shims.get(port).is_some_and(Option::is_some) && view.tcp().is_some()
    }

    /// Cuts a frame of a shimmed port into packets, marks them, and forwards each. Drops are
    /// counted here, packet by packet.
    pub(super) fn forward_marked(
        &mut self,
        round: &mut Round<'_>,
        from: usize,
        frame: &Frame,
        view: &View,
    ) {
        let Some(shim) = self.shim(from) else { return };
        let mut parts = shim.outgoing(round.now, frame, view, round.buffers);
        let is_one = parts.len() == 1;
        for mut held in parts.drain(..) {
            let (header, length) = (held.bytes.header, held.bytes.length());
            // The only packet of a frame can stay where it is: the mark is in its header.
            let place = if is_one { Some((frame.buffer, frame.start)) } else { None };
            let Some((buffer, start)) = place.or_else(|| Some((round.buffers.take()?, ROOM)))
            else {
                held.bytes.end(round.buffers);
                self.slots[from].counters.drop(Drop::NoBuffer);
                continue;
            };
            let front = header.bytes().len();
            if !is_one {
                self.flat.clear();
                self.flat.extend_from_slice(held.bytes.payload(round.buffers));
                let room = &mut round.buffers.bytes_mut(buffer)[start + front..start + length];
                room.copy_from_slice(&self.flat);
            }
            let bytes = round.buffers.bytes_mut(buffer);
            bytes[start..start + front].copy_from_slice(header.bytes());
            held.bytes.end(round.buffers);
            let packet = Frame { buffer, start, length, offload: held.offload };
            self.route_own(round, from, packet, held.view);
            if !is_one {
                round.buffers.release(buffer);
            }
        }
        if let Some(shim) = self.shim(from) {
            shim.recycle(parts);
        }
    }

    /// Forwards a packet of a shimmed port, and counts it there if it goes no further.
    fn route_own(&mut self, round: &mut Round<'_>, from: usize, frame: Frame, view: View) {
        let sender = Sender::Port(from as u16);
        if let Err(reason) = self.route(round, from, frame, view, sender) {
            self.slots[from].counters.drop(reason);
        }
    }

    /// Sends the frames that shims have due, and forgets idle flows. Call it after ports were read:
    /// a host that has answered needs no forced packet.
    pub fn serve_shims(&mut self, round: &mut Round<'_>) {
        for port in 0..self.shims.len() {
            let served = fault::caught(|| self.serve_shim(round, port));
            if let Err(panic) = served {
                self.fail(port, panic);
                self.shims[port] = Some(Box::default());
            }
        }
    }

    fn serve_shim(&mut self, round: &mut Round<'_>, port: usize) {
        let Some(shim) = self.shim(port) else { return };
        shim.evict(round.now);
        for bytes in shim.due(round.now) {
            let Some(view) = parse(&bytes) else { continue };
            // A template with options and the longest payload are more than a frame.
            let reason = if bytes.len() > FRAME_MAX { Drop::Oversized } else { Drop::NoBuffer };
            let Some(frame) = Frame::copy(&bytes, Offload::default(), round.buffers) else {
                self.slots[port].counters.drop(reason);
                continue;
            };
            let routed = fault::caught(|| self.route_own(round, port, frame, view));
            if let Err(panic) = routed {
                let work = format!("shim of port {}", self.slots[port].name);
                self.slots[port].counters.drop(panic.keep(work, &bytes));
                round.buffers.disown(frame.buffer);
            }
            round.buffers.release(frame.buffer);
        }
    }

    /// When [`Node::serve_shims`] has a frame to send.
    pub(super) fn shims_due(&self) -> Option<Time> {
        self.shims.iter().flatten().filter_map(|shim| shim.deadline()).min()
    }

    /// Hands a frame to a port, through its shim if it has one. The port gets a packet that is too
    /// long for it in fragments, if the packet may be cut.
    ///
    /// # Errors
    /// The reason to drop the frame.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        now: Time,
        port: usize,
        frame: &Outgoing<'_>,
    ) -> Result<Fate, Drop> {
        match self.deliver_whole(now, port, frame) {
            Err(Drop::Oversized) => self.deliver_cut(now, port, frame),
            done => done,
        }
    }

    /// Delivers a frame that was too long for the port: as it is if the interface's MTU has grown,
    /// else in fragments.
    #[cold]
    fn deliver_cut(&mut self, now: Time, port: usize, frame: &Outgoing<'_>) -> Result<Fate, Drop> {
        let before = self.slots[port].mtu;
        self.slots[port].renew_mtu();
        let mtu = self.slots[port].mtu;
        if mtu > before {
            match self.deliver_whole(now, port, frame) {
                Err(Drop::Oversized) => {}
                done => return done,
            }
        }
        let packets = frame.fragments(mtu)?;
        self.flooded += packets.len();
        for packet in packets {
            let view = parse(&packet).ok_or(Drop::Runt)?;
            let pieces = [IoSlice::new(&packet)];
            let packet = Outgoing::of(view, Offload::default(), &pieces);
            self.slots[port].deliver(now, &packet, &mut self.flat)?;
        }
        Ok(Fate::Left)
    }

    #[inline]
    fn deliver_whole(
        &mut self,
        now: Time,
        port: usize,
        frame: &Outgoing<'_>,
    ) -> Result<Fate, Drop> {
        let Node { slots, shims, flat, .. } = self;
        let slot = &mut slots[port];
        match shims.get_mut(port).and_then(Option::as_deref_mut) {
            Some(shim) if slot.port.is_some() && slot.vlans.carries(frame.view.vlan) => {
                shim.incoming(now, frame, |frame| slot.deliver(now, frame, flat))
            }
            _ => slot.deliver(now, frame, flat),
        }
    }
}
