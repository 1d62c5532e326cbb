//! Everything that is computed of records, summaries and runs: percentiles, intervals, comparisons.

pub(crate) mod bins;
pub(crate) mod by_size;
pub(crate) mod censoring;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod load_point;
pub(crate) mod numbers;
pub(crate) mod points;
pub(crate) mod resampling;
pub(crate) mod samples;
pub(crate) mod shows;
pub(crate) mod spill;
pub(crate) mod subject;
pub(crate) mod survival;
pub(crate) mod tolerance;
