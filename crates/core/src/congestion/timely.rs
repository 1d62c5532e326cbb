//! TIMELY: Mittal et al., RTT-based congestion control for the datacenter, SIGCOMM 2015, as HPCC's
//! released simulator runs it (its CC_MODE 7).
//!
//! Once a round trip the measured round-trip time steers the rate. Below `low` it grows, above
//! `high` it shrinks by the excess; between them it follows the gradient, the smoothed difference
//! of two round trips over the least one: it grows by a step where that is not positive, and
//! shrinks in proportion to it where it is. After `hyper-after` growths in a row the step is the
//! larger one.
//!
//! Invariant: min-rate ≤ rate ≤ line rate; at most one change a round trip.

use super::{Acked, Demands, Family, Law, Metric, Quantity, RATE, Setting, Shared, in_gbps, step};
use crate::registry::About;
use crate::switch::site::Auto;
use crate::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "steers a queue pair's rate by the gradient of its round-trip time",
    source: "TIMELY, SIGCOMM 2015, algorithm 1, and HPCC's released simulator",
    ..About::PLAIN
};

crate::params! {
    /// The keys of TIMELY (SIGCOMM 2015).
    pub struct TimelyParams {
        /// Weight of the newest difference of round-trip times. Source: 0.875, HPCC's released
        /// simulator.
        #[within(0..=1)]
        pub timely_ewma: f64 = 0.875,
        /// How strongly the rate shrinks. Source: 0.8, TIMELY, SIGCOMM 2015 §6.
        #[within(0..=1)]
        pub timely_beta: f64 = 0.8,
        /// Round-trip time below which the rate grows in any case. Source: 50us, SIGCOMM 2015 §6.
        pub timely_low: Time = Time::from_us(50),
        /// Round-trip time above which it shrinks in any case. Source: 500us, SIGCOMM 2015 §6.
        pub timely_high: Time = Time::from_us(500),
        /// The least round-trip time, which differences are measured by. Source: 20us, SIGCOMM 2015
        /// §6.
        #[within(1..)]
        pub timely_min_rtt: Time = Time::from_us(20),
        /// The step: delta. "auto" is 10 Mb/s for each 10 Gb/s of the host's link. Source: 10 Mb/s,
        /// SIGCOMM 2015 §6, in proportion as in HPCC's released simulator.
        pub timely_additive_increase: Auto<Rate> = Auto::Auto,
        /// The larger step. "auto" is 50 Mb/s for each 10 Gb/s of the host's link. Source: five
        /// deltas, SIGCOMM 2015 §4.3; HPCC's released simulator.
        pub timely_hyper_increase: Auto<Rate> = Auto::Auto,
        /// Growths in a row before the step is the larger one. Source: 5, SIGCOMM 2015 §4.3.
        pub timely_hyper_after: u32 = 5,
        /// The lowest rate. Source: 100 Mb/s, HPCC's released simulator.
        #[within(1..)]
        pub timely_min_rate: Rate = Rate(100_000_000),
    }
}

/// TIMELY's state of one queue pair: its rate and the gradient of round-trip times.
#[derive(Clone, Debug)]
pub struct Timely(Box<State>);

#[derive(Clone, Debug)]
struct State {
    /// The host's link; 0 before the connection begins.
    line: Rate,
    /// Bits a second.
    rate: f64,
    /// The round-trip time before this one, in picoseconds.
    rtt: f64,
    /// The smoothed difference.
    difference: f64,
    /// Growths in a row.
    growths: u32,
    /// An answer beyond it ends the round trip; 0 before the first.
    until: u64,
}

const GRADIENT: Quantity =
    Quantity { name: "gradient", meaning: "TIMELY's normalised gradient of the round-trip time" };

impl Law for Timely {
    type Params = TimelyParams;
    type Constants = TimelyParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &TimelyParams) -> Demands {
        Demands { family: Family::Rdma, paces: true, ..Demands::default() }
    }

    fn check(p: &TimelyParams) -> Option<(&'static str, String)> {
        let (low, high) = (p.timely_low, p.timely_high);
        (low > high).then(|| ("timely-low", format!("{low} is above timely-high ({high})")))
    }

    fn constants(params: &TimelyParams) -> TimelyParams {
        params.clone()
    }

    fn new(_: u64, _: &Shared<TimelyParams>) -> Timely {
        Timely(Box::new(State {
            line: Rate(0),
            rate: 0.0,
            rtt: 0.0,
            difference: 0.0,
            growths: 0,
            until: 0,
        }))
    }

    fn begin(&mut self, setting: &Setting, _: &Shared<TimelyParams>) {
        (self.0.line, self.0.rate) = (setting.line, setting.line.bps() as f64);
    }

    fn on_ack(&mut self, ack: Acked, shared: &Shared<TimelyParams>) -> bool {
        let state = &mut *self.0;
        if ack.una <= state.until || ack.bytes == 0 {
            return false;
        }
        let rtt = ack.delay.as_ps() as f64;
        if state.until > 0 {
            state.steer(rtt, &shared.law);
        }
        if ack.nxt > state.until {
            (state.until, state.rtt) = (ack.nxt, rtt);
        }
        false
    }

    fn rate(&self, _: &Shared<TimelyParams>) -> Option<Rate> {
        (self.0.line.bps() > 0).then_some(Rate(self.0.rate as u64))
    }

    fn metrics(&self, shared: &Shared<TimelyParams>) -> Vec<Metric> {
        let gradient = self.0.gradient(&shared.law);
        vec![(RATE, Some(in_gbps(self.0.rate))), (GRADIENT, (self.0.until > 0).then_some(gradient))]
    }
}

