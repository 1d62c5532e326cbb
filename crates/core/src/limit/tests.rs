//! The published decision table, the oracles of the slides, and what must hold for any traffic.

use super::*;
use crate::random::Stream;
use crate::units::{Bytes, Rate};
use proptest::prelude::*;

fn gigabit() -> LimitParams {
    LimitParams { length: Length::Ip, ..LimitParams::default() }
}

const TCP: Ask =
    Ask { bytes: 1500, charged: 1500, in_flight: 9, rtt: 50, tcp: 1, ecn: 0, share: 0 };
const ECT: Ask = Ask { ecn: 2, ..TCP };
const UDP: Ask = Ask { tcp: 0, ..TCP };
const SMALL_TCP: Ask = Ask { bytes: 60, charged: 60, ..TCP };

/// Slides and published program: thresholds in packets of 1500 bytes at 1 Gb/s.
#[test]
fn constants_of_the_slides() {
    let s = gigabit().settings();
    assert_eq!((s.burst, s.mark, s.drop, s.drop_large), (150_000, 180_000, 900_000, 877_500));
    assert_eq!(s.rate, 1 << 21, "0.125 bytes a nanosecond");
    let timed = LimitParams { form: Form::Edt, ..gigabit() }.settings();
    assert_eq!(
        (timed.mark, timed.drop),
        (1_440_000, 7_200_000),
        "1.44 and 7.2 ms, as the slides say"
    );
    assert_eq!(timed.cost, 8 << 24);
    let published =
        LimitParams { mark: Some(Bytes(60_000)), drop: Some(Bytes(600_000)), ..gigabit() }
            .settings();
    assert_eq!((published.mark, published.drop, published.drop_large), (60_000, 600_000, 577_500));
    assert_eq!(published.drop_large - published.mark, 517_500, "the published marking region");
}

#[test]
fn low_rates_are_known_to_have_thresholds_of_ours() {
    let at = |mbps: u64| LimitParams { rate: Rate(mbps * 1_000_000), ..LimitParams::default() };
    assert!(at(599).has_own_thresholds() && !at(600).has_own_thresholds());
    let given = LimitParams { burst: Some(Bytes(1)), ..at(599) };
    assert!(!given.has_own_thresholds(), "mark and drop are the published ones from 360 Mbps on");
    assert!(LimitParams { rate: Rate(359_000_000), ..given }.has_own_thresholds());
}

#[test]
fn low_rates_have_smaller_thresholds() {
    let s = LimitParams { rate: Rate(5_000_000), ..gigabit() }.settings();
    assert_eq!((s.burst, s.mark, s.drop, s.bypass), (15_000, 15_000, 108_000, 108_000));
    // Over any second no more than 3 % beyond the limit, wherever the super-segments allow it.
    for mbps in [50u64, 100, 250, 500, 1000] {
        let s = LimitParams { rate: Rate(mbps * 1_000_000), ..gigabit() }.settings();
        assert!(
            s.burst + s.bypass <= (mbps * 1_000_000 / 8 * 3 / 100) as i64,
            "{mbps} Mbps: {s:?}"
        );
    }
}

/// Thresholds of arriving packets are times at all rates, which a wait of 10 ms fits into, and that
/// are no more than 3 % of a second; given ones stay.
#[test]
fn thresholds_of_arriving_packets_are_times() {
    let at = |mbps: u64| LimitParams { rate: Rate(mbps * 1_000_000), ..gigabit() };
    let s = at(10_000).arriving().settings();
    assert_eq!((s.burst, s.mark, s.drop, s.bypass), (1_250_000, 6_250_000, 25_000_000, 36_250_000));
    let s = at(5).arriving().settings();
    assert_eq!(
        (s.burst, s.mark, s.drop, s.bypass),
        (3_000, 3_125, 108_000, 108_000),
        "a super-segment fits"
    );
    let slow = LimitParams { rate: Rate(800_000), ..gigabit() }.arriving();
    let s = slow.settings();
    assert_eq!((s.burst, s.mark, s.drop), (3_000, 3_000, 50_000), "half a second");
    assert!(slow.excess() > 0.5 && at(1000).arriving().excess() <= 0.03);
    for mbps in [50u64, 100, 250, 500, 1000, 100_000] {
        let s = at(mbps).arriving().settings();
        assert!(
            s.burst + s.bypass <= (mbps * 1_000_000 / 8 * 3 / 100) as i64,
            "{mbps} Mbps: {s:?}"
        );
        assert!(s.bypass >= s.drop, "{mbps} Mbps: {s:?}");
    }
    let given = LimitParams { drop: Some(Bytes(200_000)), ..gigabit() }.arriving();
    assert_eq!(
        (given.mark, given.drop),
        (Some(Bytes(100_000)), Some(Bytes(200_000))),
        "told before it is dropped"
    );
    let given = LimitParams { mark: Some(Bytes(2_000_000)), ..gigabit() }.arriving();
    assert_eq!((given.mark, given.drop), (Some(Bytes(2_000_000)), Some(Bytes(4_000_000))));
}

