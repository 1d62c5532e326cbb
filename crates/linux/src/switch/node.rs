//! The switch itself: which frame goes to which port.
//!
//! It learns addresses as a bridge does, sends what is for a known address there, and the rest to everybody but the sender. A frame is
//! read into a buffer and written from it; where the port that it is for takes super-segments, nothing of it is looked at but its
//! headers.
//!
//! A port takes charge of a frame that is for it: its device takes the frame, or the frame waits in
//! the port's queue (`egress`).
//!
//! Invariant: a frame leaves as it came, or is dropped for a reason that is counted. It is counted at
//! the port that the frame came from, and once another port had taken charge of it, at that one. It
//! never goes back to where it came from.

use super::buffers::{BufferId, Buffers};
use super::counters::{Counters, Drop};
use super::egress::Egress;
use super::table::{Foreign, Place, Table};
use crate::fabric::metadata;
use crate::frame::{Checksums, Header, Offload, Segmenter, View, parse, pause};
use crate::port::shared::{Fate, Origin};
use crate::port::{Port, Received, Refusal};
use millpond_core::{Packet, Time};
use std::io::IoSlice;

/// Frames of one port that are handled before others have their turn. Of super-segments that is half a megabyte, after which their
/// acknowledgements are looked at; 32 was 15 to 25 % slower for one TCP connection.
pub const BURST: usize = 8;

/// One port and what is known of it.
pub struct Slot {
    /// What it is called.
    pub name: String,
    /// The port; `None`: its interface is gone, or was never there.
    pub port: Option<Port>,
    /// The most bytes that IP may have in a packet to it.
    pub mtu: usize,
    /// What it has done.
    pub counters: Counters,
    /// What waits for its device.
    queue: Egress<Waiting>,
}

/// A frame that waits.
struct Waiting {
    view: View,
    offload: Offload,
    bytes: Vec<u8>,
}

/// A frame on its way out.
pub struct Outgoing<'a> {
    /// What it says.
    pub view: View,
    /// What is still to be done to it.
    pub offload: Offload,
    /// Its bytes, [`crate::port::PIECES_MAX`] pieces at most.
    pub pieces: &'a [IoSlice<'a>],
    /// How many bytes that is.
    pub length: usize,
    /// Which flow of an application it is of, if that one alone has it.
    pub origin: Option<&'a Origin>,
}

/// Ports, and which address is behind which.
#[derive(Default)]
pub struct Node {
    /// The ports; an index is a port's for as long as it is configured.
    pub slots: Vec<Slot>,
    /// Who is where.
    pub table: Table,
    /// A frame in one piece, for ports that take none in several.
    flat: Vec<u8>,
}

impl Waiting {
    fn of(frame: &Outgoing<'_>) -> Waiting {
        let bytes = frame.pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        Waiting { view: frame.view, offload: frame.offload, bytes }
    }
}

impl Slot {
    /// A port, or the place of one, that has done nothing yet.
    pub fn new(name: impl Into<String>, port: Option<Port>, mtu: usize) -> Slot {
        Slot { name: name.into(), port, mtu, counters: Counters::default(), queue: Egress::default() }
    }

