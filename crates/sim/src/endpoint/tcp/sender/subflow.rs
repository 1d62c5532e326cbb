//! MPTCP's questions to a TCP that is one of its subflows.
//!
//! A subflow is given bytes when it can send them. It never has any unsent, so nothing of the
//! stream waits behind its window.

use super::{Phase, Sender};
use crate::endpoint::tcp::Config;
use crate::endpoint::{Endpoint, Outgoing};
use millpond_core::Time;
use millpond_core::congestion::Path;

impl Sender {
    /// The next segment, where `more` bytes could be written. Bytes that do not leave are not.
    pub fn offer(&mut self, now: Time, more: u64, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        let written = self.written;
        self.written += more;
        let out = self.poll_send(now, max_len, cfg);
        self.written = written.max(self.nxt);
        out
    }

    /// Whether its window could have room for more; it may turn out to be too little.
    pub fn has_room(&self, cfg: &Config) -> bool {
        let window = self.window.cwnd + 2 * u64::from(cfg.mss); // what limited transmit adds
        !self.held && self.phase != Phase::SynSent && self.in_flight() < window
    }

    /// Whether the other end has answered.
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Closed | Phase::SynSent)
    }

    /// The path that the control laws of the others are shown of it; without what a recovery counts
    /// into the window.
    pub fn path(&self) -> Path {
        let cwnd = match self.phase {
            Phase::Recovery => self.window.cwnd.min(self.window.ssthresh),
            _ => self.window.cwnd,
        };
        Path { cwnd, rtt: self.rto.srtt(), quality: self.control.quality() }
    }

    /// Shows its law all subflows, of which it is number `own`.
    pub fn couple(&mut self, own: usize, paths: &[Path], cfg: &Config) {
        self.control.couple(own, paths, &cfg.terms);
    }
}