fn verdict(behind: i64, ask: Ask, draw: u32) -> u32 {
    decide(&gigabit().settings(), behind, &ask, draw).0
}

#[test]
fn decision_table() {
    use Verdict as V;
    for ask in [TCP, ECT, SMALL_TCP] {
        assert_eq!(verdict(180_000, ask, 0), 0);
    }
    assert_eq!(verdict(180_001, ECT, u32::MAX), V::BEHIND | V::CE);
    assert_eq!(verdict(180_001, TCP, 0), V::BEHIND | V::CWR, "a draw of nothing");
    assert_eq!(verdict(180_001, TCP, u32::MAX), V::BEHIND, "hardly behind: hardly ever");
    assert_eq!(
        verdict(877_500, TCP, u32::MAX),
        V::BEHIND | V::CWR,
        "at the end of the region: always"
    );
    assert_eq!(verdict(877_501, TCP, 0), V::BEHIND | V::DROP | V::CWR);
    assert_eq!(
        verdict(877_501, ECT, 0),
        V::BEHIND | V::DROP,
        "an ECN packet's drop says nothing more"
    );
    assert_eq!(
        verdict(900_000, SMALL_TCP, 0),
        V::BEHIND | V::CWR,
        "the reserve is for small packets"
    );
    assert_eq!(verdict(900_001, SMALL_TCP, 0), V::BEHIND | V::DROP | V::CWR);
    assert_eq!(verdict(0, UDP, 0), 0);
    assert_eq!(verdict(1, UDP, 0), V::BEHIND | V::DROP);
    assert_eq!(verdict(1, Ask { bytes: 120, ..UDP }, 0), V::BEHIND);
    assert_eq!(verdict(180_001, Ask { ecn: 2, ..UDP }, 0), V::BEHIND | V::CE);
}

/// Where a qdisc is certain to hold what is early, `drop` is a horizon.
#[test]
fn packets_that_wait_are_dropped_beyond_the_horizon_alone() {
    use Verdict as V;
    let mut settings = gigabit().departing().settings();
    settings.flags |= flags::WAITS;
    assert_eq!((settings.form, settings.drop), (Form::Edt as u32, 20_000_000), "20 ms");
    let of = |behind, ask: Ask| decide(&settings, behind, &ask, 0).0;
    assert_eq!([of(1, UDP), of(settings.drop_large, UDP)], [0, 0]);
    assert_eq!(of(settings.drop_large + 1, UDP), V::BEHIND | V::DROP);
    assert_eq!(of(settings.mark + 1, ECT), V::BEHIND | V::CE);
    assert_eq!(of(settings.drop + 1, TCP), V::BEHIND | V::DROP | V::CWR);
    let alone = Ask { in_flight: 1, ..TCP };
    assert_eq!(
        of(4 * settings.drop - 1, alone),
        V::BEHIND | V::BYPASS,
        "it would wait for a timer"
    );
    assert!(Verdict(of(4 * settings.drop, alone)).has(V::DROP));
    let slow = LimitParams { rate: Rate(15_000_000), ..gigabit() }.departing();
    assert_eq!(slow.drop, Some(Bytes(266_240)), "more than a socket's buffer");
}

