//! Receive offload: *which segments are released upward, and when?*
//!
//! | file | what it does |
//! |---|---|
//! | `stock` | merges as the Linux kernel does |
//! | `presto` | merges by flowcell, and restores order between flowcells |
//! | `segment` | a segment that grows, and the rules of merging that both share |
//!
//! Follows Presto (He, Rozner, Agarwal, Felter, Carter, Akella: Presto: Edge-based Load Balancing
//! for Fast Datacenter Networks, SIGCOMM 2015), section 3.2, and the kernel's sources.
//!
//! # How a driver uses it
//!
//! One [`Offload`] a receive queue. It never sees bytes: a packet is a handle (`P`: the simulator's
//! packet id, a buffer's number) and an [`Arrival`], which has the fields of its headers. A flow's
//! identity `F` is the driver's (the 5-tuple, a connection), one direction of it; it is compared
//! whole, and `hash` only finds it.
//!
//! ```text
//! for each packet of the poll    offload.receive(now, &arrival, handle, &mut up)
//! at the end of every poll       offload.flush(now, &mut up)    even if the poll was empty
//! no later than deadline()       offload.flush(now, &mut up)    even without traffic
//! every millisecond or so        offload.evict(now)             forgets some of the idle flows
//! when a flow is over            offload.forget(hash, flow)     else it becomes idle some day
//! before the offload is dropped  offload.drain(&mut up)         gives back every held handle
//! ```
//!
//! `up` gets a [`Released`] for each segment: the handles in order, contiguous in sequence, and
//! what a super-segment's header needs. Of each segment all packets but the last carry `mss` bytes;
//! where there is more than one packet the IP length fits 16 bits. The sequence of calls of `up` is
//! the order in which the stack above must see the segments.
//!
//! [`Arrival::merge`] stands for all else that must be equal for two packets to merge:
//! acknowledgement number, TCP's reserved bits and window (the kernel compares the whole word that
//! the flags are in), TCP option bytes, and of the IP header TOS with its ECN bits, TTL, DF, and
//! fragments. A keyed 64-bit hash of them will do. The TCP flags and the IP identification are
//! compared here and must not be in it.
//!
//! Invariant: every handle that goes in comes out once, and none later than its wait
//! ([`PrestoGroParams`]) and a poll; nothing is allocated a packet in steady state.

mod counters;
mod presto;
mod segment;
mod stock;
#[cfg(test)]
mod tests;

pub use counters::{Counters, Sizes};
pub use presto::Presto;
pub use stock::Stock;

use crate::counters::{Count, Named};
use crate::registry::{About, PathProperty, Reason, Signal};
use crate::units::{Bytes, Time};

/// TCP's flags, at their places in the header (RFC 9293 §3.1).
pub mod tcp {
    /// The sender has no more data.
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Resets the connection.
    pub const RST: u8 = 4;
    /// Push: the receiver hands the data up at once.
    pub const PSH: u8 = 8;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 16;
    /// The urgent pointer is valid.
    pub const URG: u8 = 32;
    /// ECN echo: the receiver got a packet with CE (RFC 3168 §6.1).
    pub const ECE: u8 = 64;
    /// The sender has reduced its window for an ECN echo (RFC 3168 §6.1).
    pub const CWR: u8 = 128;
}

/// The identification of an IPv4 packet. Those of a segment's packets count up; where fragmenting
/// is forbidden they may also be all the same (RFC 6864; `inet_gro_flush` of Linux 6.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpId(u32);

impl IpId {
    /// Of a packet that has none.
    pub const NONE: IpId = IpId(u32::MAX);

