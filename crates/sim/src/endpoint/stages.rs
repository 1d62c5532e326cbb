//! The questions of the stages of the sending host to a sender: limits, and TLT.
//!
//! Invariant: an answer that a family does not have changes nothing.

use super::{Config, Outgoing, Sender};
use millpond_core::Time;

/// Asks a TCP what only TCPs are asked: `check` refuses other families where somebody would.
macro_rules! tcp_alone {
    ($end:expr, $cfg:ident, $name:ident => $answer:expr, $other:expr) => {
        match $end {
            Self::Tcp($name) => {
                let $cfg = &$cfg.tcp;
                $answer
            }
            _ => $other,
        }
    };
}

/// The questions of limits at the sending host: a segment is looked at before it is sent, and may
/// be refused.
impl Sender {
    /// The segment that [`Sender::poll_send`] would give now, without giving it.
    pub fn peek(&mut self, now: Time, max_len: u32, cfg: &Config) -> Option<Outgoing> {
        tcp_alone!(self, cfg, end => end.peek(now, max_len, cfg), None)
    }
    /// Packets that were sent and are not acknowledged, as Linux's packets_out counts them.
    pub fn packets_out(&self, cfg: &Config) -> u32 {
        tcp_alone!(self, cfg, end => end.packets_out(cfg), 0)
    }
    /// Whether only one segment may be tried, because the probe timer tries.
    pub fn is_probing(&self) -> bool {
        match self {
            Self::Tcp(end) => end.is_probing(),
            _ => false,
        }
    }
    /// The segment that was looked at may leave.
    pub fn accepted(&mut self) {
        if let Self::Tcp(end) = self {
            end.accepted();
        }
    }
    /// The segment that was looked at was refused; `told`: with the order to reduce the window.
    pub fn refused(&mut self, now: Time, told: bool, cfg: &Config) {
        tcp_alone!(self, cfg, end => end.refused(now, told, cfg), ())
    }
    /// The local host is congested: the window is reduced, at most once a window of data.
    pub fn reduce(&mut self, now: Time, cfg: &Config) {
        tcp_alone!(self, cfg, end => end.reduce(now, cfg), ())
    }
}

/// TLT's questions: where the sender stands, and segments that are sent without its knowing.
impl Sender {
    /// Whether it repairs a loss, and what it sends may make way for what is known to be lost:
    /// TCP's alone, as in TLT's released simulators.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        match self {
            Self::Tcp(end) => end.is_recovering(),
            _ => false,
        }
    }
    /// Bytes sent, the first byte never sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        match self {
            Self::Tcp(end) => end.sent(),
            Self::Mptcp(_) => 0,
            Self::Rdma(end) => end.sent(),
            Self::Homa(end) => end.sent(),
            Self::Uet(end) => end.sent(),
        }
    }
    /// The same, of MPTCP's stream, too: to the stages that ask for [`Sender::sent`] it has sent
    /// nothing.
    pub fn sent_of_stream(&self) -> u64 {
        match self {
            Self::Mptcp(end) => end.sent(),
            _ => self.sent(),
        }
    }
    /// Whether the pace alone keeps a queue pair's next packet.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Rdma(end) if end.is_held())
    }
    /// Whether a message ends at an offset; a stream is one.
    pub fn ends_message(&self, at: u64) -> bool {
        match self {
            Self::Rdma(end) => end.ends_message(at),
            _ => at == self.written(),
        }
    }
    /// Times that a queue pair went back to what is missing.
    pub fn rewinds(&self) -> u32 {
        if let Self::Rdma(end) = self { end.rewinds() } else { 0 }
    }
    /// `len` bytes from `seq` on once more, whatever the windows. Once they have left,
    /// [`Sender::forced_out`] follows.
    pub fn forced(&self, seq: u64, len: u32, cfg: &Config) -> Option<Outgoing> {
        match self {
            Self::Tcp(end) => Some(end.forced(seq, len, &cfg.tcp)),
            Self::Mptcp(_) | Self::Homa(_) | Self::Uet(_) => None,
            Self::Rdma(end) => Some(end.forced(seq, len, &cfg.rdma)),
        }
    }
    /// A forced segment has left.
    pub fn forced_out(&mut self) {
        match self {
            Self::Tcp(end) => end.forced_out(),
            Self::Mptcp(_) | Self::Homa(_) | Self::Uet(_) => (),
            Self::Rdma(end) => end.forced_out(),
        }
    }
    /// The next segment's place was taken by one of `len` bytes.
    pub fn displaced(&mut self, len: u32) {
        if let Self::Tcp(end) = self {
            end.displaced(len);
        }
    }
}
