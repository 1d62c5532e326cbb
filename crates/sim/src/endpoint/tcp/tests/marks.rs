//! The effect of ECN marks on the window, and which packets carry what.

use super::*;

#[test]
fn an_echo_that_cuts_nothing_grows_the_window_only_where_it_is_told_to() {
    for growth in [false, true] {
        let kind = TransportKind::Dctcp(DctcpParams {
            dctcp_growth_on_echo: growth,
            ..DctcpParams::default()
        });
        let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
        let mut s = in_flight(&cfg, 10);
        // Ends the first observation; the second ends beyond the data sent so far.
        ack(&mut s, &cfg, 1, false, &[]);
        assert_eq!(s.cwnd(), 11 * MSS);
        ack(&mut s, &cfg, 2, true, &[]);
        assert_eq!(s.cwnd(), if growth { 12 * MSS } else { 11 * MSS });
        ack(&mut s, &cfg, 3, false, &[]);
        assert_eq!(
            s.cwnd(),
            if growth { 13 * MSS } else { 12 * MSS },
            "others grow it in any case"
        );
        // The echo is answered all the same, at the window's end.
        for n in 4..=11 {
            poll(&mut s, &cfg);
            ack(&mut s, &cfg, n, false, &[]);
        }
        assert!(alpha(&s, &cfg).unwrap() < 1.0 && s.ssthresh() < u64::MAX, "{:?}", alpha(&s, &cfg));
    }
}

#[test]
fn rfc8257_every_window_with_marks_is_cut_once_and_others_never() {
    let mut pipe = Pipe::new(dctcp(|_| ()));
    pipe.data_fate = Box::new(|n, _| if (70..250).contains(&n) { MARK } else { PASS });
    pipe.write(100_000);
    let (mut cuts, mut window) = (Vec::new(), pipe.sender.cwnd());
    while pipe.now < RTT * 60 {
        assert!(pipe.step(Time::MAX));
        if pipe.sender.cwnd() < window {
            cuts.push((
                pipe.now.as_ps() / RTT.as_ps(),
                window,
                pipe.sender.cwnd(),
                alpha(&pipe.sender, &pipe.cfg).unwrap(),
            ));
        }
        window = pipe.sender.cwnd();
    }
    assert!(cuts.len() >= 5, "{cuts:?}");
    for w in cuts.windows(2) {
        assert!(w[1].0 > w[0].0, "twice in a round trip: {w:?}");
    }
    for &(_, before, after, alpha) in &cuts {
        let expected = ((before as f64 * (1.0 - alpha / 2.0)) as u64).max(MSS);
        assert_eq!(after, expected);
    }
    assert_eq!(pipe.sender.timeouts, 0);
    assert!(
        alpha(&pipe.sender, &pipe.cfg).unwrap() < 1.0 && pipe.sender.cwnd() > 20 * MSS,
        "grows again once marks have ended"
    );
}

#[test]
fn dctcp_cuts_at_the_first_mark_if_told_so_and_says_cwr_once() {
    let kind = TransportKind::Dctcp(DctcpParams {
        dctcp_reduce: DctcpReduce::FirstMark,
        dctcp_alpha_initial: 0.5,
        ..DctcpParams::default()
    });
    let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
    let mut s = in_flight(&cfg, 10);
    ack(&mut s, &cfg, 1, false, &[]);
    poll(&mut s, &cfg);
    ack(&mut s, &cfg, 2, true, &[]);
    let alpha = 0.5 * 15.0 / 16.0; // the first ACK has ended the first observation
    assert_eq!(s.cwnd(), (11_000.0 * (1.0 - alpha / 2.0)) as u64);
    let cut = s.cwnd();
    for n in 3..=11 {
        ack(&mut s, &cfg, n, true, &[]);
        assert_eq!(s.cwnd(), cut, "once a window, and no growth on an echo");
    }
    let out: Vec<_> =
        std::iter::from_fn(|| s.poll_send(Time::from_us(80), MSS as u32, &cfg)).collect();
    assert!(out[0].cwr && out[1..].iter().all(|o| !o.cwr) && out.iter().all(|o| o.ecn == Ecn::Ect));
}

#[test]
fn loss_in_a_window_already_cut_for_marks_does_not_cut_again() {
    let cfg = dctcp(|p| p.initial_window = 20);
    let mut s = in_flight(&cfg, 20);
    ack(&mut s, &cfg, 1, true, &[]); // ends the first observation, alpha 1: half
    assert_eq!((s.cwnd(), s.ssthresh()), (10 * MSS, 10 * MSS));
    ack(&mut s, &cfg, 1, false, &[(2, 5)]);
    assert_eq!(poll(&mut s, &cfg), [(1, 1, true)]);
    assert_eq!((s.cwnd(), s.ssthresh()), (10 * MSS, 10 * MSS));
}

