//! The transport's parameters: what a connection does at both of its ends, and which congestion
//! control it runs.
//!
//! A scenario gives the common keys and those of the chosen kind in one table, so the keys of a
//! kind carry its name (`dctcp-g`). The state machines are the simulator's (`sim::endpoint`); here
//! is only what can be set.
//!
//! Invariant: every default is that of the named RFC, or the datacenter value whose source is given
//! beside it.

pub use millpond_core::congestion::TransportKind;
use millpond_core::{Bytes, Time};

millpond_core::choice! {
    /// How the retransmission timeout follows the measured round-trip times.
    pub enum RtoEstimator {
        /// The first sample R sets SRTT = R and RTTVAR = R/2; gains 1/8 and 1/4 (RFC 6298 §2).
        Rfc6298 = "rfc6298",
        /// SRTT begins at 0 and RTTVAR at a quarter of `initial-rto`, which every sample, the first
        /// one too, moves by an eighth: the timeout of a young connection is some (7/8)^n of
        /// `initial-rto` after n samples (INET's TCP).
        Inet = "inet",
        /// Four control intervals of two smoothed round-trip times, each at least 50 us, which do
        /// not back off (TAS, a user-level TCP).
        Tas = "tas",
    }
}

millpond_core::choice! {
    /// Which acknowledgements of new data measure the round-trip time.
    pub enum RttSamples {
        /// Each: it echoes the time at which what it answers was sent (RFC 7323 §4.1).
        EveryAck = "every-ack",
        /// One that covers the oldest segment of those first sent since the last timeout, if that
        /// was sent once. A segment that a timeout declares lost gives no sample, also if its
        /// acknowledgement is only late (ns-3's TCP).
        SentOnce = "sent-once",
    }
}

millpond_core::choice! {
    /// The event that ends fast recovery where there is no SACK.
    pub enum FastRecovery {
        /// The acknowledgement of what was outstanding at its beginning; each earlier one shows the
        /// next hole (RFC 6582).
        NewReno = "newreno",
        /// The first acknowledgement of new data; a second hole in the window waits for duplicates
        /// of its own, or for the timer (RFC 5681 §3.2). Source: INET's Reno and DCTCP, which the
        /// artifacts of Vertigo and Canary run.
        Reno = "reno",
    }
}

millpond_core::choice! {
    /// How a sender with SACK finds out what is lost, before its timer expires.
    pub enum LossDetection {
        /// A segment is lost once `dupack-threshold` segments above it are SACKed (RFC 6675 §4).
        Dupack = "dupack",
        /// A segment or retransmission is lost once one sent after it is delivered and it is older
        /// than a round trip and a reordering window. The window is a quarter of the shortest round
        /// trip, at most the smoothed one. It is 0 in recovery or once `dupack-threshold` segments
        /// are SACKed, until reordering is seen (RFC 8985 §6.2).
        Rack = "rack",
    }
}

millpond_core::choice! {
    /// How the window of a sender with SACK comes down after a loss or a mark.
    pub enum Reduction {
        /// In one step: nothing leaves until the pipe is below the new window (RFC 6675 §5 (4.2)).
        AtOnce = "at-once",
        /// Over a round trip, in proportion to what is delivered (RFC 9937).
        Prr = "prr",
    }
}

millpond_core::choice! {
    /// The behaviour of a sender whose window has room for less than it could send at once.
    pub enum Deferral {
        /// It sends as soon as there is room for a segment.
        Off = "off",
        /// It waits until a third of its window is free, unless nothing left within 1 ms or the
        /// oldest data in flight is younger than half a round trip.
        Linux = "linux",
    }
}

millpond_core::choice! {
    /// The rule that spaces the segments of a transport that steers a window.
    pub enum Pacing {
        /// Nothing: acknowledgements alone let segments out.
        Off = "off",
        /// Linux's pacing rate: twice the window a smoothed round trip while the window is below
        /// half of the slow-start threshold, 1.2 times it from there on. A segment holds what this
        /// rate gives in 1/1024 s, two packets at least; the first ten packets are not paced.
        Linux = "linux",
    }
}

