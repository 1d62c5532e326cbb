//! Swift: SIGCOMM 2020, algorithm 1. The window steers the delay of the path to a target.
//!
//! The target grows with the switches that the data crosses (topology scaling) and as the window shrinks (flow scaling,
//! §3.5), so that many flows through one queue settle on windows that are alike. The delay is that of the data and its
//! acknowledgement, from the hand-down of the one to the arrival of the other; hosts take no time here, so the paper's
//! second window, against the endpoint's delay, would never be the smaller one and is left out. Below one segment the
//! window is a rate: one segment every round-trip time / window, which the sender keeps (`sender/pace.rs`).
//!
//! Invariant: the window lies in [`swift-window-min`, `swift-window-max`] and shrinks at most once a round trip, except
//! for repeated timeouts.

use super::{Cause, Law, Told, Window};
use crate::endpoint::tcp::{Config, Control, Swift as Constants};
use millpond_core::Time;
use millpond_results::Quantity;

/// A segment is held back no longer, however small the window.
const LONGEST_GAP: Time = Time::from_s(60);

/// One connection's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swift {
    /// fcwnd, in segments.
    window: f64,
    /// The newest round-trip time; zero before the first.
    rtt: Time,
    /// t_last_decrease; `Time::MAX`: never.
    decreased: Time,
    /// While the pace holds the sender back: when the retransmission timer would expire.
    pub(crate) rto_at: Time,
    /// retransmit_cnt: timeouts in a row.
    timeouts: u32,
    /// Switches that the newest data has crossed.
    hops: u8,
}

const FCWND: Quantity = Quantity {
    name: "fcwnd_segments",
    meaning: "Swift's window in segments; below one it is a rate, one segment every srtt / fcwnd",
};
const TARGET: Quantity = Quantity {
    name: "target_delay_us",
    meaning: "Swift's target delay, in microseconds; null before the first acknowledgement",
};

impl Law for Swift {
    fn told(&self, cfg: &Config) -> Vec<Told> {
        let Control::Swift(p) = &cfg.control else { return Vec::new() };
        let target = (self.rtt > Time::ZERO).then(|| self.target(self.hops, p) / 1e6);
        vec![(FCWND, Some(self.window)), (TARGET, target)]
    }
}

impl Swift {
    pub(super) fn new(initial: f64, p: &Constants) -> Swift {
        Swift {
            window: initial.clamp(p.min, p.max),
            rtt: Time::ZERO,
            decreased: Time::MAX,
            rto_at: Time::MAX,
            timeouts: 0,
            hops: 0,
        }
    }

    /// The window in segments.
    #[cfg(test)]
    pub(crate) fn window(&self) -> f64 {
        self.window
    }

    /// The window in bytes, of which one below a segment makes a whole one: the pace does the rest.
    pub(crate) fn bytes(&self, cfg: &Config) -> u64 {
        ((self.window * f64::from(cfg.mss)) as u64).max(u64::from(cfg.mss))
    }

    /// The least time from one segment to the next.
    pub(crate) fn gap(&self) -> Time {
        if self.window >= 1.0 {
            return Time::ZERO;
        }
        Time::from_ps((self.rtt.as_ps() as f64 / self.window) as u64).min(LONGEST_GAP)
    }

    /// TargetDelay, in picoseconds.
    fn target(&self, hops: u8, p: &Constants) -> f64 {
        let scaling = p.fs_a / libm::sqrt(self.window) + p.fs_b;
        p.base + f64::from(hops) * p.hop + scaling.min(p.fs_range).max(0.0)
    }

