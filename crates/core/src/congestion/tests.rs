//! Properties of every registered law, and those of a law that says nothing of them.

use super::*;
use crate::registry::Choice;

const MSS: u32 = 1000;

fn kinds() -> impl Iterator<Item = TransportKind> {
    TransportKind::place()
        .mechanisms
        .iter()
        .filter_map(|mechanism| TransportKind::of_kind(mechanism.kind))
}

/// The `n`-th acknowledgement of a stream: a segment more, with a mark now and then.
fn ack(n: u64, flight: u64) -> Acked {
    let (una, delay) = (n * u64::from(MSS), Time::from_us(50 + n % 90));
    Acked {
        now: Time::from_us(10 * n),
        bytes: u64::from(MSS),
        ece: n.is_multiple_of(7),
        una,
        nxt: una + flight,
        delay,
        hops: 3,
    }
}

/// As Linux's `tcp_slow_start`: by all that one acknowledgement confirms, up to the threshold; the
/// rest is congestion avoidance's.
#[test]
fn slow_start_takes_all_that_is_acknowledged_up_to_its_threshold() {
    let mss = u64::from(MSS);
    for name in ["newreno", "dctcp"] {
        let kind = TransportKind::of_kind(name).unwrap();
        let terms = Terms::new(&kind, MSS);
        let (cwnd, ssthresh) = (10 * mss, 30 * mss);
        let grown = |limit: u64, acks: &[u64]| {
            let (mut control, mut window) = (Control::new(cwnd, &terms), Window { cwnd, ssthresh });
            for segments in acks {
                let (now, srtt) = (Time::from_us(1), Time::from_us(50));
                let growth = Growth {
                    now,
                    bytes: segments * mss,
                    srtt,
                    limit,
                    is_bounded: limit == u64::MAX,
                };
                control.grow(&mut window, &growth, &terms);
            }
            window.cwnd / mss
        };
        assert_eq!(grown(u64::MAX, &[10]), 20, "{name}");
        assert_eq!(grown(u64::MAX, &[44]), 30, "{name}: 24 segments are left");
        assert_eq!(grown(u64::MAX, &[44, 6]), 31, "{name}: a window of them is acknowledged");
        assert_eq!(grown(2 * mss, &[44]), 12, "{name}: RFC 3465's limit");
        assert_eq!(grown(25 * mss, &[44]), 35, "{name}: which the threshold does not bound");
    }
}

#[test]
fn whatever_happens_a_window_holds_a_segment_and_a_departure_is_no_earlier_than_the_last() {
    for kind in kinds() {
        let terms = Terms::new(&kind, MSS);
        let cwnd = terms.initial_window(10 * u64::from(MSS));
        let (mut control, mut window) =
            (Control::new(cwnd, &terms), Window { cwnd, ssthresh: u64::MAX });
        for n in 1..2000 {
            let acked = ack(n, window.cwnd);
            let (now, flight) = (acked.now, window.cwnd);
            let cause = match n % 500 {
                0 => Some(Cause::Timeout),
                250 => Some(Cause::Loss),
                _ => control.on_ack(acked, &terms).then_some(Cause::Mark),
            };
            match cause {
                Some(cause) => control.cut(&mut window, &Cut { now, cause, flight }, &terms),
                None => {
                    let growth = Growth {
                        now,
                        bytes: acked.bytes,
                        srtt: acked.delay,
                        limit: 2 * u64::from(MSS),
                        is_bounded: false,
                    };
                    control.grow(&mut window, &growth, &terms);
                }
            }
            window.cwnd = control.window(&terms).unwrap_or(window.cwnd);
            assert!(
                window.cwnd >= u64::from(MSS) && window.ssthresh >= 2 * u64::from(MSS),
                "{kind:?}: {window:?}"
            );
            assert!(control.next_departure(now, &terms) >= now, "{kind:?}");
            if n % 700 == 0 {
                control.narrow(&mut window, u64::from(MSS), &terms);
                assert_eq!(window.cwnd, u64::from(MSS));
                control.idle(Time::from_ms(1));
            }
        }
    }
}

#[test]
fn a_law_tells_the_same_quantities_in_every_state_and_paces_only_if_it_says_so() {
    for kind in kinds() {
        let (terms, names) = (Terms::new(&kind, MSS), kind.quantities());
        let mut control = Control::new(10 * u64::from(MSS), &terms);
        for n in 1..100 {
            control.on_ack(ack(n, 10_000), &terms);
            let metrics: Vec<Quantity> =
                control.metrics(&terms).into_iter().map(|(quantity, _)| quantity).collect();
            assert_eq!(metrics, names, "{kind:?}");
            let last = Time::from_us(n);
            let paces =
                control.window(&terms).is_some() || control.next_departure(last, &terms) > last;
            assert!(!paces || kind.demands().paces, "{kind:?}");
        }
    }
}

/// A law that has a rate alone, as a law of rates would.
#[derive(Clone, Copy, Debug)]
struct Steady;

impl Law for Steady {
    type Params = ();
    type Constants = Rate;
    fn constants(_: &()) -> Rate {
        Rate::from_gbps(10)
    }
    fn new(_: u64, _: &Shared<Rate>) -> Steady {
        Steady
    }
    fn rate(&self, shared: &Shared<Rate>) -> Option<Rate> {
        Some(shared.law)
    }
}

#[test]
fn a_law_of_rates_has_departures_a_packet_apart_and_no_window_of_its_own() {
    let shared = Shared { mss: MSS, ecn: false, law: Steady::constants(&()) };
    let mut law = Steady::new(0, &shared);
    assert_eq!(law.next_departure(Time::from_us(5), &shared), Time::from_ns(5_800));
    assert_eq!((law.window(&shared), law.on_ack(ack(7, 0), &shared)), (None, false));
    let marked = Shared { ecn: true, ..shared };
    assert!(law.on_ack(ack(7, 0), &marked), "an echo asks for a cut where ECN is declared");
}
