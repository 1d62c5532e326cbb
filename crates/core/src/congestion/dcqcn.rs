//! DCQCN: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, as
//! Mellanox's NICs run it and HPCC's released simulator models them (its CC_MODE 1).
//!
//! The receiver notifies the sender of marks (CNP); this is the sender, the paper's reaction point.
//! Two clocks begin with the first notification. At each tick of the first alpha moves towards 1 if
//! there was a notification since the last tick, and else towards 0. At each tick of the second the
//! rate is cut by alpha/2 if there was one. From a cut on a timer, and a byte counter if there is
//! one, bring the rate back in stages: half the way to the target, then with a target that grows by
//! a step, then by a larger one. Where both run, the largest of their stages ends fast recovery and
//! the smallest begins hyper increase, as in the paper (§5.1).
//!
//! Alpha's ticks are worked out when a cut asks for it, and the second clock asks for a call only
//! where it will cut, so an idle queue pair costs no events. Where both clocks tick at one instant
//! alpha is first, as in the released simulator.
//!
//! Invariant: min-rate ≤ rate ≤ line rate, rate ≤ target ≤ line rate once a cut has been, 0 ≤ alpha
//! ≤ 1.

use super::{Demands, Echo, Family, Law, Metric, Quantity, RATE, Setting, Shared, in_gbps, step};
use crate::registry::{About, Signal};
use crate::switch::site::Auto;
use crate::{Bytes, Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "cuts a queue pair's rate when notified of marks, and brings it back in stages",
    source: "DCQCN, SIGCOMM 2015; HPCC's released simulator",
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of DCQCN (SIGCOMM 2015).
    pub struct DcqcnParams {
        /// From one update of alpha to the next. Source: 1us, HPCC's released simulator; the paper
        /// has 55us (SIGCOMM 2015 §5.2).
        #[within(1..)]
        pub dcqcn_alpha_timer: Time = Time::from_us(1),
        /// The rate is cut at most once in this time. Source: 4us, HPCC's released simulator; the
        /// paper cuts at every notification, of which the receiver sends one in 50us.
        #[within(1..)]
        pub dcqcn_decrease_interval: Time = Time::from_us(4),
        /// From one timed increase to the next. Source: 300us, HPCC's released simulator; 55us in
        /// the paper (§5.2), 900us in TLT's.
        #[within(1..)]
        pub dcqcn_increase_timer: Time = Time::from_us(300),
        /// An increase after so many bytes, too; off: the timer alone. Source: the paper has 10MB
        /// (§5.2), HPCC's released simulator none.
        #[within(1..)]
        pub dcqcn_byte_counter: Option<Bytes> = None,
        /// Weight of the newest update in alpha. Source: 1/256, SIGCOMM 2015 §5.2.
        #[within(0..=1)]
        pub dcqcn_g: f64 = 1.0 / 256.0,
        /// F: increases of a timer or counter before its target grows. Source: 1, HPCC's released
        /// simulator; 5 in the paper (§5.1).
        pub dcqcn_fast_recovery: u32 = 1,
        /// Growth of the target in additive increase. "auto" is 5 Mb/s for each 25 Gb/s of the
        /// host's link. Source: HPCC's released simulator; 40 Mb/s in the paper (§5.2), 50 Mb/s in
        /// TLT's.
        pub dcqcn_additive_increase: Auto<Rate> = Auto::Auto,
        /// Growth of the target in hyper increase. "auto" is 50 Mb/s for each 25 Gb/s of the host's
        /// link. Source: HPCC's released simulator; 100 Mb/s in TLT's.
        pub dcqcn_hyper_increase: Auto<Rate> = Auto::Auto,
        /// The lowest rate. Source: 100 Mb/s, HPCC's and TLT's released simulators.
        #[within(1..)]
        pub dcqcn_min_rate: Rate = Rate(100_000_000),
        /// Whether every cut makes the rate before it the target; otherwise one that follows
        /// another without an increase between them keeps the target. Source: true is the paper's
        /// (§5.1); false, HPCC's released simulator.
        pub dcqcn_clamp_target: bool = false,
    }
}

