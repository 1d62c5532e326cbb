//! The switch itself: which frame goes to which port.
//!
//! It learns addresses as a bridge does, sends what is for a known address there, and the rest to
//! everybody but the sender. A frame is read into a buffer and written from it; where the port that
//! it is for takes super-segments, nothing of it is looked at but its headers.
//!
//! A port takes charge of a frame that is for it (`slot`).
//!
//! Learned addresses and frames for everybody stay in a VLAN (`vlan`).
//!
//! A port's TCP may have an importance shim, which marks its packets (`shimmed`).
//!
//! Probes that come back block the ports of a loop (`loops`).
//!
//! Invariant: a frame leaves as it came, but for its VLAN's tag and the work of a shim, or is
//! dropped for a reason that is counted. It is counted at the port that the frame came from, and
//! once another port had taken charge of it, at that one. It never goes back to where it came from.

use super::importance::HostShim;
use super::table::{Address, Foreign, Place, Table};
use crate::dataplane::buffers::{Buffers, Frame, ROOM};
use crate::dataplane::counters::Drop;
use crate::dataplane::fault::{self, Panic};
use crate::dataplane::frame::{Offload, View, neighbour, parse, pause, too_big};
use crate::dataplane::loops::FRONT;
use crate::dataplane::port::shared::{Fate, Notice, Sender};
use crate::dataplane::port::{Port, Received};
use crate::dataplane::{outgoing::Outgoing, slot::Slot};
use loops::Loops;
use millpond_core::Time;
use std::collections::BTreeSet;
use std::io::IoSlice;

pub mod loops;
mod shimmed;

/// So many packets of a super-segment may be smaller: what a connection with a small MSS sends at
/// once.
const SMALL_PACKETS: usize = 64;
/// Between two answers to packets that are too long (RFC 1812 §4.3.2.8 wants a bound).
const TOO_BIG_PAUSE: Time = Time::from_ms(1);

/// Ports, and which address is behind which.
#[derive(Default)]
pub struct Node {
    /// The ports; an index is a port's for as long as it is configured.
    pub slots: Vec<Slot>,
    /// By port: the importance shim of the TCP behind it. Ports beyond the end have none.
    pub shims: Vec<Option<Box<HostShim>>>,
    pub table: Table,
    /// A frame in one piece, for ports that take none in several.
    pub(super) flat: Vec<u8>,
    /// When the switch last notified somebody that a packet was too long.
    reported: Option<Time>,
    /// By peer: frames with which the switch answers what came from there.
    answers: Vec<(usize, Vec<u8>)>,
    /// Frames that were written because they were for everybody, and fragments.
    flooded: usize,
    pub loops: Loops,
}

impl Node {
    /// Handles what a port has for now, no more than its part of a round ([`Budget`]) and `most`
    /// frames; how many there were.
    ///
    /// [`Budget`]: crate::dataplane::budget::Budget
    pub fn receive(&mut self, round: &mut Round<'_>, port: usize, most: usize) -> usize {
        self.slots[port].entrance.begin();
        for count in 0..most {
            if !self.slots[port].entrance.allows() {
                return count;
            }
            let Some(buffer) = round.buffers.take() else {
                self.slots[port].counters.drop(Drop::NoBuffer);
                return count;
            };
            let room = &mut round.buffers.bytes_mut(buffer)[ROOM..];
            let received = fault::caught(|| {
                let slot = &mut self.slots[port];
                let received = slot.port.as_mut().map(|port| port.receive(room));
                #[cfg(test)]
                if let Some(Received::Frame { start, length, .. }) = received {
                    fault::inject(&room[start..start + length], fault::AT_READER);
                }
                received.unwrap_or(Received::Nothing)
            });
            let received = received.unwrap_or_else(|panic| {
                self.fail(port, panic);
                Received::Nothing
            });
            let more = match received {
                Received::Frame { start, length, offload } => {
                    let frame = Frame { buffer, start: ROOM + start, length, offload };
                    let flooded = self.flooded;
                    let more = self.handle(round, port, frame);
                    let (packets, places) = (offload.packets(length), self.flooded - flooded);
                    self.slots[port].entrance.charge(length, packets, places);
                    more
                }
                Received::Refused(refusal) => {
                    self.slots[port].counters.drop(refusal.reason());
                    true
                }
                Received::Nothing => false,
                Received::Gone => {
                    self.lose(port);
                    false
                }
            };
            round.buffers.release(buffer);
            if !more {
                return count;
            }
        }
        most
    }

