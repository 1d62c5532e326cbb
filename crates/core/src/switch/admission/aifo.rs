//! AIFO: admission-in first-out (Yu et al., SIGCOMM 2021): a FIFO that drops early what a sorted
//! queue would drop late.
//!
//! The rank of the arriving packet is placed among the last ranks seen (its quantile, the share
//! that is strictly more important), and the packet is admitted while that is at most the share of
//! the buffer that is free, the latter stretched so that the first `burst-headroom` of the buffer
//! admits everything. As a deflection's early-drop test this is Canary's: `q > Q·(1 −
//! (1−k)·quantile)` is the same inequality.
//!
//! Two published forms differ in details; `form` chooses. Integers decide: k is taken to 1/65536.
//!
//! Invariant: a refusal at one rank and length refuses every larger rank and every longer queue,
//! window unchanged.

use super::window::RankWindow;
use super::{Admits, CAPACITY_MAX, ONE, PortFacts, alpha};
use crate::context::Context;
use crate::counters::DropReason;
use crate::random::Stream;
use crate::registry::{About, Signal};
use crate::switch::QueueView;

pub(super) const ABOUT: About = About {
    summary: "admits a rank while its quantile among recent ones is at most the free share of the \
              buffer",
    source: "Yu et al.: Programmable packet scheduling with a single queue, SIGCOMM 2021; Canary",
    reads: &[Signal::Ranks],
    ..About::PLAIN
};

crate::choice! {
    /// Which of the published forms of the test.
    pub enum AifoForm {
        /// The quantile's denominator is the window's nominal size, and a quantile equal to the
        /// free share is admitted.
        Canary = "canary",
        /// The denominator is what the window holds, an equal quantile is refused, everything is
        /// admitted while the window is empty or the queue within its headroom, and a queue bounded
        /// in packets is measured in packets.
        Original = "original",
    }
}

crate::params! {
    /// The keys of AIFO (SIGCOMM 2021).
    pub struct AifoParams {
        /// k: the share of the buffer within which every rank is admitted. Source: 0.1 in the
        /// comparison runs of Canary's successor; as Canary's own test it is 0.9 there.
        #[within(0..=1)]
        pub burst_headroom: f64 = 0.1,
        /// Ranks that are remembered. Source: 20, AIFO's program and Canary's.
        #[within(1..=2048)]
        pub window: u32 = 20,
        /// One of so many arrivals is remembered. Source: 15, both artifacts; Canary's own is 20.
        #[within(1..)]
        pub sample_period: u32 = 15,
        /// Which published form: "canary" divides by the nominal window and admits equality;
        /// "original" divides by what the window holds, refuses equality, admits all within the
        /// headroom, and measures packets where the buffer is bounded in packets. Source: Canary's
        /// artifact; AIFO's simulator.
        pub form: AifoForm = AifoForm::Canary,
    }
}

/// AIFO's state at one port: the window of recent ranks.
#[derive(Clone, Debug)]
pub struct Aifo {
    window: RankWindow,
    /// 1 − k.
    alpha: u64,
    /// C, in bytes or packets.
    capacity: u64,
    in_packets: bool,
    form: AifoForm,
}

impl Aifo {
    pub(super) fn new(params: &AifoParams) -> Aifo {
        Aifo {
            window: RankWindow::new(params.window, params.sample_period),
            alpha: alpha(params.burst_headroom),
            capacity: CAPACITY_MAX,
            in_packets: false,
            form: params.form,
        }
    }
}

