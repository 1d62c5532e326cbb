//! The transport's parameters: what a connection does at both of its ends, and which congestion control it runs.
//!
//! A scenario gives the common keys and those of the chosen kind in one table, so the keys of a kind carry its name
//! (`dctcp-g`). The state machines are the simulator's (`sim::endpoint`); here is only what can be set.
//!
//! Invariant: every default is that of the named RFC, or the datacenter value whose source is given beside it.

use millpond_core::registry::{About, PathProperty};
use millpond_core::{Bytes, Time};

const NEEDS: &[PathProperty] =
    &[PathProperty::FifoPerFlow, PathProperty::TimersRun, PathProperty::LossIsSignal, PathProperty::PhasesMix];

const NEWRENO: About = About {
    summary: "halves its window on loss, grows by one segment a round trip",
    source: "RFC 5681, RFC 6582, RFC 6675",
    needs: NEEDS,
    breaks: &[],
    restores: &[],
};

const CUBIC: About = About {
    summary: "grows its window along a cubic of the time since the last loss",
    source: "RFC 9438",
    needs: NEEDS,
    breaks: &[],
    restores: &[],
};

const DCTCP: About = About {
    summary: "cuts its window in proportion to the fraction of bytes that met congestion",
    source: "RFC 8257; DCTCP, SIGCOMM 2010",
    needs: NEEDS,
    breaks: &[],
    restores: &[],
};

const SWIFT: About = About {
    summary: "steers the delay to a target, with windows below one segment where many flows meet",
    source: "Swift, SIGCOMM 2020",
    needs: &[PathProperty::FifoPerFlow, PathProperty::TimersRun],
    breaks: &[],
    restores: &[],
};

millpond_core::choice! {
    /// How the retransmission timeout follows the measured round-trip times.
    pub enum RtoEstimator {
        /// The first sample R sets SRTT = R and RTTVAR = R/2; gains 1/8 and 1/4 (RFC 6298 §2).
        Rfc6298 = "rfc6298",
        /// SRTT begins at 0 and RTTVAR at a quarter of `initial-rto`, which every sample, the first one too, moves by an
        /// eighth: the timeout of a young connection is some (7/8)^n of `initial-rto` after n samples (INET's TCP).
        Inet = "inet",
    }
}

millpond_core::choice! {
    /// What ends fast recovery where there is no SACK.
    pub enum FastRecovery {
        /// The acknowledgement of what was outstanding at its beginning; each earlier one shows the next hole (RFC 6582).
        NewReno = "newreno",
        /// The first acknowledgement of new data; a second hole in the window waits for duplicates of its own, or for the
        /// timer (RFC 5681 §3.2). Source: INET's Reno and DCTCP, which the artifacts of Vertigo and Canary run.
        Reno = "reno",
    }
}

millpond_core::choice! {
    /// How a DCTCP receiver echoes congestion marks.
    pub enum DctcpEcho {
        /// Each acknowledgement tells exactly which bytes were marked: the two-state machine of RFC 8257 §3.2.
        Precise = "precise",
        /// Every acknowledgement carries the echo until the sender says that it has reduced (RFC 3168 §6.1.3).
        Latch = "latch",
    }
}

millpond_core::choice! {
    /// When a DCTCP sender cuts its window.
    pub enum DctcpReduce {
        /// At the end of an observation window in which there were marks, after alpha's update (RFC 8257 §3.3).
        WindowEnd = "window-end",
        /// At the first mark of a window, with the alpha known by then (Linux, ns-3).
        FirstMark = "first-mark",
    }
}

millpond_core::choice! {
    /// When DCTCP's alpha is updated.
    pub enum DctcpAlphaUpdate {
        /// At the end of every observation window, with marks or without (RFC 8257 §3.3).
        Window = "window",
        /// Only by an acknowledgement that carries the echo, once it is past the window's end, over all bytes since the
        /// last update: without marks alpha never decays (INET's TCP as the Canary artifact runs it).
        Echo = "echo",
    }
}

