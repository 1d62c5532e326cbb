//! The part that both worlds of millpond run: pure decisions. No clock, no I/O, no threads, no
//! globals, and no floats that decide an order.
//!
//! A decision takes a [`Context`]: `now`, the packet's metadata, a view of the state that it may
//! see, and a random stream. It returns a verdict. The simulator calls it with virtual time; the
//! Linux poll loop reads its clock once a burst and passes it in.

#![deny(clippy::missing_errors_doc)]

/// The version of results: it changes when a result does, and only then. A finished run is that of
/// its resolved scenario, its seed and this number, whatever revision made it.
///
/// `tests/results.txt` has checksums of the runs that it holds for; where one differs, the number
/// is raised, the changelog has what moved, and the file is written anew.
pub const RESULTS: u32 = 1;

pub mod congestion;
pub mod context;
pub mod counters;
pub mod edge;
pub mod flow_queues;
pub mod flow_table;
pub mod host;
pub mod importance;
pub mod jitter;
pub mod limit;
pub mod numbers;
pub mod outages;
pub mod overlay;
pub mod packet;
pub mod params;
pub mod random;
pub mod ranges;
pub mod registry;
pub mod switch;
pub mod units;

pub use context::Context;
pub use packet::{
    Color, Ecn, FlowId, HostId, Importance, Mapping, Packet, PacketId, Packets, Pool, Sack,
    TrafficClass,
};
pub use units::{Bytes, Rate, Time};
