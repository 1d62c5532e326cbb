//! The oracles of TLT's machines, and that no loss of unimportant packets ever stops a flow.

use super::*;
use crate::packet::Importance;
use crate::ranges::Ranges;
use proptest::prelude::*;
use std::collections::VecDeque;

const MSS: u32 = 1000;

fn marker() -> WindowMarker {
    WindowMarker::new(&TltParams::default())
}

/// A transport that is not in recovery.
fn at(una: u64, nxt: u64, more: bool) -> Standing {
    Standing { una, nxt, more, recovering: false }
}

/// Sends `n` segments from `seq`, the last of which is the last that may leave.
fn send(m: &mut WindowMarker, seq: u64, n: u64) -> Vec<Importance> {
    (0..n).map(|i| m.on_packet(seq + i * MSS as u64, MSS, i + 1 == n)).collect()
}

#[test]
fn the_clock_starts_with_the_last_or_the_first_of_the_initial_window() {
    use Importance::{Important as I, Unimportant as U};
    assert_eq!(send(&mut marker(), 0, 4), [U, U, U, I]);
    assert_eq!(send(&mut marker(), 0, 1), [I]);
    let mut first = WindowMarker::new(&TltParams { first: First::First, ..TltParams::default() });
    assert_eq!(send(&mut first, 0, 4), [I, U, U, U]);
}

/// A written choice holds for queue pairs, too; without one the kind of flow decides.
#[test]
fn the_first_important_packet_is_the_one_that_is_written() {
    for (first, of_tcp, of_queue_pair) in
        [(First::Auto, 3, 0), (First::Last, 3, 3), (First::First, 0, 0)]
    {
        let params = ImportanceParams::Tlt(TltParams { first, ..TltParams::default() });
        let markers = [
            (Marker::of(&params, true), of_tcp),
            (Marker::of_queue_pair(&params, true), of_queue_pair),
        ];
        for (marker, expected) in markers {
            let mut marker = marker.unwrap();
            let sent: Vec<Importance> = (0..4u64)
                .map(|n| marker.on_packet(n * u64::from(MSS), MSS, n == 3, n == 3))
                .collect();
            assert_eq!(
                sent.iter().position(|it| *it == Importance::Important),
                Some(expected),
                "{first:?}"
            );
        }
    }
}

#[test]
fn one_packet_an_echo_is_important() {
    use Importance::{Important as I, Unimportant as U};
    let mut m = marker();
    send(&mut m, 0, 4);
    assert!(m.on_ack(Importance::Control, 1000, &[], 0));
    assert_eq!(send(&mut m, 4000, 1), [U]);
    assert_eq!(
        m.after_ack(at(1000, 5000, false), MSS),
        None,
        "an ordinary acknowledgement forces nothing"
    );
    assert!(m.on_ack(Importance::Echo, 4000, &[], 1000));
    assert_eq!(send(&mut m, 5000, 2), [I, U]);
    assert_eq!(m.after_ack(at(4000, 7000, false), MSS), None);
}

