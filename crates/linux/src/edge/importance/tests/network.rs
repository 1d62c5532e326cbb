//! Two hosts, their shims, and a network whose adversary decides on each packet.
//!
//! Invariant: at each acknowledgement that the sender's kernel receives, the receiver's kernel
//! holds what it acknowledges, cumulatively and by SACK.

use super::frames::{Seg, Style, frame, read};
use super::kernel::{Receiver, Sender};
use crate::dataplane::buffers::Buffers;
use crate::dataplane::frame::parse;
use crate::dataplane::packet::Packet;
use crate::edge::importance::{Shim, ShimParams, Verdict};
use millpond_core::Time;
use std::collections::BTreeMap;

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrive,
    Drop,
    Twice,
    Late(Time),
}

/// A packet in the network, as the adversary sees it.
pub struct Seen {
    /// A switch may drop it early: it is marked so, or it is data and there are no shims.
    pub red: bool,
}

#[derive(Debug)]
enum Event {
    /// To the shim of a host.
    Port(usize, Vec<u8>),
    /// To the kernel of a host.
    Kernel(usize, Vec<u8>),
    Write(u64),
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub style: Style,
    pub size: u64,
    pub cwnd: u64,
    pub window: u64,
    pub shims: [bool; 2],
    pub params: ShimParams,
    pub delay: Time,
    /// How long a kernel takes for a packet.
    pub kernel: Time,
    pub fifo: bool,
    /// The application writes up to these offsets at these times.
    pub writes: Vec<(Time, u64)>,
    /// Restart a shim at a time.
    pub restart: Option<(Time, usize)>,
}

impl Setup {
    pub fn new(style: Style, size: u64) -> Setup {
        Setup {
            style,
            size,
            cwnd: 10 * super::kernel::MSS,
            window: 1 << 20,
            shims: [true; 2],
            params: ShimParams::default(),
            delay: Time::from_us(20),
            kernel: Time::from_us(5),
            fifo: true,
            writes: Vec::new(),
            restart: None,
        }
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub done: bool,
    pub timeouts: u32,
    pub time: Time,
    pub counters: [Option<crate::edge::importance::Counters>; 2],
}

pub struct Network<'a> {
    setup: Setup,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// When the last packet on a path arrives.
    last: [Time; 2],
    buffers: Buffers,
    shims: [Option<Shim>; 2],
    pub sender: Sender,
    pub receiver: Receiver,
    adversary: &'a mut dyn FnMut(&Seen) -> Fate,
}

