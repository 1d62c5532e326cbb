//! CUBIC: RFC 9438. Windows are counted in segments, as the RFC does; time in seconds.
//!
//! Slow start may end by HyStart, as Linux's does. Not implemented: §4.9 (undoing after spurious
//! events), HyStart++ (§4.10). The only function beyond the four basic operations is `libm::cbrt`,
//! once a congestion event, so results are the same on every machine.
//!
//! Invariant: between congestion events the window never shrinks, and never grows by more than half
//! a window a window.

use super::hystart::HyStart;
use super::{
    Acked, Cause, Cut, Demands, Echo, Growth, LOSS_BASED, Law, Metric, Quantity, Shared, Window,
};
use crate::Time;
use crate::registry::{About, Signal};

pub(super) const ABOUT: About = About {
    summary: "grows its window along a cubic of the time since the last loss",
    source: "RFC 9438",
    needs: LOSS_BASED,
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of CUBIC (RFC 9438).
    pub struct CubicParams {
        /// C, the aggressiveness, in segments per second cubed. Source: RFC 9438 §5.1.
        #[within(0..)]
        pub cubic_c: f64 = 0.4,
        /// The share of the window that remains after loss or a mark. Source: RFC 9438 §4.6.
        #[within(0..=1)]
        pub cubic_beta: f64 = 0.7,
        /// Whether a flow that lost below its last maximum gives up more, for new flows' sake.
        /// Source: RFC 9438 §4.7.
        pub cubic_fast_convergence: bool = true,
        /// Whether it is never slower than Reno would be. Source: RFC 9438 §4.3.
        pub cubic_reno_friendly: bool = true,
        /// Whether it declares ECN and reacts to marks as to loss. Source: RFC 9438 §4.6, RFC 3168
        /// §6.1.2.
        pub cubic_ecn: bool = false,
        /// Whether slow start ends where acknowledgements fill the path or their delay grows,
        /// before a loss. Source: Ha, Rhee: Taming the elephants: New TCP slow start, Computer
        /// Networks 2011, with the constants of Linux, whose CUBIC does so.
        pub cubic_hystart: bool = false,
        /// By which share a window grows a round trip, at least, beyond slow start, of a
        /// connection that has lost nothing since its beginning or its last timeout. Source: not
        /// in RFC 9438; Linux has 0.05 (`bictcp_update`).
        #[within(0..=1)]
        pub cubic_first_growth: f64 = 0.0,
    }
}

const SECONDS: f64 = 1e-12; // a picosecond

/// CUBIC's state of one connection: the last maximum and the epoch's start.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// When this stage of congestion avoidance began; `Time::MAX` before its first ACK.
    epoch: Time,
    /// W_max: the plateau, in segments.
    w_max: f64,
    /// K: seconds from the epoch to the plateau.
    k: f64,
    /// W_est: what Reno would have by now, in segments.
    w_est: f64,
    /// cwnd_prior: the window before the last cut, in segments.
    prior: f64,
    /// Bytes of growth below a whole one.
    credit: f64,
    /// The last cut was for a timeout (§4.8).
    timed_out: bool,
    /// A loss or a mark has cut the window since the beginning or the last timeout.
    has_cut: bool,
    /// HyStart's state and the last acknowledgement, if the scenario has HyStart.
    hystart: Option<Box<(HyStart, Acked)>>,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            epoch: Time::MAX,
            w_max: 0.0,
            k: 0.0,
            w_est: 0.0,
            prior: 0.0,
            credit: 0.0,
            timed_out: false,
            has_cut: false,
            hystart: None,
        }
    }
}

const W_MAX: Quantity = Quantity {
    name: "w_max_bytes",
    meaning: "CUBIC's W_max (RFC 9438): the window at which its curve is flat; null before \
              congestion avoidance",
};

impl Law for Cubic {
    type Params = CubicParams;
    type Constants = CubicParams;

    fn demands(params: &CubicParams) -> Demands {
        let echo = if params.cubic_ecn { Echo::Latch } else { Echo::Off };
        Demands { echo, ..Demands::default() }
    }

    fn constants(params: &CubicParams) -> CubicParams {
        let (cubic_c, cubic_beta) = (params.cubic_c.max(0.0), params.cubic_beta.clamp(0.0, 1.0));
        CubicParams { cubic_c, cubic_beta, ..params.clone() }
    }

    fn new(_: u64, _: &Shared<CubicParams>) -> Cubic {
        Cubic::default()
    }

    #[inline]
    fn on_ack(&mut self, ack: Acked, shared: &Shared<CubicParams>) -> bool {
        if shared.law.cubic_hystart {
            match &mut self.hystart {
                Some(looks) => looks.1 = ack,
                None => self.hystart = Some(Box::new((HyStart::default(), ack))),
            }
        }
        ack.ece && shared.ecn
    }

    fn slow_start(&mut self, window: &mut Window, shared: &Shared<CubicParams>) {
        let mss = u64::from(shared.mss);
        if let Some((hystart, ack)) = self.hystart.as_deref_mut()
            && hystart.ends(ack, window.cwnd, mss)
        {
            window.ssthresh = window.cwnd;
        }
    }

