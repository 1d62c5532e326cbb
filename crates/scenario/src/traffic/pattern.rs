//! Patterns: one flow a host (permutation, stride, bijection, random), and flows from a list.

use super::emitted::Emitted;
use super::poisson::other_host;
use crate::settings::flows::FlowTable;
use millpond_core::Time;
use millpond_core::random::Stream;
use millpond_core::switch::route::Attachment;
use std::sync::Arc;

/// Host h's flow to `to[h]`, in the order of the hosts.
#[derive(Clone, Debug)]
pub(crate) struct OneEach {
    pub to: Arc<[u32]>,
    pub bytes: u64,
    pub start: Time,
    pub stagger: Time,
    pub stop: Time,
    pub class: u16,
    pub next: u32,
}

impl OneEach {
    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        let src = self.next;
        let dst = *self.to.get(src as usize)?;
        let at = self.start.saturating_add(self.stagger.saturating_mul(src as u64));
        if at >= self.stop {
            return None;
        }
        self.next += 1;
        Some((at, Emitted::flow(src, dst, self.bytes, self.class)))
    }
}

/// The flows of a table, already in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub table: Arc<FlowTable>,
    pub start: Time,
    pub stop: Time,
    /// The class of flows that name none.
    pub class: u16,
    /// Class numbers of the table's classes.
    pub classes: Arc<[u16]>,
    pub next: usize,
}

impl Listed {
    pub fn next(&mut self) -> Option<(Time, Emitted)> {
        let row = self.table.rows.get(self.next)?;
        let at = self.start.saturating_add(row.start);
        if at >= self.stop {
            return None;
        }
        self.next += 1;
        let class = row.class.map_or(self.class, |c| self.classes[c as usize]);
        Some((at, Emitted::flow(row.src, row.dst, row.bytes, class)))
    }
}

/// A permutation without fixed points: one random cycle over all hosts.
pub(super) fn permutation(random: &mut Stream, hosts: u32) -> Vec<u32> {
    let mut cycle: Vec<u32> = (0..hosts).collect();
    random.shuffle(&mut cycle);
    let mut to = vec![0; hosts as usize];
    for (i, &host) in cycle.iter().enumerate() {
        to[host as usize] = cycle[(i + 1) % cycle.len()];
    }
    to
}

/// A random one-to-one map in which no host sends to its own leaf, as far as the leaves allow it:
/// where one leaf has more than half of the hosts (or all), some flows must stay, and then only
/// "not to itself" is kept.
///
/// A random permutation is repaired by swaps: each host that would stay on its leaf exchanges
/// destinations with a random host such that both leave.
pub(super) fn bijection(random: &mut Stream, hosts: u32, attachment: &Attachment) -> Vec<u32> {
    let leaf = |h: u32| attachment.hosts[h as usize].0;
    let mut sizes = std::collections::BTreeMap::<u16, usize>::new();
    for (leaf, _) in &attachment.hosts[..hosts as usize] {
        *sizes.entry(*leaf).or_default() += 1;
    }
    let mut to = permutation(random, hosts);
    if sizes.values().any(|&n| 2 * n > hosts as usize) {
        return to;
    }
    for h in 0..hosts {
        if leaf(h) != leaf(to[h as usize]) {
            continue;
        }
        // A partner is good if it does not involve this leaf on either side. There is always one:
        // at most the leaf's own hosts and as many senders to it are excluded, and h itself is in
        // both sets.
        let from = random.below(hosts as u64) as u32;
        let good = |&g: &u32| leaf(g) != leaf(h) && leaf(to[g as usize]) != leaf(h);
        if let Some(g) = (0..hosts).map(|i| (from + i) % hosts).find(good) {
            to.swap(h as usize, g as usize);
        }
    }
    to
}

/// Each host to a random other, on another leaf if asked.
pub(super) fn random(stream: &mut Stream, hosts: u32, inter_leaf: Option<&Attachment>) -> Vec<u32> {
    (0..hosts).map(|h| other_host(stream, hosts, h, inter_leaf)).collect()
}

/// By host: all others in an order of its own.
pub(super) fn shuffle(random: &mut Stream, hosts: u32) -> Vec<Vec<u32>> {
    let orders = (0..hosts).map(|h| {
        let mut order: Vec<u32> = (0..hosts).filter(|&d| d != h).collect();
        random.shuffle(&mut order);
        order
    });
    orders.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_permutation(to: &[u32]) -> bool {
        let mut seen = to.to_vec();
        seen.sort_unstable();
        seen.iter().enumerate().all(|(i, &h)| i as u32 == h)
            && to.iter().enumerate().all(|(i, &h)| i as u32 != h)
    }

    #[test]
    fn permutations_have_no_fixed_points() {
        for hosts in [2, 3, 16, 97] {
            assert!(is_permutation(&permutation(&mut Stream::new(1, "t"), hosts)));
        }
    }

    #[test]
    fn bijections_leave_their_leaf_where_they_can() {
        for (leaves, per_leaf) in [(2u16, 1u16), (2, 8), (4, 4), (8, 40), (3, 5)] {
            let hosts = (0..leaves).flat_map(|l| (0..per_leaf).map(move |p| (l, p))).collect();
            let attachment = Attachment { hosts };
            let hosts = attachment.hosts.len() as u32;
            for seed in 0..20 {
                let mut random = Stream::new(seed, "t");
                let to = bijection(&mut random, hosts, &attachment);
                assert!(is_permutation(&to));
                let leaf = |h: usize| attachment.hosts[h].0;
                assert!(
                    to.iter().enumerate().all(|(h, &d)| leaf(h) != leaf(d as usize)),
                    "{leaves} × {per_leaf}"
                );
            }
        }
        let one_leaf = Attachment { hosts: (0..6).map(|p| (0, p)).collect() };
        assert!(is_permutation(&bijection(&mut Stream::new(1, "t"), 6, &one_leaf)));
    }
}
