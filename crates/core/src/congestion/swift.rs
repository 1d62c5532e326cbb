//! Swift: SIGCOMM 2020, algorithm 1. The window steers the delay of the path to a target.
//!
//! The target grows with the switches that the data crosses (topology scaling) and as the window
//! shrinks (flow scaling, §3.5), so that many flows through one queue settle on windows that are
//! alike. The delay is that of the data and its acknowledgement, from the hand-down of the one to
//! the arrival of the other; hosts take no time here, so the paper's second window, against the
//! endpoint's delay, would never be the smaller one and is left out. Below one segment the window
//! is a rate: one segment every round-trip time / window, which the family keeps: see
//! `next_departure`.
//!
//! Invariant: the window lies in [`swift-window-min`, `swift-window-max`] and shrinks at most once
//! a round trip, except for repeated timeouts.

use super::{Acked, Cause, Cut, Demands, Law, Metric, Quantity, Shared, Window};
use crate::registry::{About, PathProperty};
use crate::switch::site::Auto;
use crate::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "steers the delay to a target, with windows below one segment where many flows meet",
    source: "Swift, SIGCOMM 2020",
    needs: &[PathProperty::FifoPerFlow, PathProperty::TimersRun],
    ..About::PLAIN
};

crate::params! {
    /// Swift. The window of a new connection is `initial-window`.
    pub struct SwiftParams {
        /// Target delay of a path without switches for a large window. "auto" is 60us, or the
        /// longest round trip of the empty network where that is longer. Source: 60us is the Canary
        /// artifact's; the paper (§3.5) leaves it to the network.
        pub swift_base_target: Auto<Time> = Auto::Auto,
        /// Target delay that each switch on the way of the data adds. Source: Swift, SIGCOMM 2020
        /// §3.5; 30us is the Canary artifact's.
        pub swift_hop_target: Time = Time::from_us(30),
        /// Most that a small window adds to the target. Source: Swift, SIGCOMM 2020 §3.5; 300us is
        /// the Canary artifact's.
        pub swift_fs_range: Time = Time::from_us(300),
        /// Window in segments from which on nothing is added. Source: Swift, SIGCOMM 2020 §3.5.
        pub swift_fs_max: f64 = 100.0,
        /// Window in segments below which all of the range is added. Source: Swift, SIGCOMM 2020
        /// §3.5.
        pub swift_fs_min: f64 = 0.1,
        /// Segments a round trip by which the window grows below the target. Source: Swift, SIGCOMM
        /// 2020, algorithm 1; 1 is the Canary artifact's.
        #[within(0..)]
        pub swift_additive_increase: f64 = 1.0,
        /// How strongly the window follows the excess of the delay over the target. Source: Swift,
        /// SIGCOMM 2020, algorithm 1; 0.8 is the Canary artifact's.
        #[within(0..)]
        pub swift_beta: f64 = 0.8,
        /// Largest share of the window that one round trip may take; a loss takes just this.
        /// Source: Swift, SIGCOMM 2020, algorithm 1; 0.5 is the Canary artifact's.
        #[within(0..=1)]
        pub swift_max_decrease: f64 = 0.5,
        /// Largest window, in segments. "auto" is 43, or what the fastest host's link carries in
        /// the longest round trip of the empty network where that is more. Source: 43 is the Canary
        /// artifact's, some 64KB.
        pub swift_window_max: Auto<f64> = Auto::Auto,
        /// Smallest window, in segments; below one, a segment leaves every round-trip time /
        /// window. Source: Swift, SIGCOMM 2020 §3.4.
        pub swift_window_min: f64 = 0.001,
        /// Timeouts in a row that bring the window to its smallest. Source: Swift, SIGCOMM 2020,
        /// algorithm 1, which names no number; 12 is the Canary artifact's.
        #[within(1..)]
        pub swift_retransmit_reset: u32 = 12,
    }
}

impl SwiftParams {
    /// Their meaning in a network with this longest round trip, in which a host's link carries so
    /// many segments.
    pub fn in_network(&self, round_trip: Time, segments: f64) -> SwiftParams {
        SwiftParams {
            swift_base_target: Auto::Given(
                self.swift_base_target.or(|| round_trip.max(BASE_TARGET)),
            ),
            swift_window_max: Auto::Given(self.swift_window_max.or(|| segments.max(WINDOW_MAX))),
            ..self.clone()
        }
    }

    /// The target delay of a path with so many switches, for a large window.
    pub fn target(&self, switches: u32) -> Time {
        let base = self.swift_base_target.or(|| BASE_TARGET);
        base.saturating_add(self.swift_hop_target.saturating_mul(u64::from(switches)))
    }
}