    /// §4.2–4.5: an ACK in congestion avoidance.
    fn grow(&mut self, window: &mut Window, growth: &Growth, shared: &Shared<CubicParams>) {
        let (c, beta) = (shared.law.cubic_c, shared.law.cubic_beta);
        let mss = f64::from(shared.mss);
        let cwnd = window.cwnd as f64 / mss;
        if self.epoch == Time::MAX {
            self.begin(growth.now, cwnd, c);
        }
        let acked = growth.bytes as f64 / mss;
        // §4.3 (4): Reno's window with CUBIC's β; as fast as Reno itself once it is back where the
        // last cut was.
        let alpha = if self.w_est >= self.prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        self.w_est += alpha * acked / cwnd;
        let least = if self.has_cut { 0.0 } else { shared.law.cubic_first_growth };
        let t = growth.now.saturating_sub(self.epoch).as_ps() as f64 * SECONDS;
        if shared.law.cubic_reno_friendly && self.curve(c, t) < self.w_est {
            let target = (self.w_est * mss) as u64;
            window.cwnd = window.cwnd.max(target);
            if least <= 0.0 {
                return;
            }
        }
        // §4.2: where the curve will be a round trip from now, at least the window and at most half
        // above it; §4.4 and §4.5: a step of (target − cwnd) / cwnd for each segment acknowledged.
        let ahead = self.curve(c, t + growth.srtt.as_ps() as f64 * SECONDS);
        let target = ahead.min(1.5 * cwnd).max(cwnd);
        self.credit += ((target - cwnd) / cwnd).max(least) * acked * mss;
        let whole = self.credit as u64;
        self.credit -= whole as f64;
        window.cwnd += whole;
    }

    /// §4.6 and §4.7; §4.8 for timeouts. A mark cuts as a loss does, from the window itself.
    fn cut(&mut self, window: &mut Window, cut: &Cut, shared: &Shared<CubicParams>) {
        let beta = shared.law.cubic_beta;
        let mss = u64::from(shared.mss);
        let cwnd = window.cwnd as f64 / mss as f64;
        self.prior = cwnd;
        let gives_up = shared.law.cubic_fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_up { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.epoch = Time::MAX;
        self.timed_out = cut.cause == Cause::Timeout;
        self.has_cut = !self.timed_out;
        if let Some((hystart, _)) = self.hystart.as_deref_mut().filter(|_| self.timed_out) {
            hystart.again();
        }
        let base = if cut.cause == Cause::Mark { window.cwnd } else { cut.flight };
        window.ssthresh = (base as f64 * beta) as u64;
        window.cwnd =
            if cut.cause == Cause::Mark { window.ssthresh } else { window.ssthresh.max(2 * mss) };
    }

    /// Time in which the application sent nothing does not count (§5.8).
    fn idle(&mut self, span: Time) {
        if self.epoch != Time::MAX {
            self.epoch = self.epoch.saturating_add(span);
        }
    }

    fn metrics(&self, shared: &Shared<CubicParams>) -> Vec<Metric> {
        vec![(W_MAX, (self.w_max > 0.0).then(|| libm::round(self.w_max * f64::from(shared.mss))))]
    }
}

impl Cubic {
    /// W_cubic(t), §4.2 (1).
    fn curve(&self, c: f64, t: f64) -> f64 {
        let x = t - self.k;
        c * x * x * x + self.w_max
    }

