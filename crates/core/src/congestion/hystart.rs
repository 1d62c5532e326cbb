//! HyStart: slow start ends where the path shows that it is full, before it loses.
//!
//! Two signs (Ha, Rhee: Taming the elephants: New TCP slow start, Computer Networks 2011), as
//! Linux's CUBIC looks for them: a round's acknowledgements have come back to back for half of the
//! shortest delay, so they fill the path; or a round's shortest delay is longer than that of all
//! rounds by an eighth, at least 4 ms and at most 16 ms.
//!
//! Invariant: a connection looks for them once, until a timeout.

use super::Acked;
use crate::Time;

/// Windows below so many segments are left alone.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements that are further apart are no train.
const TRAIN_GAP: Time = Time::from_ms(2);
/// Samples of the delay before a round's shortest counts.
const SAMPLES: u8 = 8;
/// By how much a round's delay has to be longer: at least and at most.
const LONGER: [Time; 2] = [Time::from_ms(4), Time::from_ms(16)];
/// Linux's segments of TSO, by which a train may be held up at its sender: four of them at the
/// pacing rate, and no more than this time.
const HELD_UP: (u64, Time) = (4 * 65_536, Time::from_ms(1));

#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    shortest: Time,
    /// The smoothed delay (RFC 6298), by which Linux works out the pacing rate.
    smoothed: Time,
    /// The round ends when what was sent at its beginning is acknowledged.
    end: u64,
    began: Time,
    /// The last acknowledgement of the round's train.
    last: Time,
    /// The shortest delay of the round.
    round: Time,
    samples: u8,
    found: bool,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            shortest: Time::MAX,
            smoothed: Time::ZERO,
            end: 0,
            began: Time::ZERO,
            last: Time::ZERO,
            round: Time::MAX,
            samples: 0,
            found: false,
        }
    }
}

impl HyStart {
    fn begin(&mut self, now: Time, nxt: u64) {
        let (shortest, smoothed, found) = (self.shortest, self.smoothed, self.found);
        let of_round = HyStart { end: nxt, began: now, last: now, ..HyStart::default() };
        *self = HyStart { shortest, smoothed, found, ..of_round };
    }

    /// A timeout: the next slow start looks again, and forgets the path's delay.
    pub(super) fn again(&mut self) {
        *self = HyStart::default();
    }

    /// An acknowledgement has come in slow start, with this window in bytes. Returns whether slow
    /// start ends here.
    pub(super) fn ends(&mut self, ack: &Acked, cwnd: u64, mss: u64) -> bool {
        self.shortest = self.shortest.min(ack.delay);
        self.smoothed = match self.smoothed {
            Time::ZERO => ack.delay,
            smoothed => smoothed - smoothed / 8 + ack.delay / 8,
        };
        if self.found {
            return false;
        }
        if self.end == 0 || ack.una > self.end {
            self.begin(ack.now, ack.nxt);
        }
        if cwnd < LOW_WINDOW * mss {
            return false;
        }
        self.found = self.is_train(ack.now, cwnd) || self.is_longer(ack.delay);
        self.found
    }

    /// Whether acknowledgements have come back to back for half of the shortest delay.
    fn is_train(&mut self, now: Time, cwnd: u64) -> bool {
        if now.saturating_sub(self.last) > TRAIN_GAP {
            return false;
        }
        self.last = now;
        // The pacing rate of slow start is two windows a smoothed round trip.
        let ps = u128::from(HELD_UP.0) * u128::from(self.smoothed.as_ps()) / 2;
        let held_up = Time::from_ps((ps / u128::from(cwnd.max(1))).min(u64::MAX.into()) as u64);
        let threshold = (self.shortest.saturating_add(held_up.min(HELD_UP.1))).as_ps() / 2;
        now.saturating_sub(self.began).as_ps() > threshold
    }

    /// Whether the round's shortest delay is longer than that of all rounds.
    fn is_longer(&mut self, delay: Time) -> bool {
        self.round = self.round.min(delay);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let longer = Time::from_ps(self.shortest.as_ps() / 8).clamp(LONGER[0], LONGER[1]);
        self.round > self.shortest.saturating_add(longer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn ack(now: Time, delay: Time, una: u64, nxt: u64) -> Acked {
        Acked { now, bytes: MSS, ece: false, una, nxt, delay, hops: 0 }
    }

    /// The acknowledgement, of 100, at which slow start ends: `gap` apart, of one round.
    fn ended(window: u64, gap: Time, delay: impl Fn(u64) -> Time) -> Option<u64> {
        let mut hystart = HyStart::default();
        (1..=100).find(|i| {
            let now = Time::from_ms(100) + Time::from_ps(gap.as_ps() * i);
            hystart.ends(&ack(now, delay(*i), i * MSS, 1000 * MSS), window * MSS, MSS)
        })
    }

    #[test]
    fn a_train_of_half_the_shortest_delay_ends_slow_start() {
        // (10 ms + 1 ms) / 2 after the first: the 56th, 100 us apart.
        let us = Time::from_us;
        assert_eq!(ended(100, us(100), |_| us(10_000)), Some(57));
        assert_eq!(ended(15, us(100), |_| us(10_000)), None, "a small window is left alone");
        assert_eq!(ended(100, us(2_001), |_| us(10_000)), None, "no train");
        // At a high rate segments hold up nothing: 16 us for 4 of TSO, two windows of 100,000.
        assert_eq!(ended(100_000, us(100), |_| us(10_000)), Some(52));
    }

    /// Of two connections with the same shortest delay, the one in whose way a queue builds up has
    /// the lower pacing rate, and its train may be longer.
    #[test]
    fn a_train_may_be_longer_behind_a_queue() {
        let us = Time::from_us;
        let built_up = |i: u64| us(if i == 1 { 20 } else { 80 });
        let (empty, queued) = (ended(60, us(1), |_| us(20)), ended(60, us(1), built_up));
        assert!(empty.unwrap() + 20 < queued.unwrap(), "{empty:?} {queued:?}");
    }

    #[test]
    fn a_delay_that_grows_by_four_milliseconds_ends_slow_start() {
        let ms = Time::from_ms;
        let delay = |i: u64| ms(if i < 2 { 10 } else { 15 });
        assert_eq!(ended(100, ms(3), delay), None, "the round's shortest is still 10 ms");
        let mut hystart = HyStart::default();
        hystart.ends(&ack(ms(10), ms(10), MSS, 20 * MSS), 100 * MSS, MSS);
        let second = |i: u64| ack(ms(20 + 3 * i), ms(15), (20 + i) * MSS, 60 * MSS);
        let found = (1..30).find(|i| hystart.ends(&second(*i), 100 * MSS, MSS));
        assert_eq!(found, Some(9), "after eight samples");
        assert!((30..60).all(|i| !hystart.ends(&second(i), 100 * MSS, MSS)), "once");
        hystart.again();
        hystart.ends(&ack(ms(500), ms(15), 60 * MSS, 61 * MSS), 100 * MSS, MSS);
        let later = |i: u64| ack(ms(500 + 3 * i), ms(20), (62 + i) * MSS, 200 * MSS);
        let found = (0..30).find(|i| hystart.ends(&later(*i), 100 * MSS, MSS));
        assert_eq!(found, Some(8), "again after a timeout");
    }
}
