//! A sender whose own host refuses its segments: what Linux's TCP does when the layers below it
//! drop or complain.
//!
//! A refused segment was never sent: it stays at the head of what is unsent, and is tried again
//! with the next acknowledgement or write. With nothing in flight nothing would come, so the probe
//! timer tries (Linux's probe0): one segment, and after a refusal without a word again after twice
//! the time; after one that orders the sender to reduce its window (NET_XMIT_DROP), after the same
//! time, at most 500 ms, as Linux did until 5.0, which the slides of NRM ran. *CWR* (NET_XMIT_CN)
//! is `tcp_enter_cwr`: the window is reduced as for a mark, once a window of data, and nothing is
//! sent again. Linux spreads that reduction over a round trip; here `transport.reduction` decides.
//!
//! Invariant: while something is unsent and nothing is in flight, a refused sender's deadline is
//! set.

use super::{Next, Phase, Sender};
use crate::endpoint::tcp::Config;
use crate::endpoint::{Limited, Outgoing};
use millpond_core::congestion::Cause;
use millpond_core::{Ecn, Time};

/// Longest wait after a refusal that orders the sender to reduce its window (Linux's
/// TCP_RESOURCE_PROBE_INTERVAL).
const REFUSAL_WAIT_MAX: Time = Time::from_ms(500);

impl Limited for Sender {
    fn peek(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        let cfg = cfg.of(self.which);
        if matches!(self.phase, Phase::Open | Phase::Paced)
            && !self.held
            && self.nxt == self.una
            && self.nxt < self.written
        {
            self.begin_flight(now, cfg);
        }
        Some(match self.plan(max_len, cfg)? {
            Next::Syn => {
                let retransmission = self.syns > 0;
                Outgoing { syn: true, retransmission, ..Outgoing::new(0, 0, Ecn::NotEct) }
            }
            Next::New(len) => {
                let ecn = cfg.data_ecn;
                Outgoing { cwr: self.cwr_due, ..Outgoing::new(self.nxt, len, ecn) }
            }
            Next::Again(from, to, _) => {
                let (len, ecn) = ((to - from) as u32, cfg.retransmission_ecn);
                Outgoing { retransmission: true, ..Outgoing::new(from, len, ecn) }
            }
        })
    }

    fn packets_out(&self, cfg: &Config) -> u32 {
        ((self.nxt - self.una).div_ceil(u64::from(cfg.mss))).min(u64::from(u32::MAX)) as u32
    }

    fn is_probing(&self) -> bool {
        self.probing
    }

    fn accepted(&mut self) {
        if self.probes > 0 {
            (self.probes, self.probing) = (0, false);
            if self.una == self.nxt {
                self.deadline = Time::MAX;
            }
        }
    }

    fn refused(&mut self, now: Time, reduces: bool, cfg: &Config) {
        let waits = self.una == self.nxt && !matches!(self.phase, Phase::Closed | Phase::SynSent);
        if waits && (self.probes == 0 || self.probing) {
            // The first wait is the timer's own; a probe that was refused without a word doubles
            // it.
            self.probes = if self.probes == 0 || reduces {
                self.probes.max(1)
            } else {
                (self.probes + 1).min(16)
            };
            let base = cfg.probe_timer.max(self.rto.srtt());
            let wait = base.saturating_mul(1 << (self.probes - 1)).min(cfg.max_rto.max(base));
            let wait = if reduces { wait.min(REFUSAL_WAIT_MAX.max(base)) } else { wait };
            self.deadline = now.saturating_add(wait);
        }
        self.probing = false;
    }

    fn reduce(&mut self, now: Time, cfg: &Config) {
        let cfg = cfg.of(self.which);
        let open = matches!(self.phase, Phase::Open | Phase::Paced | Phase::Disorder);
        if open && (self.una > self.cut_until || self.cut_until == 0) {
            self.cut(Cause::Mark, self.nxt - self.una, now, cfg);
        }
    }
}

