//! The transports: TCP's two ends as pure state machines, with NewReno, CUBIC, DCTCP or Swift deciding the window.
//!
//! A [`Sender`] and a [`Receiver`] know neither clock nor network: the host tells them what arrived and when, asks
//! [`Sender::poll_send`] for segments until there is none, and calls `on_timer` once `deadline` has passed. Deadlines move
//! by plain stores, so the host keeps at most one timer event a connection and looks at the deadline when it fires.
//!
//! Stream offsets are 64 bits and start at 0. SYN takes no sequence space, there is no FIN (the host knows a flow's
//! size), and an ACK echoes the hand-down time of the data that caused it (RFC 7323), in picoseconds. Not modelled: PRR
//! (RFC 6937), RACK (RFC 8985 §6), F-RTO (RFC 5682), DSACK (RFC 2883), HyStart++ (RFC 9406), Nagle, zero windows, and
//! RFC 3168's wait for the timer when a mark meets a window of one segment.
//!
//! | file | what it follows |
//! |---|---|
//! | `sender` | RFC 5681, 6582, 6675, 3042, 6928, 8985 §7: windows, loss recovery, handshake, tail loss probe |
//! | `scoreboard`, `ranges` | RFC 6675 §4: what the receiver holds, what is lost, what is next |
//! | `receiver` | RFC 5681 §4.2, 2018, 3168 §6.1.3, 8257 §3.2: reassembly, ACKs, echoes |
//! | `rto` | RFC 6298; INET's TCP |
//! | `congestion` | RFC 5681 §3.1, 9438, 8257 §3.3; Swift, SIGCOMM 2020 |
//!
//! Invariant: while data is unacknowledged or a SYN unanswered the sender's deadline is set, so a connection always goes
//! on by itself, whatever the network loses, reorders or repeats.

mod congestion;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;
pub use sender::Sender;

use millpond_core::{Ecn, Sack, Time};
use millpond_results::Quantity;
use millpond_scenario::plan::Plan;
use millpond_scenario::transport::{
    DctcpAlphaUpdate, DctcpEcho, DctcpReduce, FastRecovery, RtoEstimator, SwiftParams, TransportKind, TransportParams,
};

/// What the control laws of a plan's connections steer by, each quantity once.
pub fn quantities(plan: &Plan) -> Vec<Quantity> {
    let kinds = std::iter::once(&plan.transport_kind).chain(&plan.traffic.other_transports);
    let mut all: Vec<Quantity> = Vec::new();
    for kind in kinds {
        let cfg = Config::new(&plan.transport, kind, plan.host.mtu);
        for (quantity, _) in congestion::Congestion::new(&cfg).told(&cfg) {
            if !all.contains(&quantity) {
                all.push(quantity);
            }
        }
    }
    all
}

/// A timeout of zero would fire again and again at the same instant: none is shorter than this.
const SHORTEST_RTO: Time = Time::from_us(1);

/// What all connections of a run share: the scenario's parameters, resolved to numbers.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// Window of a new connection, in bytes.
    pub initial_window: u64,
    /// Bytes that may be unacknowledged whatever the congestion window: the smaller of both buffers, at least one MSS.
    pub window_limit: u64,
    /// Bytes by which one ACK may grow the window in slow start.
    pub growth_limit: u64,
    /// Shortest timeout (RFC 6298 (2.4)).
    pub min_rto: Time,
    /// Timeout before the first sample (RFC 6298 (2.1)).
    pub initial_rto: Time,
    /// Longest timeout (RFC 6298 (2.5)).
    pub max_rto: Time,
    /// How the timeout follows the samples.
    pub rto_estimator: RtoEstimator,
    /// The timeout of data, if it is pinned.
    pub fixed_rto: Option<Time>,
    /// Full segments that one ACK may cover; 1: every packet is acknowledged at once.
    pub delayed_ack: u32,
    /// How long an ACK may be held back.
    pub delayed_ack_timeout: Time,
    /// Duplicate ACKs that mean loss; `u32::MAX`: none do.
    pub dupack_threshold: u32,
    /// Whether connections open with SYN and SYN-ACK.
    pub handshake: bool,
    /// RFC 8985 §7.
    pub tlp: bool,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// RFC 5681 §3.2 without RFC 6582, where there is no SACK.
    pub reno: bool,
    /// RFC 7661: the window grows only while it limits.
    pub window_validation: bool,
    /// RFC 9293 §3.8.6.2.1: only full segments, but for the end of the stream.
    pub silly_window_avoidance: bool,
    /// Whether an ACK with an echo may grow the window.
    pub growth_on_echo: bool,
    /// RFC 2018 and 6675; otherwise RFC 6582.
    pub sack: bool,
    /// RFC 5681 §4.1.
    pub restart_after_idle: bool,
    /// ECN field of new data.
    pub data_ecn: Ecn,
    /// ECN field of retransmissions. RFC 3168 §6.1.5 forbids ECT there; DCTCP sets it all the same, as Linux does, since
    /// what is not ECT is dropped where DCTCP's marks begin.
    pub retransmission_ecn: Ecn,
    /// How the receiver echoes CE.
    pub echo: Echo,
    /// The congestion control, with its constants.
    pub control: Control,
    /// How long a sender with nothing in flight waits to try again what its own host has refused.
    pub probe_timer: Time,
    /// Its connections take the uncommon path: Swift's, which may have to wait, those that probe, and those of `others`.
    pub apart: bool,
    /// Further transports of the run, of the same common parameters: those that some traffics have for themselves.
    pub others: Vec<Config>,
}

