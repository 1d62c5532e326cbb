//! Waiting for room for a larger segment, as Linux does (`tcp_tso_should_defer`, 6.12).
//!
//! Several acknowledgements then let out one burst of a third of the window instead of a burst
//! each. Linux asks about the buffer that it would send; here that is all that is written and not
//! sent, up to the largest segment.
//!
//! Invariant: a sender that waits has data in flight whose acknowledgement asks again.

use super::{Phase, Sender};
use crate::endpoint::tcp::Config;
use millpond_core::Time;

/// The share of a window that leaves at once: one part of so many (`tcp_tso_win_divisor`).
const PARTS: u64 = 3;
/// A sender that has sent nothing for so long does not wait.
const RECENT: Time = Time::from_ms(1);

impl Sender {
    /// Whether new data, which the windows allow now, waits for more room; `max_len` is the largest
    /// segment.
    pub(super) fn defers(&self, now: Time, max_len: u32, cfg: &Config) -> bool {
        let is_calm = matches!(self.phase, Phase::Open | Phase::Paced | Phase::Disorder);
        let Some(rack) = self.rack.as_ref().filter(|_| cfg.defers && is_calm) else { return false };
        let mss = u64::from(cfg.mss);
        let window = self.window.cwnd.min(cfg.window_limit);
        let room = window.saturating_sub(self.in_flight());
        let largest = u64::from(max_len) / mss * mss;
        if self.written - self.nxt <= mss || room >= largest || room >= window / PARTS {
            return false;
        }
        // An acknowledgement that is further away than half a round trip is not waited for.
        let Some(first_sent) = rack.first_sent() else { return false };
        now.saturating_sub(self.last_send) <= RECENT
            && now.saturating_sub(first_sent) >= self.rto.srtt() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tcp::tests::config;
    use crate::endpoint::{AckIn, Endpoint};
    use millpond_core::congestion::Window;
    use millpond_scenario::transport::{Deferral, LossDetection};

    const MSS: u64 = 1000;

    /// While a sender waits for room, less than its window is in flight.
    #[test]
    fn a_sender_that_waits_is_limited_by_its_window() {
        let cfg = config(|p| {
            (p.mss, p.handshake, p.deferral) = (Some(MSS as u32), false, Deferral::Linux);
            p.loss_detection = LossDetection::Rack;
        });
        let mut sender = Sender::established(0, &cfg);
        sender.window = Window { cwnd: 10 * MSS, ssthresh: 10 * MSS };
        sender.write(Time::ZERO, 1000 * MSS);
        while sender.poll_send(Time::ZERO, 65_536, &cfg).is_some() {}
        for upto in 1..=10 {
            let now = Time::from_us(79 + upto);
            let stamp = Time::ZERO;
            let (ece, sack, hops, mapping) = (false, None, 1, None);
            sender.on_ack(now, &AckIn { ack: upto * MSS, ece, sack, stamp, hops, mapping }, &cfg);
            while sender.poll_send(now, 65_536, &cfg).is_some() {}
        }
        assert_eq!(sender.cwnd(), 11 * MSS, "one more for a window that is acknowledged");
    }
}
