//! TLT's questions to a sender: where it stands, and a segment that is sent without its knowing.
//!
//! Invariant: neither the window nor what counts as sent, lost or due changes by a forced segment;
//! only that it was sent again is counted. One that takes the place of a segment of a recovery uses
//! that segment's share of the pipe.

use super::{Phase, Sender};
use crate::endpoint::Outgoing;
use crate::endpoint::tcp::Config;

impl Sender {
    /// Whether it is in fast recovery.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Bytes sent, the first byte never sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.nxt
    }

    /// `len` bytes from `seq` on once more, whatever the windows.
    pub fn forced(&self, seq: u64, len: u32, cfg: &Config) -> Outgoing {
        let ecn = cfg.of(self.which).retransmission_ecn;
        Outgoing {
            seq,
            len,
            syn: false,
            retransmission: true,
            cwr: false,
            ecn,
            mapping: None,
            rdma: None,
        }
    }

    /// A forced segment has left.
    pub fn forced_out(&mut self) {
        self.retransmitted += 1;
    }

    /// The next segment's place was taken by one of `len` bytes.
    pub fn displaced(&mut self, len: u32) {
        if let Some(board) = &mut self.board {
            board.pipe += u64::from(len); // until the next ACK: RFC 6675 (B.2) counts anew
        }
    }
}
