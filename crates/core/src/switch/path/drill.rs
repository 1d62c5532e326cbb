//! DRILL(d, m): for every packet the shortest of d queues drawn at random and of the m that were
//! shortest last time (Ghorbani et al., SIGCOMM 2017 §3.1).
//!
//! Ports are remembered for a set of candidates, since queues towards one destination are no guide
//! to those towards another.
//!
//! Invariant: the port chosen waits no longer, by the switch's lengths, than any that was
//! compared; the ports remembered are the shortest of those compared, each once.

use super::{Choice, Chooses};
use crate::context::Context;
use crate::random::Draw;
use crate::registry::{About, PathProperty, Signal};

pub(super) const ABOUT: About = About {
    summary: "for every packet the shortest of a few queues drawn at random and a few remembered",
    source: "Ghorbani, Yang, Godfrey, Ganjali, Firoozshahian: DRILL, SIGCOMM 2017",
    breaks: &[
        PathProperty::FifoPerFlow,
        PathProperty::FifoPerFlowcell,
        PathProperty::LabelFixesPath,
    ],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::params! {
    /// The keys of DRILL(d, m) (SIGCOMM 2017).
    pub struct DrillParams {
        /// Ports that are drawn for each packet, all different: d. Source: 2, DRILL §3.2.
        #[within(1..=64)]
        pub samples: u32 = 2,
        /// Ports that are remembered from the last packet and compared: m. Source: 1, DRILL §3.2.
        #[within(0..=64)]
        pub memory: u32 = 1,
    }
}

/// The shortest ports among the same candidates, last time.
#[derive(Clone, Debug)]
struct Memory {
    /// The candidates, distinguished by their first and their number.
    of: (u16, usize),
    ports: Vec<u16>,
}

/// DRILL at one switch: the shortest ports of each set of candidates.
#[derive(Clone, Debug)]
pub struct Drill {
    samples: u32,
    memory: usize,
    memories: Vec<Memory>,
    /// The ports compared, with what waits at each and a lot for ties.
    compared: Vec<(u64, u64, u16)>,
}

impl Drill {
    pub(super) fn new(params: &DrillParams) -> Drill {
        let memory = params.memory as usize;
        Drill { samples: params.samples.max(1), memory, memories: Vec::new(), compared: Vec::new() }
    }

    /// The memory of these candidates.
    fn memory_of(&mut self, candidates: &[u16]) -> &mut Memory {
        let of = (candidates[0], candidates.len());
        let at = self.memories.iter().position(|memory| memory.of == of).unwrap_or_else(|| {
            self.memories.push(Memory { of, ports: Vec::new() });
            self.memories.len() - 1
        });
        &mut self.memories[at]
    }
}

impl Chooses for Drill {
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let random = context.random;
        let Choice { candidates, ports, .. } = &mut context.view;
        let mut compared = std::mem::take(&mut self.compared);
        compared.clear();
        let mut draw = Draw::new(candidates.len());
        let drawn =
            (0..self.samples).map_while(|_| draw.next(random)).map(|index| candidates[index]);
        compared.extend(drawn.map(|port| (0, 0, port)));
        for port in &self.memory_of(candidates).ports {
            if candidates.contains(port) && compared.iter().all(|(_, _, other)| other != port) {
                compared.push((0, 0, *port));
            }
        }
        for (bytes, lot, port) in &mut compared {
            (*bytes, *lot) = (ports.bytes(*port), random.bits());
        }
        compared.sort_unstable();
        let kept = self.memory.min(compared.len());
        let memory = self.memory_of(candidates);
        memory.ports.clear();
        memory.ports.extend(compared[..kept].iter().map(|(_, _, port)| *port));
        let port = compared[0].2;
        self.compared = compared;
        port
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Crossing;
    use super::*;
    use crate::packet::Packet;
    use crate::switch::deflection::tests::Bench;

    const PORTS: [u16; 4] = [0, 1, 2, 3];

    fn drill(samples: u32, memory: u32) -> Drill {
        Drill::new(&DrillParams { samples, memory })
    }

    fn choose(policy: &mut Drill, at: &mut Crossing<Bench>, candidates: &[u16]) -> u16 {
        at.choose(policy, candidates, &Packet::default())
    }

    #[test]
    fn the_best_is_remembered_and_taken_until_it_is_no_longer_the_best() {
        let mut at = Crossing::of(Bench::with_bytes(&[30, 20, 10, 0]));
        let mut it = drill(1, 1);
        (0..50).for_each(|_| _ = choose(&mut it, &mut at, &PORTS));
        assert!((0..50).all(|_| choose(&mut it, &mut at, &PORTS) == 3));
        at.ports = Bench::with_bytes(&[0, 20, 10, 30]);
        (0..50).for_each(|_| _ = choose(&mut it, &mut at, &PORTS));
        assert!((0..50).all(|_| choose(&mut it, &mut at, &PORTS) == 0));
    }

    /// With d = 1 and m = 2 both of the two shortest come to be known, and stay so.
    #[test]
    fn as_many_are_remembered_as_is_said() {
        let mut at = Crossing::of(Bench::with_bytes(&[30, 0, 10, 20]));
        let mut it = drill(1, 2);
        (0..100).for_each(|_| _ = choose(&mut it, &mut at, &PORTS));
        assert_eq!(it.memory_of(&PORTS).ports, [1, 2]);
        let mut it = drill(2, 0);
        choose(&mut it, &mut at, &PORTS);
        assert!(it.memory_of(&PORTS).ports.is_empty());
    }

    #[test]
    fn sets_of_candidates_are_remembered_apart() {
        let mut at = Crossing::of(Bench::with_bytes(&[0, 50, 10, 20]));
        let mut it = drill(1, 1);
        for _ in 0..50 {
            choose(&mut it, &mut at, &[0, 1]);
            choose(&mut it, &mut at, &[2, 3]);
        }
        assert_eq!((choose(&mut it, &mut at, &[0, 1]), choose(&mut it, &mut at, &[2, 3])), (0, 2));
    }

    /// A remembered port that may not be taken any more is not compared.
    #[test]
    fn a_port_that_is_down_is_forgotten() {
        let mut at = Crossing::of(Bench::with_bytes(&[30, 20, 10, 0]));
        let mut it = drill(1, 1);
        it.memories.push(Memory { of: (0, 3), ports: vec![3] });
        assert!((0..50).all(|_| choose(&mut it, &mut at, &[0, 1, 2]) != 3));
    }

    #[test]
    fn equals_are_taken_alike() {
        let mut at = Crossing::of(Bench::with_bytes(&[5, 5, 5, 5]));
        let (mut it, mut count) = (drill(2, 0), [0; 4]);
        (0..4000).for_each(|_| count[choose(&mut it, &mut at, &PORTS) as usize] += 1);
        assert!(count.iter().all(|c| (900..1100).contains(c)), "{count:?}");
    }
}
