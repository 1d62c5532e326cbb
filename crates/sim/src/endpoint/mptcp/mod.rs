//! MPTCP (RFC 8684): one byte stream over several subflows.
//!
//! A subflow is a whole TCP with its own sequence space, window, timer and 5-tuple, so ECMP gives
//! each a path of its own. A packet's mapping names its subflow and where its bytes belong in the
//! stream; an acknowledgement's names the subflow and what of the stream has arrived (RFC 8684's
//! DSS option, §3.3). The control law links the windows (`core::congestion`): it is shown all paths
//! before each acknowledgement.
//!
//! | file | what it follows |
//! |---|---|
//! | `sender` | the scheduler, mappings, reinjection: RFC 8684 §3.3.6, MPTCP kernel (v0.8x) |
//! | `receiver` | reassembly by the stream's offsets: RFC 8684 §3.3.1 |
//!
//! Not modelled: keys, tokens and address advertisement, subflow priorities and closing, the bytes
//! of options, fallback to TCP, and what the kernel does when the receive window is full
//! (opportunistic retransmission and penalisation, NSDI 2012 §4.2).

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;
pub use sender::Sender;

use super::tcp;

/// The configuration that the connections of one MPTCP transport share.
#[derive(Clone, Debug)]
pub struct Config {
    pub tcp: tcp::Config,
    pub subflows: u8,
    /// Whether what a subflow had in flight at a timeout is sent by others, too.
    pub reinjection: bool,
}