/// How a receiver echoes congestion marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Not at all: ECN was not negotiated.
    Off,
    /// RFC 8257 §3.2: the ACK of marked bytes, and no other.
    Precise,
    /// RFC 3168 §6.1.3: every ACK until the sender's CWR.
    Latch,
}

/// The congestion control, with its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// RFC 5681.
    NewReno,
    /// RFC 9438.
    Cubic {
        /// C, in segments per second cubed.
        c: f64,
        /// What remains after a congestion event.
        beta: f64,
        /// RFC 9438 §4.7.
        fast_convergence: bool,
        /// RFC 9438 §4.3.
        reno_friendly: bool,
    },
    /// RFC 8257.
    Dctcp {
        /// Weight of the newest window.
        g: f64,
        /// Alpha of a new connection.
        alpha_initial: f64,
        /// When it reacts.
        reduce: DctcpReduce,
        /// What ends an observation window.
        alpha_update: DctcpAlphaUpdate,
        /// What a loss leaves of the flight.
        loss_reduction: f64,
    },
    /// Swift, SIGCOMM 2020.
    Swift(Swift),
}

/// Swift's constants. Delays in picoseconds, windows in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swift {
    /// Target without switches, for a large window.
    pub base: f64,
    /// What each switch adds to it.
    pub hop: f64,
    /// The most that a small window adds.
    pub fs_range: f64,
    /// What a small window adds is `fs_a / √window + fs_b`.
    pub fs_a: f64,
    /// As above.
    pub fs_b: f64,
    /// Additive increase a round trip.
    pub increase: f64,
    /// Weight of the excess of the delay in a decrease.
    pub beta: f64,
    /// Largest decrease.
    pub max_decrease: f64,
    /// Smallest window.
    pub min: f64,
    /// Largest window.
    pub max: f64,
    /// Timeouts in a row that bring the smallest window.
    pub reset: u32,
}

impl Swift {
    /// The flow scaling's a and b are such that it adds all of its range at a window of `swift-fs-min`, and nothing at
    /// one of `swift-fs-max`; where these are not in order it adds nothing.
    fn new(p: &SwiftParams) -> Swift {
        let (smallest, ps) = (1e-6, |t: Time| t.as_ps() as f64);
        let min = p.swift_window_min.max(smallest);
        let inverse = |window: f64| 1.0 / libm::sqrt(window.max(smallest));
        let span = inverse(p.swift_fs_min) - inverse(p.swift_fs_max);
        let fs_a = if span > 0.0 { ps(p.swift_fs_range) / span } else { 0.0 };
        Swift {
            base: ps(p.swift_base_target),
            hop: ps(p.swift_hop_target),
            fs_range: ps(p.swift_fs_range),
            fs_a,
            fs_b: -fs_a * inverse(p.swift_fs_max),
            increase: p.swift_additive_increase.max(0.0),
            beta: p.swift_beta.max(0.0),
            max_decrease: p.swift_max_decrease.clamp(0.0, 1.0),
            min,
            max: p.swift_window_max.max(min),
            reset: p.swift_retransmit_reset.max(1),
        }
    }
}

impl Config {
    /// The transport of a connection: 0 is this one, n the n-th of the others.
    #[inline]
    pub fn of(&self, which: u8) -> &Config {
        match which {
            0 => self,
            n => &self.others[n as usize - 1],
        }
    }

    /// With these for the traffics that have their own.
    pub fn with_others(self, params: &TransportParams, kinds: &[TransportKind], mtu: u32) -> Config {
        let other = |kind: &TransportKind| Config { apart: true, ..Config::new(params, kind, mtu) };
        Config { others: kinds.iter().map(other).collect(), ..self }
    }

