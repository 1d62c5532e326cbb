//! Swift: windows below one segment, and pacing.

use super::*;

#[test]
fn swift_below_one_segment_sends_one_packet_each_round_trip_time_over_the_window() {
    // The last is far below what the timeout of 10 ms would wait for; nothing is lost, so it must
    // not expire.
    for (window, gap) in [(0.5, RTT * 2), (0.25, RTT * 4), (0.001, RTT * 1000)] {
        let mut pipe = Pipe::new(swift(window, window, |_| ()));
        pipe.write(20);
        pipe.finish();
        let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
        assert_eq!(at, (0..20).map(|n| gap * n).collect::<Vec<_>>());
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 0));
        // Data written later waits for its turn, too; and after a pause it does not.
        pipe.write(1);
        pipe.finish();
        assert_eq!(pipe.sent.last().unwrap().at, gap * 20);
        pipe.run(gap * 100);
        pipe.write(1);
        assert_eq!(pipe.sent.last().unwrap().at, gap * 100);
    }
}

#[test]
fn swift_paces_what_a_timeout_sends_again() {
    let mut pipe = Pipe::losing(swift(0.001, 0.01, |_| ()), &[3]);
    pipe.write(4);
    pipe.finish();
    // One each 8 ms; the fourth is lost. The timer halves the window, and the next turn is 16 ms
    // after the last sending.
    let at: Vec<Time> = pipe.sent.iter().map(|s| s.at).collect();
    assert_eq!(at, [0, 8, 16, 24, 40].map(Time::from_ms));
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (1, 1));
}

#[test]
fn swift_repairs_a_loss_without_the_timer_and_takes_half_of_the_window() {
    for sack in [false, true] {
        let mut pipe =
            Pipe::losing(swift(0.001, 20.0, |p| (p.sack, p.initial_window) = (sack, 20)), &[25]);
        pipe.write(400);
        let mut least = u64::MAX;
        while !pipe.sender.is_done() {
            assert!(pipe.step(Time::from_s(1)));
            least = least.min(pipe.sender.cwnd());
        }
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 1));
        assert_eq!(pipe.again(), [(2, 25)]);
        // Without SACK the first that is seen of it is after the ACK that ends recovery, which
        // covers a window: + 2.
        assert!((10 * MSS..13 * MSS).contains(&least), "{least}");
    }
}

#[test]
fn swift_begins_anew_after_lost_syns_and_an_idle_time() {
    let mut pipe = Pipe::new(swift(0.001, 43.0, |p| p.initial_window = 2));
    pipe.write(100);
    pipe.finish();
    assert!(pipe.sender.cwnd() > 10 * MSS);
    pipe.run(pipe.now + Time::from_ms(11));
    let before = pipe.sent.len();
    pipe.write(40);
    assert_eq!(pipe.sent.len() - before, 2, "the restart window");
    pipe.finish();
    let mut pipe = Pipe::new(swift(0.001, 43.0, |p| p.handshake = true));
    pipe.data_fate = Box::new(|n, k| if n == usize::MAX && k <= 2 { DROP } else { PASS });
    pipe.write(100);
    pipe.run(Time::from_s(3) + RTT);
    assert_eq!((pipe.syns.len(), pipe.sent.len()), (3, 1));
    pipe.finish();
}
