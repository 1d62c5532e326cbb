//! MPTCP's coupled laws: LIA (RFC 6356) and OLIA (Khalili et al., CoNEXT 2012), and the uncoupled
//! one.
//!
//! Each subflow has a window of its own, with TCP's slow start and TCP's answer to loss. Coupled is
//! only how windows grow in congestion avoidance. For `acked` bytes on subflow r, with w and rtt
//! for windows and round-trip times and sums over all subflows, in bytes:
//!
//! - LIA (RFC 6356 §3): acked · mss · min(α / Σw, 1 / w_r), α = Σw · max(w/rtt²) / (Σ w/rtt)² (§4).
//! - OLIA (equation 5): acked · mss · ((w_r/rtt_r²) / (Σ w/rtt)² + α_r / w_r). α moves windows from
//!   the largest to the paths of the best quality ℓ/rtt², where ℓ is what was acknowledged between
//!   the last two losses or since the last, whichever is more.
//! - Uncoupled: acked · mss / w_r, as NewReno. Upstream Linux couples nothing.
//!
//! Invariant: by LIA no window grows faster than NewReno's; by OLIA the α of all paths sum up to
//! nothing.

use super::newreno::NewReno;
use super::{Acked, Cut, Demands, Echo, Family, Growth, LOSS_BASED, Law, Path, Shared, Window};
use crate::Time;
use crate::registry::{About, Signal};

