//! The loss: which packets of an arriving connection a limit drops, so that its sender recovers
//! from each without a timer.
//!
//! A sender on another host learns of a limit by its losses. Where everything beyond a threshold
//! is dropped, a whole window goes, and what is sent again goes as well. Then only the
//! retransmission timer is left, 200 ms. So a connection loses one packet, and nothing more until
//! what it lost has come again. Its sender takes that for one congestion event.
//!
//! Then it is asked whether that was enough. Where the round trip is long, the queue is looked at a
//! round trip after the repair, and the next packet is lost only if it has grown. Where the round
//! trip is shorter than [`SHORT`] the next one is lost at once: a window grows each round trip, and
//! waiting for one more fills the queue. A sender with ECN has its marks as signal, so it is
//! given the round trip however short.
//!
//! A packet that may be alone in flight is spared, too: its sender would wait for the
//! retransmission timer, since a probe for a single one may wait for a delayed acknowledgement
//! first (RFC 8985 §7.2).
//!
//! Where the window of a sender with ECN is held ([`window`](super::window)) and the round trip is
//! long, it loses nothing, and is marked from half-way between `drop` and `bypass` on: the window
//! follows the queue by itself. A mark may take half of what is under way, which comes back by a
//! segment a round trip.
//!
//! Not in NRM's slides. It holds up to `bypass`; beyond, all is dropped.
//!
//! Invariant: of a connection no packet is dropped while one that was dropped has not come again,
//! unless the queue is beyond `bypass`.

use super::{Ask, Settings, Verdict, flags};

/// The losses of a connection. A new one is all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Loss {
    /// When the queue was looked at last, in nanoseconds.
    pub at: u64,
    /// How far behind it was then.
    pub level: i64,
    /// The sequence number after what was dropped.
    pub end: u32,
    /// 1 until that has come again, else 0.
    pub open: u32,
}

/// A TCP packet's place in its connection, by its receiver's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Arrival {
    /// Nanoseconds.
    pub now: u64,
    /// The sequence number after its last byte.
    pub end: u32,
    /// The sequence number that the receiver waits for.
    pub expected: u32,
    /// The least round-trip time, in microseconds; `u32::MAX`: unknown, which counts as short.
    pub rtt: u32,
    /// Bytes that it carries; what carries none is not sent again.
    pub data: u32,
    /// 1 if it is one segment and the last that its sender had (PSH), else 0.
    pub last: u32,
    /// 1 if the connection's window is held, 2 if its acknowledgements also wait
    /// ([`pause`](super::pause)), else 0.
    pub held: u32,
}

/// A round trip is short below this, in microseconds: a small part of what the queue may be behind
/// by, whose least default is 10 ms.
pub const SHORT: u32 = 1_000;

/// [`Arrival::held`] of a connection that pauses: it sends a segment at a time, and would wait for
/// its timer of 200 ms if it lost that.
const PAUSED: u32 = 2;

/// The verdict on an arriving packet whose queue is `behind` and gave it `verdict`.
#[inline]
pub fn space(
    loss: &mut Loss,
    settings: &Settings,
    behind: i64,
    ask: &Ask,
    arrival: &Arrival,
    verdict: Verdict,
) -> Verdict {
    let is_spaced =
        settings.flags & flags::SPACED != 0 && ask.tcp != 0 && behind <= settings.bypass;
    if is_spaced && arrival.held != 0 && ask.ecn != 0 && is_long(arrival.rtt) {
        let passed = if behind > settings.drop { Verdict::BYPASS } else { 0 };
        let marked = if behind > (settings.drop + settings.bypass) >> 1 { Verdict::CE } else { 0 };
        return Verdict(Verdict::BEHIND | passed | marked);
    }
    if !is_spaced || !verdict.has(Verdict::DROP) {
        return verdict;
    }
    let pauses = arrival.held >= PAUSED;
    if arrival.data != 0 && arrival.last == 0 && !pauses && !spares(loss, behind, ask, arrival) {
        return verdict;
    }
    let mark = match ask.ecn != 0 {
        true => Verdict::CE,
        false if settings.flags & flags::NO_CWR == 0 => Verdict::CWR,
        false => 0,
    };
    Verdict(Verdict::BEHIND | Verdict::BYPASS | mark)
}