    /// Of an IPv4 header.
    pub fn new(id: u16, dont_fragment: bool) -> IpId {
        IpId(u32::from(dont_fragment) << 16 | u32::from(id))
    }
    /// Whether a packet with this one may be number `place` of a segment, 1 or more, that begins
    /// with `first`; and whether all of them are the same then.
    #[inline]
    fn follows(self, first: IpId, place: usize, is_fixed: bool) -> Option<bool> {
        if self == IpId::NONE && first == IpId::NONE {
            return Some(false);
        }
        let offset = (self.0 as u16).wrapping_sub(first.0 as u16);
        let is_fixed = is_fixed || (place == 1 && first.0 >> 16 == 1 && offset == 0);
        (offset == if is_fixed { 0 } else { place as u16 }).then_some(is_fixed)
    }
}

/// A packet, as its headers describe it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<F> {
    /// One direction of a connection.
    pub flow: F,
    /// A hash of the flow.
    pub hash: u32,
    /// The path by which it came: its label, or the outer port of its tunnel.
    pub path: u32,
    /// The sequence number of its first byte, or of its SYN or FIN.
    pub seq: u32,
    /// Payload, in bytes.
    pub len: u32,
    /// Digest of all else that must be equal for two packets to merge; see the module.
    pub merge: u64,
    /// IP and TCP headers, in bytes.
    pub headers: u16,
    /// Its flowcell.
    pub flowcell: u16,
    /// Bits of [`tcp`].
    pub flags: u8,
    /// Its identification, if it is of IPv4.
    pub id: IpId,
    /// It is a segment of several packets already, or no TCP packet that may be merged: it stays by
    /// itself.
    pub is_whole: bool,
}

impl<F> Arrival<F> {
    /// The first sequence number behind it.
    #[inline]
    fn end(&self) -> u32 {
        let control = (self.flags & tcp::SYN != 0) as u32 + (self.flags & tcp::FIN != 0) as u32;
        self.seq.wrapping_add(self.len).wrapping_add(control)
    }
}

crate::named! {
    /// Why a segment was released.
    #[repr(u8)]
    pub enum Cause {
        /// A packet that begins nothing: without payload, with a flag that must not wait, or whole
        /// already.
        Single = "single",
        /// Stock: its flow's next packet did not continue it.
        Ejected = "ejected",
        /// Stock: a short packet or a flag has ended it.
        Complete = "complete",
        /// Stock: the oldest of a full bucket.
        Oldest = "oldest",
        /// Stock: the poll ended.
        PollEnd = "poll-end",
        /// Presto's case 1, same flowcell: in order, or a loss that the transport must see at once.
        SameCell = "same-cell",
        /// Case 2, a newer flowcell that begins before what is expected: a retransmission.
        Overlap = "overlap",
        /// Case 3, a newer flowcell that begins with what is expected.
        InOrder = "in-order",
        /// Case 4, a newer flowcell beyond a gap that did not fill in time.
        Timeout = "timeout",
        /// Case 5, an older flowcell: late, or a retransmission.
        Older = "older",
        /// Presto: more was held than may be; or a packet that must not wait (SYN, RST, URG) came
        /// behind it.
        Forced = "forced",
    }
}

/// A segment on its way up.
#[derive(Clone, Copy, Debug)]
pub struct Released<'a, F, P> {
    /// Its flow.
    pub flow: F,
    /// The path of its first packet.
    pub path: u32,
    /// The sequence number of its first byte.
    pub seq: u32,
    /// Payload, in bytes.
    pub bytes: u32,
    /// The payload of every packet but the last, which has at most as much: GSO's size.
    pub mss: u32,
    /// Its flowcell.
    pub flowcell: u16,
    /// Bits of [`tcp`], of all its packets.
    pub flags: u8,
    /// When its first packet came.
    pub first: Time,
    /// Why now.
    pub cause: Cause,
    /// Its packets, in order. One at least.
    pub packets: &'a [P],
}

crate::choice! {
    /// Whether packets still carry what named their path when they are merged.
    pub enum Labels {
        /// The edge has removed it: a flow has one segment.
        Stripped = "stripped",
        /// It is part of the header that must be equal: a flow has a segment a path.
        Kept = "kept",
    }
}
crate::choice! {
    /// The rules of Presto's flush.
    pub enum Rules {
        /// As published.
        Literal = "literal",
        /// So that a retransmission that overtakes what is in flight does not switch ordering off;
        /// see `presto`.
        Safe = "safe",
    }
}

