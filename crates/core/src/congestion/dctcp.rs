//! DCTCP: RFC 8257. The cut follows the fraction of bytes that were marked.
//!
//! Growth is NewReno's, and so is the answer to loss (§3.4). An ACK with an echo does not grow the
//! window (RFC 3168 §6.1.2). The window's floor is one MSS, that of ssthresh two; the RFC leaves
//! both open.
//!
//! Four keys run it as INET's TCP does in the Canary artifact: there only an ACK with the echo ends
//! an observation window, so alpha never decays without marks, a loss leaves three quarters of the
//! window instead of a half, an ACK with the echo that cuts nothing grows the window, and marks go
//! on to cut it while a loss or a timeout is repaired.
//!
//! Invariant: alpha lies in [0, 1] and changes once an observation window.

use super::newreno::NewReno;
use super::{
    Acked, Cause, Cut, Demands, Echo, Growth, LOSS_BASED, Law, Metric, Quantity, Shared, Window,
};
use crate::registry::{About, Signal};

pub(super) const ABOUT: About = About {
    summary: "cuts its window in proportion to the fraction of bytes that met congestion",
    source: "RFC 8257; DCTCP, SIGCOMM 2010",
    needs: LOSS_BASED,
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::choice! {
    /// How a DCTCP receiver echoes congestion marks.
    pub enum DctcpEcho {
        /// Each acknowledgement reports exactly which bytes were marked: the two-state machine of
        /// RFC 8257 §3.2.
        Precise = "precise",
        /// Every acknowledgement carries the echo until the sender reports that it has reduced (RFC
        /// 3168 §6.1.3).
        Latch = "latch",
    }
}

crate::choice! {
    /// When a DCTCP sender cuts its window.
    pub enum DctcpReduce {
        /// At the end of an observation window in which there were marks, after alpha's update (RFC
        /// 8257 §3.3).
        WindowEnd = "window-end",
        /// At the first mark of a window, with the alpha known by then (Linux, ns-3).
        FirstMark = "first-mark",
    }
}

crate::choice! {
    /// When DCTCP's alpha is updated.
    pub enum DctcpAlphaUpdate {
        /// At the end of every observation window, with marks or without (RFC 8257 §3.3).
        Window = "window",
        /// Only by an acknowledgement that carries the echo, once it is past the window's end, over
        /// all bytes since the last update: without marks alpha never decays (INET's TCP as the
        /// Canary artifact runs it).
        Echo = "echo",
    }
}

crate::params! {
    /// The keys of DCTCP (RFC 8257).
    pub struct DctcpParams {
        /// Weight of the newest window in alpha. Source: RFC 8257 §4.2.
        #[within(0..=1)]
        pub dctcp_g: f64 = 1.0 / 16.0,
        /// Alpha of a new connection. Source: RFC 8257 §3.3.
        #[within(0..=1)]
        pub dctcp_alpha_initial: f64 = 1.0,
        /// How the receiver echoes marks: "precise", RFC 8257 §3.2; "latch", on every ACK until the
        /// sender's CWR, RFC 3168 §6.1.3. Source: RFC 8257 §3.2.
        pub dctcp_echo: DctcpEcho = DctcpEcho::Precise,
        /// When in a window the sender reacts: "window-end", at the end of a window with marks,
        /// after alpha's update; "first-mark", at the first mark of a window, with the alpha known
        /// by then. Source: RFC 8257 §3.3; Linux and ns-3 cut at the first mark.
        pub dctcp_reduce: DctcpReduce = DctcpReduce::WindowEnd,
        /// When alpha is updated: at the end of every window, or only by an `echo` past it, so that
        /// it never decays without marks. Source: RFC 8257 §3.3; `echo` is INET's TCP as the Canary
        /// artifact runs it.
        pub dctcp_alpha_update: DctcpAlphaUpdate = DctcpAlphaUpdate::Window,
        /// The share of the flight (at most the window) that the slow-start threshold keeps at a
        /// loss or a timeout; its floor is two segments. Source: RFC 8257 §3.4, RFC 5681 (4); 0.75
        /// is INET's TCP as the Canary artifact runs it.
        #[within(0..=1)]
        pub dctcp_loss_reduction: f64 = 0.5,
        /// Whether an acknowledgement with the echo grows the window where it does not cut it.
        /// Source: no by RFC 3168 §6.1.2; yes by INET's DCTCP, which the artifacts of Vertigo and
        /// Canary run.
        pub dctcp_growth_on_echo: bool = false,
        /// Whether echoes cut a window that a loss or a timeout has cut already: after a timeout an
        /// observation window is then what was sent again. Source: no by RFC 8257 §3.4, once a
        /// window of data whatever the signals; INET's DCTCP, which the artifacts of Vertigo and
        /// Canary run, does.
        pub dctcp_cut_after_loss: bool = false,
    }
}

/// DCTCP's state of one connection: alpha and the counts of its window.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    /// Growth, and cuts for loss.
    reno: NewReno,
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.WindowEnd: an ACK beyond it ends the observation window.
    window_end: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

const ALPHA: Quantity = Quantity {
    name: "alpha",
    meaning: "DCTCP.Alpha (RFC 8257): the fraction of bytes that are marked, as estimated",
};

impl Law for Dctcp {
    type Params = DctcpParams;
    type Constants = DctcpParams;

    fn demands(params: &DctcpParams) -> Demands {
        let echo = match params.dctcp_echo {
            DctcpEcho::Precise => Echo::Precise,
            DctcpEcho::Latch => Echo::Latch,
        };
        // Linux marks retransmissions, too: what is not ECT is dropped where DCTCP's marks begin.
        let (grows_on_echo, cuts_after_loss) =
            (params.dctcp_growth_on_echo, params.dctcp_cut_after_loss);
        Demands {
            echo,
            marks_retransmissions: true,
            grows_on_echo,
            cuts_after_loss,
            ..Demands::default()
        }
    }

    fn constants(params: &DctcpParams) -> DctcpParams {
        DctcpParams {
            dctcp_g: params.dctcp_g.clamp(0.0, 1.0),
            dctcp_alpha_initial: params.dctcp_alpha_initial.clamp(0.0, 1.0),
            dctcp_loss_reduction: params.dctcp_loss_reduction.clamp(0.0, 1.0),
            ..params.clone()
        }
    }

    fn new(_: u64, shared: &Shared<DctcpParams>) -> Dctcp {
        let alpha = shared.law.dctcp_alpha_initial;
        Dctcp { reno: NewReno::default(), alpha, window_end: 0, acked: 0, marked: 0 }
    }

    /// §3.3, steps 1 to 8. Whether to cut: at the end of a window with marks (step 9), or at any
    /// echo, of which the sender lets the first of a window through.
    #[inline]
    fn on_ack(&mut self, ack: Acked, shared: &Shared<DctcpParams>) -> bool {
        self.acked += ack.bytes; // step 2
        if ack.ece {
            self.marked += ack.bytes; // step 3
        }
        let only_echoes = shared.law.dctcp_alpha_update == DctcpAlphaUpdate::Echo;
        let past = ack.una > self.window_end && (ack.ece || !only_echoes);
        let ended = past && self.end_window(ack.nxt, shared.law.dctcp_g); // step 4
        match shared.law.dctcp_reduce {
            DctcpReduce::FirstMark => ack.ece,
            DctcpReduce::WindowEnd => ended,
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, growth: &Growth, shared: &Shared<DctcpParams>) {
        self.reno.add(window, growth.bytes, shared.mss);
    }

    /// Step 9 for marks, RFC 5681 for loss, with another share where the scenario sets one.
    fn cut(&mut self, window: &mut Window, cut: &Cut, shared: &Shared<DctcpParams>) {
        self.reno.restart();
        if cut.cause != Cause::Mark {
            // The floor of two segments is every law's.
            let kept = (cut.flight as f64 * shared.law.dctcp_loss_reduction) as u64;
            window.ssthresh = kept.max(2 * u64::from(shared.mss));
            window.cwnd = window.ssthresh;
            return;
        }
        window.cwnd = (window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64;
        window.ssthresh = window.cwnd;
    }

    fn metrics(&self, _: &Shared<DctcpParams>) -> Vec<Metric> {
        vec![(ALPHA, Some(self.alpha))]
    }
}

impl Dctcp {
    /// Steps 5 to 8. Returns whether there were marks.
    fn end_window(&mut self, nxt: u64, g: f64) -> bool {
        let fraction = if self.acked == 0 { 0.0 } else { self.marked as f64 / self.acked as f64 };
        self.alpha = self.alpha * (1.0 - g) + g * fraction;
        self.window_end = nxt;
        let marked = self.marked != 0;
        (self.acked, self.marked) = (0, 0);
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn shared(change: impl FnOnce(&mut DctcpParams)) -> Shared<DctcpParams> {
        let mut p = DctcpParams::default();
        change(&mut p);
        Shared { mss: 1000, ecn: true, law: Dctcp::constants(&p) }
    }

    fn with_alpha(alpha: f64) -> Dctcp {
        Dctcp::new(0, &shared(|p| p.dctcp_alpha_initial = alpha))
    }

    /// An ACK of `bytes` up to `una`, with the echo or not, when data up to `nxt` was sent.
    fn ack(
        control: &mut Dctcp,
        bytes: u64,
        ece: bool,
        una: u64,
        nxt: u64,
        cfg: &Shared<DctcpParams>,
    ) -> bool {
        control.on_ack(
            Acked { now: Time::ZERO, bytes, ece, una, nxt, delay: Time::ZERO, hops: 0 },
            cfg,
        )
    }

    /// Windows of ten segments each, of which the first `marked` carry the echo; returns alpha
    /// after each.
    fn windows(alpha: f64, marked: u64, n: usize) -> Vec<f64> {
        let cfg = shared(|_| ());
        let mut control = with_alpha(alpha);
        let mut una = 0;
        let mut seen = Vec::new();
        control.window_end = 9; // so that the first ten make one window
        while seen.len() < n {
            for i in 0..10 {
                una += 1;
                ack(&mut control, 1, i < marked, una, una + 9, &cfg);
            }
            seen.push(control.alpha);
        }
        seen
    }

    #[test]
    fn alpha_rises_as_one_minus_powers_under_marks_and_falls_as_powers_without() {
        let g = 1.0f64 / 16.0;
        for (n, (up, down)) in windows(0.0, 10, 60).iter().zip(windows(1.0, 0, 60)).enumerate() {
            let power = (1.0 - g).powi(n as i32 + 1);
            assert!(
                (up - (1.0 - power)).abs() < 1e-12 && (down - power).abs() < 1e-12,
                "{n}: {up} {down}"
            );
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
        let cfg = shared(|p| p.dctcp_alpha_update = DctcpAlphaUpdate::Echo);
        let mut control = with_alpha(0.5);
        for una in 1..=500 {
            assert!(!ack(&mut control, 1, false, una, una + 9, &cfg));
        }
        assert_eq!(control.alpha, 0.5, "500 bytes without marks, and no decay");
        // The first echo ends the one long window: 1 of 501 bytes was marked.
        assert!(ack(&mut control, 1, true, 501, 510, &cfg));
        let expected = 0.5 * 15.0 / 16.0 + 1.0 / 501.0 / 16.0;
        assert!((control.alpha - expected).abs() < 1e-12);
        // Echoes up to the window's end, and what carries none beyond it, change nothing.
        for una in 502..=510 {
            assert!(!ack(&mut control, 1, true, una, una + 9, &cfg));
        }
        assert!(
            !ack(&mut control, 1, false, 511, 520, &cfg)
                && (control.alpha - expected).abs() < 1e-12
        );
        assert!(ack(&mut control, 1, true, 512, 521, &cfg));
    }

    #[test]
    fn a_loss_leaves_the_share_of_the_flight_that_the_scenario_says_and_two_segments() {
        for (share, flight, left) in
            [(0.5, 40_000, 20_000), (0.75, 40_000, 30_000), (0.75, 2_000, 2_000)]
        {
            let cfg = shared(|p| p.dctcp_loss_reduction = share);
            let mut window = Window { cwnd: flight, ssthresh: u64::MAX };
            with_alpha(1.0).cut(
                &mut window,
                &Cut { now: Time::ZERO, cause: Cause::Loss, flight },
                &cfg,
            );
            assert_eq!(window, Window { cwnd: left, ssthresh: left });
        }
    }

    #[test]
    fn a_window_is_cut_at_its_end_and_only_if_it_had_marks() {
        let cfg = shared(|_| ());
        let mut control = with_alpha(1.0);
        assert!(
            !ack(&mut control, 10, false, 10, 100, &cfg),
            "the first observation ends with the first ACK"
        );
        assert!(!ack(&mut control, 10, true, 20, 110, &cfg));
        assert!(
            !ack(&mut control, 80, false, 100, 190, &cfg),
            "WindowEnd itself belongs to the window"
        );
        assert!(ack(&mut control, 10, false, 110, 200, &cfg));
        assert!(
            !ack(&mut control, 90, false, 200, 290, &cfg)
                && !ack(&mut control, 10, false, 210, 300, &cfg)
        );
    }
}
