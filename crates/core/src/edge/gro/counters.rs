//! Counters of receive offload.

use super::*;

/// The counts of a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments released, by [`Cause`].
    pub segments: [u64; Cause::ALL.len()],
    /// Packets in them.
    pub packets: u64,
    pub bytes: u64,
    /// Segments that were kept beyond the poll in which they came.
    pub held: u64,
    /// Of them, those whose gap filled.
    pub filled: u64,
    /// How long those had waited: the sum, and the longest.
    pub filled_wait: (Time, Time),
    /// Times that a flow's expected delay was doubled since it had only timed out.
    pub doubled: u64,
    /// Flows forgotten because they were idle.
    pub evicted: u64,
    /// The most payload that was kept beyond a poll.
    pub held_bytes_max: u64,
    /// Segments with payload by its size, in whole KiB.
    pub by_kib: Sizes,
}

/// A count for each size from 0 to 63 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes(pub [u64; 64]);

impl Default for Sizes {
    fn default() -> Self {
        Sizes([0; 64])
    }
}

impl Counters {
    #[inline]
    pub(super) fn count(&mut self, cause: Cause, packets: usize, bytes: u32) {
        self.segments[cause as usize] += 1;
        self.packets += packets as u64;
        self.bytes += u64::from(bytes);
        self.by_kib.0[(bytes >> 10) as usize & 63] += u64::from(bytes > 0);
    }
    /// Adds the counts of another queue.
    pub fn merge(&mut self, other: &Counters) {
        self.segments.iter_mut().zip(&other.segments).for_each(|(mine, its)| *mine += its);
        self.by_kib.0.iter_mut().zip(&other.by_kib.0).for_each(|(mine, its)| *mine += its);
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.held += other.held;
        self.filled += other.filled;
        let (sum, longest) = other.filled_wait;
        self.filled_wait =
            (self.filled_wait.0.saturating_add(sum), self.filled_wait.1.max(longest));
        self.doubled += other.doubled;
        self.evicted += other.evicted;
        self.held_bytes_max = self.held_bytes_max.max(other.held_bytes_max);
    }
    /// A gap filled after this long.
    pub(super) fn filled(&mut self, waited: Time) {
        self.filled += 1;
        self.filled_wait =
            (self.filled_wait.0.saturating_add(waited), self.filled_wait.1.max(waited));
    }
    /// By name: segments by why they were released, and what held them.
    pub fn report(&self, named: &mut Named) {
        for cause in Cause::ALL.into_iter().filter(|cause| self.of(*cause) > 0) {
            named.add(format!("segments-{}", cause.name()), self.of(cause));
        }
        let (waited, longest) = self.filled_wait;
        named.add("packets", self.packets);
        named.add("bytes", self.bytes);
        named.add("held", self.held);
        named.add("filled", self.filled);
        named.add(
            "filled-wait-mean-us",
            Count::Mean(u128::from(waited.as_ps()), self.filled * Time::from_us(1).as_ps()),
        );
        named.add("filled-wait-max-us", Count::Max(longest.as_ps() / Time::from_us(1).as_ps()));
        named.add("doubled", self.doubled);
        named.add("held-bytes-max", Count::Max(self.held_bytes_max));
        named.add("segment-median-kib", Count::Median(self.by_kib.0.to_vec()));
    }
    pub fn of(&self, cause: Cause) -> u64 {
        self.segments[cause as usize]
    }
}
