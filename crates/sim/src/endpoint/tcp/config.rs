//! The configuration that all connections of a TCP share: a scenario's parameters, resolved to
//! numbers.

use millpond_core::congestion::{Demands, Echo, Terms};
use millpond_core::{Ecn, Time};
use millpond_scenario::transport::{
    Deferral, FastRecovery, LossDetection, Pacing, Reduction, RtoEstimator, RttSamples,
    TransportKind, TransportParams,
};

/// A timeout of zero would fire again and again at the same instant: none is shorter than this.
const SHORTEST_RTO: Time = Time::from_us(1);

/// The time that Linux adds to the waits for a probe and for reordering (`TCP_TIMEOUT_MIN_US`).
pub(super) const JIFFY_LEAST: Time = Time::from_ms(2);

/// The configuration that all connections of a run share: the scenario's parameters, resolved to
/// numbers.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// Window of a new connection, in bytes.
    pub initial_window: u64,
    /// Bytes that may be unacknowledged whatever the congestion window: the smaller of both
    /// buffers, at least one MSS.
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
    pub rtt_samples: RttSamples,
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
    /// RFC 8985 §6.
    pub rack: bool,
    /// RFC 9937.
    pub prr: bool,
    /// The tick of the timers of probes and reordering, if they are not exact.
    pub jiffy: Option<Time>,
    /// New data waits for room for a larger segment.
    pub defers: bool,
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
    /// Whether an echo may cut a window that a loss or a timeout has cut.
    pub cut_after_loss: bool,
    /// RFC 2018 and 6675; otherwise RFC 6582.
    pub sack: bool,
    /// Ranges that an acknowledgement reports at most.
    pub sack_blocks: usize,
    /// RFC 5681 §4.1.
    pub restart_after_idle: bool,
    pub data_ecn: Ecn,
    /// ECN field of retransmissions. RFC 3168 §6.1.5 forbids ECT there; a law may set it all the
    /// same.
    pub retransmission_ecn: Ecn,
    pub echo: Echo,
    pub terms: Terms,
    /// How long a sender with nothing in flight waits to try again what its own host has refused.
    pub probe_timer: Time,
    /// Its connections take the uncommon path: those that pace, which may have to wait, those that
    /// probe, those with RACK or PRR, and those of `others`.
    pub apart: bool,
    /// Packets leave one at a time, each at the law's next departure.
    pub spaces: bool,
    /// Segments leave at Linux's pacing rate.
    pub pacing: bool,
    /// Further transports of the run, of the same common parameters: those that some traffics have
    /// for themselves.
    pub others: Vec<Config>,
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
    pub fn with_others(self, others: impl Iterator<Item = Config>) -> Config {
        Config { others: others.map(|other| Config { apart: true, ..other }).collect(), ..self }
    }

    /// Resolves a scenario's parameters for packets of `mtu` IP bytes.
    pub fn new(params: &TransportParams, kind: &TransportKind, mtu: u32) -> Config {
        let mss = params.mss.unwrap_or(mtu.saturating_sub(40)).max(1);
        let segments = |n: u32| u64::from(n.max(1)) * u64::from(mss);
        let buffer = |bytes: Option<millpond_core::Bytes>| bytes.map_or(u64::MAX, |b| b.get());
        let Demands {
            echo,
            marks_retransmissions,
            grows_on_echo,
            cuts_after_loss,
            paces,
            spaces,
            ..
        } = kind.demands();
        let ect = |declares: bool| if declares { Ecn::Ect } else { Ecn::NotEct };
        let terms = Terms::new(kind, mss);
        let rack = params.loss_detection == LossDetection::Rack && params.sack;
        let prr = params.reduction == Reduction::Prr && params.sack;
        let pacing = params.pacing == Pacing::Linux && !paces;
        Config {
            mss,
            initial_window: terms.initial_window(segments(params.initial_window)),
            window_limit: buffer(params.send_buffer)
                .min(buffer(params.receive_buffer))
                .max(u64::from(mss)),
            growth_limit: params.growth_limit.map_or(u64::MAX, segments),
            min_rto: params.min_rto.max(SHORTEST_RTO),
            initial_rto: params.initial_rto.max(SHORTEST_RTO),
            max_rto: params.max_rto.max(params.min_rto).max(SHORTEST_RTO),
            rto_estimator: params.rto_estimator,
            rtt_samples: params.rtt_samples,
            fixed_rto: params.fixed_rto.map(|t| t.max(SHORTEST_RTO)),
            delayed_ack: params.delayed_ack.max(1),
            delayed_ack_timeout: params.delayed_ack_timeout,
            dupack_threshold: params.dupack_threshold.map_or(u32::MAX, |n| n.max(1)),
            handshake: params.handshake,
            tlp: params.tlp && params.sack,
            rack,
            prr,
            jiffy: params.jiffy.filter(|jiffy| *jiffy > Time::ZERO),
            defers: params.deferral == Deferral::Linux && rack,
            limited_transmit: params.limited_transmit,
            reno: params.fast_recovery == FastRecovery::Reno && !params.sack,
            window_validation: params.window_validation,
            silly_window_avoidance: params.silly_window_avoidance,
            growth_on_echo: grows_on_echo,
            cut_after_loss: cuts_after_loss,
            sack: params.sack,
            sack_blocks: if params.timestamps { 3 } else { 4 },
            restart_after_idle: params.restart_after_idle,
            data_ecn: ect(echo != Echo::Off),
            retransmission_ecn: ect(marks_retransmissions),
            echo,
            probe_timer: params.probe_timer.max(SHORTEST_RTO),
            apart: paces || pacing || params.tlp || rack || prr,
            spaces,
            pacing,
            others: Vec::new(),
            terms,
        }
    }

    /// When a timer that is set at `now` for `wait` expires: where timers count jiffies, after
    /// `least` more and as many whole ticks, at the end of the tick that follows.
    pub fn expires(&self, now: Time, wait: Time, least: Time) -> Time {
        let Some(jiffy) = self.jiffy.map(Time::as_ps) else { return now.saturating_add(wait) };
        let ticks = wait.saturating_add(least).as_ps().div_ceil(jiffy);
        Time::from_ps((now.as_ps() / jiffy + ticks + 1).saturating_mul(jiffy))
    }

    /// Whether the transport declares that it reacts to marks.
    #[inline]
    pub fn ecn(&self) -> bool {
        self.data_ecn == Ecn::Ect
    }
}
