//! A window below one segment: when the next segment may leave. Only Swift has one.
//!
//! A connection that may have to wait is `Paced` where others are `Open`, so that their common path asks nothing of this.
//! So is one that follows another transport than most of its run: the common path knows one only.
//! While it waits it is `held`: it plans nothing, and its deadline is the time at which it may send; the retransmission
//! timer, which cannot repair anything before then, is put off to that time at least.
//!
//! Invariant: below one segment, at most one leaves every round-trip time / window; whoever is held has a deadline.

use super::tail::Tail;
use super::{Phase, Sender};
use crate::endpoint::tcp::congestion::Congestion;
use crate::endpoint::tcp::{AckIn, Config};
use millpond_core::Time;

impl Sender {
    /// The phase of a connection that is open and misses nothing.
    pub(super) fn calm(cfg: &Config) -> Phase {
        if cfg.apart { Phase::Paced } else { Phase::Open }
    }

    /// Gives Swift the delay on an ACK of `bytes` more. Returns whether this is Swift, whose window follows nothing else.
    pub(super) fn take_delay(&mut self, now: Time, bytes: u64, ack: &AckIn, cfg: &Config) -> bool {
        let Congestion::Swift(swift) = &mut self.congestion else { return false };
        swift.on_ack(now, bytes, now.saturating_sub(ack.stamp), ack.hops, cfg);
        true
    }

    /// Ends the waiting, for whatever happens now; the deadline is the retransmission timer's again.
    pub(super) fn let_go(&mut self) {
        if !self.unschedule_probe() && self.tail == Tail::Due {
            self.tail = Tail::Idle; // what happens now decides anew
        }
        if std::mem::take(&mut self.held)
            && let Congestion::Swift(swift) = &self.congestion
        {
            self.deadline = swift.rto_at;
        }
    }

    /// Takes over Swift's window, and waits if the last segment left too short a time ago.
    pub(super) fn pace(&mut self, now: Time, cfg: &Config) {
        let Congestion::Swift(swift) = &mut self.congestion else { return };
        let gap = swift.gap();
        // RFC 6582's recovery counts duplicate ACKs into the window: they stand for segments that have left the network.
        let inflated = self.phase == Phase::Recovery && self.board.is_none() && gap == Time::ZERO;
        if !inflated {
            self.window.cwnd = swift.bytes(cfg);
        }
        let gate = if self.last_send == Time::MAX { Time::ZERO } else { self.last_send.saturating_add(gap) };
        if gate <= now {
            return;
        }
        let repair = self.first_due || (self.phase == Phase::Loss && self.resend == self.una);
        swift.rto_at = match self.deadline {
            Time::MAX => Time::MAX,
            _ if repair => gate.saturating_add(self.rto.current()),
            at => at.max(gate),
        };
        self.held = true;
        self.deadline = gate;
    }
}
