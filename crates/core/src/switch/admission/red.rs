//! RED: random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993), here refusing and not marking.
//!
//! An average follows the queue's length. Below `min-threshold` everything is admitted, from `max-threshold` on nothing,
//! and between them packets are refused at random, more often the longer the average is, and evenly spaced: p_b = maxp ·
//! (avg − min)/(max − min), p_a = p_b/(1 − count · p_b), where count is the number of packets since the last refusal, this
//! one included.
//!
//! A test must not change anything, so it works out the average that the packet's arrival gives, and the lot that decides
//! lies drawn; both become real when the packet is committed. A deviation from the paper: idle time is taken off the
//! average once, also where a packet is refused at an empty queue.
//!
//! Invariant: two tests without a commit between them agree.

use super::{Admits, PortFacts};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::About;
use crate::switch::QueueView;
use crate::units::{Bytes, Time};

pub(super) const ABOUT: About = About {
    summary: "refuses at random, more often the longer the queue is on average",
    source: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM ToN 1993",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// RED.
    pub struct RedParams {
        /// The average from which packets are refused. Source: 75 KB of 300 KB, the CoNEXT 2023 deflection artifact.
        pub min_threshold: Bytes = Bytes(75_000),
        /// The average from which every packet is refused. Source: 225 KB of 300 KB, the same artifact.
        #[within(1..)]
        pub max_threshold: Bytes = Bytes(225_000),
        /// Probability of refusal just below the maximum, before the spacing. Source: 0.1, the same artifact.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: 0.002, the same artifact; the paper simulates with it.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty, as if so many had come. Source: 150,
        /// the same artifact; a 10 Gb/s link could send some 800,000.
        #[within(1..)]
        pub packet_rate: f64 = 150.0,
    }
}

/// How the probability follows the average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    min: f64,
    max: f64,
    max_probability: f64,
}

impl Curve {
    pub(super) fn new(min: Bytes, max: Bytes, max_probability: f64) -> Curve {
        Curve { min: min.get() as f64, max: max.get() as f64, max_probability: max_probability.clamp(0.0, 1.0) }
    }
}

/// What an average means for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Below the minimum.
    Below,
    /// Between the thresholds: whether the lot refuses it.
    Drawn(bool),
    /// Beyond the maximum.
    Beyond,
}

/// The average, the spacing and the lot.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    weight: f64,
    packet_rate: f64,
    average: f64,
    /// When the queue ran empty, or was last found so.
    idle_since: Time,
    /// Packets between the thresholds since the last refusal there.
    count: u32,
    /// Decides the next packet between the thresholds.
    lot: f64,
    random: Stream,
}

impl Estimate {
    pub(super) fn new(weight: f64, packet_rate: f64) -> Estimate {
        Estimate {
            weight: weight.clamp(0.0, 1.0),
            packet_rate: packet_rate.max(0.0),
            average: 0.0,
            idle_since: Time::ZERO,
            count: 0,
            lot: 1.0,
            random: Stream::from_key(0),
        }
    }

    pub(super) fn install(&mut self, random: &mut Stream) {
        self.random = random.fork();
        self.lot = self.random.unit();
    }

    /// The average with an arrival that finds `view`.
    fn average_at(&self, now: Time, view: &QueueView) -> f64 {
        if view.bytes > 0 {
            return (1.0 - self.weight) * self.average + self.weight * view.bytes as f64;
        }
        let idle = now.as_ps().saturating_sub(self.idle_since.as_ps()) as f64 * 1e-12;
        self.average * libm::pow(1.0 - self.weight, idle * self.packet_rate)
    }

    fn verdict(&self, average: f64, curve: &Curve) -> Verdict {
        if average < curve.min {
            return Verdict::Below;
        }
        if average >= curve.max {
            return Verdict::Beyond;
        }
        let p = curve.max_probability * (average - curve.min) / (curve.max - curve.min);
        let spaced = 1.0 - f64::from(self.count + 1) * p;
        Verdict::Drawn(self.lot * spaced < p)
    }

    pub(super) fn test(&self, Context { now, view, .. }: &Context<'_, QueueView>, curve: &Curve) -> Option<DropReason> {
        match self.verdict(self.average_at(*now, view), curve) {
            Verdict::Below | Verdict::Drawn(false) => None,
            Verdict::Drawn(true) | Verdict::Beyond => Some(DropReason::Early),
        }
    }

