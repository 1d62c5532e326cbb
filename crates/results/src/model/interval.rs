//! An interval over seeds, and what its ends are.

use crate::model::words::words;

/// From so many seeds on an interval holds its percentage: the range of five misses one time in 16,
/// that of six in 32.
pub const FEW: usize = 6;

words! {
    /// The kind of an interval's ends.
    pub enum IntervalKind {
        /// The least and the most of fewer than [`FEW`] seeds.
        Range = "range",
        /// The 95 % interval of the mean by the bootstrap.
        Bootstrap95 = "bootstrap-95",
        /// The same by the normal distribution, which the bootstrap's is for so many seeds.
        Normal95 = "normal-95",
        /// Every seed gave the same value, which is both ends.
        Identical = "identical",
    }
}

impl IntervalKind {
    /// As in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            IntervalKind::Range => "range of the seeds",
            IntervalKind::Bootstrap95 | IntervalKind::Normal95 => "95 % interval",
            IntervalKind::Identical => "identical in every seed",
        }
    }
}

/// An interval, with what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower and the upper end.
    pub ends: [f64; 2],
    /// Their kind.
    pub kind: IntervalKind,
}

/// Whether an interval lies on one side of zero.
pub fn excludes_zero(interval: [f64; 2]) -> bool {
    interval[0] > 0.0 || interval[1] < 0.0
}
