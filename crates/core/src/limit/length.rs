//! How many bytes a packet is charged.
//!
//! Above the NIC a "packet" may be a super-segment of up to 64 KB that is cut into many (TSO), or
//! was put together from many (GRO). The published program charges its IP length; on the wire each
//! of its packets has headers of its own.

crate::choice! {
    pub enum Length {
        /// All packets that it is cut into, each with its own headers, and their framing.
        Wire = "wire",
        /// The IP length of the super-segment, as the published program does.
        Ip = "ip",
    }
}

/// Bytes on the wire of a super-segment of `bytes` IP bytes that is `segments` packets (0 counts as
/// 1), each with `headers` bytes of IP and transport headers and `framing` bytes below them.
#[inline]
pub fn wire_bytes(bytes: u32, segments: u32, headers: u32, framing: u32) -> u32 {
    let more = segments.max(1) - 1;
    bytes
        .saturating_add(framing)
        .saturating_add(more.saturating_mul(headers.saturating_add(framing)))
}
