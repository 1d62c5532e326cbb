//! Queue pairs (RDMA over Converged Ethernet): messages that a NIC sends packet by packet, at the
//! rate of a control law of `core::congestion`.
//!
//! An application writes messages; a packet carries bytes of one. A message is complete with its
//! last byte, at the receiver once it is there in order, at the sender once it is acknowledged.
//! There is no handshake. A queue pair has no packet waiting in its NIC: the NIC asks for one when
//! its link is free (`crate::hosts`, `pulling`).
//!
//! | file | what it follows |
//! |---|---|
//! | `sender` | pace, windows, and what is sent again: go-back-N, or IRN (SIGCOMM 2018 §3) |
//! | `receiver` | acknowledgements, NACKs, DCQCN's notification point (SIGCOMM 2015 §3.1) |
//!
//! Offsets are 64 bits and count bytes, where InfiniBand's sequence numbers count packets. Not
//! modelled: reads and atomics, the credits of end-to-end flow control, retry limits, and the
//! setting up of queue pairs.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;
pub use sender::Sender;

use crate::endpoint::AckIn;
use millpond_core::congestion::{Echo, Setting, Terms, TransportKind};
use millpond_core::packet::telemetry;
use millpond_core::packet::{Kind, Telemetry, rdma};
use millpond_core::switch::site::Auto;
use millpond_core::{Ecn, Rate, Time};
use millpond_scenario::plan::Plan;
use millpond_scenario::rdma::{
    FlowControl, Notification, RateChange, RdmaParams, RecoveryParams, Resend,
};

/// An answer as it reaches the sender.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// An acknowledgement, a NACK, or a notification of congestion, which has no more than its
    /// kind.
    pub kind: Kind,
    pub ack: AckIn<'a>,
    /// The telemetry that the switches have written on the data that it answers.
    pub telemetry: Option<&'a Telemetry>,
}

/// The requests of a packet of a queue pair, and the room that it has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes on the wire beside its headers.
    pub beyond: u16,
    pub acknowledgement: bool,
    /// Telemetry that switches write on it.
    pub telemetry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Recovery {
    GoBackN {
        timeout: Time,
    },
    Selective {
        /// While at most `few` packets are in flight, and otherwise.
        timeouts: (Time, Time),
        few: u64,
        limit: Auto<Option<u64>>,
        resend: Resend,
    },
}

/// The configuration that the queue pairs of one transport share: the scenario's parameters,
/// resolved to numbers.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// Bytes of a data packet on the wire beside its payload, and of these those beside its
    /// headers.
    header: u32,
    beyond: u16,
    ecn: Ecn,
    terms: Terms,
    /// The highest rate of a queue pair.
    max_rate: Option<Rate>,
    telemetry: bool,
    recovery: Recovery,
    /// A receiver repeats a NACK after so long.
    nack_interval: Time,
    /// Go-back-N's receiver acknowledges what comes again.
    answers_duplicates: bool,
    /// A rate that changes counts for the packet that waits.
    repaces: bool,
    flow_control: FlowControl,
    window: Auto<u64>,
    base_rtt: Time,
    ack_interval: u32,
    /// How marks are reported: by the answer's own bit, or by CNPs, in which case so seldom.
    echoes_by_bit: bool,
    cnp_interval: Option<Time>,
    cnp_on_reordering: bool,
    /// Of acknowledgements, NACKs and CNPs; `None`: that of the data.
    priorities: [Option<u8>; 3],
}