/// Whether a least round trip is known and long.
#[inline]
fn is_long(rtt: u32) -> bool {
    (SHORT..u32::MAX).contains(&rtt)
}

/// Whether the connection is to lose nothing now. Sequence numbers wrap.
#[inline]
fn spares(loss: &mut Loss, behind: i64, ask: &Ask, arrival: &Arrival) -> bool {
    if loss.open != 0 {
        if (arrival.expected.wrapping_sub(loss.end) as i32) < 0 {
            return true;
        }
        *loss = Loss { at: arrival.now, level: behind, end: loss.end, open: 0 };
        return true;
    }
    let rtt = if arrival.rtt == u32::MAX { 0 } else { arrival.rtt };
    if ask.ecn != 0 || is_long(arrival.rtt) {
        if arrival.now.saturating_sub(loss.at) < rtt as u64 * 1_000 {
            return true;
        }
        if behind <= loss.level {
            (loss.at, loss.level) = (arrival.now, behind);
            return true;
        }
    }
    (loss.end, loss.open) = (arrival.end, 1);
    false
}

#[cfg(test)]
mod tests {
    use super::super::{LimitParams, decide};
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const DROPPED: u32 = Verdict::BEHIND | Verdict::DROP | Verdict::CWR;
    const SPARED: u32 = Verdict::BEHIND | Verdict::BYPASS | Verdict::CWR;
    const TCP: Ask =
        Ask { bytes: 1500, charged: 1514, in_flight: u32::MAX, rtt: 0, tcp: 1, ecn: 0, share: 0 };

    fn spaced() -> Settings {
        let mut settings = LimitParams::default().arriving().settings();
        settings.flags |= flags::SPACED;
        settings
    }

    /// Of a connection with this round trip, at `now`: a packet that ends at `end` while its
    /// receiver waits for `expected`, and the queue is 1 KB beyond `drop` for each of `more`.
    fn ask(loss: &mut Loss, of: (Ask, u32), now: u64, end: u32, expected: u32, more: i64) -> u32 {
        let settings = spaced();
        let behind = settings.drop + 1_000 * more;
        let verdict = decide(&settings, behind, &of.0, 0);
        let arrival = Arrival { now, end, expected, rtt: of.1, data: 1_448, ..Arrival::default() };
        space(loss, &settings, behind, &of.0, &arrival, verdict).0
    }

    #[test]
    fn one_is_lost_until_it_has_come_again() {
        let (mut loss, of) = (Loss::default(), (TCP, 20));
        // Numbers that wrap in between.
        let at = |packet: u32| (u32::MAX - 2_000).wrapping_add(1_448 * packet);
        assert_eq!(ask(&mut loss, of, MS, at(1), at(0), 1), DROPPED);
        for packet in 2..9 {
            assert_eq!(ask(&mut loss, of, MS, at(packet), at(0), 1), SPARED);
        }
        assert_eq!(ask(&mut loss, of, MS, at(1), at(0), 1), SPARED, "it comes again");
        assert_eq!(ask(&mut loss, of, MS, at(9), at(8), 1), SPARED, "and that is seen now");
        assert_eq!(ask(&mut loss, of, MS, at(10), at(9), 1), DROPPED, "the round trip is short");
    }

    #[test]
    fn after_a_long_round_trip_the_next_is_lost_only_if_the_queue_has_grown() {
        let far = (TCP, 10_000);
        for (of, rtt) in [(far, 10 * MS), ((Ask { ecn: 2, ..TCP }, 20), MS / 50)] {
            let mut loss = Loss::default();
            let mut drops = |now, end, expected, more| {
                ask(&mut loss, of, now, end, expected, more) & Verdict::DROP != 0
            };
            assert!(drops(100 * MS, 1_000, 0, 1));
            assert!(!drops(110 * MS, 3_000, 2_000, 5), "repaired");
            assert!(!drops(110 * MS + rtt - 1, 4_000, 3_000, 9), "less than a round trip");
            assert!(!drops(110 * MS + rtt, 5_000, 4_000, 5), "it has not grown");
            assert!(!drops(110 * MS + 2 * rtt - 1, 6_000, 5_000, 9));
            assert!(drops(110 * MS + 2 * rtt, 7_000, 6_000, 6), "now it has");
        }
    }

