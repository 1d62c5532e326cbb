//! Messages between the workers of a switch.
//!
//! Invariant: whatever one worker has of another's came by a message; nothing is shared.

use super::node::loops::Seen;
use super::table::News;
use crate::dataplane::frame::Offload;
use crate::dataplane::mirror::Mirror;
use crate::dataplane::port::Port;
use std::sync::Arc;

/// A message of one worker to another.
pub enum Order {
    /// The first worker has opened a port: a queue of it.
    Opened {
        index: usize,
        port: Box<Port>,
        /// In bytes of IP.
        mtu: usize,
    },
    Lost(usize),
    /// Addresses: from the first worker where they are, from others where they were seen.
    Learned(Vec<News>),
    /// Probes for loops that have come in.
    Probes(Vec<Seen>),
    Blocked {
        index: usize,
        is_blocked: bool,
    },
    /// Frames for peers that the sender has no session with.
    Handed(Vec<Handed>),
    /// The port of this name is watched: its frames are shown.
    Watched(String, Mirror),
    End,
}

/// A frame that another worker sends.
pub struct Handed {
    pub peer: usize,
    /// The offload that is still to be done to it.
    pub offload: Offload,
    pub bytes: Vec<u8>,
    /// Its place among the frames that are under way, until it is sent.
    pub place: Arc<()>,
}