impl State {
    fn gradient(&self, p: &TimelyParams) -> f64 {
        self.difference / p.timely_min_rtt.as_ps().max(1) as f64
    }

    fn steer(&mut self, rtt: f64, p: &TimelyParams) {
        let weight = p.timely_ewma;
        self.difference = (1.0 - weight) * self.difference + weight * (rtt - self.rtt);
        let gradient = self.gradient(p);
        let (low, high) = (p.timely_low.as_ps() as f64, p.timely_high.as_ps() as f64);
        let keeps = if rtt < low {
            None
        } else if rtt > high {
            Some(1.0 - p.timely_beta * (1.0 - high / rtt))
        } else {
            (gradient > 0.0).then(|| (1.0 - p.timely_beta * gradient).max(0.0))
        };
        match keeps {
            Some(share) => {
                self.growths = 0;
                self.rate = (self.rate * share).max(p.timely_min_rate.min(self.line).bps() as f64);
            }
            None => {
                let per = Rate::from_gbps(10);
                let more = match self.growths < p.timely_hyper_after {
                    true => step(p.timely_additive_increase, Rate(10_000_000), per, self.line),
                    false => step(p.timely_hyper_increase, Rate(50_000_000), per, self.line),
                };
                self.growths += 1;
                self.rate = (self.rate + more).min(self.line.bps() as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Gb/s, so that the steps are 10 and 50 Mb/s, at a rate of 5 Gb/s.
    fn timely() -> (Timely, Shared<TimelyParams>) {
        let shared = Shared { mss: 1000, ecn: false, law: TimelyParams::default() };
        let mut law = Timely::new(0, &shared);
        let setting = Setting { line: Rate::from_gbps(10), base_rtt: Time::from_us(10), window: 0 };
        law.begin(&setting, &shared);
        law.0.rate = 5e9;
        (law, shared)
    }

    /// The n-th round trip, of which 1000 bytes were in flight, took so many microseconds.
    fn round(law: &mut Timely, n: u64, us: u64, shared: &Shared<TimelyParams>) {
        let (una, nxt, delay) = (1000 * n + 1, 1000 * (n + 1), Time::from_us(us));
        let ack =
            Acked { now: Time::from_ms(n), bytes: 1000, ece: false, una, nxt, delay, hops: 1 };
        assert!(!law.on_ack(ack, shared));
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    /// By hand. 100 us, then 110: the difference is 0.875 · 10 us, the gradient 8.75 / 20, and 1 −
    /// 0.8 · 0.4375 = 0.65 of the rate is left. Then 100: the difference is 0.125 · 8.75 − 8.75 <
    /// 0, so it grows by a step.
    #[test]
    fn between_the_thresholds_the_gradient_steers() {
        let (mut law, shared) = timely();
        round(&mut law, 1, 100, &shared);
        assert_eq!(law.0.rate, 5e9, "the first is compared with nothing");
        round(&mut law, 2, 110, &shared);
        close(law.0.rate, 5e9 * 0.65);
        close(law.metrics(&shared)[1].1.unwrap(), 0.4375);
        round(&mut law, 3, 100, &shared);
        close(law.0.rate, 5e9 * 0.65 + 10e6);
    }

    /// By hand: 1 − 0.8 · (1 − 500/1000) = 0.6 above, whatever the gradient; five steps of 10 Mb/s
    /// and then of 50 below, whatever the gradient.
    #[test]
    fn beyond_the_thresholds_the_gradient_says_nothing() {
        let (mut law, shared) = timely();
        round(&mut law, 1, 2000, &shared);
        round(&mut law, 2, 1000, &shared);
        close(law.0.rate, 3e9);
        for n in 3..=9 {
            round(&mut law, n, 20 + n, &shared);
        }
        close(law.0.rate, 3e9 + 5.0 * 10e6 + 2.0 * 50e6);
        round(&mut law, 10, 1000, &shared);
        round(&mut law, 11, 20, &shared);
        close(law.0.rate, (3e9 + 150e6) * 0.6 + 10e6);
    }

    #[test]
    fn one_change_a_round_trip_and_within_its_bounds() {
        let (mut law, shared) = timely();
        round(&mut law, 1, 20, &shared);
        round(&mut law, 2, 20, &shared);
        let (una, nxt, delay) = (2500, 9000, Time::from_ms(5));
        law.on_ack(
            Acked { now: Time::from_ms(3), bytes: 500, ece: false, una, nxt, delay, hops: 1 },
            &shared,
        );
        close(law.0.rate, 5e9 + 10e6);
        for n in 10..40 {
            round(&mut law, n, 100_000, &shared);
        }
        assert_eq!(law.rate(&shared), Some(Rate(100_000_000)));
        for n in 40..400 {
            round(&mut law, n, 1, &shared);
        }
        assert_eq!(law.rate(&shared), Some(Rate::from_gbps(10)));
    }
}
