//! millpond on Linux: wall-clock time and real packets.
//!
//! | module | what it is |
//! |---|---|
//! | `demo` | one mechanism against what it replaces, with this kernel's TCP |
//! | `edge` | Presto's edge: stamps and cuts outgoing frames, merges and orders incoming ones |
//! | `encapsulation` | how a frame travels between two switches |
//! | `fabric` | the core's switch node between ports |
//! | `frame` | what the bytes between two ports say; super-segments cut and made |
//! | `limit` | bandwidth limits for cgroups: NRM's virtual queues at the kernel's packet hooks |
//! | `metrics` | a daemon's numbers for Prometheus |
//! | `namespace` | doing something in another network namespace |
//! | `port` | where frames come in and leave |
//! | `switch` | a virtual switch between namespaces and interfaces |
//! | `tunnel` | which datagrams between two switches count: probes, secrets, sealed frames |
//!
//! Invariant: what runs here decides as `millpond_core` does; tests prove the eBPF programs equal
//! to it, and the edge equal to the simulator's.

pub mod demo;
pub mod edge;
pub mod encapsulation;
pub mod fabric;
pub mod frame;
pub mod limit;
mod metrics;
pub mod namespace;
pub mod port;
#[cfg(test)]
mod recorded;
pub mod switch;
pub mod tunnel;