millpond_core::params! {
    /// What all transports have in common.
    pub struct TransportParams {
        /// Largest payload of a packet, in bytes. Off means the MTU less 40 bytes of IP and TCP header (RFC 9293
        /// §3.7.1).
        pub mss: Option<u32> = None,
        /// Window of a new connection, in segments; its cap of 14600 bytes is not applied, as in Linux. Source: RFC
        /// 6928 §2.
        #[within(1..)]
        pub initial_window: u32 = 10,
        /// Shortest retransmission timeout. Source: RFC 6298 (2.4) says 1s, which no datacenter uses; 10ms is that of
        /// the DCTCP paper (SIGCOMM 2010 §4).
        pub min_rto: Time = Time::from_ms(10),
        /// Retransmission timeout before the first round-trip time is known, and of the SYN. Source: RFC 6298 (2.1).
        pub initial_rto: Time = Time::from_s(1),
        /// Longest retransmission timeout, backed off. Source: RFC 6298 (2.5) asks for at least 60s; INET's TCP has
        /// 240s.
        pub max_rto: Time = Time::from_s(60),
        /// How the timeout follows the measured round-trip times; `inet` begins with SRTT = 0 and RTTVAR = a quarter of
        /// `initial-rto` and moves both by an eighth a sample. Source: RFC 6298 §2; INET's TCP as the Vertigo and Canary
        /// artifacts run it.
        pub rto_estimator: RtoEstimator = RtoEstimator::Rfc6298,
        /// The retransmission timeout of data is always this, without backing off; the SYN's is not touched. Source:
        /// the static timeouts that TLT compares with (EuroSys 2021).
        pub fixed_rto: Option<Time> = None,
        /// An acknowledgement for at least every so many full segments; 1 acknowledges every packet at once. Source:
        /// RFC 5681 §4.2 allows 2.
        #[within(1..)]
        pub delayed_ack: u32 = 1,
        /// A delayed acknowledgement waits no longer than this. Source: RFC 5681 §4.2 allows 500ms; 40ms is Linux's.
        pub delayed_ack_timeout: Time = Time::from_ms(40),
        /// Duplicate acknowledgements that mean loss. Off: only the timer does. Source: RFC 5681 §3.2.
        #[within(1..)]
        pub dupack_threshold: Option<u32> = Some(3),
        /// Whether a probe is sent when the end of a flight stays unacknowledged for two round trips: new data if there is
        /// any, else the last segment again. It needs `sack`. Source: RFC 8985 §7; not its §7.4, which cuts the window if
        /// the probe alone has repaired a loss.
        pub tlp: bool = false,
        /// Whether a connection opens with SYN and SYN-ACK before its data. Source: RFC 9293 §3.5.
        pub handshake: bool = true,
        /// Bytes that the sender may hold unacknowledged.
        pub send_buffer: Option<Bytes> = None,
        /// The receiver's advertised window; its application reads at once, so it never shrinks.
        pub receive_buffer: Option<Bytes> = None,
        /// Whether the first duplicate acknowledgements let new segments out. Source: RFC 3042; RFC 6675 §5 (3).
        pub limited_transmit: bool = true,
        /// How losses are repaired without SACK. Source: RFC 6582; "reno" is RFC 5681 §3.2 alone.
        pub fast_recovery: FastRecovery = FastRecovery::NewReno,
        /// Whether the window grows only while it is what limits the sender. Source: RFC 7661 §4.1, RFC 9438 §5.8. Without
        /// it the window of a sender that the receiver's window limits grows far beyond, and cuts of it mean nothing.
        pub window_validation: bool = true,
        /// Whether a sender waits until its window has room for a full segment. Source: RFC 9293 §3.8.6.2.1. Without it
        /// whatever room there is gets a segment of that size.
        pub silly_window_avoidance: bool = true,
        /// Whether the receiver reports what it holds out of order, and the sender repairs by it. Source: RFC 2018,
        /// RFC 6675. Without it losses are repaired by RFC 6582.
        pub sack: bool = true,
        /// How long a sender with nothing in flight waits before it tries again to send what a limit on its own host has refused
        /// (at least a round trip). Source: Linux's shortest probe timer; NRM's slides shorten it to 20ms.
        pub probe_timer: Time = Time::from_ms(200),
        /// Whether the window falls back to the initial one after an idle time of one timeout. Source: RFC 5681 §4.1.
        pub restart_after_idle: bool = true,
        /// Segments by which one acknowledgement may grow the window in slow start; 1 after a timeout. Source: RFC 3465
        /// §2.2 and §2.3; 1 is RFC 5681 (2). No difference where every packet is acknowledged.
        pub growth_limit: Option<u32> = Some(2),
    }
}

millpond_core::params! {
    /// NewReno.
    pub struct NewRenoParams {
        /// Whether it declares ECN and halves on marks as on loss. Source: RFC 3168 §6.1.2.
        pub newreno_ecn: bool = false,
    }
}

millpond_core::params! {
    /// CUBIC.
    pub struct CubicParams {
        /// C, the aggressiveness, in segments per second cubed. Source: RFC 9438 §5.1.
        #[within(0..)]
        pub cubic_c: f64 = 0.4,
        /// What remains of the window after loss or a mark. Source: RFC 9438 §4.6.
        #[within(0..=1)]
        pub cubic_beta: f64 = 0.7,
        /// Whether a flow that lost below its last maximum gives up more, for new flows' sake. Source: RFC 9438 §4.7.
        pub cubic_fast_convergence: bool = true,
        /// Whether it is never slower than Reno would be. Source: RFC 9438 §4.3.
        pub cubic_reno_friendly: bool = true,
        /// Whether it declares ECN and reacts to marks as to loss. Source: RFC 9438 §4.6, RFC 3168 §6.1.2.
        pub cubic_ecn: bool = false,
    }
}

