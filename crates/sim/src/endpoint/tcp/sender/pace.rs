//! The time of the next departure, as a control law has it, or Linux's pacing rate
//! (`transport.pacing`).
//!
//! A connection that may have to wait is `Paced` where others are `Open`, so that their common path
//! asks nothing of this. So is one that follows another transport than most of its run: the common
//! path has one only. While it waits it is `held`: it plans nothing, and its deadline is the time
//! at which it may send. The retransmission timer, which cannot repair anything before then, is put
//! off to that time at least.
//!
//! Invariant: nothing leaves before the law's next departure; whoever is held has a deadline.

use super::tail::Tail;
use super::{Phase, Sender};
use crate::endpoint::tcp::Config;
use millpond_core::Time;

/// Linux's pacing rate, in percent of a window a round trip, while the window is below half of the
/// slow-start threshold (`tcp_pacing_ss_ratio`).
const STARTING_PERCENT: u64 = 200;
/// The same from there on (`tcp_pacing_ca_ratio`).
const STEADY_PERCENT: u64 = 120;
/// Linux paces nothing until a connection has sent so many packets.
const UNPACED_PACKETS: u64 = 10;
/// A segment holds what the pacing rate gives in a second divided by this (`sk_pacing_shift` = 10).
const SEGMENTS_A_SECOND: u128 = 1024;
/// Packets of a segment at least (`tcp_min_tso_segs`).
const PACKETS_MIN: u64 = 2;

impl Sender {
    /// The phase of a connection that is open and misses nothing.
    pub(super) fn calm(cfg: &Config) -> Phase {
        if cfg.apart { Phase::Paced } else { Phase::Open }
    }

    /// Ends the waiting, for whatever happens now; the deadline is the retransmission timer's
    /// again.
    pub(super) fn let_go(&mut self) {
        self.disarm();
        self.deferring = false;
        if !self.unschedule_probe() && self.tail == Tail::Due {
            self.tail = Tail::Idle; // what happens now decides anew
        }
        if std::mem::take(&mut self.held) {
            self.deadline = self.rto_at;
        }
    }

    /// The most that one segment may hold, of `max_len` bytes: a packet where packets leave one at
    /// a time; where Linux's rate paces, what this gives in about a millisecond.
    pub(super) fn segment_max(&self, max_len: u32, cfg: &Config) -> u32 {
        let srtt = self.rto.srtt();
        match (cfg.spaces, cfg.pacing) {
            (true, _) => cfg.mss,
            (false, true) if srtt > Time::ZERO => {
                let second = u128::from(Time::from_s(1).as_ps());
                let bytes =
                    self.paced_window() * second / (u128::from(srtt.as_ps()) * SEGMENTS_A_SECOND);
                let least = (PACKETS_MIN * u64::from(cfg.mss)).into();
                bytes.max(least).min(max_len.into()) as u32
            }
            _ => max_len,
        }
    }

    /// Notes how long a segment that leaves now takes at Linux's pacing rate.
    pub(super) fn note_gap(&mut self, len: u32, cfg: &Config) {
        let is_unpaced = self.nxt < UNPACED_PACKETS * u64::from(cfg.mss);
        let gap = u128::from(len) * u128::from(self.rto.srtt().as_ps())
            / (self.paced_window().max(1) * 1000);
        self.gap_ns = if is_unpaced { 0 } else { gap.min(u32::MAX.into()) as u32 };
    }

    /// The bytes that Linux's pacing rate gives in a smoothed round trip.
    fn paced_window(&self) -> u128 {
        let percent = if self.window.cwnd < self.window.ssthresh / 2 {
            STARTING_PERCENT
        } else {
            STEADY_PERCENT
        };
        u128::from(self.window.cwnd.max(self.in_flight())) * u128::from(percent) / 100
    }

    /// Takes over the law's window, if it keeps one, and waits if the last segment left too short a
    /// time ago.
    pub(super) fn pace(&mut self, now: Time, cfg: &Config) {
        let next = match self.last_send {
            Time::MAX => Time::ZERO,
            last => {
                let paced = last.saturating_add(Time::from_ns(self.gap_ns.into()));
                self.control.next_departure(last, &cfg.terms).max(paced)
            }
        };
        // RFC 6582's recovery counts duplicate ACKs into the window: they stand for segments that
        // have left the network.
        let inflated =
            self.phase == Phase::Recovery && self.board.is_none() && next <= self.last_send;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::endpoint::tcp::tests::config;
    use millpond_core::congestion::Window;
    use millpond_scenario::transport::Pacing;

    const MSS: u64 = 1000;

    /// A window of 50 packets, a round trip of 10 ms.
    #[test]
    fn the_rate_falls_from_two_windows_a_round_trip_to_one_and_a_fifth_at_half_of_the_threshold() {
        let cfg =
            config(|p| (p.mss, p.handshake, p.pacing) = (Some(MSS as u32), false, Pacing::Linux));
        let mut sender = Sender::established(0, &cfg);
        sender.on_rtt(Time::from_ms(10), &cfg);
        (sender.una, sender.nxt) = (10 * MSS, 10 * MSS);
        for (threshold, gap_ns, most) in
            [(102, 500_000, 9765), (100, 833_333, 5859), (50, 833_333, 5859)]
        {
            sender.window = Window { cwnd: 50 * MSS, ssthresh: threshold * MSS };
            sender.note_gap(5 * MSS as u32, &cfg);
            assert_eq!(
                (sender.gap_ns, sender.segment_max(65_536, &cfg)),
                (gap_ns, most),
                "{threshold}"
            );
        }
        sender.nxt = 90 * MSS;
        assert_eq!(
            sender.segment_max(65_536, &cfg),
            9375,
            "what is in flight counts if it is more: 80 packets"
        );
    }
}
