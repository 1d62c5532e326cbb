//! How a sender stands.

use super::*;

impl Sender {
    /// Bytes acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.una
    }
    /// Bytes written.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }
    /// Whether something was written and all of it is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.una == self.written && self.written > 0
    }
    /// Bytes believed to be in the network: RFC 6675's pipe where there are SACKs; after a timeout,
    /// what was sent since.
    pub fn in_flight(&self) -> u64 {
        match (self.phase, &self.board) {
            (Phase::Disorder | Phase::Recovery, Some(board)) => board.pipe,
            (Phase::Loss, Some(board)) if self.rack.is_some() => board.pipe,
            (Phase::Loss, Some(board)) => board.resent(self.una, self.resend),
            (Phase::Loss, None) => self.resend - self.una,
            _ => self.nxt - self.una,
        }
    }
    /// The congestion window in bytes. During RFC 6582's recovery it is inflated.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.window.cwnd
    }
    /// The slow-start threshold in bytes; `u64::MAX` at first.
    #[inline]
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }
    /// The smoothed round-trip time, zero before the first sample.
    pub fn srtt(&self) -> Time {
        self.rto.srtt()
    }
    /// The retransmission timeout now.
    pub fn rto(&self) -> Time {
        self.rto.current()
    }
    /// Its counts.
    #[inline]
    pub fn counters(&self) -> Counters {
        Counters { retransmitted: self.retransmitted, timeouts: self.timeouts }
    }
    /// Its state, seen from outside.
    pub fn standing(&self, cfg: &Config) -> Standing {
        let told = self.control.metrics(&cfg.of(self.which).terms);
        Standing {
            state: match self.phase {
                Phase::Open | Phase::Paced => "open",
                Phase::Disorder => "disorder",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
                Phase::Closed | Phase::SynSent => "syn-sent",
            },
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            in_flight: self.in_flight(),
            law: told
                .into_iter()
                .filter_map(|(quantity, value)| Some((quantity.name, value?)))
                .collect(),
        }
    }
}
