//! The time of the next departure, as a control law has it.
//!
//! A connection that may have to wait is `Paced` where others are `Open`, so that their common path
//! asks nothing of this. So is one that follows another transport than most of its run: the common
//! path knows one only. While it waits it is `held`: it plans nothing, and its deadline is the time
//! at which it may send. The retransmission timer, which cannot repair anything before then, is put
//! off to that time at least.
//!
//! Invariant: nothing leaves before the law's next departure; whoever is held has a deadline.

use super::tail::Tail;
use super::{Phase, Sender};
use crate::endpoint::tcp::Config;
use millpond_core::Time;

impl Sender {
    /// The phase of a connection that is open and misses nothing.
    pub(super) fn calm(cfg: &Config) -> Phase {
        if cfg.apart { Phase::Paced } else { Phase::Open }
    }

    /// Ends the waiting, for whatever happens now; the deadline is the retransmission timer's again.
    pub(super) fn let_go(&mut self) {
        if !self.unschedule_probe() && self.tail == Tail::Due {
            self.tail = Tail::Idle; // what happens now decides anew
        }
        if std::mem::take(&mut self.held) {
            self.deadline = self.rto_at;
        }
    }

    /// Takes over the law's window, if it keeps one, and waits if the last segment left too short a
    /// time ago.
    pub(super) fn pace(&mut self, now: Time, cfg: &Config) {
        let next = match self.last_send {
            Time::MAX => Time::ZERO,
            last => self.control.next_departure(last, &cfg.terms),
        };
        // RFC 6582's recovery counts duplicate ACKs into the window: they stand for segments that
        // have left the network.
        let inflated = self.phase == Phase::Recovery && self.board.is_none() && next <= self.last_send;
        if let Some(window) = self.control.window(&cfg.terms)
            && !inflated
        {
            self.window.cwnd = window;
        }
        if next <= now {
            return;
        }
        let repair = self.first_due || (self.phase == Phase::Loss && self.resend == self.una);
        self.rto_at = match self.deadline {
            Time::MAX => Time::MAX,
            _ if repair => next.saturating_add(self.rto.current()),
            at => at.max(next),
        };
        self.held = true;
        self.deadline = next;
    }
}
