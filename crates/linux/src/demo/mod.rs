//! `millpond switch demo presto`: two namespaces, kernel TCP as it is, and a fabric of several paths in user space between them.
//!
//! | file | what it does |
//! |---|---|
//! | `fabric` | paths with a rate, a delay and a queue |
//! | `world` | two switches with their edges, the fabric between them, and the loop that drives all of it |
//! | `load` | the stream that is measured |
//! | `counters` | what the namespaces' TCP has counted, and what the process has used |
//! | `presto` | the arms, their runs in turn, and what came of them |
//!
//! Follows Presto (SIGCOMM 2015, section 5.2) in what is compared; the paths are four, in user space, and the sender's and receiver's
//! kernels are one.
//!
//! Invariant: arms differ in what their names say and in nothing else; they run in turn, so what else the machine does meets
//! all of them.

mod counters;
mod fabric;
mod load;
pub mod presto;
mod world;

pub use presto::{Arm, Plan, Report, Run, demo};
