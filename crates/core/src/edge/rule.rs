//! Rules of a sending edge: when a flowcell ends, and which label the next one takes.

use super::plb::PlbRule;
use super::schedule::Order;
use crate::units::Time;

/// The event that opens the next flowcell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// More bytes than this.
    Bytes(u64),
    Gap(Time),
    Congestion(PlbRule),
}

/// The rule that a host's flows share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The event that opens the next flowcell.
    pub opening: Opening,
    /// In which order a flow takes its labels.
    pub order: Order,
    /// Whether flows begin with the first label rather than a random one.
    pub is_first: bool,
}
