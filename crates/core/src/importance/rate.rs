//! TLT for transports that send at a rate (DCQCN with go-back-N, TIMELY): there is no ACK clock, and a timeout comes only of
//! a lost tail, or of a lost first retransmission while further NACKs are suppressed. So those two are important.
//!
//! Invariant: the last packet of a message and the first after a rewind are always important, each time they are sent.

use crate::packet::Importance;

crate::params! {
    /// TLT without a window.
    pub struct RateParams {
        /// Beside those, every so-manieth packet since the last important one; off: none. Source: 96, the authors' simulator.
        pub every: Option<u32> = Some(96),
    }
}

/// Marks the packets of one queue pair.
#[derive(Clone, Debug)]
pub struct RateMarker {
    every: u32,
    /// Unimportant packets since the last important one.
    since: u32,
    /// The next packet is the first after a rewind.
    rewound: bool,
}

impl RateMarker {
    /// Of a new queue pair.
    pub fn new(params: &RateParams) -> RateMarker {
        RateMarker { every: params.every.unwrap_or(u32::MAX).max(1), since: 0, rewound: false }
    }

    /// The sender goes back: a NACK or a timeout.
    #[inline]
    pub fn on_rewind(&mut self) {
        self.rewound = true;
    }

    /// A data packet leaves.
    #[inline]
    pub fn on_packet(&mut self, last_of_message: bool) -> Importance {
        self.since += 1;
        if last_of_message || self.rewound || self.since >= self.every {
            (self.since, self.rewound) = (0, false);
            return Importance::Important;
        }
        Importance::Unimportant
    }
}
