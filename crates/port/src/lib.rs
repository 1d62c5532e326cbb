//! Ports of `millpond switch` for applications, over memory that both share.
//!
//! An application attaches to a port of the kind `shared` and sends and receives Ethernet frames
//! without a system call, unless one of the two sleeps. It sends by *flows*: each has a ring of its
//! own, so a flow whose receiver is slow is paused and blocks no other (Sanaee, Shahinfar, Antichi,
//! Stephens: Backdraft: a Lossless Virtual Switch that Prevents the Slow Receiver Problem, NSDI
//! 2022). No frame is lost between two such ports: a sender ahead of its receiver gets
//! [`Unsent::WouldBlock`].
//!
//! ```no_run
//! let mut port = millpond_port::Port::attach("/run/millpond/web.sock")?;
//! let frame = [0u8; 64];
//! while port.try_send(3, &frame) == Err(millpond_port::Unsent::WouldBlock) {
//!     port.wait(std::time::Duration::from_millis(100));
//! }
//! # Ok::<(), millpond_port::Error>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | `port` | attaching, waiting, attaching again |
//! | `attached` | the application's end of the memory |
//! | `host` | the switch's end, which trusts nothing that it reads there |
//! | `layout` | what lies where; both ends use it |
//! | `ring`, `memory` | rings of words; words and bytes that processes share |
//! | `channel` | the socket and the pipes |
//!
//! Invariant: a switch that goes and comes back costs what was under way, and no call: the port
//! attaches again by itself.

mod attached;
pub mod channel;
pub mod host;
pub mod layout;
pub mod memory;
mod port;
pub mod ring;
#[cfg(test)]
mod tests;

mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};

    pub const LINE: usize = 8;
}

pub use port::Port;

/// Why a port cannot be attached to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no switch is at {path}: {reason}")]
    Absent { path: String, reason: String },
    #[error("another application is attached to this port")]
    Busy,
    /// The switch does not let this user.
    #[error("the switch lets another user attach to this port")]
    Denied,
    /// The answer there is not understood.
    #[error("{0}")]
    Protocol(String),
    #[error("{what}: {reason}")]
    System { what: &'static str, reason: String },
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// The flow is paused and its ring full, it has its share of the buffers, or no switch is
    /// there.
    #[error("the flow cannot send now")]
    WouldBlock,
    /// It is longer than a buffer.
    #[error("the frame is longer than the port takes")]
    TooLong,
    #[error("the port has no such flow")]
    NoSuchFlow,
}

/// A frame that was received. Its memory is used again by the next call that is given it.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    tag: u16,
}

impl Frame {
    /// From Ethernet's destination on, without the check sequence.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Sixteen bits of a hash: equal for the frames of a flow.
    pub fn tag(&self) -> u16 {
        self.tag
    }
}
