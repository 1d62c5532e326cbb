//! HPCC: Li et al., High precision congestion control, SIGCOMM 2019, algorithm 1, as its authors'
//! released simulator runs it (its CC_MODE 3).
//!
//! Every acknowledgement brings what each switch on the way has written ([`Telemetry`]). From two
//! of them follows a link's utilisation u = txRate / C + min(q, q') · line / (C · window): what it
//! sends and what waits, in units of the most that it could carry in a round trip. Its average over
//! a round trip steers the rate: above eta by division, below it by a step, which after `max-stage`
//! steps is a division, too. The reference rate moves once a round trip; the acknowledgements in
//! between steer from the same reference (§3.2), so that no answer counts twice.
//!
//! With `multi-rate` each link of the way has a reference and stage of its own, and the least of
//! the rates counts; without it the link with the largest u steers one rate. The window is the
//! family's: a bandwidth-delay product, in proportion to the rate. The first acknowledgement
//! only begins the count.
//!
//! Invariant: min-rate ≤ rate ≤ line rate.

use super::links::{self, Links, Work};
use super::{Acked, Demands, Law, Metric, Quantity, RATE, Setting, Shared, in_gbps, step};
use crate::packet::{Hop, Telemetry, telemetry::HOPS};
use crate::registry::{About, PathProperty};
use crate::switch::site::Auto;
use crate::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "steers a queue pair's rate by what every switch on its way writes on its packets",
    source: "HPCC, SIGCOMM 2019, algorithm 1, and its released simulator",
    needs: &[PathProperty::FifoPerFlow],
    ..About::PLAIN
};

crate::params! {
    /// The keys of HPCC (SIGCOMM 2019).
    pub struct HpccParams {
        /// Eta: the utilisation that is aimed at. Source: 0.95, HPCC, SIGCOMM 2019 §5.1.
        #[within(0..=1)]
        pub hpcc_eta: f64 = 0.95,
        /// Steps in a row after which the rate is divided in any case; 0 divides always. Source: 5,
        /// SIGCOMM 2019 §5.1; 0 in the released simulator's script.
        pub hpcc_max_stage: u32 = 5,
        /// The step: W_AI as a rate. "auto" is 10 Mb/s for each 25 Gb/s of the host's link. Source:
        /// the released simulator; 50 Mb/s at 40 Gb/s in TLT's.
        pub hpcc_additive_increase: Auto<Rate> = Auto::Auto,
        /// Whether each link of the way has a rate of its own, of which the least counts. Source:
        /// the released simulator's MULTI_RATE; algorithm 1 has one rate.
        pub hpcc_multi_rate: bool = true,
        /// Whether acknowledgements within a round trip steer, too. Source: SIGCOMM 2019 §3.2.
        pub hpcc_fast_react: bool = true,
        /// The lowest rate. Source: 100 Mb/s, the released simulator.
        #[within(1..)]
        pub hpcc_min_rate: Rate = Rate(100_000_000),
    }
}

/// A reference rate and what has led to it.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Bits a second.
    rate: f64,
    /// The utilisation, as averaged.
    load: f64,
    /// Steps since the last division.
    stage: u32,
}

/// HPCC's state of one queue pair: rate, reference rates and each link's last record.
#[derive(Clone, Debug)]
pub struct Hpcc(Box<State>);

#[derive(Clone, Debug)]
struct State {
    setting: Setting,
    /// Bits a second, as are the next three: the rate, the line's, the lowest, and a step.
    rate: f64,
    line: f64,
    least: f64,
    step: f64,
    links: Links,
    /// With several rates, each link's; else the first is that of all.
    references: [Reference; HOPS],
}

const LOAD: Quantity = Quantity {
    name: "utilization",
    meaning: "HPCC's U, of the link for which it is the largest; 1 is a full pipe",
};

