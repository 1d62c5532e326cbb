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
//! a window is heard of late: an octave is one and a half round trips at least.
//!
//! Not in NRM's slides.
//!
//! Invariant: no window is smaller than [`SEGMENTS`] segments. With fewer, a delayed
//! acknowledgement would be waited for.

use super::share::{OCTAVE, lowered, nanoseconds};
use super::{Settings, flags};

/// So often a window is halved from an empty queue to `drop`.
const OCTAVES: u64 = 10;
/// The least window, in segments.
const SEGMENTS: u64 = 3;
/// The longest round trip that counts, in microseconds.
const RTT_MOST: u32 = 1_000_000;
/// The most that a receiver can offer.
const MOST: u64 = 1 << 30;

/// The room that a connection may offer, in bytes, whose queue is `behind` by so much of its own
/// unit; `u32::MAX`: whatever it likes. Its least round-trip time is in microseconds (`u32::MAX`:
/// unknown, which counts as short), and its segments have `mss` bytes.
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
    let rate = lowered(settings, (far * OCTAVE as u64 / octave) as i64);
    let bytes = rate.min(1 << 33) * (drop.min(1_000_000_000) + rtt) / 1_000_000_000;
    bytes.max(SEGMENTS * mss as u64).min(MOST) as u32
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
        // 10 ms of 1 Gb/s and the round trip are 1,252,500 bytes.
        assert!(at(0).abs_diff(1_252_500) < 2_000, "{}", at(0));
        assert_eq!(at(5), at(0), "at mark, not beyond");
        assert_eq!(window(&settings, i64::MIN, 20, MSS), at(0), "and with credit");
        for (tenths, of) in [(6, 64), (7, 128), (8, 256)] {
            let expected = 1_252_500 / of;
            assert!(
                at(tenths).abs_diff(expected) <= expected / 100,
                "{} at {tenths}, not {expected}",
                at(tenths)
            );
        }
        assert_eq!(at(9), 3 * MSS);
        assert_eq!(at(30), 3 * MSS);
    }

    #[test]
    fn a_long_round_trip_has_room_for_what_the_limit_carries() {
        let settings = held(1_000_000_000, Form::Credit);
        // 10 ms carry 1.25 MB; an octave is 15 ms, and drop is at 10.
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
            prop_assert!(far >= 3 * mss && far <= near);
        }
    }
}