/// DCQCN's state of one queue pair: rates, alpha, byte counter and timers.
#[derive(Clone, Debug)]
pub struct Dcqcn(Box<State>);

#[derive(Clone, Debug)]
struct State {
    /// The host's link; 0 before the connection begins. Rates are in bits a second.
    line: Rate,
    rate: f64,
    target: f64,
    alpha: f64,
    /// The next ticks of alpha's clock and of the cuts', and the next increase; `Time::MAX`: the
    /// clock does not run.
    alpha_at: Time,
    cut_at: Time,
    increase_at: Time,
    /// A notification since the last tick of alpha's clock, and since the last cut.
    raises_alpha: bool,
    cuts: bool,
    /// Increases since the last cut, by the timer and by the byte counter, and the bytes towards
    /// the latter's next.
    timed: u32,
    counted: u32,
    bytes: u64,
}

const TARGET: Quantity = Quantity { name: "target_gbps", meaning: "DCQCN's target rate, in Gb/s" };
const ALPHA: Quantity =
    Quantity { name: "dcqcn_alpha", meaning: "DCQCN's alpha: the rate is cut by half of it" };

impl Law for Dcqcn {
    type Params = DcqcnParams;
    type Constants = DcqcnParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &DcqcnParams) -> Demands {
        Demands { family: Family::Rdma, echo: Echo::Notify, paces: true, ..Demands::default() }
    }

    fn constants(params: &DcqcnParams) -> DcqcnParams {
        DcqcnParams { dcqcn_g: params.dcqcn_g.clamp(0.0, 1.0), ..params.clone() }
    }

    fn new(_: u64, _: &Shared<DcqcnParams>) -> Dcqcn {
        Dcqcn(Box::new(State {
            line: Rate(0),
            rate: 0.0,
            target: 0.0,
            alpha: 1.0,
            alpha_at: Time::MAX,
            cut_at: Time::MAX,
            increase_at: Time::MAX,
            raises_alpha: false,
            cuts: false,
            timed: 0,
            counted: 0,
            bytes: 0,
        }))
    }

    fn begin(&mut self, setting: &Setting, _: &Shared<DcqcnParams>) {
        self.0.line = setting.line;
        (self.0.rate, self.0.target) = (setting.line.bps() as f64, setting.line.bps() as f64);
    }

    fn on_notification(&mut self, now: Time, shared: &Shared<DcqcnParams>) {
        let (state, p) = (&mut *self.0, &shared.law);
        if state.alpha_at == Time::MAX {
            // The first: it raises nothing, for alpha begins at its highest.
            state.alpha_at = now.saturating_add(p.dcqcn_alpha_timer);
            state.cut_at = now.saturating_add(p.dcqcn_decrease_interval);
            state.cuts = true;
            return;
        }
        state.settle(now, p);
        state.raises_alpha = true;
        if !state.cuts {
            // Ticks without a notification have done nothing.
            state.cut_at = next_tick(state.cut_at, now, p.dcqcn_decrease_interval);
            state.cuts = true;
        }
    }

    fn on_sent(&mut self, _: Time, bytes: u32, shared: &Shared<DcqcnParams>) {
        let Some(every) = shared.law.dcqcn_byte_counter else { return };
        let state = &mut *self.0;
        state.bytes += u64::from(bytes);
        while state.bytes >= every.get() {
            state.bytes -= every.get();
            state.increase(&shared.law);
            state.counted = state.counted.saturating_add(1);
        }
    }

    fn deadline(&self) -> Time {
        let cut_at = if self.0.cuts { self.0.cut_at } else { Time::MAX };
        cut_at.min(self.0.increase_at)
    }

    fn on_timer(&mut self, now: Time, shared: &Shared<DcqcnParams>) {
        let (state, p) = (&mut *self.0, &shared.law);
        loop {
            if state.cuts && state.cut_at <= now && state.cut_at <= state.increase_at {
                state.cut(p);
            } else if state.increase_at <= now {
                state.increase_at = state.increase_at.saturating_add(p.dcqcn_increase_timer);
                state.increase(p);
                state.timed = state.timed.saturating_add(1);
            } else {
                return;
            }
        }
    }

    fn rate(&self, _: &Shared<DcqcnParams>) -> Option<Rate> {
        (self.0.line.bps() > 0).then_some(Rate(self.0.rate as u64))
    }

    fn metrics(&self, _: &Shared<DcqcnParams>) -> Vec<Metric> {
        let state = &self.0;
        vec![
            (RATE, Some(in_gbps(state.rate))),
            (TARGET, Some(in_gbps(state.target))),
            (ALPHA, Some(state.alpha)),
        ]
    }
}

