//! Repairs that duplicate ACKs and SACKs cause, and that reordering must not.

use super::*;

#[test]
fn rfc5681_the_third_duplicate_ack_retransmits_and_the_first_two_transmit() {
    for sack in [false, true] {
        let cfg = newreno(|p| p.sack = sack);
        let mut s = in_flight(&cfg, 10);
        let blocks = |n: u64| if sack { vec![(1, n + 1)] } else { vec![] };
        for n in 1..=2 {
            ack(&mut s, &cfg, 0, false, &blocks(n));
            assert_eq!(poll(&mut s, &cfg), [(9 + n, 1, false)], "limited transmit, RFC 3042");
        }
        ack(&mut s, &cfg, 0, false, &blocks(3));
        assert_eq!(poll(&mut s, &cfg), [(0, 1, true)]);
        assert_eq!(s.ssthresh(), 5 * MSS, "half of FlightSize without limited transmit's");
        assert_eq!(s.cwnd(), if sack { 5 * MSS } else { 8 * MSS });
        assert_eq!((s.retransmitted, s.timeouts), (1, 0));
    }
}

#[test]
fn without_limited_transmit_duplicate_acks_send_nothing() {
    for sack in [false, true] {
        let cfg = newreno(|p| (p.sack, p.limited_transmit) = (sack, false));
        let mut s = in_flight(&cfg, 10);
        for n in 1..=2 {
            ack(&mut s, &cfg, 0, false, if sack { &[(1, 2), (3, 4)][..n] } else { &[] });
            assert_eq!(poll(&mut s, &cfg), []);
        }
    }
}

#[test]
fn the_duplicate_ack_threshold_can_be_one_or_off() {
    for sack in [false, true] {
        let cfg = newreno(|p| (p.sack, p.dupack_threshold) = (sack, Some(1)));
        let mut s = in_flight(&cfg, 10);
        ack(&mut s, &cfg, 0, false, if sack { &[(1, 2)] } else { &[] });
        assert_eq!(poll(&mut s, &cfg)[0], (0, 1, true));
        let mut pipe = Pipe::losing(newreno(|p| (p.sack, p.dupack_threshold) = (sack, None)), &[3]);
        pipe.write(10);
        assert!(pipe.finish() > Time::from_ms(10));
        assert_eq!(
            (pipe.sender.timeouts, pipe.sent.iter().find(|s| s.again).unwrap().seq),
            (1, 3 * MSS)
        );
    }
}

#[test]
fn rfc6582_partial_acks_repair_one_hole_a_round_trip() {
    let mut pipe = Pipe::losing(newreno(|p| p.sack = false), &[10, 13, 16]);
    pipe.write(60);
    pipe.finish();
    assert_eq!(pipe.again(), [(2, 10), (3, 13), (4, 16)]);
    assert_eq!((pipe.sender.timeouts, pipe.sender.ssthresh()), (0, 10 * MSS));
}

#[test]
fn rfc6675_repairs_several_holes_in_one_round_trip() {
    let mut pipe = Pipe::losing(newreno(|_| ()), &[10, 13, 16]);
    pipe.write(60);
    pipe.finish();
    assert_eq!(pipe.again(), [(2, 10), (2, 13), (2, 16)]);
    assert_eq!((pipe.sender.timeouts, pipe.sender.ssthresh()), (0, 10 * MSS));
}

