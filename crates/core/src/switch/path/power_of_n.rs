//! Power of n choices: of a few ports drawn at random, the one whose queue is shortest
//! (Mitzenmacher 2001; per packet, as Vertigo and Canary use it). With a memory it is DRILL, a
//! mechanism of its own.
//!
//! Invariant: the port chosen waits no longer, by the switch's lengths, than any other that was
//! drawn; ties fall to a fair coin.

use super::{Choice, Chooses};
use crate::context::Context;
use crate::random::Draw;
use crate::random::Random;
use crate::registry::{About, PathProperty, Signal};
use crate::switch::PortView;

pub(super) const ABOUT: About = About {
    summary: "of a few ports drawn at random, the shortest queue, packet by packet",
    source: "Mitzenmacher: The power of two choices in randomized load balancing, 2001; Vertigo, \
             CoNEXT 2021 §4",
    breaks: &[
        PathProperty::FifoPerFlow,
        PathProperty::FifoPerFlowcell,
        PathProperty::LabelFixesPath,
    ],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::params! {
    /// Power of n choices.
    pub struct PowerOfNParams {
        /// Ports that are drawn for each packet, all different. Source: 2, Vertigo and Canary.
        #[within(1..=64)]
        pub choices: u32 = 2,
    }
}

/// Power of n choices.
#[derive(Clone, Debug)]
pub struct PowerOfN {
    choices: u32,
}

impl PowerOfN {
    pub(super) fn new(params: &PowerOfNParams) -> PowerOfN {
        PowerOfN { choices: params.choices.max(1) }
    }
}

impl Chooses for PowerOfN {
    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let random = context.random;
        let Choice { candidates, ports, .. } = &mut context.view;
        let mut draw = Draw::new(candidates.len());
        let mut best = Shortest::default();
        for _ in 0..self.choices {
            let Some(index) = draw.next(random) else { break };
            best.offer(candidates[index], *ports, random);
        }
        best.port.map_or(candidates[0], |(port, _)| port)
    }
}

/// The port with the shortest queue of those offered; a fair coin between equals.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::switch) struct Shortest {
    pub(in crate::switch) port: Option<(u16, u64)>,
    equals: u64,
}

impl Shortest {
    #[inline]
    pub(in crate::switch) fn offer(
        &mut self,
        port: u16,
        ports: &mut dyn PortView,
        random: &Random,
    ) {
        self.offer_known(port, ports.bytes(port), random);
    }

    #[inline]
    pub(in crate::switch) fn offer_known(&mut self, port: u16, bytes: u64, random: &Random) {
        match self.port {
            Some((_, least)) if bytes > least => {}
            Some((_, least)) if bytes == least => {
                self.equals += 1;
                if random.below(self.equals + 1) == 0 {
                    self.port = Some((port, bytes));
                }
            }
            _ => (self.port, self.equals) = (Some((port, bytes)), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Crossing;
    use super::*;
    use crate::packet::Packet;
    use crate::switch::deflection::tests::Bench;

    fn choose(policy: &mut PowerOfN, at: &mut Crossing<Bench>, candidates: &[u16]) -> u16 {
        at.choose(policy, candidates, &Packet::default())
    }

    #[test]
    fn two_choices_avoid_the_longest_of_two_and_split_ties() {
        let mut at = Crossing::of(Bench::with_bytes(&[500, 100]));
        let mut policy = PowerOfN::new(&PowerOfNParams::default());
        assert!((0..100).all(|_| choose(&mut policy, &mut at, &[0, 1]) == 1));
        let mut at = Crossing::of(Bench::with_bytes(&[100, 100, 100, 100]));
        let mut count = [0; 4];
        (0..4000).for_each(|_| count[choose(&mut policy, &mut at, &[0, 1, 2, 3]) as usize] += 1);
        assert!(count.iter().all(|c| (900..1100).contains(c)), "{count:?}");
    }

    #[test]
    fn two_of_four_take_the_shortest_half_of_the_time() {
        let mut at = Crossing::of(Bench::with_bytes(&[0, 10, 20, 30]));
        let mut policy = PowerOfN::new(&PowerOfNParams::default());
        let mut count = [0; 4];
        (0..6000).for_each(|_| count[choose(&mut policy, &mut at, &[0, 1, 2, 3]) as usize] += 1);
        // Of six pairs the first is in three, the second the better in two, the third in one, the
        // last in none.
        assert!(
            (2850..3150).contains(&count[0]) && (1850..2150).contains(&count[1]) && count[3] == 0,
            "{count:?}"
        );
    }
}
