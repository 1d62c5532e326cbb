//! Proportional rate reduction (`transport.reduction`): after a loss or a mark the window comes
//! down over a round trip, not at once.
//!
//! Follows RFC 9937 §6. While the pipe is above the slow-start threshold, what leaves is to what
//! arrives as the threshold is to the flight at the beginning (step 1). Below it, as much leaves as
//! arrives, and a segment more an acknowledgement that shows no further loss (step 2). Linux does
//! the same after marks (`tcp_enter_cwr`), and after what its own host has refused.
//!
//! Invariant: during a reduction the window is the pipe and what the last acknowledgement lets out;
//! at its end it is the threshold.

use super::Sender;
use crate::endpoint::tcp::Config;

#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// RecoverFS: what was outstanding at its beginning.
    flight: u64,
    /// An acknowledgement up to here ends it.
    until: u64,
    /// Bytes delivered since (`prr_delivered`).
    delivered: u64,
    /// Bytes sent since (`prr_out`).
    pub out: u64,
}

impl Reduction {
    /// Begins now that `[una, nxt)` is outstanding.
    pub fn new(una: u64, nxt: u64) -> Reduction {
        Reduction { flight: (nxt - una).max(1), until: nxt, delivered: 0, out: 0 }
    }

    /// The bytes that may leave after an acknowledgement that delivers `delivered` bytes more and
    /// leaves `pipe`. `is_safe`: it moves SND.UNA, and shows no new loss.
    fn allowed(
        &mut self,
        delivered: u64,
        pipe: u64,
        ssthresh: u64,
        is_safe: bool,
        mss: u64,
    ) -> u64 {
        self.delivered += delivered;
        let allowed = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.out)
        } else {
            let more = if is_safe { mss } else { 0 };
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + more;
            limit.min(ssthresh - pipe)
        };
        // A retransmission leaves at once when recovery begins.
        if self.out == 0 { allowed.max(mss) } else { allowed }
    }
}

impl Sender {
    /// Bytes known to have arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.una + self.board.as_ref().map_or(0, |board| board.sacked())
    }

    /// Ends the reduction if what was outstanding at its beginning is acknowledged.
    pub(super) fn end_reduction(&mut self) {
        if self.reduction.as_ref().is_some_and(|it| self.una >= it.until) {
            self.reduction = None;
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// An acknowledgement during a reduction; `pipe` and `delivered` were so before it.
    pub(super) fn come_down(&mut self, pipe: u64, delivered: u64, advances: bool, cfg: &Config) {
        let newly = self.delivered() - delivered;
        let (now, ssthresh, mss) = (self.in_flight(), self.window.ssthresh, u64::from(cfg.mss));
        let Some(reduction) = &mut self.reduction else { return };
        if newly == 0 {
            return;
        }
        let is_safe = advances && pipe.saturating_sub(now) <= newly;
        let allowed = reduction.allowed(newly, now, ssthresh, is_safe, mss);
        self.window.cwnd = (now + allowed).max(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Twenty segments outstanding, of which a half may stay.
    fn reduction() -> Reduction {
        Reduction::new(0, 20 * MSS)
    }

    #[test]
    fn rfc9937_above_the_threshold_what_leaves_is_in_proportion() {
        let mut it = reduction();
        let mut sent = 0;
        // Each acknowledgement delivers a segment; the pipe falls by half a segment each.
        for n in 1..=10u64 {
            let allowed = it.allowed(MSS, 19 * MSS - n * MSS / 2, 10 * MSS, true, MSS);
            let whole = allowed / MSS * MSS;
            it.out += whole;
            sent += whole;
        }
        assert_eq!(sent, 5 * MSS, "a segment leaves for two that arrive");
    }

    #[test]
    fn rfc9937_below_the_threshold_as_much_leaves_as_arrives_and_one_more_if_nothing_is_lost() {
        let mut it = Reduction { out: MSS, ..reduction() };
        assert_eq!(it.allowed(MSS, 2 * MSS, 10 * MSS, false, MSS), MSS);
        it.out += MSS;
        assert_eq!(it.allowed(MSS, 2 * MSS, 10 * MSS, true, MSS), 2 * MSS);
        // Never beyond the threshold.
        assert_eq!(it.allowed(8 * MSS, 9 * MSS, 10 * MSS, true, MSS), MSS);
    }

    #[test]
    fn a_retransmission_leaves_at_once() {
        let mut it = reduction();
        assert_eq!(it.allowed(1, 19 * MSS, 10 * MSS, false, MSS), MSS);
    }
}
