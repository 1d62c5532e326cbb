//! TCP_INFO, read from the kernel's raw bytes.
//!
//! `libc` has fewer fields than the kernel, so each is read at its offset in `struct tcp_info` of
//! `include/uapi/linux/tcp.h`. The kernel appends fields and moves none.
//!
//! Invariant: a field that this kernel does not have reads as zero.

use millpond_agent::socket;
use millpond_core::Time;
use std::os::fd::{AsFd, OwnedFd};

/// Eight bits each.
const TCPI_STATE: usize = 0;
const TCPI_CA_STATE: usize = 1;
const TCPI_RTO: usize = 8;
const TCPI_SND_MSS: usize = 16;
const TCPI_UNACKED: usize = 24;
const TCPI_SACKED: usize = 28;
const TCPI_LOST: usize = 32;
const TCPI_RETRANS: usize = 36;
const TCPI_RTT: usize = 68;
const TCPI_SND_SSTHRESH: usize = 76;
const TCPI_SND_CWND: usize = 80;
const TCPI_TOTAL_RETRANS: usize = 100;
/// Sixty-four bits, since Linux 4.1.
const TCPI_BYTES_ACKED: usize = 120;
/// Since Linux 5.4.
const TCPI_RCV_OOOPACK: usize = 224;
/// Sixteen bits, since Linux 6.7.
const TCPI_TOTAL_RTO: usize = 240;
/// Bytes up to the last field that is read here.
pub const LENGTH: usize = 248;

/// `TCP_SYN_SENT` of `include/net/tcp_states.h`.
const SYN_SENT: u8 = 2;
/// By `enum tcp_ca_state`.
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
/// The kernel's threshold before the first loss, in segments (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// One end of a connection as its kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent again, a SYN among them.
    pub retransmitted: u32,
    /// Expiries of the retransmission timer, those of the SYN among them.
    pub timeouts: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Time,
    pub rto: Time,
    /// Data packets that arrived before an earlier one.
    pub out_of_order: u32,
    /// Whether the peer has not answered its SYN.
    pub is_opening: bool,
    /// Where its loss recovery stands, as a place in [`CA_STATES`].
    recovery: u8,
    /// Payload bytes of a full segment.
    mss: u32,
    cwnd: u32,
    ssthresh: u32,
    /// Segments believed to be in the network (RFC 6675's pipe).
    pipe: u32,
    /// Sequence numbers acknowledged; the SYN of the end that has connected is one.
    acked: u64,
}

impl TcpInfo {
    /// Reads a socket's; all zero if the kernel refuses.
    pub fn of(socket: impl AsFd) -> TcpInfo {
        TcpInfo::parse(&socket::tcp_info(socket))
    }

    /// Reads the kernel's bytes; fields beyond their end are zero.
    pub fn parse(raw: &[u8]) -> TcpInfo {
        let mut bytes = [0; LENGTH];
        bytes.iter_mut().zip(raw).for_each(|(to, from)| *to = *from);
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let double = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let out = word(TCPI_UNACKED).saturating_add(word(TCPI_RETRANS));
        TcpInfo {
            retransmitted: word(TCPI_TOTAL_RETRANS),
            timeouts: half(TCPI_TOTAL_RTO).into(),
            srtt: Time::from_us(word(TCPI_RTT).into()),
            rto: Time::from_us(word(TCPI_RTO).into()),
            out_of_order: word(TCPI_RCV_OOOPACK),
            is_opening: bytes[TCPI_STATE] == SYN_SENT,
            recovery: bytes[TCPI_CA_STATE],
            mss: word(TCPI_SND_MSS),
            cwnd: word(TCPI_SND_CWND),
            ssthresh: word(TCPI_SND_SSTHRESH),
            pipe: out.saturating_sub(word(TCPI_SACKED).saturating_add(word(TCPI_LOST))),
            acked: double(TCPI_BYTES_ACKED),
        }
    }

