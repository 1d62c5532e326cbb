//! MPTCP's side record: the part of the DSS option (RFC 8684 §3.3) that an end goes by.
//!
//! A subflow's packets are TCP's ([`super::tcp`]), with this record beside them.

/// Which subflow a packet is of, and where it belongs in the connection's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mapping {
    /// The subflow's number; the connection begins with 0.
    pub subflow: u8,
    /// Of data, the offset of its first byte in the stream; of an acknowledgement, the next byte of
    /// the stream that is expected (DATA_ACK).
    pub data: u64,
}

impl Mapping {
    /// The mapping of what is `bytes` further on.
    #[must_use]
    pub fn further(self, bytes: u64) -> Mapping {
        Mapping { data: self.data + bytes, ..self }
    }
}
