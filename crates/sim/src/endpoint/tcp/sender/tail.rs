//! The tail loss probe: RFC 8985 §7, for senders with SACK.
//!
//! Where a flight's end stays unacknowledged for two round trips, one segment goes out that makes
//! the receiver report what it holds, so that fast recovery begins and the timer need not. A
//! connection that may probe takes the uncommon path, as those that pace do. While a probe is
//! scheduled, the deadline is the probe's and the retransmission timer's is kept beside it. Not
//! built: §7.4, the cut of the window where the probe alone has repaired a loss.
//!
//! Invariant: one probe a flight: none until what was sent when it left is acknowledged; none in
//! recovery.

use super::{Next, Phase, Sender, Why, whole_segments};
use crate::endpoint::tcp::Config;
use crate::endpoint::tcp::config::JIFFY_LEAST;
use millpond_core::Time;

/// Shortest wait for a probe. Source: that of TLT's authors' simulator.
const SHORTEST_PTO: Time = Time::from_us(10);
/// The wait before any sample of the round-trip time (RFC 8985 §7.2).
const UNKNOWN_PTO: Time = Time::from_s(1);

/// Where the probe of a flight stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// None is scheduled.
    Idle,
    Scheduled,
    Due,
    /// It was sent; the next may come once what was sent by then is acknowledged.
    Sent,
}

impl Sender {
    /// Takes back a probe that is scheduled: the deadline is the retransmission timer's again.
    /// Returns whether one was.
    pub(super) fn unschedule_probe(&mut self) -> bool {
        if self.tail != Tail::Scheduled {
            return false;
        }
        self.tail = Tail::Idle;
        self.deadline = self.rto_at;
        true
    }

    /// Schedules a probe, if the flight may have one (RFC 8985 §7.2).
    pub(super) fn schedule_probe(&mut self, now: Time, cfg: &Config) {
        if self.tail == Tail::Sent && self.una >= self.probed {
            self.tail = Tail::Idle;
        }
        let nothing_missing = self.board.as_ref().is_none_or(|board| board.is_empty());
        let calm = self.phase == Phase::Paced && nothing_missing && !self.held;
        if !cfg.tlp
            || self.tail != Tail::Idle
            || !calm
            || self.una == self.nxt
            || self.deadline == Time::MAX
            || self.awaits_reordering()
        {
            return;
        }
        let one = self.nxt - self.una <= u64::from(cfg.mss);
        let delayed = if one && cfg.delayed_ack > 1 { cfg.delayed_ack_timeout } else { Time::ZERO };
        let wait = match self.rto.srtt() {
            Time::ZERO => UNKNOWN_PTO,
            srtt => srtt.saturating_mul(2).max(SHORTEST_PTO).saturating_add(delayed),
        };
        self.tail = Tail::Scheduled;
        self.rto_at = self.deadline;
        // Linux expects that the acknowledgement of a lone packet is delayed.
        let least = if one { cfg.min_rto } else { JIFFY_LEAST };
        self.deadline = self.deadline.min(cfg.expires(now, wait, least));
    }

    /// The probe: new data if the receiver's window allows any, whatever the congestion window,
    /// else the last segment.
    pub(super) fn plan_probe(&self, cfg: &Config) -> Option<Next> {
        let allowed = cfg.window_limit.saturating_sub(self.nxt - self.una);
        let new = whole_segments(allowed, self.written - self.nxt, cfg.mss, cfg);
        if new > 0 {
            return Some(Next::New(new));
        }
        let last = (self.nxt - 1) % u64::from(cfg.mss) + 1;
        let from = self.nxt.saturating_sub(last).max(self.una);
        (from < self.nxt).then_some(Next::Again(from, self.nxt, Why::Probe))
    }

    /// The probe has left: the retransmission timer starts again (RFC 8985 §7.3).
    pub(super) fn probe_sent(&mut self, now: Time) {
        self.tail = Tail::Sent;
        self.probed = self.nxt;
        self.deadline = now.saturating_add(self.rto.current());
    }
}
