//! The share: how fast each connection of a scope may send, so that all together send what the
//! limit allows.
//!
//! Windows cannot be small enough where round trips are short: two segments in 20 us are 1.2 Gb/s.
//! A pace can, and all connections of a scope have the same one. It is the *fair pace*, which is
//! the limit's rate lowered by what the virtual queue was behind over time, and lowered once more
//! by what the queue is behind now. So it is lower the more connections there are, nobody counts
//! them, and what some do not use is left to the others.
//!
//! A connection takes a change when it sends its next segment. So the law is as slow as that
//! takes: both terms are measured by the *horizon*, the time of two segments at the fair pace.
//! Where round trips are short a segment is as large as the window; so a sender of a larger one
//! than the fair pace brings in [`SPREAD`] is asked to reduce the window.
//!
//! Not in NRM's slides. The law is a proportional and integral one, the latter on the logarithm of
//! the rate.
//!
//! Invariant: the same state, settings, time and backlog give the same pace in both worlds, and it
//! is never zero.

use super::{Form, POINT, Settings};

/// How fast each connection of a scope may send. A new one is all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Share {
    /// When it was adjusted last, in nanoseconds; 0: never.
    pub at: u64,
    /// Bytes a second; 0: not known yet.
    pub pace: u64,
    /// The sum: octaves below the limit's rate, in 1/65536.
    pub level: i64,
    /// How large a segment may be, in bytes; 0: of any size.
    pub largest: u64,
}

/// It is adjusted this often at most, in nanoseconds.
pub const EVERY: u64 = 50_000;
/// A segment may be as large as what the sum allows in 2^-6 s, 16 ms: with 30 connections at 1 Gb/s
/// as large as a kernel makes it. The same segments of a kernel's own choice are those of 1 ms,
/// which cost more of a processor.
const SPREAD: u32 = 6;
/// And always as large as four packets of an Ethernet: below that windows become too small to grow
/// again.
const SEGMENT_LEAST: u64 = 6_000;
/// The most that a kernel puts into one.
const SEGMENT_MOST: u64 = 65_536;
/// How much slower the sum is than what is behind now.
const SLOW: u64 = 4;
/// Bounds of the horizon, in nanoseconds; it is two `mark` at least.
const HORIZON_LEAST: u64 = 2_000_000;
const HORIZON_MOST: u64 = 1 << 40;
pub(super) const OCTAVE: i64 = 1 << 16;
const LEVEL_LEAST: i64 = -OCTAVE / 2;
const LEVEL_MOST: i64 = 12 * OCTAVE;
/// The least pace of a connection over time, in bytes a second: a slower one would learn of a
/// higher pace too late.
const PACE_LEAST: u64 = 30_000;

/// An amount of a queue as nanoseconds of its rate.
#[inline]
pub(super) fn nanoseconds(settings: &Settings, amount: u64) -> u64 {
    if settings.form == Form::Credit as u32 {
        // 64 MB at most, so that the product fits.
        return (amount.min(1 << 26) * (settings.cost >> 10)) >> (POINT - 10);
    }
    amount.min(1 << 39)
}

/// The limit's rate, lowered by so many octaves, in bytes a second.
#[inline]
pub(super) fn lowered(settings: &Settings, octaves: i64) -> u64 {
    let full = (settings.rate * 1_000_000_000) >> POINT;
    let octaves = octaves.clamp(-OCTAVE, LEVEL_MOST) + OCTAVE;
    // Half as much for each octave, and straight lines between them.
    let part = (2 * full * (2 * OCTAVE - (octaves & (OCTAVE - 1))) as u64) >> 17;
    (part >> (octaves as u64 >> 16)).max(full.min(PACE_LEAST)).max(1)
}

/// How large a segment may be at a fair pace.
#[inline]
fn largest(fair: u64) -> u64 {
    (fair >> SPREAD).max(SEGMENT_LEAST)
}

/// The time until a connection has taken a change, in nanoseconds.
#[inline]
fn horizon(fair: u64, least: u64) -> u64 {
    (2 * largest(fair).min(SEGMENT_MOST) * 1_000_000_000 / fair).max(least).min(HORIZON_MOST)
}

/// Adjusts it to a queue that is `behind` at `now`, after a packet of this `cost`; both in the
/// queue's own unit. The part of the cost beyond half of the burst does not count: before it, no
/// more credit than that was to be had, and a connection alone would be slowed down for its own
/// segments.
#[inline]
pub fn adjust(share: &mut Share, settings: &Settings, now: u64, behind: i64, cost: i64) {
    let behind = behind.saturating_sub(cost.saturating_sub(settings.burst >> 1).max(0));
    let mark = nanoseconds(settings, settings.mark.max(0) as u64);
    let least = (2 * mark).clamp(HORIZON_LEAST, HORIZON_MOST);
    let since = if share.at == 0 { u64::MAX } else { now.saturating_sub(share.at) };
    let far = nanoseconds(settings, behind.unsigned_abs());
    share.at = now;
    if behind < -(settings.burst >> 1) {
        // Credit is about to be lost.
        share.level -= ((since.min(16 * least) << 16) / least) as i64;
    } else {
        let horizon = horizon(lowered(settings, share.level), least);
        let part = (far.min(horizon) << 16) / horizon;
        let moved = (part * since.min(horizon) / (SLOW * horizon)) as i64;
        share.level += if behind < 0 { -moved } else { moved };
    }
    share.level = share.level.clamp(LEVEL_LEAST, LEVEL_MOST);
    let fair = lowered(settings, share.level);
    let horizon = horizon(fair, least);
    let part = (far.min(16 * horizon) << 10) / horizon;
    let pace = match behind < 0 {
        true => (fair * (1024 + part.min(1024))) >> 10,
        false => (fair << 10) / (1024 + part),
    };
    share.largest = largest(fair);
    share.pace = pace.max(1);
}

