//! Packet spraying: every packet its own port (Dixit et al., INFOCOM 2013). Even loads, and
//! reordering for the host.

use super::{Choice, Chooses};
use crate::context::Context;
use crate::registry::{About, PathProperty, Signal};

pub(super) const ABOUT: About = About {
    summary: "every packet takes its own port",
    source: "Dixit, Prakash, Hu, Kompella: On the impact of packet spraying in data center \
             networks, INFOCOM 2013",
    breaks: &[
        PathProperty::FifoPerFlow,
        PathProperty::FifoPerFlowcell,
        PathProperty::LabelFixesPath,
    ],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::choice! {
    /// How the next port is found.
    pub enum SprayOrder {
        /// Uniformly at random.
        Random = "random",
        /// One after the other, per switch.
        RoundRobin = "round-robin",
    }
}

crate::params! {
    /// The keys of packet spraying.
    pub struct SprayParams {
        /// Whether ports are drawn at random or taken in turn. Source: random is the paper's.
        pub order: SprayOrder = SprayOrder::Random,
    }
}

/// A draw, or a turn.
#[derive(Clone, Debug)]
pub struct Spray {
    order: SprayOrder,
    turn: u32,
}

impl Spray {
    pub(super) fn new(params: &SprayParams) -> Spray {
        Spray { order: params.order, turn: 0 }
    }
}

impl Chooses for Spray {
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let candidates = context.view.candidates;
        let n = candidates.len();
        match self.order {
            SprayOrder::Random => candidates[context.random.below(n as u64) as usize],
            SprayOrder::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                candidates[self.turn as usize % n]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Crossing;
    use super::*;
    use crate::packet::Packet;

    #[test]
    fn all_ports_are_used_alike() {
        for order in [SprayOrder::Random, SprayOrder::RoundRobin] {
            let mut spray = Spray::new(&SprayParams { order });
            let (mut at, mut counts) = (Crossing::default(), [0u32; 5]);
            for _ in 0..10_000 {
                counts[at.choose(&mut spray, &[0, 1, 2, 3, 4], &Packet::default()) as usize] += 1;
            }
            assert!(counts.iter().all(|c| (1_850..2_150).contains(c)), "{order:?} {counts:?}");
        }
    }
}