impl<'a> Network<'a> {
    pub fn new(setup: &Setup, adversary: &'a mut dyn FnMut(&Seen) -> Fate) -> Network<'a> {
        let mut sender = Sender::new(setup.style, setup.size, setup.cwnd);
        let mut receiver = Receiver::new(setup.style, setup.size, setup.window);
        receiver.strict = setup.fifo;
        if !setup.writes.is_empty() {
            sender.written = 0;
        }
        let mut network = Network {
            setup: setup.clone(),
            now: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
            last: [Time::ZERO; 2],
            buffers: Buffers::new(2),
            shims: setup.shims.map(|on| on.then(|| Shim::new(&setup.params))),
            sender,
            receiver,
            adversary,
        };
        for (at, up_to) in setup.writes.clone() {
            network.push(at, Event::Write(up_to));
        }
        network
    }

    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    /// Through a host's shim; `None`: swallowed.
    fn pass(&mut self, host: usize, bytes: &[u8], leaves: bool) -> Option<Vec<u8>> {
        let Some(shim) = &mut self.shims[host] else { return Some(bytes.to_vec()) };
        let id = self.buffers.take().unwrap();
        self.buffers.bytes_mut(id)[..bytes.len()].copy_from_slice(bytes);
        let (mut packet, _) = Packet::read(&self.buffers, id, 0..bytes.len());
        let view = parse(bytes).unwrap();
        let verdict = match leaves {
            true => {
                shim.outgoing(self.now, &mut packet, &view, &self.buffers);
                Verdict::Pass
            }
            false => shim.incoming(self.now, &mut packet, &view, &self.buffers),
        };
        let out = [packet.header.bytes(), packet.payload(&self.buffers)].concat();
        assert_eq!(out.len(), bytes.len());
        self.buffers.release(id);
        (verdict == Verdict::Pass).then_some(out)
    }

    fn transmit(&mut self, from: usize, bytes: Vec<u8>) {
        let seg = read(&bytes);
        let has_payload = !seg.payload.is_empty();
        let red = seg.importance() == 1 || (has_payload && self.shims[from].is_none());
        let seen = Seen { red };
        let fate = (self.adversary)(&seen);
        let mut at = (self.now + self.setup.delay).max(self.last[from]);
        match fate {
            Fate::Drop => return,
            Fate::Late(by) => at += by,
            Fate::Arrive | Fate::Twice => self.last[from] = at,
        }
        if fate == Fate::Twice {
            self.push(at, Event::Port(1 - from, bytes.clone()));
        }
        self.push(at, Event::Port(1 - from, bytes));
    }

    fn leave(&mut self, from: usize, segs: Vec<Seg>) {
        for seg in segs {
            let bytes = frame(self.setup.style.version, from, &seg);
            if let Some(bytes) = self.pass(from, &bytes, true) {
                assert_eq!(read(&bytes).payload, seg.payload);
                self.transmit(from, bytes);
            }
            self.due(from);
        }
    }

    fn due(&mut self, host: usize) {
        let mut frames = Vec::new();
        if let Some(shim) = &mut self.shims[host] {
            shim.due(self.now, &mut |frame| frames.push(frame.to_vec()));
        }
        frames.into_iter().for_each(|frame| self.transmit(host, frame));
    }

    fn kernel(&mut self, host: usize, bytes: &[u8]) {
        let seg = read(bytes);
        let mut out = Vec::new();
        if host == 1 {
            self.receiver.receive(self.now, &seg, &mut out);
        } else {
            self.check(&seg);
            self.sender.receive(self.now, &seg, &mut out);
        }
        self.leave(host, out);
    }

    /// Nothing acknowledges what the receiver does not have.
    fn check(&self, seg: &Seg) {
        assert!(seg.extra.is_empty(), "the kernel receives no echo of a shim");
        let first = self.setup.style.isn[0].wrapping_add(1);
        let held = |at: u32| {
            let distance = at.wrapping_sub(first.wrapping_add(self.receiver.next as u32)) as i32;
            self.receiver.next.saturating_add_signed(distance.into())
        };
        if seg.flags & crate::dataplane::frame::parse::tcp::SYN == 0 {
            assert!(held(seg.ack) <= self.receiver.next, "a forged acknowledgement");
        }
        for (a, b) in &seg.sack {
            let (a, b) = (held(*a), held(*b));
            let is_held = b <= self.receiver.next
                || self.receiver.ranges.around(a.max(self.receiver.next)).is_some_and(|r| r.1 >= b);
            assert!(is_held, "a forged SACK");
        }
    }

    fn next(&self) -> Time {
        let event = self.events.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
        let shims = self.shims.iter().flatten().filter_map(Shim::deadline);
        let kernels = self.sender.deadline().min(self.receiver.deadline());
        shims.fold(event.min(kernels), Time::min)
    }

    fn step(&mut self) {
        for host in [0, 1] {
            self.due(host);
        }
        let mut out = Vec::new();
        if self.sender.deadline() <= self.now {
            self.sender.on_timer(self.now, &mut out);
            self.leave(0, std::mem::take(&mut out));
        }
        if self.receiver.deadline() <= self.now {
            self.receiver.on_timer(self.now, &mut out);
            self.leave(1, out);
        }
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Event::Port(host, bytes) => {
                    if let Some(bytes) = self.pass(host, &bytes, false) {
                        self.push(self.now + self.setup.kernel, Event::Kernel(host, bytes));
                    }
                }
                Event::Kernel(host, bytes) => self.kernel(host, &bytes),
                Event::Write(up_to) => {
                    let mut out = Vec::new();
                    self.sender.write(self.now, up_to, &mut out);
                    self.leave(0, out);
                }
            }
        }
    }

    /// Runs until the stream is acknowledged, or for a time.
    pub fn run(mut self, most: Time) -> Outcome {
        let mut out = Vec::new();
        self.sender.start(self.now, &mut out);
        self.leave(0, out);
        while !self.sender.is_done() {
            self.now = self.next().max(self.now);
            if self.now > most {
                break;
            }
            if let Some((at, host)) = self.setup.restart.filter(|(at, _)| *at <= self.now) {
                assert!(at <= self.now);
                self.shims[host] = Some(Shim::new(&self.setup.params));
                self.setup.restart = None;
            }
            self.step();
        }
        let done = self.sender.is_done();
        assert!(!done || self.receiver.next == self.setup.size + 1);
        Outcome {
            done,
            timeouts: self.sender.timeouts,
            time: self.now,
            counters: self.shims.map(|shim| shim.map(|shim| shim.counters().clone())),
        }
    }
}