/// Oracle: (previous round empty or not) × (used or not) × (anything exposed or not) → what is
/// forced.
#[test]
fn forced_size_and_range() {
    let forced = |seq, len| Some(Forced { seq, len, importance: Importance::Forced });
    // Previous round never used: taken for a loss. The lowest exposed range, a segment of it.
    let mut m = marker();
    send(&mut m, 0, 4);
    m.on_ack(Importance::Echo, 0, &[(3000, 4000)], 0);
    assert_eq!(m.after_ack(at(0, 4000, false), MSS), forced(0, 1000));
    assert_eq!(m.masked, 1);
    // Previous round used, and of it something is left: lost. The lowest of it, not the lowest
    // exposed.
    m.on_ack(Importance::ForcedEcho, 1000, &[(3000, 4000)], 0);
    assert_eq!(m.after_ack(at(1000, 4000, false), MSS), forced(1000, 1000));
    // A packet that leaves with an important one, behind it, counts for the round before: taken for
    // lost though it is not.
    let mut m = marker();
    send(&mut m, 0, 4);
    m.on_ack(Importance::Echo, 4000, &[], 0);
    assert_eq!(send(&mut m, 4000, 2), [Importance::Important, Importance::Unimportant]);
    m.after_ack(at(4000, 6000, false), MSS);
    m.on_ack(Importance::Echo, 5000, &[], 4000);
    assert_eq!(m.after_ack(at(5000, 6000, false), MSS), forced(5000, 1000));
    // Previous round used and empty: nothing lost, one byte.
    let mut m = marker();
    send(&mut m, 0, 4);
    m.on_ack(Importance::Echo, 4000, &[], 0);
    send(&mut m, 4000, 1);
    m.after_ack(at(4000, 5000, false), MSS);
    send(&mut m, 5000, 1);
    m.on_ack(Importance::Echo, 5000, &[], 4000);
    assert_eq!(m.after_ack(at(5000, 6000, false), MSS), forced(5000, 1));
    // The byte is protected now; what is left of the segment is not.
    m.on_ack(Importance::ForcedEcho, 5001, &[], 5000);
    assert_eq!(
        m.after_ack(at(5001, 6000, false), MSS),
        forced(5001, 999),
        "its round is over and it is not acknowledged: lost"
    );
    // Nothing exposed, all outstanding bytes protected: the first byte once more.
    m.on_ack(Importance::ForcedEcho, 5001, &[], 5001);
    assert_eq!(m.after_ack(at(5001, 6000, false), MSS), forced(5001, 1));
    assert_eq!(m.masked, 1, "the segment before may have repaired a loss; this byte has not");
    // All acknowledged: stays armed, so that the first packet after silence is important.
    m.on_ack(Importance::ForcedEcho, 6000, &[], 5001);
    assert_eq!(m.after_ack(at(6000, 6000, false), MSS), None);
    assert_eq!(m.on_packet(6000, MSS, false), Importance::Important);
}

/// A refusal at the sending host is as if nothing had been forced: the next event forces the same
/// bytes.
#[test]
fn refused_bytes_are_forced_again() {
    for lost_rounds in [LostRounds::All, LostRounds::Last] {
        let mut m = WindowMarker::new(&TltParams { lost_rounds, ..TltParams::default() });
        send(&mut m, 0, 4);
        m.on_ack(Importance::Echo, 0, &[(3000, 4000)], 0);
        let sent = m.sent;
        let forced =
            m.after_ack(at(0, 4000, false), MSS).expect("nothing else keeps the clock running");
        for _ in 0..3 {
            m.on_refusal(&forced);
            assert_eq!((m.masked, m.sent), (0, sent));
            assert_eq!(m.after_ack(at(0, 4000, false), MSS), Some(forced));
        }
        assert_eq!((m.masked, m.sent[2].bytes), (1, 1000));
        // In a recovery a segment's place is taken, and with nothing left a byte is forced.
        m.on_ack(Importance::ForcedEcho, 1000, &[], 0);
        let instead = m.instead(4000, MSS).expect("more is lost");
        m.on_refusal(&instead);
        assert_eq!((instead.seq, m.sent[1], m.instead(4000, MSS)), (1000, sent[1], Some(instead)));
        m.on_ack(Importance::Echo, 3000, &[], 1000);
        let byte = m
            .after_ack(at(3000, 4000, false), MSS)
            .expect("all is protected, and the clock would stop");
        m.on_refusal(&byte);
        assert_eq!((byte.len, m.after_ack(at(3000, 4000, false), MSS)), (1, Some(byte)));
    }
}

#[test]
fn ablations_force_a_byte_or_a_segment_always() {
    for (force, len) in [(Force::Byte, 1), (Force::Segment, 1000)] {
        let mut m = WindowMarker::new(&TltParams { force, ..TltParams::default() });
        send(&mut m, 0, 4);
        m.on_ack(Importance::Echo, 0, &[(3000, 4000)], 0);
        assert_eq!(m.after_ack(at(0, 4000, false), MSS).map(|it| it.len), Some(len));
        assert_eq!(m.masked, u32::from(len > 1), "a byte repairs no segment");
    }
}