    /// An ACK of `bytes` more, `delay` after the newest of them was handed down and with `hops` switches on its way.
    pub(crate) fn on_ack(&mut self, now: Time, bytes: u64, delay: Time, hops: u8, cfg: &Config) {
        let Control::Swift(p) = &cfg.control else { return };
        if bytes == 0 {
            return; // it echoes an older time
        }
        self.timeouts = 0;
        (self.rtt, self.hops) = (delay, hops);
        let (target, delay) = (self.target(hops, p), delay.as_ps() as f64);
        if delay < target {
            let step = p.increase * (bytes as f64 / f64::from(cfg.mss));
            let grown = self.window + if self.window < 1.0 { step } else { step / self.window };
            self.window = grown.min(p.max);
        } else {
            self.decrease(now, (1.0 - p.beta * (delay - target) / delay).max(1.0 - p.max_decrease), p);
        }
    }

    /// Leaves this share of the window, unless it was decreased less than a round trip ago.
    fn decrease(&mut self, now: Time, share: f64, p: &Constants) {
        if self.decreased == Time::MAX || now.saturating_sub(self.decreased) >= self.rtt {
            self.window = (self.window * share).max(p.min);
            self.decreased = now;
        }
    }

    /// Loss, or silence.
    pub(super) fn cut(&mut self, window: &mut Window, cause: Cause, now: Time, cfg: &Config) {
        let Control::Swift(p) = &cfg.control else { return };
        self.timeouts = if cause == Cause::Timeout { self.timeouts.saturating_add(1) } else { 0 };
        if self.timeouts >= p.reset {
            (self.window, self.decreased) = (p.min, now);
        } else {
            self.decrease(now, 1.0 - p.max_decrease, p);
        }
        window.cwnd = self.bytes(cfg);
    }

    /// To at most this many bytes, after idle time or lost SYNs.
    pub(super) fn narrow(&mut self, bytes: u64, cfg: &Config) {
        self.window = self.window.min(bytes as f64 / f64::from(cfg.mss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tcp::tests::config_of;
    use millpond_scenario::transport::{SwiftParams, TransportKind};

    const MSS: u64 = 1000;
    const US: f64 = 1e6; // picoseconds

    fn cfg(change: impl FnOnce(&mut SwiftParams)) -> Config {
        let mut p = SwiftParams::default();
        change(&mut p);
        config_of(TransportKind::Swift(p), |p| p.mss = Some(MSS as u32))
    }

    fn constants(cfg: &Config) -> Constants {
        let Control::Swift(p) = cfg.control else { panic!() };
        p
    }

    fn swift(window: f64, cfg: &Config) -> Swift {
        Swift::new(window, &constants(cfg))
    }

    #[test]
    fn the_target_is_the_base_the_switches_and_a_share_of_the_range_for_small_windows() {
        let cfg = cfg(|p| p.swift_window_max = 1e6);
        let target = |window: f64, hops| swift(window, &cfg).target(hops, &constants(&cfg)) / US;
        // a = 300 us / (√10 − 1/10) = 97.966 us, b = −9.797 us.
        assert!((constants(&cfg).fs_a / US - 97.966).abs() < 1e-3 && (constants(&cfg).fs_b / US + 9.7966).abs() < 1e-3);
        for (window, hops, expected) in [
            (100.0, 0, 60.0),
            (100.0, 3, 150.0),
            (10_000.0, 3, 150.0),
            (1.0, 3, 150.0 + 88.169),
            (4.0, 1, 90.0 + 39.186),
            (25.0, 1, 90.0 + 9.797),
            (0.1, 3, 450.0),
            (0.001, 3, 450.0),
        ] {
            assert!((target(window, hops) - expected).abs() < 2e-3, "{window} {hops}: {}", target(window, hops));
        }
    }

    #[test]
    fn below_the_target_it_grows_by_one_segment_a_round_trip_or_for_each_ack_below_one() {
        let cfg = cfg(|_| ());
        let mut s = swift(10.0, &cfg);
        s.on_ack(Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window(), 10.1);
        s.on_ack(Time::from_us(41), 5 * MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window(), 10.1 + 5.0 / 10.1);
        let mut s = swift(0.25, &cfg);
        s.on_ack(Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window(), 1.25);
    }

    #[test]
    fn above_the_target_it_shrinks_by_the_excess_at_most_by_half_and_once_a_round_trip() {
        let cfg = cfg(|p| p.swift_fs_range = Time::ZERO);
        // The target is 90 us. (100 − 90)/100 · 0.8 = 8 %.
        let mut s = swift(20.0, &cfg);
        let mut now = Time::from_ms(1);
        s.on_ack(now, MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window() - 18.4).abs() < 1e-12);
        s.on_ack(now + Time::from_us(99), MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window() - 18.4).abs() < 1e-12, "once a round trip");
        now += Time::from_us(100);
        s.on_ack(now, MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window() - 18.4 * 0.92).abs() < 1e-12);
        // Delay at the target: a decrease by nothing.
        let mut s = swift(20.0, &cfg);
        s.on_ack(now, MSS, Time::from_us(90), 1, &cfg);
        assert_eq!(s.window(), 20.0);
        // (900 − 90)/900 · 0.8 = 72 %, of which half is allowed.
        let mut s = swift(20.0, &cfg);
        s.on_ack(now, MSS, Time::from_us(900), 1, &cfg);
        assert_eq!(s.window(), 10.0);
    }

