//! `millpond switch`: a virtual switch between network namespaces and interfaces.
//!
//! | file | what it does |
//! |---|---|
//! | `config` | the file that a user writes, and its errors |
//! | `settings` | what of it is the registries': its edge's keys |
//! | `node` | which frame goes to which port |
//! | `importance` | the importance shim of a port on the switch's frames |
//! | `attached` | the rounds of ports that are memory |
//! | `table` | which address is behind which port |
//! | `losses` | what the kernel loses on a frame's way here |
//! | `journal` | what happens, as lines for people and journald |
//! | `uplink` | frames for other switches and from them |
//! | `path` | a path there: its socket, and what waits for it |
//! | `overlay` | what both pause of what the other sends |
//! | `held` | frames for a peer that has paused their flows |
//! | `shaping` | senders behind a tap that are made to wait |
//! | `peer` | another switch: which paths there work, and what both have agreed on |
//! | `run` | the poll loop, and the workers that each have one |
//! | `order` | messages between workers |
//! | `ports` | opens the ports of a configuration, and keeps account of what was made |
//! | `state` | the folder that all state is kept in, and its locks |
//! | `control` | how the process that moves frames is asked |
//! | `apply` | makes a file's switch run, and takes it away |
//! | `cni` | the switch as a network of containers |
//! | `serve` | the process that moves frames |
//! | `reading` | what the process that moves frames reports of itself |
//! | `show` | asks for that, and writes it as a table, JSON or metrics |
//! | `doctor` | what the kernel offers, and what a lack costs |
//! | `scheduling` | the processor time of a running switch |
//! | `supervise` | the parent of a switch in the background: it starts the switch again |
//! | `connect` | ports for namespaces, without a file |
//!
//! Invariant: whatever is killed, interfaces stay until they are taken out of the configuration,
//! and connections with them; every frame that is not delivered has a reason.

pub mod apply;
mod attached;
pub mod cni;
pub mod config;
pub mod connect;
pub mod control;
pub mod doctor;
mod error;
mod held;
pub mod importance;
pub mod journal;
mod losses;
pub mod node;
pub mod order;
pub mod overlay;
mod path;
pub(crate) mod peer;
mod ports;
pub mod reading;
pub mod run;
mod scheduling;
pub mod serve;
pub mod settings;
mod shaping;
pub mod show;
pub mod state;
pub mod supervise;
pub mod table;
pub(crate) mod uplink;

pub use error::Error;