/// Oracle: an echo of a forced packet reaches the congestion control unless it is older than what
/// is acknowledged.
#[test]
fn stale_echoes_are_kept_from_the_transport() {
    let mut m = marker();
    send(&mut m, 0, 4);
    let sees = |m: &mut WindowMarker, importance, ack| m.on_ack(importance, ack, &[], 2000);
    assert!(!sees(&mut m, Importance::ForcedEcho, 1999));
    assert!(m.after_ack(at(2000, 4000, false), MSS).is_some(), "and still keeps the clock running");
    assert!(
        sees(&mut m, Importance::ForcedEcho, 2000)
            && sees(&mut m, Importance::ForcedEcho, 2001)
            && sees(&mut m, Importance::Echo, 1000)
    );
    let mut released =
        WindowMarker::new(&TltParams { force_after_stale_echo: false, ..TltParams::default() });
    send(&mut released, 0, 4);
    assert!(!sees(&mut released, Importance::ForcedEcho, 1999));
    assert_eq!(
        released.after_ack(at(2000, 4000, false), MSS),
        None,
        "the released simulator waits for another"
    );
    released.on_ack(Importance::Control, 2000, &[], 2000);
    assert!(released.after_ack(at(2000, 4000, false), MSS).is_some());
}

#[test]
fn a_recovery_sends_what_is_known_lost_before_new_data() {
    let mut m = marker();
    send(&mut m, 0, 4);
    assert_eq!(m.instead(4000, MSS), None, "not armed");
    m.on_ack(Importance::Echo, 0, &[(3000, 4000)], 0);
    assert_eq!(
        m.instead(4000, MSS),
        Some(Forced { seq: 0, len: 1000, importance: Importance::Important })
    );
    assert_eq!(
        m.on_packet(4000, MSS, false),
        Importance::Unimportant,
        "that was the important one"
    );
    m.on_ack(Importance::Echo, 1000, &[(3000, 4000)], 0);
    assert_eq!(m.instead(1000, MSS), None, "the hole itself is due, and will be important");
}

#[test]
fn a_timeout_arms_unless_told_otherwise() {
    for (arm_on_timeout, expected) in
        [(true, Importance::Important), (false, Importance::Unimportant)]
    {
        let mut m = WindowMarker::new(&TltParams { arm_on_timeout, ..TltParams::default() });
        send(&mut m, 0, 4);
        m.on_timeout();
        assert_eq!(m.on_packet(0, MSS, false), expected);
    }
}

#[test]
fn a_busy_nic_is_no_reason_to_force() {
    let mut m = marker();
    send(&mut m, 0, 4);
    m.on_ack(Importance::Echo, 2000, &[], 0);
    assert_eq!(m.after_ack(at(2000, 4000, true), MSS), None);
    assert_eq!(m.on_packet(4000, MSS, false), Importance::Important);
}

/// Oracle: one echo each for important and forced packets; none for a handshake, or for what is not
/// important.
#[test]
fn important_packets_are_echoed() {
    let echoes = Importance::ALL.map(Importance::echo);
    assert_eq!(
        echoes.map(Importance::name),
        ["control", "control", "echo", "control", "forced-echo", "control"]
    );
}

#[test]
fn rates_mark_tails_rewinds_and_every_nth() {
    use Importance::{Important as I, Unimportant as U};
    let mut m = RateMarker::new(&TltParams { every: Some(3), ..TltParams::default() });
    let sent: Vec<Importance> = (0..6).map(|_| m.on_packet(MSS, false)).collect();
    assert_eq!(sent, [U, U, I, U, U, I]);
    m.on_rewind();
    assert_eq!(
        [m.on_packet(MSS, false), m.on_packet(MSS, false), m.on_packet(MSS, true)],
        [I, U, I]
    );
    assert_eq!(m.sent.map(|sent| sent.packets), [5, 4]);
    let mut never = RateMarker::new(&TltParams { every: None, ..TltParams::default() });
    assert!((0..1000).all(|_| never.on_packet(MSS, false) == U));
}

