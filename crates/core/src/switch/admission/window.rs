//! The ranks that a port has seen last, of which one in so many is remembered (AIFO's sliding
//! window).

/// Larger windows are cut to this; it keeps the products of those who compare within 64 bits.
const SIZE_MAX: u32 = 1 << 11;

#[derive(Clone, Debug)]
pub(super) struct RankWindow {
    /// The last ranks sampled; `u32::MAX`, which no rank exceeds, where there was none yet.
    ranks: Box<[u32]>,
    next: u32,
    /// Ranks sampled so far, up to the window's size.
    held: u32,
    count: u32,
    sample_period: u32,
}

impl RankWindow {
    pub(super) fn new(size: u32, sample_period: u32) -> RankWindow {
        let size = size.clamp(1, SIZE_MAX);
        RankWindow {
            ranks: vec![u32::MAX; size as usize].into(),
            next: 0,
            held: 0,
            count: 0,
            sample_period: sample_period.max(1),
        }
    }

    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.ranks.len() as u64
    }

    #[inline]
    pub(super) fn held(&self) -> u64 {
        u64::from(self.held)
    }

    /// How many of its ranks are strictly smaller than this.
    #[inline]
    pub(super) fn below(&self, rank: u32) -> u64 {
        // A sum of 32-bit words, so that the compiler compares several at a time.
        u64::from(self.ranks.iter().map(|&seen| u32::from(seen < rank)).sum::<u32>())
    }

    /// Counts an arrival, and remembers its rank if its turn has come.
    #[inline]
    pub(super) fn note(&mut self, rank: u32) {
        if self.count == 0 {
            self.ranks[self.next as usize] = rank;
            let size = self.ranks.len() as u32;
            self.next = if self.next + 1 == size { 0 } else { self.next + 1 };
            self.held = (self.held + 1).min(size);
        }
        self.count = if self.count + 1 == self.sample_period { 0 } else { self.count + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_s_arrivals_is_sampled() {
        let mut it = RankWindow::new(4, 3);
        (1..=7).for_each(|rank| it.note(rank));
        assert_eq!(*it.ranks, [1, 4, 7, u32::MAX]);
        assert_eq!(
            [it.held(), it.size(), it.below(7), it.below(8), it.below(u32::MAX)],
            [3, 4, 2, 3, 3]
        );
    }
}
