//! Whatever a network does, everything arrives once and in order.

use super::*;
use millpond_core::registry::Choice;
use millpond_scenario::transport::Reduction;
use proptest::prelude::*;

fn any_kind() -> impl Strategy<Value = TransportKind> {
    let kinds =
        TransportKind::place().mechanisms.iter().filter_map(|m| TransportKind::of_kind(m.kind));
    let kinds = kinds.filter(|kind| kind.demands().family.is_tcp());
    prop_oneof![
        prop::sample::select(kinds.collect::<Vec<_>>()),
        any::<bool>().prop_map(|newreno_ecn| TransportKind::NewReno(NewRenoParams { newreno_ecn })),
        (0.01f64..3.0, 0.0f64..30.0, 0u64..100).prop_map(|(min, more, target)| {
            TransportKind::Swift(SwiftParams {
                swift_window_min: min,
                swift_window_max: Auto::Given(min + more),
                swift_base_target: Auto::Given(Time::from_us(target)),
                swift_retransmit_reset: 3,
                ..SwiftParams::default()
            })
        }),
        any::<bool>().prop_map(|ecn| TransportKind::Cubic(CubicParams {
            cubic_ecn: ecn,
            ..CubicParams::default()
        })),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(latch, first, growth, after_loss)| {
                TransportKind::Dctcp(DctcpParams {
                    dctcp_growth_on_echo: growth,
                    dctcp_cut_after_loss: after_loss,
                    dctcp_echo: if latch { DctcpEcho::Latch } else { DctcpEcho::Precise },
                    dctcp_reduce: if first {
                        DctcpReduce::FirstMark
                    } else {
                        DctcpReduce::WindowEnd
                    },
                    ..DctcpParams::default()
                })
            }
        ),
    ]
}

fn any_params() -> impl Strategy<Value = TransportParams> {
    let estimators =
        prop::sample::select(vec![RtoEstimator::Rfc6298, RtoEstimator::Inet, RtoEstimator::Tas]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let released =
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), estimators);
    let detections = prop::sample::select(vec![LossDetection::Dupack, LossDetection::Rack]);
    let reductions = prop::sample::select(vec![Reduction::AtOnce, Reduction::Prr]);
    let numbers =
        (1u32..4, 1u32..20, prop::option::weighted(0.8, 1u32..5), prop::option::of(3u64..40));
    (flags, released, numbers, (detections, reductions)).prop_map(
        |(
            flags,
            (reno, validation, avoidance, tlp, paced, rto_estimator),
            (delayed, iw, threshold, buffer),
            (loss_detection, reduction),
        )| {
            let (sack, limited, handshake, fixed, restart) = flags;
            TransportParams {
                fast_recovery: if reno { FastRecovery::Reno } else { FastRecovery::NewReno },
                window_validation: validation,
                silly_window_avoidance: avoidance,
                tlp,
                loss_detection,
                reduction,
                pacing: if paced { Pacing::Linux } else { Pacing::Off },
                rto_estimator,
                mss: Some(MSS as u32),
                sack,
                limited_transmit: limited,
                handshake,
                fixed_rto: fixed.then_some(Time::from_us(300)),
                restart_after_idle: restart,
                delayed_ack: delayed,
                initial_window: iw,
                dupack_threshold: threshold,
                receive_buffer: buffer.map(|b| millpond_core::Bytes(b * MSS / 2)),
                min_rto: Time::from_us(500),
                initial_rto: Time::from_ms(1),
                delayed_ack_timeout: Time::from_us(200),
                ..TransportParams::default()
            }
        },
    )
}

/// From a byte: a tenth each of lost, repeated, marked and late packets, some of them both.
fn fate(byte: u8) -> Fate {
    let late = if byte % 10 == 3 { Time::from_us(u64::from(byte)) } else { Time::ZERO };
    Fate { drop: byte.is_multiple_of(10), twice: byte % 10 == 1, mark: byte % 5 == 2, late }
}

fn script(bytes: Vec<u8>) -> Script {
    let mut bytes = bytes.into_iter();
    Box::new(move |_, _| bytes.next().map_or(PASS, fate))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever a network does to the first packets each way, all is delivered, and the pipe's
    /// assertions hold.
    #[test]
    fn everything_is_delivered_once_and_in_order(
        kind in any_kind(),
        params in any_params(),
        data in prop::collection::vec(any::<u8>(), 0..300),
        acks in prop::collection::vec(any::<u8>(), 0..300),
        writes in prop::collection::vec((1u64..60_000, 0u64..2_000), 1..6),
        offload in 1u32..40,
    ) {
        let mut pipe = Pipe::new(Config::new(&params, &kind, 1500));
        pipe.data_fate = script(data);
        pipe.ack_fate = script(acks);
        pipe.offload = offload * MSS as u32;
        for (bytes, wait_us) in writes {
            pipe.sender.write(pipe.now, bytes);
            pipe.pump();
            pipe.run(pipe.now + Time::from_us(wait_us));
        }
        pipe.finish();
        // A packet that is still under way disturbs nothing.
        pipe.run(Time::MAX);
        prop_assert_eq!(pipe.sender.acked(), pipe.sender.written());
        prop_assert_eq!((pipe.sender.in_flight(), pipe.sender.deadline()), (0, Time::MAX));
    }
}