    /// Handles a frame that was read. Whether there may be more behind it.
    #[inline]
    fn handle(&mut self, round: &mut Round<'_>, port: usize, frame: Frame) -> bool {
        // A tag may be put in where these are, and who looks on sees what has come.
        let front = self.slots[port].mirror.as_ref().map(|_| frame.front(round.buffers));
        let origin = match &self.slots[port].port {
            Some(Port::Shared(shared)) => shared.origin(),
            _ => None,
        };
        let sender = origin.as_ref().map_or(Sender::Port(port as u16), Sender::Application);
        let fate = fault::caught(|| self.forward(round, port, frame, sender));
        let fate = fate.unwrap_or_else(|panic| {
            round.buffers.disown(frame.buffer);
            let work = format!("port {}", self.slots[port].name);
            Err(panic.keep(work, frame.bytes(round.buffers)))
        });
        let slot = &mut self.slots[port];
        if origin.is_some()
            && let Some(shared) = slot.shared()
        {
            shared.conclude(fate.unwrap_or(Fate::Left));
        }
        if fate == Ok(Fate::Held) {
            // It stays where it was, and another flow's may be behind it.
            return true;
        }
        slot.counters.receive(frame.length);
        if let Some((front, length)) = front {
            let rest = &frame.bytes(round.buffers)[length..];
            slot.show(true, &[IoSlice::new(&front[..length]), IoSlice::new(rest)]);
        }
        if let Err(reason) = fate {
            slot.counters.drop(reason);
        }
        true
    }

    /// The work for a port has failed: whoever is attached to it, since its memory may make the
    /// work fail again, loses it.
    #[cold]
    pub(super) fn fail(&mut self, port: usize, panic: Panic) {
        let slot = &mut self.slots[port];
        slot.counters.drop(panic.keep(format!("port {}", slot.name), &[]));
        slot.detach();
    }

    /// A port's interface is gone: nobody is behind it.
    pub fn lose(&mut self, port: usize) {
        self.slots[port].lose();
        self.table.forget(Place::Port(port));
    }

    /// How many frames were written because they were for everybody, and fragments, since this was
    /// asked last.
    pub fn take_flooded(&mut self) -> usize {
        std::mem::take(&mut self.flooded)
    }

    /// Writes what waits and is due.
    #[inline]
    pub fn drain(&mut self, now: Time) {
        for slot in self.slots.iter_mut().filter(|slot| slot.due().is_some_and(|due| due <= now)) {
            slot.drain(now, &mut self.flat);
        }
    }
    /// Adds the ports from which a flow should pause.
    pub fn slowed(&mut self, into: &mut BTreeSet<u16>) {
        self.slots
            .iter_mut()
            .filter_map(Slot::shared)
            .for_each(|shared| into.extend(shared.slowed()));
    }
    /// Whether a port has so much waiting that nothing is to be taken from anywhere.
    pub fn is_stopped(&self) -> bool {
        let shared = self.slots.iter().filter_map(|slot| slot.port.as_ref());
        shared.into_iter().any(|port| matches!(port, Port::Shared(shared) if shared.is_stopped()))
    }
    /// Signals for other switches about the frames that they send here.
    pub fn take_notices(&mut self, into: &mut Vec<Notice>) {
        self.slots.iter_mut().filter_map(Slot::shared).for_each(|shared| shared.take_notices(into));
    }
    /// When [`Node::drain`] or [`Node::serve_shims`] is due; `None`: nothing waits.
    pub fn deadline(&self) -> Option<Time> {
        self.slots.iter().filter_map(|slot| slot.due()).chain(self.shims_due()).min()
    }

    pub(crate) fn forward(
        &mut self,
        round: &mut Round<'_>,
        from: usize,
        mut frame: Frame,
        sender: Sender<'_>,
    ) -> Result<Fate, Drop> {
        let (now, bytes) = (round.now, frame.bytes(round.buffers));
        #[cfg(test)]
        fault::inject(bytes, fault::INJECTED);
        let view = parse(bytes).ok_or(Drop::Runt)?;
        let slot = &mut self.slots[from];
        if view.destination == pause::GROUP {
            return slot.obey(now, bytes, &mut self.flat).map(|()| Fate::Left);
        }
        let view = slot.vlans.admit(view, &mut frame, round.buffers)?;
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        if frame.offload.gso_size < slot.gso_least
            && frame.offload.packets(frame.length) > SMALL_PACKETS
        {
            return Err(Drop::SmallGso);
        }
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        // Its tag is the switch's now.
        let bytes = frame.bytes(round.buffers);
        let place = Place::Port(from);
        if self.is_own_probe(bytes, &view, place) || self.slots[from].watch.is_blocked() {
            return Err(Drop::Loop);
        }
        self.learn(now, &view, place, || neighbour::announces(bytes, &view))?;
        if self.slots[from].guard.as_ref().is_some_and(|guard| !guard.permits(bytes, &view)) {
            return Err(Drop::SourceGuard);
        }
        if view.destination.is_link_local() {
            return Err(Drop::LinkLocal);
        }
        if self.is_shimmed(from, &view) {
            self.forward_marked(round, from, &frame, &view);
            return Ok(Fate::Left);
        }
        self.route(round, from, frame, view, sender)
    }

