//! Latencies and byte counts over time, and what may be said of them. Percentiles are exact
//! (nearest rank over all samples), and one is reported only where at least [`MIN_EXCEEDING`]
//! samples lie beyond it: a p99.9 of a hundred samples is their maximum under another name.

/// How many samples must lie beyond a percentile for it to be reported.
pub const MIN_EXCEEDING: usize = 10;

/// The percentile at `per_mille` thousandths of sorted samples, or none where fewer than
/// [`MIN_EXCEEDING`] lie beyond it.
pub fn percentile(sorted: &[u64], per_mille: usize) -> Option<u64> {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    if rank == 0 || sorted.len() - rank < MIN_EXCEEDING {
        return None;
    }
    Some(sorted[rank - 1])
}

/// Bytes that arrived, by the millisecond.
#[derive(Debug, Default, Clone)]
pub struct Arrivals {
    bins: Vec<u64>,
}

impl Arrivals {
    /// Counts bytes that arrived `at_ms` after the window's start.
    pub fn add(&mut self, at_ms: u64, bytes: u64) {
        let at = at_ms as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, 0);
        }
        self.bins[at] += bytes;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        if other.bins.len() > self.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (sum, more) in self.bins.iter_mut().zip(&other.bins) {
            *sum += more;
        }
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The most bytes in any 1,000 consecutive milliseconds; none of a window shorter than a
    /// second.
    pub fn max_second(&self, window_ms: u64) -> Option<u64> {
        const SECOND: usize = 1000;
        if (window_ms as usize) < SECOND {
            return None;
        }
        let mut sum = 0;
        let mut most = 0;
        for (i, bytes) in self.bins.iter().enumerate() {
            sum += bytes;
            if i >= SECOND {
                sum -= self.bins[i - SECOND];
            }
            most = most.max(sum);
        }
        Some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let samples = |n: u64| (1..=n).collect::<Vec<_>>();
        assert_eq!(percentile(&samples(19), 500), None);
        assert_eq!(percentile(&samples(20), 500), Some(10));
        assert_eq!(percentile(&samples(999), 990), None);
        assert_eq!(percentile(&samples(1000), 990), Some(990));
        assert_eq!(percentile(&samples(9_999), 999), None);
        assert_eq!(percentile(&samples(10_000), 999), Some(9_990));
        assert_eq!(percentile(&[], 500), None);
    }

    #[test]
    fn the_fullest_second_is_found_wherever_it_begins() {
        let mut arrivals = Arrivals::default();
        for ms in 0..3000 {
            arrivals.add(ms, if (700..1700).contains(&ms) { 3 } else { 1 });
        }
        assert_eq!(arrivals.max_second(3000), Some(3000));
        assert_eq!(arrivals.total(), 5000);
        assert_eq!(arrivals.max_second(999), None);
    }

    #[test]
    fn merged_arrivals_add_up() {
        let mut one = Arrivals::default();
        one.add(5, 10);
        let mut two = Arrivals::default();
        two.add(5, 1);
        two.add(2000, 7);
        one.merge(&two);
        assert_eq!(one.total(), 18);
        assert_eq!(one.max_second(2001), Some(11));
    }
}
