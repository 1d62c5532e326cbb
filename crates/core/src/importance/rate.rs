//! TLT for transports that send at a rate (DCQCN with go-back-N, TIMELY): there is no ACK clock,
//! and a timeout comes only of a lost tail, or of a lost first retransmission while further NACKs
//! are suppressed. So those two are important.
//!
//! Invariant: the last packet of a message and the first after going back are always important,
//! each time they are sent.

use super::{Sent, TltParams};
use crate::packet::Importance;

/// Marks the packets of one queue pair.
#[derive(Clone, Debug)]
pub struct RateMarker {
    every: u32,
    /// Unimportant packets since the last important one.
    since: u32,
    /// The next packet is the first after going back.
    rewound: bool,
    /// Packets and bytes sent: unimportant, important.
    pub sent: [Sent; 2],
}

impl RateMarker {
    pub fn new(params: &TltParams) -> RateMarker {
        let every = params.every.unwrap_or(u32::MAX).max(1);
        RateMarker { every, since: 0, rewound: false, sent: [Sent::default(); 2] }
    }

    /// The sender goes back: a NACK or a timeout.
    #[inline]
    pub fn on_rewind(&mut self) {
        self.rewound = true;
    }

    /// A data packet of so many bytes leaves.
    #[inline]
    pub fn on_packet(&mut self, len: u32, ends_message: bool) -> Importance {
        self.since = self.since.saturating_add(1);
        if ends_message || self.rewound || self.since >= self.every {
            (self.since, self.rewound) = (0, false);
            self.sent[1].add(len);
            return Importance::Important;
        }
        self.sent[0].add(len);
        Importance::Unimportant
    }
}
