//! The longest round trip of the empty network: what a window must cover so that any two hosts can
//! use their links.
//!
//! Invariant: no pair of hosts has a longer one over its fastest way, whatever their jitter.

use super::Topology;
use millpond_core::{Rate, Time};

impl Topology {
    /// The longest time from when a packet of `there` bytes on the wire leaves a host until an
    /// answer of `back` bytes is there, where hosts add up to `late` to each passage of a link of
    /// theirs.
    pub fn longest_round_trip(&self, there: u64, back: u64, late: impl Fn(Rate) -> Time) -> Time {
        let leaves = self.leaves();
        let mut access = vec![Time::ZERO; self.switches.len()];
        for (address, link) in (0..).zip(self.host_links()) {
            let passage = |size| link.rate.transmission_time(size) + link.delay + late(link.rate);
            let leaf = &mut access[self.leaf_of(address) as usize];
            *leaf = (*leaf).max(passage(there) + passage(back));
        }
        // In a regular network the ways from one leaf are those from any.
        let origins = if self.is_regular { 1.min(leaves) } else { leaves };
        let mut longest = Time::ZERO;
        for from in 0..origins {
            let (go, come) = (self.soonest(from, None, there).0, self.soonest(from, None, back).0);
            for to in (0..leaves as usize).filter(|to| go[*to] < Time::MAX) {
                longest = longest.max(access[from as usize] + access[to] + go[to] + come[to]);
            }
        }
        longest
    }

    /// The most switches on a shortest way between two hosts.
    pub(crate) fn most_switches(&self) -> u32 {
        let leaves = self.leaves();
        let origins = if self.is_regular { 1.min(leaves) } else { leaves };
        let steps = (0..origins).flat_map(|from| {
            let steps = self.flood(from, |_, _| true);
            steps.into_iter().take(leaves as usize).flatten()
        });
        steps.map(|step| step.count + 1).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn longest(topology: &str, late: Time) -> Time {
        let text = format!(
            "name = \"r\"\nduration = \"1ms\"\n[topology]\n{topology}\n[[traffic]]\nkind = \
             \"permutation\"\nsize = 1000\n"
        );
        let plan = Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
        plan.topology.longest_round_trip(1000, 100, |_| late)
    }

    #[test]
    fn switches_between_hosts() {
        let most = |topology: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\n{topology}\n[[traffic]]\nkind = \"permutation\"\n"
            );
            Scenario::parse("test", &text)
                .unwrap()
                .plan(None, &[], None)
                .unwrap()
                .topology
                .most_switches()
        };
        let kinds = ["single-switch", "dumbbell", "leaf-spine", "fat-tree"];
        assert_eq!(kinds.map(|kind| most(&format!("kind = \"{kind}\""))), [1, 2, 3, 5]);
    }

    /// By hand, at 40 Gb/s: 200 ns for a packet and 20 for its answer over each of four links, and
    /// eight delays of 1 us. Hosts add to four passages.
    #[test]
    fn two_tiers() {
        let topology = "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts-per-leaf = \
                        2\nhost-link = { rate = \"40Gbps\", delay = \"1us\" }\nfabric-link = { \
                        rate = \"40Gbps\", delay = \"1us\" }";
        assert_eq!(longest(topology, Time::ZERO), Time::from_ns(8 * 1000 + 4 * 220));
        assert_eq!(longest(topology, Time::from_ns(50)), Time::from_ns(8 * 1000 + 4 * 220 + 200));
    }

    #[test]
    fn one_switch() {
        let topology = "kind = \"single-switch\"\nhosts = 3\nhost-link = { rate = \"10Gbps\", \
                        delay = \"2us\" }";
        assert_eq!(longest(topology, Time::ZERO), Time::from_ns(4 * 2000 + 2 * 880));
    }
}