    /// A stage of congestion avoidance begins with a window of `cwnd`.
    #[cold]
    fn begin(&mut self, now: Time, cwnd: f64, c: f64) {
        self.epoch = now;
        self.w_est = cwnd;
        self.credit = 0.0;
        if self.timed_out || self.w_max <= cwnd || c <= 0.0 {
            (self.w_max, self.k) = (cwnd, 0.0); // §4.8, and slow start that ended above the plateau
        } else {
            self.k = libm::cbrt((self.w_max - cwnd) / c); // §4.2 (2)
        }
        self.timed_out = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MSS: u64 = 1000;
    const RTT: Time = Time::from_ms(1);

    fn cfg(reno_friendly: bool) -> Shared<CubicParams> {
        let p = CubicParams { cubic_reno_friendly: reno_friendly, ..CubicParams::default() };
        Shared { mss: MSS as u32, ecn: false, law: Cubic::constants(&p) }
    }

    fn cut(cause: Cause, flight: u64) -> Cut {
        Cut { now: Time::ZERO, cause, flight }
    }

    /// A window of ACKs, segment by segment, spread over one round trip.
    fn round(cubic: &mut Cubic, window: &mut Window, now: &mut Time, cfg: &Shared<CubicParams>) {
        let segments = window.cwnd / MSS;
        for _ in 0..segments {
            *now += RTT / segments;
            cubic.grow(
                window,
                &Growth { now: *now, bytes: MSS, srtt: RTT, limit: 0, is_bounded: true },
                cfg,
            );
        }
    }

    #[test]
    fn the_window_follows_the_closed_form_and_reaches_w_max_at_k() {
        let cfg = cfg(false);
        let (mut cubic, mut window) =
            (Cubic::default(), Window { cwnd: 1000 * MSS, ssthresh: u64::MAX });
        cubic.cut(&mut window, &cut(Cause::Loss, 1000 * MSS), &cfg);
        assert_eq!(window, Window { cwnd: 700 * MSS, ssthresh: 700 * MSS });
        let k = libm::cbrt(1000.0 * (1.0 - 0.7) / 0.4); // 9.086 s
        let (mut now, mut previous) = (Time::ZERO, 0);
        for ms in 1..=14_000u32 {
            round(&mut cubic, &mut window, &mut now, &cfg);
            assert!(window.cwnd >= previous);
            previous = window.cwnd;
            if ms % 500 == 0 {
                let t = f64::from(ms) / 1000.0 - k;
                let expected = 0.4 * t * t * t + 1000.0;
                let got = window.cwnd as f64 / MSS as f64;
                assert!((got - expected).abs() < 1.5, "{ms} ms: {got} instead of {expected}");
            }
        }
        assert!((cubic.k - k).abs() < 1e-9);
    }

    #[test]
    fn fast_convergence_gives_up_more_when_the_last_maximum_was_not_reached() {
        let cfg = cfg(true);
        let (mut cubic, mut window) =
            (Cubic::default(), Window { cwnd: 100 * MSS, ssthresh: u64::MAX });
        cubic.cut(&mut window, &cut(Cause::Loss, 100 * MSS), &cfg);
        assert_eq!(cubic.w_max, 100.0);
        window.cwnd = 80 * MSS;
        cubic.cut(&mut window, &cut(Cause::Loss, 80 * MSS), &cfg);
        assert!((cubic.w_max - 80.0 * 1.7 / 2.0).abs() < 1e-9);
        assert_eq!(window.cwnd, 56 * MSS);
    }

    #[test]
    fn at_small_windows_it_grows_as_reno_would() {
        // W_max 20, RTT 1 ms: the curve needs 2.5 s to the plateau, Reno with β 0.7 some 11 round
        // trips.
        let cfg = cfg(true);
        let (mut cubic, mut window) =
            (Cubic::default(), Window { cwnd: 20 * MSS, ssthresh: u64::MAX });
        cubic.cut(&mut window, &cut(Cause::Loss, 20 * MSS), &cfg);
        let mut now = Time::ZERO;
        for _ in 0..6 {
            round(&mut cubic, &mut window, &mut now, &cfg);
        }
        let friendly = 14.0 + 6.0 * 3.0 * 0.3 / 1.7; // α of §4.3 a round trip
        assert!((window.cwnd as f64 / MSS as f64 - friendly).abs() < 0.3, "{}", window.cwnd);
        for _ in 0..10 {
            round(&mut cubic, &mut window, &mut now, &cfg);
        }
        let before = window.cwnd;
        assert!(before > 20 * MSS);
        round(&mut cubic, &mut window, &mut now, &cfg);
        assert!(
            (window.cwnd - before).abs_diff(MSS) < MSS / 5,
            "one segment a round trip above the last maximum"
        );
    }

    #[test]
    fn before_its_first_loss_a_window_grows_by_a_twentieth_a_round_trip_as_in_linux() {
        let p = CubicParams { cubic_first_growth: 0.05, ..CubicParams::default() };
        let cfg = Shared { mss: MSS as u32, ecn: false, law: Cubic::constants(&p) };
        let (mut cubic, mut window) =
            (Cubic::default(), Window { cwnd: 100 * MSS, ssthresh: 100 * MSS });
        let mut now = Time::ZERO;
        let mut rounds = |cubic: &mut Cubic, window: &mut Window, n: u32| {
            let before = window.cwnd as f64;
            (0..n).for_each(|_| round(cubic, window, &mut now, &cfg));
            window.cwnd as f64 / before
        };
        let twice = rounds(&mut cubic, &mut window, 14);
        assert!((twice - 1.05f64.powi(14)).abs() < 0.02, "{twice}");
        cubic.cut(&mut window, &cut(Cause::Loss, 200 * MSS), &cfg);
        let after_loss = rounds(&mut cubic, &mut window, 10);
        assert!(after_loss < 1.1, "{after_loss}: the curve alone");
        cubic.cut(&mut window, &cut(Cause::Timeout, 100 * MSS), &cfg);
        window.cwnd = 100 * MSS; // after slow start
        assert!(rounds(&mut cubic, &mut window, 10) > 1.5, "nothing is known again");
    }

    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        let cfg = cfg(false);
        let (mut cubic, mut window) =
            (Cubic::default(), Window { cwnd: 100 * MSS, ssthresh: u64::MAX });
        cubic.cut(&mut window, &cut(Cause::Timeout, 100 * MSS), &cfg);
        window.cwnd = 70 * MSS; // slow start has come back to ssthresh
        cubic.grow(
            &mut window,
            &Growth { now: RTT, bytes: MSS, srtt: RTT, limit: 0, is_bounded: true },
            &cfg,
        );
        assert_eq!((cubic.k, cubic.w_max), (0.0, 70.0));
    }
}
