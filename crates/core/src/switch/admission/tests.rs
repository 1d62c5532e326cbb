//! The properties that every admission keeps.

use super::*;
use crate::packet::Packet;
use crate::params::{Form, Value};
use crate::registry::Choice;
use crate::switch::tests::seeing_at;
use crate::units::{Bytes, Time};
use proptest::prelude::*;

/// Every kind, with one burst headroom for those that have one.
fn all(headroom: f64) -> Vec<(&'static str, Admission)> {
    let kinds = AdmissionParams::place().mechanisms.iter().map(|m| m.kind);
    let policy = |kind| {
        let mut params = AdmissionParams::of_kind(kind).expect("it is registered");
        for (at, key) in params.params().keys().iter().enumerate() {
            if key.field == "burst_headroom" {
                params
                    .params_mut()
                    .set(at, &crate::params::Value::Float(headroom))
                    .expect("a number");
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

/// The values at a key's ends, as far as it takes them.
fn ends(key: &crate::params::Key) -> Vec<Value> {
    let floats = key.range.map_or(vec![0.0, 1.0], |(least, most)| vec![least, most.min(1e300)]);
    match key.form {
        Form::Bytes => [0, 1, Bytes::LARGEST.get()].map(|bytes| Value::Bytes(Bytes(bytes))).into(),
        Form::Int => [0, 1, u64::from(u32::MAX)].map(Value::Int).into(),
        Form::Float => floats.into_iter().map(Value::Float).collect(),
        _ => Vec::new(),
    }
}

/// A queue that has been full of unimportant packets and has then been empty for long takes packets
/// again, however its policy is set: one that did not would have locked its port up for good.
#[test]
fn an_empty_queue_takes_packets_again() {
    for mechanism in AdmissionParams::place().mechanisms {
        for (at, value) in mechanism
            .keys
            .iter()
            .enumerate()
            .flat_map(|(at, key)| ends(key).into_iter().map(move |v| (at, v)))
        {
            let mut params = AdmissionParams::of_kind(mechanism.kind).expect("it is registered");
            if params.params_mut().set(at, &value).is_err() {
                continue;
            }
            let mut it = Admission::new(&params);
            let capacity = Capacity { bytes: 300_000, packets: u32::MAX };
            it.install(
                &PortFacts { capacity, rate: Rate::from_gbps(10) },
                &mut Stream::new(1, "t"),
            );
            let mut offer = |now, bytes, rank| {
                let view = QueueView { packets: (bytes / 1500) as u32, bytes };
                seeing_at(now, view, &ranked(rank), |at| {
                    let joins = it.test(at).is_none();
                    it.commit(at, joins);
                    joins
                })
            };
            for i in 0..10_000 {
                offer(Time::from_us(i), 298_500, 7);
            }
            offer(Time::from_s(1), 0, 0);
            let taken = (2..1_000).filter(|&s| offer(Time::from_s(s), 0, 9)).count();
            assert!(taken > 0, "{} with {} = {value:?}", mechanism.kind, mechanism.keys[at].name());
        }
    }
}

proptest! {
    #[test]
    fn tests_change_nothing_rank_zero_passes_and_refusals_are_monotone(
        offers in prop::collection::vec((1u64..299_000, 0u32..100_000, 0u64..100_000), 1..120),
        (q, dq) in (1u64..299_000, 0u64..50_000),
        (r, dr) in (0u32..100_000, 0u32..100_000),
        headroom in 0.0..1.0f64,
    ) {
        for (kind, mut it) in all(headroom) {
            let mut now = Time::ZERO;
            for &(bytes, rank, gap) in &offers {
                now += Time::from_ns(gap);
                let view = QueueView { packets: (bytes / 1500) as u32 + 1, bytes };
                seeing_at(now, view, &ranked(rank), |at| {
                    let first = it.test(at);
                    prop_assert_eq!(first, it.test(at), "{}", kind);
                    it.commit(at, first.is_none());
                    if first.is_none() {
                        it.on_enqueue(at);
                    }
                    Ok(())
                })?;
            }
            let refuses = |bytes: u64, rank| {
                let view =
                    QueueView { packets: (bytes / 1500) as u32 + 1, bytes: bytes.min(299_999) };
                seeing_at(now, view, &ranked(rank), |at| it.test(at)).is_some()
            };
            // RED knows no ranks, and WRED's lots fall on important packets, too.
            prop_assert!(kind == "red" || kind == "wred" || !refuses(q, 0), "{}", kind);
            prop_assert!(!refuses(q, r) || refuses(q + dq, r + dr), "{}", kind);
        }
    }
}
