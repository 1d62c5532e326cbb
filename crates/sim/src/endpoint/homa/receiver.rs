//! A message that comes in: what has come of it, what is granted, and what is asked for again.
//!
//! **Grants.** RTTbytes come without one. When its host's [`Schedule`](super::Schedule) has a turn
//! for it, a message is granted up to `grant-bytes` beyond what has come, if less than RTTbytes are
//! granted and have not come.
//!
//! **RESEND.** When nothing of a message has come for `resend-interval` although something may be
//! sent, each range that is missing of that is asked for. A BUSY counts as something that has come.
//! After `abort-after` such intervals in a row the message is given up, until more of it comes.
//!
//! Invariant: while something that may be sent has not come, and the message is not given up, the
//! deadline is set.

use super::Config;
use super::sender::Asked;
use crate::endpoint::{AckOut, Arrived, Beside, Receives};
use millpond_core::packet::{Body, Packet};
use millpond_core::ranges::Ranges;
use millpond_core::{Mapping, Time};

/// The kind of a piece that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Of a message that is not whole.
    Part,
    /// The last one that was missing.
    Last,
    /// Of a message that was whole before.
    Late,
}

/// A piece of a message: `len` bytes from `offset` on of message `number`, which has `length`.
#[derive(Clone, Copy, Debug)]
pub struct PieceIn {
    pub number: u16,
    pub length: u32,
    pub offset: u32,
    pub len: u32,
}

/// A receiver's answer when it is asked for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    Done,
    Unknown,
    /// Some of it is, and this may be sent.
    Granted {
        /// The first byte that may not.
        upto: u32,
        priority: u8,
    },
}

/// A connection's receiving end: its present message.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Its number; before the first nothing is known of any.
    number: u16,
    length: u32,
    received: Ranges,
    /// Bytes that have come.
    bytes: u32,
    /// The first byte that is missing.
    next: u32,
    granted: u32,
    priority: u8,
    is_known: bool,
    /// Bytes of the messages before it.
    before: u64,
    /// RESENDs in a row without an answer.
    silences: u32,
    asks: bool,
    deadline: Time,
    aborted: u32,
    /// Which of the run's Homa transports it follows.
    which: u8,
}

impl Receiver {
    /// Nothing received, of a connection that follows Homa transport `which`.
    pub fn new(which: u8) -> Receiver {
        Receiver { deadline: Time::MAX, which, ..Receiver::default() }
    }

