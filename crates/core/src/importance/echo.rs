//! The receiver's side of TLT with a window: an important packet is answered by the next acknowledgement, which must leave at
//! once, and which is important itself.
//!
//! The packet counts before its place in the stream does: duplicates, late and early ones are answered alike. Handshake
//! packets are important but not answered. Data on the way back never carries an echo: a pure acknowledgement does.
//!
//! Invariant: each important data packet has exactly one echo, unless a second one arrives before the first is answered.

use crate::packet::Importance;

/// What the next acknowledgement is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echoer {
    due: Importance,
}

impl Echoer {
    /// A data packet has arrived. Says whether it must be acknowledged now.
    #[inline]
    pub fn on_data(&mut self, importance: Importance) -> bool {
        match importance {
            Importance::Important => self.due = Importance::Echo,
            Importance::Forced => self.due = Importance::ForcedEcho,
            _ => {}
        }
        self.due != Importance::Control
    }

    /// The importance of the acknowledgement that leaves now.
    #[inline]
    pub fn answer(&mut self) -> Importance {
        std::mem::take(&mut self.due)
    }
}
