//! Results as text, at most 100 columns wide.

pub(crate) mod blocks;
pub(crate) mod compare;
pub(crate) mod layout;
pub(crate) mod reproduction;
pub(crate) mod run;
pub(crate) mod sweep;
