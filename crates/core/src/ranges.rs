//! A set of byte ranges: what a receiver holds out of order, what a sender has reports of, and
//! which bytes went out unprotected.
//!
//! Invariant: ranges are sorted, not empty, and neither overlap nor touch.

use std::collections::VecDeque;

/// Half-open ranges `[from, to)` of stream offsets.
#[derive(Clone, Debug, Default)]
pub struct Ranges(VecDeque<(u64, u64)>);

impl Ranges {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges `[from, to)`, in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Where the highest range ends.
    pub fn end(&self) -> Option<u64> {
        self.0.back().map(|r| r.1)
    }

    /// Index of the first range that ends after `at`.
    fn after(&self, at: u64) -> usize {
        self.0.partition_point(|r| r.1 <= at)
    }

    /// The range that `at` lies in.
    pub fn around(&self, at: u64) -> Option<(u64, u64)> {
        self.0.get(self.after(at)).copied().filter(|r| r.0 <= at)
    }

    /// Adds `[from, to)`; returns how many of its bytes are new.
    pub fn insert(&mut self, from: u64, to: u64) -> u64 {
        debug_assert!(from < to);
        // Most often the newest range grows, or a new one opens above it.
        if let Some(last) = self.0.back_mut()
            && from >= last.0
        {
            if from > last.1 {
                self.0.push_back((from, to));
                return to - from;
            }
            let added = to.saturating_sub(last.1);
            last.1 = last.1.max(to);
            return added;
        }
        self.insert_below(from, to)
    }

    fn insert_below(&mut self, from: u64, to: u64) -> u64 {
        let first = self.0.partition_point(|r| r.1 < from);
        let last = self.0.partition_point(|r| r.0 <= to);
        if first == last {
            self.0.insert(first, (from, to));
            return to - from;
        }
        let known: u64 = self.0.range(first..last).map(|r| r.1 - r.0).sum();
        let merged = (self.0[first].0.min(from), self.0[last - 1].1.max(to));
        self.0[first] = merged;
        self.0.drain(first + 1..last);
        merged.1 - merged.0 - known
    }

    /// Forgets what is below `at`; returns how many bytes that were.
    pub fn remove_below(&mut self, at: u64) -> u64 {
        let mut removed = 0;
        while let Some(first) = self.0.front_mut() {
            if first.1 > at {
                if first.0 < at {
                    removed += at - first.0;
                    first.0 = at;
                }
                break;
            }
            removed += first.1 - first.0;
            self.0.pop_front();
        }
        removed
    }

    /// Removes `[from, to)`; a range that holds it is cut.
    pub fn remove(&mut self, from: u64, to: u64) {
        let first = self.after(from);
        let last = self.0.partition_point(|r| r.0 < to);
        if first >= last {
            return;
        }
        let (low, high) = (self.0[first].0, self.0[last - 1].1);
        self.0.drain(first..last);
        if high > to {
            self.0.insert(first, (to, high));
        }
        if low < from {
            self.0.insert(first, (low, from));
        }
    }

    /// The range with the lowest start, if there is one.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.0.front().copied()
    }

    /// Bytes held below `at`.
    pub fn sum_below(&self, at: u64) -> u64 {
        self.iter().take_while(|r| r.0 < at).map(|r| r.1.min(at) - r.0).sum()
    }

    /// The first hole at or above `at`, which ends at `limit` if no range ends it; empty where
    /// there is none.
    pub fn hole(&self, at: u64, limit: u64) -> (u64, u64) {
        let mut i = self.after(at);
        let from = match self.0.get(i) {
            Some(r) if r.0 <= at => {
                i += 1;
                r.1
            }
            _ => at,
        };
        (from, self.0.get(i).map_or(limit, |r| r.0).max(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_merge_and_holes_are_found() {
        let mut r = Ranges::default();
        assert_eq!((r.insert(10, 20), r.insert(30, 40), r.insert(20, 25)), (10, 10, 5));
        assert_eq!(r.iter().collect::<Vec<_>>(), [(10, 25), (30, 40)]);
        assert_eq!(
            (r.hole(0, 50), r.hole(12, 50), r.hole(35, 50), r.hole(60, 60)),
            ((0, 10), (25, 30), (40, 50), (60, 60))
        );
        assert_eq!((r.sum_below(32), r.around(24), r.around(25)), (17, Some((10, 25)), None));
        assert_eq!(r.insert(5, 35), 10);
        assert_eq!((r.remove_below(7), r.end()), (2, Some(40)));
    }

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(
            ops in prop::collection::vec((0u64..60, 1u64..12, any::<bool>()), 1..40),
        ) {
            let (mut ranges, mut bits) = (Ranges::default(), [false; 80]);
            for (from, len, remove) in ops {
                if remove && len > 6 {
                    bits[from as usize..(from + len) as usize].fill(false);
                    ranges.remove(from, from + len);
                } else if remove && len == 1 {
                    let held = bits[..from as usize].iter().filter(|b| **b).count() as u64;
                    bits[..from as usize].fill(false);
                    prop_assert_eq!(ranges.remove_below(from), held);
                } else {
                    let slice = &mut bits[from as usize..(from + len) as usize];
                    let added = slice.iter().filter(|b| !**b).count() as u64;
                    slice.fill(true);
                    prop_assert_eq!(ranges.insert(from, from + len), added);
                }
                let held = |at: u64| bits[..at as usize].iter().filter(|b| **b).count() as u64;
                for at in 0..80 {
                    prop_assert_eq!(ranges.sum_below(at), held(at));
                    let next = (at..80).find(|&i| !bits[i as usize]).unwrap_or(80);
                    let stop = (next..80).find(|&i| bits[i as usize]).unwrap_or(80);
                    prop_assert_eq!(ranges.hole(at, 80), (next, stop));
                }
                let list: Vec<_> = ranges.iter().collect();
                prop_assert!(
                    list.windows(2).all(|w| w[0].1 < w[1].0) && list.iter().all(|r| r.0 < r.1)
                );
            }
        }
    }
}
