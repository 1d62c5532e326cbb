//! A queue pair's receiving end: acknowledgements, NACKs, and notifications of congestion.
//!
//! **Go-back-N** takes what is next and drops the rest. Data that comes too early causes a NACK,
//! unless one for the same missing byte has left within `nack-interval`; what comes again is
//! acknowledged, as the InfiniBand Architecture Specification 1.2.1 asks (C9-110), or not
//! (`answer-duplicates`).
//!
//! **Selective** keeps what comes early. Each causes a NACK with what is missing and what has just
//! come (IRN §3.1), unless it is held already and the interval has not passed. While something
//! is missing every answer is a NACK.
//!
//! **The notification point** (DCQCN §3.1) notifies of marks by CNPs, at most one in
//! `cnp-interval`, or by a bit of the answer that a marked packet causes. Where answers are few
//! (`ack-interval`) a packet that is accepted keeps its mark for the answer that covers it; that of
//! a packet which is discarded without an answer is gone, as in HPCC's and TLT's released
//! simulators (`RdmaHw::ReceiveUdp`).
//!
//! Invariant: each byte is delivered once and in order; what is asked for is answered at once.

use super::{Config, Recovery};
use crate::endpoint::{AckOut, Arrived, DataIn, Receives};
use millpond_core::packet::Kind;
use millpond_core::ranges::Ranges;
use millpond_core::{Mapping, Sack, Time};

#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The next byte expected.
    next: u64,
    /// The bytes that have come beyond it, of a selective one.
    held: Ranges,
    /// The last NACK's missing byte; `u64::MAX`: none was sent. It is not repeated before then.
    nacked: u64,
    nack_at: Time,
    cnp_at: Time,
    /// A mark that no CNP has reported.
    marked: bool,
    /// A mark of a packet that was accepted, and that no answer has covered.
    echoes: bool,
    /// When the newest packet was handed down.
    stamp: Time,
    /// Which of the run's RDMA transports it follows.
    which: u8,
}

impl Receiver {
    /// Nothing received, of a queue pair that follows RDMA transport `which`.
    pub fn new(which: u8) -> Receiver {
        Receiver { nacked: u64::MAX, which, ..Receiver::default() }
    }

    /// The configuration that all queue pairs like it share.
    pub fn config<'a>(&self, cfg: &'a [Config]) -> &'a Config {
        &cfg[usize::from(self.which)]
    }

    fn in_turn(&mut self, now: Time, p: &DataIn, cfg: &Config) -> Option<(Kind, Sack)> {
        let end = p.seq + u64::from(p.len);
        if p.seq > self.next {
            let is_repeated = self.nacked == self.next && now < self.nack_at;
            if is_repeated {
                return None;
            }
            (self.nacked, self.nack_at) = (self.next, now.saturating_add(cfg.nack_interval));
            return Some((Kind::Nack, Sack::default()));
        }
        let is_new = end > self.next;
        self.next = self.next.max(end);
        let asks = if is_new { p.asks } else { cfg.answers_duplicates };
        asks.then_some((Kind::RdmaAck, Sack::default()))
    }

    fn in_any_order(&mut self, now: Time, p: &DataIn, cfg: &Config) -> Option<(Kind, Sack)> {
        let end = p.seq + u64::from(p.len);
        if p.seq > self.next {
            if p.len > 0 && self.held.insert(p.seq, end) == 0 && now < self.nack_at {
                return None;
            }
            self.nack_at = now.saturating_add(cfg.nack_interval);
            let mut sack = Sack { count: 1, ..Sack::default() };
            sack.blocks[0] = (p.seq, end);
            return Some((Kind::Nack, sack));
        }
        let is_new = end > self.next;
        self.next = self.next.max(end);
        if let Some((_, end)) = self.held.around(self.next) {
            self.next = end;
        }
        self.held.remove_below(self.next);
        let kind = if self.held.is_empty() { Kind::RdmaAck } else { Kind::Nack };
        (!is_new || p.asks || kind == Kind::Nack).then_some((kind, Sack::default()))
    }

    fn answer(&mut self, kind: Kind, sack: Sack, is_marked: bool, cfg: &Config) -> AckOut {
        let ece = cfg.echoes_by_bit && (is_marked | std::mem::take(&mut self.echoes));
        AckOut { kind, ack: self.next, ece, sack, stamp: self.stamp }
    }

    /// The CNP that is due for a mark.
    fn notify(&mut self, now: Time, cfg: &Config) -> Option<AckOut> {
        let interval = cfg.cnp_interval?;
        if !self.marked || now < self.cnp_at {
            // The first packet after the interval reports a mark within it.
            return None;
        }
        self.marked = false;
        self.cnp_at = now.saturating_add(interval);
        Some(AckOut {
            kind: Kind::Cnp,
            ack: self.next,
            ece: false,
            sack: Sack::default(),
            stamp: self.stamp,
        })
    }
}

impl Receives for Receiver {
    type Config = [Config];

    fn on_data(&mut self, now: Time, p: DataIn, cfg: &[Config]) -> Arrived {
        let cfg = self.config(cfg);
        self.stamp = p.stamp;
        let out_of_order = p.seq > self.next;
        let is_marked = p.ce || (out_of_order && cfg.cnp_on_reordering);
        self.marked |= is_marked;
        let before = self.next;
        let answer = match cfg.recovery {
            Recovery::GoBackN { .. } => self.in_turn(now, &p, cfg),
            Recovery::Selective { .. } => self.in_any_order(now, &p, cfg),
        };
        self.echoes |= is_marked && answer.is_none() && self.next > before;
        let answer = answer.map(|(kind, sack)| self.answer(kind, sack, is_marked, cfg));
        Arrived { in_order_upto: self.next, out_of_order, acks: [answer, self.notify(now, cfg)] }
    }

    fn expected(&self, _: Option<Mapping>) -> u64 {
        self.next
    }

    fn acknowledge(&mut self, is_marked: bool, cfg: &[Config]) -> Option<AckOut> {
        let cfg = self.config(cfg);
        let kind = if self.held.is_empty() { Kind::RdmaAck } else { Kind::Nack };
        Some(self.answer(kind, Sack::default(), is_marked, cfg))
    }

    fn echoes(&self, cfg: &[Config]) -> bool {
        self.config(cfg).has_clock()
    }

    fn priority(&self, kind: Kind, cfg: &[Config]) -> Option<u8> {
        self.config(cfg).priority(kind)
    }
}