impl Admits for Aifo {
    fn install(&mut self, port: &PortFacts, _: &mut Stream) {
        self.in_packets = self.form == AifoForm::Original && port.capacity.packets != u32::MAX;
        let capacity =
            if self.in_packets { u64::from(port.capacity.packets) } else { port.capacity.bytes };
        self.capacity = capacity.min(CAPACITY_MAX);
    }
    #[inline]
    fn test(&self, context: &Context<'_, QueueView>) -> Option<DropReason> {
        let length =
            (if self.in_packets { u64::from(context.view.packets) } else { context.view.bytes })
                .min(self.capacity);
        // Within the headroom the right side is at least one, and no quantile is above.
        if length * ONE <= (ONE - self.alpha) * self.capacity {
            return None;
        }
        let below = self.window.below(context.packet.rank);
        let free = self.capacity - length;
        let admits = match self.form {
            AifoForm::Canary => {
                below * self.alpha * self.capacity <= free * ONE * self.window.size()
            }
            AifoForm::Original => {
                self.window.held() == 0
                    || below * self.alpha * self.capacity < free * ONE * self.window.held()
            }
        };
        if admits { None } else { Some(DropReason::Early) }
    }
    #[inline]
    fn commit(&mut self, context: &Context<'_, QueueView>, _: bool) {
        self.window.note(context.packet.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::switch::buffer::Capacity;
    use crate::switch::tests::seeing;
    use crate::units::Rate;
    use proptest::prelude::*;

    fn aifo(k: f64, window: &[u32], capacity: u64, form: AifoForm) -> Aifo {
        let mut it = Aifo::new(&AifoParams {
            burst_headroom: k,
            window: window.len() as u32,
            sample_period: 1,
            form,
        });
        let port = PortFacts {
            capacity: Capacity { bytes: capacity, packets: u32::MAX },
            rate: Rate::from_gbps(10),
        };
        it.install(&port, &mut Stream::new(1, "t"));
        for &rank in window {
            seeing(QueueView::default(), &ranked(rank), |at| it.commit(at, true));
        }
        it
    }

    fn ranked(rank: u32) -> Packet {
        Packet { rank, ..Packet::default() }
    }

    fn admits(it: &Aifo, bytes: u64, rank: u32) -> bool {
        seeing(QueueView { packets: 0, bytes }, &ranked(rank), |at| it.test(at)).is_none()
    }

    /// The largest quantile admitted at each length of a buffer of 300, in thousandths.
    #[test]
    fn max_admissible_quantile() {
        let ranks: Vec<u32> = (0..1000).collect();
        for (k, expected) in [
            (0.1, [1000, 741, 556, 370, 111, 56, 4]),
            (0.9, [1000, 1000, 1000, 1000, 1000, 500, 33]),
        ] {
            let it = aifo(k, &ranks, 300, AifoForm::Canary);
            for (q, expected) in [30, 100, 150, 200, 270, 285, 299].into_iter().zip(expected) {
                // Rank r has quantile r/1000 here.
                let largest = (0..=1000)
                    .rev()
                    .find(|r| admits(&it, q, *r))
                    .expect("rank 0 is always admitted");
                assert!(
                    (largest as i64 - expected).abs() <= 1,
                    "k={k} q={q}: {largest}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn quantiles_are_strict() {
        let it = aifo(0.0, &[10, 20, 30, 40], 100, AifoForm::Canary);
        // k = 0: q/Q + quantile ≤ 1. Rank 25 has .5, rank 10 has 0, rank 41 has 1.
        assert_eq!([admits(&it, 50, 25), admits(&it, 51, 25)], [true, false]);
        assert_eq!([admits(&it, 100, 10), admits(&it, 1, 41)], [true, false]);
        assert!(admits(&it, 0, 41));
    }

    #[test]
    fn equal_ranks_make_it_drop_tail() {
        let it = aifo(0.0, &[7; 20], 1000, AifoForm::Canary);
        assert!((0..=1000).all(|q| admits(&it, q, 7)));
    }

    #[test]
    fn headroom_of_one_never_refuses() {
        let it = aifo(1.0, &[1; 20], 1000, AifoForm::Canary);
        assert!((0..=1000).all(|q| admits(&it, q, u32::MAX)));
    }

    #[test]
    fn control_packets_of_rank_zero_are_never_refused() {
        let it = aifo(0.0, &[0; 20], 1000, AifoForm::Canary);
        assert!((0..=1000).all(|q| admits(&it, q, 0)));
    }

    /// The original divides by what the window holds and refuses equality; Canary's divides by its
    /// nominal size.
    #[test]
    fn the_two_forms_differ_while_the_window_fills_and_at_equality() {
        let of = |form| {
            let mut it =
                Aifo::new(&AifoParams { burst_headroom: 0.0, window: 4, sample_period: 1, form });
            let capacity = Capacity { bytes: 100, packets: u32::MAX };
            it.install(&PortFacts { capacity, rate: Rate::from_gbps(1) }, &mut Stream::new(1, "t"));
            it
        };
        let (mut canary, mut original) = (of(AifoForm::Canary), of(AifoForm::Original));
        assert!(admits(&canary, 99, 50) && admits(&original, 99, 50)); // nothing is known yet
        for it in [&mut canary, &mut original] {
            seeing(QueueView::default(), &ranked(10), |at| it.commit(at, true));
        }
        // One of one held is below, one of four nominal.
        assert_eq!([admits(&canary, 75, 50), admits(&original, 75, 50)], [true, false]);
        let full = |form| aifo(0.0, &[10, 20, 30, 40], 100, form);
        assert_eq!(
            [admits(&full(AifoForm::Canary), 50, 25), admits(&full(AifoForm::Original), 50, 25)],
            [true, false]
        );
        assert!(admits(&full(AifoForm::Original), 49, 25));
    }

    proptest! {
        #[test]
        fn refusals_are_monotone(
            window in prop::collection::vec(0u32..1000, 1..40),
            k in 0.0..1.0f64,
            (q, dq) in (0u64..1000, 0u64..200),
            (r, dr) in (0u32..1000, 0u32..200),
            original in any::<bool>(),
        ) {
            let it = aifo(
                k,
                &window,
                1000,
                if original { AifoForm::Original } else { AifoForm::Canary },
            );
            prop_assert!(admits(&it, q, r) || !admits(&it, (q + dq).min(1000), r + dr));
        }

        /// AIFO's inequality and Canary's, as published, in exact fractions.
        #[test]
        fn the_published_inequalities_agree(
            window in prop::collection::vec(0u32..100, 20..21),
            k in 0u64..64,
            q in 0u64..=3000,
            rank in 0u32..120,
        ) {
            let it = aifo(k as f64 / 64.0, &window, 3000, AifoForm::Canary);
            let below = window.iter().filter(|x| **x < rank).count() as u64;
            // quantile ≤ (C − c)/((1−k)·C), and q > Q·(1 − (1−k)·quantile), both times 20·64·3000.
            let aifo = below * (64 - k) * 3000 <= (3000 - q) * 20 * 64;
            let canary = q * 20 * 64 > 3000 * (20 * 64 - (64 - k) * below);
            prop_assert_eq!(aifo, !canary);
            prop_assert_eq!(admits(&it, q, rank), aifo);
        }
    }
}
