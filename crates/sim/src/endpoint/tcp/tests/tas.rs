//! TAS: packets that leave one at a time, and a timeout of round trips.

use super::*;
use millpond_core::Rate;
use millpond_core::congestion::TasParams;

/// At a rate that stays as it is, since no connection here has fifty acknowledgements.
fn tas(mbps: u64, sack: bool) -> Config {
    let rate = Rate(mbps * 1_000_000);
    config_of(
        TransportKind::Tas(TasParams { tas_initial_rate: rate, ..TasParams::default() }),
        |p| {
            (p.mss, p.handshake, p.sack) = (Some(MSS as u32), false, sack);
            (p.rto_estimator, p.min_rto) = (RtoEstimator::Tas, Time::from_us(1));
        },
    )
}

/// 1000 bytes at 80 Mb/s take 100 us, whatever the round trip and however much could be sent.
#[test]
fn packets_leave_one_at_a_time_at_the_laws_rate() {
    let mut pipe = Pipe::new(tas(80, false));
    pipe.write(20);
    pipe.finish();
    let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
    assert_eq!(at, (0..20).map(|n| Time::from_us(100 * n)).collect::<Vec<_>>());
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 0));
    // After an idle time nothing is saved up; short packets wait for as long as they take.
    pipe.run(Time::from_ms(10));
    let before = pipe.sent.len();
    for _ in 0..3 {
        pipe.sender.write(pipe.now, 10);
        pipe.pump();
        assert!(!pipe.sender.would_send(&pipe.cfg));
        pipe.run(pipe.now + Time::from_us(1));
    }
    assert_eq!(pipe.sent.len() - before, 3, "10 bytes are a microsecond");
}

/// A loss halves the rate until the next look, 160 us later; the first packet that is late is the
/// third after the lost one's duplicates.
#[test]
fn what_is_sent_again_is_spaced_and_a_loss_halves_the_rate_until_the_next_look() {
    for sack in [false, true] {
        let mut pipe = Pipe::losing(tas(800, sack), &[10]);
        pipe.write(40);
        pipe.finish();
        let gaps: Vec<u64> =
            pipe.sent.windows(2).map(|s| (s[1].at - s[0].at).as_ps() / 1_000_000).collect();
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 1));
        assert!(gaps.iter().all(|gap| (10..=20).contains(gap)), "{gaps:?}");
        assert!(gaps.contains(&20), "{gaps:?}");
    }
}

/// The tail is lost twice: the first sample is 80 us, so each wait is 640 us, and none is longer.
#[test]
fn a_timeout_is_eight_round_trips_and_does_not_back_off() {
    let mut pipe = Pipe::losing(tas(800, false), &[1, 2]);
    pipe.write(2);
    pipe.finish();
    let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
    let answered = RTT;
    assert_eq!(at, [Time::ZERO, Time::from_us(10), answered + RTT * 8, answered + RTT * 16]);
    assert_eq!(pipe.sender.timeouts, 2);
}
