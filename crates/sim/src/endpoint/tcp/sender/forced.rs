//! TLT's questions to a sender: where it stands, and a segment that is sent without the transport.
//!
//! Invariant: neither the window nor what counts as sent, lost or due changes by a forced segment;
//! only that it was sent again is counted. One that takes the place of a segment of a recovery uses
//! that segment's share of the pipe.

use super::{Phase, Sender};
use crate::endpoint::tcp::Config;
use crate::endpoint::{Marked, Outgoing};

impl Marked for Sender {
    #[inline]
    fn is_recovering(&self) -> bool {
        self.phase == Phase::Recovery
    }

    fn forced(&self, seq: u64, len: u32, cfg: &Config) -> Option<Outgoing> {
        let ecn = cfg.of(self.which).retransmission_ecn;
        Some(Outgoing { retransmission: true, ..Outgoing::new(seq, len, ecn) })
    }

    fn forced_out(&mut self) {
        self.retransmitted += 1;
    }

    fn displaced(&mut self, len: u32) {
        if let Some(board) = &mut self.board {
            board.pipe += u64::from(len); // until the next ACK: RFC 6675 (B.2) counts anew
        }
    }
}
