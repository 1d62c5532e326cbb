//! The retransmission timeout: RFC 6298 §2, with the clock's granularity G of a picosecond; or that
//! of the INET framework's TCP, as the Vertigo and Canary artifacts run it.
//!
//! INET's differs in what a connection begins with: SRTT = 0, RTTVAR = a quarter of the initial
//! timeout, and no special first sample; both gains are 1/8. Where round-trip times are small
//! beside the initial timeout RTO_init, RTTVAR just decays by an eighth a sample: the timeout after
//! n samples is some (7/8)^n RTO_init, and a segment that is lost twice is repaired 3 (7/8)^n
//! RTO_init after it was first sent, where RFC 6298 is at its floor with the first sample.
//!
//! TAS' is no estimate of a deviation: a connection that pends without an acknowledgement at four
//! looks of its slow path is sent again, and these are two round trips apart.
//!
//! Every ACK that advances gives a sample, since it echoes a time (RFC 7323 §4.1), unless
//! `rtt-samples` excludes it ([`super::Sender`] decides); Karn's rule is not needed. The gains
//! are not divided by the samples of a round trip, which RFC 7323 appendix G proposes and few do.
//!
//! Invariant: `current` lies in `[min_rto, max_rto]` once there is a sample, unless it is pinned.

use super::Config;
use millpond_core::Time;
use millpond_scenario::transport::RtoEstimator;

/// The shortest timeout of TAS' rule: four looks, no less than 50 us apart.
const SHORTEST_TAS: Time = Time::from_us(200);

#[derive(Clone, Copy, Debug)]
pub(super) struct Rto {
    /// Smoothed round-trip time; `Time::MAX` before RFC 6298's first sample.
    srtt: Time,
    rttvar: Time,
    current: Time,
}

impl Rto {
    /// Before any sample, for a SYN (2.1).
    pub(super) fn new(cfg: &Config) -> Rto {
        let (srtt, rttvar) = match cfg.rto_estimator {
            RtoEstimator::Rfc6298 | RtoEstimator::Tas => (Time::MAX, Time::ZERO),
            RtoEstimator::Inet => (Time::ZERO, cfg.initial_rto / 4),
        };
        Rto { srtt, rttvar, current: cfg.initial_rto.min(cfg.max_rto) }
    }

