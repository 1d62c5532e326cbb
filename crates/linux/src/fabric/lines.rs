//! The links between switch nodes and out of them, and the calls that nodes ask for.
//!
//! A frame for a port waits here for the departure of its last bit, and pause frames between them.
//! A port's departures are in order, since its link carries one frame at a time. A device that is
//! full keeps its line's frames waiting, and nobody else's. A frame for another node arrives there
//! after the link's delay, without being written anywhere.
//!
//! Invariant: a packet's number is in use from its arrival until it is written or dropped, and its
//! bytes are beside it.

use super::passing::{self, LinkEnd, Passed, Watched};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::counters::Drop;
use crate::dataplane::frame::{Mac, Offload, pause};
use crate::dataplane::held::Held;
use crate::dataplane::metadata;
use crate::dataplane::port::Refusal;
use crate::dataplane::port::shared::Sender;
use crate::dataplane::slot::Slot;
use millpond_core::counters::DropReason;
use millpond_core::jitter::Jitter;
use millpond_core::outages::{Outages, lost};
use millpond_core::packet::{Packets, Record};
use millpond_core::random::lot;
use millpond_core::switch::Wire;
use millpond_core::switch::pause::{PauseFrame, PauseTarget};
use millpond_core::switch::port::LinkRate;
use millpond_core::{Packet, PacketId, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSlice;

/// Calls, in the order in which the fabric makes them at one instant. The numbers are lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// The link of a line is free.
    Ready(u32),
    /// A packet has arrived in full at a line. Arrivals of one instant come in the order of what
    /// their links have drawn, and those of a link as they were sent: before the line is the lot,
    /// and behind it the call's number.
    Arrive(u64, u32, u64, PacketId),
    /// The same at the host behind a line.
    Leave(u64, u32, u64, PacketId),
    /// A pause frame has arrived at a line: whom it stops, and for how long.
    Pause(u32, PauseTarget, Time),
    /// A look at what is paused.
    PauseCheck(u32, PauseTarget),
}

impl Call {
    /// No call comes later in its instant.
    pub const LAST: Call = Call::PauseCheck(u32::MAX, PauseTarget::Priority(u8::MAX));
    /// Every free link comes earlier in its instant, and nothing else does.
    pub const READY: Call = Call::Ready(u32::MAX);
}

/// A packet or pause that leaves a port.
#[derive(Clone, Copy, Debug)]
enum Departure {
    Packet(PacketId),
    Pause(PauseFrame),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// Out of the fabric, by the line's port.
    Port,
    /// To another line of the fabric, after a delay.
    Line(u32, Time),
    /// To a host that the fabric's driver has, after a delay.
    Host(u32, Time),
}

/// A packet that has reached its host.
pub struct Left {
    /// When its last bit arrived.
    pub at: Time,
    pub host: u32,
    /// Its metadata after the last switch.
    pub packet: Packet,
    pub held: Held,
}

/// A modelled packet that has reached its host: one without a frame.
pub struct Modelled {
    /// When its last bit arrived.
    pub at: Time,
    pub host: u32,
    pub packet: Packet,
    pub records: Vec<Record>,
}

/// A pause frame that reaches a host. Drivers whose hosts do not pause need not take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    pub at: Time,
    pub host: u32,
    /// Whom it stops, and for how long.
    pub frame: PauseFrame,
}

/// One end of a link: a port of a switch.
pub struct Line {
    /// Counters of the line, and its port if the link leads out of the fabric.
    pub slot: Slot,
    pub far: Far,
    pub rate: LinkRate,
    pub address: Mac,
    /// When the link fails, if it does; a link that leads out of the fabric does not.
    pub outages: Option<Box<Outages>>,
    /// How late the host behind it is with what arrives, if it is.
    pub jitter: Option<Box<Jitter>>,
    /// The numbers by which arrivals of one instant draw lots, if they do: at the line, and at the
    /// host behind it.
    pub lots: Option<[u32; 2]>,
    /// Departures on their way onto the link, and when the last bit leaves.
    departures: VecDeque<(Time, Departure)>,
    is_held_up: bool,
    pub pauses: u64,
    /// Which of its ends are watched.
    pub(super) watched: Watched,
}

