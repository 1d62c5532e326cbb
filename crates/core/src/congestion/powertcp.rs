//! PowerTCP: Addanki, Michel, Schmid, NSDI 2022, algorithm 1, as its authors' released simulator
//! runs it at queue pairs.
//!
//! HPCC's telemetry, read in another way: a link's *power* is what arrives at it (its sending rate
//! and the growth of its queue: the *current*) times what it holds (its queue and the bytes of a
//! round trip at its rate: the *voltage*). Over the power of a full link without a queue, C² · T,
//! it is 1 where nothing needs to change. So a queue that grows counts before it is long, and one
//! that drains is no reason to slow down further. The link with the largest power counts, averaged
//! over a round trip. The rate is then γ (R_old / (power/η) + β) + (1 − γ) R_old, where R_old is
//! the rate of a round trip ago; the acknowledgements in between steer from the same R_old.
//!
//! As in the released simulator the current is at least half the link's rate, and a target
//! utilisation η divides the power (algorithm 1 has no η; 1 turns it off).
//!
//! Invariant: min-rate ≤ rate ≤ line rate.

use super::links::{self, Links};
use super::{Acked, Demands, Law, Metric, Quantity, RATE, Setting, Shared, in_gbps};
use crate::packet::{Hop, Telemetry};
use crate::registry::{About, PathProperty};
use crate::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "steers a queue pair's rate by the power (arrivals times queue) of the links on its \
              way",
    source: "PowerTCP, NSDI 2022, algorithm 1, and its released simulator",
    needs: &[PathProperty::FifoPerFlow],
    ..About::PLAIN
};

crate::params! {
    /// The keys of PowerTCP (NSDI 2022).
    pub struct PowertcpParams {
        /// Gamma: the weight of the new rate. Source: 0.9, PowerTCP, NSDI 2022 §3.3, and its
        /// released simulator.
        #[within(0..=1)]
        pub powertcp_gamma: f64 = 0.9,
        /// Eta: the utilisation that is aimed at. Source: 0.95, the released simulator; NSDI 2022's
        /// algorithm 1 has 1.
        #[within(0..=1)]
        pub powertcp_eta: f64 = 0.95,
        /// Beta as a rate: the step that is added. Source: 150 Mb/s at 25 Gb/s, the released
        /// simulator; NSDI 2022 §3.3 has the host's rate over the number of flows that share it.
        pub powertcp_additive_increase: Rate = Rate(150_000_000),
        /// Whether acknowledgements within a round trip steer, too. Source: the released
        /// simulator's FAST_REACT.
        pub powertcp_fast_react: bool = true,
        /// The lowest rate. Source: 100 Mb/s, the released simulator.
        #[within(1..)]
        pub powertcp_min_rate: Rate = Rate(100_000_000),
    }
}

/// PowerTCP's state of one queue pair.
#[derive(Clone, Debug)]
pub struct Powertcp(Box<State>);

#[derive(Clone, Debug)]
struct State {
    setting: Setting,
    /// Bits a second.
    rate: f64,
    /// The rate of a round trip ago.
    old: f64,
    /// The largest power of the way, averaged.
    power: f64,
    links: Links,
}

const POWER: Quantity = Quantity {
    name: "power",
    meaning: "PowerTCP's normalised power, of the link for which it is the largest; 1 is a full \
              pipe without a queue",
};

