//! A plan's failures as its links, and the switches at their ends, see them.
//!
//! Invariant: both ends of a link learn of the same outages at the same times.

use millpond_core::Time;
use millpond_core::outages::{Outage, Outages};
use millpond_core::random::Stream;
use millpond_scenario::plan::{FailurePlan, Losable, Plan};

/// The outages of a directed link; none is empty. Directed link 2l runs from end a of link l to end
/// b, and 2l + 1 back.
pub fn outages(plan: &Plan, id: u32) -> Outages {
    let outage = |f: &FailurePlan| {
        let spares_green = f.losable == Losable::Unimportant;
        Outage { from: f.at, until: f.until, loss: f.loss, spares_green }
    };
    let failures = plan.failures.iter().filter(|f| f.link == id / 2);
    let random = Stream::new(plan.seed, &format!("link/{id}"));
    Outages::new(failures.map(outage).collect(), random)
}

/// The times from which and until which the switches at a link's ends take it to be down. Outages
/// that touch are one to them.
pub fn noticed(plan: &Plan, link: u32) -> Vec<(Time, Time)> {
    let failures = plan.failures.iter().filter(|f| f.link == link && f.is_outage());
    let known = |f: &FailurePlan| (f.at.saturating_add(f.detect), f.until.saturating_add(f.detect));
    let mut outages: Vec<(Time, Time)> = failures.map(known).collect();
    outages.sort_unstable();
    outages.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    outages
}
