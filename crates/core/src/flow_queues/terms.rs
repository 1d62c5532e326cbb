//! The inputs and outputs of flow queues.
//!
//! Invariant: no term refers to how queues are kept.

use crate::units::{Bytes, Time};

/// The settings of a port's flow queues.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub segments: u64,
    /// Segments for flows that were asked to pause ([`super::headroom::segments`]).
    pub headroom_segments: u64,
    /// Segments that only control packets may take, one for each port that is attached.
    pub reserved: u64,
    /// Bytes that anybody may take.
    pub bytes: Bytes,
    /// Bytes for flows that were asked to pause ([`super::headroom::Loop`]).
    pub headroom: Bytes,
    pub max_queues: u32,
    /// A queue may have this many eighths of the shared bytes that are left.
    pub alpha_eighths: u64,
    /// A full packet.
    pub mtu: u32,
    /// Packets that a poll takes.
    pub batch: u32,
    /// Packets at which a queue is asked to pause, however much memory is left.
    pub cap: u32,
    /// Bytes that a queue may send in its turn; at least the largest packet, so that each turn
    /// sends.
    pub quantum: u32,
    /// An empty queue is kept for so long.
    pub idle: Time,
    /// From a pause of a flow until nothing more of it arrives.
    pub feedback: Time,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            segments: 16_384,
            headroom_segments: 1_024,
            reserved: 16,
            bytes: Bytes(64 << 20),
            headroom: Bytes(1 << 20),
            max_queues: 4_096,
            alpha_eighths: 8,
            mtu: 1_500,
            batch: 32,
            cap: 4_096 / 8 * 7,
            quantum: 1_500,
            idle: Time::from_ms(100),
            feedback: Time::from_us(20),
        }
    }
}

/// A packet's class in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Waits while its flow is paused.
    Data,
    /// An acknowledgement, which a newer one makes superfluous.
    Ack,
    /// A handshake, a window update, a grant: exempt from pause, and none makes up for another.
    Control,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<F, P> {
    /// Its flow's identity, and a hash of that.
    pub flow: F,
    pub hash: u32,
    pub packet: P,
    /// Its length in bytes.
    pub len: u32,
    pub class: Class,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<P> {
    Queued,
    /// It waits in the place of an older acknowledgement, which the driver frees.
    Coalesced(P),
    /// There is no memory: it stays with the driver, who takes no more from where it came from.
    Hold,
}

/// How far memory is exhausted, and what the driver is to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    Calm,
    /// There is none; the longest queues were asked to pause.
    Flows,
    /// Half of the headroom is gone: pause the packet's application.
    Application,
    /// Three quarters are gone: pause the peer that sent the packet.
    Peer,
    /// A packet was not taken: poll its source no more.
    Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<P> {
    /// The outcome of the packet.
    pub outcome: Outcome<P>,
    pub rung: Rung,
    /// The flow was unknown: the driver holds it if it may not send ([`super::FlowQueues::hold`]).
    pub is_new: bool,
    /// The flow was asked to pause, now or earlier: the overlay may have to repeat the pause.
    pub is_notified: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal<F> {
    pub flow: F,
    /// To pause, or to go on.
    pub is_pause: bool,
    /// Bytes that wait in its queue.
    pub queued: Bytes,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<F, P> {
    pub flow: F,
    pub packet: P,
    pub len: u32,
}

/// Packets, bytes and pauses of a set of flow queues since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were taken, those that replaced another among them.
    pub arrived: u64,
    /// Packets that left.
    pub departed: u64,
    /// Acknowledgements that gave way to newer ones.
    pub coalesced: u64,
    /// Packets that were not taken.
    pub held: u64,
    /// Of those, what the driver had to drop: packets.
    pub loss_pool: u64,
    /// And their bytes.
    pub loss_pool_bytes: u64,
    pub pauses: u64,
    pub resumes: u64,
    /// Flows that had to share a queue.
    pub shared: u64,
    /// The most bytes of data that waited.
    pub peak_bytes: u64,
    pub peak_segments: u64,
}
