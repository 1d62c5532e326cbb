//! Frames: the headers of the bytes between two ports, and how a super-segment becomes packets and
//! packets a super-segment.
//!
//! | file | what it does |
//! |---|---|
//! | `parse` | finds the layers of a frame: Ethernet, VLAN tags, IPv4, IPv6, TCP, UDP |
//! | `checksum` | the Internet checksum, and the pseudo-header's share of it |
//! | `offload` | the virtio header that goes with a frame: what its receiver has yet to do to it |
//! | `header` | the headers of a packet, in room of their own |
//! | `ip` | fields of an IP header |
//! | `segment` | cuts a super-segment as the kernel would, without touching its payload |
//! | `coalesce` | the header of a super-segment that is made of packets |
//! | `vlan` | the tag of a VLAN, put in and taken out |
//! | `tag` | rank and label, for switches that decide by them |
//! | `neighbour` | the addresses that a sender claims: in ARP, neighbour discovery, IP |
//! | `mss` | the longest segment that a connection's ends ask for |
//! | `too_big` | the answer to a packet that does not fit |
//! | `fragment` | cuts an IPv4 packet that is too long and may be cut |
//! | `pause` | frames that stop a link or its priorities |
//!
//! Follows net/core/gro.c, net/ipv4/tcp_offload.c and include/linux/virtio_net.h of Linux 6.18 in
//! what a segment is.
//!
//! Invariant: payload is never copied or changed, and any bytes at all are either understood,
//! passed on as they are, or refused with a reason.

pub mod checksum;
pub mod coalesce;
pub mod fragment;
pub mod header;
pub mod ip;
pub mod mss;
pub mod neighbour;
pub mod offload;
pub mod parse;
pub mod pause;
pub mod segment;
pub mod tag;
pub mod too_big;
pub mod vlan;

pub use coalesce::coalesce;
pub use header::{HEADER_MAX, Header};
pub use ip::Ip;
pub use offload::{GsoType, Offload};
pub use parse::{Inner, Layers, Mac, Malformed, Protocol, Version, View, parse, parse_head};
pub use segment::{Checksums, Segmenter};
pub use tag::Tag;
