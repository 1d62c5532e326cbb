//! The segment that a sender would send next: a pure question, asked of each phase by its own
//! rules.
//!
//! Invariant: new data fits `window_limit` and whatever of the congestion window the phase grants;
//! a retransmission is at most a segment and covers nothing that the receiver is known to hold.

use super::tail::Tail;
use super::{Next, Phase, Sender, Why, whole_segments};
use crate::endpoint::tcp::Config;
use crate::endpoint::tcp::scoreboard::NextSeg;

impl Sender {
    /// The next segment, if the windows allow one, of as much as the pace allows at a time.
    pub(super) fn plan(&self, max_len: u32, cfg: &Config) -> Option<Next> {
        let max_len = self.segment_max(max_len, cfg);
        if self.held {
            return None;
        }
        if self.tail == Tail::Due {
            return self.plan_probe(cfg);
        }
        match self.phase {
            Phase::Closed => (self.written > 0).then_some(Next::Syn),
            Phase::SynSent => None,
            Phase::Open | Phase::Paced => {
                self.plan_new(self.window.cwnd, self.nxt - self.una, max_len, cfg)
            }
            Phase::Disorder => self.plan_disorder(max_len, cfg),
            Phase::Recovery | Phase::Loss if self.rack.is_some() => self.plan_lost(max_len, cfg),
            Phase::Recovery => self.plan_recovery(max_len, cfg),
            Phase::Loss => self.plan_loss(max_len, cfg),
        }
    }

    /// New data, with `flight` of a window of `window` in use and within the buffers.
    fn plan_new(&self, window: u64, flight: u64, max_len: u32, cfg: &Config) -> Option<Next> {
        let allowed = cfg.window_limit.saturating_sub(self.nxt - self.una);
        let room = window.saturating_sub(flight).min(allowed);
        let len = whole_segments(room, self.written - self.nxt, max_len, cfg);
        (len > 0).then_some(Next::New(len))
    }

    /// Limited transmit: as far as the pipe has room (RFC 6675 §5 (3)), or a segment for each of
    /// the first two duplicate ACKs (RFC 3042).
    fn plan_disorder(&self, max_len: u32, cfg: &Config) -> Option<Next> {
        let cwnd = self.window.cwnd;
        match &self.board {
            Some(board) if cfg.limited_transmit => self.plan_new(cwnd, board.pipe, max_len, cfg),
            None if cfg.limited_transmit => {
                let extra = u64::from(self.dupacks.min(2)) * u64::from(cfg.mss);
                self.plan_new(cwnd + extra, self.nxt - self.una, max_len, cfg)
            }
            _ => self.plan_new(cwnd, self.nxt - self.una, max_len, cfg),
        }
    }

    /// By RACK: what is lost in the order of the stream, then new data, within the pipe.
    fn plan_lost(&self, max_len: u32, cfg: &Config) -> Option<Next> {
        let (cwnd, flight) = (self.window.cwnd, self.in_flight());
        let lost = self.rack.as_ref().and_then(|rack| rack.first_lost(cfg.mss));
        if self.first_due
            && let Some((from, to)) = lost
        {
            return Some(Next::Again(from, to, Why::Lost));
        }
        if self.phase == Phase::Recovery && cwnd < flight + u64::from(cfg.mss) {
            return None; // RFC 6675 §5 (C)
        }
        match lost {
            Some((from, to)) if flight + (to - from) > cwnd => None,
            Some((from, to)) => Some(Next::Again(from, to, Why::Lost)),
            None => self.plan_new(cwnd, flight, max_len, cfg),
        }
    }

    fn plan_recovery(&self, max_len: u32, cfg: &Config) -> Option<Next> {
        let Some(board) = &self.board else {
            if self.first_due {
                let to = self.nxt.min(self.una + u64::from(cfg.mss));
                return Some(Next::Again(self.una, to, Why::First));
            }
            return self.plan_new(self.window.cwnd, self.nxt - self.una, max_len, cfg);
        };
        if self.first_due {
            let (from, to) = board.hole(self.una, self.nxt, cfg.mss);
            return Some(Next::Again(from, to, Why::First)); // §5 (4.3)
        }
        if self.window.cwnd < board.pipe + u64::from(cfg.mss) {
            return None; // §5 (C)
        }
        let new = self.plan_new(self.window.cwnd, board.pipe, max_len, cfg);
        match board.next_seg(self.una, self.nxt, new.is_some(), cfg.mss)? {
            NextSeg::New => new,
            NextSeg::Hole(from, to) => Some(Next::Again(from, to, Why::Hole)),
            NextSeg::Rescue(from, to) => Some(Next::Again(from, to, Why::Rescue)),
        }
    }

    /// After a timeout: the holes from the start, then new data (RFC 5681 §3.1, RFC 6675 §5.1).
    fn plan_loss(&self, max_len: u32, cfg: &Config) -> Option<Next> {
        let flight = self.in_flight();
        let (from, to) = match &self.board {
            Some(board) => board.hole(self.resend, self.nxt, cfg.mss),
            None => (self.resend, self.nxt.min(self.resend + u64::from(cfg.mss))),
        };
        if from < to {
            return (flight + (to - from) <= self.window.cwnd).then_some(Next::Again(
                from,
                to,
                Why::Timeout,
            ));
        }
        self.plan_new(self.window.cwnd, flight, max_len, cfg)
    }
}