    /// Learns where a frame's source is.
    #[inline]
    fn learn(
        &mut self,
        now: Time,
        view: &View,
        place: Place,
        announces: impl FnOnce() -> bool,
    ) -> Result<(), Drop> {
        let source = Address::source(view);
        match self.table.learn(now, source, place) {
            Err(Foreign) if announces() => self.table.follow(now, source, place),
            learned => learned,
        }
        .map_err(|Foreign| Drop::ForeignSource)
    }

    /// The place of a frame's destination; `None`: it is not known, or for all.
    #[inline]
    fn place_of(&self, view: &View) -> Option<Place> {
        if view.destination.is_group() {
            return None;
        }
        self.table.find(Address::destination(view))
    }

    /// Sends a frame of a port to where its destination is.
    fn route(
        &mut self,
        round: &mut Round<'_>,
        from: usize,
        frame: Frame,
        view: View,
        sender: Sender<'_>,
    ) -> Result<Fate, Drop> {
        let now = round.now;
        let Some(place) = self.place_of(&view) else {
            return self.flood(round, from, &frame, &view).map(|()| Fate::Left);
        };
        let sent = match place {
            Place::Port(port) if port == from => Err(Drop::SamePort),
            Place::Port(port) => {
                let pieces = [IoSlice::new(frame.bytes(round.buffers))];
                let outgoing = Outgoing { sender, ..Outgoing::of(view, frame.offload, &pieces) };
                self.deliver(now, port, &outgoing)
            }
            Place::Peer(peer) => {
                let to = Some((peer, sender));
                round.remote.transmit(now, round.buffers, &frame, &view, to)
            }
        };
        match (sent, place) {
            (Err(Drop::PortGone), Place::Port(port)) => self.lose(port),
            (Err(Drop::Oversized), place) => {
                let most = match place {
                    Place::Port(port) => Some(self.slots[port].mtu + view.ethernet),
                    Place::Peer(peer) => round.remote.frame_max(peer),
                };
                self.send_too_big(now, from, frame.bytes(round.buffers), &view, most);
            }
            _ => {}
        }
        sent
    }

    /// Reports the longest permitted frame to the sender of a frame to a neighbour, as a router
    /// would.
    #[cold]
    fn send_too_big(
        &mut self,
        now: Time,
        from: usize,
        frame: &[u8],
        view: &View,
        most: Option<usize>,
    ) {
        let Some(answer) = most.and_then(|most| self.too_big(now, frame, view, most)) else {
            return;
        };
        let Some(view) = parse(&answer) else { return };
        let pieces = [IoSlice::new(&answer)];
        let answer = Outgoing::of(view, Offload::default(), &pieces);
        let slot = &mut self.slots[from];
        if let Err(reason) = slot.deliver(now, &answer, &mut self.flat) {
            slot.counters.drop(reason);
        }
    }

    /// The same to whoever sent a frame that another worker took.
    #[cold]
    pub fn answer_too_big(&mut self, now: Time, frame: &[u8], view: &View, most: Option<usize>) {
        if let Some(Place::Port(from)) = self.table.find(Address::source(view)) {
            self.send_too_big(now, from, frame, view, most);
        }
    }

    /// The notice to its sender, unless one has just left. Of the frame, its beginning is enough.
    fn too_big(&mut self, now: Time, frame: &[u8], view: &View, most: usize) -> Option<Vec<u8>> {
        if self.reported.is_some_and(|at| now.saturating_sub(at) < TOO_BIG_PAUSE) {
            return None;
        }
        let answer = too_big::answer(frame, view, most.saturating_sub(view.ethernet))?;
        self.reported = Some(now);
        Some(answer)
    }

    /// The same to one behind a peer.
    #[cold]
    fn send_too_big_to_peer(&mut self, now: Time, peer: usize, frame: &Outgoing<'_>, most: usize) {
        let front = frame.front(frame.view.ethernet + too_big::QUOTED);
        if let Some(answer) = self.too_big(now, &front, &frame.view, most) {
            self.answers.push((peer, answer));
        }
    }

