//! DCTCP's arithmetic for a queue pair's rate, as HPCC's released simulator has it (its CC_MODE 8).
//!
//! Alpha follows the share of marked packets, once a round trip. The first mark of a round trip
//! cuts the rate by alpha/2, and until what was sent by then is acknowledged nothing else moves it.
//! Without a cut it grows by a step each round trip.
//!
//! A deviation: alpha's share is of the answers that came. The released simulator divides by the
//! packets that were in flight when the round trip began.
//!
//! Invariant: min-rate ≤ rate ≤ line rate; 0 ≤ alpha ≤ 1.

use super::{
    Acked, Demands, Echo, Family, Law, Metric, Quantity, RATE, Setting, Shared, in_gbps, step,
};
use crate::Rate;
use crate::registry::{About, Signal};
use crate::switch::site::Auto;

pub(super) const ABOUT: About = About {
    summary: "DCTCP for queue pairs: cuts a rate in proportion to the share of marked packets",
    source: "HPCC's released simulator; DCTCP, SIGCOMM 2010",
    reads: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// DCTCP for queue pairs.
    pub struct RdmaDctcpParams {
        /// Weight of the newest round trip in alpha. Source: 1/16, RFC 8257 §4.2, and HPCC's
        /// released simulator.
        #[within(0..=1)]
        pub rdma_dctcp_g: f64 = 1.0 / 16.0,
        /// Growth of the rate each round trip. "auto" is a packet of 1000 bytes each 13 us, 615
        /// Mb/s, whatever the link. Source: HPCC's released simulator; 1000 Mb/s in TLT's.
        pub rdma_dctcp_additive_increase: Auto<Rate> = Auto::Auto,
        /// The lowest rate. Source: 100 Mb/s, HPCC's released simulator.
        #[within(1..)]
        pub rdma_dctcp_min_rate: Rate = Rate(100_000_000),
    }
}

/// The state of one queue pair under DCTCP's law.
#[derive(Clone, Debug)]
pub struct RdmaDctcp(Box<State>);

#[derive(Clone, Debug)]
struct State {
    /// The host's link; 0 before the connection begins.
    line: Rate,
    /// Bits a second.
    rate: f64,
    alpha: f64,
    /// Answers of this round trip, and those with a mark.
    answers: u32,
    marked: u32,
    /// An answer beyond it ends the round trip; 0 before the first.
    until: u64,
    /// An answer beyond it ends what a cut has begun.
    cut_until: Option<u64>,
}

const ALPHA: Quantity = Quantity {
    name: "rdma_dctcp_alpha",
    meaning: "the share of marked packets, as estimated by DCTCP for queue pairs",
};

impl Law for RdmaDctcp {
    type Params = RdmaDctcpParams;
    type Constants = RdmaDctcpParams;

    const SLOW_STARTS: bool = false;

    fn demands(_: &RdmaDctcpParams) -> Demands {
        Demands { family: Family::Rdma, echo: Echo::Precise, paces: true, ..Demands::default() }
    }

    fn constants(params: &RdmaDctcpParams) -> RdmaDctcpParams {
        RdmaDctcpParams { rdma_dctcp_g: params.rdma_dctcp_g.clamp(0.0, 1.0), ..params.clone() }
    }

    fn new(_: u64, _: &Shared<RdmaDctcpParams>) -> RdmaDctcp {
        let (line, alpha) = (Rate(0), 1.0);
        RdmaDctcp(Box::new(State {
            line,
            rate: 0.0,
            alpha,
            answers: 0,
            marked: 0,
            until: 0,
            cut_until: None,
        }))
    }

    fn begin(&mut self, setting: &Setting, _: &Shared<RdmaDctcpParams>) {
        (self.0.line, self.0.rate) = (setting.line, setting.line.bps() as f64);
    }

