//! The edge on real frames: what `millpond_core::edge` decides, done to bytes.
//!
//! | file | what it does |
//! |---|---|
//! | `packet` | a packet on its way: headers of its own, payload in a shared buffer |
//! | `flow` | which flow a packet belongs to, and what must be equal for two to merge |
//! | `sender` | stamps, cuts and encapsulates what is for a peer |
//! | `receiver` | merges what comes from a peer, and hands it to the switch |
//!
//! Follows Presto (He, Rozner, Agarwal, Felter, Carter, Akella: Presto: Edge-based Load Balancing for Fast Datacenter Networks,
//! SIGCOMM 2015).
//!
//! Invariant: payload is not copied between the port that it is read from and the port or path that it is written to.

pub mod flow;
pub mod packet;
pub mod receiver;
pub mod sender;

#[cfg(test)]
mod tests;

pub use flow::{FlowKey, Keys};
pub use packet::Packet;
pub use receiver::Receiver;
pub use sender::{Carrier, Sender};
