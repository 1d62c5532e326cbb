//! Losses that RACK detects (RFC 8985 §6), and reordering that is none.

use super::*;

/// A quarter of the round trip: the reordering window.
const WINDOW: Time = Time::from_us(20);

fn rack<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    newreno(|p| {
        p.loss_detection = LossDetection::Rack;
        change(p)
    })
}

/// Drops the first `times` transmissions of segment `lost`.
fn dropping(cfg: Config, lost: u64, times: u32) -> Pipe {
    let mut seen = 0;
    let data_fate: Script = Box::new(move |_, seq| {
        seen += u32::from(seq == lost * MSS);
        if seq == lost * MSS && seen <= times { DROP } else { PASS }
    });
    Pipe { data_fate, ..Pipe::new(cfg) }
}

/// All that the sender sends at `us`, as (first segment, segments, again).
fn out(sender: &mut Sender, cfg: &Config, us: u64) -> Vec<(u64, u64, bool)> {
    std::iter::from_fn(|| sender.poll_send(Time::from_us(us), 65_536, cfg))
        .map(|o| (o.seq / MSS, u64::from(o.len) / MSS, o.retransmission))
        .collect()
}

/// A sender that has sent ten segments at time 0 and has more to send. `ack` comes a round trip
/// later.
fn ten(cfg: &Config) -> Sender {
    let mut sender = Sender::established(0, cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    assert_eq!(out(&mut sender, cfg, 0), [(0, 10, false)]);
    sender
}

/// An ACK of `upto` segments at `us` with one SACK block.
fn ack_at(sender: &mut Sender, cfg: &Config, us: u64, upto: u64, block: (u64, u64)) {
    let mut sack = Sack { count: 1, ..Sack::default() };
    sack.blocks[0] = (block.0 * MSS, block.1 * MSS);
    let stamp = Time::from_us(us - 80);
    let ack =
        AckIn { ack: upto * MSS, ece: false, sack: Some(&sack), stamp, hops: 1, mapping: None };
    sender.on_ack(Time::from_us(us), &ack, cfg);
}

#[test]
fn rfc8985_one_sack_above_a_lost_segment_repairs_it_after_the_reordering_window() {
    let mut pipe = Pipe::losing(rack(|_| ()), &[3]);
    pipe.write(5);
    pipe.run(RTT);
    assert_eq!(pipe.sender.deadline(), RTT + WINDOW, "the reordering timer");
    let done = pipe.finish();
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 1));
    assert_eq!(done, RTT + WINDOW + RTT);
    // RFC 6675 wants three segments above: the timer repairs it.
    let mut pipe = Pipe::losing(newreno(|p| p.limited_transmit = false), &[3]);
    pipe.write(5);
    pipe.finish();
    assert_eq!(pipe.sender.timeouts, 1);
}

#[test]
fn rfc8985_as_many_sacks_as_the_threshold_mean_loss_at_once() {
    let cfg = rack(|_| ());
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 0, false, &[(1, 3)]);
    assert_eq!(out(&mut s, &cfg, 80), [(10, 2, false)], "limited transmit");
    ack(&mut s, &cfg, 0, false, &[(1, 4)]);
    assert_eq!(out(&mut s, &cfg, 80), [(0, 1, true)]);
    assert_eq!((s.cwnd(), s.ssthresh(), s.timeouts), (5 * MSS, 5 * MSS, 0));
    // Without a threshold only the window of time decides.
    let cfg = rack(|p| p.dupack_threshold = None);
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 0, false, &[(1, 9)]);
    assert_eq!(out(&mut s, &cfg, 80), [(10, 8, false)]);
    s.on_timer(Time::from_us(99), &cfg);
    assert_eq!(out(&mut s, &cfg, 99), []);
    s.on_timer(RTT + WINDOW, &cfg);
    assert_eq!(out(&mut s, &cfg, 100), [(0, 1, true)]);
}

#[test]
fn rfc8985_reordering_below_the_window_is_not_loss() {
    let late = |cfg: Config, by: Time| {
        let mut pipe = Pipe::new(cfg);
        // The first of a flight of three, then one of each ten.
        pipe.data_fate =
            Box::new(move |n, _| if n % 10 == 0 { Fate { late: by, ..PASS } } else { PASS });
        pipe.write(3);
        pipe.finish();
        pipe.write(100);
        pipe.finish();
        assert_eq!(pipe.sender.timeouts, 0);
        pipe.sender.retransmitted
    };
    assert_eq!(late(rack(|_| ()), Time::from_us(15)), 0);
    assert!(late(newreno(|_| ()), Time::from_us(15)) > 0, "more than three arrive earlier");
    assert!(late(rack(|_| ()), Time::from_us(25)) > 0, "beyond the window");
}

#[test]
fn rfc8985_a_lost_retransmission_goes_out_again_in_the_same_recovery() {
    for times in 2..6 {
        let mut pipe = dropping(rack(|_| ()), 12, times);
        pipe.write(200);
        pipe.finish();
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, times));
        let cut = pipe.sender.ssthresh();
        let mut once = dropping(rack(|_| ()), 12, 1);
        once.write(200);
        once.finish();
        assert_eq!(cut, once.sender.ssthresh(), "one cut a window");
    }
    let mut pipe = dropping(newreno(|_| ()), 12, 2);
    pipe.write(200);
    pipe.finish();
    assert_eq!(pipe.sender.timeouts, 1, "RFC 6675");
}