    #[test]
    fn losses_take_the_largest_decrease_once_a_round_trip_and_repeated_timeouts_all() {
        let cfg = cfg(|p| p.swift_retransmit_reset = 4);
        let mut window = Window { cwnd: 0, ssthresh: u64::MAX };
        let mut s = swift(20.0, &cfg);
        s.on_ack(Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        s.cut(&mut window, Cause::Loss, Time::from_us(50), &cfg);
        assert_eq!((window.cwnd, window.ssthresh), ((20.05 / 2.0 * 1000.0) as u64, u64::MAX));
        s.cut(&mut window, Cause::Loss, Time::from_us(60), &cfg);
        assert_eq!(window.cwnd, 10_025, "less than a round trip later");
        let mut s = swift(32.0, &cfg);
        for (n, left) in [(1, 16_000), (2, 8_000), (3, 4_000), (4, MSS)] {
            s.cut(&mut window, Cause::Timeout, Time::from_ms(n), &cfg);
            assert_eq!(window.cwnd, left);
        }
        assert_eq!(s.window(), 0.001);
        s.on_ack(Time::from_ms(9), MSS, Time::from_us(40), 1, &cfg);
        s.cut(&mut window, Cause::Timeout, Time::from_ms(10), &cfg);
        assert!((s.window() - 0.5005).abs() < 1e-12, "an ACK ends the row");
    }

    #[test]
    fn the_window_stays_within_its_bounds() {
        let cfg = cfg(|_| ());
        let (mut s, mut now) = (swift(10.0, &cfg), Time::ZERO);
        for _ in 0..2000 {
            now += Time::from_us(40);
            s.on_ack(now, MSS, Time::from_us(40), 1, &cfg);
        }
        assert_eq!((s.window(), s.bytes(&cfg), s.gap()), (43.0, 43 * MSS, Time::ZERO));
        for _ in 0..100 {
            now += Time::from_ms(2);
            s.on_ack(now, MSS, Time::from_ms(2), 1, &cfg);
        }
        assert_eq!((s.window(), s.bytes(&cfg), s.gap()), (0.001, MSS, Time::from_s(2)));
    }

    #[test]
    fn senseless_constants_do_no_harm() {
        let cfg = cfg(|p| {
            (p.swift_fs_min, p.swift_fs_max) = (100.0, 0.0);
            (p.swift_window_min, p.swift_window_max) = (-1.0, -2.0);
            (p.swift_beta, p.swift_max_decrease, p.swift_additive_increase) = (-3.0, 7.0, -1.0);
            (p.swift_base_target, p.swift_hop_target) = (Time::ZERO, Time::ZERO);
        });
        let mut s = swift(10.0, &cfg);
        for delay in [Time::ZERO, Time::from_us(1), Time::from_s(100)] {
            s.on_ack(delay, MSS, delay, 255, &cfg);
            assert!(s.window() > 0.0 && s.gap() <= LONGEST_GAP && s.bytes(&cfg) == MSS);
        }
    }
}