/// The first tick after `now` of a clock that ticks at `at`.
fn next_tick(at: Time, now: Time, period: Time) -> Time {
    if at > now {
        return at;
    }
    let period = period.as_ps().max(1);
    let missed = (now.as_ps() - at.as_ps()) / period + 1;
    Time::from_ps(at.as_ps().saturating_add(missed.saturating_mul(period)))
}

/// `base` to the power of `n`, by multiplications alone.
fn power(base: f64, n: u64) -> f64 {
    let (mut product, mut square, mut rest) = (1.0, base, n);
    while rest > 0 {
        if rest & 1 == 1 {
            product *= square;
        }
        square *= square;
        rest >>= 1;
    }
    product
}

impl State {
    /// Alpha's ticks up to `now`.
    fn settle(&mut self, now: Time, p: &DcqcnParams) {
        if self.alpha_at > now {
            return;
        }
        let next = next_tick(self.alpha_at, now, p.dcqcn_alpha_timer);
        let ticks = (next.as_ps() - self.alpha_at.as_ps()) / p.dcqcn_alpha_timer.as_ps().max(1);
        self.alpha_at = next;
        let (keeps, raise) = (1.0 - p.dcqcn_g, if self.raises_alpha { p.dcqcn_g } else { 0.0 });
        self.alpha = (keeps * self.alpha + raise) * power(keeps, ticks - 1);
        self.raises_alpha = false;
    }

    /// A tick of the second clock with a notification since the last.
    fn cut(&mut self, p: &DcqcnParams) {
        let at = self.cut_at;
        self.settle(at, p);
        if p.dcqcn_clamp_target || self.timed > 0 || self.counted > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(self.min_rate(p));
        (self.timed, self.counted, self.bytes, self.cuts) = (0, 0, 0, false);
        self.cut_at = at.saturating_add(p.dcqcn_decrease_interval);
        self.increase_at = at.saturating_add(p.dcqcn_increase_timer);
    }

    fn min_rate(&self, p: &DcqcnParams) -> f64 {
        p.dcqcn_min_rate.min(self.line).bps() as f64
    }

