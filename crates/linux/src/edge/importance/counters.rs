//! Counters of a shim.
//!
//! Invariant: each frame that the shim sends or withholds counts once.

use millpond_core::Importance;
use serde::{Deserialize, Serialize};

/// Why the shim does not track a flow any more, or never did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Reason {
    /// Its SYN or a later packet carries an option that the shim does not know.
    Option,
    /// It negotiates accurate ECN, whose counter a forged packet would disturb.
    AccurateEcn,
    /// Its SYN carries payload.
    SynData,
    /// It sends urgent data.
    Urgent,
    /// Its host sent two different payloads at one sequence number, or skipped far ahead.
    Stream,
    /// Several important packets had no echo: its peer has no shim.
    NoEcho,
    /// The table is full.
    Full,
}

impl Reason {
    /// All reasons, in the order of [`Counters::untracked`].
    pub const ALL: [Reason; 7] = [
        Reason::Option,
        Reason::AccurateEcn,
        Reason::SynData,
        Reason::Urgent,
        Reason::Stream,
        Reason::NoEcho,
        Reason::Full,
    ];
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Option => "option",
            Reason::AccurateEcn => "accurate-ecn",
            Reason::SynData => "syn-data",
            Reason::Urgent => "urgent",
            Reason::Stream => "stream",
            Reason::NoEcho => "no-echo",
            Reason::Full => "full",
        }
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

/// The numbers of one shim, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
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
    /// Echoes of the peer's shim, which the host does not receive.
    pub shim_echoes_swallowed: u64,
    /// Acknowledgements of forced packets that the host does not receive (rule E2).
    pub acks_swallowed: u64,
    /// DSACK blocks taken out of acknowledgements.
    pub dsacks_stripped: u64,
    /// Times that a flow was armed again after its important packet had no echo.
    pub rearmed: u64,
    /// Flows that were tracked.
    pub flows: u64,
    /// Flows that are not tracked, by [`Reason`].
    pub untracked: [u64; Reason::ALL.len()],
    /// Outgoing TCP packets of flows that are not tracked, handshakes excepted.
    pub untracked_packets: u64,
}

impl Counters {
    /// Counts a data packet of the host.
    pub(super) fn data(&mut self, importance: Importance, bytes: usize) {
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
}
