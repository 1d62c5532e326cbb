//! In-network telemetry (INT): what each switch on the way of a packet knew when it sent it on.
//!
//! A sender whose control law asks for it gives its data an empty record. A switch adds itself to
//! it when the packet leaves its queue (HPCC, SIGCOMM 2019 §4.1), and the receiver copies the
//! record to its answer. Values are exact; HPCC's header has them in 64 bits a switch, with times
//! of 24 bits.
//!
//! Invariant: the record has the switches in the order of the way, and at most [`HOPS`] of them.

use crate::units::{Rate, Time};

/// Switches that one packet can tell of. Source: HPCC's released simulator.
pub const HOPS: usize = 5;

/// Bytes that it takes on the wire, however many switches are in it: eight for each of [`HOPS`],
/// and two. Source: HPCC, SIGCOMM 2019 §4.1.
pub const BYTES: u32 = 8 * HOPS as u32 + 2;

/// One switch's port, when a packet left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// When the packet's first bit left.
    pub at: Time,
    /// Bytes that the port had sent before it.
    pub sent: u64,
    /// Bytes that waited behind it.
    pub queue: u64,
    /// The link's rate.
    pub rate: Rate,
}

/// What the switches on a packet's way have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    hops: [Hop; HOPS],
    count: u8,
}

impl Telemetry {
    /// What a packet begins with.
    pub const EMPTY: Telemetry = Telemetry {
        hops: [Hop { at: Time::ZERO, sent: 0, queue: 0, rate: Rate(0) }; HOPS],
        count: 0,
    };

    /// The next switch on the way adds itself; one for which there is no more room does not.
    pub fn push(&mut self, hop: Hop) {
        if let Some(free) = self.hops.get_mut(usize::from(self.count)) {
            *free = hop;
            self.count += 1;
        }
    }
    /// In the order of the way.
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_first_switches_of_the_way() {
        let mut record = Telemetry::default();
        assert!(record.hops().is_empty());
        (0..7).for_each(|sent| record.push(Hop { sent, ..Hop::default() }));
        assert_eq!(record.hops().iter().map(|hop| hop.sent).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