/// With departure times what is not far behind is only early, whatever its protocol.
#[test]
fn a_paced_datagram_waits_until_it_is_behind_the_mark() {
    use Verdict as V;
    let timed = |form| LimitParams { form, ..gigabit() }.settings();
    let edt = |behind, ask: Ask| decide(&timed(Form::Edt), behind, &ask, 0).0;
    assert_eq!([edt(1, UDP), edt(1_440_000, UDP)], [0, 0]);
    assert_eq!(edt(1_440_001, UDP), V::BEHIND | V::DROP);
    assert_eq!(edt(1_440_001, Ask { bytes: 120, ..UDP }), V::BEHIND);
    assert_eq!(edt(1_440_001, ECT), V::BEHIND | V::CE);
    assert_eq!(
        decide(&timed(Form::LockFree), 1, &UDP, 0).0,
        V::BEHIND | V::DROP,
        "nothing holds it back there"
    );
}

#[test]
fn a_flow_with_nothing_in_flight_is_let_through_up_to_a_bound() {
    use Verdict as V;
    let alone = Ask { in_flight: 1, ..TCP };
    assert_eq!(verdict(1_800_000, alone, 0), V::BEHIND | V::BYPASS | V::CWR);
    assert_eq!(verdict(1_800_001, alone, 0), V::BEHIND | V::DROP | V::CWR);
    assert_eq!(
        verdict(1_000_000, Ask { ecn: 2, ..alone }, 0),
        V::BEHIND | V::BYPASS | V::CWR | V::CE
    );
    let never = LimitParams { bypass: 0.0, ..gigabit() }.settings();
    assert_eq!(decide(&never, 1_000_000, &alone, 0).0, V::BEHIND | V::DROP | V::CWR);
}

#[test]
fn mark_only_never_drops_and_no_cwr_never_reduces() {
    let mark_only = LimitParams { mark_only: true, ..gigabit() }.settings();
    assert_eq!(decide(&mark_only, 1 << 30, &ECT, 0).0, Verdict::BEHIND | Verdict::CE);
    assert_eq!(decide(&mark_only, 1 << 30, &UDP, 0).0, Verdict::BEHIND);
    let silent = LimitParams { cwr: false, ..gigabit() }.settings();
    assert_eq!(decide(&silent, 500_000, &TCP, 0).0, Verdict::BEHIND);
}

/// A connection with a share is notified of a segment that is too large for it, and not of the
/// queue.
#[test]
fn a_share_bounds_segments() {
    use Verdict as V;
    let shared = |bytes: u32, ask: Ask| Ask { bytes, share: 20_000, ..ask };
    assert_eq!(verdict(0, shared(20_000, TCP), 0), 0);
    assert_eq!(
        verdict(0, shared(20_001, TCP), u32::MAX),
        V::CWR,
        "for sure, and it is no congestion"
    );
    assert_eq!(verdict(0, shared(20_001, ECT), u32::MAX), V::CE);
    assert_eq!(verdict(0, shared(20_001, UDP), 0), 0);
    let silent = LimitParams { cwr: false, ..gigabit() }.settings();
    assert_eq!(decide(&silent, 0, &shared(20_001, TCP), 0), Verdict::PASS);
    assert_eq!(verdict(877_500, shared(1500, TCP), 0), 0, "its pace follows the queue");
    assert_eq!(verdict(877_500, shared(20_001, TCP), u32::MAX), V::CWR);
    assert_eq!(
        [verdict(1_800_000, shared(1500, TCP), 0), verdict(1_800_000, shared(1500, ECT), 0)],
        [0, 0]
    );
    assert_eq!(verdict(1_800_001, shared(1500, TCP), 0), V::BEHIND | V::DROP | V::CWR);
    assert_eq!(verdict(1_800_001, shared(1500, ECT), 0), V::BEHIND | V::DROP);
}