impl Law for Powertcp {
    type Params = PowertcpParams;
    type Constants = PowertcpParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &PowertcpParams) -> Demands {
        links::demands()
    }

    fn check(p: &PowertcpParams) -> Option<(&'static str, String)> {
        (p.powertcp_eta <= 0.0).then(|| ("powertcp-eta", "must be more than zero".to_string()))
    }

    fn constants(params: &PowertcpParams) -> PowertcpParams {
        let powertcp_eta = params.powertcp_eta.clamp(f64::MIN_POSITIVE, 1.0);
        PowertcpParams { powertcp_eta, ..params.clone() }
    }

    fn new(_: u64, _: &Shared<PowertcpParams>) -> Powertcp {
        Powertcp(Box::new(State {
            setting: Setting { line: Rate(0), base_rtt: Time::ZERO, window: 0 },
            rate: 0.0,
            old: 0.0,
            power: 1.0,
            links: Links::default(),
        }))
    }

    fn begin(&mut self, setting: &Setting, _: &Shared<PowertcpParams>) {
        let line = setting.line.bps() as f64;
        (self.0.setting, self.0.rate, self.0.old) = (*setting, line, line);
    }

    fn on_telemetry(
        &mut self,
        acked: &Acked,
        telemetry: &Telemetry,
        shared: &Shared<PowertcpParams>,
    ) {
        let (state, p) = (&mut *self.0, &shared.law);
        if !state.links.are_known() {
            return state.links.note(acked, telemetry);
        }
        let ends = state.links.ends(acked);
        if !ends && !p.powertcp_fast_react {
            return;
        }
        if let Some((power, share)) = state.largest(telemetry) {
            state.power = state.power * (1.0 - share) + power * share;
            state.rate = state.next(p);
            if ends {
                state.old = state.rate;
            }
        }
        state.links.note(acked, telemetry);
    }

    fn rate(&self, _: &Shared<PowertcpParams>) -> Option<Rate> {
        (self.0.setting.line.bps() > 0).then_some(Rate(self.0.rate as u64))
    }

    fn metrics(&self, _: &Shared<PowertcpParams>) -> Vec<Metric> {
        let power = (self.0.links.are_known()).then_some(self.0.power);
        vec![(RATE, Some(in_gbps(self.0.rate))), (POWER, power)]
    }
}

impl State {
    /// A link's normalised power since the last answer, and over what share of a round trip, at
    /// most 1.
    fn power(&self, place: usize, hop: &Hop) -> Option<(f64, f64)> {
        let work = self.links.work(place, hop)?;
        let (seconds, round) = (work.ps as f64 * 1e-12, self.setting.base_rtt.as_s_f64());
        let capacity = hop.rate.bps() as f64;
        let arrived = work.sent as f64 + hop.queue as f64 - work.before.queue as f64;
        let current = (8.0 * arrived / seconds).max(capacity / 2.0);
        let full = capacity * round;
        let voltage = 8.0 * hop.queue as f64 + full;
        Some((current * voltage / (capacity * full), (seconds / round).min(1.0)))
    }

    fn largest(&self, telemetry: &Telemetry) -> Option<(f64, f64)> {
        let powers = telemetry.hops().enumerate();
        powers
            .filter_map(|(place, hop)| self.power(place, &hop))
            .reduce(|largest, link| if link.0 > largest.0 { link } else { largest })
    }