impl Law for Hpcc {
    type Params = HpccParams;
    type Constants = HpccParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &HpccParams) -> Demands {
        links::demands()
    }

    fn check(p: &HpccParams) -> Option<(&'static str, String)> {
        (p.hpcc_eta <= 0.0).then(|| ("hpcc-eta", "must be more than zero".to_string()))
    }

    fn constants(params: &HpccParams) -> HpccParams {
        HpccParams { hpcc_eta: params.hpcc_eta.clamp(f64::MIN_POSITIVE, 1.0), ..params.clone() }
    }

    fn new(_: u64, _: &Shared<HpccParams>) -> Hpcc {
        Hpcc(Box::new(State {
            setting: Setting { line: Rate(0), base_rtt: Time::ZERO, window: 0 },
            rate: 0.0,
            line: 0.0,
            least: 0.0,
            step: 0.0,
            links: Links::default(),
            references: [Reference { rate: 0.0, load: 1.0, stage: 0 }; HOPS],
        }))
    }

    fn begin(&mut self, setting: &Setting, shared: &Shared<HpccParams>) {
        let (state, p, line) = (&mut *self.0, &shared.law, setting.line);
        state.setting = *setting;
        (state.rate, state.line) = (line.bps() as f64, line.bps() as f64);
        state.least = p.hpcc_min_rate.min(line).bps() as f64;
        let (amount, per) = (Rate(10_000_000), Rate::from_gbps(25));
        state.step = step(p.hpcc_additive_increase, amount, per, line);
        state.references.iter_mut().for_each(|reference| reference.rate = state.rate);
    }

    fn on_telemetry(&mut self, acked: &Acked, telemetry: &Telemetry, shared: &Shared<HpccParams>) {
        let (state, p) = (&mut *self.0, &shared.law);
        if !state.links.are_known() {
            return state.links.note(acked, telemetry);
        }
        let ends = state.links.ends(acked);
        if !ends && !p.hpcc_fast_react {
            return;
        }
        let rate = match p.hpcc_multi_rate {
            true => state.by_link(telemetry, ends, p),
            false => state.by_largest(telemetry, ends, p),
        };
        if let Some(rate) = rate {
            state.rate = rate;
        }
        state.links.note(acked, telemetry);
    }

    fn rate(&self, _: &Shared<HpccParams>) -> Option<Rate> {
        (self.0.setting.line.bps() > 0).then_some(Rate(self.0.rate as u64))
    }

    fn metrics(&self, shared: &Shared<HpccParams>) -> Vec<Metric> {
        let known = self.0.links.known();
        let links = if shared.law.hpcc_multi_rate { known } else { 1.min(known) };
        let load =
            self.0.references[..links].iter().map(|reference| reference.load).reduce(f64::max);
        vec![(RATE, Some(in_gbps(self.0.rate))), (LOAD, load.filter(|_| self.0.links.are_known()))]
    }
}

impl State {
    /// A link's work since the last answer: its utilisation, and over what share of a round trip,
    /// at most 1. `None`: there is no earlier record of it.
    fn load(&self, place: usize, hop: &Hop) -> Option<(f64, f64)> {
        let Work { before, ps, sent } = self.links.work(place, hop)?;
        let bits = 8.0 * sent as f64;
        let capacity = hop.rate.bps() as f64;
        let Setting { base_rtt, window, .. } = self.setting;
        let waits = match hop.queue.min(before.queue) {
            0 => 0.0,
            queue => queue as f64 * self.line / (capacity * window.max(1) as f64),
        };
        let load = bits / (ps as f64 * 1e-12) / capacity + waits;
        Some((load, (ps as f64 / base_rtt.as_ps().max(1) as f64).min(1.0)))
    }

    /// A link has seen `load` over this share of a round trip: the rate that follows. The average
    /// moves with each answer, rate and stage of the reference with the one that `ends` the round
    /// trip.
    fn moved(&mut self, place: usize, load: (f64, f64), ends: bool, p: &HpccParams) -> f64 {
        let from = self.references[place];
        let (load, share) = load;
        let load = from.load * (1.0 - share) + load * share;
        let excess = load / p.hpcc_eta;
        let (rate, stage) = match excess >= 1.0 || from.stage >= p.hpcc_max_stage {
            true => (from.rate / excess + self.step, 0),
            false => (from.rate + self.step, from.stage + 1),
        };
        // An idle link divides by nothing: the line's rate bounds it.
        let rate = rate.min(self.line).max(self.least);
        self.references[place] = match ends {
            true => Reference { rate, load, stage },
            false => Reference { load, ..from },
        };
        rate
    }