impl Sender {
    /// The timer has expired while nothing was in flight: the probe timer's time.
    pub(super) fn probe(&mut self) {
        self.probing = true;
        self.deadline = Time::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tcp::tests::config;
    use crate::endpoint::{AckIn, Endpoint};

    const MSS: u64 = 1000;

    fn cfg() -> Config {
        config(|p| {
            (p.mss, p.handshake, p.initial_window) = (Some(MSS as u32), false, 10);
            p.probe_timer = Time::from_ms(200);
        })
    }

    fn ack(upto: u64) -> AckIn<'static> {
        AckIn { ack: upto, ece: false, sack: None, stamp: Time::ZERO, hops: 0, mapping: None }
    }

    #[test]
    fn what_is_refused_stays_unsent_and_is_looked_at_again() {
        let cfg = cfg();
        let mut s = Sender::new(&cfg);
        s.write(Time::ZERO, 20 * MSS);
        let first = s.peek(Time::ZERO, 65_536, &cfg).unwrap();
        assert_eq!((first.seq, first.len, s.packets_out(&cfg)), (0, 10 * MSS as u32, 0));
        s.refused(Time::ZERO, false, &cfg);
        assert_eq!(s.peek(Time::ZERO, 65_536, &cfg), Some(first));
        s.accepted();
        assert_eq!(s.poll_send(Time::ZERO, 65_536, &cfg), Some(first));
        assert_eq!((s.packets_out(&cfg), s.retransmitted), (10, 0));
        assert_eq!(s.deadline(), s.rto(), "the retransmission timer's, not the probe timer's");
    }

    #[test]
    fn with_nothing_in_flight_the_probe_timer_tries_one_segment_and_doubles() {
        let cfg = cfg();
        let mut s = Sender::new(&cfg);
        s.write(Time::ZERO, 20 * MSS);
        let mut now = Time::ZERO;
        let mut waits = Vec::new();
        for told in [false, false, false, true, true] {
            assert!(s.peek(now, 65_536, &cfg).is_some());
            s.refused(now, told, &cfg);
            waits.push(s.deadline() - now);
            // An attempt before the timer, for another reason, leaves the timer as it is.
            s.refused(now, told, &cfg);
            assert_eq!(s.deadline() - now, *waits.last().unwrap());
            now = s.deadline();
            s.on_timer(now, &cfg);
            assert!(s.is_probing());
        }
        assert_eq!(waits, [200, 400, 800, 500, 500].map(Time::from_ms));
        assert_eq!((s.timeouts, s.retransmitted), (0, 0));
        s.accepted();
        assert_eq!(s.poll_send(now, MSS as u32, &cfg).map(|out| out.len), Some(MSS as u32));
        assert!(!s.is_probing());
    }

    #[test]
    fn with_something_in_flight_its_own_timer_stays() {
        let cfg = cfg();
        let mut s = Sender::new(&cfg);
        s.write(Time::ZERO, 20 * MSS);
        s.poll_send(Time::ZERO, 4 * MSS as u32, &cfg);
        let deadline = s.deadline();
        s.refused(Time::ZERO, true, &cfg);
        assert_eq!(s.deadline(), deadline);
    }

    #[test]
    fn the_window_is_reduced_once_a_window_of_data() {
        let cfg = cfg();
        let mut s = Sender::new(&cfg);
        s.write(Time::ZERO, 100 * MSS);
        s.poll_send(Time::ZERO, 65_536, &cfg);
        let before = s.cwnd();
        s.reduce(Time::ZERO, &cfg);
        let after = s.cwnd();
        assert!(after < before);
        s.reduce(Time::ZERO, &cfg);
        s.on_ack(Time::from_us(50), &ack(10 * MSS), &cfg);
        let grown = s.cwnd();
        s.reduce(Time::from_us(50), &cfg);
        assert_eq!(s.cwnd(), grown, "nothing that was sent after the cut is acknowledged yet");
        s.poll_send(Time::from_us(50), 65_536, &cfg);
        s.on_ack(Time::from_us(100), &ack(11 * MSS), &cfg);
        s.reduce(Time::from_us(100), &cfg);
        assert!(s.cwnd() < grown);
        assert_eq!(s.retransmitted, 0);
    }
}
