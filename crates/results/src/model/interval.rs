//! An interval over seeds, and what its ends are.

use serde::{Deserialize, Serialize};

/// From so many seeds on an interval means what it says: the range of five misses one time in 16,
/// that of six in 32.
pub const FEW: usize = 6;

/// What the ends of an interval are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntervalKind {
    /// The least and the most of fewer than [`FEW`] seeds.
    #[serde(rename = "range")]
    Range,
    /// The 95 % interval of the mean by the bootstrap.
    #[serde(rename = "bootstrap-95")]
    Bootstrap95,
    /// The same by the normal distribution, which the bootstrap's is for so many seeds.
    #[serde(rename = "normal-95")]
    Normal95,
    /// Every seed gave the same value, which is both ends.
    #[serde(rename = "identical")]
    Identical,
}

impl IntervalKind {
    /// As in the files.
    pub fn name(self) -> &'static str {
        match self {
            IntervalKind::Range => "range",
            IntervalKind::Bootstrap95 => "bootstrap-95",
            IntervalKind::Normal95 => "normal-95",
            IntervalKind::Identical => "identical",
        }
    }

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
    /// What they are.
    pub kind: IntervalKind,
}

/// Whether an interval lies on one side of zero.
pub fn excludes_zero(interval: [f64; 2]) -> bool {
    interval[0] > 0.0 || interval[1] < 0.0
}
