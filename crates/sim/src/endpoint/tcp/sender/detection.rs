//! A sender whose losses RACK detects (`transport.loss-detection`): what it notes, and the
//! reordering timer.
//!
//! Only the detection differs from RFC 6675's recovery: the window is cut once a window of data,
//! and what is lost goes out before new data, within the window less the pipe. So a lost
//! retransmission goes out again without another cut. RFC 8985 §9.3 asks for one where there is no
//! PRR; Linux, which has PRR, makes none. A retransmission of the first segment restarts the
//! retransmission timer, as in Linux (`tcp_xmit_retransmit_queue`).
//!
//! While the reordering timer runs, the deadline is the earlier of both timers and the
//! retransmission timer's is kept beside it. It does not run while the pace holds the sender, which
//! could send nothing.
//!
//! Invariant: the pipe of the scoreboard is RACK's after every acknowledgement and timeout; no
//! probe is scheduled while the reordering timer runs.

use super::tail::Tail;
use super::{Phase, Sender};
use crate::endpoint::AckIn;
use crate::endpoint::tcp::Config;
use crate::endpoint::tcp::config::JIFFY_LEAST;
use crate::endpoint::tcp::rack::Rack;
use millpond_core::Time;

impl Sender {
    /// New data of `len` bytes has left.
    pub(super) fn note_new(&mut self, now: Time, len: u32, cfg: &Config) {
        if !cfg.rack {
            return;
        }
        self.board.get_or_insert_default();
        let srtt = self.rto.srtt();
        let rack = self.rack.get_or_insert_with(|| Box::new(Rack::new(srtt)));
        rack.send(self.nxt - u64::from(len), self.nxt, now);
    }

    /// `[from, to)` leaves again.
    pub(super) fn note_again(&mut self, now: Time, from: u64, to: u64) {
        if let (Some(rack), Some(board)) = (&mut self.rack, &mut self.board) {
            let before = rack.pipe();
            rack.send_again(from, to, now);
            board.pipe += rack.pipe() - before;
        }
    }

    /// A lost segment has left again.
    pub(super) fn lost_sent(&mut self, now: Time, from: u64, to: u64) {
        self.first_due = false;
        self.resend = self.resend.max(to);
        if from == self.una {
            self.deadline = now.saturating_add(self.rto.current());
        }
    }

    /// Takes over what an ACK, which `una` follows already, reports of what was sent.
    pub(super) fn acknowledge_sent(&mut self, now: Time, ack: &AckIn, cfg: &Config) {
        if let Some(rack) = &mut self.rack {
            rack.acknowledge(now, self.una, ack.sack, ack.stamp);
            self.detect(now, cfg);
        }
    }

    /// Marks what is lost, and counts the pipe.
    fn detect(&mut self, now: Time, cfg: &Config) {
        let recovering =
            matches!(self.phase, Phase::Recovery | Phase::Loss) && self.una < self.recover;
        let (Some(rack), Some(board)) = (&mut self.rack, &mut self.board) else { return };
        let segments = board.sacked().div_ceil(u64::from(cfg.mss));
        let eager = recovering || segments >= u64::from(cfg.dupack_threshold);
        rack.detect(now, rack.window(eager, self.rto.srtt()));
        if rack.reorder_at != Time::MAX {
            let wait = rack.reorder_at.saturating_sub(now);
            rack.reorder_at = cfg.expires(now, wait, JIFFY_LEAST);
        }
        board.pipe = rack.pipe();
        debug_assert_eq!(rack.outstanding() + board.sacked(), self.nxt - self.una);
        self.first_due &= rack.has_lost();
    }

    /// The retransmission timer has expired. Returns whether RACK detects losses, so that the first
    /// segment leaves whatever the window.
    pub(super) fn time_out_sent(&mut self, now: Time) -> bool {
        let (Some(rack), Some(board)) = (&mut self.rack, &mut self.board) else { return false };
        rack.time_out(now);
        board.pipe = rack.pipe();
        rack.has_lost()
    }

    /// Whether the reordering timer runs, or will once the pace allows.
    pub(super) fn awaits_reordering(&self) -> bool {
        self.rack.as_ref().is_some_and(|rack| rack.reorder_at != Time::MAX)
    }

    /// Lets the deadline count the reordering timer in.
    pub(super) fn arm(&mut self, now: Time) {
        let Some(rack) = &mut self.rack else { return };
        if rack.reorder_at == Time::MAX
            || rack.armed
            || self.held
            || self.tail == Tail::Scheduled
            || self.deadline == Time::MAX
        {
            return;
        }
        rack.armed = true;
        self.rto_at = self.deadline;
        self.deadline = self.deadline.min(rack.reorder_at.max(now));
    }

    /// Takes that back: the deadline is the retransmission timer's again.
    pub(super) fn disarm(&mut self) {
        if let Some(rack) = &mut self.rack
            && std::mem::take(&mut rack.armed)
        {
            self.deadline = self.rto_at;
        }
    }

    /// The deadline has passed: if that was the reordering timer's, looks for losses again, and
    /// begins to recover from them. Returns whether it was.
    pub(super) fn expire_reordering(&mut self, now: Time, cfg: &Config) -> bool {
        if self.rack.as_ref().is_none_or(|rack| rack.reorder_at > now) {
            return false;
        }
        self.let_go();
        self.detect(now, cfg);
        let lost = self.rack.as_ref().is_some_and(|rack| rack.has_lost());
        if lost && matches!(self.phase, Phase::Paced | Phase::Disorder) {
            self.recover_fast(now, cfg);
        }
        self.pace(now, cfg);
        self.arm(now);
        true
    }
}
