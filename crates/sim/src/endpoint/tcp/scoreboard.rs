//! The receiver's reports by SACK, and what follows from them: RFC 6675 §4.
//!
//! `IsLost` falls with the sequence number: what is below a lost octet and not SACKed is lost, too.
//! So one number, [`Scoreboard::lost_below`], holds it for all octets, and `SetPipe` is a sum over
//! ranges, not over octets.
//!
//! Invariant: ranges lie between HighACK and HighData; `sacked` is their sum.

use super::Config;
use millpond_core::Sack;
use millpond_core::ranges::Ranges;

/// A sender's scoreboard. "HighACK" is the sender's `una`, "HighData" its `nxt`.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    ranges: Ranges,
    /// Bytes in `ranges`.
    sacked: u64,
    /// Octets below it that are not SACKed are lost (IsLost).
    lost_below: u64,
    /// Octets below it have been retransmitted in this recovery, or are SACKed (HighRxt).
    pub(super) high_rxt: u64,
    /// A rescue retransmission is allowed once HighACK has passed it (RescueRxt).
    rescue_rxt: u64,
    /// Octets in the network, as estimated at the last ACK and counted on since.
    pub(super) pipe: u64,
}

/// The result of RFC 6675's NextSeg().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextSeg {
    /// Rule 1 or 3: this range again.
    Hole(u64, u64),
    /// Rule 2: data never sent.
    New,
    /// Rule 4: the end of the outstanding data again, once a recovery.
    Rescue(u64, u64),
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes that the receiver holds above HighACK.
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Update(): takes over the blocks of an ACK. Returns how many bytes are newly known to be
    /// held.
    pub(super) fn update(&mut self, sack: &Sack, una: u64, nxt: u64, cfg: &Config) -> u64 {
        let mut added = 0;
        for &(from, to) in &sack.blocks[..usize::from(sack.count.min(4))] {
            let (from, to) = (from.max(una), to.min(nxt));
            if from < to {
                added += self.ranges.insert(from, to);
            }
        }
        if added > 0 {
            self.sacked += added;
            self.find_lost(cfg);
        }
        added
    }

    /// IsLost(): an octet is lost once DupThresh separate ranges, or more than (DupThresh − 1)·SMSS
    /// bytes, are SACKed above it. Walks down from the highest range and stops at the first that
    /// makes it true.
    fn find_lost(&mut self, cfg: &Config) {
        let bytes_needed = u64::from(cfg.dupack_threshold - 1) * u64::from(cfg.mss);
        let (mut ranges, mut bytes) = (0, 0);
        self.lost_below = 0;
        for (from, to) in self.ranges.iter().rev() {
            ranges += 1;
            bytes += to - from;
            if ranges >= cfg.dupack_threshold || bytes > bytes_needed {
                self.lost_below = from;
                break;
            }
        }
    }

    pub(super) fn advance(&mut self, una: u64) {
        self.sacked -= self.ranges.remove_below(una);
    }

    /// IsLost(HighACK + 1).
    pub(super) fn first_is_lost(&self, una: u64) -> bool {
        self.lost_below > una
    }

    /// SetPipe(): octets not SACKed and not lost, and octets retransmitted.
    pub(super) fn set_pipe(&mut self, una: u64, nxt: u64) {
        let lost_below = self.lost_below.max(una);
        let high_rxt = self.high_rxt.max(una);
        let not_sacked = (nxt - una) - self.sacked;
        let lost = (lost_below - una) - self.ranges.sum_below(lost_below);
        let again = (high_rxt - una) - self.ranges.sum_below(high_rxt);
        self.pipe = not_sacked - lost + again;
    }

    /// Octets between HighACK and `to` that are not SACKed: what is in the network after a timeout,
    /// when all that lies above `to` counts as lost.
    pub(super) fn resent(&self, una: u64, to: u64) -> u64 {
        (to - una) - self.ranges.sum_below(to)
    }

    /// A recovery begins, or what an earlier one retransmitted no longer counts.
    pub(super) fn begin(&mut self, una: u64, nxt: u64) {
        (self.high_rxt, self.rescue_rxt) = (una, una);
        self.set_pipe(una, nxt);
    }

    /// The first segment presumed lost has been retransmitted, up to `to` (§5 (4.3), (4.4)).
    pub(super) fn first_sent(&mut self, to: u64, una: u64, nxt: u64) {
        (self.high_rxt, self.rescue_rxt) = (to, to);
        self.set_pipe(una, nxt);
    }

    /// The rescue retransmission has been sent.
    pub(super) fn rescue_sent(&mut self, recovery_point: u64) {
        self.rescue_rxt = recovery_point;
    }

    /// The first hole at or above `at`, no longer than a segment.
    pub(super) fn hole(&self, at: u64, nxt: u64, mss: u32) -> (u64, u64) {
        let (from, to) = self.ranges.hole(at, nxt);
        (from, to.min(from + u64::from(mss)))
    }

    /// NextSeg(); `unsent`: whether there is data never sent that the receiver's window allows.
    pub(super) fn next_seg(&self, una: u64, nxt: u64, unsent: bool, mss: u32) -> Option<NextSeg> {
        let (from, to) = self.hole(self.high_rxt.max(una), nxt, mss);
        if from < self.lost_below {
            return Some(NextSeg::Hole(from, to)); // rule 1
        }
        if unsent {
            return Some(NextSeg::New); // rule 2
        }
        let highest = self.ranges.end().unwrap_or(una);
        if from < highest {
            return Some(NextSeg::Hole(from, to)); // rule 3
        }
        // Rule 4. Data sent after the last SACKed byte is the highest hole; where that byte is the
        // last of all, no hole is above HighRxt, and the highest is below the last range.
        if una < self.rescue_rxt || una == nxt {
            return None;
        }
        let (bottom, top) =
            if highest < nxt { (highest.max(una), nxt) } else { self.highest_hole(una) };
        (bottom < top).then(|| NextSeg::Rescue(bottom.max(top.saturating_sub(u64::from(mss))), top))
    }

    /// The hole below the highest range.
    fn highest_hole(&self, una: u64) -> (u64, u64) {
        let mut ranges = self.ranges.iter().rev();
        let top = ranges.next().map_or(una, |r| r.0);
        (ranges.next().map_or(una, |r| r.1), top)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    const MSS: u64 = 1000;

    fn sack(blocks: &[(u64, u64)]) -> Sack {
        let mut sack = Sack { count: blocks.len() as u8, ..Sack::default() };
        for (i, &(from, to)) in blocks.iter().enumerate() {
            sack.blocks[i] = (from * MSS, to * MSS);
        }
        sack
    }

    fn board(blocks: &[(u64, u64)], nxt: u64) -> Scoreboard {
        let cfg = config(|p| p.mss = Some(MSS as u32));
        let mut board = Scoreboard::default();
        board.update(&sack(blocks), 0, nxt * MSS, &cfg);
        board.begin(0, nxt * MSS);
        board
    }

    #[test]
    fn is_lost_by_three_ranges_or_by_more_than_two_segments() {
        assert!(!board(&[(1, 2), (3, 4)], 10).first_is_lost(0));
        assert_eq!(board(&[(1, 2), (3, 4), (5, 6)], 10).lost_below, MSS);
        assert_eq!(board(&[(1, 3)], 10).lost_below, 0);
        assert_eq!(board(&[(1, 4)], 10).lost_below, MSS);
        assert_eq!(board(&[(1, 2), (5, 8)], 10).lost_below, 5 * MSS);
    }

    #[test]
    fn pipe_counts_what_is_neither_sacked_nor_lost_and_what_was_sent_again() {
        // Sent 0–10; held 2–3 and 5–8: 0, 1, 3, 4 lost; 8, 9 on their way.
        let mut b = board(&[(2, 3), (5, 8)], 10);
        assert_eq!(b.pipe, 2 * MSS);
        b.first_sent(MSS, 0, 10 * MSS);
        assert_eq!(b.pipe, 3 * MSS);
        b.high_rxt = 4 * MSS;
        b.set_pipe(0, 10 * MSS);
        assert_eq!(b.pipe, 5 * MSS);
        b.advance(3 * MSS);
        b.set_pipe(3 * MSS, 10 * MSS);
        assert_eq!(b.pipe, 3 * MSS);
    }

    #[test]
    fn next_seg_takes_lost_holes_then_new_data_then_other_holes_then_one_rescue() {
        let mut b = board(&[(2, 3), (5, 8), (9, 10)], 11);
        let mss = MSS as u32;
        let next = |b: &Scoreboard, unsent| b.next_seg(0, 11 * MSS, unsent, mss);
        let hole = |at: u64| Some(NextSeg::Hole(at * MSS, (at + 1) * MSS));
        for at in [0, 1, 3, 4] {
            assert_eq!(next(&b, true), hole(at));
            b.high_rxt = (at + 1) * MSS;
        }
        assert_eq!(next(&b, true), Some(NextSeg::New));
        assert_eq!(next(&b, false), hole(8));
        b.high_rxt = 9 * MSS;
        assert_eq!(next(&b, false), Some(NextSeg::Rescue(10 * MSS, 11 * MSS)));
        b.rescue_sent(11 * MSS);
        assert_eq!(next(&b, false), None);
    }
}
