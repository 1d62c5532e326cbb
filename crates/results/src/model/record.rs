//! One flow and one query as they ended: what the worlds hand over, and what a row of the Parquet
//! files is made of.
//!
//! Invariant: a record is plain numbers in typed units; nothing here is rounded. Definitions of
//! FCT, QCT and slowdown are in `docs/results.md`.

use millpond_core::packet::Record;
use millpond_core::switch::pause::PauseFrame;
use millpond_core::switch::port::LinkRate;
use millpond_core::{Bytes, Packet, Time};
use serde::{Deserialize, Serialize};

/// One packet that a capture has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When its last bit left there, or arrived.
    pub at: Time,
    pub tap: u16,
    /// Whether it left the host or port, or came to it.
    pub outgoing: bool,
    /// Itself. Where it is a frame, its flow is a hash of the frame's addresses and ports.
    pub packet: Packet,
    pub records: Vec<Record>,
    /// The frame that it is, if a kernel has made it.
    pub frame: Option<Frame>,
}

/// A captured packet of a kernel, byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its first bytes, from the Ethernet header on.
    pub bytes: Box<[u8]>,
    /// How many bytes it has.
    pub length: u32,
    /// Packets before it that the capture has missed.
    pub missed: u64,
}

/// One PAUSE frame that a capture has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseRecord {
    /// When its last bit left there, or arrived.
    pub at: Time,
    pub tap: u16,
    /// Whether it left the host or port, or came to it.
    pub outgoing: bool,
    /// Whom it stops and for how long.
    pub frame: PauseFrame,
    /// Its link's rate, in times of which frames may count.
    pub rate: LinkRate,
}

/// A node of the network, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Switch(u32),
    /// A host; its port is its NIC, number 0.
    Host(u32),
}

/// The packets that waited at a port just before an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRecord {
    pub at: Time,
    pub node: Node,
    pub port: u16,
    /// Bytes that waited.
    pub bytes: u64,
    /// Packets that waited.
    pub packets: u32,
}

/// The bytes of one flow in one direction that waited at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowShare {
    /// The flow. Acknowledgements have the number of the flow that they acknowledge.
    pub flow: u32,
    /// The host that sent the packets.
    pub src: u32,
    /// The host that they are for.
    pub dst: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A connection's sending end just before an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionRecord {
    pub at: Time,
    pub flow: u32,
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub src: u32,
    pub dst: u32,
    /// Where its loss recovery stands, in Linux's words.
    pub state: &'static str,
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow-start threshold in bytes; `None`: there is none yet.
    pub ssthresh: Option<u64>,
    /// Bytes believed to be in the network.
    pub in_flight: u64,
    /// Bytes acknowledged since it was opened.
    pub acked: u64,
    /// The smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Time>,
    /// The retransmission timeout, as backed off.
    pub rto: Time,
    /// Segments sent again since it was opened.
    pub retransmitted: u32,
    /// Expiries of its retransmission timer since it was opened.
    pub timeouts: u32,
    /// The values that its control law steers by; those that do not exist yet are not there.
    pub law: Vec<(&'static str, f64)>,
}

/// A flow that ended, or that was open at the run's end: one row of `flows.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    pub flow: u32,
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub src: u32,
    pub dst: u32,
    /// Application bytes that it carries.
    pub bytes: u64,
    pub start: Time,
    /// When its last byte was delivered in order; `None` if it never was.
    pub finish: Option<Time>,
    /// When its first data byte was sent.
    pub sender_first: Option<Time>,
    /// When its last byte was acknowledged.
    pub sender_last: Option<Time>,
    /// FCT of the same flow alone in the empty network (a span); zero if unknown.
    pub ideal: Time,
    /// Data packets sent again.
    pub retransmitted: u32,
    pub timeouts: u32,
    /// Data packets that arrived before an earlier one, which was late or lost; `None` if nobody
    /// counted them for this flow alone.
    pub out_of_order: Option<u32>,
    /// How often the path changed between two packets; `None` as above.
    pub path_changes: Option<u32>,
    /// A call on a persistent connection, which shares the connection's retransmissions and
    /// timeouts with other calls.
    pub is_call: bool,
    /// The query that it answers, if any.
    pub query: Option<u32>,
    /// The smoothed round-trip time at its end; zero: none was measured.
    pub srtt: Time,
    /// The retransmission timeout at its end.
    pub rto: Time,
    /// `false`: it started in the warm-up. It carried load, but makes no row and enters no
    /// statistic.
    pub counted: bool,
}

