//! DCTCP: RFC 8257. The cut follows the fraction of bytes that were marked.
//!
//! Growth is NewReno's, and so is the answer to loss (§3.4). An ACK with an echo does not grow the window (RFC 3168
//! §6.1.2). The window's floor is one MSS, that of ssthresh two; the RFC leaves both open.
//!
//! Three keys run it as INET's TCP does in the Canary artifact: there only an ACK with the echo ends an observation window,
//! so alpha never decays without marks, a loss leaves three quarters of the window instead of a half, and an ACK with the
//! echo that cuts nothing grows the window.
//!
//! Invariant: alpha lies in [0, 1] and changes once an observation window.

use super::newreno::NewReno;
use super::{Cause, Law, Told, Window};
use crate::endpoint::tcp::{Config, Control};
use millpond_results::Quantity;
use millpond_scenario::transport::{DctcpAlphaUpdate, DctcpReduce};

/// One connection's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dctcp {
    /// Growth, and cuts for loss.
    pub(super) reno: NewReno,
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.WindowEnd: an ACK beyond it ends the observation window.
    window_end: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

const ALPHA: Quantity =
    Quantity { name: "alpha", meaning: "DCTCP.Alpha (RFC 8257): the fraction of bytes that are marked, as estimated" };

impl Law for Dctcp {
    fn told(&self, _: &Config) -> Vec<Told> {
        vec![(ALPHA, Some(self.alpha))]
    }
}

impl Dctcp {
    pub(super) fn new(alpha: f64) -> Dctcp {
        Dctcp { reno: NewReno::default(), alpha, window_end: 0, acked: 0, marked: 0 }
    }

    /// DCTCP.Alpha.
    #[cfg(test)]
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// §3.3, steps 1 to 8. Returns whether to cut: at the end of a window with marks (step 9), or at any echo, of which
    /// the sender lets the first of a window through.
    #[inline]
    pub(super) fn marks(&mut self, bytes: u64, ece: bool, una: u64, nxt: u64, cfg: &Config) -> bool {
        self.acked += bytes; // step 2
        if ece {
            self.marked += bytes; // step 3
        }
        let past = una > self.window_end && (ece || !self.only_echoes(cfg));
        let ended = past && self.end_window(nxt, cfg); // step 4
        match cfg.control {
            Control::Dctcp { reduce: DctcpReduce::FirstMark, .. } => ece,
            _ => ended,
        }
    }

    /// Whether only an ACK with the echo may end an observation window.
    #[inline]
    fn only_echoes(&self, cfg: &Config) -> bool {
        matches!(cfg.control, Control::Dctcp { alpha_update: DctcpAlphaUpdate::Echo, .. })
    }

    /// Steps 5 to 8. Returns whether there were marks.
    fn end_window(&mut self, nxt: u64, cfg: &Config) -> bool {
        let Control::Dctcp { g, .. } = cfg.control else { return false };
        let fraction = if self.acked == 0 { 0.0 } else { self.marked as f64 / self.acked as f64 };
        self.alpha = self.alpha * (1.0 - g) + g * fraction;
        self.window_end = nxt;
        let marked = self.marked != 0;
        (self.acked, self.marked) = (0, 0);
        marked
    }