millpond_core::params! {
    /// The keys of every TCP. Queue pairs have `crate::rdma::RdmaParams`.
    pub struct TransportParams {
        /// Largest payload of a packet, in bytes. Off means the MTU less 40 bytes of IP and TCP
        /// header (RFC 9293 §3.7.1).
        pub mss: Option<u32> = None,
        /// Window of a new connection, in segments; its cap of 14600 bytes is not applied, as in
        /// Linux. Source: RFC 6928 §2.
        #[within(1..)]
        pub initial_window: u32 = 10,
        /// Shortest retransmission timeout. Source: RFC 6298 (2.4) has 1s, which no datacenter
        /// uses; 10ms is that of the DCTCP paper (SIGCOMM 2010 §4).
        pub min_rto: Time = Time::from_ms(10),
        /// Retransmission timeout before the first round-trip time is known, and of the SYN.
        /// Source: 10ms is what Linux' sample program for hosts of one datacenter sets for SYN and
        /// SYN-ACK (`samples/bpf/tcp_synrto_kern.c`); RFC 6298 (2.1) has 1s, for the Internet.
        pub initial_rto: Time = Time::from_ms(10),
        /// Longest retransmission timeout, backed off. Source: RFC 6298 (2.5) asks for at least
        /// 60s; INET's TCP has 240s.
        pub max_rto: Time = Time::from_s(60),
        /// How the timeout follows the measured round-trip times; `inet` begins with SRTT = 0 and
        /// RTTVAR = a quarter of `initial-rto` and moves both by an eighth a sample; `tas` is eight
        /// smoothed round-trip times, at least 200us, and never backs off: lower `min-rto`, too.
        /// Source: RFC 6298 §2; INET's TCP as the Vertigo and Canary artifacts run it; TAS'
        /// released code (`cc-rexmit-ints`).
        pub rto_estimator: RtoEstimator = RtoEstimator::Rfc6298,
        /// Which acknowledgements of new data measure the round-trip time. Source: RFC 7323 §4.1;
        /// "sent-once" is ns-3's TCP, which empties its list of segments to be measured at a
        /// timeout (`EstimateRtt`, `ReTxTimeout`).
        pub rtt_samples: RttSamples = RttSamples::EveryAck,
        /// The retransmission timeout of data is always this, without backing off; the SYN's is not
        /// touched. Source: the static timeouts that TLT compares with (EuroSys 2021).
        pub fixed_rto: Option<Time> = None,
        /// An acknowledgement for at least every so many full segments; 1 acknowledges every packet
        /// at once. Source: RFC 5681 §4.2 allows 2.
        #[within(1..)]
        pub delayed_ack: u32 = 1,
        /// A delayed acknowledgement waits no longer than this. Source: RFC 5681 §4.2 allows 500ms;
        /// 40ms is Linux's.
        pub delayed_ack_timeout: Time = Time::from_ms(40),
        /// Duplicate acknowledgements that mean loss. Off: only the timer does. Source: RFC 5681
        /// §3.2.
        #[within(1..)]
        pub dupack_threshold: Option<u32> = Some(3),
        /// How losses are detected before the timer expires. "rack" needs `sack`, and also detects
        /// lost retransmissions, which wait for the timer with "dupack". Source: RFC 6675 §4;
        /// "rack" is RFC 8985 §6, Linux's only detection since 6.17.
        pub loss_detection: LossDetection = LossDetection::Dupack,
        /// How the window comes down after a loss or a mark: "prr", proportional rate reduction,
        /// needs `sack`, and keeps queues longer meanwhile. Source: RFC 6675 §5; "prr" is RFC 9937,
        /// Linux's, after marks, too.
        pub reduction: Reduction = Reduction::AtOnce,
        /// Whether a probe is sent when the end of a flight stays unacknowledged for two round
        /// trips: new data if there is any, else the last segment again. It needs `sack`. Source:
        /// RFC 8985 §7; not its §7.4, which cuts the window if the probe alone has repaired a loss.
        pub tlp: bool = false,
        /// The tick that the timers of loss probes and of reordering count: they wait 2 ms longer
        /// (a probe behind a lone packet `min-rto`) and expire at the end of a tick. Off: they
        /// are exact. Source: Linux, `TCP_TIMEOUT_MIN_US`, `tcp_schedule_loss_probe` and the
        /// timer wheel.
        pub jiffy: Option<Time> = None,
        /// Whether a connection opens with SYN and SYN-ACK before its data. Source: RFC 9293 §3.5.
        pub handshake: bool = true,
        /// Whether the handshake's third packet, an acknowledgement alone, leaves before the first
        /// data. Source: RFC 9293 §3.5; Linux, where the application writes to an open connection.
        pub handshake_ack: bool = false,
        /// Bytes that the sender may hold unacknowledged.
        pub send_buffer: Option<Bytes> = None,
        /// The receiver's advertised window; its application reads at once, so it never shrinks.
        pub receive_buffer: Option<Bytes> = None,
        /// Whether the first duplicate acknowledgements let new segments out. Source: RFC 3042; RFC
        /// 6675 §5 (3).
        pub limited_transmit: bool = true,
        /// How losses are repaired without SACK. Source: RFC 6582; "reno" is RFC 5681 §3.2 alone.
        pub fast_recovery: FastRecovery = FastRecovery::NewReno,
        /// Whether the window grows only while it is what limits the sender. Source: RFC 7661 §4.1,
        /// RFC 9438 §5.8. Without it the window of a sender that the receiver's window limits grows
        /// far beyond, and cuts of it mean nothing.
        pub window_validation: bool = true,
        /// Whether a sender waits until its window has room for a full segment. Source: RFC 9293
        /// §3.8.6.2.1. Without it whatever room there is gets a segment of that size.
        pub silly_window_avoidance: bool = true,
        /// Whether the receiver reports what it holds out of order, and the sender repairs by it.
        /// Source: RFC 2018, RFC 6675. Without it losses are repaired by RFC 6582.
        pub sack: bool = true,
        /// How long a sender with nothing in flight waits before it tries again to send what a
        /// limit on its own host has refused (at least a round trip). Source: Linux's shortest
        /// probe timer; NRM's slides shorten it to 20ms.
        pub probe_timer: Time = Time::from_ms(200),
        /// Whether segments leave at the rate that Linux works out for each socket. Linux enforces
        /// it behind the qdisc `fq`, or where the socket or its control law asks for it (BBR);
        /// behind any other qdisc only acknowledgements space what it sends. Swift and TAS have a
        /// pace of their own and ignore this. Source: Linux, `tcp_update_pacing_rate`,
        /// `tcp_tso_autosize` and `tcp_update_skb_after_send`.
        pub pacing: Pacing = Pacing::Off,
        /// Whether new data waits for room for a larger segment, so that acknowledgements let out
        /// few large bursts. "linux" needs `loss-detection` = "rack". Source: Linux,
        /// `tcp_tso_should_defer` and `tcp_tso_win_divisor` = 3.
        pub deferral: Deferral = Deferral::Off,
        /// Whether each packet has time stamps, 12 bytes of options: the largest payload is that
        /// much smaller, and acknowledgements report three ranges at most. Source: RFC 7323 §3.2.
        pub timestamps: bool = false,
        /// Whether the window falls back to the initial one after an idle time of one timeout.
        /// Source: RFC 5681 §4.1.
        pub restart_after_idle: bool = true,
        /// Segments by which one acknowledgement may grow the window in slow start; 1 after a
        /// timeout. "off": all that it confirms, since one may stand for 64 KB behind a receive
        /// offload. Source: Linux, `tcp_slow_start`; RFC 3465 §2.3 has 2, RFC 5681 (2) has 1. No
        /// difference where every packet is acknowledged.
        pub growth_limit: Option<u32> = None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_core::registry::Choice;

    #[test]
    fn every_key_is_documented_and_unique_in_the_one_table() {
        for mechanism in TransportKind::place().mechanisms {
            let names: Vec<String> =
                TransportParams::KEYS.iter().chain(mechanism.keys).map(|k| k.name()).collect();
            assert!(
                names.iter().enumerate().all(|(i, name)| !names[..i].contains(name)),
                "{names:?}"
            );
            for key in mechanism.keys {
                assert!(
                    key.name().starts_with(mechanism.kind) && key.text().contains("Source"),
                    "{}",
                    key.name()
                );
            }
        }
        assert!(TransportParams::KEYS.iter().all(|key| !key.text().is_empty()));
        assert_eq!(TransportKind::default().kind(), "dctcp");
    }
}
