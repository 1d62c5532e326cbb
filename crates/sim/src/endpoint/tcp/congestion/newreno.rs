//! NewReno: RFC 5681 §3.1. Half on loss, one segment a round trip otherwise.
//!
//! Invariant: in congestion avoidance the window grows by one MSS for every window of bytes acknowledged.

use super::{Cause, Law, Window};
use crate::endpoint::tcp::Config;

/// One connection's state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewReno {
    /// Bytes acknowledged towards the next segment of growth.
    credit: u64,
}

/// Its window is all that it steers by.
impl Law for NewReno {}

impl NewReno {
    /// Congestion avoidance by counting bytes, which RFC 5681 §3.1 recommends (RFC 3465 §2.1).
    #[inline]
    pub(super) fn grow(&mut self, window: &mut Window, bytes: u64, cfg: &Config) {
        self.credit += bytes;
        if self.credit >= window.cwnd {
            self.credit -= window.cwnd;
            window.cwnd += u64::from(cfg.mss);
        }
    }

    /// Growth starts anew.
    pub(super) fn restart(&mut self) {
        self.credit = 0;
    }

    /// RFC 5681 (4) for loss; RFC 3168 §6.1.2 for marks, which halve the window itself.
    pub(super) fn cut(&mut self, window: &mut Window, cause: Cause, flight: u64, cfg: &Config) {
        self.credit = 0;
        window.ssthresh = match cause {
            Cause::Loss | Cause::Timeout => (flight / 2).max(2 * u64::from(cfg.mss)),
            Cause::Mark => window.cwnd / 2,
        };
        window.cwnd = window.ssthresh;
    }
}
