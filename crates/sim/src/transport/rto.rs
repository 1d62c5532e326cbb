//! The retransmission timeout: RFC 6298 §2, with the clock's granularity G of a picosecond.
//!
//! Every ACK that advances gives a sample, since it echoes a time (RFC 7323 §4.1); Karn's rule is not needed. The gains
//! are not divided by the samples of a round trip, which RFC 7323 appendix G proposes and few do.
//!
//! Invariant: `current` lies in `[min_rto, max_rto]` once there is a sample, unless it is pinned.

use super::Config;
use millpond_core::Time;
use millpond_scenario::transport::RtoEstimator;

/// One connection's timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rto {
    /// Smoothed round-trip time; `Time::MAX` before the first sample.
    srtt: Time,
    /// Round-trip time variation.
    rttvar: Time,
    /// The timeout as backed off.
    current: Time,
}

impl Rto {
    /// Before any sample, for a SYN (2.1).
    pub(super) fn new(cfg: &Config) -> Rto {
        Rto { srtt: Time::MAX, rttvar: Time::ZERO, current: cfg.initial_rto.min(cfg.max_rto) }
    }

    /// Before any sample, on a connection that is open already.
    pub(super) fn for_data(cfg: &Config) -> Rto {
        Rto { current: cfg.fixed_rto.unwrap_or(cfg.initial_rto.min(cfg.max_rto)), ..Rto::new(cfg) }
    }

    /// The timeout now.
    #[inline]
    pub(super) fn current(&self) -> Time {
        self.current
    }

    /// The smoothed round-trip time, zero before the first sample.
    #[inline]
    pub(super) fn srtt(&self) -> Time {
        if self.srtt == Time::MAX { Time::ZERO } else { self.srtt }
    }

    /// Takes a sample (2.2, 2.3), which also ends the backing off.
    #[inline]
    pub(super) fn sample(&mut self, rtt: Time, cfg: &Config) {
        match cfg.rto_estimator {
            RtoEstimator::Rfc6298 => self.rfc6298(rtt),
        }
        self.current = match cfg.fixed_rto {
            None => self.srtt.saturating_add(self.rttvar * 4).max(cfg.min_rto).min(cfg.max_rto),
            Some(fixed) => fixed,
        };
    }

    #[inline]
    fn rfc6298(&mut self, rtt: Time) {
        if self.srtt == Time::MAX {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
            return;
        }
        let deviation = if rtt > self.srtt { rtt - self.srtt } else { self.srtt - rtt };
        self.rttvar = self.rttvar - self.rttvar / 4 + deviation / 4;
        self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
    }

    /// The timer of data has expired (5.5).
    pub(super) fn back_off(&mut self, cfg: &Config) {
        if cfg.fixed_rto.is_none() {
            self.back_off_syn(cfg);
        }
    }

    /// The timer of a SYN has expired (5.5); a pinned timeout is for data only.
    pub(super) fn back_off_syn(&mut self, cfg: &Config) {
        self.current = self.current.saturating_mul(2).min(cfg.max_rto);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    #[test]
    fn rfc6298_first_sample_is_r_and_half_r_then_gains_of_an_eighth_and_a_quarter() {
        let cfg = config(|p| p.min_rto = Time::from_us(1));
        let mut rto = Rto::new(&cfg);
        assert_eq!((rto.current(), rto.srtt()), (Time::from_s(1), Time::ZERO));
        rto.sample(Time::from_us(80), &cfg);
        assert_eq!((rto.srtt, rto.rttvar), (Time::from_us(80), Time::from_us(40)));
        assert_eq!(rto.current(), Time::from_us(80 + 4 * 40));
        // RTTVAR = 3/4·40 + 1/4·|80 − 160| = 50; SRTT = 7/8·80 + 1/8·160 = 90.
        rto.sample(Time::from_us(160), &cfg);
        assert_eq!((rto.srtt, rto.rttvar), (Time::from_us(90), Time::from_us(50)));
        // RTTVAR = 3/4·50 + 1/4·|90 − 50| = 47.5; SRTT = 7/8·90 + 1/8·50 = 85.
        rto.sample(Time::from_us(50), &cfg);
        assert_eq!((rto.srtt, rto.rttvar), (Time::from_us(85), Time::from_ns(47_500)));
        assert_eq!(rto.current(), Time::from_us(85 + 190));
    }

    #[test]
    fn constant_samples_converge_to_the_minimum() {
        let cfg = config(|p| p.min_rto = Time::from_ms(4));
        let mut rto = Rto::new(&cfg);
        for _ in 0..200 {
            rto.sample(Time::from_us(80), &cfg);
        }
        assert_eq!(rto.current(), Time::from_ms(4));
        assert!(rto.rttvar < Time::from_ns(1) && rto.srtt().as_us_f64() > 79.999);
    }

    #[test]
    fn timeouts_double_from_the_minimum_up_to_the_maximum() {
        let cfg = config(|p| (p.min_rto, p.max_rto) = (Time::from_ms(4), Time::from_ms(20)));
        let mut rto = Rto::new(&cfg);
        rto.sample(Time::from_us(80), &cfg);
        let mut seen = vec![rto.current()];
        for _ in 0..4 {
            rto.back_off(&cfg);
            seen.push(rto.current());
        }
        assert_eq!(seen, [4, 8, 16, 20, 20].map(Time::from_ms));
        rto.sample(Time::from_us(80), &cfg);
        assert_eq!(rto.current(), Time::from_ms(4));
    }

    #[test]
    fn a_fixed_timeout_does_not_back_off_and_spares_the_syn() {
        let cfg = config(|p| p.fixed_rto = Some(Time::from_us(200)));
        let mut rto = Rto::new(&cfg);
        assert_eq!(rto.current(), Time::from_s(1));
        rto.back_off_syn(&cfg);
        assert_eq!(rto.current(), Time::from_s(2));
        rto.sample(Time::from_ms(7), &cfg);
        rto.back_off(&cfg);
        assert_eq!((rto.current(), rto.srtt()), (Time::from_us(200), Time::from_ms(7)));
        assert_eq!(Rto::for_data(&cfg).current(), Time::from_us(200));
    }
}
