//! How the window comes down: at once, or over a round trip (RFC 9937).

use super::*;
use millpond_scenario::transport::Reduction;

fn first_mark(reduction: Reduction) -> Config {
    let kind = DctcpParams { dctcp_reduce: DctcpReduce::FirstMark, ..DctcpParams::default() };
    config_of(TransportKind::Dctcp(kind), |p| {
        (p.mss, p.handshake, p.reduction) = (Some(MSS as u32), false, reduction);
    })
}

/// Segments that leave after each of ten acknowledgements, of which the first has an echo.
fn leaving(reduction: Reduction) -> (Vec<u64>, Sender) {
    let cfg = first_mark(reduction);
    let mut sender = Sender::established(0, &cfg);
    sender.write(Time::ZERO, 1000 * MSS);
    assert_eq!(poll(&mut sender, &cfg), [(0, 10, false)]);
    let after = |n| {
        ack(&mut sender, &cfg, n, n == 1, &[]);
        poll(&mut sender, &cfg).iter().map(|(_, segments, _)| segments).sum()
    };
    ((1..=10).map(after).collect(), sender)
}

#[test]
fn rfc9937_a_mark_halves_what_leaves_over_a_round_trip() {
    let (at_once, _) = leaving(Reduction::AtOnce);
    assert_eq!(at_once[..5], [0; 5], "nothing until half of it has arrived");
    let (spread, sender) = leaving(Reduction::Prr);
    // Nine were outstanding, and five may be: with nine arrived, four have left in their place.
    assert_eq!(spread[..9].iter().sum::<u64>(), 4, "{spread:?}");
    assert!(spread.windows(3).all(|three| three.iter().sum::<u64>() >= 1), "{spread:?}");
    assert_eq!(sender.cwnd() / MSS, 5, "at its end the window is the threshold");
}

#[test]
fn rfc9937_a_loss_is_repaired_and_recovery_ends_at_the_threshold() {
    for detection in [LossDetection::Dupack, LossDetection::Rack] {
        let cfg = newreno(|p| {
            (p.reduction, p.loss_detection) = (Reduction::Prr, detection);
            p.initial_window = 20;
        });
        let mut pipe = Pipe::losing(cfg, &[3]);
        pipe.write(60);
        pipe.run(RTT + RTT / 2);
        // The segments that the twenty acknowledgements let out while the window came down to ten.
        let sent = pipe.by_round(2)[1];
        assert!((9..=14).contains(&sent), "{detection:?}: {sent}");
        pipe.run(RTT + RTT);
        // Half of what limited transmit had made of the twenty.
        let (cwnd, ssthresh) = (pipe.sender.cwnd() / MSS, pipe.sender.ssthresh() / MSS);
        assert!((10..=11).contains(&ssthresh), "{detection:?}: {ssthresh}");
        assert!((ssthresh..=ssthresh + 1).contains(&cwnd), "{detection:?}: {cwnd}");
        pipe.finish();
        assert_eq!((pipe.sender.timeouts, pipe.again()), (0, vec![(1, 3)]), "{detection:?}");
    }
}
