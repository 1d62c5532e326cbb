//! The requests of a rank to whoever carries its messages.
//!
//! Invariant: a rank calls its driver only while it is called itself.

use millpond_core::Time;

/// A message from one rank to another. Carriers look at its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub bytes: u64,
    /// Of a collective within a program, the division of ranks, from 1; else 0.
    pub call: u32,
    /// The round that it belongs to; of a program, its tag, or the collective's number.
    pub round: u32,
    /// The lane; of a program, the sender's cpu and NIC.
    pub lane: u32,
    /// The receiver's step that waits for it; of a program, the sender's operation.
    pub step: u32,
    /// Of a collective, the sender's step: messages of a lane leave the host turn by turn.
    pub turn: Option<u32>,
}

/// A rank's part of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub round: u32,
    /// When the rank began it, with its computation.
    pub began: Time,
    /// When it could send its first message.
    pub ready: Time,
    /// When all messages for it were there.
    pub ended: Time,
    pub computed: Time,
    /// Its first computations after it was ready, from when until when.
    pub computations: Vec<(Time, Time)>,
}

/// The carrier of a rank's messages, which calls it back.
pub trait Driver {
    /// Sends a message to a rank of the same job, on a channel. Messages of one channel to one rank
    /// arrive in this order. Of a lane's messages, one of a later turn begins to leave when the
    /// host has sent the last byte of the one before.
    fn send(&mut self, to: u32, channel: u32, message: Message);
    /// Calls the rank's `wake` at a time.
    fn wake(&mut self, at: Time);
    /// The rank has ended its part of a round.
    fn ended(&mut self, span: Span);
    /// Notifies a rank of the same job that its send, this operation of its program, is matched.
    fn matched(&mut self, sender: u32, operation: u32);
}