    /// Each link has a rate; the least counts.
    fn by_link(&mut self, telemetry: &Telemetry, ends: bool, p: &HpccParams) -> Option<f64> {
        let mut least = self.line;
        let mut any = false;
        for (place, hop) in telemetry.hops().enumerate() {
            let load = self.load(place, &hop);
            any |= load.is_some();
            least = least.min(match load {
                Some(load) => self.moved(place, load, ends, p),
                None => self.references[place].rate,
            });
        }
        any.then_some(least)
    }

    /// The link with the largest utilisation steers the one rate.
    fn by_largest(&mut self, telemetry: &Telemetry, ends: bool, p: &HpccParams) -> Option<f64> {
        let mut largest: Option<(f64, f64)> = None;
        for (place, hop) in telemetry.hops().enumerate() {
            if let Some(load) = self.load(place, &hop)
                && largest.is_none_or(|largest| load.0 > largest.0)
            {
                largest = Some(load);
            }
        }
        Some(self.moved(0, largest?, ends, p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate(40_000_000_000);

    /// 40 Gb/s, T = 10 us, a window of 50,000 bytes, a step of 50 Mb/s.
    fn hpcc(change: impl FnOnce(&mut HpccParams)) -> (Hpcc, Shared<HpccParams>) {
        let mut p = HpccParams {
            hpcc_additive_increase: Auto::Given(Rate(50_000_000)),
            ..HpccParams::default()
        };
        change(&mut p);
        let shared = Shared { mss: 1000, ecn: false, law: Hpcc::constants(&p) };
        let mut law = Hpcc::new(0, &shared);
        law.begin(&Setting { line: LINE, base_rtt: Time::from_us(10), window: 50_000 }, &shared);
        (law, shared)
    }

    /// A link's record: microseconds, bytes sent, bytes waiting.
    fn hop(us: u64, sent: u64, queue: u64) -> Hop {
        Hop { at: Time::from_us(us), sent, queue, rate: LINE }
    }

    fn answer(law: &mut Hpcc, (una, nxt): (u64, u64), hops: &[Hop], shared: &Shared<HpccParams>) {
        let mut telemetry = Telemetry::default();
        hops.iter().for_each(|hop| telemetry.push(*hop));
        let now = Time::from_ms(1);
        let acked = Acked { now, bytes: 1000, ece: false, una, nxt, delay: Time::ZERO, hops: 1 };
        law.on_telemetry(&acked, &telemetry, shared);
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    /// By hand. U begins at 1. After 5 us, half a round trip, in which 25,000 bytes were sent (u =
    /// 1 of sending) and 10,000 waited both times (u += 0.2): U = 0.5 · 1 + 0.5 · 1.2 = 1.1, and
    /// the rate is 40 / (1.1 / 0.95) + 0.05 Gb/s. The second answer is of the same round trip: it
    /// steers from 40 Gb/s again. The third ends it, and the fourth steers from where the third has
    /// left.
    #[test]
    fn answers_of_one_round_trip_steer_from_one_reference() {
        let (mut law, shared) = hpcc(|_| ());
        answer(&mut law, (1000, 40_000), &[hop(0, 0, 10_000)], &shared);
        assert_eq!(law.rate(&shared), Some(LINE), "the first only says where to count from");
        answer(&mut law, (2000, 41_000), &[hop(5, 25_000, 10_000)], &shared);
        let after = |from: f64, load: f64| from / (load / 0.95) + 50e6;
        close(law.0.rate, after(40e9, 1.1));
        answer(&mut law, (3000, 42_000), &[hop(10, 50_000, 10_000)], &shared);
        close(law.0.rate, after(40e9, 0.5 * 1.1 + 0.5 * 1.2));
        assert_eq!(law.0.references[0].rate, 40e9);
        answer(&mut law, (41_000, 80_000), &[hop(15, 75_000, 20_000)], &shared);
        let load = 0.5 * 1.15 + 0.5 * 1.2; // the smaller of both queues counts
        let reference = after(40e9, load);
        close(law.0.references[0].rate, reference);
        assert_eq!(law.0.links.until, 80_000);
        answer(&mut law, (42_000, 81_000), &[hop(25, 125_000, 0)], &shared);
        close(law.0.rate, after(reference, 1.0)); // 10 us: all of the average is new
        close(law.0.references[0].rate, reference);
    }

    /// By hand: a link that carries half of what it could lets the rate grow by a step a round
    /// trip, five times; the sixth time it is divided, by 0.5 / 0.95.
    #[test]
    fn below_eta_the_rate_grows_by_steps_and_then_by_division() {
        let (mut law, shared) = hpcc(|_| ());
        law.0.references[0].rate = 10e9;
        answer(&mut law, (1000, 2000), &[hop(0, 0, 0)], &shared);
        let mut expected = 10e9;
        for n in 1..=6u64 {
            answer(
                &mut law,
                (1000 + 2000 * n, 2000 + 2000 * n),
                &[hop(10 * n, 25_000 * n, 0)],
                &shared,
            );
            expected = if n <= 5 { expected + 50e6 } else { expected / (0.5 / 0.95) + 50e6 };
            close(law.0.rate, expected);
            assert_eq!(law.0.references[0].stage, if n <= 5 { n as u32 } else { 0 });
        }
    }

    /// Two links, of which the second is full: with a rate a link the first one's stays high; with
    /// one rate the fuller link steers it.
    #[test]
    fn the_fullest_link_counts() {
        for multi in [true, false] {
            let (mut law, shared) = hpcc(|p| p.hpcc_multi_rate = multi);
            answer(&mut law, (1000, 2000), &[hop(0, 0, 0), hop(0, 0, 50_000)], &shared);
            answer(&mut law, (3000, 4000), &[hop(10, 25_000, 0), hop(10, 50_000, 50_000)], &shared);
            close(law.0.rate, 40e9 / (2.0 / 0.95) + 50e6);
            assert_eq!(law.0.references[0].load, if multi { 0.5 } else { 2.0 });
            assert_eq!(law.metrics(&shared)[1].1, Some(2.0));
        }
    }

    #[test]
    fn without_fast_reaction_a_round_trip_steers_once() {
        let (mut law, shared) = hpcc(|p| p.hpcc_fast_react = false);
        answer(&mut law, (1000, 40_000), &[hop(0, 0, 0)], &shared);
        answer(&mut law, (2000, 41_000), &[hop(5, 25_000, 50_000)], &shared);
        assert_eq!(law.rate(&shared), Some(LINE));
        answer(&mut law, (41_000, 80_000), &[hop(10, 50_000, 0)], &shared);
        close(law.0.rate, 40e9 / (1.0 / 0.95) + 50e6);
    }

    /// Records out of order, of another way, or of an idle link do no harm.
    #[test]
    fn what_says_nothing_is_left_out() {
        let (mut law, shared) = hpcc(|p| p.hpcc_max_stage = 0);
        answer(&mut law, (1000, 2000), &[hop(10, 10_000, 0)], &shared);
        let slower = Hop { rate: Rate(1_000_000_000), ..hop(20, 20_000, 0) };
        for hops in [&[hop(5, 5_000, 0)][..], &[slower], &[], &[hop(20, 0, 0)]] {
            answer(&mut law, (1500, 2500), hops, &shared);
            assert_eq!(law.rate(&shared), Some(LINE));
        }
        for n in 3..9u64 {
            answer(&mut law, (3000 * n, 3000 * n + 1), &[hop(100 * n, 0, 0)], &shared);
            assert_eq!(law.rate(&shared), Some(LINE), "an idle link divides by nothing");
        }
    }
}