    fn next(&self, p: &PowertcpParams) -> f64 {
        let line = self.setting.line;
        let target =
            self.old / (self.power / p.powertcp_eta) + p.powertcp_additive_increase.bps() as f64;
        let rate = p.powertcp_gamma * target + (1.0 - p.powertcp_gamma) * self.old;
        rate.min(line.bps() as f64).max(p.powertcp_min_rate.min(line).bps() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate(40_000_000_000);

    /// 40 Gb/s, T = 10 us: 50,000 bytes are a full pipe.
    fn powertcp(change: impl FnOnce(&mut PowertcpParams)) -> (Powertcp, Shared<PowertcpParams>) {
        let mut p = PowertcpParams::default();
        change(&mut p);
        let shared = Shared { mss: 1000, ecn: false, law: Powertcp::constants(&p) };
        let mut law = Powertcp::new(0, &shared);
        law.begin(&Setting { line: LINE, base_rtt: Time::from_us(10), window: 50_000 }, &shared);
        (law, shared)
    }

    /// A link's record: microseconds, bytes sent, bytes waiting.
    fn hop(us: u64, sent: u64, queue: u64) -> Hop {
        Hop { at: Time::from_us(us), sent, queue, rate: LINE }
    }

    fn answer(
        law: &mut Powertcp,
        (una, nxt): (u64, u64),
        hops: &[Hop],
        shared: &Shared<PowertcpParams>,
    ) {
        let mut telemetry = Telemetry::default();
        hops.iter().for_each(|hop| telemetry.push(*hop));
        let now = Time::from_ms(1);
        let acked = Acked { now, bytes: 1000, ece: false, una, nxt, delay: Time::ZERO, hops: 1 };
        law.on_telemetry(&acked, &telemetry, shared);
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    /// By hand. In 5 us a full link sends 25,000 bytes. Its queue grows from 0 to 25,000: the
    /// current is twice its rate, the voltage 1.5 round trips, the power 3, and its average over
    /// half a round trip 2. The second answer is of the same round trip, with the queue as it was:
    /// power 1.5, average 1.75, from the same old rate. The third ends the round trip.
    #[test]
    fn a_growing_queue_counts_twice() {
        let (mut law, shared) = powertcp(|_| ());
        answer(&mut law, (1000, 40_000), &[hop(0, 0, 0)], &shared);
        assert_eq!(law.rate(&shared), Some(LINE), "the first only says where to count from");
        answer(&mut law, (2000, 41_000), &[hop(5, 25_000, 25_000)], &shared);
        let after = |old: f64, power: f64| 0.9 * (old / (power / 0.95) + 150e6) + 0.1 * old;
        close(law.0.rate, after(40e9, 2.0));
        answer(&mut law, (3000, 42_000), &[hop(10, 50_000, 25_000)], &shared);
        close(law.0.rate, after(40e9, 1.75));
        assert_eq!(law.0.old, 40e9);
        answer(&mut law, (41_000, 80_000), &[hop(15, 75_000, 25_000)], &shared);
        let old = after(40e9, 1.625);
        close(law.0.old, old);
        assert_eq!(law.0.links.until, 80_000);
        // A queue of 25,000 that is gone within 5 us: nothing arrived, so the current is half.
        answer(&mut law, (42_000, 81_000), &[hop(20, 100_000, 0)], &shared);
        close(law.0.rate, after(old, 0.5 * 1.625 + 0.5 * 0.5));
    }

    /// A queue that drains as fast as the link sends has HPCC's utilisation above 1, and here half
    /// the power: the rate has been cut enough.
    #[test]
    fn a_draining_queue_is_no_reason_to_slow_down() {
        let (mut law, shared) = powertcp(|_| ());
        answer(&mut law, (1000, 2000), &[hop(0, 0, 50_000)], &shared);
        law.0.old = 10e9;
        answer(&mut law, (3000, 4000), &[hop(10, 50_000, 0)], &shared);
        close(law.0.power, 0.5);
        close(law.0.rate, 0.9 * (10e9 / (0.5 / 0.95) + 150e6) + 0.1 * 10e9);
    }

    #[test]
    fn the_link_with_the_largest_power_counts() {
        let (mut law, shared) = powertcp(|_| ());
        answer(&mut law, (1000, 2000), &[hop(0, 0, 0), hop(0, 0, 50_000)], &shared);
        answer(&mut law, (3000, 4000), &[hop(10, 50_000, 0), hop(10, 50_000, 50_000)], &shared);
        close(law.0.power, 2.0);
    }

    #[test]
    fn without_fast_reaction_a_round_trip_steers_once() {
        let (mut law, shared) = powertcp(|p| p.powertcp_fast_react = false);
        answer(&mut law, (1000, 40_000), &[hop(0, 0, 0)], &shared);
        answer(&mut law, (2000, 41_000), &[hop(5, 25_000, 25_000)], &shared);
        assert_eq!(law.rate(&shared), Some(LINE));
        answer(&mut law, (41_000, 80_000), &[hop(10, 50_000, 0)], &shared);
        close(law.0.power, 1.0);
    }

    /// Records out of order, of another way, or of none do no harm.
    #[test]
    fn records_without_a_difference_are_left_out() {
        let (mut law, shared) = powertcp(|_| ());
        answer(&mut law, (1000, 2000), &[hop(10, 10_000, 0)], &shared);
        let slower = Hop { rate: Rate(1_000_000_000), ..hop(20, 20_000, 0) };
        for hops in [&[hop(5, 5_000, 0)][..], &[slower], &[]] {
            answer(&mut law, (1500, 2500), hops, &shared);
            assert_eq!(law.rate(&shared), Some(LINE));
        }
    }

    /// A link that is ever fuller leaves the least rate, an idle one the line's.
    #[test]
    fn the_rate_stays_in_its_bounds() {
        let (mut law, shared) = powertcp(|p| p.powertcp_additive_increase = Rate(0));
        answer(&mut law, (1000, 2000), &[hop(0, 0, 0)], &shared);
        for n in 1..=4u64 {
            answer(&mut law, (3000 * n, 3000 * n + 1), &[hop(10 * n, 0, 1 << (20 + n))], &shared);
        }
        assert_eq!(law.rate(&shared), Some(Rate(100_000_000)));
        for n in 5..=30u64 {
            answer(&mut law, (3000 * n, 3000 * n + 1), &[hop(10 * n, 0, 0)], &shared);
        }
        assert_eq!(law.rate(&shared), Some(LINE));
    }
}