impl Line {
    /// A port as the end of a link of this rate.
    pub fn new(slot: Slot, rate: Rate, address: Mac) -> Line {
        let (rate, departures) = (LinkRate::new(rate), VecDeque::new());
        Line {
            slot,
            far: Far::Port,
            rate,
            address,
            outages: None,
            jitter: None,
            lots: None,
            departures,
            is_held_up: false,
            pauses: 0,
            watched: Watched::default(),
        }
    }
    /// The end of a link that stays in the fabric or leads to a host of its driver.
    pub fn inside(name: impl Into<String>, rate: Rate, far: Far) -> Line {
        Line { far, ..Line::new(Slot::new(name, None, usize::MAX), rate, Mac::default()) }
    }
    /// Whether its device took no more: to be asked again when that is ready to be written.
    pub fn is_held_up(&self) -> bool {
        self.is_held_up
    }
}

/// All lines, the packets on them or before them, and the calls to make.
#[derive(Default)]
pub struct Lines {
    pub all: Vec<Line>,
    /// Those that lead out by a port.
    ports: Vec<u32>,
    packets: Packets,
    /// By packet; `None`: it is a modelled host's, which has no frame.
    held: Vec<Option<Held>>,
    calls: BinaryHeap<Reverse<(Time, Call)>>,
    /// Packets that have reached their hosts, in the order of time.
    pub left: VecDeque<Left>,
    /// The same of modelled packets.
    pub modelled: VecDeque<Modelled>,
    /// Bytes of the modelled packets that are held here.
    modelled_bytes: u64,
    /// Bytes that switches have cut off them.
    pub trimmed_bytes: u64,
    /// Pause frames for hosts, in the order in which they were sent.
    pub paused: VecDeque<Paused>,
    /// The time of the last advance: nothing arrives before it.
    pub advanced: Time,
    arrivals: u64,
    /// Packets put on links.
    pub hops: u64,
    /// Bytes of the frames of packets that were dropped.
    pub dropped_bytes: u64,
    /// Frames that have passed watched ends.
    pub passed: Vec<Passed>,
    /// A frame in one piece, for ports that take none in several.
    flat: Vec<u8>,
}

impl Lines {
    pub fn new(all: Vec<Line>) -> Lines {
        let leads_out = |line: &u32| all[*line as usize].far == Far::Port;
        let ports = (0..all.len() as u32).filter(leads_out).collect();
        Lines { ports, all, ..Lines::default() }
    }
    pub fn held(&self) -> usize {
        self.packets.live()
    }

    /// Bytes of the frames that are held here.
    pub fn held_bytes(&self) -> u64 {
        let frames = self.held.iter().flatten().map(|held| held.bytes.length() as u64);
        frames.sum::<u64>() + self.modelled_bytes
    }

    /// Gives a packet its number, and keeps its bytes beside it.
    pub fn take(&mut self, packet: Packet, held: Held) -> PacketId {
        let id = self.packets.insert(packet);
        *self.place(id) = Some(held);
        id
    }

    /// Gives a modelled packet its number; the first of `records` are its own.
    pub fn take_modelled(
        &mut self,
        packet: Packet,
        mut records: &mut dyn Iterator<Item = Record>,
    ) -> PacketId {
        self.modelled_bytes += u64::from(packet.size);
        let id = self.packets.bring(packet, &mut records);
        *self.place(id) = None;
        id
    }

    fn place(&mut self, id: PacketId) -> &mut Option<Held> {
        let at = id as usize;
        if at >= self.held.len() {
            self.held.resize_with(at + 1, || None);
        }
        &mut self.held[at]
    }

    pub fn call(&mut self, at: Time, call: Call) {
        self.calls.push(Reverse((at, call)));
    }

    /// A packet will have arrived at a line, or at the host behind it.
    pub fn arrives(&mut self, at: Time, line: u32, id: PacketId, at_host: bool) {
        let number = self.arrivals;
        self.arrivals += 1;
        let lots = self.all[line as usize].lots;
        let lot = lots.map_or(0, |lots| lot(at, lots[usize::from(at_host)]));
        let call = if at_host { Call::Leave } else { Call::Arrive };
        self.call(at, call(lot, line, number, id));
    }

