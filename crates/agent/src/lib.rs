//! Parts of a host's first process in world `virtual` that others have, too: its messages (`wire`),
//! and the sockets of a load (`socket`).

pub mod socket;
pub mod wire;
