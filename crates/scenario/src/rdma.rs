//! Queue pairs: the table `[rdma]`, which those of all their control laws share, and the place
//! `rdma.recovery`. The machines are the simulator's (`sim::endpoint::rdma`); here is what can be
//! set.
//!
//! Invariant: every default is that of the named paper or released simulator.

use millpond_core::registry::{About, PathProperty};
use millpond_core::switch::site::Auto;
use millpond_core::{Bytes, Rate, Time};

millpond_core::choice! {
    /// How much a queue pair may have in flight.
    pub enum FlowControl {
        /// As its control law asks: HPCC has a window in proportion to its rate, the others none.
        Law = "law",
        /// No window: the rate alone bounds it.
        None = "none",
        /// The window, whatever the rate.
        Static = "static",
        /// The window in proportion to the rate.
        Rate = "rate",
    }
}

millpond_core::choice! {
    /// From when on a rate that changes counts.
    pub enum RateChange {
        /// As its control law's released simulator: HPCC at once, the others from the next packet.
        Law = "law",
        /// The packet that waits for its departure gets a new one.
        AtOnce = "at-once",
        /// The packet that waits keeps its departure.
        NextPacket = "next-packet",
    }
}

millpond_core::choice! {
    /// How a receiver reports marks where the control law goes by notifications.
    pub enum Notification {
        /// By packets of their own (CNP), at most one in cnp-interval.
        Packets = "packets",
        /// By a bit of each acknowledgement and NACK that a marked packet causes.
        Answers = "answers",
    }
}

millpond_core::choice! {
    /// The packets that are sent again.
    pub enum Resend {
        /// Those before something that the receiver holds.
        Lost = "lost",
        /// All that was sent and that the receiver is not known to hold.
        All = "all",
    }
}

millpond_core::params! {
    /// The table `[rdma]`.
    pub struct RdmaParams {
        /// The highest rate of each queue pair, of packets with their headers: control laws begin
        /// at it, and return to it as to the host's link. Off: the link's. Without marks, as with
        /// dcqcn and switch.marking = "none", it is a fixed rate without congestion control.
        /// Source: NICs' rate limit of a queue pair (InfiniBand's static rate, IBA 1.2.1 §9.11).
        #[within(1..)]
        pub max_rate: Option<Rate> = None,
        /// How much a queue pair may have in flight: "law" (HPCC as "rate", the others as "none"),
        /// "none", "static" (window), or "rate" (window times the rate over the line's). Source:
        /// HPCC's released simulator, HAS_WIN and VAR_WIN.
        pub flow_control: FlowControl = FlowControl::Law,
        /// The window, in bytes. "auto" is base-rtt at the rate of the host's link. Source: HPCC,
        /// SIGCOMM 2019 §3.2.
        #[within(1..)]
        pub window: Auto<Bytes> = Auto::Auto,
        /// T: the round trip that a window and HPCC's arithmetic are for. "auto" is the longest of
        /// the empty network, for a full packet and its acknowledgement. Source: HPCC, SIGCOMM 2019
        /// §3.2, and its released simulator's GLOBAL_T.
        #[within(1..)]
        pub base_rtt: Auto<Time> = Auto::Auto,
        /// When a rate that changes counts: "at-once", also for the packet that waits for its
        /// departure, "next-packet", or "law" (HPCC at once, the others from the next packet).
        /// Source: HPCC's released simulator, whose HPCC alone calls RdmaHw::ChangeRate.
        pub rate_change: RateChange = RateChange::Law,
        /// Bytes of a data packet on the wire beside its headers and telemetry. Source: 8 for
        /// TIMELY in HPCC's released simulator, a timestamp (IntHeader).
        #[within(0..=256)]
        pub data_header: u32 = 0,
        /// A sender asks for an acknowledgement by each packet of this number, by the last of a
        /// message, by retransmissions, and by the last packet that the window lets out. Source: 1,
        /// HPCC's released simulator.
        #[within(1..)]
        pub ack_interval: u32 = 1,
        /// Priority of acknowledgements, 0 (lowest) to 7. Off means that of their data. Source:
        /// HPCC's released simulator, ACK_HIGH_PRIO.
        #[within(0..=7)]
        pub ack_priority: Option<u32> = None,
        /// Priority of NACKs. Off means that of their data.
        #[within(0..=7)]
        pub nack_priority: Option<u32> = None,
        /// Priority of CNPs. Off means that of their data. Source: DCQCN, SIGCOMM 2015 §3.1, sends
        /// them with high priority.
        #[within(0..=7)]
        pub cnp_priority: Option<u32> = None,
        /// How receivers report marks to DCQCN: "packets" (CNPs), or "answers" (a bit of each
        /// answer to a marked packet). Source: DCQCN, SIGCOMM 2015 §3.1; answers, HPCC's released
        /// simulator.
        pub notification: Notification = Notification::Packets,
        /// A queue pair's receiver sends no two CNPs within it. Source: 50us, DCQCN, SIGCOMM 2015
        /// §3.1; ConnectX NICs have 4us.
        pub cnp_interval: Time = Time::from_us(50),
        /// Whether a packet out of order is reported as a marked one is. Source: real NICs slow
        /// down on reordering, ConWeave, SIGCOMM 2023 §2; released simulators do not.
        pub cnp_on_reordering: bool = false,
    }
}