    /// Step 9 for marks, RFC 5681 for loss, with another share where the scenario says so.
    pub(super) fn cut(&mut self, window: &mut Window, cause: Cause, flight: u64, cfg: &Config) {
        let Control::Dctcp { loss_reduction, .. } = cfg.control else { return };
        self.reno.restart();
        if cause != Cause::Mark {
            // The floor of two segments is every control's.
            window.ssthresh = ((flight as f64 * loss_reduction) as u64).max(2 * u64::from(cfg.mss));
            window.cwnd = window.ssthresh;
            return;
        }
        window.cwnd = (window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64;
        window.ssthresh = window.cwnd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tcp::tests::{config, config_of};
    use millpond_scenario::transport::{DctcpParams, TransportKind};

    /// Windows of ten segments each, of which the first `marked` carry the echo; returns alpha after each.
    fn windows(alpha: f64, marked: u64, n: usize) -> Vec<f64> {
        let cfg = config(|_| ());
        let mut control = Dctcp::new(alpha);
        let mut una = 0;
        let mut seen = Vec::new();
        control.window_end = 9; // so that the first ten make one window
        while seen.len() < n {
            for i in 0..10 {
                una += 1;
                control.marks(1, i < marked, una, una + 9, &cfg);
            }
            seen.push(control.alpha());
        }
        seen
    }

    #[test]
    fn alpha_rises_as_one_minus_powers_under_marks_and_falls_as_powers_without() {
        let g = 1.0f64 / 16.0;
        for (n, (up, down)) in windows(0.0, 10, 60).iter().zip(windows(1.0, 0, 60)).enumerate() {
            let power = (1.0 - g).powi(n as i32 + 1);
            assert!((up - (1.0 - power)).abs() < 1e-12 && (down - power).abs() < 1e-12, "{n}: {up} {down}");
        }
    }

    #[test]
    fn alpha_converges_to_the_fraction_marked() {
        for marked in 0..=10 {
            let alpha = *windows(1.0, marked, 300).last().unwrap();
            assert!((alpha - marked as f64 / 10.0).abs() < 1e-6);
        }
    }

    #[test]
    fn with_echo_updates_alpha_moves_only_at_an_echo_past_the_window_and_never_decays() {
        let p = DctcpParams { dctcp_alpha_update: DctcpAlphaUpdate::Echo, ..DctcpParams::default() };
        let cfg = config_of(TransportKind::Dctcp(p), |_| ());
        let mut control = Dctcp::new(0.5);
        for una in 1..=500 {
            assert!(!control.marks(1, false, una, una + 9, &cfg));
        }
        assert_eq!(control.alpha(), 0.5, "500 bytes without marks, and no decay");
        // The first echo ends the one long window: 1 of 501 bytes was marked.
        assert!(control.marks(1, true, 501, 510, &cfg));
        let expected = 0.5 * 15.0 / 16.0 + 1.0 / 501.0 / 16.0;
        assert!((control.alpha() - expected).abs() < 1e-12);
        // Echoes up to the window's end, and what carries none beyond it, change nothing.
        for una in 502..=510 {
            assert!(!control.marks(1, true, una, una + 9, &cfg));
        }
        assert!(!control.marks(1, false, 511, 520, &cfg) && (control.alpha() - expected).abs() < 1e-12);
        assert!(control.marks(1, true, 512, 521, &cfg));
    }

    #[test]
    fn a_loss_leaves_the_share_of_the_flight_that_the_scenario_says_and_two_segments() {
        for (share, flight, left) in [(0.5, 40_000, 20_000), (0.75, 40_000, 30_000), (0.75, 2_000, 2_000)] {
            let p = DctcpParams { dctcp_loss_reduction: share, ..DctcpParams::default() };
            let cfg = config_of(TransportKind::Dctcp(p), |p| p.mss = Some(1000));
            let mut window = Window { cwnd: flight, ssthresh: u64::MAX };
            Dctcp::new(1.0).cut(&mut window, Cause::Loss, flight, &cfg);
            assert_eq!(window, Window { cwnd: left, ssthresh: left });
        }
    }

    #[test]
    fn a_window_is_cut_at_its_end_and_only_if_it_had_marks() {
        let cfg = config(|_| ());
        let mut control = Dctcp::new(1.0);
        assert!(!control.marks(10, false, 10, 100, &cfg), "the first observation ends with the first ACK");
        assert!(!control.marks(10, true, 20, 110, &cfg));
        assert!(!control.marks(80, false, 100, 190, &cfg), "WindowEnd itself belongs to the window");
        assert!(control.marks(10, false, 110, 200, &cfg));
        assert!(!control.marks(90, false, 200, 290, &cfg) && !control.marks(10, false, 210, 300, &cfg));
    }
}
