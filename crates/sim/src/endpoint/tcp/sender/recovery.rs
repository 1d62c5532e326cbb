//! A sender's reaction to ACKs when something is missing, and to silence: RFC 6675 §5, RFC 6582
//! §3.2, RFC 5681 §3.1.
//!
//! Invariant: a window of data is answered for by one cut, and recovery ends when what was
//! outstanding at its beginning is acknowledged; but Reno's ends with the first new ACK, and the
//! next three duplicates cut again.

use super::tail::Tail;
use super::{Phase, Sender, Why};
use crate::endpoint::tcp::Config;
use crate::endpoint::{AckIn, Outgoing};
use millpond_core::congestion::Cause;
use millpond_core::{Sack, Time};
use millpond_scenario::transport::RttSamples;

impl Sender {
    #[cold]
    pub(super) fn on_ack_else(&mut self, now: Time, ack: &AckIn, cfg: &Config) {
        let cfg = cfg.of(self.which);
        if matches!(self.phase, Phase::Closed | Phase::SynSent) || ack.ack > self.nxt {
            return;
        }
        self.let_go();
        let (flight, delivered) = (self.in_flight(), self.delivered());
        let sacked = match ack.sack {
            Some(sack) if sack.count > 0 && cfg.sack => {
                self.update_board(sack, self.una.max(ack.ack), cfg)
            }
            _ => 0,
        };
        // A duplicate ACK: RFC 6675 §2 with SACK, RFC 5681 §2 without.
        let duplicate =
            if cfg.sack { sacked > 0 } else { ack.ack == self.una && self.nxt > self.una };
        let mut bytes = 0;
        if ack.ack > self.una {
            let (deadline, partial) = (
                self.deadline,
                self.phase == Phase::Recovery && ack.ack < self.recover && !cfg.reno,
            );
            bytes = self.advance(now, ack, self.measures(ack.ack, cfg), cfg);
            if partial && !cfg.sack && std::mem::replace(&mut self.partial, true) {
                // RFC 6582 §3.2 (3): only the first partial ACK restarts the timer.
                self.deadline = deadline;
            }
            if let Some(board) = &mut self.board {
                board.advance(self.una);
            }
            self.resend = self.resend.max(self.una);
            self.dupacks = 0;
        }
        self.acknowledge_sent(now, ack, cfg);
        self.end_reduction();
        if self.phase != Phase::Recovery {
            self.steer(now, bytes, flight, ack, cfg);
        }
        match self.phase {
            Phase::Recovery => self.in_recovery(now, bytes, duplicate, ack, cfg),
            Phase::Loss if self.una < self.recover => {}
            Phase::Loss => self.suspect(now, false, cfg),
            _ => self.suspect(now, duplicate, cfg),
        }
        self.come_down(flight, delivered, bytes > 0, cfg);
        self.pace(now, cfg);
        self.arm(now);
        self.schedule_probe(now, cfg);
    }

    /// Whether an ACK up to `upto`, beyond `una`, gives a sample (`rtt-samples`). Data outstanding
    /// at a timeout ends at `recover`; in fast recovery the segment at `una` was sent again if it
    /// lies below HighRxt.
    fn measures(&self, upto: u64, cfg: &Config) -> bool {
        match (cfg.rtt_samples, self.phase) {
            (RttSamples::EveryAck, _) => true,
            (RttSamples::SentOnce, Phase::Loss) => upto > self.recover,
            (RttSamples::SentOnce, Phase::Recovery) => match &self.rack {
                Some(rack) => !rack.first_is_again(),
                None => self.board.as_ref().is_some_and(|board| board.high_rxt <= self.una),
            },
            (RttSamples::SentOnce, _) => true,
        }
    }

    fn update_board(&mut self, sack: &Sack, una: u64, cfg: &Config) -> u64 {
        self.board.get_or_insert_default().update(sack, una, self.nxt, cfg)
    }

    /// Outside of recovery: counts a duplicate ACK, and begins to recover if that means loss (RFC
    /// 6675 §5 (1), (2), RFC 6582 §3.2 (1)).
    fn suspect(&mut self, now: Time, duplicate: bool, cfg: &Config) {
        self.dupacks += u32::from(duplicate);
        let (una, nxt) = (self.una, self.nxt);
        let mut missing = self.dupacks > 0;
        let mut lost = self.dupacks >= cfg.dupack_threshold;
        if let Some(rack) = &self.rack {
            missing |= self.board.as_ref().is_some_and(|board| !board.is_empty());
            lost = rack.has_lost();
        } else if let Some(board) = &mut self.board {
            board.begin(una, nxt);
            missing |= !board.is_empty();
            // RFC 6675 asks only at duplicate ACKs; where the last SACKs came before recovery's
            // end, none would follow.
            lost |= board.first_is_lost(una);
        } else {
            // Duplicates of what a timeout or a recovery has sent again must not look like a new
            // loss.
            lost &= una > self.recover || self.recover == 0 || cfg.reno;
        }
        self.phase = if missing { Phase::Disorder } else { Sender::calm(cfg) };
        if lost {
            self.recover_fast(now, cfg);
        }
    }