/// A flow over a FIFO path that loses unimportant packets where `lost` says so, under a transport
/// that never sends anything again by itself. Returns how many round trips it took, and the machine
/// at its end; or `None` if everything came to a stop: what would be a timeout.
fn run(
    params: TltParams,
    bytes: u64,
    window: u64,
    mut lost: impl FnMut() -> bool,
) -> Option<(u64, WindowMarker)> {
    let mut m = WindowMarker::new(&params);
    let (mut una, mut nxt, mut held) = (0u64, 0u64, Ranges::default());
    let mut data: VecDeque<(u64, u32, Importance)> = VecDeque::new();
    let mut acks: VecDeque<(Importance, u64)> = VecDeque::from([(Importance::Control, 0)]);
    let in_flight = |data: &VecDeque<(u64, u32, Importance)>,
                     acks: &VecDeque<(Importance, u64)>| {
        data.iter().filter(|it| it.2 != Importance::Unimportant).count()
            + acks.iter().filter(|it| it.0 != Importance::Control).count()
    };
    for trip in 0u64.. {
        for (importance, ack) in std::mem::take(&mut acks) {
            let sacked: Vec<_> = held.iter().filter(|r| r.0 > ack).collect();
            let seen = m.on_ack(importance, ack, &sacked, una);
            if seen {
                una = una.max(ack);
            }
            while nxt < bytes && nxt - una < window {
                let len = (bytes - nxt).min(MSS as u64) as u32;
                nxt += len as u64;
                let last = nxt == bytes || nxt - una >= window;
                data.push_back((nxt - len as u64, len, m.on_packet(nxt - len as u64, len, last)));
            }
            if let Some(Forced { seq, len, importance }) = m.after_ack(at(una, nxt, false), MSS) {
                assert!(seq >= una && seq + len as u64 <= nxt && len > 0);
                data.push_back((seq, len, importance));
            }
        }
        if una == bytes {
            return Some((trip, m));
        }
        assert!(in_flight(&data, &acks) <= 1, "at most one clock");
        for (seq, len, importance) in std::mem::take(&mut data) {
            if importance == Importance::Unimportant && lost() {
                continue;
            }
            held.insert(seq, seq + len as u64);
            let ack = held.around(0).map_or(0, |r| r.1);
            acks.push_back((importance.echo(), ack));
        }
        if acks.is_empty() {
            return None;
        }
    }
    unreachable!()
}

#[test]
fn all_unimportant_packets_lost() {
    for bytes in [1, 999, 1000, 1001, 30_000, 300_000] {
        let trips = run(TltParams::default(), bytes, 10_000, || true).map(|(trips, _)| trips);
        assert!(
            trips.is_some_and(|trips| trips <= 2 * bytes.div_ceil(1000) + 3),
            "{bytes}: {trips:?}"
        );
    }
}

proptest! {
    /// Oracle: whatever of the unimportant packets is lost, the flow completes without a timeout.
    #[test]
    fn no_loss_of_unimportant_packets_stops_a_flow(
        bytes in 1u64..200_000,
        window in 1u64..40,
        pattern in prop::collection::vec(any::<bool>(), 1..50),
        first: bool,
        force in prop_oneof![Just(Force::Adaptive), Just(Force::Segment)],
    ) {
        let first = if first { First::First } else { First::Last };
        let mut pattern = pattern.into_iter().cycle();
        let end =
            run(TltParams { first, force, ..TltParams::default() }, bytes, window * 1000, || {
                pattern.next().unwrap()
            });
        prop_assert!(end.is_some());
    }

    /// Without losses nothing but single bytes is forced, one a round trip at most; in flows of two
    /// windows or more, for the first round has none before it that could tell.
    #[test]
    fn a_lossless_path_costs_single_bytes(window in 2u64..40, beyond in 0u64..100_000) {
        let bytes = 2 * window * 1000 + beyond;
        let (trips, m) = run(TltParams::default(), bytes, window * 1000, || false).unwrap();
        let [unimportant, important, forced] = m.sent;
        prop_assert_eq!(forced.bytes, forced.packets);
        prop_assert!(
            forced.packets <= trips && m.masked == 0,
            "{:?} in {} round trips",
            forced,
            trips
        );
        prop_assert_eq!(unimportant.bytes + important.bytes, bytes);
    }
}