    /// Takes charge of a frame, or says why not. Only a frame with an origin can be held.
    #[inline]
    pub fn deliver(&mut self, now: Time, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<Fate, Drop> {
        if let Some(Port::Shared(_)) = self.port {
            return self.hand(now, frame, flat);
        }
        if !self.queue.is_idle(now) {
            self.enqueue(now, frame)?;
            self.drain(now, flat);
            return Ok(Fate::Left);
        }
        match self.write(frame, flat) {
            Err(Drop::PortFull) => self.queue.refuse(now, Waiting::of(frame)),
            written => written?,
        }
        Ok(Fate::Left)
    }

    /// Queues a frame behind others. What the queue refuses is this port's.
    #[cold]
    fn enqueue(&mut self, now: Time, frame: &Outgoing<'_>) -> Result<(), Drop> {
        if self.port.is_none() {
            return Err(Drop::PortGone);
        }
        self.fits(frame)?;
        let size = u16::try_from(frame.length).unwrap_or(u16::MAX);
        let class = frame.pieces.first().map_or(Default::default(), |header| metadata::class(header, &frame.view));
        let packet = Packet { size, class, ..Packet::default() };
        if let Err(reason) = self.queue.offer(now, packet, || Waiting::of(frame)) {
            self.counters.discard(reason);
        }
        Ok(())
    }

    /// Writes what waits, as far as the device takes it.
    fn drain(&mut self, now: Time, flat: &mut Vec<u8>) {
        while let Some(waiting) = self.queue.next(now) {
            let pieces = [IoSlice::new(&waiting.bytes)];
            let (view, offload, length) = (waiting.view, waiting.offload, waiting.bytes.len());
            match self.write(&Outgoing { view, offload, pieces: &pieces, length, origin: None }, flat) {
                Ok(()) => {}
                Err(Drop::PortFull) => return self.queue.refuse(now, waiting),
                Err(reason) => self.counters.drop(reason),
            }
        }
    }

    /// Its interface is gone, and what waited for it.
    fn lose(&mut self) {
        self.detach();
        self.port = None;
        (0..self.queue.clear()).for_each(|_| self.counters.drop(Drop::PortGone));
    }

    /// Whether its packets are no longer than the port takes.
    pub(super) fn fits(&self, frame: &Outgoing<'_>) -> Result<(), Drop> {
        let packet = match frame.view.layers().filter(|_| frame.offload.gso_size > 0) {
            Some(l) => l.payload + (l.end - l.payload).min(frame.offload.gso_size.into()),
            None => frame.length,
        };
        if packet > frame.view.ethernet + self.mtu { Err(Drop::Oversized) } else { Ok(()) }
    }

    /// Writes a frame to the device.
    pub fn write(&mut self, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<(), Drop> {
        self.fits(frame)?;
        let port = self.port.as_mut().ok_or(Drop::PortGone)?;
        if port.takes_offload() || frame.offload == Offload::default() {
            port.send(&frame.offload, frame.pieces).map_err(Refusal::reason)?;
            self.counters.sent_large += u64::from(frame.offload.gso_size > 0);
        } else {
            send_whole(port, frame, flat)?;
        }
        self.counters.sent += 1;
        self.counters.sent_bytes += frame.length as u64;
        Ok(())
    }
}

/// Writes the frame as packets, for a port that takes no others.
fn send_whole(port: &mut Port, frame: &Outgoing<'_>, flat: &mut Vec<u8>) -> Result<(), Drop> {
    whole(frame, flat, |offload, pieces| port.send(offload, pieces).map_err(Refusal::reason))
}

/// Cuts the frame into packets and completes their checksums.
pub(super) fn whole(
    frame: &Outgoing<'_>,
    flat: &mut Vec<u8>,
    mut send: impl FnMut(&Offload, &[IoSlice<'_>]) -> Result<(), Drop>,
) -> Result<(), Drop> {
    flat.clear();
    frame.pieces.iter().for_each(|piece| flat.extend_from_slice(piece));
    let cut = frame.view.layers().filter(|l| frame.offload.gso_size > 0 || frame.offload.is_at(l));
    let Some(layers) = cut else {
        let mut offload = frame.offload;
        offload.fill(flat).map_err(|_| Drop::BadOffload)?;
        return send(&offload, &[IoSlice::new(flat)]);
    };
    let mut segmenter = Segmenter::new(flat, *layers, frame.offload.gso_size.into(), Checksums::Full);
    let mut header = Header::default();
    while let Some(payload) = segmenter.next(&mut header) {
        send(&Offload::default(), &[IoSlice::new(header.bytes()), IoSlice::new(&flat[payload])])?;
    }
    Ok(())
}

impl Node {
    /// Handles what a port has for now, `burst` frames at most; how many there were. `remote` is handed what is for peers.
    pub fn receive(
        &mut self,
        now: Time,
        port: usize,
        burst: usize,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> usize {
        for count in 0..burst {
            let Some(buffer) = buffers.take() else {
                self.slots[port].counters.drop(Drop::NoBuffer);
                return count;
            };
            let received = match &mut self.slots[port].port {
                Some(port) => port.receive(buffers.bytes_mut(buffer)),
                None => Received::Nothing,
            };
            let more = match received {
                Received::Frame { start, length, offload } => {
                    let frame = Frame { buffer, start, length, offload };
                    self.handle(now, port, &frame, buffers, remote)
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
            buffers.release(buffer);
            if !more {
                return count;
            }
        }
        burst
    }

    /// Handles a frame that was read. Whether there may be more behind it.
    #[inline]
    fn handle(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> bool {
        let origin = match &self.slots[port].port {
            Some(Port::Shared(shared)) => shared.origin(),
            _ => None,
        };
        let fate = self.forward(now, Place::Port(port), frame, origin.as_ref(), buffers, remote);
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
        slot.counters.received += 1;
        slot.counters.received_bytes += frame.length as u64;
        if let Err(reason) = fate {
            slot.counters.drop(reason);
        }
        true
    }

    /// A port's interface is gone: nobody is behind it.
    pub fn lose(&mut self, port: usize) {
        self.slots[port].lose();
        self.table.forget(Place::Port(port));
    }

    /// Writes what waits and is due.
    #[inline]
    pub fn drain(&mut self, now: Time) {
        for slot in self.slots.iter_mut().filter(|slot| slot.queue.due().is_some_and(|due| due <= now)) {
            slot.drain(now, &mut self.flat);
        }
    }
    /// When [`Node::drain`] is due; `None`: nothing waits.
    pub fn deadline(&self) -> Option<Time> {
        self.slots.iter().filter_map(|slot| slot.queue.due()).min()
    }

    fn forward(
        &mut self,
        now: Time,
        from: Place,
        frame: &Frame,
        origin: Option<&Origin>,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> Result<Fate, Drop> {
        let bytes = &buffers.bytes(frame.buffer)[frame.start..frame.start + frame.length];
        let view = parse(bytes).ok_or(Drop::Runt)?;
        if view.destination == pause::GROUP {
            return self.obey(now, from, bytes).map(|()| Fate::Left);
        }
        frame.offload.check(&view, frame.length).map_err(|_| Drop::BadOffload)?;
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        self.table.learn(now, view.source, from).map_err(|Foreign| Drop::ForeignSource)?;
        if view.destination.is_link_local() {
            return Err(Drop::LinkLocal);
        }
        let known = if view.destination.is_group() { None } else { self.table.find(view.destination) };
        match known {
            Some(place) if place == from => Err(Drop::SamePort),
            Some(Place::Port(port)) => {
                let bytes = &buffers.bytes(frame.buffer)[frame.start..frame.start + frame.length];
                let pieces = [IoSlice::new(bytes)];
                let (offload, length) = (frame.offload, frame.length);
                let outgoing = Outgoing { view, offload, pieces: &pieces, length, origin };
                let sent = self.slots[port].deliver(now, &outgoing, &mut self.flat);
                if sent == Err(Drop::PortGone) {
                    self.lose(port);
                }
                sent
            }
            Some(Place::Peer(peer)) => remote.transmit(now, buffers, frame, &view, Some(peer)).map(|()| Fate::Left),
            None => self.flood(now, from, frame, &view, buffers, remote).map(|()| Fate::Left),
        }
    }

    /// The neighbour at a port stops what is for it, or lets it go on.
    #[cold]
    fn obey(&mut self, now: Time, from: Place, bytes: &[u8]) -> Result<(), Drop> {
        let Place::Port(port) = from else { return Err(Drop::BadControl) };
        let slot = &mut self.slots[port];
        slot.queue.pause(now, &pause::read(bytes).ok_or(Drop::BadControl)?);
        slot.drain(now, &mut self.flat);
        Ok(())
    }

    /// To everybody but the sender; from a peer to no other peer, since the sender has reached them itself.
    fn flood(
        &mut self,
        now: Time,
        from: Place,
        frame: &Frame,
        view: &View,
        buffers: &mut Buffers,
        remote: &mut dyn Remote,
    ) -> Result<(), Drop> {
        let (mut reached, mut failed) = (false, None);
        let bytes = &buffers.bytes(frame.buffer)[frame.start..frame.start + frame.length];
        let pieces = [IoSlice::new(bytes)];
        let (offload, length) = (frame.offload, frame.length);
        let outgoing = Outgoing { view: *view, offload, pieces: &pieces, length, origin: None };
        for (port, slot) in self.slots.iter_mut().enumerate() {
            if from == Place::Port(port) || slot.port.is_none() {
                continue;
            }
            match slot.deliver(now, &outgoing, &mut self.flat) {
                Ok(_) => reached = true,
                Err(reason) => failed = Some(reason),
            }
        }
        if let Place::Port(_) = from {
            match remote.transmit(now, buffers, frame, view, None) {
                Ok(()) => reached = true,
                Err(Drop::Nowhere) => {}
                Err(reason) => failed = Some(reason),
            }
        }
        match (reached, failed) {
            (true, _) => Ok(()),
            (false, reason) => Err(reason.unwrap_or(Drop::Nowhere)),
        }
    }

    /// Delivers a frame that came from a peer.
    pub fn from_peer(&mut self, now: Time, peer: usize, frame: &Outgoing<'_>) -> Result<(), Drop> {
        let view = &frame.view;
        if view.source.is_group() {
            return Err(Drop::SourceGroup);
        }
        // A link's own, which no switch carries on.
        if view.destination == pause::GROUP {
            return Err(Drop::BadControl);
        }
        self.table.learn(now, view.source, Place::Peer(peer)).map_err(|Foreign| Drop::ForeignSource)?;
        if view.destination.is_link_local() {
            return Err(Drop::LinkLocal);
        }
        let known = if view.destination.is_group() { None } else { self.table.find(view.destination) };
        match known {
            Some(Place::Port(port)) => self.slots[port].deliver(now, frame, &mut self.flat).map(|_| ()),
            // It is behind a peer, and the sender should have known: split horizon.
            Some(Place::Peer(_)) => Err(Drop::SamePort),
            None => {
                let (mut reached, mut failed) = (false, Drop::Nowhere);
                for slot in &mut self.slots {
                    match slot.deliver(now, frame, &mut self.flat) {
                        Ok(_) => reached = true,
                        Err(reason) => failed = reason,
                    }
                }
                if reached { Ok(()) } else { Err(failed) }
            }
        }
    }
}

/// A frame that was read: where it is.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// In which buffer.
    pub buffer: BufferId,
    /// From which byte on.
    pub start: usize,
    /// How many bytes.
    pub length: usize,
    /// What is still to be done to it.
    pub offload: Offload,
}

/// What takes frames for peers.
pub trait Remote {
    /// Takes a frame for one peer, or for all. What is kept of the buffer is retained.
    fn transmit(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        frame: &Frame,
        view: &View,
        peer: Option<usize>,
    ) -> Result<(), Drop>;
}

/// No peers.
pub struct Alone;

impl Remote for Alone {
    fn transmit(&mut self, _: Time, _: &mut Buffers, _: &Frame, _: &View, _: Option<usize>) -> Result<(), Drop> {
        Err(Drop::Nowhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::segment::tests::{Build, frame_of};
    use crate::frame::{GsoType, Mac};
    use crate::port::{Pcap, Tap};
    use millpond_core::counters::DropReason;
    use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt};
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    fn capture(path: &Path, frames: &[Vec<u8>]) {
        let mut writer = PcapWriter::new(File::create(path).unwrap()).unwrap();
        for frame in frames {
            let packet = PcapPacket::new(Duration::ZERO, frame.len() as u32, frame).unwrap();
            writer.write_packet(&packet).unwrap();
        }
    }
    fn frames(path: &Path) -> Vec<Vec<u8>> {
        let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
        std::iter::from_fn(|| reader.next_packet().map(|p| p.unwrap().data().to_vec())).collect()
    }
    /// A switch of files: what comes in on each port, and where what goes out is found.
    fn switch(name: &str, inputs: &[&[Vec<u8>]]) -> (Node, Vec<PathBuf>) {
        let folder = std::env::temp_dir().join(format!("millpond-node-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut node = Node::default();
        let mut outputs = Vec::new();
        for (i, input) in inputs.iter().enumerate() {
            let (read, write) = (folder.join(format!("{i}.in")), folder.join(format!("{i}.out")));
            capture(&read, input);
            let port = Pcap::open(Some(&read), Some(&write)).unwrap();
            let port = Some(Port::Pcap(Box::new(port)));
            node.slots.push(Slot::new(i.to_string(), port, 1500));
            outputs.push(write);
        }
        (node, outputs)
    }
    fn run(node: &mut Node) {
        let mut buffers = Buffers::new(16);
        for port in 0..node.slots.len() {
            while node.receive(Time::ZERO, port, BURST, &mut buffers, &mut Alone) > 0 {}
        }
        assert_eq!(buffers.in_use(), 0);
    }
    fn addressed(mut frame: Vec<u8>, to: u8, from: u8) -> Vec<u8> {
        (frame[5], frame[11]) = (to, from);
        frame
    }

    #[test]
    fn floods_learns_and_never_returns() {
        let tcp = || frame_of(&Build { payload: 100, ..Build::default() });
        let unknown = addressed(tcp(), 2, 1);
        let (mut answer, mut own) = (addressed(tcp(), 1, 2), addressed(tcp(), 2, 9));
        answer.extend([0; 3]);
        own.truncate(40);
        let (mut node, outputs) = switch("learn", &[std::slice::from_ref(&unknown), &[answer.clone(), own], &[]]);
        run(&mut node);
        assert_eq!(frames(&outputs[2]), std::slice::from_ref(&unknown));
        assert_eq!(frames(&outputs[1]), [unknown]);
        assert_eq!(frames(&outputs[0]), [answer], "with its padding");
        assert_eq!(node.slots[1].counters.dropped(Drop::SamePort), 1);
        std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
    }

    #[test]
    fn odd_frames_pass_unharmed_or_have_a_reason() {
        let good = frame_of(&Build { payload: 1000, ..Build::default() });
        let mut fragment = good.clone();
        fragment[20] = 0x20;
        let mut group = good.clone();
        group[6] |= 1;
        let cut_off = good[..50].to_vec();
        let tagged = frame_of(&Build { payload: 1440, tags: 1, ..Build::default() });
        let six = frame_of(&Build { version: crate::frame::Version::V6, payload: 9, ..Build::default() });
        let long = frame_of(&Build { payload: 1500, ..Build::default() });
        let mut discovery = good.clone();
        discovery[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
        let mut opaque = vec![0xaa; 60];
        opaque[..12].copy_from_slice(&good[..12]);
        let pass = [good, fragment, cut_off, tagged, six, opaque];
        let input = [&pass[..], &[group, long, discovery, vec![1; 13]]].concat();
        let (mut node, outputs) = switch("odd", &[&input, &[]]);
        run(&mut node);
        assert_eq!(frames(&outputs[1]), pass);
        let counters = &node.slots[0].counters;
        for reason in [Drop::SourceGroup, Drop::Oversized, Drop::Runt, Drop::LinkLocal] {
            assert_eq!(counters.dropped(reason), 1, "{reason:?}");
        }
        assert_eq!(counters.received, 10);
        std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
    }

    #[test]
    fn a_port_without_offload_gets_whole_packets() {
        let (mut node, outputs) = switch("whole", &[&[]]);
        let frame = frame_of(&Build { payload: 4000, ..Build::default() });
        let view = parse(&frame).unwrap();
        let offload = Offload::of(view.layers().unwrap(), 1448);
        assert_eq!(offload.gso, GsoType::Tcp4);
        let pieces = [IoSlice::new(&frame[..70]), IoSlice::new(&frame[70..])];
        let outgoing = Outgoing { view, offload, pieces: &pieces, length: frame.len(), origin: None };
        node.from_peer(Time::ZERO, 0, &outgoing).unwrap();
        let packets = frames(&outputs[0]);
        assert_eq!(packets, crate::frame::segment::tests::cut(&frame, 1448, Checksums::Full));
        assert_eq!(node.table.find(Mac([2, 0, 0, 0, 0, 1])), Some(Place::Peer(0)));
        std::fs::remove_dir_all(outputs[0].parent().unwrap()).unwrap();
    }

    /// A switch with one port whose device takes a few frames, and that device.
    fn narrow() -> (Node, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        sockopt::set_socket_send_buffer_size(&theirs, 4096).unwrap();
        let mut node = Node::default();
        node.slots.push(Slot::new("narrow", Some(Port::Tap(Tap::over(theirs).unwrap())), 1500));
        (node, ours)
    }
    fn read(device: &OwnedFd) -> Vec<Vec<u8>> {
        let mut room = vec![0; 2000];
        let one = || recv(device, &mut room[..], RecvFlags::DONTWAIT).ok().map(|(_, length)| room[10..length].to_vec());
        std::iter::from_fn(one).collect()
    }
    fn deliver(node: &mut Node, now: Time, frame: &[u8]) -> Result<(), Drop> {
        let view = parse(frame).unwrap();
        let pieces = [IoSlice::new(&frame[..60]), IoSlice::new(&frame[60..])];
        let (offload, length) = (Offload::default(), frame.len());
        node.from_peer(now, 0, &Outgoing { view, offload, pieces: &pieces, length, origin: None })
    }
    /// With a number, and a priority.
    fn numbered(number: u32, priority: u8) -> Vec<u8> {
        let mut frame = frame_of(&Build { seq: number, payload: 1000, ..Build::default() });
        frame[15] = priority << 5;
        frame
    }
    fn number(frame: &[u8]) -> u32 {
        u32::from_be_bytes(std::array::from_fn(|i| frame[38 + i]))
    }

    #[test]
    fn a_device_that_is_full_makes_frames_wait_and_loses_none() {
        let (mut node, device) = narrow();
        for i in 0..100 {
            deliver(&mut node, Time::ZERO, &numbered(i, u8::from(i == 99))).unwrap();
        }
        let waiting = node.slots[0].queue.view().packets;
        assert!(waiting > 50 && node.deadline() == Some(super::super::egress::PATIENCE), "{waiting}");
        let (mut got, mut now) = (Vec::new(), Time::ZERO);
        while let Some(due) = node.deadline() {
            assert!(due > now);
            now = due;
            got.extend(read(&device).iter().map(|frame| number(frame)));
            node.drain(now);
        }
        got.extend(read(&device).iter().map(|frame| number(frame)));
        // The last was urgent: it is behind what the device had, and the frame that it had refused.
        let urgent = got.iter().position(|number| *number == 99).unwrap();
        assert_eq!((got.remove(urgent), urgent as u32), (99, 99 - waiting + 1));
        assert_eq!(got, (0..99).collect::<Vec<_>>());
        let counters = &node.slots[0].counters;
        assert!(counters.sent == 100 && counters.reading().dropped.is_empty());
    }

    #[test]
    fn a_device_that_is_stuck_costs_what_is_sent_to_it() {
        let (mut node, _device) = narrow();
        let frames = 2 * super::super::egress::BYTES_MAX / 1000;
        for i in 0..frames as u32 {
            deliver(&mut node, Time::ZERO, &numbered(i, 0)).unwrap();
        }
        let full = node.slots[0].counters.discarded(DropReason::QueueFull);
        let view = node.slots[0].queue.view();
        let counters = &node.slots[0].counters;
        assert!(full > 500 && view.bytes <= super::super::egress::BYTES_MAX, "{full}");
        assert_eq!(counters.sent + u64::from(view.packets) + 1 + full, frames);
        node.lose(0);
        assert_eq!(node.slots[0].counters.dropped(Drop::PortGone), u64::from(view.packets) + 1);
        assert_eq!(deliver(&mut node, Time::ZERO, &numbered(1, 0)), Err(Drop::PortGone));
        assert!(node.deadline().is_none());
    }

    #[test]
    fn a_neighbour_that_pauses_is_obeyed_and_its_frame_goes_no_further() {
        let (mut node, device) = narrow();
        node.slots.push(Slot::new("other", Some(Port::Pcap(Box::new(Pcap::open(None, None).unwrap()))), 1500));
        let mut buffers = Buffers::new(4);
        let mut control = |node: &mut Node, quanta: &pause::Quanta| {
            let frame = pause::write(Mac([2, 0, 0, 0, 0, 9]), quanta);
            send(&device, &[&[0; 10][..], &frame].concat(), SendFlags::empty()).unwrap();
            assert_eq!(node.receive(Time::from_us(1), 0, 1, &mut buffers, &mut Alone), 1);
        };
        let mut stop = [None; 8];
        stop[0] = Some(1000);
        control(&mut node, &stop);
        node.table.learn(Time::ZERO, Mac([2, 0, 0, 0, 0, 2]), Place::Port(0)).unwrap();
        deliver(&mut node, Time::from_us(2), &numbered(1, 0)).unwrap();
        deliver(&mut node, Time::from_us(2), &numbered(2, 6)).unwrap();
        node.drain(Time::from_us(2));
        assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [2]);
        let due = node.deadline().unwrap();
        assert!(due > Time::from_us(52) && due < Time::from_us(53), "1000 quanta of 10 Gb/s: {due}");
        stop[0] = Some(0);
        control(&mut node, &stop);
        assert_eq!(read(&device).iter().map(|frame| number(frame)).collect::<Vec<_>>(), [1]);
        assert_eq!((node.slots[1].counters.sent, node.slots[0].counters.reading().dropped.len()), (0, 0));
        assert_eq!(deliver(&mut node, Time::ZERO, &pause::write(Mac::default(), &stop)), Err(Drop::BadControl));
    }
}
