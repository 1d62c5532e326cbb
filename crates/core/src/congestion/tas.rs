//! TAS: the rate-based DCTCP of a user-level TCP (TAS, EuroSys 2019), as its released code runs it;
//! the stack of Backdraft's applications.
//!
//! A slow path looks at the connection every `tas-interval` round trips, never more often than its
//! own turn. The bytes acknowledged and marked since then decide, once there are `tas-min-acks`
//! acknowledgements of them: without marks the rate doubles until there were any, and grows by a
//! step then; with marks it shrinks by half their smoothed fraction; with losses it is halved. It
//! is never more than 1.2 times of what was really delivered, so a connection that has nothing to
//! send does not save up a rate. The first loss between two looks halves the rate at once, until
//! the next look.
//!
//! Looks happen here when an acknowledgement comes after their time, with what there was before it:
//! nothing else could change a rate. A packet leaves at a time, each at its own departure; the only
//! window is that of the buffers, which were 8 KB each. The family finds losses and sends them
//! again; TAS goes back to the first byte that is not acknowledged, in either case.
//!
//! Invariant: the rate is positive, and changes at most once an interval but for the first loss in
//! it.

use super::{
    Acked, Cause, Cut, Demands, Echo, Law, Metric, Quantity, RATE, Shared, Window, in_gbps,
};
use crate::registry::{About, PathProperty, Signal};
use crate::{Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "steers a rate by marks and what was delivered, as a user-level TCP does",
    source: "TAS, EuroSys 2019, and its released code (tas/slow/cc.c)",
    needs: &[PathProperty::FifoPerFlow, PathProperty::TimersRun, PathProperty::LossIsSignal],
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of TAS's rate-based DCTCP (EuroSys 2019).
    pub struct TasParams {
        /// Rate of a new connection, in payload. Source: TAS' released code, `cc-dctcp-init`.
        #[within(1..)]
        pub tas_initial_rate: Rate = Rate(10_000_000),
        /// Growth of the rate in an interval without marks, after slow start. Source: TAS' released
        /// code, `cc-dctcp-step`.
        pub tas_step: Rate = Rate(10_000_000),
        /// The lowest rate. Source: none in TAS' released code; 1 Mb/s is ours, a packet every 12
        /// ms.
        #[within(1..)]
        pub tas_min_rate: Rate = Rate(1_000_000),
        /// Weight of the newest fraction of marks. Source: TAS' released code, `cc-dctcp-weight`.
        #[within(0..=1)]
        pub tas_weight: f64 = 1.0 / 16.0,
        /// Acknowledgements before the rate changes. Source: TAS' released code,
        /// `cc-dctcp-minpkts`.
        #[within(1..)]
        pub tas_min_acks: u32 = 50,
        /// Round trips from one look at a connection to the next. Source: TAS' released code,
        /// `cc-control-interval`.
        #[within(1..)]
        pub tas_interval: u32 = 2,
        /// Least time from one look to the next. Source: TAS' released code,
        /// `cc-control-granularity`.
        pub tas_granularity: Time = Time::from_us(50),
        /// Round-trip time before the first sample. Source: TAS' released code, `tcp-rtt-init`.
        pub tas_initial_rtt: Time = Time::from_us(50),
    }
}

/// A rate may be more than what was delivered by so much.
const HEADROOM: f64 = 1.2;
/// A window that limits nothing, in bytes.
const UNBOUNDED: u64 = 1 << 40;

/// TAS's state of one connection: its rate and the counts of its interval.
#[derive(Clone, Debug)]
pub struct Tas(Box<State>);

#[derive(Clone, Debug)]
struct State {
    /// As the last look has left it, in bits a second.
    rate: f64,
    /// Halved by a loss since then.
    is_halved: bool,
    /// Smoothed fraction of marks.
    marks: f64,
    /// Nothing has gone wrong yet.
    slow_start: bool,
    /// Smoothed rate of delivery.
    delivered: f64,
    /// Smoothed round-trip time; zero before the first sample.
    rtt: Time,
    /// The last look; `Time::MAX` before the first acknowledgement.
    looked: Time,
    /// Since the rate last changed.
    seen: Seen,
    /// Payload of the last packet.
    last_bytes: u32,
}

/// Acknowledgements and losses since the rate last changed.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    acks: u32,
    bytes: u64,
    marked: u64,
    losses: u32,
}

const MARKS: Quantity = Quantity {
    name: "marked_fraction",
    meaning: "TAS' smoothed fraction of bytes that are marked",
};

