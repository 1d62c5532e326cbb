//! TCP: a byte stream's two ends as pure state machines, with a control law of `core::congestion`.
//!
//! Stream offsets are 64 bits and start at 0. SYN takes no sequence space, there is no FIN (the
//! host has a flow's size), and an ACK echoes the hand-down time of the data that caused it (RFC
//! 7323), in picoseconds. Not modelled: F-RTO (RFC 5682), DSACK
//! (RFC 2883), HyStart++ (RFC 9406), Nagle, zero windows, and RFC 3168's wait for the timer when a
//! mark meets a window of one segment.
//!
//! | file | what it follows |
//! |---|---|
//! | `sender` | RFC 5681, 6582, 6675, 3042, 6928, 8985 §7: windows, recovery, handshake, probes |
//! | `scoreboard`, `ranges` | RFC 6675 §4: what the receiver holds, what is lost, what is next |
//! | `rack` | RFC 8985 §6: what is lost, by times of transmission |
//! | `receiver` | RFC 5681 §4.2, 2018, 3168 §6.1.3, 8257 §3.2: reassembly, ACKs, echoes |
//! | `rto` | RFC 6298; INET's TCP |
//! | `config` | a scenario's parameters, resolved |

mod config;
mod rack;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use receiver::Receiver;
pub use sender::Sender;