    /// A packet passes an end that is watched.
    #[cold]
    pub fn pass(
        &mut self,
        at: Time,
        end: LinkEnd,
        outgoing: bool,
        id: PacketId,
        buffers: &Buffers,
    ) {
        if let Some(held) = &self.held[id as usize] {
            let bytes = passing::copy(&held.bytes, held.offload, buffers);
            self.passed.push(Passed { at, end, outgoing, packet: self.packets[id], bytes });
        }
    }

    /// Hands a packet over to the driver of the host behind a line.
    pub fn leave(&mut self, at: Time, line: u32, id: PacketId) {
        let Far::Host(host, _) = self.all[line as usize].far else { return };
        let packet = self.packets[id];
        let Some(held) = self.held[id as usize].take() else {
            self.modelled_bytes -= u64::from(packet.size);
            let mut records = Vec::new();
            let packet = self.packets.send(id, &mut records);
            return self.modelled.push_back(Modelled { at, host, packet, records });
        };
        self.packets.remove(id);
        let slot = &mut self.all[line as usize].slot;
        slot.counters.sent += 1;
        slot.counters.sent_bytes += held.bytes.length() as u64;
        self.left.push_back(Left { at, host, packet, held });
    }

    fn free(&mut self, id: PacketId, buffers: &mut Buffers) {
        match self.held[id as usize].take() {
            Some(mut held) => held.bytes.end(buffers),
            None => self.modelled_bytes -= u64::from(self.packets[id].size),
        }
        self.packets.remove(id);
    }

    /// A packet ends here, and a line counts it.
    pub fn discard(&mut self, line: u32, id: PacketId, reason: DropReason, buffers: &mut Buffers) {
        self.all[line as usize].slot.counters.discard(reason);
        let held = self.held[id as usize].as_ref();
        let size = u64::from(self.packets[id].size);
        self.dropped_bytes += held.map_or(size, |held| held.bytes.length() as u64);
        self.free(id, buffers);
    }

    /// The reason why a packet that would arrive now was lost on its link, if it was.
    pub fn lost(&self, id: PacketId) -> Option<DropReason> {
        lost(&self.packets[id])
    }

    /// Takes the next call, if it is not beyond `until`.
    pub fn due(&mut self, until: (Time, Call)) -> Option<(Time, Call)> {
        let Reverse(next) = *self.calls.peek()?;
        if next > until {
            return None;
        }
        self.calls.pop();
        Some(next)
    }

    /// When there is something to do: a call, or a departure that no device holds up.
    pub fn deadline(&self) -> Option<Time> {
        let call = self.calls.peek().map(|Reverse((at, _))| *at);
        let ports = self.ports.iter().map(|line| &self.all[*line as usize]);
        let open = ports.filter(|line| !line.is_held_up);
        open.filter_map(|line| line.departures.front().map(|(at, _)| *at)).chain(call).min()
    }

    /// Hands ports what has left by `now`.
    pub fn release(&mut self, now: Time, buffers: &mut Buffers) {
        for i in 0..self.ports.len() {
            let port = self.ports[i] as usize;
            self.all[port].is_held_up = false;
            while let Some((at, departure)) = self.all[port].departures.front().copied()
                && at <= now
            {
                let sent = match departure {
                    Departure::Packet(id) => self.send(port, id, buffers),
                    Departure::Pause(frame) => self.all[port].send_pause(frame),
                };
                let line = &mut self.all[port];
                match sent {
                    Err(Drop::PortFull) => {
                        line.is_held_up = true;
                        break;
                    }
                    Err(Drop::PortGone) => line.slot.port = None,
                    Err(_) | Ok(()) => {}
                }
                line.departures.pop_front();
                if let Err(reason) = sent {
                    line.slot.counters.drop(reason);
                }
                if let Departure::Packet(id) = departure {
                    self.free(id, buffers);
                }
            }
        }
    }

    fn send(&mut self, port: usize, id: PacketId, buffers: &Buffers) -> Result<(), Drop> {
        let Lines { all, flat, held, .. } = self;
        let Some(held) = &held[id as usize] else { return Ok(()) };
        held.pass(buffers, Sender::Elsewhere, |outgoing| all[port].slot.write(outgoing, flat))
    }
}

