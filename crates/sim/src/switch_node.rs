//! A switch of a partition, and its place in it.

use millpond_core::switch::Switch;

/// A switch, and where its ports' out-links begin.
pub struct SwitchNode {
    pub switch: Switch,
    pub first: u32,
    /// Its number in the whole network.
    pub index: u32,
    /// Its cell.
    pub cell: u32,
}