/// One query: several flows that answer one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryRecord {
    pub query: u32,
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub client: u32,
    pub degree: u32,
    /// When its first request was sent, or when it started.
    pub start: Time,
    /// When its last response was complete.
    pub finish: Option<Time>,
    pub completed: u32,
    pub counted: bool,
}

/// A rank's part of a round of its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub round: u32,
    pub rank: u32,
    pub host: u32,
    /// When it began, with its computation.
    pub began: Time,
    /// When it could send its first message.
    pub ready: Time,
    /// When all messages for it were there.
    pub ended: Time,
    pub computed: Time,
    /// Its first computations after it was ready, from when until when.
    pub computations: Vec<(Time, Time)>,
}

/// One round of a job: a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CollectiveRecord {
    /// Index into [`Header::classes`](crate::Header::classes).
    pub class: u16,
    pub round: u32,
    /// When the first rank began, with its computation.
    pub began: Time,
    /// When the first rank could send.
    pub begin: Time,
    /// When the first rank had ended its part.
    pub first_end: Time,
    /// When the last one had; `None`: not all have.
    pub end: Option<Time>,
    /// The longest that a rank computed.
    pub computed: Time,
    /// From begin to end without contention.
    pub closed_form: Time,
    /// A rank's buffer over the time, in bytes a second; `None` where there is no buffer.
    pub algbw: Option<f64>,
    /// The same times the factor that makes it comparable with a link's rate.
    pub busbw: Option<f64>,
    pub counted: bool,
}

impl CollectiveRecord {
    /// From begin to end; `None` while unfinished.
    pub fn time(&self) -> Option<Time> {
        self.end.map(|end| end.saturating_sub(self.begin))
    }

    /// The time over that without contention; `None` where either is unknown.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let time = self.time().filter(|_| self.closed_form > Time::ZERO)?;
        Some(time.as_ps() as f64 / self.closed_form.as_ps() as f64)
    }
}

impl FlowRecord {
    /// From the start to the last byte delivered; `None` while unfinished.
    pub fn fct(&self) -> Option<Time> {
        self.finish.map(|finish| finish.saturating_sub(self.start))
    }

    /// From the first data byte sent to the last byte acknowledged.
    pub fn fct_sender(&self) -> Option<Time> {
        Some(self.sender_last?.saturating_sub(self.sender_first?))
    }

    /// FCT over the ideal one; `None` while unfinished or where the ideal is unknown.
    pub fn slowdown(&self) -> Option<f64> {
        let fct = self.fct()?;
        (self.ideal != Time::ZERO).then(|| fct.as_ps() as f64 / self.ideal.as_ps() as f64)
    }

    pub(crate) fn is_mouse(&self, limit: Bytes) -> bool {
        self.bytes < limit.get()
    }

    pub(crate) fn is_elephant(&self, limit: Bytes) -> bool {
        self.bytes > limit.get()
    }
}

impl QueryRecord {
    /// From the start to the last response; `None` while unfinished.
    pub fn qct(&self) -> Option<Time> {
        self.finish.map(|finish| finish.saturating_sub(self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_follow_the_contract() {
        let flow = FlowRecord {
            bytes: 100_000,
            start: Time::from_us(10),
            finish: Some(Time::from_us(40)),
            sender_first: Some(Time::from_us(12)),
            sender_last: Some(Time::from_us(44)),
            ideal: Time::from_us(20),
            ..FlowRecord::default()
        };
        assert_eq!(flow.fct(), Some(Time::from_us(30)));
        assert_eq!(flow.fct_sender(), Some(Time::from_us(32)));
        assert_eq!(flow.slowdown(), Some(1.5));
        assert!(!flow.is_mouse(Bytes(100_000)) && !flow.is_elephant(Bytes(100_000)));
        assert_eq!(FlowRecord { ideal: Time::ZERO, ..flow }.slowdown(), None);
        assert_eq!(FlowRecord { finish: None, ..flow }.slowdown(), None);
    }
}
