//! The jitter of a plan's hosts (`host.jitter`), by link.
//!
//! Invariant: each way of a host draws from a stream of its own.

use millpond_core::jitter::Jitter;
use millpond_core::random::Stream;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;

/// The jitter on a directed link, if a host is at one of its ends and has any. Directed link 2l
/// runs from end a of link l to end b, and 2l + 1 back.
pub fn jitter(plan: &Plan, id: u32) -> Option<Jitter> {
    let link = &plan.topology.links[id as usize / 2];
    let End::Host(host) = link.a else { return None };
    let way = if id.is_multiple_of(2) { "sends" } else { "receives" };
    let random = Stream::new(plan.seed, &format!("jitter/host{host}/{way}"));
    Jitter::new(plan.host.jitter_size(link.rate)?, random)
}
