//! The flows of about one size.

use serde::{Deserialize, Serialize};

/// The statistics of the flows of about one size. Values are those of the completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeBin {
    /// They have more bytes.
    pub above_bytes: u64,
    /// And not more than so many.
    pub to_bytes: u64,
    pub completed: u64,
    pub unfinished: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

impl SizeBin {
    /// Where a chart of sizes has it: amid its edges, logarithmically.
    pub(crate) fn middle(&self) -> f64 {
        middle(self.above_bytes as f64, self.to_bytes as f64)
    }
}

/// Amid two edges of a bin, logarithmically.
pub(crate) fn middle(above: f64, to: f64) -> f64 {
    // The lowest bin begins at nothing, whose logarithm is none: its sizes are taken for its upper
    // edge.
    if above < 1.0 { to.max(1.0) } else { libm::sqrt(above * to) }
}