/// It would wait for a timer, and its pace holds it: so it waits only when the queue cannot count
/// it.
#[test]
fn a_share_with_nothing_in_flight_passes_untold() {
    use Verdict as V;
    let alone = |ask: Ask| Ask { in_flight: 0, share: 20_000, ..ask };
    for ask in [TCP, ECT, SMALL_TCP] {
        assert_eq!(verdict(3_599_999, alone(ask), 0), V::BEHIND | V::BYPASS);
    }
    assert_eq!(verdict(3_600_000, alone(TCP), 0), V::BEHIND | V::DROP | V::CWR);
    let never = LimitParams { bypass: 0.0, ..gigabit() }.settings();
    assert_eq!(decide(&never, 900_001, &alone(TCP), 0).0, V::BEHIND | V::DROP | V::CWR);
}

/// CWR is as frequent as the linear law says: chi-square over ten equal parts of the region, 9
/// degrees of freedom, 0.1 %.
#[test]
fn reductions_follow_the_linear_law() {
    let s = gigabit().settings();
    let mut random = Stream::new(7, "cwr");
    let n = 20_000;
    let mut chi = 0.0;
    for part in 0..10 {
        let share = (part as f64 + 0.5) / 10.0;
        let behind = s.mark + ((s.drop_large - s.mark) as f64 * share) as i64;
        let told = (0..n)
            .filter(|_| decide(&s, behind, &TCP, random.bits() as u32).has(Verdict::CWR))
            .count();
        let (expected, other) = (share * n as f64, (1.0 - share) * n as f64);
        let gap = told as f64 - expected;
        chi += gap * gap / expected + gap * gap / other;
    }
    assert!(chi < 29.6, "chi-square {chi}"); // 10 independent parts: 29.6 at 0.1 %
}

#[test]
fn long_round_trips_are_told_less_often() {
    let s = LimitParams { reaction: Reaction::RttAware, ..gigabit() }.settings();
    let mut random = Stream::new(7, "rtt");
    let mut told = |ask: Ask, bit| {
        (0..20_000).filter(|_| decide(&s, 850_000, &ask, random.bits() as u32).has(bit)).count()
    };
    let near = told(ECT, Verdict::CE);
    let far = told(Ask { rtt: 400, ..ECT }, Verdict::CE);
    assert_eq!(near, 20_000);
    assert!((4_700..5_300).contains(&far), "{far}");
    assert!(told(Ask { rtt: 400, ..TCP }, Verdict::CWR) < told(TCP, Verdict::CWR) / 3);
}

/// Slides: sockets of one service may share some scopes and differ in others; each packet is
/// charged to all of its own.
#[test]
fn red_green_blue_orange() {
    let [red, green, blue, orange] = [0u16, 1, 2, 3];
    let rate = |mbps: u64| LimitParams { rate: Rate(mbps * 1_000_000), ..gigabit() }.settings();
    let mut scopes = Scopes::new([rate(10_000), rate(1_000), rate(5_000), rate(2_000)]);
    let (first, second) = ([red, green, blue], [red, green, orange]);
    scopes.decide(&first, 1, &TCP, 0);
    scopes.decide(&second, 1, &TCP, 0);
    let packets =
        |scopes: &Scopes| scopes.scopes.iter().map(|it| it.counts.packets).collect::<Vec<_>>();
    assert_eq!(packets(&scopes), [2, 2, 1, 1]);
    // Blue alone becomes tight: it speaks for the first socket, and not for the second, which it
    // does not know.
    scopes.scopes[blue as usize].state.credit = -400_000;
    let told = scopes.decide(&first, 1, &ECT, 0);
    assert_eq!((told.by, told.verdict.0), (Some(blue), Verdict::BEHIND | Verdict::CE));
    assert_eq!(scopes.decide(&second, 1, &ECT, 0).verdict, Verdict::PASS);
    // Two are behind: the one that is further behind *for its drop threshold* decides.
    let wide = LimitParams { drop: Some(Bytes(9_000_000)), ..gigabit() }.settings();
    let mut scopes = Scopes::new([wide, gigabit().settings()]);
    for (scope, credit) in scopes.scopes.iter_mut().zip([-1_000_000, -500_000]) {
        scope.state = State { last: 1, credit };
    }
    assert_eq!(scopes.decide(&[0, 1], 1, &ECT, 0).by, Some(1));
}

