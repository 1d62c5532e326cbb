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
        /// Its place.
        index: usize,
        /// The queue.
        port: Box<Port>,
        /// In bytes of IP.
        mtu: usize,
    },
    /// The port's interface is gone.
    Lost(usize),
    /// Addresses: from the first worker where they are, from others where they were seen.
    Learned(Vec<News>),
    /// Probes for loops that have come in.
    Probes(Vec<Seen>),
    /// Whether a port is blocked.
    Blocked {
        /// Its place.
        index: usize,
        /// Whether it is.
        is_blocked: bool,
    },
    /// Frames for peers that the sender has no session with.
    Handed(Vec<Handed>),
    /// The port of this name is watched: its frames are shown.
    Watched(String, Mirror),
    /// To end.
    End,
}

/// A frame that another worker sends.
pub struct Handed {
    /// To which peer.
    pub peer: usize,
    /// The offload that is still to be done to it.
    pub offload: Offload,
    /// The frame.
    pub bytes: Vec<u8>,
    /// Its place among the frames that are under way, until it is sent.
    pub place: Arc<()>,
}
