//! Counters of a shim.
//!
//! Invariant: each frame that the shim sends or withholds counts once.

use crate::dataplane::counters::named;
use millpond_core::Importance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
/// Why the shim does not track a flow any more, or never did.
pub enum Reason {
    /// Its SYN or a later packet carries an option that the shim does not read.
    Option = "option",
    /// It negotiates accurate ECN, whose counter a forged packet would disturb.
    AccurateEcn = "accurate-ecn",
    /// Its SYN carries payload.
    SynData = "syn-data",
    /// It sends urgent data.
    Urgent = "urgent",
    /// Its host sent two different payloads at one sequence number, or skipped far ahead.
    Stream = "stream",
    /// Several important packets had no echo: its peer has no shim.
    NoEcho = "no-echo",
    /// The table is full.
    Full = "full",
}
}

/// Data packets of one importance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
}

/// The numbers of one shim, since its start; flows and their cache are those of now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Flows in the table now.
    pub flows: usize,
    /// Memory of unacknowledged payload now, in bytes.
    pub cached_bytes: usize,
    /// Data packets marked unimportant, which a switch may drop early.
    pub unimportant: Sent,
    /// Data packets of the host marked important.
    pub important: Sent,
    /// Data packets of tracked flows that left green because the cache had no room, or with a FIN.
    pub green: Sent,
    /// Packets that the shim forced out.
    pub forced: Sent,
    /// Forced packets that would lie beyond the receiver's window, or whose payload is not cached.
    pub refused: u64,
    /// Acknowledgements of the host marked as echoes.
    pub echoes_marked: u64,
    /// Echoes that the shim sent itself.
    pub echoes_sent: u64,
    /// Echoes that came in, on acknowledgements or from the peer's shim.
    pub echoes_received: u64,
    /// Packets that the host does not receive: echoes of the peer's shim, and acknowledgements of
    /// forced packets.
    pub consumed: u64,
    /// DSACK blocks taken out of acknowledgements.
    pub dsacks_stripped: u64,
    /// Times that a flow was armed again after its important packet had no echo.
    pub rearmed: u64,
    /// Flows that were tracked.
    pub tracked: u64,
    /// Flows that are not tracked, by [`Reason`].
    pub untracked: BTreeMap<String, u64>,
    /// Outgoing TCP packets of flows that are not tracked, handshakes excepted.
    pub untracked_packets: u64,
    /// Acknowledgements of forced packets among those that were consumed (rule E2).
    #[serde(skip)]
    pub acks_swallowed: u64,
}

impl Counters {
    /// Counts a data packet of the host.
    pub(super) fn sent(&mut self, importance: Importance, bytes: usize) {
        let sent = match importance {
            Importance::Unimportant => &mut self.unimportant,
            Importance::Important => &mut self.important,
            _ => &mut self.green,
        };
        sent.packets += 1;
        sent.bytes += bytes as u64;
    }
    /// Counts a forced packet.
    pub(super) fn force(&mut self, bytes: usize) {
        self.forced.packets += 1;
        self.forced.bytes += bytes as u64;
    }
    /// Counts a flow that is not tracked.
    pub(super) fn untrack(&mut self, reason: Reason) {
        *self.untracked.entry(reason.name().to_string()).or_default() += 1;
    }
    /// The data packets with the names of their kinds.
    pub fn data(&self) -> [(&'static str, Sent); 4] {
        [
            ("unimportant", self.unimportant),
            ("important", self.important),
            ("green", self.green),
            ("forced", self.forced),
        ]
    }
}
