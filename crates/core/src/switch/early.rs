//! Random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993; RFC 2309): which packets of a
//! queue that grows are hit, whatever a hit means: refused by the admissions `red` and `wred`,
//! marked by the marking `red`.
//!
//! An average follows the queue's length. Below a minimum no packet is hit, from a maximum on every
//! one, and between them packets are hit at random, more often the longer the average is, and
//! evenly spaced: p_b = maxp · (avg − min)/(max − min), p_a = p_b/(1 − count · p_b), where count is
//! the number of packets since the last hit, this one included.
//!
//! A deviation from the paper: idle time is taken off the average once, also where a packet is
//! refused at an empty queue.
//!
//! Invariant: two questions without an arrival between them have one answer.

use super::QueueView;
use crate::context::Context;
use crate::random::Stream;
use crate::units::{Bytes, Time};

/// How the probability follows the average.
#[derive(Clone, Copy, Debug)]
pub(in crate::switch) struct Curve {
    min: f64,
    max: f64,
    max_probability: f64,
}

impl Curve {
    pub(in crate::switch) fn new(min: Bytes, max: Bytes, max_probability: f64) -> Curve {
        Curve {
            min: min.get() as f64,
            max: max.get() as f64,
            max_probability: max_probability.clamp(0.0, 1.0),
        }
    }

    /// The probability at a queue of this length, which is not averaged, without the spacing.
    pub(in crate::switch) fn probability(&self, bytes: u64) -> f64 {
        let length = bytes as f64;
        if length < self.min {
            0.0
        } else if length >= self.max {
            1.0
        } else {
            self.max_probability * (length - self.min) / (self.max - self.min)
        }
    }
}

/// The meaning of an average for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Below,
    /// Between the thresholds: whether the lot hits it.
    Drawn(bool),
    Beyond,
}

/// The average, the spacing and the lot.
#[derive(Clone, Debug)]
pub(in crate::switch) struct Estimate {
    weight: f64,
    packet_rate: f64,
    average: f64,
    /// When the queue ran empty, or was last found so.
    idle_since: Time,
    /// Packets between the thresholds since the last hit there.
    count: u32,
    /// Decides the next packet between the thresholds.
    lot: f64,
    random: Stream,
}

impl Estimate {
    pub(in crate::switch) fn new(weight: f64, packet_rate: f64) -> Estimate {
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

    pub(in crate::switch) fn install(&mut self, random: &mut Stream) {
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

    /// Whether a packet that arrives now is hit. Changes nothing.
    pub(in crate::switch) fn hits(
        &self,
        Context { now, view, .. }: &Context<'_, QueueView>,
        curve: &Curve,
    ) -> bool {
        match self.verdict(self.average_at(*now, view), curve) {
            Verdict::Below | Verdict::Drawn(false) => false,
            Verdict::Drawn(true) | Verdict::Beyond => true,
        }
    }

    /// The packet has arrived: its length is in the average, and the next lot is drawn.
    pub(in crate::switch) fn commit(&mut self, context: &Context<'_, QueueView>, curve: &Curve) {
        if let Verdict::Drawn(_) = self.arrive(context, curve) {
            self.lot = self.random.unit();
        }
    }

    /// The same where a packet is asked for once: whether it is hit, by a lot of the node's.
    pub(in crate::switch) fn draws(
        &mut self,
        context: &Context<'_, QueueView>,
        curve: &Curve,
    ) -> bool {
        self.lot = context.random.unit();
        matches!(self.arrive(context, curve), Verdict::Drawn(true) | Verdict::Beyond)
    }

    /// Takes an arrival into the average and the spacing.
    fn arrive(
        &mut self,
        Context { now, view, .. }: &Context<'_, QueueView>,
        curve: &Curve,
    ) -> Verdict {
        self.average = self.average_at(*now, view);
        if view.bytes == 0 {
            self.idle_since = *now;
        }
        let verdict = self.verdict(self.average, curve);
        self.count = if verdict == Verdict::Drawn(false) { self.count + 1 } else { 0 };
        verdict
    }

    /// A packet leaves the queue, of which the view still counts it.
    pub(in crate::switch) fn on_dequeue(
        &mut self,
        Context { now, view, .. }: &Context<'_, QueueView>,
    ) {
        if view.packets <= 1 {
            self.idle_since = *now;
        }
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
        let hits = |average: f64, bytes: u64| {
            let it = estimate(average);
            seeing_at(Time::ZERO, view(bytes), &Packet::default(), |at| it.hits(at, &curve()))
        };
        assert!(!hits(70_000.0, 300_000) && hits(226_000.0, 200_000));
    }

    /// With p_b = 0.05 the gaps between hits are uniform on 1 to 19, 1/p_b − 1, as the arriving
    /// packet counts (the paper's algorithm; its §7 counts those before and has 20).
    #[test]
    fn hits_are_evenly_spaced() {
        let mut it = estimate(150_000.0);
        let (mut gaps, mut gap) = ([0u32; 22], 0);
        for _ in 0..20_000 {
            gap += 1;
            let hit = seeing_at(Time::ZERO, view(150_000), &Packet::default(), |at| {
                it.hits(at, &curve())
            });
            seeing_at(Time::ZERO, view(150_000), &Packet::default(), |at| it.commit(at, &curve()));
            if hit {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        assert_eq!([gaps[0], gaps[20], gaps[21]], [0; 3], "{gaps:?}");
        let n: u32 = gaps.iter().sum();
        assert!(gaps[1..20].iter().all(|g| (n / 35..n / 13).contains(g)), "{gaps:?}");
    }
}
