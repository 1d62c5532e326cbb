//! TCP_INFO, read from the kernel's raw bytes.
//!
//! `libc` has fewer fields than the kernel, so each is read at its offset in `struct tcp_info` of
//! `include/uapi/linux/tcp.h`. The kernel appends fields and moves none.
//!
//! Invariant: a field that this kernel does not have reads as zero.

use super::socket;
use millpond_core::Time;
use std::os::fd::AsFd;

const TCPI_RTO: usize = 8;
const TCPI_RTT: usize = 68;
const TCPI_TOTAL_RETRANS: usize = 100;
/// Since Linux 5.4.
const TCPI_RCV_OOOPACK: usize = 224;
/// Sixteen bits, since Linux 6.7.
const TCPI_TOTAL_RTO: usize = 240;
/// Up to the last field that is read here.
const LENGTH: usize = 248;

/// One end of a connection as its kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpInfo {
    /// Segments sent again, a SYN among them.
    pub retransmitted: u32,
    /// Expiries of the retransmission timer, those of the SYN among them.
    pub timeouts: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Time,
    /// Retransmission timeout.
    pub rto: Time,
    /// Data packets that arrived before an earlier one.
    pub out_of_order: u32,
}

impl TcpInfo {
    /// Reads a socket's; all zero if the kernel refuses.
    pub fn of(socket: impl AsFd) -> TcpInfo {
        let mut bytes = [0; LENGTH];
        socket::tcp_info(socket.as_fd(), &mut bytes);
        TcpInfo::parse(&bytes)
    }

    fn parse(bytes: &[u8; LENGTH]) -> TcpInfo {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        TcpInfo {
            retransmitted: word(TCPI_TOTAL_RETRANS),
            timeouts: half(TCPI_TOTAL_RTO).into(),
            srtt: Time::from_us(word(TCPI_RTT).into()),
            rto: Time::from_us(word(TCPI_RTO).into()),
            out_of_order: word(TCPI_RCV_OOOPACK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_read_at_its_offset() {
        let mut bytes = [0xff; LENGTH];
        let fields = [(TCPI_RTO, 1u32), (TCPI_RTT, 2), (TCPI_TOTAL_RETRANS, 3)];
        for (at, value) in fields.into_iter().chain([(TCPI_RCV_OOOPACK, 4)]) {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[TCPI_TOTAL_RTO..TCPI_TOTAL_RTO + 2].copy_from_slice(&5u16.to_ne_bytes());
        let expected = TcpInfo {
            rto: Time::from_us(1),
            srtt: Time::from_us(2),
            retransmitted: 3,
            out_of_order: 4,
            timeouts: 5,
        };
        assert_eq!(TcpInfo::parse(&bytes), expected);
    }

    #[test]
    fn the_known_offsets_are_those_of_libc() {
        assert_eq!(TCPI_RTO, std::mem::offset_of!(libc::tcp_info, tcpi_rto));
        assert_eq!(TCPI_RTT, std::mem::offset_of!(libc::tcp_info, tcpi_rtt));
        assert_eq!(TCPI_TOTAL_RETRANS, std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans));
    }
}
