//! NewReno: RFC 5681 §3.1. Half on loss, one segment a round trip otherwise.
//!
//! Invariant: in congestion avoidance the window grows by one MSS for every window of bytes
//! acknowledged.

use super::{Cause, Cut, Demands, Echo, Growth, LOSS_BASED, Law, Shared, Window};
use crate::registry::{About, Signal};

pub(super) const ABOUT: About = About {
    summary: "halves its window on loss, grows by one segment a round trip",
    source: "RFC 5681, RFC 6582, RFC 6675",
    needs: LOSS_BASED,
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of NewReno (RFC 5681, RFC 6582).
    pub struct NewRenoParams {
        /// Whether it declares ECN and halves on marks as on loss. Source: RFC 3168 §6.1.2.
        pub newreno_ecn: bool = false,
    }
}

/// NewReno's state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno {
    /// Bytes acknowledged towards the next segment of growth.
    credit: u64,
}

impl Law for NewReno {
    type Params = NewRenoParams;
    type Constants = ();

    fn demands(params: &NewRenoParams) -> Demands {
        let echo = if params.newreno_ecn { Echo::Latch } else { Echo::Off };
        Demands { echo, ..Demands::default() }
    }

    fn constants(_: &NewRenoParams) {}

    fn new(_: u64, _: &Shared<()>) -> NewReno {
        NewReno::default()
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, growth: &Growth, shared: &Shared<()>) {
        self.add(window, growth.bytes, shared.mss);
    }

    fn cut(&mut self, window: &mut Window, cut: &Cut, shared: &Shared<()>) {
        self.halve(window, cut, shared.mss);
    }
}

impl NewReno {
    /// Congestion avoidance by counting bytes, which RFC 5681 §3.1 recommends (RFC 3465 §2.1).
    #[inline]
    pub(super) fn add(&mut self, window: &mut Window, bytes: u64, mss: u32) {
        self.credit += bytes;
        if self.credit >= window.cwnd {
            self.credit -= window.cwnd;
            window.cwnd += u64::from(mss);
        }
    }

    /// RFC 5681 (4) for loss; RFC 3168 §6.1.2 for marks, which halve the window itself.
    pub(super) fn halve(&mut self, window: &mut Window, cut: &Cut, mss: u32) {
        self.restart();
        window.ssthresh = match cut.cause {
            Cause::Loss | Cause::Timeout => (cut.flight / 2).max(2 * u64::from(mss)),
            Cause::Mark => window.cwnd / 2,
        };
        window.cwnd = window.ssthresh;
    }

    /// Growth starts anew.
    pub(super) fn restart(&mut self) {
        self.credit = 0;
    }
}
