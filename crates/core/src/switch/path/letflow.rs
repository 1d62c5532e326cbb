//! LetFlow: flowlets at every switch, each by a port drawn at random (Vanini et al., NSDI 2017 §3).
//!
//! A flow that has been silent for longer than the gap may take another port without overtaking
//! itself. Nothing is known of congestion: a flow on a slow path is slowed down, is silent more
//! often, and so leaves it more often.
//!
//! Invariant: a flowlet keeps its port ([`Flowlets`]); the next one's does not depend on it.

use super::flowlets::Flowlets;
use super::{Choice, Chooses};
use crate::context::Context;
use crate::registry::{About, PathProperty, Signal};
use crate::units::Time;

pub(super) const ABOUT: About = About {
    summary: "after a silence a flow goes on by a port drawn at random",
    source: "Vanini, Pan, Alizadeh, Taheri, Edsall: Let it flow, NSDI 2017",
    breaks: &[
        PathProperty::FifoPerFlow,
        PathProperty::FifoPerFlowcell,
        PathProperty::LabelFixesPath,
    ],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::params! {
    /// Flowlets at every switch.
    pub struct LetFlowParams {
        /// A longer silence ends a flowlet. Source: 500 us, LetFlow §5; it has to exceed how much
        /// paths differ in delay.
        pub gap: Time = Time::from_us(500),
        /// Flowlets that a switch distinguishes. Source: 64 Ki, CONGA §3.3, whose chip LetFlow
        /// uses.
        #[within(1..=1_048_576)]
        pub entries: u32 = 65_536,
    }
}

/// LetFlow at one switch: the port and the last packet of each flowlet (NSDI 2017).
#[derive(Clone, Debug)]
pub struct LetFlow {
    flowlets: Flowlets,
}

impl LetFlow {
    pub(super) fn new(params: &LetFlowParams) -> LetFlow {
        LetFlow { flowlets: Flowlets::new(params.gap, params.entries) }
    }
}

impl Chooses for LetFlow {
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let Choice { candidates, site, .. } = &context.view;
        let draw = |_| candidates[context.random.below(candidates.len() as u64) as usize];
        self.flowlets.port(context.now, context.packet, *site, candidates, draw)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Crossing;
    use super::*;
    use crate::packet::Packet;
    use crate::random::mix64;

    const PORTS: [u16; 4] = [4, 5, 6, 7];

    fn letflow(gap_us: u64, entries: u32) -> LetFlow {
        LetFlow::new(&LetFlowParams { gap: Time::from_us(gap_us), entries })
    }

    fn of_flow(flow: u64) -> Packet {
        Packet { entropy: mix64(flow) as u32, ..Packet::default() }
    }

    /// A gap of just the timeout keeps the port, and every packet starts the gap anew.
    #[test]
    fn a_flowlet_lasts_as_long_as_its_gaps_do() {
        let (mut it, mut at) = (letflow(500, 1024), Crossing::default());
        for flow in 0..50 {
            let first = at.choose(&mut it, &PORTS, &of_flow(flow));
            for _ in 0..20 {
                at.now += Time::from_us(500);
                assert_eq!(at.choose(&mut it, &PORTS, &of_flow(flow)), first);
            }
        }
    }

    #[test]
    fn after_a_silence_every_port_is_as_likely_the_old_one_included() {
        let (mut it, mut at) = (letflow(500, 1024), Crossing::default());
        let mut counts = [0u32; 8];
        for _ in 0..8_000 {
            at.now += Time::from_us(500) + Time::from_ps(1);
            counts[at.choose(&mut it, &PORTS, &of_flow(1)) as usize] += 1;
        }
        assert!(counts[4..].iter().all(|n| (1_850..2_150).contains(n)), "{counts:?}");
    }

    #[test]
    fn a_port_that_may_not_be_taken_ends_the_flowlet() {
        let (mut it, mut at) = (letflow(500, 1024), Crossing::default());
        let port = at.choose(&mut it, &PORTS, &of_flow(1));
        let others: Vec<u16> = PORTS.into_iter().filter(|it| *it != port).collect();
        let other = at.choose(&mut it, &others, &of_flow(1));
        assert!(others.contains(&other));
        assert_eq!(
            at.choose(&mut it, &PORTS, &of_flow(1)),
            other,
            "and does not come back within the gap"
        );
    }

    #[test]
    fn flows_of_one_entry_are_one_flowlet() {
        let (mut it, mut at) = (letflow(500, 1), Crossing::default());
        let port = at.choose(&mut it, &PORTS, &of_flow(1));
        assert!((2..100).all(|flow| at.choose(&mut it, &PORTS, &of_flow(flow)) == port));
    }
}