    /// The name of its state: `syn-sent`, or where its loss recovery stands, in the kernel's words.
    pub fn state(&self) -> &'static str {
        match self.is_opening {
            true => "syn-sent",
            false => CA_STATES.get(usize::from(self.recovery)).copied().unwrap_or("open"),
        }
    }
    /// The congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.bytes(self.cwnd)
    }
    /// The slow-start threshold in bytes, if there is one.
    pub fn ssthresh(&self) -> Option<u64> {
        (self.ssthresh < INFINITE_SSTHRESH).then(|| self.bytes(self.ssthresh))
    }
    /// Bytes believed to be in the network: whole segments.
    pub fn in_flight(&self) -> u64 {
        self.bytes(self.pipe)
    }
    /// Payload bytes acknowledged, of an end that has connected or accepted.
    pub fn acked(&self, has_connected: bool) -> u64 {
        self.acked.saturating_sub(u64::from(has_connected))
    }

    fn bytes(&self, segments: u32) -> u64 {
        u64::from(segments) * u64::from(self.mss)
    }
}

/// The report of a connection's end about itself.
pub trait Socket {
    fn info(&self) -> TcpInfo;
    /// Bytes that it has taken and the peer has not acknowledged.
    fn unacknowledged(&self) -> u64;
}

impl Socket for OwnedFd {
    fn info(&self) -> TcpInfo {
        TcpInfo::of(self)
    }
    fn unacknowledged(&self) -> u64 {
        socket::unacknowledged(self).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_read_at_its_offset() {
        let mut bytes = [0xff; LENGTH];
        let fields = [
            (TCPI_RTO, 1u32),
            (TCPI_RTT, 2),
            (TCPI_TOTAL_RETRANS, 3),
            (TCPI_RCV_OOOPACK, 4),
            (TCPI_SND_MSS, 1000),
            (TCPI_UNACKED, 20),
            (TCPI_SACKED, 7),
            (TCPI_LOST, 5),
            (TCPI_RETRANS, 3),
            (TCPI_SND_CWND, 9),
            (TCPI_SND_SSTHRESH, 8),
            (TCPI_BYTES_ACKED, 70_001),
            (TCPI_BYTES_ACKED + 4, 1),
        ];
        for (at, value) in fields {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[TCPI_TOTAL_RTO..TCPI_TOTAL_RTO + 2].copy_from_slice(&5u16.to_ne_bytes());
        (bytes[TCPI_STATE], bytes[TCPI_CA_STATE]) = (1, 3);
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.rto, info.srtt), (Time::from_us(1), Time::from_us(2)));
        assert_eq!((info.retransmitted, info.out_of_order, info.timeouts), (3, 4, 5));
        assert_eq!((info.cwnd(), info.ssthresh(), info.in_flight()), (9_000, Some(8_000), 11_000));
        assert_eq!((info.acked(true), info.acked(false)), (4_295_037_296, 4_295_037_297));
        assert_eq!(info.state(), "recovery");
        bytes[TCPI_STATE] = SYN_SENT;
        bytes[TCPI_SND_SSTHRESH..TCPI_SND_SSTHRESH + 4]
            .copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.state(), info.ssthresh()), ("syn-sent", None));
    }

    #[test]
    fn an_older_kernels_bytes_are_zero_beyond_their_end() {
        let info = TcpInfo::parse(&[0xff; TCPI_TOTAL_RETRANS + 4]);
        assert_eq!((info.retransmitted, info.out_of_order, info.timeouts), (u32::MAX, 0, 0));
    }

    #[test]
    fn the_known_offsets_are_those_of_libc() {
        macro_rules! same {
            ($($ours:ident $theirs:ident),*) => {
                $(assert_eq!($ours, std::mem::offset_of!(libc::tcp_info, $theirs));)*
            };
        }
        same!(TCPI_STATE tcpi_state, TCPI_CA_STATE tcpi_ca_state, TCPI_RTO tcpi_rto);
        same!(TCPI_SND_MSS tcpi_snd_mss, TCPI_UNACKED tcpi_unacked, TCPI_SACKED tcpi_sacked);
        same!(TCPI_LOST tcpi_lost, TCPI_RETRANS tcpi_retrans, TCPI_RTT tcpi_rtt);
        same!(TCPI_SND_SSTHRESH tcpi_snd_ssthresh, TCPI_SND_CWND tcpi_snd_cwnd);
        same!(TCPI_TOTAL_RETRANS tcpi_total_retrans);
    }
}