    /// Before any sample, on a connection that is open already.
    pub(super) fn for_data(cfg: &Config) -> Rto {
        Rto { current: cfg.fixed_rto.unwrap_or(cfg.initial_rto.min(cfg.max_rto)), ..Rto::new(cfg) }
    }

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
            RtoEstimator::Inet => self.inet(rtt),
            RtoEstimator::Tas => self.tas(rtt),
        }
        self.settle(cfg);
    }

    #[inline]
    fn settle(&mut self, cfg: &Config) {
        self.current = match cfg.fixed_rto {
            None => (self.srtt + self.rttvar * 4).max(cfg.min_rto).min(cfg.max_rto),
            Some(fixed) => fixed,
        };
    }

    /// New data is acknowledged without a sample: that ends the backing off, too.
    pub(super) fn acknowledged(&mut self, cfg: &Config) {
        if self.srtt == Time::MAX {
            self.current = Rto::for_data(cfg).current;
        } else {
            self.settle(cfg);
        }
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

    /// err = R − SRTT; SRTT += err / 8; RTTVAR += (|err| − RTTVAR) / 8.
    #[inline]
    fn inet(&mut self, rtt: Time) {
        let deviation = if rtt > self.srtt { rtt - self.srtt } else { self.srtt - rtt };
        self.rttvar = self.rttvar - self.rttvar / 8 + deviation / 8;
        self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
    }

    /// SRTT moves by an eighth. RTTVAR is such that SRTT + 4 RTTVAR is eight of it, or the
    /// shortest.
    #[cold] // so that the others stay as short as they are
    fn tas(&mut self, rtt: Time) {
        self.srtt = if self.srtt == Time::MAX { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
        self.rttvar = (self.srtt.saturating_mul(8).max(SHORTEST_TAS) - self.srtt) / 4;
    }

    /// The timer of data has expired (5.5).
    pub(super) fn back_off(&mut self, cfg: &Config) {
        if cfg.fixed_rto.is_none() && cfg.rto_estimator != RtoEstimator::Tas {
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

    fn inet(initial: Time, min: Time) -> Config {
        config(|p| {
            p.rto_estimator = RtoEstimator::Inet;
            (p.initial_rto, p.min_rto, p.max_rto) = (initial, min, Time::from_s(240));
        })
    }

    #[test]
    fn inet_begins_with_a_quarter_of_the_initial_timeout_and_gains_of_an_eighth() {
        let cfg = inet(Time::from_us(3200), Time::from_us(1));
        let mut rto = Rto::new(&cfg);
        assert_eq!(
            (rto.srtt, rto.rttvar, rto.current()),
            (Time::ZERO, Time::from_us(800), Time::from_us(3200))
        );
        // err = 160: SRTT = 20, RTTVAR = 800 + (160 − 800)/8 = 720.
        rto.sample(Time::from_us(160), &cfg);
        assert_eq!((rto.srtt, rto.rttvar), (Time::from_us(20), Time::from_us(720)));
        assert_eq!(rto.current(), Time::from_us(20 + 4 * 720));
        // err = −12: SRTT = 18.5, RTTVAR = 720 + (12 − 720)/8 = 631.5.
        rto.sample(Time::from_us(8), &cfg);
        assert_eq!((rto.srtt, rto.rttvar), (Time::from_ns(18_500), Time::from_ns(631_500)));
        // Backed off, and taken back by the next sample: err = 7.5, SRTT = 19.4375, RTTVAR = 553.5.
        rto.back_off(&cfg);
        rto.back_off(&cfg);
        assert_eq!(rto.current(), Time::from_ns(4 * 18_500 + 16 * 631_500));
        rto.sample(Time::from_us(26), &cfg);
        assert_eq!(rto.current(), Time::from_ps(19_437_500 + 4 * 553_500_000));
    }

    #[test]
    fn inet_timeouts_of_a_young_connection_lie_on_plateaus_of_seven_eighths() {
        let cfg = inet(Time::from_s(1), Time::from_ms(10));
        // A new connection, and the accepting end of one.
        for mut rto in [Rto::new(&cfg), Rto::for_data(&cfg)] {
            for (once, twice) in
                [(1.0, 3.0), (0.875, 2.625), (0.766, 2.297), (0.670, 2.010), (0.586, 1.758)]
            {
                let first = rto.current();
                let mut again = rto;
                again.back_off(&cfg);
                let second = first + again.current();
                assert!((first.as_s_f64() - once).abs() < 1e-3, "{first:?} instead of {once} s");
                assert!(
                    (second.as_s_f64() - twice).abs() < 2e-3,
                    "{second:?} instead of {twice} s"
                );
                rto.sample(Time::from_us(40), &cfg);
            }
            for _ in 0..200 {
                rto.sample(Time::from_us(40), &cfg);
            }
            assert_eq!(rto.current(), Time::from_ms(10));
        }
    }

    #[test]
    fn rfc6298_is_at_its_floor_with_the_first_sample_where_inet_is_at_seven_eighths() {
        let cfg = config(|p| p.initial_rto = Time::from_s(1));
        let mut rto = Rto::new(&cfg);
        rto.sample(Time::from_us(40), &cfg);
        assert_eq!(rto.current(), Time::from_ms(10));
        let cfg = inet(Time::from_s(1), Time::from_ms(10));
        let mut rto = Rto::new(&cfg);
        rto.sample(Time::from_us(40), &cfg);
        assert!((rto.current().as_s_f64() - 0.875).abs() < 1e-4);
    }

    #[test]
    fn tas_waits_for_eight_round_trips_and_never_longer() {
        let cfg = config(|p| (p.rto_estimator, p.min_rto) = (RtoEstimator::Tas, Time::from_us(1)));
        let mut rto = Rto::for_data(&cfg);
        for (rtt, srtt, current) in [(80, 80, 640), (160, 90, 720)] {
            rto.sample(Time::from_us(rtt), &cfg);
            rto.back_off(&cfg);
            assert_eq!((rto.srtt(), rto.current()), (Time::from_us(srtt), Time::from_us(current)));
        }
        let mut rto = Rto::for_data(&cfg);
        rto.sample(Time::from_us(5), &cfg);
        assert_eq!(rto.current(), Time::from_us(200), "four looks, 50 us apart");
    }

    #[test]
    fn inet_backs_off_to_its_maximum_of_240_s() {
        let cfg = inet(Time::from_s(1), Time::from_ms(10));
        let mut rto = Rto::for_data(&cfg);
        for _ in 0..12 {
            rto.back_off(&cfg);
        }
        assert_eq!(rto.current(), Time::from_s(240));
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
