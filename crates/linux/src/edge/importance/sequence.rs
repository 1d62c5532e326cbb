//! Sequence numbers of 32 bits as stream offsets of 64 bits.
//!
//! Invariant: an offset and its sequence number convert into each other as long as the offset lies
//! within 2 GiB of the reference, across any wrap.

/// One direction's numbers. Offset 0 is the first byte of payload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    first: u32,
}

impl Numbers {
    /// Returns the numbers of the direction whose SYN carries `isn`.
    pub fn new(isn: u32) -> Numbers {
        Numbers { first: isn.wrapping_add(1) }
    }
    /// Returns whether its SYN carries this number.
    pub fn begins_with(self, isn: u32) -> bool {
        self.first == isn.wrapping_add(1)
    }
    /// Returns the sequence number of an offset.
    pub fn wire(self, offset: u64) -> u32 {
        self.first.wrapping_add(offset as u32)
    }
    /// Returns the offset of a sequence number, the one closest to `near`; `None` before the first
    /// byte.
    pub fn offset(self, near: u64, seq: u32) -> Option<u64> {
        let distance = seq.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(distance.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_wraps_of_the_sequence_number() {
        for isn in [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, 0x1234_5678] {
            let numbers = Numbers::new(isn);
            for offset in [0u64, 5, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 34) + 77] {
                for near in [offset, offset + (1 << 30), offset.saturating_sub(1 << 30)] {
                    assert_eq!(numbers.offset(near, numbers.wire(offset)), Some(offset));
                }
            }
            assert_eq!(numbers.offset(0, isn), None, "a keep-alive before the first byte");
        }
    }
}