/// Ten segments are lost, and what the timer sends again meets marks, all but the first. By hand,
/// in segments:
///
/// | ACK | sent | window of data ends | alpha | window |
/// |---|---|---|---|---|
/// | timeout | 0 | | 1 | 1, threshold 3/4 of 10 |
/// | 1 | 1, 2 | | | 2, grown |
/// | 2, marked | | at 3 | 15/16 + 1/16 · 1/2 = 31/32 | 2 · (1 − 31/64) = 1.03125, cut |
/// | 3, marked | 3, 4 | | | 2.03125, grown: within the window of data |
/// | 4, marked | | at 5 | 31/32 · 15/16 + 1/16 = 497/512 | 2.03125 · (1 − 497/1024), cut |
#[test]
fn marks_cut_what_a_timeout_sends_again_only_where_they_are_told_to() {
    for after_loss in [false, true] {
        let kind = TransportKind::Dctcp(DctcpParams {
            dctcp_alpha_update: DctcpAlphaUpdate::Echo,
            dctcp_loss_reduction: 0.75,
            dctcp_growth_on_echo: true,
            dctcp_cut_after_loss: after_loss,
            ..DctcpParams::default()
        });
        let cfg = config_of(kind, |p| {
            (p.mss, p.handshake, p.sack, p.growth_limit) =
                (Some(MSS as u32), false, false, Some(1));
        });
        let mut s = in_flight(&cfg, 10);
        s.on_timer(s.deadline(), &cfg);
        assert_eq!((s.cwnd(), s.ssthresh(), poll(&mut s, &cfg)), (1000, 7500, vec![(0, 1, true)]));
        let mut window = |n, ece| {
            ack(&mut s, &cfg, n, ece, &[]);
            (s.cwnd(), poll(&mut s, &cfg).iter().map(|sent| sent.0).collect::<Vec<_>>())
        };
        assert_eq!(window(1, false), (2000, vec![1, 2]));
        // Otherwise the window of data is that of the timeout, and ends with what was sent before
        // it.
        assert_eq!(window(2, true), if after_loss { (1031, vec![]) } else { (2000, vec![3]) });
        assert_eq!(
            window(3, true),
            if after_loss { (2031, vec![3, 4]) } else { (3000, vec![4, 5]) }
        );
        assert_eq!(window(4, true), if after_loss { (1045, vec![]) } else { (4000, vec![6, 7]) });
        let expected = if after_loss { 497.0 / 512.0 } else { 31.0 / 32.0 };
        assert!((alpha(&s, &cfg).unwrap() - expected).abs() < 1e-12);
    }
}

#[test]
fn ecn_of_data_and_retransmissions_by_transport() {
    let ecn = |kind| {
        let cfg = config_of(kind, |_| ());
        (cfg.data_ecn, cfg.retransmission_ecn, cfg.echo)
    };
    assert_eq!(
        ecn(TransportKind::Dctcp(DctcpParams::default())),
        (Ecn::Ect, Ecn::Ect, Echo::Precise)
    );
    assert_eq!(
        ecn(TransportKind::NewReno(NewRenoParams::default())),
        (Ecn::NotEct, Ecn::NotEct, Echo::Off)
    );
    let marked = TransportKind::Cubic(CubicParams { cubic_ecn: true, ..CubicParams::default() });
    assert_eq!(ecn(marked), (Ecn::Ect, Ecn::NotEct, Echo::Latch));
    assert_eq!(
        ecn(TransportKind::Swift(SwiftParams::default())),
        (Ecn::NotEct, Ecn::NotEct, Echo::Off)
    );
}

#[test]
fn newreno_with_ecn_halves_once_a_window_and_the_latch_ends_with_cwr() {
    let kind = TransportKind::NewReno(NewRenoParams { newreno_ecn: true });
    let cfg = config_of(kind, |p| (p.mss, p.handshake) = (Some(MSS as u32), false));
    let mut pipe = Pipe::new(cfg);
    pipe.data_fate = Box::new(|n, _| if n == 30 { MARK } else { PASS });
    pipe.write(100_000);
    let (mut cuts, mut window) = (Vec::new(), pipe.sender.cwnd());
    while pipe.now < RTT * 12 {
        assert!(pipe.step(Time::MAX));
        if pipe.sender.cwnd() < window {
            cuts.push((window / MSS, pipe.sender.cwnd() / MSS));
        }
        window = pipe.sender.cwnd();
    }
    assert_eq!(cuts, [(40, 20)]);
    assert!(pipe.sender.cwnd() > 24 * MSS);
}
