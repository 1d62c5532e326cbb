//! What the ranks of a job do: which message a rank sends when, and for which it waits.
//!
//! A [`collective`] is a schedule: each rank of it takes steps, and a step waits for messages,
//! computes, and sends messages. A [`Worker`] takes the steps of one rank, over all repetitions.
//! It names neither hosts nor packets; who carries the messages is a [`Driver`].
//!
//! Invariant: nothing here reads a clock or draws at run time. What a worker does depends on its
//! job and on the times and messages that its driver reports.

pub mod collective;
mod job;
mod worker;

pub use job::{Job, Pace};
pub use worker::{Driver, Message, Span, Worker};