/// The Canary artifact's.
const BASE_TARGET: Time = Time::from_us(60);
const WINDOW_MAX: f64 = 43.0;

/// Swift's constants. Delays in picoseconds, windows in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Target without switches, for a large window.
    pub base: f64,
    /// Delay that each switch adds to it.
    pub hop: f64,
    /// The most that a small window adds.
    pub fs_range: f64,
    /// A small window adds `fs_a / √window + fs_b`.
    pub fs_a: f64,
    /// As above.
    pub fs_b: f64,
    /// Additive increase a round trip.
    pub increase: f64,
    /// Weight of the excess of the delay in a decrease.
    pub beta: f64,
    /// Largest decrease.
    pub max_decrease: f64,
    /// Smallest window.
    pub min: f64,
    /// Largest window.
    pub max: f64,
    /// Timeouts in a row that bring the smallest window.
    pub reset: u32,
}

impl Constants {
    /// The flow scaling's a and b are such that it adds all of its range at a window of
    /// `swift-fs-min`, and nothing at one of `swift-fs-max`; where these are not in order it adds
    /// nothing.
    fn new(p: &SwiftParams) -> Constants {
        let (smallest, ps) = (1e-6, |t: Time| t.as_ps() as f64);
        let min = p.swift_window_min.max(smallest);
        let inverse = |window: f64| 1.0 / libm::sqrt(window.max(smallest));
        let span = inverse(p.swift_fs_min) - inverse(p.swift_fs_max);
        let fs_a = if span > 0.0 { ps(p.swift_fs_range) / span } else { 0.0 };
        Constants {
            base: ps(p.target(0)),
            hop: ps(p.swift_hop_target),
            fs_range: ps(p.swift_fs_range),
            fs_a,
            fs_b: -fs_a * inverse(p.swift_fs_max),
            increase: p.swift_additive_increase.max(0.0),
            beta: p.swift_beta.max(0.0),
            max_decrease: p.swift_max_decrease.clamp(0.0, 1.0),
            min,
            max: p.swift_window_max.or(|| WINDOW_MAX).max(min),
            reset: p.swift_retransmit_reset.max(1),
        }
    }
}

/// A segment is held back no longer, however small the window.
const LONGEST_GAP: Time = Time::from_s(60);

/// Swift's state of one connection: window in segments, newest round trip and last decrease.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    /// fcwnd, in segments.
    window: f64,
    /// The newest round-trip time; zero before the first.
    rtt: Time,
    /// t_last_decrease; `Time::MAX`: never.
    decreased: Time,
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
    type Params = SwiftParams;
    type Constants = Constants;

    const SLOW_STARTS: bool = false;

    fn demands(_: &SwiftParams) -> Demands {
        Demands { paces: true, ..Demands::default() }
    }

    fn check(p: &SwiftParams) -> Option<(&'static str, String)> {
        let (min, max) = (p.swift_window_min, p.swift_window_max.or(|| WINDOW_MAX));
        (min > max)
            .then(|| ("swift-window-min", format!("{min} is above swift-window-max ({max})")))
    }

    fn constants(params: &SwiftParams) -> Constants {
        Constants::new(params)
    }

    fn initial_window(wanted: u64, shared: &Shared<Constants>) -> u64 {
        let mss = shared.mss;
        wanted.min(((shared.law.max * f64::from(mss)) as u64).max(u64::from(mss)))
    }

    fn new(window: u64, shared: &Shared<Constants>) -> Swift {
        let p = &shared.law;
        let window = (window as f64 / f64::from(shared.mss)).clamp(p.min, p.max);
        Swift { window, rtt: Time::ZERO, decreased: Time::MAX, timeouts: 0, hops: 0 }
    }

    /// The delay steers the window, not the growth of others; no ACK asks for a cut.
    fn on_ack(&mut self, ack: Acked, shared: &Shared<Constants>) -> bool {
        if ack.bytes == 0 {
            return false; // it echoes an older time
        }
        let p = &shared.law;
        self.timeouts = 0;
        (self.rtt, self.hops) = (ack.delay, ack.hops);
        let (target, delay) = (self.target(ack.hops, p), ack.delay.as_ps() as f64);
        if delay < target {
            let step = p.increase * (ack.bytes as f64 / f64::from(shared.mss));
            let grown = self.window + if self.window < 1.0 { step } else { step / self.window };
            self.window = grown.min(p.max);
        } else {
            self.decrease(
                ack.now,
                (1.0 - p.beta * (delay - target) / delay).max(1.0 - p.max_decrease),
                p,
            );
        }
        false
    }

    /// Loss, or silence.
    fn cut(&mut self, window: &mut Window, cut: &Cut, shared: &Shared<Constants>) {
        let p = &shared.law;
        self.timeouts =
            if cut.cause == Cause::Timeout { self.timeouts.saturating_add(1) } else { 0 };
        if self.timeouts >= p.reset {
            (self.window, self.decreased) = (p.min, cut.now);
        } else {
            self.decrease(cut.now, 1.0 - p.max_decrease, p);
        }
        window.cwnd = self.bytes(shared.mss);
    }

    fn narrow(&mut self, bytes: u64, shared: &Shared<Constants>) {
        self.window = self.window.min(bytes as f64 / f64::from(shared.mss));
    }

    fn window(&self, shared: &Shared<Constants>) -> Option<u64> {
        Some(self.bytes(shared.mss))
    }

    fn rate(&self, shared: &Shared<Constants>) -> Option<Rate> {
        let gap = self.gap().as_ps();
        let bits = u128::from(shared.mss) * 8 * u128::from(Time::from_s(1).as_ps());
        (gap > 0).then(|| Rate((bits / u128::from(gap)) as u64))
    }

    /// Below one segment: one every round-trip time / window.
    fn next_departure(&self, last: Time, _: &Shared<Constants>) -> Time {
        last.saturating_add(self.gap())
    }

    fn metrics(&self, shared: &Shared<Constants>) -> Vec<Metric> {
        let target = (self.rtt > Time::ZERO).then(|| self.target(self.hops, &shared.law) / 1e6);
        vec![(FCWND, Some(self.window)), (TARGET, target)]
    }
}

