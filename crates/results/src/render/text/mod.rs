//! Results as text, at most 100 columns wide.

pub(crate) mod reproduction;
pub(crate) mod run;
pub(crate) mod sweep;