    #[test]
    fn a_held_sender_with_ecn_at_a_long_round_trip_is_marked_late_and_loses_nothing() {
        let (settings, ecn) = (spaced(), Ask { ecn: 2, ..TCP });
        let of = |rtt, held, behind| {
            let arrival = Arrival {
                now: MS,
                end: 3_000,
                expected: 1_000,
                rtt,
                held,
                data: 1_448,
                ..Arrival::default()
            };
            let verdict = decide(&settings, behind, &ecn, 0);
            space(&mut Loss::default(), &settings, behind, &ecn, &arrival, verdict).0
        };
        let half = (settings.drop + settings.bypass) / 2;
        const PASSED: u32 = Verdict::BEHIND | Verdict::BYPASS;
        assert_eq!(
            [settings.mark + 1, settings.drop].map(|at| of(SHORT, 1, at)),
            [Verdict::BEHIND; 2]
        );
        assert_eq!([settings.drop + 1, half].map(|at| of(SHORT, 1, at)), [PASSED; 2]);
        assert_eq!(
            [half + 1, settings.bypass].map(|at| of(SHORT, 1, at)),
            [PASSED | Verdict::CE; 2]
        );
        assert_eq!(of(SHORT, 1, settings.bypass + 1), Verdict::BEHIND | Verdict::DROP);
        // Not held, or at a short or unknown round trip: marked from `mark` on.
        for (rtt, held) in [(SHORT, 0), (SHORT - 1, 1), (u32::MAX, 1)] {
            assert_eq!(of(rtt, held, settings.mark + 1), Verdict::BEHIND | Verdict::CE);
        }
    }

    #[test]
    fn what_cannot_be_sent_again_passes_and_beyond_the_bound_nothing_does() {
        let (settings, mut loss) = (spaced(), Loss::default());
        let mut of = |settings: &Settings, behind, arrival| {
            let verdict = decide(settings, behind, &TCP, 0);
            space(&mut loss, settings, behind, &TCP, &arrival, verdict).0
        };
        let last = Arrival { data: 700, last: 1, ..Arrival::default() };
        assert_eq!(of(&settings, settings.drop + 1, last), SPARED, "it may be alone");
        assert_eq!(of(&settings, settings.bypass + 1, last), DROPPED);
        let mut gets = |settings: &Settings, behind, data| {
            of(settings, behind, Arrival { data, ..Arrival::default() })
        };
        assert_eq!(gets(&settings, settings.drop + 1, 0), SPARED);
        assert_eq!(gets(&settings, settings.bypass + 1, 1_448), DROPPED);
        assert_eq!(gets(&settings, settings.bypass + 1, 1_448), DROPPED);
        assert_eq!(
            gets(&Settings { flags: 0, ..settings }, settings.drop + 1, 0),
            DROPPED,
            "as published"
        );
        assert_eq!(gets(&settings, settings.mark, 1_448), 0);
    }

    #[test]
    fn an_unknown_round_trip_counts_as_short() {
        let mut loss = Loss { at: MS, level: i64::MAX, ..Loss::default() };
        assert_eq!(ask(&mut loss, (TCP, u32::MAX), MS, 1_000, 0, 1), DROPPED);
    }

    proptest! {
        /// However packets, clocks and queues come: between two drops the first was repaired.
        #[test]
        fn no_second_packet_is_lost_before_the_first_has_come(
            rtt in 0u32..20_000,
            ecn in 0u32..3,
            packets in
                proptest::collection::vec((0u64..5_000_000, any::<bool>(), 0i64..1_000), 1..200),
        ) {
            let (mut loss, mut now, mut sent, mut hole) = (Loss::default(), MS, 1u32 << 31, None);
            let of = (Ask { ecn, ..TCP }, rtt);
            for (later, repairs, more) in packets {
                now += later;
                let again = hole.filter(|_| repairs);
                if again.is_none() {
                    sent = sent.wrapping_add(1_448);
                }
                let (end, expected) =
                    (again.unwrap_or(sent), hole.unwrap_or(sent).wrapping_sub(1_448));
                let drops = ask(&mut loss, of, now, end, expected, more) & Verdict::DROP != 0;
                prop_assert!(!drops || hole.is_none());
                hole = if drops {
                    Some(end)
                } else if again.is_some() {
                    None
                } else {
                    hole
                };
            }
        }
    }
}