#[test]
fn rfc8985_several_holes_are_repaired_in_one_round_trip_and_sent_once() {
    let mut pipe = Pipe::losing(rack(|_| ()), &[10, 13, 16]);
    pipe.write(60);
    pipe.finish();
    assert_eq!(pipe.again(), [(2, 10), (2, 13), (2, 16)]);
    assert_eq!((pipe.sender.timeouts, pipe.sender.ssthresh()), (0, 10 * MSS));
}

#[test]
fn rfc8985_scattered_losses_are_sent_again_once_each() {
    let mut pipe = Pipe::new(rack(|_| ()));
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

#[test]
fn rfc8985_a_probe_of_a_lost_tail_shows_the_losses_before_it() {
    let mut pipe = Pipe::losing(rack(|p| p.tlp = true), &[2, 3, 4]);
    pipe.write(5);
    let done = pipe.finish();
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 3));
    assert_eq!(done, RTT + RTT * 2 + RTT + RTT, "as with a threshold of one, without a rescue");
}

#[test]
fn rfc8985_a_timeout_sends_the_first_again_and_spares_what_is_younger_than_a_round_trip() {
    let cfg = rack(|p| (p.fixed_rto, p.dupack_threshold) = (Some(Time::from_us(90)), None));
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 2, false, &[(3, 5), (6, 8)]);
    assert_eq!(out(&mut s, &cfg, 80), [(10, 8, false)]);
    s.on_timer(RTT + WINDOW, &cfg);
    assert!(s.is_recovering());
    assert_eq!(out(&mut s, &cfg, 100), [(2, 1, true)]);
    s.on_timer(Time::from_us(190), &cfg);
    assert_eq!((s.timeouts, s.cwnd()), (1, MSS));
    // All is older than a round trip.
    assert_eq!(s.in_flight(), 0);
    assert_eq!(out(&mut s, &cfg, 190), [(2, 1, true)]);
    s.on_timer(Time::from_us(370), &cfg);
    assert_eq!(out(&mut s, &cfg, 370), [(2, 1, true)]);
    ack_at(&mut s, &cfg, 450, 5, (6, 8));
    assert_eq!(out(&mut s, &cfg, 450), [(5, 1, true), (8, 1, true)], "past what is SACKed");
}

/// The first segment leaves although the window of one segment is full of young ones.
#[test]
fn rfc8985_a_timeout_sends_the_first_again_whatever_the_window() {
    let cfg = rack(|p| p.fixed_rto = Some(Time::from_us(90)));
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 2, false, &[]);
    assert_eq!(out(&mut s, &cfg, 165), [(10, 4, false)]);
    s.on_timer(Time::from_us(170), &cfg);
    assert_eq!((s.timeouts, s.cwnd(), s.in_flight()), (1, MSS, 4 * MSS));
    assert_eq!(out(&mut s, &cfg, 170), [(2, 1, true)]);
}

#[test]
fn rfc8985_in_recovery_the_window_is_zero_until_reordering_is_seen() {
    let cfg = rack(|p| p.dupack_threshold = None);
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 0, false, &[(1, 3)]);
    s.on_timer(RTT + WINDOW, &cfg);
    assert_eq!(out(&mut s, &cfg, 100), [(0, 1, true)]);
    assert_eq!(s.in_flight(), 8 * MSS);
    ack_at(&mut s, &cfg, 110, 0, (5, 6));
    assert_eq!(s.in_flight(), 5 * MSS, "3 and 4 are lost at once");
}

#[test]
fn a_retransmission_of_the_first_segment_restarts_the_retransmission_timer() {
    let cfg = rack(|p| p.fixed_rto = Some(Time::from_us(150)));
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 0, false, &[(1, 3)]);
    s.on_timer(RTT + WINDOW, &cfg);
    assert_eq!(s.deadline(), Time::from_us(150));
    assert_eq!(out(&mut s, &cfg, 100), [(0, 1, true)]);
    assert_eq!(s.deadline(), Time::from_us(250));
}

#[test]
fn reordering_timer_keeps_the_retransmission_timer() {
    let cfg = rack(|_| ());
    let mut s = ten(&cfg);
    ack(&mut s, &cfg, 1, false, &[]);
    let rto = s.deadline();
    ack(&mut s, &cfg, 1, false, &[(2, 3)]);
    assert_eq!(s.deadline(), RTT + WINDOW);
    let mut expired = s.clone();
    expired.on_timer(RTT + WINDOW, &cfg);
    assert_eq!((expired.deadline(), expired.is_recovering()), (rto, true));
    ack(&mut s, &cfg, 3, false, &[]);
    assert_eq!(s.deadline(), rto, "the hole is filled");
    assert_eq!((s.retransmitted, s.is_recovering()), (0, false));
}

#[test]
fn without_sack_the_key_changes_nothing() {
    let run = |cfg: Config| {
        let mut pipe = Pipe::losing(cfg, &[10, 13, 16]);
        pipe.write(60);
        (pipe.finish(), pipe.again())
    };
    assert_eq!(run(rack(|p| p.sack = false)), run(newreno(|p| p.sack = false)));
}