crate::params! {
    /// Packets go up as they come.
    pub struct NoOffloadParams {}
}
crate::params! {
    /// The kernel's receive offload, in polls.
    pub struct StockGroParams {
        /// Packets a poll, at most. Source: the kernel's NAPI weight.
        #[within(1..)]
        pub budget: u32 = 64,
        /// A poll begins so long after a packet came to an idle queue: the NIC's interrupt
        /// coalescing. Source: common drivers settle between 20us and 30us.
        pub coalescing: Time = Time::from_us(20),
        /// Whether packets of different paths merge: "stripped", they do; "kept", a path is a flow
        /// of its own, as for the kernel where the link header or an outer port distinguishes
        /// paths. Source: the paper's results imply that labels did not part flows.
        pub labels: Labels = Labels::Stripped,
    }
}
crate::params! {
    /// Presto's receive offload, in polls. Times and gains that the published description leaves
    /// open are ours.
    pub struct PrestoGroParams {
        /// Packets a poll, at most. Source: the kernel's NAPI weight.
        #[within(1..)]
        pub budget: u32 = 64,
        /// A poll begins so long after a packet came to an idle queue: the NIC's interrupt
        /// coalescing. Source: common drivers settle between 20us and 30us.
        pub coalescing: Time = Time::from_us(20),
        /// A gap between flowcells is waited for so many times the expected delay. Source: 2 is the
        /// paper's.
        #[within(1..)]
        pub alpha: u32 = 2,
        /// A segment that grew within the expected delay divided by this waits on. Source: 2 is the
        /// paper's.
        #[within(1..)]
        pub beta: u32 = 2,
        /// One part in so many of a new sample goes into the expected delay. Source: ours.
        #[within(1..)]
        pub smoothing: u32 = 8,
        /// The expected delay of a new flow, if that is no less than the least. Source: ours.
        pub initial: Time = Time::from_us(100),
        /// The least expected delay: twice the longest poll, for what waits for a poll looks like
        /// reordering (the budget of 64 full packets takes 79us at 10 Gb/s). Results hang on it,
        /// see the mechanism's page. Source: ours.
        pub min: Time = Time::from_us(160),
        /// The largest expected delay. Source: ours.
        pub max: Time = Time::from_ms(1),
        /// After so many gaps in a row that did not fill in time the expected delay is doubled,
        /// since delays beyond the wait are never seen; 0: never. Source: ours.
        pub double_after: u32 = 8,
        /// The bytes that a flow may have waiting; beyond them what comes first in sequence goes
        /// up. Source: ours, sixteen flowcells.
        pub flow_held_max: Bytes = Bytes(1 << 20),
        /// The bytes that a receive queue may have waiting. Source: ours.
        pub held_max: Bytes = Bytes(16 << 20),
        /// A flow that was silent for longer is forgotten. Source: ours.
        pub idle: Time = Time::from_s(30),
        /// The published rules, or those that a retransmission cannot confuse. Source: literal is
        /// the paper's.
        pub rules: Rules = Rules::Literal,
    }
}

const NO_OFFLOAD: About =
    About { summary: "packets go up as they come", source: "", ..About::PLAIN };
const STOCK: About = About {
    summary: "merges packets that follow each other within a poll, as the Linux kernel does",
    source: "Linux, net/core/gro.c and net/ipv4/tcp_offload.c",
    ..About::PLAIN
};
const PRESTO: About = About {
    summary: "merges by flowcell and restores order between flowcells, so that a gap inside a \
              flowcell is loss",
    source: "He et al.: Presto: Edge-based Load Balancing for Fast Datacenter Networks, SIGCOMM \
             2015, section 3.2",
    needs: &[PathProperty::FifoPerFlowcell],
    restores: &[PathProperty::FifoPerFlow],
    reads: &[Signal::Flowcells],
    answers: Some(Reason::Reordering),
    ..About::PLAIN
};

