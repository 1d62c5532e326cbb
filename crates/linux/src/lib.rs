//! millpond on Linux: wall-clock time and real packets.
//!
//! | module | what it is |
//! |---|---|
//! | `config` | tables of a daemon's configuration, checked and written |
//! | `dataplane` | frames, buffers, ports and counters |
//! | `edge` | Presto's edge: stamps and cuts outgoing frames, merges and orders incoming ones |
//! | `encapsulation` | how a frame travels between two switches |
//! | `fabric` | the core's switch node between ports |
//! | `limit` | bandwidth limits for cgroups: NRM's virtual queues at the kernel's packet hooks |
//! | `metrics` | a daemon's numbers for Prometheus |
//! | `netlink` | requests to the kernel, and their answers |
//! | `switch` | a virtual switch between namespaces and interfaces |
//! | `tunnel` | which datagrams between two switches count: probes, secrets, sealed frames |
//!
//! Layers: `dataplane` ← `edge`, `fabric` ← `switch`. `limit` stands by itself.
//!
//! Invariant: what runs here decides as `millpond_core` does; tests prove the eBPF programs equal
//! to it, and the edge equal to the simulator's.

#[cfg(any(test, feature = "bodies"))]
#[path = "../tests/bodies/mod.rs"]
pub mod bodies;
mod config;
pub mod dataplane;
pub mod edge;
pub mod encapsulation;
pub mod fabric;
pub mod limit;
mod metrics;
mod netlink;
pub mod switch;
#[cfg(test)]
mod tests;
pub mod tunnel;
