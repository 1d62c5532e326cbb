//! Congestion control: *how large may the window be?*
//!
//! One file a transport. The sender calls [`Congestion::marks`] and [`Congestion::grow`] for ACKs of new data and
//! [`Congestion::cut`] at most once a window of data (RFC 3168 §5, RFC 8257 §3.4); what is lost and what is sent again
//! are its own affair. Slow start is the same for all: RFC 5681 §3.1 with the byte counting of RFC 3465 §2.2. Only Swift
//! has none: it takes the delay on every ACK instead (`Sender::take_delay`), and `ssthresh` means nothing to it.
//!
//! Invariant: `cwnd` is at least one MSS and `ssthresh` at least two.

mod cubic;
mod dctcp;
mod newreno;
mod swift;

use super::{Config, Control};
use cubic::Cubic;
use dctcp::Dctcp;
use millpond_core::Time;
use millpond_results::Quantity;
use newreno::NewReno;
use swift::Swift;

/// The two numbers that every control steers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
}

/// An ACK of new data, while nothing is being repaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) now: Time,
    /// Newly acknowledged bytes.
    pub(super) bytes: u64,
    /// Smoothed round-trip time.
    pub(super) srtt: Time,
    /// What slow start may add for this ACK (RFC 3465's L), in bytes.
    pub(super) limit: u64,
}

/// Why the window is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Duplicate ACKs or SACKs.
    Loss,
    /// The retransmission timer.
    Timeout,
    /// An ECN echo.
    Mark,
}

/// What a control law steers by beside the window, and its value; `None` before there is one.
pub(super) type Told = (Quantity, Option<f64>);

/// What every control law can be asked from outside.
trait Law {
    /// What it steers by, for those who sample connections. The same quantities in the same order,
    /// whatever its state.
    fn told(&self, _cfg: &Config) -> Vec<Told> {
        Vec::new()
    }
}

/// One connection's control.
#[derive(Clone, Copy, Debug)]
pub(super) enum Congestion {
    NewReno(NewReno),
    Cubic(Cubic),
    Dctcp(Dctcp),
    Swift(Swift),
}

impl Congestion {
    pub(super) fn new(cfg: &Config) -> Congestion {
        match cfg.control {
            Control::NewReno => Congestion::NewReno(NewReno::default()),
            Control::Cubic { .. } => Congestion::Cubic(Cubic::default()),
            Control::Dctcp { alpha_initial, .. } => Congestion::Dctcp(Dctcp::new(alpha_initial)),
            Control::Swift(ref p) => Congestion::Swift(Swift::new(cfg.initial_window as f64 / f64::from(cfg.mss), p)),
        }
    }

    /// Takes note of the echo on an ACK up to `una` that acknowledges `bytes` more, when data up to `nxt` was sent.
    /// Returns whether the window should be cut for it.
    #[inline]
    pub(super) fn marks(&mut self, bytes: u64, ece: bool, una: u64, nxt: u64, cfg: &Config) -> bool {
        match self {
            Congestion::Dctcp(control) => control.marks(bytes, ece, una, nxt, cfg),
            _ => ece && cfg.ecn(),
        }
    }

    /// Opens the window for newly acknowledged bytes.
    #[inline]
    pub(super) fn grow(&mut self, window: &mut Window, growth: &Growth, cfg: &Config) {
        if window.cwnd < window.ssthresh {
            // RFC 3465 §2.2: what was acknowledged, at most L.
            window.cwnd += growth.bytes.min(growth.limit);
            return;
        }
        match self {
            Congestion::NewReno(control) => control.grow(window, growth.bytes, cfg),
            Congestion::Cubic(control) => control.grow(window, growth, cfg),
            Congestion::Dctcp(control) => control.reno.grow(window, growth.bytes, cfg),
            Congestion::Swift(_) => {} // by its delays alone
        }
    }

    /// Closes the window. `flight`: FlightSize, without what limited transmit has added (RFC 5681 §3.2).
    #[cold]
    pub(super) fn cut(&mut self, window: &mut Window, cause: Cause, flight: u64, now: Time, cfg: &Config) {
        match self {
            Congestion::NewReno(control) => control.cut(window, cause, flight, cfg),
            Congestion::Cubic(control) => control.cut(window, cause, flight, cfg),
            Congestion::Dctcp(control) => control.cut(window, cause, flight, cfg),
            Congestion::Swift(control) => return control.cut(window, cause, now, cfg),
        }
        let mss = u64::from(cfg.mss);
        window.ssthresh = window.ssthresh.max(2 * mss); // RFC 5681 (4)
        if cause == Cause::Timeout {
            window.cwnd = mss; // the loss window, RFC 5681 §3.1
        }
        window.cwnd = window.cwnd.max(mss);
    }

    /// Brings the window down to at most `bytes`: the restart window, or that of a connection whose SYNs were lost.
    #[cold]
    pub(super) fn narrow(&mut self, window: &mut Window, bytes: u64, cfg: &Config) {
        window.cwnd = window.cwnd.min(bytes);
        if let Congestion::Swift(control) = self {
            control.narrow(bytes, cfg);
        }
    }

    /// Nothing was in flight for this long.
    #[cold]
    pub(super) fn idle(&mut self, span: Time) {
        if let Congestion::Cubic(control) = self {
            control.idle(span);
        }
    }

    /// What it steers by.
    pub(super) fn told(&self, cfg: &Config) -> Vec<Told> {
        let law: &dyn Law = match self {
            Congestion::NewReno(control) => control,
            Congestion::Cubic(control) => control,
            Congestion::Dctcp(control) => control,
            Congestion::Swift(control) => control,
        };
        law.told(cfg)
    }

    /// DCTCP's alpha, for those that have one.
    #[cfg(test)]
    pub(super) fn alpha(&self) -> Option<f64> {
        match self {
            Congestion::Dctcp(control) => Some(control.alpha()),
            _ => None,
        }
    }
}