#[test]
fn a_drop_is_refunded_everywhere() {
    for form in [Form::Credit, Form::LockFree, Form::Edt] {
        let s = LimitParams { form, ..gigabit() }.settings();
        let mut scopes = Scopes::new([s, s]);
        let now = 1_000_000_000;
        while !scopes.decide(&[0, 1], now, &TCP, u32::MAX).verdict.has(Verdict::DROP) {}
        let states: Vec<State> = scopes.scopes.iter().map(|it| it.state).collect();
        assert!(scopes.decide(&[0, 1], now, &TCP, 0).verdict.has(Verdict::DROP));
        assert_eq!(states, scopes.scopes.iter().map(|it| it.state).collect::<Vec<_>>(), "{form:?}");
    }
}

#[test]
fn observing_changes_nothing_for_the_traffic() {
    let s = LimitParams { observe: true, ..gigabit() }.settings();
    let mut scopes = Scopes::new([s]);
    assert!((0..5_000).all(|_| scopes.decide(&[0], 1, &TCP, 0) == Outcome::default()));
    let counts = scopes.scopes[0].counts;
    assert!(counts.decided == 5_000 && counts.dropped > 4_000, "{counts:?}");
}

/// A limit that is tried out inside of one that holds: that one decides, counts and pays as if it
/// were alone.
#[test]
fn an_observing_scope_leaves_the_enforced_one_alone() {
    for form in [Form::Credit, Form::LockFree, Form::Edt] {
        let uplink = LimitParams { form, ..gigabit() };
        let batch =
            LimitParams { observe: true, rate: Rate(100_000_000), ..uplink.clone() }.settings();
        let uplink = uplink.settings();
        let (mut both, mut alone) = (Scopes::new([batch, uplink]), Scopes::new([uplink]));
        let mut random = Stream::new(7, "observe");
        let mut now = 1_000_000_000;
        for _ in 0..5_000 {
            now += 6_000; // twice the uplink's rate, and twenty times the other's
            let draw = random.bits() as u32;
            let (seen, expected) =
                (both.decide(&[0, 1], now, &TCP, draw), alone.decide(&[0], now, &TCP, draw));
            assert_eq!(
                (seen.verdict, seen.by, seen.send),
                (expected.verdict, Some(1), expected.send),
                "{form:?}"
            );
        }
        assert_eq!(
            (both.scopes[1].state, both.scopes[1].counts),
            (alone.scopes[0].state, alone.scopes[0].counts)
        );
        let [batch, uplink] = [both.scopes[0].counts, both.scopes[1].counts];
        assert!(
            uplink.dropped > 1_000 && batch.dropped > uplink.dropped && batch.decided == 5_000,
            "{batch:?}"
        );
        // A packet that both would drop is taken back from each once.
        while !both.decide(&[0, 1], now, &TCP, 0).verdict.has(Verdict::DROP) {}
        let states = |scopes: &Scopes| scopes.scopes.iter().map(|it| it.state).collect::<Vec<_>>();
        let before = states(&both);
        assert!(both.decide(&[0, 1], now, &TCP, 0).verdict.has(Verdict::DROP));
        assert_eq!(states(&both), before, "{form:?}");
    }
}

/// Whoever asks more often than bytes come, and is mostly refused, still gets what the rate
/// carries.
#[test]
fn dense_arrivals_get_the_whole_rate() {
    for form in [Form::Credit, Form::LockFree, Form::Edt] {
        let s = LimitParams { form, rate: Rate(1_000_000), ..gigabit() }.settings();
        let mut scopes = Scopes::new([s]);
        let ask = Ask { bytes: 1_000, charged: 1_000, ..TCP };
        let mut passed = 0u64;
        // A packet every 5 us, in which 0.6 bytes come; the last half second counts.
        for i in 1..=120_000u64 {
            let dropped = scopes.decide(&[0], i * 5_000, &ask, u32::MAX).verdict.has(Verdict::DROP);
            passed += if dropped || i <= 20_000 { 0 } else { 1_000 };
        }
        assert!((61_000..=64_000).contains(&passed), "{form:?}: {passed} of 62,500 bytes");
    }
}

