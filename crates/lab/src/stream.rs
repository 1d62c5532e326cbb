//! A stream's 32-bit sequence numbers as offsets that never wrap.
//!
//! Invariant: an offset is at most 2^31 from the one before it.

/// Offsets of one direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    last: u64,
}

impl Offsets {
    /// Beginning with this number.
    pub fn new(seq: u32) -> Offsets {
        // One cycle in, so that what comes before it has an offset, too.
        Offsets { last: (1 << 32) + u64::from(seq) }
    }

    /// The latest offset.
    pub fn now(&self) -> u64 {
        self.last
    }

    /// The offset of a number, which is the nearest to the latest.
    pub fn of(&mut self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.last as u32) as i32;
        let offset = self.last.saturating_add_signed(ahead.into());
        self.last = self.last.max(offset);
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn offsets_follow_numbers_across_their_wrap(
            first in any::<u32>(),
            steps in proptest::collection::vec(-60_000i64..1_000_000_000, 1..50),
        ) {
            let mut offsets = Offsets::new(first);
            let (mut at, mut most) = (0i64, 0i64);
            for step in steps {
                at = (most + step).max(-60_000);
                let got = offsets.of(first.wrapping_add(at as u32));
                prop_assert_eq!(got as i64 - (1i64 << 32) - i64::from(first), at);
                most = most.max(at);
            }
            prop_assert!(at <= most);
        }
    }
}