impl Config {
    /// Of a plan's queue pairs with this control law.
    pub fn new(plan: &Plan, kind: &TransportKind, mss: u32) -> Config {
        let host = &plan.host;
        let demands = kind.demands();
        let collects = if demands.telemetry { telemetry::BYTES } else { 0 };
        let beyond = collects + plan.rdma.data_header;
        let header = rdma::HEADERS + host.frame_overhead + beyond;
        let base_rtt = match plan.rdma.base_rtt {
            Auto::Given(time) => time,
            Auto::Auto => {
                let (there, back) = (u64::from(mss + header), u64::from(header + rdma::ACK_BYTES));
                plan.topology.longest_round_trip(there, back, |rate| host.late(rate))
            }
        };
        let RecoveryPlan { recovery, nack_interval, answers_duplicates } =
            recovery(&plan.rdma_choices.recovery, base_rtt);
        let RdmaParams { notification, cnp_interval, .. } = plan.rdma;
        let by_packets = demands.echo == Echo::Notify && notification == Notification::Packets;
        let priority = |priority: Option<u32>| priority.map(|priority| priority as u8);
        Config {
            mss,
            header,
            beyond: beyond as u16,
            ecn: if demands.echo == Echo::Off { Ecn::NotEct } else { Ecn::Ect },
            terms: Terms::new(kind, mss),
            max_rate: plan.rdma.max_rate,
            telemetry: demands.telemetry,
            recovery,
            nack_interval,
            answers_duplicates,
            repaces: match plan.rdma.rate_change {
                RateChange::Law => demands.telemetry,
                chosen => chosen == RateChange::AtOnce,
            },
            flow_control: match plan.rdma.flow_control {
                FlowControl::Law if demands.window => FlowControl::Rate,
                FlowControl::Law => FlowControl::None,
                chosen => chosen,
            },
            window: match plan.rdma.window {
                Auto::Auto => Auto::Auto,
                Auto::Given(bytes) => Auto::Given(bytes.get()),
            },
            base_rtt,
            ack_interval: plan.rdma.ack_interval.max(1),
            echoes_by_bit: demands.echo != Echo::Off && !by_packets,
            cnp_interval: by_packets.then_some(cnp_interval),
            cnp_on_reordering: plan.rdma.cnp_on_reordering && demands.echo == Echo::Notify,
            priorities: [plan.rdma.ack_priority, plan.rdma.nack_priority, plan.rdma.cnp_priority]
                .map(priority),
        }
    }

    /// The setting of a queue pair's law, of a host with a link of this rate.
    fn setting(&self, line: Rate) -> Setting {
        let line = self.max_rate.map_or(line, |most| line.min(most));
        let window = match self.window {
            Auto::Given(bytes) => bytes,
            Auto::Auto => self.in_flight(line),
        };
        Setting { line, base_rtt: self.base_rtt, window }
    }

    /// The bytes that a rate has in flight in the base round trip, at least a packet.
    fn in_flight(&self, rate: Rate) -> u64 {
        const PS_PER_S: u128 = 1_000_000_000_000;
        let bits = u128::from(rate.bps()) * u128::from(self.base_rtt.as_ps()) / PS_PER_S;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(u64::from(self.mss))
    }

    /// Whether acknowledgements let packets out, so that TLT keeps a clock running: there is a
    /// window, or what is missing is known. Without such a clock a window of unimportant packets
    /// could be lost.
    pub fn has_clock(&self) -> bool {
        self.flow_control != FlowControl::None
            || matches!(self.recovery, Recovery::Selective { .. })
    }

    /// The priority of an answer, where it is not that of the data.
    pub fn priority(&self, kind: Kind) -> Option<u8> {
        match kind {
            Kind::Nack => self.priorities[1],
            Kind::Cnp => self.priorities[2],
            _ => self.priorities[0],
        }
    }
}

struct RecoveryPlan {
    recovery: Recovery,
    nack_interval: Time,
    answers_duplicates: bool,
}

fn recovery(params: &RecoveryParams, base_rtt: Time) -> RecoveryPlan {
    match params {
        RecoveryParams::GoBackN(p) => RecoveryPlan {
            recovery: Recovery::GoBackN { timeout: p.timeout },
            nack_interval: p.nack_interval,
            answers_duplicates: p.answer_duplicates,
        },
        RecoveryParams::Selective(p) => {
            let limit = match p.bdp_limit {
                Auto::Auto => Auto::Auto,
                Auto::Given(limit) => Auto::Given(limit.map(|bytes| bytes.get())),
            };
            let timeouts = p.timeouts(base_rtt);
            let recovery =
                Recovery::Selective { timeouts, few: u64::from(p.few), limit, resend: p.resend };
            RecoveryPlan { recovery, nack_interval: p.nack_interval, answers_duplicates: true }
        }
    }
}
