//! The payload that traffic offers to links, for `check`.

use millpond_core::Time;
use std::sync::Arc;

/// The pairs between which a load runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pairing {
    /// Any two hosts, all pairs alike.
    Any,
    /// The first host is drawn, the other on another leaf; `answers`: the other sends.
    InterLeaf { answers: bool },
    /// Any host sends to this one.
    Into(u32),
}

/// The payload that a traffic offers while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub class: u16,
    pub bits_per_second: f64,
    pub pairing: Pairing,
    /// The hosts among which it runs; `None`: all.
    pub members: Option<Arc<[u32]>>,
    pub start: Time,
    pub end: Time,
    /// The size in bytes of which larger flows carry half of it; `None`: it is no steady load.
    pub half_of_bytes: Option<f64>,
}
