//! PAUSE frames: the target that a frame stops, and until when (IEEE 802.1Qbb for priorities, BFC
//! for flows).

use crate::packet::PRIORITIES;
use crate::units::Time;

/// Bytes of a pause frame on the wire: the least that Ethernet has.
pub const FRAME_BYTES: u64 = 64;

/// Whom a pause stops, at the sending end of the link that its frame comes back over.
///
/// A family of pauses that stops something else has its variant here; the compiler then names who
/// must answer for it: the port that stands still ([`PauseTarget::queue`]), the driver's calls
/// ([`PauseTarget::number`]), the frame's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PauseTarget {
    /// A priority of the link (PFC, IEEE 802.1Qbb).
    Priority(u8),
    /// A flow, by its number (BFC).
    Flow(u16),
}

impl PauseTarget {
    /// The queue of a port that stands still. One without queues by priority stands still as a
    /// whole. A flow's is the one that holds it: the port's queues find it.
    #[inline]
    pub fn queue(self) -> Option<u8> {
        match self {
            PauseTarget::Priority(priority) => Some(priority & 7),
            PauseTarget::Flow(_) => None,
        }
    }
    /// A number, for drivers that remember a target in one; in the order of targets.
    #[inline]
    pub fn number(self) -> u32 {
        match self {
            PauseTarget::Priority(priority) => u32::from(priority),
            PauseTarget::Flow(vfid) => PRIORITIES as u32 + u32::from(vfid),
        }
    }
    /// The target of a number that [`PauseTarget::number`] gave.
    #[inline]
    pub fn of_number(number: u32) -> PauseTarget {
        match number.checked_sub(PRIORITIES as u32) {
            None => PauseTarget::Priority(number as u8),
            Some(vfid) => PauseTarget::Flow(vfid as u16),
        }
    }
}

/// A frame for the upstream neighbour of one ingress port: stop this target for so long, or let it
/// go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFrame {
    pub target: PauseTarget,
    /// Until when, from the frame's arrival; zero resumes.
    pub duration: Time,
}
