//! Packets that come in: which have come, and when they are acknowledged.
//!
//! An ACK leaves at once if the packet is the connection's first, was marked, asks for it, or came
//! before; if it closes the last gap and one before it has asked; and when so many bytes have come
//! since the last. It has the next number expected, and a bitmap from the packet's own number on
//! where that was marked or has asked, otherwise from 63 before it. A packet that was trimmed is
//! answered by a NACK, or by an ACK if it had come already.
//!
//! Invariant: payload counts as delivered when every packet before it has come.

use super::Config;
use crate::endpoint::{Arrived, Beside, Receives};
use millpond_core::packet::{Body, Kind, Packet, Selective, flags};
use millpond_core::{Ecn, Mapping, Time};
use std::collections::VecDeque;

/// Bits of an ACK's map.
const BITS: u32 = 64;

/// The answer to a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Quietly,
    /// An ACK: the next number, and the rest.
    Ack(u32, Selective),
    Nack,
}

/// A packet of data that arrives, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn {
    pub psn: u32,
    pub len: u16,
    /// Its bytes on the wire.
    pub size: u16,
    pub value: u16,
    pub is_marked: bool,
    /// Whether it asks for an ACK.
    pub asks: bool,
    pub is_trimmed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u32,
    /// By number from `next` on: payload and one, or nothing.
    beyond: VecDeque<u32>,
    /// How many of these have come.
    ahead: u32,
    /// Bytes on the wire that have come, of each packet once.
    bytes: u64,
    /// Of which an ACK has reported.
    reported: u64,
    delivered: u64,
    has_asked: bool,
    is_new: bool,
    /// Which of the run's transports of this family it follows.
    which: u8,
}

impl Receiver {
    pub fn new(which: u8) -> Receiver {
        Receiver { is_new: true, which, ..Receiver::default() }
    }

    /// The common part of all like it.
    pub fn config<'a>(&self, cfg: &'a [Config]) -> &'a Config {
        &cfg[usize::from(self.which)]
    }
    /// Whether a packet has come.
    fn has(&self, psn: u32) -> bool {
        psn < self.next
            || self.beyond.get((psn - self.next) as usize).is_some_and(|payload| *payload > 0)
    }
    /// A packet arrives.
    pub fn on_piece(&mut self, data: &PacketIn, cfg: &[Config]) -> Came {
        let is_late = self.has(data.psn);
        if data.is_trimmed {
            return if is_late { self.ack(data) } else { Came::Nack };
        }
        if !is_late {
            self.bytes += u64::from(data.size);
        }
        let is_new = std::mem::take(&mut self.is_new);
        let closes = !is_late && self.take(data);
        self.has_asked |= data.asks;
        let wants = is_new
            || data.is_marked
            || data.asks
            || is_late
            || closes && self.has_asked
            || self.bytes - self.reported >= self.config(cfg).ack_bytes;
        if wants { self.ack(data) } else { Came::Quietly }
    }

    /// Takes a packet that has not come before. Whether it closes the last gap.
    fn take(&mut self, data: &PacketIn) -> bool {
        let at = (data.psn - self.next) as usize;
        if self.beyond.len() <= at {
            self.beyond.resize(at + 1, 0);
        }
        self.beyond[at] = u32::from(data.len) + 1;
        self.ahead += 1;
        let had_gap = self.ahead > 1;
        while let Some(payload) = self.beyond.front().copied().filter(|payload| *payload > 0) {
            self.beyond.pop_front();
            self.delivered += u64::from(payload - 1);
            self.next += 1;
            self.ahead -= 1;
        }
        had_gap && self.ahead == 0
    }

    fn ack(&mut self, data: &PacketIn) -> Came {
        self.reported = self.bytes;
        if self.ahead == 0 {
            self.has_asked = false;
        }
        let from_itself = data.is_marked || data.asks;
        let base = match from_itself {
            true => data.psn,
            false => data.psn.saturating_sub(BITS - 1).max(self.next.saturating_add(1)),
        };
        self.acknowledgement(base, data.value)
    }

    /// The answer to a probe: an ACK of all that has come.
    pub fn probed(&mut self, value: u16) -> Came {
        self.reported = self.bytes;
        self.acknowledgement(self.next, value)
    }

    /// An ACK with the map that begins at a number.
    fn acknowledgement(&self, base: u32, value: u16) -> Came {
        let map = (0..BITS).filter(|bit| base.checked_add(*bit).is_some_and(|psn| self.has(psn)));
        let bitmap = map.fold(0, |all, bit| all | 1 << bit);
        let (bytes, ahead) = (self.bytes, self.ahead);
        Came::Ack(self.next, Selective { bytes, bitmap, base, ahead, value })
    }
}

impl Receives for Receiver {
    type Config = [Config];

    fn on_packet(
        &mut self,
        _: Time,
        packet: &Packet,
        slot: u32,
        cfg: &[Config],
    ) -> (Option<Arrived>, Option<Beside>) {
        let is_marked = packet.ecn() == Ecn::Ce;
        let (came, cause, value, is_ahead) = match packet.body {
            Body::UetData { psn, value, .. } => {
                let data = PacketIn {
                    psn,
                    len: packet.payload,
                    size: packet.size,
                    value,
                    is_marked,
                    asks: packet.has(flags::ASKS),
                    is_trimmed: packet.has(flags::TRIMMED),
                };
                let is_ahead = psn > self.next && !data.is_trimmed;
                (self.on_piece(&data, cfg), psn, value, is_ahead)
            }
            Body::UetProbe { psn, value, .. } => (self.probed(value), psn, value, false),
            _ => return (None, None),
        };
        let arrived = Arrived { out_of_order: is_ahead, ..Arrived::so_far(self.delivered) };
        let (body, selective) = match came {
            Came::Quietly => return (Some(arrived), None),
            Came::Ack(next, selective) => (Body::UetAck { next, cause, slot }, Some(selective)),
            Came::Nack => (Body::UetNack { psn: cause, slot, value }, None),
        };
        let flags = packet.flags & (flags::RETRANSMISSION | flags::LAST_HOP)
            | (if is_marked { flags::ECE } else { 0 })
            | (if packet.kind() == Kind::UetProbe { flags::ASKS } else { 0 });
        let answer = Beside { body, stamp: packet.stamp, value: Some(value), flags, selective };
        (Some(arrived), Some(answer))
    }

    /// Payload that has come with all before it.
    fn expected(&self, _: Option<Mapping>) -> u64 {
        self.delivered
    }
}