    pub(super) fn commit(&mut self, Context { now, view, .. }: &Context<'_, QueueView>, curve: &Curve) {
        self.average = self.average_at(*now, view);
        if view.bytes == 0 {
            self.idle_since = *now;
        }
        self.count = match self.verdict(self.average, curve) {
            Verdict::Below | Verdict::Beyond => 0,
            Verdict::Drawn(refuses) => {
                self.lot = self.random.unit();
                if refuses { 0 } else { self.count + 1 }
            }
        };
    }

    pub(super) fn on_dequeue(&mut self, Context { now, view, .. }: &Context<'_, QueueView>) {
        if view.packets <= 1 {
            self.idle_since = *now;
        }
    }
}

/// RED.
#[derive(Clone, Debug)]
pub struct Red {
    curve: Curve,
    /// Boxed, so that a port with another policy does not carry the space.
    estimate: Box<Estimate>,
}

impl Red {
    pub(super) fn new(params: &RedParams) -> Red {
        Red {
            curve: Curve::new(params.min_threshold, params.max_threshold, params.max_probability),
            estimate: Box::new(Estimate::new(params.weight, params.packet_rate)),
        }
    }
}

impl Admits for Red {
    fn install(&mut self, _: &PortFacts, random: &mut Stream) {
        self.estimate.install(random);
    }

    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        self.estimate.test(context, &self.curve)
    }

    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        self.estimate.commit(context, &self.curve);
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        self.estimate.on_dequeue(context);
    }

    fn watches_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::switch::tests::seeing_at;

    fn view(bytes: u64) -> QueueView {
        QueueView { packets: u32::from(bytes > 0), bytes }
    }
    fn estimate(average: f64) -> Estimate {
        let mut it = Estimate::new(0.002, 150.0);
        it.install(&mut Stream::new(1, "t"));
        it.average = average;
        it
    }
    fn curve() -> Curve {
        Curve::new(Bytes(75_000), Bytes(225_000), 0.1)
    }

    #[test]
    fn the_average_follows_the_length_and_falls_while_idle() {
        let mut it = estimate(100_000.0);
        seeing_at(Time::ZERO, view(200_000), &Packet::default(), |at| it.commit(at, &curve()));
        assert_eq!(it.average, 0.998 * 100_000.0 + 0.002 * 200_000.0);
        // Empty from 1 s on; at 3 s 300 packets' worth has gone, and it goes once.
        it.average = 100_000.0;
        seeing_at(Time::from_s(1), view(1500), &Packet::default(), |at| it.on_dequeue(at));
        seeing_at(Time::from_s(3), view(0), &Packet::default(), |at| it.commit(at, &curve()));
        let expected = 100_000.0 * 0.998f64.powi(300);
        assert!((it.average - expected).abs() < 1e-3 * expected, "{}", it.average);
        let before = it.average;
        seeing_at(Time::from_s(3), view(0), &Packet::default(), |at| it.commit(at, &curve()));
        assert_eq!(it.average, before);
    }

    #[test]
    fn nothing_below_the_minimum_everything_beyond_the_maximum() {
        assert_eq!(
            seeing_at(Time::ZERO, view(300_000), &Packet::default(), |at| estimate(70_000.0).test(at, &curve())),
            None
        );
        assert_eq!(
            seeing_at(Time::ZERO, view(200_000), &Packet::default(), |at| estimate(226_000.0).test(at, &curve())),
            Some(DropReason::Early)
        );
    }

    /// With p_b = 0.05 the gaps between refusals are uniform on 1 to 19, 1/p_b − 1, as the arriving packet counts (the
    /// paper's algorithm; its §7 counts those before and has 20).
    #[test]
    fn refusals_are_evenly_spaced() {
        let mut it = estimate(150_000.0);
        let (mut gaps, mut gap) = ([0u32; 22], 0);
        for _ in 0..20_000 {
            gap += 1;
            let refused =
                seeing_at(Time::ZERO, view(150_000), &Packet::default(), |at| it.test(at, &curve())).is_some();
            seeing_at(Time::ZERO, view(150_000), &Packet::default(), |at| it.commit(at, &curve()));
            if refused {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        assert_eq!([gaps[0], gaps[20], gaps[21]], [0; 3], "{gaps:?}");
        let n: u32 = gaps.iter().sum();
        assert!(gaps[1..20].iter().all(|g| (n / 35..n / 13).contains(g)), "{gaps:?}");
    }
}
