//! Label schedules: *which label does the flow's next flowcell get?*
//!
//! Section 3.1 of Presto (SIGCOMM 2015). A list of labels is a controller's; repeating labels in it
//! gives them weight. A flow remembers its place in the list and nothing else, so a list can be
//! replaced under it.
//!
//! Invariant: over each whole turn of the list a flow gets every entry once, except with
//! [`Order::Random`].

use crate::random::Stream;

/// The longest list that is worked with, and the most entries that weights are turned into are
/// [`WEIGHTED_MAX`].
pub const LABELS_MAX: usize = 256;
/// The longest list that [`weighted`] gives, if there are no more labels than that.
pub const WEIGHTED_MAX: u64 = 64;

crate::choice! {
    /// In which order a flow goes through its labels.
    pub enum Order {
        /// One after the other.
        RoundRobin = "round-robin",
        /// Each drawn by itself.
        Random = "random",
        /// Turn by turn, each turn in a random order.
        Shuffled = "shuffled",
    }
}

/// A flow's place in its list of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    place: u32,
    /// Of the present turn, where turns are shuffled.
    key: u64,
}

impl Turn {
    /// A flow's first place; `key` is a random number of the flow's own, of which its schedule is
    /// made. With `is_first` it is the head of the list: flows that begin together then go through
    /// the labels in phase.
    pub fn new(key: u64, is_first: bool) -> Turn {
        Turn { place: if is_first { 0 } else { (key >> 32) as u32 }, key }
    }

    /// On to the next label.
    #[inline]
    pub fn advance(&mut self, order: Order, labels: usize) {
        let labels = labels.clamp(1, LABELS_MAX) as u32;
        match order {
            Order::RoundRobin => self.place = (self.place % labels + 1) % labels,
            Order::Random => {
                let mut random = Stream::from_key(self.key);
                self.place = random.below(u64::from(labels)) as u32;
                self.key = random.bits();
            }
            Order::Shuffled => {
                self.place = (self.place % labels + 1) % labels;
                if self.place == 0 {
                    self.key = Stream::from_key(self.key).bits();
                }
            }
        }
    }

    /// The present label. The list must not be empty.
    #[inline]
    pub fn label(&self, order: Order, labels: &[u16]) -> u16 {
        labels[self.entry(order, labels.len())]
    }

    /// The place of the present label in a list of so many, at least one.
    #[inline]
    pub fn entry(&self, order: Order, labels: usize) -> usize {
        let count = labels.min(LABELS_MAX);
        let place = self.place as usize % count;
        match order {
            Order::RoundRobin | Order::Random => place,
            Order::Shuffled => shuffled(self.key, count, place),
        }
    }
}

/// Entry `place` of the permutation of `0..count` that `key` stands for. Once a flowcell, so it is
/// worked out anew.
fn shuffled(key: u64, count: usize, place: usize) -> usize {
    let mut entries = [0u16; LABELS_MAX];
    let entries = &mut entries[..count];
    entries.iter_mut().enumerate().for_each(|(i, entry)| *entry = i as u16);
    Stream::from_key(key).shuffle(entries);
    usize::from(entries[place])
}