millpond_core::params! {
    /// Go-back-N.
    pub struct GoBackNParams {
        /// A receiver repeats a NACK for the same missing byte only after so long. Source: 500us,
        /// HPCC's released simulator.
        pub nack_interval: Time = Time::from_us(500),
        /// Whether a packet that comes again is acknowledged. Source: InfiniBand Architecture
        /// Specification 1.2.1, C9-110, and TLT's released simulator; HPCC's answers none
        /// (RdmaHw::ReceiverCheckSeq).
        pub answer_duplicates: bool = true,
        /// Silence after which all that is not acknowledged is sent again. It counts from the last
        /// packet or answer and never backs off. Source: 4ms, TLT's released simulator.
        #[within(1_000_000..)]
        pub timeout: Time = Time::from_ms(4),
    }
}

millpond_core::params! {
    /// Selective retransmission: IRN.
    pub struct SelectiveParams {
        /// A receiver repeats a NACK for a packet that it holds only after so long. Source: 500us,
        /// TLT's released simulator.
        pub nack_interval: Time = Time::from_us(500),
        /// The timeout while few packets are in flight. "auto" is four times base-rtt, at least
        /// 100us. Source: RTO_low, 100us in a network of 24us, IRN, SIGCOMM 2018 §3.1; 454us in
        /// TLT's released simulator.
        #[within(1_000_000..)]
        pub timeout_low: Auto<Time> = Auto::Auto,
        /// The timeout otherwise. "auto" is thirteen times base-rtt, at least 320us. Source:
        /// RTO_high, 320us in a network of 24us, IRN, SIGCOMM 2018 §4.1; 1930us in TLT's released
        /// simulator.
        #[within(1_000_000..)]
        pub timeout_high: Auto<Time> = Auto::Auto,
        /// N: how many packets are few. Source: 3, IRN, SIGCOMM 2018 §3.1; 4 in TLT's released
        /// simulator, whose three are without the last one (RdmaQueuePair::GetRto).
        pub few: u32 = 3,
        /// BDP-FC: the most that may be unacknowledged; "auto" is base-rtt at the rate of the
        /// host's link, off is no such bound. Source: IRN, SIGCOMM 2018 §3.2.
        #[within(1..)]
        pub bdp_limit: Auto<Option<Bytes>> = Auto::Auto,
        /// The packets that a recovery sends again: "lost" (what lies before something that the
        /// receiver holds) or "all" (also what lies beyond). After a timeout it is always all.
        /// Source: IRN, SIGCOMM 2018 §3.1; all, TLT's released simulator.
        pub resend: Resend = Resend::Lost,
    }
}

impl SelectiveParams {
    /// Both timeouts, the shorter first, where the longest round trip is this.
    pub fn timeouts(&self, base_rtt: Time) -> (Time, Time) {
        let times =
            |count: u64, least: u64| base_rtt.saturating_mul(count).max(Time::from_us(least));
        (self.timeout_low.or(|| times(4, 100)), self.timeout_high.or(|| times(13, 320)))
    }
}

const GO_BACK_N: About = About {
    summary: "the receiver drops what is out of order, and the sender goes back to what is missing",
    source: "InfiniBand Architecture Specification 1.2.1 §9.7; HPCC's released simulator",
    needs: &[PathProperty::FifoPerFlow],
    ..About::PLAIN
};
const SELECTIVE: About = About {
    summary: "the receiver keeps what is out of order, and the sender sends what is missing alone",
    source: "IRN, SIGCOMM 2018",
    needs: &[PathProperty::FifoPerFlow, PathProperty::TimersRun],
    ..About::PLAIN
};

millpond_core::registry! {
    /// How queue pairs repair losses.
    place: "rdma.recovery", question: "what does a queue pair send again?", default: GoBackN,
    params: RecoveryParams;
    "go-back-n" => GoBackN { GoBackNParams; GO_BACK_N },
    "selective" => Selective { SelectiveParams; SELECTIVE },
}
