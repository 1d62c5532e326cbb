//! The messages of the two ends to each other. Each connection begins with a greeting of 16 bytes.
//! A *load* connection then carries requests of one size, each answered by one byte. The *control*
//! connection carries one byte when the measured time begins and one when it ends, and then the
//! server's counts as JSON, after their length.

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// Requests of `size` bytes, counted under `flow`.
    Load {
        /// The flow's number.
        flow: u16,
        /// Bytes of a request.
        size: u64,
    },
    /// Begin and end of the measured time.
    Control,
}

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 16;
/// The measured time begins.
pub const BEGIN: u8 = b'b';
/// The measured time ends.
pub const END: u8 = b'e';
/// A request was received in full.
pub const REPLY: u8 = b'.';
const MAGIC: [u8; 4] = *b"mprp";

impl Greeting {
    /// As it is sent.
    pub fn encode(self) -> [u8; GREETING_BYTES] {
        let (kind, flow, size) = match self {
            Self::Load { flow, size } => (1, flow, size),
            Self::Control => (2, 0, 0),
        };
        let mut bytes = [0; GREETING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = kind;
        bytes[6..8].copy_from_slice(&flow.to_le_bytes());
        bytes[8..].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    /// As it was received; none if it is no greeting.
    pub fn decode(bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        if bytes[..4] != MAGIC {
            return None;
        }
        let flow = u16::from_le_bytes([bytes[6], bytes[7]]);
        let mut size = [0; 8];
        size.copy_from_slice(&bytes[8..]);
        match (bytes[4], u64::from_le_bytes(size)) {
            (1, size) if size > 0 => Some(Self::Load { flow, size }),
            (2, _) => Some(Self::Control),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_arrive_as_sent_and_others_are_refused() {
        for greeting in [Greeting::Control, Greeting::Load { flow: 513, size: 10_240 }] {
            assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        }
        assert_eq!(Greeting::decode(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(Greeting::decode(&Greeting::Load { flow: 1, size: 0 }.encode()), None);
    }
}
