//! Doorbells: a core polls one ring, however many queues there are.
//!
//! Backdraft (Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch that
//! Prevents the Slow Receiver Problem, NSDI 2022) gives each core a doorbell queue, into which
//! producers put messages about data queues. The authors' messages carry counts, are staged, and
//! are lost where staging is full. Here the state is level-triggered and the message
//! edge-triggered: a queue that is *armed* has exactly one token, made by the thread that arms it.
//! So a ring with as many places as there are queues never overflows, and nothing is staged or
//! counted.
//!
//! The crate is apart from `core`, which has no threads. It has no dependency, no unsafe code and
//! no data queues: those are the driver's. The words that threads share may lie in memory that
//! processes share: `millpond-port` is the driver that keeps them there.
//!
//! Invariants, held by loom in `tests/models.rs`: a queue with data that is neither paused nor
//! being served is in the ring or in the consumer's list; a consumer sleeps only if both are empty.

mod bells;
#[cfg(test)]
mod tests;

mod sync {
    pub use std::sync::atomic::{AtomicU32, Ordering, fence};

    /// Words of a cache line: what producers and the consumer write lies apart.
    pub const LINE: usize = 16;
}

pub use bells::{Consumer, Doorbells, Wake};
