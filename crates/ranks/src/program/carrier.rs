//! The requests of a program's rank to whoever carries its messages, what these cost, and what is
//! left at the end.
//!
//! Invariant: a carrier brings a message as it was sent.

use super::matching::Arrival;
use millpond_core::Time;

/// The costs of messages at a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// o: the cpu's time for a message.
    pub message: Time,
    /// O: the cpu's time for a byte.
    pub byte: Time,
    /// g: the NIC's time for a message.
    pub gap: Time,
    /// G: the NIC's time for a byte.
    pub gap_byte: Time,
    /// S: the largest message whose send does not wait for its receive. `None`: each send ends when
    /// its message has arrived, and none waits for a receive.
    pub eager: Option<u64>,
}

/// A message of a collective within a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub groups: u32,
    /// Which of its collectives, in the order of beginnings.
    pub number: u32,
    pub lane: u32,
    /// The receiver's step that waits for it.
    pub step: u32,
    pub turn: u32,
    pub bytes: u64,
}

/// Carries a rank's messages and calls it back.
pub trait Carrier {
    /// The network has a message now, which arrives as it is but for its `from`.
    fn send(&mut self, to: u32, message: Arrival);
    /// The network has a message of a collective now.
    fn send_piece(&mut self, to: u32, piece: Piece);
    /// Notifies the sender of a message that its send ends: [`Executor::matched`].
    fn match_of(&mut self, message: &Arrival);
    /// Calls [`Executor::wake`] at a time.
    fn wake(&mut self, at: Time);
}

/// The rest of a rank at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Receives that no message came for.
    pub receives: Vec<u32>,
    /// Messages that no receive took: sending rank, operation there.
    pub messages: Vec<(u32, u32)>,
    /// Sends that wait for their receive.
    pub sends: Vec<u32>,
    /// Collectives that others have not joined, or not ended.
    pub calls: Vec<u32>,
    /// Operations that never began.
    pub waiting: u32,
}