    /// Fast retransmit and fast recovery (RFC 6675 §5 (4), RFC 6582 §3.2 (2)).
    pub(super) fn recover_fast(&mut self, now: Time, cfg: &Config) {
        let flight = self.nxt - self.una;
        if self.una >= self.cut_until || cfg.reno {
            let window = self.window.cwnd.min(cfg.window_limit);
            self.cut(Cause::Loss, if cfg.reno { window } else { flight.min(window) }, now, cfg);
        } else {
            // This window of data has been answered for by a mark already.
            if self.reduction.is_none() {
                self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            }
            self.cut_until = self.nxt;
        }
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.first_due = true;
        self.partial = false;
        if self.board.is_none() {
            self.window.cwnd += u64::from(self.dupacks) * u64::from(cfg.mss);
        }
    }

    fn in_recovery(&mut self, now: Time, bytes: u64, duplicate: bool, ack: &AckIn, cfg: &Config) {
        self.show(now, bytes, ack, cfg); // a window is cut once
        let mss = u64::from(cfg.mss);
        if cfg.reno && bytes > 0 {
            self.first_due = false;
            self.window.cwnd = self.window.ssthresh; // RFC 5681 §3.2 (6)
            return self.suspect(now, false, cfg);
        }
        if self.una >= self.recover {
            self.first_due = false;
            if self.board.is_none() {
                // RFC 6582 §3.2 (3), option 1: no burst.
                self.window.cwnd = self.window.ssthresh.min((self.nxt - self.una).max(mss) + mss);
            }
            return self.suspect(now, duplicate && cfg.sack, cfg);
        }
        if let Some(board) = &mut self.board {
            if self.rack.is_none() {
                board.set_pipe(self.una, self.nxt); // RFC 6675 §5 (B.2)
            }
        } else if bytes > 0 {
            // RFC 6582 §3.2 (3), a partial ACK: the next hole, and the window less what has left
            // the network.
            self.first_due = true;
            let deflated = self.window.cwnd.saturating_sub(bytes);
            self.window.cwnd = (if bytes >= mss { deflated + mss } else { deflated }).max(mss);
        } else if duplicate {
            self.window.cwnd += mss; // RFC 5681 §3.2 (4)
        }
    }

    /// Sends `[from, to)` again.
    pub(super) fn send_again(
        &mut self,
        now: Time,
        from: u64,
        to: u64,
        why: Why,
        cfg: &Config,
    ) -> Outgoing {
        let (una, nxt) = (self.una, self.nxt);
        if self.rack.is_some() {
            self.note_again(now, from, to);
        } else if let Some(board) = &mut self.board {
            match why {
                Why::First => board.first_sent(to, una, nxt),
                Why::Hole => {
                    board.high_rxt = to;
                    board.pipe += to - from;
                }
                Why::Rescue => {
                    board.rescue_sent(self.recover);
                    board.pipe += to - from;
                }
                Why::Timeout | Why::Probe | Why::Lost => {}
            }
        }
        match why {
            Why::First => self.first_due = false,
            Why::Timeout => self.resend = to,
            Why::Probe => self.probe_sent(now),
            Why::Lost => self.lost_sent(now, from, to),
            Why::Hole | Why::Rescue => {}
        }
        self.retransmitted += 1;
        self.last_send = now;
        if self.deadline == Time::MAX {
            self.deadline = now.saturating_add(self.rto.current());
        }
        let (len, ecn) = ((to - from) as u32, cfg.retransmission_ecn);
        Outgoing { retransmission: true, ..Outgoing::new(from, len, ecn) }
    }

    /// The retransmission timer expires (RFC 6298 (5.4)–(5.6), RFC 5681 §3.1).
    #[cold]
    pub(super) fn expire(&mut self, now: Time, cfg: &Config) {
        let cfg = cfg.of(self.which);
        if self.expire_reordering(now, cfg) {
            return;
        }
        if self.unschedule_probe() {
            self.tail = Tail::Due;
            return;
        }
        self.let_go();
        if now < self.deadline {
            self.arm(now);
            return; // only the pace's time has come
        }
        if self.probes > 0 && self.una == self.nxt {
            return self.probe();
        }
        self.timeouts += 1;
        if matches!(self.phase, Phase::SynSent | Phase::Closed) {
            self.phase = Phase::Closed;
            self.rto.back_off_syn(cfg);
            self.deadline = now.saturating_add(self.rto.current());
            return;
        }
        let held = self.window.ssthresh;
        let flight = match self.phase {
            Phase::Loss => self.in_flight(),
            Phase::Recovery => self.nxt - self.una,
            _ => (self.nxt - self.una).min(self.window.cwnd),
        };
        let again = self.expiries > 0;
        let recovering = self.phase == Phase::Recovery;
        self.cut(Cause::Timeout, flight, now, cfg);
        if again {
            self.window.ssthresh = held; // this segment has been sent again by the timer already
        } else if recovering {
            // FlightSize has grown during the recovery.
            self.window.ssthresh = self.window.ssthresh.min(held);
        }
        self.phase = Phase::Loss;
        self.tail = Tail::Idle;
        self.recover = self.nxt;
        self.resend = self.una;
        self.dupacks = 0;
        self.first_due = self.time_out_sent(now);
        self.expiries = self.expiries.saturating_add(1);
        self.rto.back_off(cfg);
        self.deadline = now.saturating_add(self.rto.current());
        self.pace(now, cfg);
    }
}
