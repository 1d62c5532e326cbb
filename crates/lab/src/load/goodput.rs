//! Bytes that receiving applications have read, by class, at each multiple of a period.
//!
//! Invariant: a sample has all bytes that were read before its time, and no others, in whatever
//! order they are added.

use millpond_core::Time;

/// Samples of what has been read.
pub(super) struct Goodput {
    /// From one sample to the next; `None`: there are none.
    period: Option<Time>,
    classes: usize,
    /// By period and class: bytes read within it.
    read: Vec<Vec<u64>>,
}

impl Goodput {
    /// Without a period it takes no samples.
    pub fn new(period: Option<Time>, classes: usize) -> Goodput {
        Goodput { period, classes, read: Vec::new() }
    }

    /// Bytes of a class were read at `now`.
    pub fn add(&mut self, now: Time, class: u16, bytes: u64) {
        let Some(period) = self.period else { return };
        let at = (now.as_ps() / period.as_ps()) as usize;
        if self.read.len() <= at {
            self.read.resize(at + 1, vec![0; self.classes]);
        }
        self.read[at][usize::from(class)] += bytes;
    }

    /// All samples of a run that ends at `end`: of each, the bytes by class since the beginning.
    pub fn finish(self, end: Time) -> Vec<Vec<u64>> {
        let Some(period) = self.period else { return Vec::new() };
        let mut sum = vec![0; self.classes];
        let mut samples = Vec::new();
        for at in 0..(end.as_ps() / period.as_ps()) as usize {
            let read = self.read.get(at).into_iter().flatten();
            sum.iter_mut().zip(read).for_each(|(sum, read)| *sum += read);
            samples.push(sum.clone());
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_was_read_before_it() {
        let us = Time::from_us;
        let mut goodput = Goodput::new(Some(us(10)), 2);
        goodput.add(us(35), 0, 1);
        goodput.add(us(3), 0, 5);
        goodput.add(us(10), 1, 7);
        assert_eq!(goodput.finish(us(40)), [[5, 0], [5, 7], [5, 7], [6, 7]]);
        assert!(Goodput::new(None, 1).finish(us(40)).is_empty());
    }
}