/// A list in which each label comes as often as its weight, spread evenly (smooth weighted
/// round robin). Weights are whole numbers in any unit; those that are 0 are left out, and where
/// the least common unit needs more than [`WEIGHTED_MAX`] entries they are rounded, to no less than
/// one. In order of `labels` where weights are equal.
pub fn weighted(labels: &[(u16, u64)]) -> Vec<u16> {
    let labels: Vec<(u16, u64)> =
        labels.iter().copied().filter(|(_, weight)| *weight > 0).collect();
    let unit = labels.iter().fold(0, |unit, (_, weight)| greatest_common_divisor(unit, *weight));
    let total: u128 = labels.iter().map(|(_, weight)| u128::from(*weight / unit.max(1))).sum();
    let entries = WEIGHTED_MAX.max(labels.len() as u64);
    let count = |weight: u64| match total <= u128::from(entries) {
        true => (weight / unit) as i64,
        false => {
            let share = u128::from(weight / unit) * u128::from(entries);
            (((share + total / 2) / total) as i64).max(1)
        }
    };
    let counts: Vec<i64> = labels.iter().map(|(_, weight)| count(*weight)).collect();
    let all: i64 = counts.iter().sum();
    let mut current = vec![0; labels.len()];
    let mut list = Vec::with_capacity(all as usize);
    for _ in 0..all {
        current.iter_mut().zip(&counts).for_each(|(current, count)| *current += count);
        // The first of the largest.
        let most = current.iter().copied().max().unwrap_or(0);
        let next = current.iter().position(|it| *it == most).unwrap_or(0);
        current[next] -= all;
        list.push(labels[next].0);
    }
    list
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(order: Order, labels: &[u16], steps: usize) -> Vec<u16> {
        let mut turn = Turn::new(7, true);
        let step = |_| {
            let label = turn.label(order, labels);
            turn.advance(order, labels.len());
            label
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn round_robin_goes_round() {
        assert_eq!(walk(Order::RoundRobin, &[5, 6, 7], 7), [5, 6, 7, 5, 6, 7, 5]);
    }

    #[test]
    fn shuffled_turns_hold_every_label_once_and_differ() {
        let walked = walk(Order::Shuffled, &[0, 1, 2, 3, 4, 5], 60);
        for turn in walked.chunks(6) {
            let mut sorted = turn.to_vec();
            sorted.sort();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(walked.chunks(6).any(|turn| turn != &walked[..6]));
    }

    #[test]
    fn random_is_uniform_and_flows_begin_anywhere() {
        let mut counts = [0u32; 4];
        walk(Order::Random, &[0, 1, 2, 3], 40_000)
            .iter()
            .for_each(|label| counts[usize::from(*label)] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        let mut random = Stream::new(1, "t");
        let mut counts = [0u32; 4];
        for _ in 0..40_000 {
            let turn = Turn::new(random.bits(), false);
            counts[usize::from(turn.label(Order::RoundRobin, &[0, 1, 2, 3]))] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_list_may_be_replaced_under_a_flow() {
        let mut turn = Turn::new(0xFFFF_FFFF_0000_0001, false);
        for labels in [&[1, 2, 3][..], &[9], &[4, 5]] {
            assert!(labels.contains(&turn.label(Order::RoundRobin, labels)));
            turn.advance(Order::RoundRobin, labels.len());
        }
    }

    #[test]
    fn weights_are_repeated_labels() {
        assert_eq!(weighted(&[(0, 10), (1, 10), (2, 10)]), [0, 1, 2]);
        // The published example has the weights 1/4, 1/2, 1/4; the order within the turn is the
        // schedule's.
        assert_eq!(weighted(&[(1, 25), (2, 50), (3, 25)]), [2, 1, 3, 2]);
        assert_eq!(weighted(&[(0, 5), (1, 1), (2, 1)]), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(weighted(&[(0, 3), (1, 0), (2, 3)]), [0, 2], "nothing goes over a dead tree");
        assert_eq!(weighted(&[(0, 0)]), []);
        let list = weighted(&[
            (0, 10_000_000_000),
            (1, 10_000_000_000),
            (2, 10_000_000_000),
            (3, 2_000_000_000),
        ]);
        let counts = |label| list.iter().filter(|it| **it == label).count();
        assert_eq!([0, 1, 2, 3].map(counts), [5, 5, 5, 1]);
    }

    /// As often as the weight says, to one entry; and never far from it in any stretch of the list.
    fn are_kept(weights: &[u64]) {
        let labels: Vec<(u16, u64)> =
            weights.iter().enumerate().map(|(i, weight)| (i as u16, *weight)).collect();
        let list = weighted(&labels);
        let total: u64 = weights.iter().sum();
        assert_eq!(list.is_empty(), total == 0);
        assert!(list.len() <= WEIGHTED_MAX as usize + weights.len());
        for (label, weight) in &labels {
            let count = list.iter().filter(|it| *it == label).count() as f64;
            let share = |entries: f64| *weight as f64 / total.max(1) as f64 * entries;
            // A label worth less than an entry has one all the same, so a list that is rounded may
            // be longer than it should be.
            let off = [list.len() as f64, WEIGHTED_MAX as f64]
                .map(|entries| (count - share(entries)).abs());
            assert!(off[0] < 1e-9 || off[1] <= 1.0, "{weights:?}: {count}, off by {off:?}");
            assert_eq!(count == 0.0, *weight == 0);
            for upto in 0..list.len() {
                let seen = list[..upto].iter().filter(|it| *it == label).count() as f64;
                assert!(
                    (seen - count * upto as f64 / list.len() as f64).abs() <= labels.len() as f64
                );
            }
        }
    }

    #[test]
    fn a_large_weight_beside_many_small_ones_is_kept() {
        are_kept(&[999, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    proptest! {
        #[test]
        fn weights_are_kept_everywhere(weights in prop::collection::vec(0u64..1_000, 1..12)) {
            are_kept(&weights);
        }
    }
}