impl Swift {
    /// The window in bytes, of which one below a segment makes a whole one: the pace does the rest.
    fn bytes(&self, mss: u32) -> u64 {
        ((self.window * f64::from(mss)) as u64).max(u64::from(mss))
    }

    /// The least time from one segment to the next.
    fn gap(&self) -> Time {
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

    /// Leaves this share of the window, unless it was decreased less than a round trip ago.
    fn decrease(&mut self, now: Time, share: f64, p: &Constants) {
        if self.decreased == Time::MAX || now.saturating_sub(self.decreased) >= self.rtt {
            self.window = (self.window * share).max(p.min);
            self.decreased = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const US: f64 = 1e6; // picoseconds

    fn cfg(change: impl FnOnce(&mut SwiftParams)) -> Shared<Constants> {
        let mut p = SwiftParams::default();
        change(&mut p);
        Shared { mss: MSS as u32, ecn: false, law: Swift::constants(&p) }
    }

    fn swift(window: f64, cfg: &Shared<Constants>) -> Swift {
        let mut swift = Swift::new(MSS, cfg);
        swift.window = window.clamp(cfg.law.min, cfg.law.max);
        swift
    }

    fn ack(s: &mut Swift, now: Time, bytes: u64, delay: Time, hops: u8, cfg: &Shared<Constants>) {
        assert!(!s.on_ack(Acked { now, bytes, ece: false, una: 0, nxt: 0, delay, hops }, cfg));
    }

    fn cut(s: &mut Swift, window: &mut Window, cause: Cause, now: Time, cfg: &Shared<Constants>) {
        s.cut(window, &Cut { now, cause, flight: 0 }, cfg);
    }

    #[test]
    fn the_target_is_the_base_the_switches_and_a_share_of_the_range_for_small_windows() {
        let cfg = cfg(|p| p.swift_window_max = Auto::Given(1e6));
        let target = |window: f64, hops| swift(window, &cfg).target(hops, &cfg.law) / US;
        // a = 300 us / (√10 − 1/10) = 97.966 us, b = −9.797 us.
        assert!(
            (cfg.law.fs_a / US - 97.966).abs() < 1e-3 && (cfg.law.fs_b / US + 9.7966).abs() < 1e-3
        );
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
            assert!(
                (target(window, hops) - expected).abs() < 2e-3,
                "{window} {hops}: {}",
                target(window, hops)
            );
        }
    }

    #[test]
    fn below_the_target_it_grows_by_one_segment_a_round_trip_or_for_each_ack_below_one() {
        let cfg = cfg(|_| ());
        let mut s = swift(10.0, &cfg);
        ack(&mut s, Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window, 10.1);
        ack(&mut s, Time::from_us(41), 5 * MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window, 10.1 + 5.0 / 10.1);
        let mut s = swift(0.25, &cfg);
        ack(&mut s, Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        assert_eq!(s.window, 1.25);
    }

    #[test]
    fn above_the_target_it_shrinks_by_the_excess_at_most_by_half_and_once_a_round_trip() {
        let cfg = cfg(|p| p.swift_fs_range = Time::ZERO);
        // The target is 90 us. (100 − 90)/100 · 0.8 = 8 %.
        let mut s = swift(20.0, &cfg);
        let mut now = Time::from_ms(1);
        ack(&mut s, now, MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window - 18.4).abs() < 1e-12);
        ack(&mut s, now + Time::from_us(99), MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window - 18.4).abs() < 1e-12, "once a round trip");
        now += Time::from_us(100);
        ack(&mut s, now, MSS, Time::from_us(100), 1, &cfg);
        assert!((s.window - 18.4 * 0.92).abs() < 1e-12);
        // Delay at the target: a decrease by nothing.
        let mut s = swift(20.0, &cfg);
        ack(&mut s, now, MSS, Time::from_us(90), 1, &cfg);
        assert_eq!(s.window, 20.0);
        // (900 − 90)/900 · 0.8 = 72 %, of which half is allowed.
        let mut s = swift(20.0, &cfg);
        ack(&mut s, now, MSS, Time::from_us(900), 1, &cfg);
        assert_eq!(s.window, 10.0);
    }

    #[test]
    fn losses_take_the_largest_decrease_once_a_round_trip_and_repeated_timeouts_all() {
        let cfg = cfg(|p| p.swift_retransmit_reset = 4);
        let mut window = Window { cwnd: 0, ssthresh: u64::MAX };
        let mut s = swift(20.0, &cfg);
        ack(&mut s, Time::from_us(40), MSS, Time::from_us(40), 1, &cfg);
        cut(&mut s, &mut window, Cause::Loss, Time::from_us(50), &cfg);
        assert_eq!((window.cwnd, window.ssthresh), ((20.05 / 2.0 * 1000.0) as u64, u64::MAX));
        cut(&mut s, &mut window, Cause::Loss, Time::from_us(60), &cfg);
        assert_eq!(window.cwnd, 10_025, "less than a round trip later");
        let mut s = swift(32.0, &cfg);
        for (n, left) in [(1, 16_000), (2, 8_000), (3, 4_000), (4, MSS)] {
            cut(&mut s, &mut window, Cause::Timeout, Time::from_ms(n), &cfg);
            assert_eq!(window.cwnd, left);
        }
        assert_eq!(s.window, 0.001);
        ack(&mut s, Time::from_ms(9), MSS, Time::from_us(40), 1, &cfg);
        cut(&mut s, &mut window, Cause::Timeout, Time::from_ms(10), &cfg);
        assert!((s.window - 0.5005).abs() < 1e-12, "an ACK ends the row");
    }

    #[test]
    fn the_window_stays_within_its_bounds() {
        let cfg = cfg(|_| ());
        let (mut s, mut now) = (swift(10.0, &cfg), Time::ZERO);
        for _ in 0..2000 {
            now += Time::from_us(40);
            ack(&mut s, now, MSS, Time::from_us(40), 1, &cfg);
        }
        assert_eq!((s.window, s.bytes(MSS as u32), s.gap()), (43.0, 43 * MSS, Time::ZERO));
        assert_eq!(s.rate(&cfg), None);
        for _ in 0..100 {
            now += Time::from_ms(2);
            ack(&mut s, now, MSS, Time::from_ms(2), 1, &cfg);
        }
        assert_eq!((s.window, s.bytes(MSS as u32), s.gap()), (0.001, MSS, Time::from_s(2)));
        // A rate, and the departures that follow from it: 1000 bytes in two seconds.
        assert_eq!(s.rate(&cfg), Some(Rate(4_000)));
        assert_eq!(s.next_departure(now, &cfg), now + Rate(4_000).transmission_time(MSS));
    }

    #[test]
    fn senseless_constants_do_no_harm() {
        let cfg = cfg(|p| {
            (p.swift_fs_min, p.swift_fs_max) = (100.0, 0.0);
            (p.swift_window_min, p.swift_window_max) = (-1.0, Auto::Given(-2.0));
            (p.swift_beta, p.swift_max_decrease, p.swift_additive_increase) = (-3.0, 7.0, -1.0);
            (p.swift_base_target, p.swift_hop_target) = (Auto::Given(Time::ZERO), Time::ZERO);
        });
        let mut s = swift(10.0, &cfg);
        for delay in [Time::ZERO, Time::from_us(1), Time::from_s(100)] {
            ack(&mut s, delay, MSS, delay, 255, &cfg);
            assert!(s.window > 0.0 && s.gap() <= LONGEST_GAP && s.bytes(MSS as u32) == MSS);
        }
    }
}