millpond_core::params! {
    /// DCTCP.
    pub struct DctcpParams {
        /// Weight of the newest window in alpha. Source: RFC 8257 §4.2.
        #[within(0..=1)]
        pub dctcp_g: f64 = 1.0 / 16.0,
        /// Alpha of a new connection. Source: RFC 8257 §3.3.
        #[within(0..=1)]
        pub dctcp_alpha_initial: f64 = 1.0,
        /// How the receiver echoes marks. Source: RFC 8257 §3.2.
        pub dctcp_echo: DctcpEcho = DctcpEcho::Precise,
        /// When in a window the sender reacts. Source: RFC 8257 §3.3.
        pub dctcp_reduce: DctcpReduce = DctcpReduce::WindowEnd,
        /// When alpha is updated: at the end of every window, or only by an `echo` past it, so that it never decays
        /// without marks. Source: RFC 8257 §3.3; `echo` is INET's TCP as the Canary artifact runs it.
        pub dctcp_alpha_update: DctcpAlphaUpdate = DctcpAlphaUpdate::Window,
        /// What the slow-start threshold keeps of the flight (at most the window) at a loss or a timeout; its floor is
        /// two segments. Source: RFC 8257 §3.4, RFC 5681 (4); 0.75 is INET's TCP as the Canary artifact runs it.
        #[within(0..=1)]
        pub dctcp_loss_reduction: f64 = 0.5,
        /// Whether an acknowledgement with the echo grows the window where it does not cut it. Source: RFC 3168 §6.1.2 says
        /// no; INET's DCTCP, which the artifacts of Vertigo and Canary run, does.
        pub dctcp_growth_on_echo: bool = false,
    }
}

millpond_core::params! {
    /// Swift. The window of a new connection is `initial-window`.
    pub struct SwiftParams {
        /// Target delay of a path without switches for a large window. Source: 60us is the Canary artifact's; the paper
        /// (§3.5) leaves it to the network.
        pub swift_base_target: Time = Time::from_us(60),
        /// Target delay that each switch on the way of the data adds. Source: Swift, SIGCOMM 2020 §3.5; 30us is the
        /// Canary artifact's.
        pub swift_hop_target: Time = Time::from_us(30),
        /// Most that a small window adds to the target. Source: Swift, SIGCOMM 2020 §3.5; 300us is the Canary
        /// artifact's.
        pub swift_fs_range: Time = Time::from_us(300),
        /// Window in segments from which on nothing is added. Source: Swift, SIGCOMM 2020 §3.5.
        pub swift_fs_max: f64 = 100.0,
        /// Window in segments below which all of the range is added. Source: Swift, SIGCOMM 2020 §3.5.
        pub swift_fs_min: f64 = 0.1,
        /// Segments a round trip by which the window grows below the target. Source: Swift, SIGCOMM 2020, algorithm 1;
        /// 1 is the Canary artifact's.
        #[within(0..)]
        pub swift_additive_increase: f64 = 1.0,
        /// How strongly the window follows the excess of the delay over the target. Source: Swift, SIGCOMM 2020,
        /// algorithm 1; 0.8 is the Canary artifact's.
        #[within(0..)]
        pub swift_beta: f64 = 0.8,
        /// Largest share of the window that one round trip may take; a loss takes just this. Source: Swift, SIGCOMM
        /// 2020, algorithm 1; 0.5 is the Canary artifact's.
        #[within(0..=1)]
        pub swift_max_decrease: f64 = 0.5,
        /// Largest window, in segments. Source: 43 is the Canary artifact's, some 64KB.
        pub swift_window_max: f64 = 43.0,
        /// Smallest window, in segments; below one, a segment leaves every round-trip time / window. Source: Swift,
        /// SIGCOMM 2020 §3.4.
        pub swift_window_min: f64 = 0.001,
        /// Timeouts in a row that bring the window to its smallest. Source: Swift, SIGCOMM 2020, algorithm 1, which
        /// names no number; 12 is the Canary artifact's.
        #[within(1..)]
        pub swift_retransmit_reset: u32 = 12,
    }
}

millpond_core::registry! {
    /// Which transport, with its parameters.
    place: "transport", question: "how much may be in flight?", default: Dctcp,
    params: TransportKind;
    "newreno" => NewReno { NewRenoParams; NEWRENO },
    "cubic" => Cubic { CubicParams; CUBIC },
    "dctcp" => Dctcp { DctcpParams; DCTCP },
    "swift" => Swift { SwiftParams; SWIFT },
}

impl TransportKind {
    /// Whether it declares ECN, and so learns of congestion from marks where there are any.
    pub fn declares_ecn(&self) -> bool {
        match self {
            TransportKind::NewReno(p) => p.newreno_ecn,
            TransportKind::Cubic(p) => p.cubic_ecn,
            TransportKind::Dctcp(_) => true,
            TransportKind::Swift(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::registry::Choice;

    #[test]
    fn every_key_is_documented_and_unique_in_the_one_table() {
        for mechanism in TransportKind::place().mechanisms {
            let names: Vec<String> = TransportParams::KEYS.iter().chain(mechanism.keys).map(|k| k.name()).collect();
            assert!(names.iter().enumerate().all(|(i, name)| !names[..i].contains(name)), "{names:?}");
            for key in mechanism.keys {
                assert!(key.name().starts_with(mechanism.kind) && key.text().contains("Source"), "{}", key.name());
            }
        }
        assert!(TransportParams::KEYS.iter().all(|key| !key.text().is_empty()));
        assert_eq!(TransportKind::default().kind(), "dctcp");
    }
}