#[test]
fn wire_length_of_a_super_segment() {
    // 65,212 IP bytes in 45 packets with 52 bytes of IPv4, TCP and timestamps: 4.5 % more on the
    // wire.
    assert_eq!(wire_bytes(65_212, 45, 52, 14), 65_212 + 14 + 44 * 66);
    assert_eq!(wire_bytes(1_500, 0, 52, 14), 1_514);
    assert_eq!(wire_bytes(u32::MAX, 9, 52, 14), u32::MAX);
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Credit), Just(Form::LockFree), Just(Form::Edt)]
}

proptest! {
    /// Whatever arrives, what passes in a time is what the rate carries in it, and what may be
    /// behind.
    #[test]
    fn the_limit_holds(
        form in forms(),
        mbps in 1u64..100_000,
        seed: u64,
        gaps in prop::collection::vec((0u64..200_000, 60u32..65_000, 0u32..3, 0u32..4), 50..400),
    ) {
        let s = LimitParams { form, rate: Rate(mbps * 1_000_000), ..gigabit() }.settings();
        let mut scopes = Scopes::new([s]);
        let mut random = Stream::new(seed, "draws");
        let (mut now, mut passed) = (1_000_000_000u64, 0u64);
        let start = now;
        for (gap, bytes, in_flight, ecn) in gaps {
            now += gap;
            let ask = Ask { bytes, charged: bytes, in_flight, rtt: 0, tcp: 1, ecn, share: 0 };
            if !scopes.decide(&[0], now, &ask, random.bits() as u32).verdict.has(Verdict::DROP) {
                passed += bytes as u64;
            }
        }
        let bytes = |amount: i64| {
            if form == Form::Credit {
                amount as u64
            } else {
                (amount as u64).saturating_mul(mbps) / 8_000
            }
        };
        // A bypass may begin below its bound; one more super-segment then passes. Truncation: a
        // byte a packet.
        let allowed =
            (now - start) * mbps / 8_000 + bytes(s.burst) + bytes(s.bypass) + 65_000 + 2_000;
        prop_assert!(passed <= allowed, "{passed} of {allowed}");
    }

    /// Clocks that go backwards, long idle times and absurd lengths: nothing overflows, nothing is
    /// saved beyond the burst.
    #[test]
    fn nothing_overflows(
        form in forms(),
        bps in 8_000u64..1_000_000_000_000,
        steps in prop::collection::vec((any::<u64>(), any::<u32>(), any::<bool>()), 1..60),
    ) {
        let s = LimitParams { form, rate: Rate(bps), ..gigabit() }.settings();
        let mut state = State::default();
        for (now, bytes, refunded) in steps {
            // 292 years of uptime, and 512 KB: the largest super-segment.
            let (now, bytes) = (now >> 1, bytes >> 13);
            let before = state;
            let charged = charge(&mut state, &s, now, bytes);
            prop_assert!(charged.cost >= 0);
            match form {
                Form::Credit => {
                    prop_assert!(state.credit <= s.burst && state.credit >= -FLOOR * s.drop);
                    prop_assert!(
                        before.last == 0 || now > before.last || state.credit <= before.credit
                    );
                }
                _ => prop_assert!(
                    state.last >= now.saturating_sub(s.burst as u64)
                        && state.last >= before.last.min(now)
                ),
            }
            if refunded {
                let after = state;
                refund(&mut state, &s, &charged);
                let taken = if form == Form::Credit {
                    state.credit - after.credit
                } else {
                    (after.last - state.last) as i64
                };
                prop_assert_eq!(taken, charged.cost);
            }
        }
    }
}

/// 48 hours idle, and a clock that goes back: the published program's product would overflow after
/// 39.
#[test]
fn idle_for_two_days() {
    let s = gigabit().settings();
    let mut state = State::default();
    charge(&mut state, &s, 1, 100_000);
    let two_days = 172_800_000_000_000;
    assert_eq!(charge(&mut state, &s, two_days, 1_500).behind, -148_500);
    assert_eq!(charge(&mut state, &s, two_days - 1, 1_500).behind, -147_000);
    assert_eq!(state.last, two_days);
}
