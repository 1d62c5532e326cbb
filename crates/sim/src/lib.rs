//! The simulator: virtual time.
//!
//! It drives the nodes of `millpond-core` from event queues, one a partition, and gives them hosts
//! with transports, links with delays, and flows. It reads no clock and draws no randomness of its
//! own, so a run is a function of its plan: [`run`] gives the same records and counts for any
//! number of threads.
//!
//! | module | what it is |
//! |---|---|
//! | [`run`] | windows, threads, the serial part at each edge |
//! | [`beside`] | hosts beside others that another world has |
//! | [`cells`] | the event queues of a partition |
//! | [`layout`] | which node is simulated where |
//! | [`partition`] | nodes, links and events that run together |
//! | [`events`], `distant` | the event queue: a wheel, then a sorted set, then spans |
//! | [`barrier`] | where threads meet at an edge |
//! | [`fabric`], [`flight`], [`mail`] | links; what crosses between partitions |
//! | [`failing`], [`convergence`] | links that fail; the routes that follow |
//! | [`hosts`], [`equip`] | connections and applications; what a host has |
//! | `jitter` | how late a host is with its packets |
//! | [`labels`] | what the controller gives edges and switches |
//! | [`endpoint`] | a connection's two ends, a folder a family |
//! | [`scheduling`] | the rounds of a central scheduler |
//! | [`standstill`] | why open flows can never end |
//! | `jobs` | rounds of jobs, from the parts of their ranks |
//! | [`samples`] | queues, deliveries and connections over time |
//! | [`audit`] | conservation of packets and bytes |

pub mod audit;
pub mod barrier;
pub mod beside;
pub mod build;
pub mod cells;
pub mod convergence;
mod distant;
pub mod endpoint;
pub mod equip;
pub mod event;
pub mod events;
pub mod fabric;
pub mod failing;
pub mod flight;
pub mod hosts;
pub mod jitter;
mod jobs;
pub mod labels;
pub mod layout;
pub mod mail;
mod nics;
pub mod partition;
pub mod run;
pub mod samples;
pub mod scheduling;
pub mod shared;
pub mod slab;
pub mod standstill;
mod switch_node;

pub use endpoint::quantities;
pub use hosts::PollRecord;
pub use run::{NotStarted, Observer, Outcome, Standing, Unmatched, run};