pub(super) const ABOUT: About = About {
    summary: "spreads a connection over several subflows, each by its own path, with linked \
              windows",
    source: "RFC 8684; RFC 6356; OLIA, CoNEXT 2012",
    needs: LOSS_BASED,
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::choice! {
    /// How the windows of an MPTCP connection's subflows are linked.
    pub enum Coupling {
        /// Together they take what one TCP takes on the best path, and less of congested ones (RFC
        /// 6356).
        Lia = "lia",
        /// As LIA, and balanced by the paths' quality (Khalili et al., CoNEXT 2012).
        Olia = "olia",
        /// Each is a TCP of its own, as in upstream Linux, whose MPTCP couples nothing.
        Uncoupled = "uncoupled",
    }
}

crate::params! {
    /// The keys of MPTCP's coupled laws (RFC 6356; OLIA, CoNEXT 2012).
    pub struct MptcpParams {
        /// Subflows of a connection. Source: Presto, SIGCOMM 2015 §4, after Raiciu et al., SIGCOMM
        /// 2011, whose results need eight.
        #[within(1..=64)]
        pub mptcp_subflows: u32 = 8,
        /// How their windows are linked. Source: RFC 6356; "olia" is the default of the kernel that
        /// Presto's authors ran.
        pub mptcp_coupling: Coupling = Coupling::Lia,
        /// Whether what a subflow had in flight at a timeout is sent by others, too. Source: RFC
        /// 8684 §3.3.6 allows it; the MPTCP kernel (v0.8x) does it.
        pub mptcp_reinjection: bool = true,
        /// Whether its subflows declare ECN and halve on marks as on loss. Source: RFC 3168 §6.1.2.
        pub mptcp_ecn: bool = false,
    }
}

/// The state of one subflow's law.
#[derive(Clone, Copy, Debug)]
pub struct Mptcp {
    /// Losses, and growth where nothing is coupled.
    reno: NewReno,
    /// By how many bytes the window grows for a byte acknowledged.
    gain: f64,
    /// Bytes of growth below a whole one; negative where the window shrinks.
    credit: f64,
    /// OLIA's ℓ₁: bytes acknowledged between the last two losses.
    before: u64,
    /// OLIA's ℓ₂: bytes acknowledged since the last loss.
    since: u64,
}

impl Law for Mptcp {
    type Params = MptcpParams;
    type Constants = MptcpParams;

    fn demands(params: &MptcpParams) -> Demands {
        let echo = if params.mptcp_ecn { Echo::Latch } else { Echo::Off };
        let (subflows, reinjection) =
            (params.mptcp_subflows.clamp(1, 64) as u8, params.mptcp_reinjection);
        Demands { echo, family: Family::Mptcp { subflows, reinjection }, ..Demands::default() }
    }

    fn constants(params: &MptcpParams) -> MptcpParams {
        params.clone()
    }

    fn new(_: u64, _: &Shared<MptcpParams>) -> Mptcp {
        Mptcp { reno: NewReno::default(), gain: 0.0, credit: 0.0, before: 0, since: 0 }
    }

    fn on_ack(&mut self, ack: Acked, shared: &Shared<MptcpParams>) -> bool {
        self.since += ack.bytes;
        ack.ece && shared.ecn
    }

    fn couple(&mut self, own: usize, paths: &[Path], shared: &Shared<MptcpParams>) {
        let mss = f64::from(shared.mss);
        self.gain = match shared.law.mptcp_coupling {
            Coupling::Lia => mss * lia(own, paths),
            Coupling::Olia => mss * olia(own, paths, shared.mss),
            Coupling::Uncoupled => 0.0,
        };
    }

    fn quality(&self) -> u64 {
        self.before.max(self.since)
    }

    fn grow(&mut self, window: &mut Window, growth: &Growth, shared: &Shared<MptcpParams>) {
        if shared.law.mptcp_coupling == Coupling::Uncoupled {
            return self.reno.add(window, growth.bytes, shared.mss);
        }
        self.credit += self.gain * growth.bytes as f64;
        let whole = libm::trunc(self.credit);
        self.credit -= whole;
        window.cwnd = window.cwnd.saturating_add_signed(whole as i64).max(u64::from(shared.mss));
    }

    /// As TCP: RFC 6356 §3 changes the increase alone.
    fn cut(&mut self, window: &mut Window, cut: &Cut, shared: &Shared<MptcpParams>) {
        self.reno.halve(window, cut, shared.mss);
        self.credit = 0.0;
        if self.since > 0 {
            (self.before, self.since) = (self.since, 0);
        }
    }
}

/// Windows and round-trip times in numbers: bytes, seconds. A path without a sample is left out.
fn known(paths: &[Path]) -> impl Iterator<Item = (usize, &Path, f64, f64)> + Clone {
    let number = |(n, path): (usize, _)| {
        let path: &Path = path;
        let rtt = path.rtt.as_ps() as f64 * 1e-12;
        (n, path, path.cwnd.max(1) as f64, rtt)
    };
    paths.iter().enumerate().filter(|(_, path)| path.rtt > Time::ZERO).map(number)
}

/// RFC 6356 §3 and §4: growth for a byte acknowledged, in segments.
fn lia(own: usize, paths: &[Path]) -> f64 {
    let alone = 1.0 / paths[own].cwnd.max(1) as f64;
    let (mut total, mut best, mut sum) = (0.0, 0.0f64, 0.0);
    for (_, _, window, rtt) in known(paths) {
        total += window;
        best = best.max(window / (rtt * rtt));
        sum += window / rtt;
    }
    if sum == 0.0 {
        return alone;
    }
    let alpha = total * best / (sum * sum);
    (alpha / total).min(alone)
}

/// OLIA's equations 5 and 6: growth for a byte acknowledged, in segments.
fn olia(own: usize, paths: &[Path], mss: u32) -> f64 {
    let window = paths[own].cwnd.max(1) as f64;
    let sum: f64 = known(paths).map(|(_, _, window, rtt)| window / rtt).sum();
    if sum == 0.0 || paths[own].rtt == Time::ZERO {
        return 1.0 / window;
    }
    let rtt = paths[own].rtt.as_ps() as f64 * 1e-12;
    (window / (rtt * rtt)) / (sum * sum) + shift(own, paths, mss) / window
}

/// OLIA's α: 1 / (n |B∖M|) on the best paths B that have not the largest window, −1 / (n |M|) on
/// those that have (M), if there are any of the former. Windows are compared in whole segments.
fn shift(own: usize, paths: &[Path], mss: u32) -> f64 {
    let segments = |path: &Path| path.cwnd / u64::from(mss.max(1));
    let quality = |path: &Path, rtt: f64| path.quality as f64 / (rtt * rtt);
    let largest = known(paths).map(|(_, path, ..)| segments(path)).max().unwrap_or(0);
    let best = known(paths).map(|(_, path, _, rtt)| quality(path, rtt)).fold(0.0, f64::max);
    let is_largest = |path: &Path| segments(path) == largest;
    let is_rising = |path: &Path, rtt: f64| quality(path, rtt) == best && !is_largest(path);
    let (mut all, mut rising, mut falling) = (0.0, 0.0, 0.0);
    let mut sign = 0.0;
    for (n, path, _, rtt) in known(paths) {
        all += 1.0;
        let (rises, falls) = (is_rising(path, rtt), is_largest(path));
        rising += f64::from(u8::from(rises));
        falling += f64::from(u8::from(falls));
        if n == own {
            sign = f64::from(u8::from(rises)) - f64::from(u8::from(falls));
        }
    }
    match sign {
        _ if rising == 0.0 => 0.0,
        1.0 => 1.0 / (all * rising),
        -1.0 => -1.0 / (all * falling),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    const MSS: u32 = 1000;

    /// Windows in segments, round-trip times in microseconds, ℓ in kilobytes.
    fn paths(of: &[(u64, u64, u64)]) -> Vec<Path> {
        let path = |&(w, rtt, l): &_| Path {
            cwnd: w * u64::from(MSS),
            rtt: Time::from_us(rtt),
            quality: l * 1000,
        };
        of.iter().map(path).collect()
    }

    fn shared(coupling: Coupling) -> Shared<MptcpParams> {
        let law = MptcpParams { mptcp_coupling: coupling, ..MptcpParams::default() };
        Shared { mss: MSS, ecn: false, law }
    }

    /// By how many segments subflow `own` grows while a window of each path is acknowledged.
    fn growth(coupling: Coupling, own: usize, of: &[(u64, u64, u64)]) -> f64 {
        let (shared, all) = (shared(coupling), paths(of));
        let mut law = Mptcp::new(0, &shared);
        law.couple(own, &all, &shared);
        law.gain * all[own].cwnd as f64 / f64::from(MSS)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// RFC 6356 §3: α is such that the whole grows as one TCP does. With n equal paths α = 1/n, and
    /// each grows by 1/n² of a segment a round trip: n w/(n w)² · w... the sum of windows by 1/n.
    #[test]
    fn lia_on_equal_paths_has_an_alpha_of_one_nth() {
        for n in [1, 2, 4, 8] {
            let equal = vec![(20, 100, 0); n];
            // growth = α / Σw · w = α / n.
            let alpha = growth(Coupling::Lia, 0, &equal) * n as f64;
            assert!(near(alpha, 1.0 / n as f64), "{n}: {alpha}");
        }
    }

    /// §4's formula by hand: two paths, 10 segments at 100 us and 20 at 400 us.
    /// α = 30 · max(10/100², 20/400²) / (10/100 + 20/400)² = 30 · 0.001 / 0.0225 = 4/3.
    #[test]
    fn lia_is_the_formula_and_never_more_than_newreno() {
        let two = [(10, 100, 0), (20, 400, 0)];
        assert!(near(growth(Coupling::Lia, 0, &two), 4.0 / 3.0 / 30.0 * 10.0));
        assert!(near(growth(Coupling::Lia, 1, &two), 4.0 / 3.0 / 30.0 * 20.0));
        // A path of 1 us beside one of 1 ms: α would let the far one grow by more than a segment.
        let far = [(10, 1, 0), (1000, 100_000, 0)];
        assert!(near(growth(Coupling::Lia, 1, &far), 1.0), "{}", growth(Coupling::Lia, 1, &far));
        assert!(near(growth(Coupling::Lia, 0, &[(10, 0, 0)]), 1.0), "nothing is known: as NewReno");
    }

    /// Equal paths: (w/rtt²)/(n w/rtt)² · w = 1/n² a round trip, and α is nothing.
    #[test]
    fn olia_on_equal_paths_grows_as_lia() {
        for n in [1, 2, 8] {
            let equal = vec![(20, 100, 50); n];
            let expected = 1.0 / (n * n) as f64;
            assert!(near(growth(Coupling::Olia, n - 1, &equal), expected));
        }
    }

    /// The best path has the smaller window: it gains 1/n, the largest loses 1/n; in between
    /// nothing.
    #[test]
    fn olia_moves_windows_from_the_largest_to_the_best() {
        let three = [(30, 100, 10), (10, 100, 90), (20, 100, 10)];
        let linked = |w: f64| w * w / (60.0 * 60.0);
        assert!(near(growth(Coupling::Olia, 0, &three), linked(30.0) - 1.0 / 3.0));
        assert!(near(growth(Coupling::Olia, 1, &three), linked(10.0) + 1.0 / 3.0));
        assert!(near(growth(Coupling::Olia, 2, &three), linked(20.0)));
        // Where the best has the largest window nothing moves.
        let settled = [(30, 100, 90), (10, 100, 10)];
        assert!(near(growth(Coupling::Olia, 1, &settled), 100.0 / 1600.0));
        let sum: f64 = (0..3).map(|n| shift(n, &paths(&three), MSS)).sum();
        assert!(near(sum, 0.0));
    }

    #[test]
    fn olia_counts_the_bytes_between_losses_and_since_the_last() {
        let shared = shared(Coupling::Olia);
        let mut law = Mptcp::new(0, &shared);
        let mut window = Window { cwnd: 20_000, ssthresh: 20_000 };
        let ack = |bytes| Acked {
            now: Time::ZERO,
            bytes,
            ece: false,
            una: 0,
            nxt: 0,
            delay: Time::ZERO,
            hops: 0,
        };
        let cut = Cut { now: Time::ZERO, cause: Cause::Loss, flight: 20_000 };
        law.on_ack(ack(5000), &shared);
        assert_eq!(law.quality(), 5000);
        law.cut(&mut window, &cut, &shared);
        law.on_ack(ack(1000), &shared);
        assert_eq!((law.quality(), window.cwnd), (5000, 10_000));
        law.on_ack(ack(8000), &shared);
        assert_eq!(law.quality(), 9000);
        law.cut(&mut window, &cut, &shared);
        law.cut(&mut window, &cut, &shared);
        assert_eq!(law.quality(), 9000, "a second loss with nothing in between is the same loss");
    }

    /// These bytes are acknowledged after 100 µs.
    fn growth_of(bytes: u64) -> Growth {
        let srtt = Time::from_us(100);
        Growth { now: Time::ZERO, bytes, srtt, limit: 0, is_bounded: true }
    }

    /// A window of acknowledgements: the largest path shrinks, whole bytes at a time, to one
    /// segment.
    #[test]
    fn a_window_may_shrink_and_keeps_a_segment() {
        let shared = shared(Coupling::Olia);
        let mut law = Mptcp::new(0, &shared);
        let mut window = Window { cwnd: 3000, ssthresh: 2000 };
        law.gain = -0.25;
        let growth = growth_of(1000);
        law.grow(&mut window, &growth, &shared);
        assert_eq!(window.cwnd, 2750);
        (0..20).for_each(|_| law.grow(&mut window, &growth, &shared));
        assert_eq!(window.cwnd, 1000);
    }

    #[test]
    fn uncoupled_subflows_are_newrenos() {
        let shared = shared(Coupling::Uncoupled);
        let (mut law, mut reno) = (Mptcp::new(0, &shared), NewReno::default());
        let mut windows = [Window { cwnd: 10_000, ssthresh: 5000 }; 2];
        law.couple(0, &paths(&[(10, 100, 0), (90, 10, 0)]), &shared);
        for _ in 0..100 {
            let growth = growth_of(1000);
            law.grow(&mut windows[0], &growth, &shared);
            reno.add(&mut windows[1], 1000, MSS);
            assert_eq!(windows[0], windows[1]);
        }
    }
}
