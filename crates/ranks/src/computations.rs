//! The computations of a rank.
//!
//! Invariant: a job keeps at most [`KEPT`] of them, or one a rank, however long it is.

use millpond_core::Time;

/// Computations that the ranks of a job keep together.
const KEPT: u32 = 1 << 16;

/// The computations of a rank's part of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Computations {
    /// How long they take together, summed over cpus.
    pub total: Time,
    /// The first of them in the order of time, from when until when. Those that overlap or follow
    /// each other at once are one.
    pub spans: Vec<(Time, Time)>,
    most: usize,
}

impl Computations {
    /// None yet, of a rank of a job of so many.
    pub fn of_job(ranks: u32) -> Computations {
        Computations { most: (KEPT / ranks.max(1)).max(1) as usize, ..Computations::default() }
    }

    /// Adds one that begins no earlier than those before.
    pub fn add(&mut self, from: Time, until: Time) {
        self.total = self.total.saturating_add(until.saturating_sub(from));
        let has_room = self.spans.len() < self.most;
        match self.spans.last_mut() {
            Some((_, last)) if from <= *last => *last = until.max(*last),
            _ if has_room && from < until => self.spans.push((from, until)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_and_their_number_has_a_bound() {
        let us = Time::from_us;
        let mut of = Computations::of_job(KEPT / 3);
        for (from, until) in [(1, 3), (2, 4), (4, 5), (6, 6), (7, 9), (10, 12), (14, 15)] {
            of.add(us(from), us(until));
        }
        assert_eq!(of.spans, [(us(1), us(5)), (us(7), us(9)), (us(10), us(12))]);
        assert_eq!(of.total, us(2 + 2 + 1 + 2 + 2 + 1));
        assert_eq!(Computations::of_job(u32::MAX).most, 1);
    }
}