impl Line {
    fn send_pause(&mut self, frame: PauseFrame) -> Result<(), Drop> {
        // The device at the other end of a real link has PFC, and no pause of flows.
        let PauseTarget::Priority(priority) = frame.target else { return Ok(()) };
        let quantum = self.rate.time(pause::QUANTUM_BYTES).as_ps().max(1);
        let mut quanta = [None; 8];
        let count = u16::try_from(frame.duration.as_ps().div_ceil(quantum)).unwrap_or(u16::MAX);
        quanta[usize::from(priority & 7)] = Some(count);
        let bytes = pause::write(self.address, &quanta);
        let port = self.slot.port.as_mut().ok_or(Drop::PortGone)?;
        port.send(&Offload::default(), &[IoSlice::new(&bytes)]).map_err(Refusal::reason)?;
        self.pauses += 1;
        Ok(())
    }
}

/// A node's exit, with the buffers that frames are in.
pub struct Exit<'a> {
    pub lines: &'a mut Lines,
    pub buffers: &'a mut Buffers,
    /// The line of the node's first port.
    pub first: u32,
}

impl Exit<'_> {
    fn line(&self, port: u16) -> u32 {
        self.first + u32::from(port)
    }
}

impl Wire for Exit<'_> {
    fn packets(&mut self) -> &mut Packets {
        &mut self.lines.packets
    }
    fn transmit(&mut self, port: u16, id: PacketId, departs: Time) {
        let line = self.line(port);
        let Lines { all, packets, held, .. } = &mut *self.lines;
        if let Some(held) = &mut held[id as usize] {
            metadata::write(&packets[id], held.bytes.header.bytes_mut(), &held.view);
        }
        let Line { far, rate, outages, watched, .. } = &mut all[line as usize];
        let (far, is_watched) = (*far, watched.port);
        if let (Some(outages), Far::Line(_, delay) | Far::Host(_, delay)) = (outages, far) {
            let packet = &mut packets[id];
            let starts = departs.saturating_sub(rate.time(packet.size.into()));
            outages.strike(packet, starts, departs + delay);
        }
        if is_watched {
            self.lines.pass(departs, LinkEnd::Port(line), true, id, self.buffers);
        }
        self.lines.hops += 1;
        match far {
            Far::Port => {
                let departures = &mut self.lines.all[line as usize].departures;
                departures.push_back((departs, Departure::Packet(id)));
            }
            Far::Line(to, delay) => self.lines.arrives(departs + delay, to, id, false),
            Far::Host(_, delay) => {
                let arrives = departs + delay;
                let jitter = &mut self.lines.all[line as usize].jitter;
                let arrives = jitter.as_mut().map_or(arrives, |jitter| jitter.delay(arrives));
                self.lines.arrives(arrives, line, id, true);
            }
        }
    }
    fn call_ready(&mut self, port: u16, at: Time) {
        self.lines.call(at, Call::Ready(self.line(port)));
    }
    fn discard(&mut self, id: PacketId, reason: DropReason) {
        let ingress = self.line(self.lines.packets[id].ingress);
        self.lines.discard(ingress, id, reason, self.buffers);
    }
    fn trimmed(&mut self, bytes: u16) {
        // No frame's packet can be trimmed.
        self.lines.modelled_bytes -= u64::from(bytes);
        self.lines.trimmed_bytes += u64::from(bytes);
    }
    fn send_pause(&mut self, port: u16, frame: PauseFrame, departs: Time) {
        let line = self.line(port) as usize;
        let line = &mut self.lines.all[line];
        match line.far {
            Far::Port => line.departures.push_back((departs, Departure::Pause(frame))),
            Far::Line(to, delay) => {
                line.pauses += 1;
                let call = Call::Pause(to, frame.target, frame.duration);
                self.lines.call(departs + delay, call);
            }
            Far::Host(host, delay) => {
                line.pauses += 1;
                self.lines.paused.push_back(Paused { at: departs + delay, host, frame });
            }
        }
    }
    fn call_pause_check(&mut self, port: u16, target: PauseTarget, at: Time) {
        self.lines.call(at, Call::PauseCheck(self.line(port), target));
    }
}
