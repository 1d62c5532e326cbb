//! How much may leave: the windows of congestion and of the receiver.

use super::*;

#[test]
fn rfc6928_the_initial_window_leaves_as_one_burst_after_the_handshake() {
    let mut pipe = Pipe::new(config(|p| p.mss = Some(MSS as u32)));
    pipe.write(100);
    pipe.run(RTT);
    assert_eq!((pipe.syns.as_slice(), pipe.sent.len()), (&[Time::ZERO][..], 10));
    assert!(pipe.sent.iter().all(|s| s.at == RTT && !s.again));
    assert_eq!((pipe.sender.srtt(), pipe.sender.rto()), (RTT, Time::from_ms(10)));
}

#[test]
fn slow_start_doubles_each_round_trip() {
    for delayed_ack in [1, 2] {
        let mut pipe = Pipe::new(newreno(|p| p.delayed_ack = delayed_ack));
        pipe.write(10_000);
        pipe.run(RTT * 6);
        assert_eq!(pipe.by_round(6), [10, 20, 40, 80, 160, 320]);
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_each_round_trip() {
    let mut pipe = Pipe::losing(newreno(|_| ()), &[40]);
    pipe.write(10_000);
    pipe.run(RTT * 30);
    assert_eq!((pipe.sender.retransmitted, pipe.sender.timeouts), (1, 0));
    let rounds = pipe.by_round(30);
    assert!(rounds[10..].windows(2).all(|w| w[1] == w[0] + 1), "{rounds:?}");
}

#[test]
fn rfc5681_an_idle_connection_restarts_from_the_initial_window() {
    for (restart, expected) in [(true, 10), (false, 40)] {
        let mut pipe = Pipe::new(newreno(|p| p.restart_after_idle = restart));
        pipe.write(70);
        pipe.finish();
        assert!((40 * MSS..=80 * MSS).contains(&pipe.sender.cwnd()));
        pipe.run(pipe.now + Time::from_ms(11));
        let before = pipe.sent.len();
        pipe.write(40);
        assert_eq!(pipe.sent.len() - before, expected);
    }
}

#[test]
fn buffers_limit_what_is_in_flight() {
    let mut pipe =
        Pipe::new(newreno(|p| p.receive_buffer = Some(millpond_core::Bytes(16 * MSS + 500))));
    pipe.write(200);
    pipe.finish();
    assert_eq!(pipe.by_round(5), [10, 16, 16, 16, 16]);
    assert!(pipe.sender.cwnd() <= 34 * MSS, "a window that does not limit does not grow");
}

/// The same without validation: the window counts what was acknowledged, whether or not it is what
/// limits.
#[test]
fn without_validation_a_window_grows_beyond_the_receivers() {
    let mut pipe = Pipe::new(newreno(|p| {
        p.receive_buffer = Some(millpond_core::Bytes(16 * MSS + 500));
        p.window_validation = false;
    }));
    pipe.write(200);
    pipe.finish();
    assert_eq!(pipe.by_round(5), [10, 16, 16, 16, 16], "what is sent is the same");
    assert_eq!(pipe.sender.cwnd(), (10 + 200) * MSS);
}

#[test]
fn silly_window_avoidance_waits_for_room_for_a_segment_and_without_it_any_room_is_filled() {
    for avoid in [true, false] {
        let cfg = newreno(|p| {
            (p.initial_window, p.receive_buffer) = (20, Some(millpond_core::Bytes(10 * MSS + 300)));
            p.silly_window_avoidance = avoid;
        });
        let mut s = Sender::established(0, &cfg);
        s.write(Time::ZERO, 1000 * MSS);
        // Acknowledged so far, and what is sent then: room of 800 bytes is none, 1,600 bytes are
        // room for one.
        let expected: [(u64, &[u32]); 3] = match avoid {
            true => [(0, &[10_000]), (500, &[]), (1300, &[1000])],
            false => [(0, &[10_000, 300]), (500, &[500]), (1300, &[800])],
        };
        for (acked, expected) in expected {
            let ack = AckIn {
                ack: acked,
                ece: false,
                sack: None,
                stamp: Time::ZERO,
                hops: 1,
                mapping: None,
            };
            s.on_ack(Time::from_us(80), &ack, &cfg);
            let sent = std::iter::from_fn(|| s.poll_send(Time::from_us(80), 65_536, &cfg));
            assert_eq!(
                sent.map(|out| out.len).collect::<Vec<_>>(),
                expected,
                "{acked} acknowledged"
            );
        }
    }
}