    /// The common part of all like it.
    pub fn config<'a>(&self, cfg: &'a [Config]) -> &'a Config {
        &cfg[usize::from(self.which)]
    }
    /// Bytes delivered in order, of all messages.
    pub fn delivered(&self) -> u64 {
        self.before + u64::from(self.next)
    }
    /// Bytes of the present message that have not come.
    pub fn remaining(&self) -> u32 {
        self.length - self.bytes
    }
    /// Whether some of it may not be sent without a grant that is not given yet.
    pub fn wants_grants(&self) -> bool {
        self.is_known && self.granted < self.length
    }
    pub fn number(&self) -> u16 {
        self.number
    }
    /// A piece of a message has arrived.
    pub fn on_piece(&mut self, now: Time, piece: &PieceIn, cfg: &[Config]) -> Came {
        let PieceIn { number, length, offset, len } = *piece;
        let cfg = self.config(cfg);
        if self.is_known && (number.wrapping_sub(self.number) as i16) < 0 {
            return Came::Late;
        }
        if !self.is_known || number != self.number {
            self.before += u64::from(self.length);
            *self = Receiver {
                number,
                length,
                is_known: true,
                ..Receiver {
                    before: self.before,
                    aborted: self.aborted,
                    ..Receiver::new(self.which)
                }
            };
            self.granted = cfg.unscheduled(length);
        }
        if self.remaining() == 0 {
            return Came::Late;
        }
        let end = offset.saturating_add(len).min(self.length);
        self.bytes += self.received.insert(u64::from(offset.min(end)), u64::from(end)) as u32;
        if let Some((0, upto)) = self.received.first() {
            self.next = upto as u32;
        }
        self.restart_silence(now, cfg);
        if self.remaining() > 0 {
            return Came::Part;
        }
        self.deadline = Time::MAX;
        Came::Last
    }

    /// The sender has not forgotten the message.
    pub fn on_busy(&mut self, now: Time, number: u16, cfg: &[Config]) {
        if self.is_known && number == self.number && self.remaining() > 0 {
            self.restart_silence(now, self.config(cfg));
        }
    }

    /// Its answer for a message that is asked for.
    pub fn stands(&self, number: u16) -> Stands {
        let ahead = number.wrapping_sub(self.number) as i16;
        if !self.is_known || ahead > 0 {
            Stands::Unknown
        } else if ahead < 0 || self.remaining() == 0 {
            Stands::Done
        } else {
            Stands::Granted { upto: self.granted, priority: self.priority }
        }
    }

    /// Its turn to be granted, with this priority: up to where, if that is new.
    pub fn grant(&mut self, now: Time, priority: u8, cfg: &[Config]) -> Option<u32> {
        let cfg = self.config(cfg);
        if !self.wants_grants() || self.granted.saturating_sub(self.bytes) >= cfg.rtt_bytes {
            return None;
        }
        let upto =
            (u64::from(self.bytes) + u64::from(cfg.grant_bytes)).min(u64::from(self.length)) as u32;
        if upto <= self.granted {
            return None;
        }
        (self.granted, self.priority) = (upto, priority);
        if self.deadline == Time::MAX {
            self.deadline = now.saturating_add(cfg.resend_interval);
        }
        Some(upto)
    }

    /// Whether RESENDs are to leave now; the answer is `true` once.
    pub fn takes_asks(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }

    /// The ranges that may be sent and have not come.
    pub fn missing(&self, cfg: &[Config]) -> Vec<Asked> {
        let own = self.config(cfg);
        let of_message = if self.granted > own.unscheduled(self.length) {
            self.priority
        } else {
            own.unscheduled_priority(self.length)
        };
        let priority = own.resend_priority.unwrap_or(of_message);
        let (mut at, mut all) = (0, Vec::new());
        let end = u64::from(self.granted);
        for (from, to) in self.received.iter().chain([(end, end)]) {
            if from.min(end) > at {
                all.push(Asked { from: at as u32, len: (from.min(end) - at) as u32, priority });
            }
            at = at.max(to);
        }
        all
    }

    /// Whether the message is given up, so that it takes no turn of others.
    pub fn is_given_up(&self, cfg: &[Config]) -> bool {
        self.deadline == Time::MAX
            && self.config(cfg).abort_after.is_some_and(|(count, _)| self.silences >= count)
    }

    fn restart_silence(&mut self, now: Time, cfg: &Config) {
        self.silences = 0;
        self.deadline = now.saturating_add(cfg.resend_interval);
    }
}

impl Receives for Receiver {
    type Config = [Config];

    fn on_packet(
        &mut self,
        now: Time,
        packet: &Packet,
        slot: u32,
        cfg: &[Config],
    ) -> (Option<Arrived>, Option<Beside>) {
        match packet.body {
            Body::HomaData { offset, length, number, .. } => {
                let is_ahead = offset > self.next;
                let piece = PieceIn { number, length, offset, len: u32::from(packet.payload) };
                let came = self.on_piece(now, &piece, cfg);
                let out_of_order = is_ahead && came == Came::Part;
                let arrived = Arrived { out_of_order, ..Arrived::so_far(self.delivered()) };
                let done = Body::Done { slot, number };
                (Some(arrived), (came != Came::Part).then(|| Beside::new(now, done)))
            }
            Body::Ping { number, .. } => {
                let body = match self.stands(number) {
                    Stands::Done => Body::Done { slot, number },
                    Stands::Unknown => Body::Unknown { slot, number },
                    Stands::Granted { upto, priority } => {
                        Body::Grant { upto, slot, number, priority }
                    }
                };
                (None, Some(Beside::new(now, body)))
            }
            Body::Busy { number, .. } => {
                self.on_busy(now, number, cfg);
                (None, None)
            }
            _ => (None, None),
        }
    }

    /// The first byte of the present message that is missing.
    fn expected(&self, _: Option<Mapping>) -> u64 {
        u64::from(self.next)
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_timer(&mut self, now: Time, cfg: &[Config]) -> Option<(AckOut, Option<u8>)> {
        if now < self.deadline {
            return None;
        }
        let cfg = self.config(cfg);
        if self.bytes >= self.granted {
            // It waits for grants that are this host's to give.
            self.deadline = Time::MAX;
        } else if cfg.abort_after.is_some_and(|(count, _)| self.silences >= count) {
            self.aborted += 1;
            self.deadline = Time::MAX;
        } else {
            self.silences += 1;
            self.asks = true;
            self.deadline = now.saturating_add(cfg.resend_interval);
        }
        None
    }

    fn aborted(&self) -> u32 {
        self.aborted
    }
}
