//! What every admission keeps.

use super::*;
use crate::registry::Choice;
use proptest::prelude::*;

/// Every kind, with one burst headroom for those that have one.
fn all(headroom: f64) -> Vec<(&'static str, Admission)> {
    let kinds = AdmissionParams::place().mechanisms.iter().map(|m| m.kind);
    let policy = |kind| {
        let mut params = AdmissionParams::of_kind(kind).expect("it is registered");
        for (at, key) in params.params().keys().iter().enumerate() {
            if key.field == "burst_headroom" {
                params.params_mut().set(at, &crate::params::Value::Float(headroom)).expect("a number");
            }
        }
        let mut it = Admission::new(&params);
        let capacity = Capacity { bytes: 300_000, packets: u32::MAX };
        it.install(&PortFacts { capacity, rate: Rate::from_gbps(10) }, &mut Stream::new(1, "t"));
        (kind, it)
    };
    kinds.map(policy).collect()
}

fn ranked(rank: u32) -> Packet {
    Packet { rank, size: 1500, ..Packet::default() }
}

proptest! {
    #[test]
    fn tests_change_nothing_rank_zero_passes_and_refusals_are_monotone(
        offers in prop::collection::vec((1u64..299_000, 0u32..100_000, 0u64..100_000), 1..120),
        (q, dq) in (1u64..299_000, 0u64..50_000), (r, dr) in (0u32..100_000, 0u32..100_000), headroom in 0.0..1.0f64,
    ) {
        for (kind, mut it) in all(headroom) {
            let mut now = Time::ZERO;
            for &(bytes, rank, gap) in &offers {
                now += Time::from_ns(gap);
                let view = QueueView { packets: (bytes / 1500) as u32 + 1, bytes };
                let first = it.test(now, &view, &ranked(rank));
                prop_assert_eq!(first, it.test(now, &view, &ranked(rank)), "{}", kind);
                it.commit(now, &view, &ranked(rank), first.is_none());
                if first.is_none() {
                    it.on_enqueue(now, &ranked(rank));
                }
            }
            let refuses = |bytes: u64, rank| {
                let view = QueueView { packets: (bytes / 1500) as u32 + 1, bytes: bytes.min(299_999) };
                it.test(now, &view, &ranked(rank)).is_some()
            };
            // RED knows no ranks, and WRED's lots fall on important packets, too.
            prop_assert!(kind == "red" || kind == "wred" || !refuses(q, 0), "{}", kind);
            prop_assert!(!refuses(q, r) || refuses(q + dq, r + dr), "{}", kind);
        }
    }
}
