//! Linux's pacing rate: when segments leave, and how much one holds.

use super::*;

fn paced(pacing: Pacing, window: u32) -> Config {
    newreno(|p| (p.pacing, p.initial_window) = (pacing, window))
}

/// A connection whose round trip of 10 ms is known, with more to send than its window.
fn opened(cfg: &Config) -> Sender {
    let mut sender = Sender::established(0, cfg);
    sender.on_rtt(Time::from_ms(10), cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    sender
}

/// Departures until the window is full, as (microseconds, packets).
fn departures(sender: &mut Sender, cfg: &Config) -> Vec<(u64, u64)> {
    let (mut now, mut sent) = (Time::ZERO, Vec::new());
    loop {
        while let Some(out) = sender.poll_send(now, 65_536, cfg) {
            sent.push((now.as_ps() / 1_000_000, u64::from(out.len) / MSS));
        }
        if sender.in_flight() == sender.cwnd() {
            return sent;
        }
        now = sender.deadline();
        sender.on_timer(now, cfg);
    }
}

/// Two windows of 100 packets a round trip of 10 ms are 20 packets a millisecond.
#[test]
fn a_window_in_slow_start_leaves_in_half_a_round_trip_in_segments_of_a_millisecond() {
    let cfg = paced(Pacing::Linux, 100);
    let sent = departures(&mut opened(&cfg), &cfg);
    // 1/1024 s gives 19.5 packets, which take 0.95 ms at this rate.
    assert_eq!(sent, [(0, 19), (950, 19), (1900, 19), (2850, 19), (3800, 19), (4750, 5)]);
    let cfg = paced(Pacing::Off, 100);
    assert_eq!(
        departures(&mut opened(&cfg), &cfg),
        [(0, 65), (0, 35)],
        "without it the window leaves at once"
    );
}

#[test]
fn a_slow_connection_hands_down_two_packets_at_a_time() {
    let cfg = paced(Pacing::Linux, 14);
    let mut sender = Sender::established(0, &cfg);
    sender.on_rtt(Time::from_ms(100), &cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    let sent = departures(&mut sender, &cfg);
    // Ten packets without a pace, then 28 packets in 100 ms.
    assert_eq!(sent, [(0, 2), (0, 2), (0, 2), (0, 2), (0, 2), (7142, 2), (14285, 2)]);
}

#[test]
fn a_segment_that_the_host_refuses_moves_no_departure() {
    let cfg = paced(Pacing::Linux, 100);
    let mut sender = opened(&cfg);
    let seen = sender.peek(Time::ZERO, 65_536, &cfg).unwrap();
    assert_eq!(u64::from(seen.len), 19 * MSS, "it is looked at as it would leave");
    sender.refused(Time::ZERO, false, &cfg);
    assert_eq!(sender.peek(Time::from_us(10), 65_536, &cfg), Some(seen));
    sender.accepted();
    assert_eq!(sender.poll_send(Time::from_us(10), 65_536, &cfg), Some(seen));
    assert_eq!(sender.poll_send(Time::from_us(10), 65_536, &cfg), None);
    assert_eq!(sender.deadline(), Time::from_us(960));
}

#[test]
fn all_data_arrives_at_the_pace_of_the_window_and_no_timer_expires() {
    // Growth whatever is in flight: all ten acknowledgements of the first window come at once.
    let mut pipe = Pipe::new(newreno(|p| {
        (p.pacing, p.initial_window, p.window_validation) = (Pacing::Linux, 10, false)
    }));
    pipe.offload = MSS as u32;
    pipe.write(200);
    pipe.finish();
    assert_eq!((pipe.sender.timeouts, pipe.sender.retransmitted), (0, 0));
    let second: Vec<Time> =
        pipe.sent.iter().map(|s| s.at).filter(|at| *at >= RTT && *at < RTT * 2).collect();
    let gaps: Vec<Time> = second.windows(2).map(|at| at[1] - at[0]).collect();
    // The first acknowledgement lets a packet out at the rate of 11 packets, the others make it
    // that of 20.
    assert!(gaps[1..].iter().all(|gap| *gap == Time::from_us(2)), "{gaps:?}");
    assert!(gaps.len() >= 19, "{gaps:?}");
}

#[test]
fn a_law_with_a_pace_of_its_own_keeps_it() {
    let cfg = config_of(TransportKind::Swift(SwiftParams::default()), |p| p.pacing = Pacing::Linux);
    assert!(!cfg.pacing);
}
