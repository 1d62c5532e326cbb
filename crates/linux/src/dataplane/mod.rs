//! The dataplane: frames, the buffers that they lie in, and the ports that they cross.
//!
//! `edge`, `fabric` and `switch` decide where a frame goes; this layer reads it, holds it and
//! writes it, and depends on none of them.
//!
//! | module | content |
//! |---|---|
//! | `frame` | the layout of frames; super-segments cut and made |
//! | `budget` | what a port may cost in a round |
//! | `buffers` | where frames lie, shared by the packets that are cut from them |
//! | `packet` | a packet: headers of its own, payload in a buffer |
//! | `held` | a packet's frame; frames cut into packets |
//! | `outgoing` | a frame on its way to a port |
//! | `flow` | flow keys, and what must be equal for two packets to merge |
//! | `metadata` | a frame's headers as the core's packet, and the verdict back into them |
//! | `counters` | what a port has done, and the reasons for drops |
//! | `fault` | a panic for one frame, caught and kept for the report |
//! | `egress` | the queue before a device that is full or paused |
//! | `loops` | probes that find loops, and the ports that they block |
//! | `mirror` | a copy of a port's frames, as pcapng |
//! | `vlan` | the VLANs of a port; its tags put in and taken out |
//! | `port` | taps, packet sockets, files, shared memory, virtual machines, UDP paths |
//! | `slot` | a port with its queue, counters and VLANs |
//!
//! Invariant: payload is not copied between the port that it is read from and the one that it is
//! written to, unless it waits.

pub mod budget;
pub mod buffers;
pub mod counters;
pub mod egress;
pub mod fault;
pub mod flow;
pub mod frame;
pub mod held;
pub mod loops;
pub mod metadata;
pub mod mirror;
pub mod outgoing;
pub mod packet;
pub mod port;
pub mod slot;
pub mod vlan;
