//! A Linux sender's behaviour beyond the RFCs: it waits for larger segments, and its timers tick.

use super::*;
use millpond_scenario::transport::Deferral;

fn linux<R>(change: impl FnOnce(&mut TransportParams) -> R) -> Config {
    newreno(|p| {
        p.loss_detection = LossDetection::Rack;
        change(p)
    })
}

/// All that the sender sends at `us`, in segments.
fn sends(sender: &mut Sender, cfg: &Config, us: u64) -> u64 {
    let segments = std::iter::from_fn(|| sender.poll_send(Time::from_us(us), 65_536, cfg));
    segments.map(|segment| u64::from(segment.len) / MSS).sum()
}

/// An acknowledgement of `upto` segments at `us`.
fn acked(sender: &mut Sender, cfg: &Config, us: u64, upto: u64) {
    let stamp = Time::from_us(us - 80);
    let ack = AckIn { ack: upto * MSS, ece: false, sack: None, stamp, hops: 1, mapping: None };
    sender.on_ack(Time::from_us(us), &ack, cfg);
}

/// A sender that has sent ten segments at time 0 and has more to send.
fn ten(cfg: &Config) -> Sender {
    let mut sender = Sender::established(0, cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    assert_eq!(sends(&mut sender, cfg, 0), 10);
    sender
}

#[test]
fn a_sender_waits_until_a_third_of_its_window_is_free() {
    // The window is 11 segments after one acknowledgement, 12 after two.
    for (deferral, bursts) in [(Deferral::Off, [2, 2]), (Deferral::Linux, [0, 4])] {
        let cfg = linux(|p| p.deferral = deferral);
        let mut sender = ten(&cfg);
        acked(&mut sender, &cfg, 80, 1);
        assert_eq!(sends(&mut sender, &cfg, 80), bursts[0]);
        assert!(!sender.would_send(&cfg));
        acked(&mut sender, &cfg, 81, 2);
        assert_eq!(sends(&mut sender, &cfg, 81), bursts[1]);
    }
}

#[test]
fn a_sender_does_not_wait_after_a_pause_or_for_a_distant_acknowledgement() {
    let cfg = linux(|p| p.deferral = Deferral::Linux);
    let mut sender = ten(&cfg);
    acked(&mut sender, &cfg, 1_081, 1);
    assert_eq!(sends(&mut sender, &cfg, 1_081), 2, "it has sent nothing for a millisecond");
    // All that is in flight left just now.
    let mut sender = ten(&cfg);
    acked(&mut sender, &cfg, 80, 9);
    assert_eq!(sends(&mut sender, &cfg, 80), 18, "nine acknowledged, and nine of growth");
    acked(&mut sender, &cfg, 85, 10);
    assert_eq!(sends(&mut sender, &cfg, 85), 2);
}

#[test]
fn a_probe_waits_two_milliseconds_more_and_leaves_at_a_tick() {
    let jiffy = Some(Time::from_ms(1));
    let mut pipe = Pipe::losing(linux(|p| (p.tlp, p.jiffy) = (true, jiffy)), &[2, 3, 4]);
    pipe.write(5);
    let done = pipe.finish();
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 3));
    // 2.16 ms from the acknowledgement at 80 us are three ticks and the rest of one.
    assert_eq!(done, Time::from_ms(4) + RTT + RTT);
}

#[test]
fn a_probe_of_a_lone_packet_waits_for_the_shortest_timeout() {
    let rto = Time::from_ms(10);
    for (jiffy, wait) in [(None, RTT * 2), (Some(Time::from_ms(1)), rto)] {
        let mut pipe = Pipe::losing(linux(|p| (p.tlp, p.jiffy) = (true, jiffy)), &[10]);
        pipe.write(10);
        let start = pipe.finish();
        pipe.write(1);
        assert_eq!(pipe.finish() - start, wait + RTT);
        assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 1));
    }
}