    /// The switch's answers to frames from peers, by peer.
    pub fn take_answers(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.answers)
    }

    /// To all ports of its VLAN but the sender's, and to all peers.
    fn flood(
        &mut self,
        round: &mut Round<'_>,
        from: usize,
        frame: &Frame,
        view: &View,
    ) -> Result<(), Drop> {
        let pieces = [IoSlice::new(frame.bytes(round.buffers))];
        let outgoing = Outgoing::of(*view, frame.offload, &pieces);
        let (mut reached, mut failed) = self.flood_ports(round.now, Some(from), &outgoing);
        match round.remote.transmit(round.now, round.buffers, frame, view, None) {
            Ok(_) => reached = true,
            Err(Drop::Nowhere) => {}
            Err(reason) => failed = Some(reason),
        }
        match (reached, failed) {
            (true, _) => Ok(()),
            (false, reason) => Err(reason.unwrap_or(Drop::Nowhere)),
        }
    }

    /// To all ports of its VLAN but the one that it came from. Whether one took it, and the last
    /// reason of one that did not.
    fn flood_ports(
        &mut self,
        now: Time,
        from: Option<usize>,
        frame: &Outgoing<'_>,
    ) -> (bool, Option<Drop>) {
        let (mut reached, mut failed) = (false, None);
        self.loops.groups += usize::from(frame.view.destination.is_group());
        for port in 0..self.slots.len() {
            let slot = &self.slots[port];
            // A peer's frame for a port that is gone is lost there.
            let is_gone = from.is_some() && slot.port.is_none();
            if from == Some(port) || is_gone || !slot.takes(frame.view.vlan) {
                continue;
            }
            self.flooded += usize::from(from.is_some());
            match self.deliver(now, port, frame) {
                Ok(_) => reached = true,
                Err(reason) => failed = Some(reason),
            }
        }
        (reached, failed)
    }

    /// Delivers a frame that came from a peer, to no other peer: its sender has reached them
    /// itself.
    ///
    /// # Errors
    /// The reason to drop the frame: its source or destination is none that the peer may use, it is
    /// for another peer, or no port takes it.
    pub fn from_peer(&mut self, now: Time, peer: usize, frame: &Outgoing<'_>) -> Result<(), Drop> {
        let sent = fault::caught(|| self.forward_from_peer(now, peer, frame));
        sent.unwrap_or_else(|panic| {
            let bytes: Vec<u8> = frame.pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            Err(panic.keep(format!("peer {peer}"), &bytes))
        })
    }

    pub(crate) fn forward_from_peer(
        &mut self,
        now: Time,
        peer: usize,
        frame: &Outgoing<'_>,
    ) -> Result<(), Drop> {
        let view = &frame.view;
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        // A link's own, which no switch carries on.
        if view.destination == pause::GROUP {
            return Err(Drop::BadControl);
        }
        let place = Place::Peer(peer);
        if view.destination.is_group() && self.is_own_probe(&frame.front(FRONT), view, place) {
            return Err(Drop::Loop);
        }
        self.learn(now, view, place, || {
            neighbour::announces(&frame.front(neighbour::FRONT), view)
        })?;
        if view.destination.is_link_local() {
            return Err(Drop::LinkLocal);
        }
        match self.place_of(view) {
            Some(Place::Port(port)) => {
                let sent = self.deliver(now, port, frame);
                if sent == Err(Drop::Oversized) {
                    let most = self.slots[port].mtu + view.ethernet;
                    self.send_too_big_to_peer(now, peer, frame, most);
                }
                sent.map(|_| ())
            }
            // It is behind a peer, and the sender should have known: split horizon.
            Some(Place::Peer(_)) => Err(Drop::SamePort),
            None => {
                let (reached, failed) = self.flood_ports(now, None, frame);
                if reached { Ok(()) } else { Err(failed.unwrap_or(Drop::Nowhere)) }
            }
        }
    }
}

/// A turn of the poll loop, as the node has it.
pub struct Round<'a> {
    pub now: Time,
    pub buffers: &'a mut Buffers,
    /// It is handed what is for peers.
    pub remote: &'a mut dyn Remote,
}

impl<'a> Round<'a> {
    pub fn new(now: Time, buffers: &'a mut Buffers, remote: &'a mut dyn Remote) -> Round<'a> {
        Round { now, buffers, remote }
    }
}

pub trait Remote {
    /// Takes a frame for one peer, or for all. Packets that wait keep a reference to the buffer.
    /// Only a frame of an application for one peer can be held.
    ///
    /// # Errors
    /// The reason to drop the frame.
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop>;
    /// The longest frame that a peer can be sent; `None`: nothing is known to be too long.
    fn frame_max(&self, _: usize) -> Option<usize> {
        None
    }
}

pub struct Alone;

impl Remote for Alone {
    fn transmit(
        &mut self,
        _: Time,
        _: &mut Buffers,
        _: &Frame,
        _: &View,
        _: Option<(usize, Sender<'_>)>,
    ) -> Result<Fate, Drop> {
        Err(Drop::Nowhere)
    }
}

#[cfg(test)]
mod tests;
