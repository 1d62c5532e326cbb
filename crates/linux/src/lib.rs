//! millpond on Linux: wall-clock time and real packets.
//!
//! | module | what it is |
//! |---|---|
//! | `frame` | what the bytes between two ports say; super-segments cut and made |
//! | `limit` | bandwidth limits for cgroups: NRM's virtual queues at the kernel's packet hooks |
//!
//! Invariant: what runs here decides as `millpond_core` does; a test proves the eBPF programs equal to it.

pub mod frame;
pub mod limit;