/// Two holes in one window. NewReno sends the second again as soon as the first is filled; Reno has
/// ended its recovery by then, and wants three duplicates more, which cut the window once more, or
/// the timer.
#[test]
fn reno_leaves_the_second_hole_of_a_window_to_new_duplicates_or_the_timer() {
    let repaired_first = |fast_recovery| {
        let cfg = newreno(|p| {
            (p.sack, p.limited_transmit, p.fast_recovery) = (false, false, fast_recovery)
        });
        let mut s = in_flight(&cfg, 10);
        for _ in 0..2 {
            ack(&mut s, &cfg, 0, false, &[]);
            assert_eq!(poll(&mut s, &cfg), []);
        }
        ack(&mut s, &cfg, 0, false, &[]);
        assert_eq!(poll(&mut s, &cfg), [(0, 1, true)]);
        assert_eq!((s.cwnd(), s.ssthresh()), (8 * MSS, 5 * MSS));
        ack(&mut s, &cfg, 3, false, &[]);
        (cfg, s)
    };
    let (cfg, mut s) = repaired_first(FastRecovery::NewReno);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)], "RFC 6582: a partial ACK shows the next hole");
    assert_eq!((s.retransmitted, s.timeouts, s.ssthresh()), (2, 0, 5 * MSS));

    let (cfg, mut s) = repaired_first(FastRecovery::Reno);
    assert_eq!(s.cwnd(), 5 * MSS, "RFC 5681 §3.2 (6): deflated to ssthresh");
    assert_eq!(poll(&mut s, &cfg), [], "seven segments are in flight");
    for _ in 0..2 {
        ack(&mut s, &cfg, 3, false, &[]);
        assert_eq!(poll(&mut s, &cfg), []);
    }
    ack(&mut s, &cfg, 3, false, &[]);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)]);
    assert_eq!((s.retransmitted, s.timeouts, s.ssthresh()), (2, 0, 5 * MSS / 2), "cut again");

    let (cfg, mut s) = repaired_first(FastRecovery::Reno);
    poll(&mut s, &cfg);
    s.on_timer(s.deadline(), &cfg);
    assert_eq!(poll(&mut s, &cfg), [(3, 1, true)]);
    assert_eq!((s.retransmitted, s.timeouts), (2, 1));
}

/// One loss a window is the same to both; with SACK, RFC 6675 repairs all losses whatever the key
/// says.
#[test]
fn reno_repairs_one_hole_as_newreno_does_and_sack_has_its_own_way() {
    for sack in [false, true] {
        let repairs = |fast_recovery| {
            let cfg = newreno(|p| (p.sack, p.fast_recovery) = (sack, fast_recovery));
            let mut pipe = Pipe::losing(cfg, if sack { &[10, 13, 16] } else { &[13] });
            pipe.write(60);
            pipe.finish();
            (pipe.again(), pipe.sender.timeouts, pipe.sender.ssthresh())
        };
        let expected = if sack { vec![(2, 10), (2, 13), (2, 16)] } else { vec![(2, 13)] };
        for (again, timeouts, _) in [repairs(FastRecovery::Reno), repairs(FastRecovery::NewReno)] {
            assert_eq!((again, timeouts), (expected.clone(), 0));
        }
        assert!(!sack || repairs(FastRecovery::Reno).2 == repairs(FastRecovery::NewReno).2);
    }
}

#[test]
fn scattered_losses_of_new_data_never_need_the_timer() {
    for sack in [false, true] {
        for kind in
            [TransportKind::NewReno(Default::default()), TransportKind::Cubic(Default::default())]
        {
            let mut pipe =
                Pipe::new(config_of(kind, |p| (p.mss, p.sack) = (Some(MSS as u32), sack)));
            let mut highest = 0;
            pipe.data_fate = Box::new(move |_, seq| {
                let new = seq > highest;
                highest = highest.max(seq);
                if new && (seq / MSS) % 97 == 50 && seq < 4900 * MSS { DROP } else { PASS }
            });
            pipe.write(5000);
            pipe.finish();
            assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 50));
        }
    }
}

#[test]
fn reordering_below_the_threshold_is_not_loss() {
    for sack in [false, true] {
        let mut pipe = Pipe::new(newreno(|p| p.sack = sack));
        // Every tenth packet is overtaken by nothing but those sent with it and after it in the
        // same burst.
        pipe.data_fate =
            Box::new(
                |n, _| if n % 10 == 7 { Fate { late: Time::from_ps(1), ..PASS } } else { PASS },
            );
        pipe.write(200);
        pipe.offload = MSS as u32;
        pipe.finish();
        assert_eq!((pipe.sender.timeouts, pipe.receiver.expected(None)), (0, 200 * MSS));
    }
}
