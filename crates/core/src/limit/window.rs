//! The window: how much a connection may have under way to a receiver whose limit is behind.
//!
//! A receiver cannot pace its senders. In TCP it can offer less room: a sender has no more under
//! way than its peer's receive window. So connections behind a limit offer no more than the limit
//! carries in a round trip and the time of `drop`, even while its queue is empty: a sender that
//! does not heed losses (BBR) fills a window at once, and a larger one would be beyond `bypass` and
//! lost as a whole. While the queue is behind by more than `mark`, the window halves with each
//! [`OCTAVES`]th part of `drop`.
//!
//! A sender whose windows are small loses little where [`space`](super::space) drops one of its
//! packets, and one that does not heed losses (BBR) is held as well. Where the round trip is long,
//! a window takes effect late: an octave is one and a half round trips at least.
//!
//! Where even that is too much, round trips are so short that no window holds the limit. Then the
//! receiver offers one segment, and delays its acknowledgement ([`pause`]): TCP allows 500 ms
//! (RFC 1122, section 4.2.3.2), and Linux takes from two clock ticks to 40 ms. Nothing is lost
//! meanwhile, so no sender waits for a timer.
//!
//! Not in NRM's slides.
//!
//! Invariant: no window is smaller than one segment; one of fewer than [`SEGMENTS`] is one segment,
//! since a delayed acknowledgement would be waited for in any case.

use super::share::{OCTAVE, nanoseconds};
use super::{POINT, Settings, flags};

/// So often a window is halved from an empty queue to `drop`.
const OCTAVES: u64 = 10;
/// A window of fewer segments is one.
const SEGMENTS: u64 = 3;
/// The longest round trip that counts, in microseconds.
const RTT_MOST: u32 = 1_000_000;
/// The most that a receiver can offer.
const MOST: u64 = 1 << 30;
/// A delayed acknowledgement comes late by up to two ticks of 4 ms, and the window that it offers
/// grows again over some round trips: what a pause is shorter than the queue is behind, in
/// microseconds.
const LATE: u64 = 12_000;
/// Bounds of a pause, in microseconds: two ticks of a clock of 1,000 Hz, and Linux' own.
const PAUSE_LEAST: u64 = 2_000;
const PAUSE_MOST: u64 = 200_000;

/// The room that a connection may offer, in bytes, whose queue is `behind` by so much of its own
/// unit; `u32::MAX`: whatever it likes. At `mss`, the bytes of its segments, it
/// [pauses](pause) too. Its least round-trip time is in microseconds (`u32::MAX`: unknown, which
/// counts as short).
#[inline]
pub fn window(settings: &Settings, behind: i64, rtt: u32, mss: u32) -> u32 {
    if settings.flags & flags::HELD == 0 {
        return u32::MAX;
    }
    let behind = if behind > settings.mark { behind } else { 0 };
    let drop = nanoseconds(settings, settings.drop as u64);
    let rtt = if rtt == u32::MAX { 0 } else { rtt.min(RTT_MOST) as u64 * 1_000 };
    let octave = (drop / OCTAVES).max(rtt + rtt / 2).max(1);
    let far = nanoseconds(settings, behind as u64).min(16 * octave);
    let rate = ((settings.rate * 1_000_000_000) >> POINT).min(1 << 33);
    // Half as much for each octave, and straight lines between them.
    let part = 2 * OCTAVE as u64 - (far % octave) * OCTAVE as u64 / octave;
    let bytes = (rate * (drop.min(1_000_000_000) + rtt) / 1_000_000_000).min(MOST);
    let bytes = ((bytes * part) >> 17) >> (far / octave);
    let is_least = bytes < SEGMENTS * mss as u64;
    (if is_least { mss as u64 } else { bytes }).min(MOST) as u32
}

