//! `millpond switch demo`: one mechanism against what it replaces, between namespaces, with kernel
//! TCP as it is. `presto` has a fabric of several paths in user space; `bridge` compares the plain
//! switch with the kernel's bridge; `backdraft` has applications with shared memory.
//!
//! | file | what it does |
//! |---|---|
//! | `fabric` | paths with a rate, a delay and a queue |
//! | `world` | two switches with their edges, the fabric between them, and the loop of both |
//! | `load` | the stream that is measured |
//! | `counters` | what the namespaces' TCP has counted, and what the process has used |
//! | `place` | the namespaces, and what is measured between them |
//! | `bridge` | the switch and the kernel's bridge |
//! | `rpc` | requests and answers of applications with shared memory |
//! | `backdraft` | a fast and a slow application, and switches that drop, stop, or pause |
//! | `presto` | Presto's arms, their runs in turn, and what came of them |
//!
//! Follows Presto (SIGCOMM 2015, section 5.2) in what is compared; the paths are four, in user
//! space, and the sender's and receiver's kernels are one.
//!
//! Invariant: arms differ in what their names say and in nothing else; they run in turn, so what
//! else the machine does meets all of them.

pub mod backdraft;
pub mod bridge;
mod counters;
mod fabric;
mod load;
mod place;
pub mod presto;
mod rpc;
mod world;

pub use presto::{Arm, Plan, Report, Run, demo};
