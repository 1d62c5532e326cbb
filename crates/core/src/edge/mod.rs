//! The host's edge: what happens to a packet between a host's transport and its NIC, in either
//! direction.
//!
//! | file | place | the question |
//! |---|---|---|
//! | `rank` | `transport.rank` | how urgent is this packet? |
//! | `ordering` | `transport.ordering` | does the receiver restore order below the transport? |
//! | `flowcell` | `edge.load-balancing` | which label does it get? |
//! | `plb` | | when has a flow met enough congestion for another one? |
//! | `schedule` | | in which order does a flow go through its labels? |
//! | `hedera` | | which path has room for this flow? |
//! | `controller` | | which labels lead from leaf to leaf? |
//! | `gro` | `host.receive-offload` | which segments are released upward, and when? |
//! | `liveness` | | which paths to a peer may carry data now? |
//! | `path_size` | | how large a packet does a path carry? |
//! | `entropy` | | which path does a packet of a sprayed connection take? |
//!
//! The first two follow Vertigo (Abdous, Sharafzadeh, Ghorbani: Burst-tolerant datacenter networks
//! with Vertigo, CoNEXT 2021) and its published simulations, and are per connection: a driver keeps
//! a [`rank::Ranker`] beside what sends and an [`ordering::Ordering`] beside what receives, and
//! neither if the scenario chooses none.
//!
//! `hedera` follows Hedera (Al-Fares and others, NSDI 2010). The others follow Presto (He, Rozner,
//! Agarwal, Felter, Carter, Akella: Presto: Edge-based Load Balancing for Fast Datacenter Networks,
//! SIGCOMM 2015). A [`flowcell::Flowcell`] is one sender's; there is one [`gro::Offload`] a receive
//! queue.
//!
//! Invariant: the edge has stream offsets and times only. It never looks at payload and never
//! makes a packet.

pub mod controller;
pub mod entropy;
pub mod flowcell;
pub mod gro;
pub mod hedera;
pub mod liveness;
pub mod ordering;
pub mod path_size;
pub mod plb;
pub mod rank;
mod rule;
pub mod schedule;

pub use ordering::{Ordering, OrderingParams};
pub use rank::{AttainedServiceParams, Outbound, RankParams, Ranker};

/// An acknowledgement, as the stages get it before the endpoint does.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    pub from: u64,
    pub to: u64,
    pub sent: u64,
    pub is_marked: bool,
}
