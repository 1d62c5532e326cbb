//! The lab: a scenario's hosts as network namespaces with kernel TCP, its network as the core's
//! switch nodes in one user-space process.
//!
//! ```text
//!  socket ─ kernel TCP ─ TAP ──► host: cut, mark, rank, label, hold ─ NIC ──► Fabric, switches
//!  socket ─ kernel TCP ─ TAP ◄── host: virtual switch, mark, receive offload, order ◄──┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `support` | the keys of a plan that this world lacks |
//! | `kernel` | what a plan's transport becomes in the kernel, and where the kernel deviates |
//! | `address` | addresses of hosts; answers to ARP |
//! | `place` | namespaces, TAPs, routes |
//! | `network` | a plan's switches and links as a `Fabric` |
//! | `host` | a host's port: its TAP, its edge with the stages, and its NIC |
//! | `nic`, `nic_queue` | a host's NIC; what waits in it |
//! | `words` | the packets of hosts' virtual switches as frames |
//! | `state` | the network as it moves |
//! | `driver` | the thread that moves packets by the clock |
//! | `changes` | links that fail and come back, and routes and labels that follow |
//! | `limits` | the eBPF limiter on cgroups of hosts |
//! | `record` | samples of queues and packets at ends of links, for a reader |
//! | `lateness` | how late packets leave against their schedule |
//! | `programs`, `command` | real programs in the namespaces; whether the machine has them |
//! | `output` | a program's output, as results have it |
//! | `responses` | response times in programs' output |
//! | `ask` | a client that measures response times of memcached and Redis |
//! | `load` | the plan's traffic, from sockets in the namespaces |
//! | `urgent` | the threads' scheduling class |
//! | `enter` | a host of a lab that is up, for another process |
//! | `watching` | captures of a lab that is up, for another process |
//! | `lab` | all of it for one plan |
//!
//! A packet's way is timed by the fabric's own clock: a link is busy for as long as a frame takes
//! at its rate, and a packet that leaves late in wall-clock time is scheduled as if it had not. The
//! lab measures that lateness; whoever runs it decides what would change a result.
//!
//! Invariant: every packet that a host's kernel sends is delivered, dropped for a counted reason,
//! or held by the fabric when the lab ends.

pub mod address;
pub mod ask;
mod changes;
mod command;
mod driver;
pub mod enter;
mod error;
pub mod host;
pub mod kernel;
mod lab;
mod lateness;
pub mod limits;
pub mod load;
pub mod network;
mod nic;
mod nic_queue;
pub mod output;
mod place;
pub mod programs;
mod record;
mod responses;
pub mod state;
pub mod support;
mod urgent;
pub mod watching;
mod words;

pub use command::check as check_programs;
pub use error::Error;
pub use lab::Lab;
pub use lateness::{Lateness, Quantiles};
pub use millpond_linux::limit::show::{QueueReading, Reading as LimitReading};
pub use millpond_worlds::{Namespace, sweep};
pub use record::{Record, Recorder, Records};
pub use state::Counted;
pub use urgent::{Role, prepare};