#[cfg(test)]
mod tests {
    use super::super::{LimitParams, State, charge};
    use super::*;
    use crate::units::Rate;

    const SECOND: u64 = 1_000_000_000;

    /// Connections that send as fast as they may, or a packet every so often: what each has sent in
    /// the second of two seconds, and how far the queue was behind at most in it.
    fn send(rate: u64, every: &[Option<u64>]) -> (Vec<u64>, i64) {
        let settings =
            LimitParams { rate: Rate(rate), ..LimitParams::default() }.shared().settings();
        let (mut state, mut share) = (State::default(), Share::default());
        let mut next: Vec<u64> = (0..every.len()).map(|i| EVERY + 1_000 * i as u64).collect();
        let (mut sent, mut most) = (vec![0; every.len()], i64::MIN);
        loop {
            let (who, now) = next.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
            if now >= 2 * SECOND {
                return (sent, most);
            }
            let bytes = match (every[who], share.largest) {
                (Some(_), _) => 1_500,
                (None, 0) => 64_000,
                (None, largest) => largest.min(64_000),
            };
            let charged = charge(&mut state, &settings, now, bytes as u32);
            if now >= share.at + EVERY {
                adjust(&mut share, &settings, now, charged.behind, charged.cost);
            }
            if now > SECOND {
                sent[who] += bytes;
                most = most.max(charged.behind);
            }
            next[who] = now + every[who].unwrap_or_else(|| bytes * SECOND / share.pace);
        }
    }

    #[test]
    fn together_they_send_what_the_limit_allows() {
        let cases = [
            (1_000, 1),
            (1_000, 9),
            (1_000, 50),
            (1_000, 500),
            (5_000, 9),
            (10_000, 100),
            (100, 50),
            (10, 2),
        ];
        for (rate, connections) in cases {
            let (sent, most) = send(rate * 1_000_000, &vec![None; connections]);
            let second = rate * 1_000_000 / 8;
            let sum: u64 = sent.iter().sum();
            assert!(
                (95 * second..=103 * second).contains(&(100 * sum)),
                "{rate} Mb/s, {connections}: {sum} of {second}"
            );
            // A least segment of each of 50 are 24 ms at 100 Mb/s.
            let most = most as u64 * 8_000 / (rate * 1_000_000);
            assert!(most < 40, "{rate} Mb/s, {connections}: {most} ms behind");
            let (least, greatest) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(
                greatest - least <= 16_000.max(least / 10),
                "{rate} Mb/s, {connections}: {sent:?}"
            );
        }
    }

    /// A segment of 64 KB is 5 ms of 100 Mb/s, whose burst is 2 ms.
    #[test]
    fn one_that_sends_more_than_the_burst_at_once_has_the_whole_rate() {
        for rate in [20, 50, 100, 200, 400] {
            let (sent, _) = send(rate * 1_000_000, &[None]);
            let second = rate * 1_000_000 / 8;
            assert!(
                (97 * second..=103 * second).contains(&(100 * sent[0])),
                "{rate} Mb/s: {sent:?}"
            );
        }
    }

    #[test]
    fn what_some_do_not_use_is_left_to_the_others() {
        let (sent, _) =
            send(SECOND, &[None, None, Some(10_000_000), Some(10_000_000), Some(10_000_000)]);
        let two = sent[0] + sent[1];
        assert!((116_000_000..125_000_000).contains(&two), "{sent:?}");
    }

    #[test]
    fn credit_that_nobody_uses_brings_the_pace_back() {
        let settings = LimitParams::default().shared().settings();
        let mut share = Share { at: 1, level: 6 * OCTAVE, ..Share::default() };
        adjust(&mut share, &settings, 2, 0, 0);
        assert_eq!((share.pace, share.largest), (125_000_000 / 64, 125_000_000 / 64 / 64));
        let mut now = 2;
        while share.pace < 125_000_000 {
            now += EVERY;
            adjust(&mut share, &settings, now, -settings.burst, 0);
        }
        assert!(now < 20_000_000, "{now} ns");
        adjust(&mut share, &settings, now + 100 * SECOND, -settings.burst, 0);
        assert_eq!(share.level, LEVEL_LEAST, "and no further");
    }

    #[test]
    fn no_pace_is_zero_and_none_is_far_above_the_limit() {
        for rate in [8_000, 1_000_000, 1_000_000_000_000] {
            let settings = LimitParams { rate: Rate(rate), ..LimitParams::default() }.settings();
            for behind in [i64::MIN, -1, 0, 1, 1 << 20, 1 << 40, i64::MAX] {
                for level in [i64::from(i32::MIN), 0, i64::from(i32::MAX)] {
                    let mut share = Share { at: 5, level, ..Share::default() };
                    adjust(&mut share, &settings, u64::MAX, behind, 1_500);
                    assert!(
                        (1..=rate / 2 + 1).contains(&share.pace),
                        "{rate} {behind} {level}: {share:?}"
                    );
                }
            }
        }
    }
}