impl Law for Tas {
    type Params = TasParams;
    type Constants = TasParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &TasParams) -> Demands {
        let echo = Echo::Precise;
        Demands {
            echo,
            marks_retransmissions: true,
            paces: true,
            spaces: true,
            ..Demands::default()
        }
    }

    fn check(p: &TasParams) -> Option<(&'static str, String)> {
        let (min, initial) = (p.tas_min_rate, p.tas_initial_rate);
        (min > initial)
            .then(|| ("tas-min-rate", format!("{min} is above tas-initial-rate ({initial})")))
    }

    fn constants(params: &TasParams) -> TasParams {
        TasParams { tas_weight: params.tas_weight.clamp(0.0, 1.0), ..params.clone() }
    }

    fn initial_window(_: u64, _: &Shared<TasParams>) -> u64 {
        UNBOUNDED
    }

    fn new(_: u64, shared: &Shared<TasParams>) -> Tas {
        Tas(Box::new(State {
            rate: shared.law.tas_initial_rate.bps() as f64,
            is_halved: false,
            marks: 0.0,
            slow_start: true,
            delivered: 0.0,
            rtt: Time::ZERO,
            looked: Time::MAX,
            seen: Seen::default(),
            last_bytes: shared.mss,
        }))
    }

    /// Marks steer the rate, not a window: no acknowledgement asks for a cut.
    fn on_ack(&mut self, ack: Acked, shared: &Shared<TasParams>) -> bool {
        let state = &mut *self.0;
        if state.looked == Time::MAX {
            state.looked = ack.now;
        }
        state.look_until(ack.now, &shared.law);
        state.rtt = match state.rtt {
            Time::ZERO => ack.delay,
            rtt => (rtt * 7 + ack.delay) / 8,
        };
        state.seen.acks += 1;
        state.seen.bytes += ack.bytes;
        state.seen.marked += if ack.ece { ack.bytes } else { 0 };
        false
    }

    fn cut(&mut self, _: &mut Window, cut: &Cut, _: &Shared<TasParams>) {
        if cut.cause != Cause::Mark {
            self.0.is_halved = true;
            self.0.seen.losses += 1;
        }
    }

    fn window(&self, _: &Shared<TasParams>) -> Option<u64> {
        Some(UNBOUNDED)
    }

    fn rate(&self, shared: &Shared<TasParams>) -> Option<Rate> {
        let rate = if self.0.is_halved { self.0.rate / 2.0 } else { self.0.rate };
        Some(Rate(rate as u64).max(shared.law.tas_min_rate))
    }

    fn next_departure(&self, last: Time, shared: &Shared<TasParams>) -> Time {
        let rate = self.rate(shared).unwrap_or(shared.law.tas_min_rate);
        last.saturating_add(rate.transmission_time(u64::from(self.0.last_bytes)))
    }

    fn on_sent(&mut self, _: Time, bytes: u32, _: &Shared<TasParams>) {
        self.0.last_bytes = bytes;
    }

    fn metrics(&self, _: &Shared<TasParams>) -> Vec<Metric> {
        vec![(RATE, Some(in_gbps(self.0.rate))), (MARKS, Some(self.0.marks))]
    }
}

impl State {
    /// From one look to the next.
    fn interval(&self, p: &TasParams) -> Time {
        let rtt = if self.rtt == Time::ZERO { p.tas_initial_rtt } else { self.rtt };
        rtt.saturating_mul(u64::from(p.tas_interval)).max(p.tas_granularity).max(Time::from_ns(1))
    }

    /// The looks that were due by now. Only the first of them has seen anything.
    fn look_until(&mut self, now: Time, p: &TasParams) {
        let interval = self.interval(p);
        let due = now.saturating_sub(self.looked).as_ps() / interval.as_ps();
        if due > 0 {
            self.is_halved = false;
            if self.seen.acks >= p.tas_min_acks {
                self.steer(interval, p);
            }
            self.looked += interval.saturating_mul(due);
        }
    }