/// How long the acknowledgements of a connection wait whose window is one segment, in
/// microseconds: until the queue is nearly back at `mark`.
#[inline]
pub fn pause(settings: &Settings, behind: i64) -> u32 {
    let over = (behind - settings.mark).max(0) as u64;
    let until = nanoseconds(settings, over) / 1_000;
    until.saturating_sub(LATE).clamp(PAUSE_LEAST, PAUSE_MOST) as u32
}

#[cfg(test)]
mod tests {
    use super::super::{Form, LimitParams, RATES};
    use super::*;
    use crate::units::Rate;
    use proptest::prelude::*;

    const MSS: u32 = 1_448;

    fn held(bps: u64, form: Form) -> Settings {
        let params = LimitParams { rate: Rate(bps), form, ..LimitParams::default() };
        let mut settings = params.arriving().settings();
        settings.flags |= flags::HELD;
        settings
    }

    #[test]
    fn it_halves_with_each_tenth_of_the_way_to_drop() {
        let settings = held(1_000_000_000, Form::Credit);
        let at = |tenths: i64| window(&settings, settings.drop * tenths / 10, 20, MSS);
        // 20 ms of 1 Gb/s and the round trip are 2,502,500 bytes.
        assert!(at(0).abs_diff(2_502_500) < 2_000, "{}", at(0));
        assert_eq!(window(&settings, settings.mark, 20, MSS), at(0), "at mark, not beyond");
        assert_eq!(window(&settings, i64::MIN, 20, MSS), at(0), "and with credit");
        for (tenths, of) in [(3, 8), (6, 64), (8, 256)] {
            let expected = 2_502_500 / of;
            assert!(
                at(tenths).abs_diff(expected) <= expected / 100,
                "{} at {tenths}, not {expected}",
                at(tenths)
            );
        }
        assert_eq!(at(10), MSS, "fewer than three segments are one");
        assert_eq!(at(30), MSS);
    }

    #[test]
    fn a_slow_limit_offers_one_segment_too() {
        let settings = held(800_000, Form::Credit);
        assert!(window(&settings, 0, 20, MSS) > 10 * MSS);
        assert_eq!(window(&settings, settings.drop * 6 / 10, 20, MSS), MSS);
    }

    #[test]
    fn acknowledgements_wait_until_the_queue_is_nearly_back_at_mark() {
        let settings = held(1_000_000_000, Form::Credit);
        let at = |ms: i64| pause(&settings, settings.mark + ms * 125_000);
        for (ms, expected) in [(-9, 2_000), (0, 2_000), (14, 2_000), (20, 8_000), (52, 40_000)] {
            assert!(at(ms).abs_diff(expected) <= 2, "{} at {ms} ms, not {expected}", at(ms));
        }
        assert_eq!(at(1_000), 200_000);
    }

    #[test]
    fn a_long_round_trip_has_room_for_what_the_limit_carries() {
        let settings = held(1_000_000_000, Form::Credit);
        // 10 ms carry 1.25 MB; an octave is 15 ms, and drop is at 20.
        let least = window(&settings, settings.drop, 10_000, MSS);
        assert!((1_500_000..1_700_000).contains(&least), "{least}");
        assert_eq!(
            window(&settings, settings.drop, u32::MAX, MSS),
            window(&settings, settings.drop, 0, MSS)
        );
    }

    #[test]
    fn where_windows_are_not_held_there_is_none() {
        let settings = LimitParams::default().arriving().settings();
        assert_eq!(window(&settings, settings.drop, 20, MSS), u32::MAX);
    }

    proptest! {
        /// Whatever the limit: never too small, and never larger the further behind.
        #[test]
        fn further_behind_is_never_more(
            bps in RATES,
            form in 0usize..3,
            rtt in 0u32..2_000_000,
            mss in 1u32..65_536,
            behind in 0i64..1 << 40,
            more in 0i64..1 << 36,
        ) {
            let settings = held(bps, [Form::Credit, Form::LockFree, Form::Edt][form]);
            let (near, far) =
                (window(&settings, behind, rtt, mss), window(&settings, behind + more, rtt, mss));
            prop_assert!(far >= mss && far <= near);
        }
    }
}