    /// The rate is the law's own: no answer asks for a cut.
    fn on_ack(&mut self, ack: Acked, shared: &Shared<RdmaDctcpParams>) -> bool {
        let (state, p) = (&mut *self.0, &shared.law);
        state.answers += 1;
        state.marked += u32::from(ack.ece);
        let ends = ack.una > state.until;
        if ends {
            if state.until > 0 {
                let share = f64::from(state.marked) / f64::from(state.answers);
                state.alpha = (1.0 - p.rdma_dctcp_g) * state.alpha + p.rdma_dctcp_g * share;
                (state.answers, state.marked) = (0, 0);
            }
            state.until = ack.nxt;
        }
        state.cut_until = state.cut_until.filter(|until| ack.una <= *until);
        if ack.ece && state.cut_until.is_none() {
            let floor = p.rdma_dctcp_min_rate.min(state.line).bps() as f64;
            state.rate = (state.rate * (1.0 - state.alpha / 2.0)).max(floor);
            state.cut_until = Some(ack.nxt);
        }
        if ends && state.cut_until.is_none() {
            const PACKET_IN_13_US: Rate = Rate(615_384_615);
            let more =
                step(p.rdma_dctcp_additive_increase, PACKET_IN_13_US, state.line, state.line);
            state.rate = (state.rate + more).min(state.line.bps() as f64);
        }
        false
    }

    fn rate(&self, _: &Shared<RdmaDctcpParams>) -> Option<Rate> {
        (self.0.line.bps() > 0).then_some(Rate(self.0.rate as u64))
    }

    fn metrics(&self, _: &Shared<RdmaDctcpParams>) -> Vec<Metric> {
        vec![(RATE, Some(in_gbps(self.0.rate))), (ALPHA, Some(self.0.alpha))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn law() -> (RdmaDctcp, Shared<RdmaDctcpParams>) {
        let p = RdmaDctcpParams {
            rdma_dctcp_additive_increase: Auto::Given(Rate(1_000_000_000)),
            ..Default::default()
        };
        let shared = Shared { mss: 1000, ecn: true, law: RdmaDctcp::constants(&p) };
        let mut law = RdmaDctcp::new(0, &shared);
        law.begin(
            &Setting { line: Rate::from_gbps(40), base_rtt: Time::from_us(9), window: 0 },
            &shared,
        );
        (law, shared)
    }

    fn ack(law: &mut RdmaDctcp, una: u64, nxt: u64, ece: bool, shared: &Shared<RdmaDctcpParams>) {
        let (now, delay) = (Time::from_us(9), Time::from_us(9));
        assert!(!law.on_ack(Acked { now, bytes: 1000, ece, una, nxt, delay, hops: 1 }, shared));
    }

    /// By hand. The first answer, marked, ends the round trip of nothing and halves the rate, as
    /// alpha is 1. Of the next round trip's four answers one is marked: alpha is 15/16 + 1/64; the
    /// mark falls into what the cut has begun. The next mark, in the round trip after, cuts by
    /// that.
    #[test]
    fn a_mark_cuts_once_a_round_trip_by_what_alpha_was() {
        let (mut law, shared) = law();
        ack(&mut law, 1000, 4000, true, &shared);
        assert_eq!((law.0.rate, law.0.alpha), (20e9, 1.0));
        ack(&mut law, 2000, 5000, true, &shared);
        ack(&mut law, 3000, 6000, false, &shared);
        ack(&mut law, 4000, 7000, false, &shared);
        assert_eq!(law.0.rate, 20e9);
        // The round trip ends: of the five answers since the beginning two were marked.
        ack(&mut law, 5000, 8000, false, &shared);
        let alpha = 15.0 / 16.0 + 2.0 / 5.0 / 16.0;
        assert!((law.0.alpha - alpha).abs() < 1e-12);
        assert_eq!(law.0.rate, 21e9, "and it grows");
        ack(&mut law, 6000, 9000, true, &shared);
        assert!((law.0.rate - 21e9 * (1.0 - alpha / 2.0)).abs() < 1.0);
    }

    #[test]
    fn the_rate_keeps_its_bounds() {
        let (mut law, shared) = law();
        (1..50).for_each(|n| ack(&mut law, 1000 * n, 1000 * n + 500, true, &shared));
        assert_eq!(law.rate(&shared), Some(Rate(100_000_000)));
        (50..150).for_each(|n| ack(&mut law, 1000 * n, 1000 * n + 500, false, &shared));
        assert_eq!(law.rate(&shared), Some(Rate::from_gbps(40)));
        assert!(law.0.alpha < 0.01);
    }
}
