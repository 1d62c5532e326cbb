//! Convergence: the routes of the whole network after links have failed or come back.
//!
//! Which links fail when is in the plan, and so is how long routes take to follow (`converge`), so
//! the routes of every time are worked out before the run, as the controller's lists are
//! (`labels.rs`). All switches change theirs at the same instant and no message is exchanged. The
//! run keeps of a change what differs: the switches whose routes do, and of these the leaves that
//! they reach otherwise.
//!
//! Invariant: the routes of any time depend on the links that are out of use then, and on nothing
//! else.

use millpond_core::Time;
use millpond_scenario::plan::{FailurePlan, Plan};
use millpond_scenario::topology::Detours;
use std::collections::BTreeSet;

#[derive(Debug)]
pub struct Epoch {
    pub from: Time,
    /// The switches whose routes are others than before, with what then differs from the topology's
    /// own.
    pub changed: Detours,
}

/// The changes of routes of a run, in the order of time.
pub fn epochs(plan: &Plan) -> Vec<Epoch> {
    let mut before = Detours::new();
    let mut epochs = Vec::new();
    for from in changes(plan) {
        let down: BTreeSet<u32> =
            plan.failures.iter().filter(|f| is_avoided(f, from)).map(|f| f.link).collect();
        let detours = plan.topology.detours(&down);
        let switches: BTreeSet<u32> = before.keys().chain(detours.keys()).copied().collect();
        let differs = |switch: &u32| before.get(switch) != detours.get(switch);
        let now = |switch: u32| (switch, detours.get(&switch).cloned().unwrap_or_default());
        let changed: Detours = switches.into_iter().filter(differs).map(now).collect();
        // Where hosts have several NICs they choose again, whatever has changed.
        if !changed.is_empty() || plan.topology.has_several_nics() {
            epochs.push(Epoch { from, changed });
        }
        before = detours;
    }
    epochs
}

/// The times within the run at which some link is left out of the routes, or comes back into them.
fn changes(plan: &Plan) -> BTreeSet<Time> {
    let outages = plan.failures.iter().filter(|f| f.is_outage());
    let known = outages.flat_map(|f| {
        f.converge.into_iter().flat_map(|delay| [f.at, f.until].map(|at| (at, delay)))
    });
    known.map(|(at, delay)| at.saturating_add(delay)).filter(|at| *at < plan.horizon).collect()
}

/// Whether routes avoid the failure's link at a time.
pub fn is_avoided(failure: &FailurePlan, at: Time) -> bool {
    let Some(delay) = failure.converge.filter(|_| failure.is_outage()) else { return false };
    failure.at.saturating_add(delay) <= at && at < failure.until.saturating_add(delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;

    fn of(failures: &[(&str, &str, &str, &str)]) -> Vec<(u64, Vec<u32>)> {
        let mut text = "duration = \"10ms\"\n[topology]\nleaves = 3\nspines = 2\nhosts-per-leaf = \
                        1\n"
        .to_string();
        for (spine, at, until, converge) in failures {
            text += &format!(
                "[[failure]]\nlink = [\"leaf0\", \"spine{spine}\"]\nat = \"{at}\"\nuntil = \
                 \"{until}\"\nconverge = \"{converge}\"\n"
            );
        }
        let plan = Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap();
        let epochs = epochs(&plan).into_iter();
        epochs.map(|it| (it.from.as_ps() / 1_000_000, it.changed.into_keys().collect())).collect()
    }

    #[test]
    fn routes_change_after_a_failure_and_after_its_repair() {
        let all = vec![0, 1, 2, 4];
        assert_eq!(of(&[("1", "2ms", "4ms", "1ms")]), [(3_000, all.clone()), (5_000, all.clone())]);
        assert_eq!(of(&[("1", "2ms", "4ms", "never")]), []);
        // For good, or with a repair that is known too late.
        assert_eq!(of(&[("1", "2ms", "off", "1ms")]), [(3_000, all.clone())]);
        assert_eq!(of(&[("1", "2ms", "9ms", "1ms")]), [(3_000, all)]);
    }

    #[test]
    fn failures_that_overlap_make_one_state() {
        // The same link twice: routes avoid it from the first knowledge to the last.
        let twice = of(&[("1", "2ms", "4ms", "1ms"), ("1", "3ms", "6ms", "1ms")]);
        assert_eq!(twice.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [3_000, 7_000]);
        // Two links of leaf 0: while both are out it is cut off, which spine 0 learns of, too.
        let both = of(&[("1", "2ms", "6ms", "1ms"), ("0", "3ms", "5ms", "1ms")]);
        let every = vec![0, 1, 2, 3, 4];
        let other = vec![0, 1, 2, 4];
        assert_eq!(
            both,
            [(3_000, other.clone()), (4_000, every.clone()), (6_000, every), (7_000, other)]
        );
    }
}
