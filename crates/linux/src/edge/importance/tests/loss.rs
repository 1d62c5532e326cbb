//! Streams under loss (sheet §12.1): lost unimportant packets cost no timeout, and no loss at all
//! corrupts a stream.

use super::frames::{PLAIN, Style};
use super::kernel::MSS;
use super::network::{Fate, Network, Outcome, Seen, Setup};
use crate::dataplane::frame::Version;
use millpond_core::Time;
use proptest::prelude::*;

const LONG: Time = Time::from_s(30);

/// Runs with an adversary that decides on red packets, by their number.
fn red_loss(setup: &Setup, mut drops: impl FnMut(usize) -> bool) -> Outcome {
    let mut number = 0;
    let mut adversary = |seen: &Seen| {
        if !seen.red {
            return Fate::Arrive;
        }
        number += 1;
        if drops(number - 1) { Fate::Drop } else { Fate::Arrive }
    };
    Network::new(setup, &mut adversary).run(LONG)
}

fn without_shims(setup: &Setup) -> Setup {
    Setup { shims: [false; 2], ..setup.clone() }
}

#[test]
fn a_lossless_bulk_flow_is_as_fast_with_shims_and_forces_nothing() {
    for size in [1, 500, 10 * MSS, 300 * MSS + 7] {
        let setup = Setup::new(PLAIN, size);
        let with = red_loss(&setup, |_| false);
        let without = red_loss(&without_shims(&setup), |_| false);
        assert!(with.done && without.done, "{size}: {with:?} {without:?}");
        assert_eq!((with.timeouts, without.timeouts), (0, 0));
        let counters = with.counters[0].as_ref().unwrap();
        assert_eq!((with.time, counters.forced.packets), (without.time, 0), "{size}");
    }
}

#[test]
fn losing_every_unimportant_packet_costs_no_timeout() {
    for sack in [true, false] {
        for size in [1, MSS, 2 * MSS, 10 * MSS, 64 * MSS + 11, 400 * MSS] {
            let setup = Setup::new(Style { sack, ..PLAIN }, size);
            let with = red_loss(&setup, |_| true);
            assert!(with.done && with.timeouts == 0, "{size} {sack}: {with:?}");
            let without = red_loss(&without_shims(&setup), |_| true);
            assert!(!without.done && without.timeouts > 3, "{size}: {without:?}");
        }
    }
}

/// A host that answers each echo with new data never repairs the hole in time by itself (E6).
#[test]
fn known_losses_are_repaired_before_new_data_at_long_round_trips() {
    for (delay, size) in [(1, 300 * MSS), (3, 300 * MSS), (10, 100 * MSS)] {
        let mut setup = Setup::new(PLAIN, size);
        (setup.delay, setup.window, setup.cwnd) = (Time::from_ms(delay), 1 << 22, 20 * MSS);
        let outcome = red_loss(&setup, |_| true);
        assert!(outcome.done && outcome.timeouts == 0, "{delay} ms: {outcome:?}");
    }
}

#[test]
fn losing_the_tail_costs_a_timeout_only_without_shims() {
    let setup = Setup::new(PLAIN, 8 * MSS);
    for first in 0..8 {
        let tail = |number: usize| (first..8).contains(&number);
        let (with, without) = (red_loss(&setup, tail), red_loss(&without_shims(&setup), tail));
        assert!(with.done && with.timeouts == 0, "{first}: {with:?}");
        assert!(without.done, "{first}: {without:?}");
        assert!(first < 5 && first > 0 || without.timeouts > 0, "{first}: {without:?}");
    }
}

/// How many cases: `CASES`, or 300.
fn cases() -> u32 {
    std::env::var("CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

fn styles() -> impl Strategy<Value = Style> {
    let scale = prop::option::of(0u8..=10);
    let isn = prop_oneof![Just(u32::MAX - 3000), any::<u32>()];
    (any::<bool>(), any::<bool>(), any::<bool>(), scale, 0u8..3, isn, any::<u32>()).prop_map(
        |(six, stamps, sack, scale, ecn, ours, theirs)| Style {
            version: if six { Version::V6 } else { Version::V4 },
            stamps,
            sack,
            scale,
            ecn,
            isn: [ours, theirs],
        },
    )
}

fn setups() -> impl Strategy<Value = Setup> {
    let window = prop_oneof![Just(4 * MSS), Just(60_000u64), Just(1 << 20)];
    let writes = prop::collection::vec((0u64..3000, 1u64..40_000), 0..5);
    (styles(), 1u64..150_000, 1u64..40, window, 1u64..100, writes).prop_map(
        |(style, size, cwnd, window, kernel, writes)| {
            let most = 65_535 << style.scale.unwrap_or(0);
            let mut setup = Setup::new(style, size);
            (setup.cwnd, setup.window) = (cwnd * MSS, window.min(most));
            // The host advertises only windows that the scale can express.
            setup.window = setup.window >> style.scale.unwrap_or(0) << style.scale.unwrap_or(0);
            setup.kernel = Time::from_us(kernel);
            let mut up_to = 0;
            for (at, bytes) in &writes {
                up_to += bytes;
                setup.writes.push((Time::from_us(*at), up_to));
            }
            setup.writes.sort();
            if !setup.writes.is_empty() {
                setup.writes.push((Time::from_us(4000), size));
            }
            setup
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Any subset of red packets is lost; green ones arrive in order.
    #[test]
    fn no_red_loss_costs_a_timeout(
        setup in setups(),
        drops in prop::collection::vec(any::<bool>(), 1..300),
        then in any::<bool>(),
    ) {
        let outcome = red_loss(&setup, |i| drops.get(i).copied().unwrap_or(then));
        prop_assert!(outcome.done && outcome.timeouts == 0, "{outcome:?}");
        let counters = outcome.counters[0].as_ref().unwrap();
        prop_assert!(counters.untracked.is_empty());
        prop_assert_eq!(counters.refused, 0);
    }

    /// The network may do anything to any packet for a while; a shim may restart, or be on one side
    /// only. The stream arrives, and nothing acknowledges what has not.
    #[test]
    fn no_loss_or_reordering_corrupts_a_stream(
        setup in setups(),
        fates in prop::collection::vec(0u8..8, 1..200),
        shims in any::<[bool; 2]>(),
        restart in prop::option::of((0u64..2000, 0usize..2)),
    ) {
        let restart = restart.map(|(at, host)| (Time::from_us(at), host));
        let setup = Setup { shims, restart, fifo: false, ..setup };
        let mut number = 0;
        let mut adversary = |_: &Seen| {
            number += 1;
            match fates.get(number) {
                Some(0 | 1) => Fate::Drop,
                Some(2) => Fate::Twice,
                Some(3) => Fate::Late(Time::from_us(35)),
                Some(4) => Fate::Late(Time::from_us(900)),
                _ => Fate::Arrive,
            }
        };
        let outcome = Network::new(&setup, &mut adversary).run(Time::from_s(3000));
        prop_assert!(outcome.done, "{outcome:?}");
    }
}
