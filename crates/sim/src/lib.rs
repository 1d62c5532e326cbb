//! The simulator: virtual time.
//!
//! It drives the nodes of `millpond-core` from event queues, one a partition, and gives them hosts with transports,
//! links with delays, and flows. It reads no clock and draws no randomness of its own, so a run is a function of its
//! plan: [`run`] gives the same records and counts for any number of threads.
//!
//! | module | what it is |
//! |---|---|
//! | [`run`] | windows, threads, the serial part at each edge |
//! | [`layout`] | which node is simulated where |
//! | [`partition`] | nodes, links and events that run together |
//! | [`events`], `distant` | the event queue: a wheel, a sorted set beyond it, and spans of what is later still |
//! | [`barrier`] | where threads meet at an edge |
//! | [`fabric`], [`flight`], [`mail`] | links; what crosses between partitions |
//! | [`hosts`], [`nic`] | connections and applications; what leaves a host |
//! | `jitter` | how late a host is with its packets |
//! | [`labels`] | what the controller tells edges and switches |
//! | [`scheduling`] | the rounds of a central scheduler |
//! | [`limiter`] | what holds a host to a bandwidth |
//! | [`transport`] | TCP: NewReno, CUBIC, DCTCP, Swift |
//! | [`samples`] | queues, deliveries and connections over time |
//! | [`audit`] | conservation of packets and bytes |

pub mod audit;
pub mod barrier;
pub mod build;
mod convergence;
mod distant;
pub mod events;
pub mod fabric;
pub mod flight;
pub mod hosts;
mod jitter;
pub mod labels;
pub mod layout;
pub mod limiter;
pub mod mail;
pub mod nic;
pub mod partition;
pub mod run;
pub mod samples;
pub mod scheduling;
pub mod shared;
pub mod slab;
pub mod transport;

pub use hosts::PollRecord;
pub use run::{Observer, Outcome, Standing, run};
pub use transport::quantities;