    /// An increase; the counters are as they were before it.
    fn increase(&mut self, p: &DcqcnParams) {
        let (least, most) = match p.dcqcn_byte_counter {
            None => (self.timed, self.timed),
            Some(_) => (self.timed.min(self.counted), self.timed.max(self.counted)),
        };
        let line = self.line.bps() as f64;
        let per = Rate::from_gbps(25);
        if most >= p.dcqcn_fast_recovery {
            let more = match least > p.dcqcn_fast_recovery {
                true => step(p.dcqcn_hyper_increase, Rate(50_000_000), per, self.line),
                false => step(p.dcqcn_additive_increase, Rate(5_000_000), per, self.line),
            };
            self.target = (self.target + more).min(line);
        }
        self.rate = (self.rate + self.target) / 2.0;
        if line - self.rate < 1.0 {
            // Nothing is left to increase.
            (self.rate, self.increase_at) = (line, Time::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate(40_000_000_000);

    fn us(time: u64) -> Time {
        Time::from_us(time)
    }

    /// As TLT's released configuration has it: 40 Gb/s, 1, 4 and 900 us, 50 and 100 Mb/s.
    fn as_in_tlt(change: impl FnOnce(&mut DcqcnParams)) -> (Dcqcn, Shared<DcqcnParams>) {
        let mut p = DcqcnParams {
            dcqcn_increase_timer: us(900),
            dcqcn_additive_increase: Auto::Given(Rate(50_000_000)),
            dcqcn_hyper_increase: Auto::Given(Rate(100_000_000)),
            ..DcqcnParams::default()
        };
        change(&mut p);
        let shared = Shared { mss: 1000, ecn: true, law: Dcqcn::constants(&p) };
        let mut law = Dcqcn::new(0, &shared);
        law.begin(&Setting { line: LINE, base_rtt: us(9), window: 44_000 }, &shared);
        (law, shared)
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    /// By hand. The notification at 10 us begins both clocks. Alpha has ticked four times without
    /// another by the first cut, at 14 us: (255/256)^4. A second one at 15 us raises alpha at 16 us
    /// and cuts at 18 us; there was no increase since, so the target stays the line's rate.
    #[test]
    fn cuts_follow_the_ticks_of_two_clocks() {
        let (mut law, shared) = as_in_tlt(|_| ());
        assert_eq!((law.rate(&shared), law.deadline()), (Some(LINE), Time::MAX));
        law.on_notification(us(10), &shared);
        assert_eq!((law.rate(&shared), law.deadline()), (Some(LINE), us(14)));
        law.on_timer(us(14), &shared);
        let kept = 255.0f64 / 256.0;
        let alpha = kept * kept * kept * kept;
        let first = 40e9 * (1.0 - alpha / 2.0);
        close(law.0.rate, first);
        assert_eq!((law.0.target, law.deadline()), (40e9, us(914)));
        law.on_notification(us(15), &shared);
        assert_eq!(law.deadline(), us(18));
        law.on_timer(us(18), &shared);
        // Ticks at 15 (before the notification), 16 (with it), 17 and 18.
        let alpha = ((alpha * kept * kept) + 1.0 / 256.0) * kept * kept;
        close(law.0.alpha, alpha);
        close(law.0.rate, first * (1.0 - alpha / 2.0));
        assert_eq!((law.0.target, law.deadline()), (40e9, us(918)));
    }

    /// By hand: after one cut from 40 Gb/s to R the rate is (R + 40)/2 after 900 us. The target can
    /// grow no more, so each further increase halves what is left.
    #[test]
    fn a_rate_that_was_cut_once_comes_back_half_way_each_time() {
        let (mut law, shared) = as_in_tlt(|_| ());
        law.on_notification(us(0), &shared);
        law.on_timer(us(4), &shared);
        let mut expected = law.0.rate;
        for n in 1..=4 {
            assert_eq!(law.deadline(), us(4 + 900 * n));
            law.on_timer(us(4 + 900 * n), &shared);
            expected = (expected + 40e9) / 2.0;
            close(law.0.rate, expected);
        }
        let mut at = law.deadline();
        while at < Time::MAX {
            law.on_timer(at, &shared);
            at = law.deadline();
        }
        assert_eq!(law.rate(&shared), Some(LINE), "and then there is no further event");
    }

    /// By hand. A cut after an increase takes the rate for its target, so that the stages show:
    /// fast recovery, additive by 50 Mb/s, hyper by 100 Mb/s.
    #[test]
    fn stages_are_fast_recovery_additive_and_hyper() {
        let (mut law, shared) = as_in_tlt(|p| p.dcqcn_g = 0.0); // alpha stays 1: each cut halves
        law.on_notification(us(0), &shared);
        law.on_timer(us(4), &shared);
        assert_eq!(law.0.rate, 20e9);
        law.on_timer(us(904), &shared);
        assert_eq!(law.0.rate, 30e9);
        law.on_notification(us(905), &shared);
        assert_eq!(law.deadline(), us(908));
        law.on_timer(us(908), &shared);
        assert_eq!((law.0.rate, law.0.target), (15e9, 30e9));
        let mut seen = Vec::new();
        for n in 1..=4 {
            law.on_timer(us(908 + 900 * n), &shared);
            seen.push((law.0.rate, law.0.target));
        }
        let expected = [
            (22.5e9, 30e9),
            ((22.5e9 + 30.05e9) / 2.0, 30.05e9),
            (((22.5e9 + 30.05e9) / 2.0 + 30.15e9) / 2.0, 30.15e9),
            ((((22.5e9 + 30.05e9) / 2.0 + 30.15e9) / 2.0 + 30.25e9) / 2.0, 30.25e9),
        ];
        for (it, by_hand) in seen.into_iter().zip(expected) {
            close(it.0, by_hand.0);
            close(it.1, by_hand.1);
        }
    }

    /// Two notifications within a tick are one, and one at the very tick counts for the next.
    #[test]
    fn one_cut_a_tick() {
        let (mut law, shared) = as_in_tlt(|p| p.dcqcn_g = 0.0);
        for at in [0, 1, 2, 3] {
            law.on_notification(us(at), &shared);
        }
        law.on_timer(us(4), &shared);
        assert_eq!((law.0.rate, law.deadline()), (20e9, us(904)));
        law.on_notification(us(8), &shared);
        assert_eq!(law.deadline(), us(12));
        law.on_timer(us(12), &shared);
        assert_eq!((law.0.rate, law.deadline()), (10e9, us(912)));
    }

    /// The paper's: a byte counter beside the timer, five increases of either before the target
    /// grows, hyper increase only once both have had six.
    #[test]
    fn the_byte_counter_counts_stages_of_its_own() {
        let (mut law, shared) = as_in_tlt(|p| {
            (p.dcqcn_byte_counter, p.dcqcn_fast_recovery, p.dcqcn_g) =
                (Some(Bytes(10_000)), 2, 0.0);
            p.dcqcn_clamp_target = true;
        });
        law.on_notification(us(0), &shared);
        law.on_timer(us(4), &shared);
        law.on_notification(us(5), &shared);
        law.on_timer(us(8), &shared);
        assert_eq!(
            (law.0.rate, law.0.target),
            (10e9, 20e9),
            "a cut without an increase before it clamps, too"
        );
        let mut targets = Vec::new();
        for _ in 0..8 {
            law.on_sent(us(9), 4_000, &shared);
            law.on_sent(us(9), 6_000, &shared);
            targets.push(((law.0.target - 20e9) / 1e6).round());
        }
        assert_eq!(
            targets,
            [0.0, 0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0],
            "the timer had none: no hyper increase"
        );
        law.on_timer(us(908), &shared);
        assert_eq!(
            (law.0.timed, law.0.counted, ((law.0.target - 20e9) / 1e6).round()),
            (1, 8, 350.0)
        );
    }

    /// The rate never falls below its floor, and a slow link's floor is its own rate.
    #[test]
    fn the_rate_keeps_its_bounds() {
        let (mut law, shared) = as_in_tlt(|p| p.dcqcn_g = 0.0);
        for n in 0..20 {
            law.on_notification(us(4 * n), &shared);
            law.on_timer(us(4 * n + 4), &shared);
        }
        assert_eq!(law.rate(&shared), Some(Rate(100_000_000)));
        law.begin(&Setting { line: Rate(50_000_000), base_rtt: us(9), window: 0 }, &shared);
        law.on_notification(us(100), &shared);
        law.on_timer(law.deadline(), &shared);
        assert_eq!(law.rate(&shared), Some(Rate(50_000_000)));
    }

    /// Ticks that are worked out together are those that come one by one.
    #[test]
    fn alpha_decays_the_same_however_it_is_asked() {
        let (mut law, shared) = as_in_tlt(|_| ());
        law.on_notification(us(0), &shared);
        let mut other = law.clone();
        (1..=1000).for_each(|at| law.0.settle(us(at), &shared.law));
        other.0.settle(us(1000), &shared.law);
        assert_eq!(law.0.alpha_at, other.0.alpha_at);
        assert!((law.0.alpha / other.0.alpha - 1.0).abs() < 1e-12);
        close(law.0.alpha, power(255.0 / 256.0, 1000));
    }
}
