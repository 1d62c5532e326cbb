//! One shim and its host, packet by packet: host 0 is the shim's.

use super::frames::{PLAIN, Seg, Style, frame, read, syn_options};
use super::kernel::byte;
use crate::dataplane::buffers::Buffers;
use crate::dataplane::frame::Version;
use crate::dataplane::frame::parse;
use crate::dataplane::frame::parse::tcp::{ACK, SYN};
use crate::dataplane::packet::Packet;
use crate::edge::importance::{Reason, Shim, ShimParams, Verdict};
use millpond_core::Time;

pub const CONTROL: u8 = 0;
pub const RED: u8 = 1;
pub const IMPORTANT: u8 = 2;
pub const ECHO: u8 = 3;
pub const FORCED: u8 = 4;
pub const FORCED_ECHO: u8 = 5;

pub struct Bench {
    pub shim: Shim,
    pub now: Time,
    version: Version,
    buffers: Buffers,
}

/// The handshake packet of a host; host 1 answers host 0.
pub fn syn_of(style: &Style, host: usize) -> Seg {
    let (flags, ack) = match host {
        0 => (SYN, 0),
        _ => (SYN | ACK, style.isn[0].wrapping_add(1)),
    };
    let extra = syn_options(style);
    Seg { seq: style.isn[host], ack, flags, window: 60_000, extra, ..Seg::default() }
}

/// Bytes of the stream.
pub fn bytes(at: u32, len: u32) -> Vec<u8> {
    (at..at + len).map(|at| byte(at.into())).collect()
}

/// A data packet of host 0.
pub fn data(at: u32, len: u32) -> Seg {
    Seg {
        seq: PLAIN.isn[0] + 1 + at,
        ack: PLAIN.isn[1] + 1,
        flags: ACK,
        window: 500,
        stamps: Some((100, 9)),
        payload: bytes(at, len),
        ..Seg::default()
    }
}

/// A range of the stream of host 0 in sequence numbers.
pub fn wire((from, to): (u32, u32)) -> (u32, u32) {
    (PLAIN.isn[0] + 1 + from, PLAIN.isn[0] + 1 + to)
}

/// An acknowledgement of host 1.
pub fn ack_of(at: u32, importance: u8, sack: &[(u32, u32)]) -> Seg {
    Seg {
        seq: PLAIN.isn[1] + 1,
        ack: PLAIN.isn[0] + 1 + at,
        flags: ACK,
        window: 1000,
        stamps: Some((200, 100)),
        sack: sack.iter().copied().map(wire).collect(),
        class: importance << 2,
        ..Seg::default()
    }
}

/// Where a packet of host 0 lies in its stream.
pub fn offset(seg: &Seg) -> u32 {
    seg.seq.wrapping_sub(PLAIN.isn[0] + 1)
}

impl Bench {
    pub fn new(params: ShimParams) -> Bench {
        let (shim, buffers) = (Shim::new(&params), Buffers::new(1));
        Bench { shim, now: Time::from_ms(1), version: Version::V4, buffers }
    }
    pub fn open(style: Style) -> Bench {
        let mut bench = Bench::new(ShimParams::default());
        bench.handshake(&style);
        bench
    }
    pub fn handshake(&mut self, style: &Style) {
        self.version = style.version;
        self.transmit(&syn_of(style, 0));
        self.receive(&syn_of(style, 1));
        let stamps = style.stamps.then_some((100, 9));
        assert_eq!(self.transmit(&Seg { stamps, ..data(0, 0) }).importance(), CONTROL);
        assert_eq!(self.shim.counters().tracked, 1);
    }
    pub fn outgoing(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pass(bytes, true).unwrap()
    }
    pub fn incoming(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.pass(bytes, false)
    }
    fn pass(&mut self, bytes: &[u8], leaves: bool) -> Option<Vec<u8>> {
        let id = self.buffers.take().unwrap();
        self.buffers.bytes_mut(id)[..bytes.len()].copy_from_slice(bytes);
        let (mut packet, _) = Packet::read(&self.buffers, id, 0..bytes.len());
        let mut verdict = Verdict::Pass;
        if let Some(view) = parse(bytes) {
            if leaves {
                self.shim.outgoing(self.now, &mut packet, &view, &self.buffers);
            } else {
                verdict = self.shim.incoming(self.now, &mut packet, &view, &self.buffers);
            }
        }
        let out = [packet.header.bytes(), packet.payload(&self.buffers)].concat();
        self.buffers.release(id);
        (verdict == Verdict::Pass).then_some(out)
    }
    /// A packet of the host, as it leaves.
    pub fn transmit(&mut self, seg: &Seg) -> Seg {
        let bytes = frame(self.version, 0, seg);
        read(&self.outgoing(&bytes))
    }
    /// A packet to the host, as it receives it.
    pub fn receive(&mut self, seg: &Seg) -> Option<Seg> {
        let bytes = frame(self.version, 1, seg);
        self.incoming(&bytes).map(|bytes| read(&bytes))
    }
    /// The importance of a data packet.
    pub fn send(&mut self, at: u32, len: u32) -> u8 {
        self.transmit(&data(at, len)).importance()
    }
    /// Data packets of a thousand bytes, by their numbers.
    pub fn send_blocks(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.send(number * 1000, 1000);
        }
    }
    /// The importance of an acknowledgement as the host receives it; `None`: swallowed.
    pub fn ack(&mut self, at: u32, importance: u8, sack: &[(u32, u32)]) -> Option<u8> {
        self.receive(&ack_of(at, importance, sack)).map(|seg| seg.importance())
    }
    pub fn due_at(&mut self, now: Time) -> Vec<Seg> {
        self.now = now;
        let mut frames = Vec::new();
        self.shim.due(now, &mut |bytes| frames.push(read(bytes)));
        frames
    }
    /// Frames that are due within a millisecond.
    pub fn due(&mut self) -> Vec<Seg> {
        self.due_at(self.now + Time::from_ms(1))
    }
    pub fn untracked(&self) -> Vec<Reason> {
        let counts = &self.shim.counters().untracked;
        let count = |reason: &Reason| counts.get(reason.name()).map_or(0, |count| *count as usize);
        Reason::ALL.iter().flat_map(|reason| vec![*reason; count(reason)]).collect()
    }
}
