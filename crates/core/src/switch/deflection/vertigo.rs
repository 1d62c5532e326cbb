//! Vertigo: selective deflection (Abdous et al., CoNEXT 2021): not the packet that came last goes
//! elsewhere, but the least important ones.
//!
//! Here is only where to: the shorter of a few ports drawn at random, full ones not passed over.
//! The displacement (`switch::displace`) decides who goes and who is dropped; it needs a queue that
//! can give up packets by rank: `srpt`.
//!
//! Invariant: candidates are drawn without looking at their room.

use super::{Deflects, Elsewhere, Nature};
use crate::context::Context;
use crate::random::Draw;
use crate::registry::{About, Reason, Signal};
use crate::switch::path::Shortest;

pub(super) const ABOUT: About = About {
    summary: "the least important packets of a full queue go to the shorter of two random ports",
    source: "Abdous et al.: Burst-tolerant datacenter networks with Vertigo, CoNEXT 2021",
    reads: &[Signal::Ranks, Signal::Detours],
    breaks: super::BREAKS,
    answers: Some(Reason::SwitchDrops),
    ..About::PLAIN
};

crate::params! {
    /// The keys of Vertigo's deflection (CoNEXT 2021).
    pub struct VertigoParams {
        /// Ports that are drawn for each packet that must go elsewhere, all different. Source: 2,
        /// Vertigo §4.
        #[within(1..=64)]
        pub choices: u32 = 2,
    }
}

/// Vertigo's deflection at one switch.
#[derive(Clone, Debug)]
pub struct Vertigo {
    choices: u32,
}

impl Vertigo {
    pub(super) fn new(params: &VertigoParams) -> Vertigo {
        Vertigo { choices: params.choices.max(1) }
    }
}

impl Deflects for Vertigo {
    fn choose(&mut self, context: &mut Context<'_, Elsewhere<'_>>) -> Option<u16> {
        let (random, Elsewhere { candidates, ports, .. }) = (context.random, &mut context.view);
        let mut draw = Draw::new(candidates.len());
        let mut best = Shortest::default();
        for _ in 0..self.choices {
            let Some(index) = draw.next(random) else { break };
            best.offer(candidates[index], *ports, random);
        }
        best.port.map(|(port, _)| port)
    }
    fn nature(&self) -> Nature {
        Nature { displaces: true, ..Nature::PLAIN }
    }
}