    /// Resolves a scenario's parameters for packets of `mtu` IP bytes. Fractions are taken into [0, 1].
    pub fn new(params: &TransportParams, kind: &TransportKind, mtu: u32) -> Config {
        let mss = params.mss.unwrap_or(mtu.saturating_sub(40)).max(1);
        let segments = |n: u32| u64::from(n.max(1)) * u64::from(mss);
        let buffer = |bytes: Option<millpond_core::Bytes>| bytes.map_or(u64::MAX, |b| b.get());
        let (ecn, echo, control) = match kind {
            TransportKind::NewReno(p) => (p.newreno_ecn, Echo::Latch, Control::NewReno),
            TransportKind::Cubic(p) => {
                let (c, beta) = (p.cubic_c.max(0.0), p.cubic_beta.clamp(0.0, 1.0));
                let (fast_convergence, reno_friendly) = (p.cubic_fast_convergence, p.cubic_reno_friendly);
                (p.cubic_ecn, Echo::Latch, Control::Cubic { c, beta, fast_convergence, reno_friendly })
            }
            TransportKind::Dctcp(p) => {
                let echo = match p.dctcp_echo {
                    DctcpEcho::Precise => Echo::Precise,
                    DctcpEcho::Latch => Echo::Latch,
                };
                let (g, alpha_initial) = (p.dctcp_g.clamp(0.0, 1.0), p.dctcp_alpha_initial.clamp(0.0, 1.0));
                let (reduce, alpha_update) = (p.dctcp_reduce, p.dctcp_alpha_update);
                let loss_reduction = p.dctcp_loss_reduction.clamp(0.0, 1.0);
                (true, echo, Control::Dctcp { g, alpha_initial, reduce, alpha_update, loss_reduction })
            }
            TransportKind::Swift(p) => (false, Echo::Off, Control::Swift(Swift::new(p))),
        };
        let largest = match &control {
            Control::Swift(p) => ((p.max * f64::from(mss)) as u64).max(u64::from(mss)),
            _ => u64::MAX,
        };
        Config {
            mss,
            initial_window: segments(params.initial_window).min(largest),
            window_limit: buffer(params.send_buffer).min(buffer(params.receive_buffer)).max(u64::from(mss)),
            growth_limit: params.growth_limit.map_or(u64::MAX, segments),
            min_rto: params.min_rto.max(SHORTEST_RTO),
            initial_rto: params.initial_rto.max(SHORTEST_RTO),
            max_rto: params.max_rto.max(params.min_rto).max(SHORTEST_RTO),
            rto_estimator: params.rto_estimator,
            fixed_rto: params.fixed_rto.map(|t| t.max(SHORTEST_RTO)),
            delayed_ack: params.delayed_ack.max(1),
            delayed_ack_timeout: params.delayed_ack_timeout,
            dupack_threshold: params.dupack_threshold.map_or(u32::MAX, |n| n.max(1)),
            handshake: params.handshake,
            tlp: params.tlp && params.sack,
            limited_transmit: params.limited_transmit,
            reno: params.fast_recovery == FastRecovery::Reno && !params.sack,
            window_validation: params.window_validation,
            silly_window_avoidance: params.silly_window_avoidance,
            growth_on_echo: matches!(kind, TransportKind::Dctcp(p) if p.dctcp_growth_on_echo),
            sack: params.sack,
            restart_after_idle: params.restart_after_idle,
            data_ecn: if ecn { Ecn::Ect } else { Ecn::NotEct },
            retransmission_ecn: if matches!(control, Control::Dctcp { .. }) { Ecn::Ect } else { Ecn::NotEct },
            echo: if ecn { echo } else { Echo::Off },
            probe_timer: params.probe_timer.max(SHORTEST_RTO),
            apart: matches!(control, Control::Swift(_)) || params.tlp,
            others: Vec::new(),
            control,
        }
    }

    /// Whether the transport declares that it reacts to marks.
    #[inline]
    pub fn ecn(&self) -> bool {
        self.data_ecn == Ecn::Ect
    }
}

/// A segment that the sender hands down; the host stamps it with the time. Up to 64 KB, for the NIC to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Offset of its first byte.
    pub seq: u64,
    /// Payload bytes; 0 for a SYN.
    pub len: u32,
    /// Opens the connection.
    pub syn: bool,
    /// Was sent before (a SYN, too).
    pub retransmission: bool,
    /// The window has been reduced; of a segment that is cut, the first packet says so (RFC 3168 §6.1.2).
    pub cwr: bool,
    /// ECN field.
    pub ecn: Ecn,
}

/// An acknowledgement as it reaches the sender.
#[derive(Clone, Copy, Debug)]
pub struct AckIn<'a> {
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// ECN echo.
    pub ece: bool,
    /// What it holds beyond; `None` where it holds nothing.
    pub sack: Option<&'a Sack>,
    /// When the data that caused it was handed down.
    pub stamp: Time,
    /// Switches that the data has crossed.
    pub hops: u8,
}

/// An acknowledgement as it leaves the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOut {
    /// The next byte expected.
    pub ack: u64,
    /// ECN echo.
    pub ece: bool,
    /// What is held beyond; a count of 0 means nothing.
    pub sack: Sack,
    /// Hand-down time of the data that it answers (RFC 7323 §4.3: the earliest that it newly acknowledges).
    pub stamp: Time,
}

/// What the arrival of a data packet has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes delivered in order to the application by now.
    pub in_order_upto: u64,
    /// Whether the packet came before bytes that precede it.
    pub out_of_order: bool,
    /// ACKs to send now, in this order: first one for what came before a change of CE, if there is any (RFC 8257 §3.2).
    pub acks: [Option<AckOut>; 2],
}