    fn steer(&mut self, interval: Time, p: &TasParams) {
        let seen = std::mem::take(&mut self.seen);
        // All that came since the rate last changed, over the last interval alone: so does the
        // source.
        let delivered = seen.bytes as f64 * 8.0 / interval.as_s_f64();
        self.delivered = (7.0 * self.delivered + delivered) / 8.0;
        self.rate = self.rate.min(HEADROOM * delivered.max(self.delivered));
        self.slow_start &= seen.losses == 0 && seen.marked == 0;
        if self.slow_start {
            self.rate *= 2.0;
        } else if seen.losses > 0 {
            self.rate /= 2.0;
        } else {
            let fraction =
                if seen.bytes > 0 { seen.marked as f64 / seen.bytes as f64 } else { self.marks };
            self.marks += p.tas_weight * (fraction - self.marks);
            match seen.marked {
                0 => self.rate += p.tas_step.bps() as f64,
                _ => self.rate *= 1.0 - self.marks / 2.0,
            }
        }
        self.rate = self.rate.max(p.tas_min_rate.bps() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn tas(change: impl FnOnce(&mut TasParams)) -> (Tas, Shared<TasParams>) {
        let mut p = TasParams::default();
        change(&mut p);
        let shared = Shared { mss: MSS, ecn: true, law: Tas::constants(&p) };
        (Tas::new(0, &shared), shared)
    }

    /// `n` acknowledgements of a segment each from `now` on, a microsecond apart, of which the
    /// first `marked` are marked, after a round trip of 50 us.
    fn acks(law: &mut Tas, now: Time, n: u64, marked: u64, shared: &Shared<TasParams>) {
        for i in 0..n {
            let delay = Time::from_us(50);
            let (now, bytes, ece) = (now + Time::from_us(i), u64::from(MSS), i < marked);
            assert!(!law.on_ack(Acked { now, bytes, ece, una: 0, nxt: 0, delay, hops: 1 }, shared));
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    /// By hand. Two round trips are 100 us; 50 segments in one are 4 Gb/s, so nothing clamps 10
    /// Mb/s: 20, 40, 80.
    #[test]
    fn it_doubles_until_something_goes_wrong() {
        let (mut law, shared) = tas(|_| ());
        for (n, mbps) in [(0, 10.0), (1, 20.0), (2, 40.0), (3, 80.0)] {
            acks(&mut law, Time::from_us(100 * n), 50, 0, &shared);
            close(law.0.rate, mbps * 1e6);
        }
        // 10 of 50 are marked: the fraction is 0.2 / 16, half of which goes.
        acks(&mut law, Time::from_us(400), 50, 10, &shared);
        acks(&mut law, Time::from_us(500), 50, 0, &shared);
        close(law.0.rate, 160e6 * (1.0 - 0.0125 / 2.0));
        assert!(!law.0.slow_start);
        // And then steps of 10 Mb/s; the fraction decays.
        acks(&mut law, Time::from_us(600), 1, 0, &shared);
        close(law.0.rate, 160e6 * (1.0 - 0.0125 / 2.0) + 10e6);
        close(law.metrics(&shared)[1].1.unwrap(), 0.0125 * 15.0 / 16.0);
    }

    #[test]
    fn fewer_than_fifty_acknowledgements_change_nothing_and_are_kept() {
        let (mut law, shared) = tas(|_| ());
        acks(&mut law, Time::ZERO, 49, 0, &shared);
        acks(&mut law, Time::from_us(1000), 1, 0, &shared);
        close(law.0.rate, 10e6);
        acks(&mut law, Time::from_us(1100), 1, 0, &shared);
        close(law.0.rate, 20e6);
    }

    /// 50 segments in 100 us are 4 Gb/s: 4.8 is the most.
    #[test]
    fn what_was_delivered_bounds_the_rate() {
        let (mut law, shared) = tas(|p| p.tas_initial_rate = Rate::from_gbps(40));
        acks(&mut law, Time::ZERO, 50, 1, &shared);
        acks(&mut law, Time::from_us(100), 1, 0, &shared);
        close(law.0.rate, 4.8e9 * (1.0 - 0.02 / 32.0));
    }

    #[test]
    fn a_loss_halves_at_once_and_for_good_at_the_next_look() {
        let (mut law, shared) = tas(|_| ());
        let rate = |law: &Tas| law.rate(&shared).unwrap().bps();
        let mut window = Window { cwnd: UNBOUNDED, ssthresh: u64::MAX };
        acks(&mut law, Time::ZERO, 40, 0, &shared);
        for cause in [Cause::Loss, Cause::Timeout] {
            law.cut(&mut window, &Cut { now: Time::from_us(41), cause, flight: 0 }, &shared);
            assert_eq!((rate(&law), window.cwnd), (5_000_000, UNBOUNDED), "the first only");
        }
        acks(&mut law, Time::from_us(150), 20, 0, &shared);
        assert_eq!(rate(&law), 10_000_000, "a look that has seen too little takes it back");
        acks(&mut law, Time::from_us(250), 1, 0, &shared);
        assert_eq!(rate(&law), 5_000_000);
    }

    #[test]
    fn departures_follow_what_was_sent() {
        let (mut law, shared) = tas(|_| ());
        assert_eq!(
            law.next_departure(Time::ZERO, &shared),
            Time::from_us(800),
            "1000 bytes at 10 Mb/s"
        );
        law.on_sent(Time::ZERO, 100, &shared);
        assert_eq!(law.next_departure(Time::from_us(7), &shared), Time::from_us(87));
    }
}