crate::registry! {
    /// The receiver's merging of packets.
    place: "host.receive-offload", question: "which segments go up, and when?", default: None,
    params: OffloadParams;
    "none" => None { NoOffloadParams; NO_OFFLOAD },
    "stock-gro" => Stock { StockGroParams; STOCK },
    "presto-gro" => Presto { PrestoGroParams; PRESTO },
}

/// The receive offload of one queue, of whichever kind.
#[derive(Clone, Debug)]
pub enum Offload<F, P> {
    /// Hands every packet up by itself.
    None(Box<Counters>),
    /// Merges as Linux does.
    Stock(Box<Stock<F, P>>),
    /// Merges by flowcell, and holds reordered segments (Presto, SIGCOMM 2015 §3.2).
    Presto(Box<Presto<F, P>>),
}

impl<F: Copy + Eq, P: Copy> Offload<F, P> {
    /// An empty queue of the kind that `params` chooses.
    pub fn new(params: &OffloadParams) -> Self {
        match params {
            OffloadParams::None(_) => Offload::None(Box::default()),
            OffloadParams::Stock(p) => Offload::Stock(Box::new(Stock::new(p))),
            OffloadParams::Presto(p) => Offload::Presto(Box::new(Presto::new(p))),
        }
    }
    /// A packet arrives. Segments that can grow no more may be released.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        arrival: &Arrival<F>,
        packet: P,
        out: &mut impl FnMut(Released<'_, F, P>),
    ) {
        match self {
            Offload::None(counters) => segment::pass(now, arrival, packet, counters, out),
            Offload::Stock(stock) => stock.receive(now, arrival, packet, out),
            Offload::Presto(presto) => presto.receive(now, arrival, packet, out),
        }
    }
    /// A poll ends, or the deadline has come: releases what is ready, or has waited enough by
    /// `now`. A driver with packets that it has not looked at gives the time up to which it
    /// has: one of them may fill the gap.
    #[inline]
    pub fn flush(&mut self, now: Time, out: &mut impl FnMut(Released<'_, F, P>)) {
        match self {
            Offload::None(_) => {}
            Offload::Stock(stock) => stock.flush(out),
            Offload::Presto(presto) => presto.flush(now, out),
        }
    }
    /// Between polls: when [`Offload::flush`] is due without a packet; `None`: never.
    pub fn deadline(&mut self) -> Option<Time> {
        match self {
            Offload::Presto(presto) => presto.deadline(),
            _ => None,
        }
    }
    /// Forgets idle flows; it looks at some hundred a call. Returns how many it forgot.
    pub fn evict(&mut self, now: Time) -> usize {
        match self {
            Offload::Presto(presto) => presto.evict(now),
            _ => 0,
        }
    }
    /// Bounds the number of tracked flows, for a driver whose packets can be forged.
    pub fn bound(&mut self, flows: usize) {
        if let Offload::Presto(presto) = self {
            presto.bound(flows);
        }
    }
    /// Flows that are known.
    pub fn flows(&self) -> usize {
        match self {
            Offload::Presto(presto) => presto.flows(),
            _ => 0,
        }
    }
    /// Forgets a flow that is over, if nothing of it is held.
    pub fn forget(&mut self, hash: u32, flow: F) {
        if let Offload::Presto(presto) = self {
            presto.forget(hash, flow);
        }
    }
    /// Releases every held segment, without a wait for its gaps.
    pub fn drain(&mut self, out: &mut impl FnMut(Released<'_, F, P>)) {
        match self {
            Offload::None(_) => {}
            Offload::Stock(stock) => stock.flush(out),
            Offload::Presto(presto) => presto.drain(out),
        }
    }
    /// The counts since the start.
    pub fn counters(&self) -> &Counters {
        match self {
            Offload::None(counters) => counters,
            Offload::Stock(stock) => stock.counters(),
            Offload::Presto(presto) => presto.counters(),
        }
    }
}
