//! The actions of the ranks of a job: which message a rank sends when, and for which it waits.
//!
//! A [`collective`] is a schedule: each rank of it takes steps, and a step waits for messages,
//! computes, and sends messages. A [`program`] is a graph of operations for each rank. Both are
//! [`Work`], which a [`Rank`] does. It names neither hosts nor packets: a [`Driver`] carries the
//! messages.
//!
//! Invariant: nothing here reads a clock or draws at run time. A worker's actions depend on its job
//! and on the times and messages that its driver reports.

pub mod collective;
mod computations;
mod driver;
mod job;
mod lanes;
pub mod program;
mod rank;
mod worker;

pub use computations::Computations;
pub use driver::{Driver, Message, Span};
pub use job::{Job, Pace};
pub use rank::{Rank, Work};
pub use worker::Worker;
