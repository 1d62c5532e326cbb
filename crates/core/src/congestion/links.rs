//! The links on a queue pair's way, as the last answer's telemetry described them, and its round
//! trips: HPCC and PowerTCP steer by the difference between two answers, and move their reference
//! once a round trip. The first answer only begins the count.
//!
//! A link of which two records do not follow each other in time, as where packets take several
//! ways, has no difference. Released simulators' clocks would wrap.

use super::{Acked, Demands, Family};
use crate::packet::{Hop, Telemetry, telemetry::HOPS};

/// The demands of a law that steers by telemetry.
pub(super) fn demands() -> Demands {
    Demands {
        family: Family::Rdma,
        paces: true,
        telemetry: true,
        window: true,
        ..Demands::default()
    }
}

/// The last answer's record of each link, by its place on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    seen: [Hop; HOPS],
    known: usize,
    /// An answer beyond it ends the round trip; 0 before the first.
    pub(super) until: u64,
}

/// The work of a link between two answers.
pub(super) struct Work {
    pub(super) before: Hop,
    /// Picoseconds between both records, at least one.
    pub(super) ps: u64,
    /// Bytes that it sent.
    pub(super) sent: u64,
}

impl Links {
    pub(super) fn are_known(&self) -> bool {
        self.until > 0
    }

    /// Whether an answer ends the round trip.
    pub(super) fn ends(&self, acked: &Acked) -> bool {
        acked.una > self.until
    }

    /// Keeps an answer's records; one that ends the round trip begins the next.
    pub(super) fn note(&mut self, acked: &Acked, telemetry: &Telemetry) {
        if self.until == 0 || self.ends(acked) {
            self.until = self.until.max(acked.nxt);
        }
        self.known = telemetry.hops().len();
        self.seen.iter_mut().zip(telemetry.hops()).for_each(|(seen, hop)| *seen = hop);
    }

    /// The number of links that are known.
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// A link's work since the last answer; `None`: there is no earlier record of it.
    pub(super) fn work(&self, place: usize, hop: &Hop) -> Option<Work> {
        let before =
            *self.seen.get(place).filter(|seen| place < self.known && seen.rate == hop.rate)?;
        let ps = hop.at.as_ps().checked_sub(before.at.as_ps()).filter(|ps| *ps > 0)?;
        let sent = hop.sent.checked_sub(before.sent)?;
        Some(Work { before, ps, sent })
    }
}
