//! Homa (Montazeri et al., SIGCOMM 2018), as PlatformLab/Homa has it: messages, of which a receiver
//! grants what is not sent blindly, the shortest first.
//!
//! The data that an application writes is a message. Its first RTTbytes leave without a grant, with
//! a priority by its length. The rest is granted by the receiving *host*, which decides over all
//! messages that come in there ([`Schedule`]); which of a host's messages sends next is decided
//! over all that go out ([`Outbox`]). A connection's two ends are what is left: what of a message
//! was sent, and what has come.
//!
//! | file | what it follows |
//! |---|---|
//! | `host` | what a host has of its messages beside their connections |
//! | `sender` | a message that goes out: what may be sent, what is asked for again, PING |
//! | `receiver` | a message that comes in: what has come, what is granted, RESEND |
//! | `schedule` | a receiving host's grants: SRPT, a message a peer, overcommitment (§3.3, §3.5) |
//! | `outbox` | a sending host's order: SRPT, and two packets in the NIC (§3.2) |
//!
//! A connection has one message at a time. A persistent one writes the next when the answer to the
//! last has come, and so it had been delivered: the answer acknowledges it. Messages have at most
//! 2³² − 1 bytes; a longer flow is several, one after the other.
//!
//! Not modelled: cutoffs and overcommitment that follow the workload (`CUTOFFS`, §3.4), and the
//! incast control of §3.6, which is the application's RPCs'.
//!
//! Invariant: a byte is delivered once; a message that is not done has a timer at one end at least
//! until it is given up.

mod outbox;
mod receiver;
mod schedule;
mod sender;
#[cfg(test)]
mod tests;

pub use outbox::{NIC_PACKETS, Outbox};
pub use receiver::Receiver;
pub use schedule::Schedule;
pub use sender::{Asked, Piece, Sender};

use millpond_core::congestion::HomaParams;
use millpond_core::packet::{Kind, PRIORITIES, homa};
use millpond_core::switch::site::Auto;
use millpond_core::{Rate, Time};
use millpond_scenario::plan::Plan;

/// The kinds of packets that are counted, with the names of their counts.
pub const COUNTED: &[(Kind, &str)] = &[
    (Kind::Grant, "grants"),
    (Kind::Resend, "resends"),
    (Kind::Busy, "busy"),
    (Kind::Ping, "pings"),
    (Kind::Unknown, "unknown"),
];

/// The configuration that the messages of one transport share: the scenario's parameters, resolved
/// to numbers.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// RTTbytes, in whole packets.
    rtt_bytes: u32,
    /// How far a grant goes beyond what has come, in whole packets.
    grant_bytes: u32,
    /// How many messages are granted at a time.
    pub overcommitment: usize,
    /// By class of unscheduled priority, the largest message of it; the last has none.
    cutoffs: Vec<u64>,
    resend_interval: Time,
    ping_after: Time,
    /// RESENDs without an answer before a receiver gives up; and silence before a sender does.
    abort_after: Option<(u32, Time)>,
    /// Priority of what is sent again, where it is not the message's.
    resend_priority: Option<u8>,
}

impl Config {
    pub fn new(plan: &Plan, p: &HomaParams, mss: u32) -> Config {
        let hosts = plan.topology.host_links();
        let line = hosts.iter().map(|link| link.rate).max().unwrap_or(Rate(0));
        let rtt_bytes = match p.homa_rtt_bytes {
            Auto::Given(bytes) => bytes.get(),
            Auto::Auto => carried(line, round_trip(plan, mss)),
        };
        let grant_bytes = match p.homa_grant_bytes {
            Auto::Given(bytes) => bytes.get(),
            Auto::Auto => rtt_bytes.saturating_mul(2),
        };
        let interval = p.homa_resend_interval;
        let times = |count: u32| interval.saturating_mul(u64::from(count));
        Config {
            mss,
            rtt_bytes: whole_packets(rtt_bytes, mss),
            grant_bytes: whole_packets(grant_bytes, mss),
            overcommitment: p.homa_overcommitment as usize,
            cutoffs: p.homa_unscheduled_cutoffs.0.iter().map(|bytes| bytes.get()).collect(),
            resend_interval: interval,
            ping_after: times(p.homa_ping_after),
            abort_after: p.homa_abort_after.map(|count| (count, times(count))),
            resend_priority: p.homa_resend_priority.map(|priority| priority as u8),
        }
    }

    /// How much of a message is sent without a grant.
    fn unscheduled(&self, length: u32) -> u32 {
        length.min(self.rtt_bytes)
    }

    /// The priority of what is sent without a grant.
    fn unscheduled_priority(&self, length: u32) -> u8 {
        let class = self.cutoffs.iter().take_while(|cutoff| u64::from(length) > **cutoff).count();
        (PRIORITIES - 1 - class) as u8
    }

    /// How many priorities, from 0, are left for what is granted.
    fn scheduled_levels(&self) -> usize {
        PRIORITIES - 1 - self.cutoffs.len()
    }

    /// The priority of what is granted to the message of this rank, of so many that are granted:
    /// the shortest has the highest, and with few of them the lowest priorities are used (§3.4).
    pub fn scheduled_priority(&self, rank: usize, active: usize) -> u8 {
        (active.min(self.scheduled_levels()) - 1).saturating_sub(rank) as u8
    }
}

/// The longest time from a full packet's departure to the arrival of the grant that answers it, in
/// the empty network.
fn round_trip(plan: &Plan, mss: u32) -> Time {
    let headers = u64::from(homa::HEADERS + plan.host.frame_overhead);
    let (packet, grant) = (u64::from(mss) + headers, headers);
    plan.topology.longest_round_trip(packet, grant, |rate| plan.host.late(rate))
}

/// The bytes that a link of this rate carries in a time.
fn carried(rate: Rate, time: Time) -> u64 {
    const PS_PER_S: u128 = 1_000_000_000_000;
    let bits = u128::from(rate.bps()) * u128::from(time.as_ps()) / PS_PER_S;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// A size in whole packets, at least one: or the last packet before a grant would be a short one.
fn whole_packets(bytes: u64, mss: u32) -> u32 {
    let (bytes, mss) = (bytes.max(1), u64::from(mss.max(1)));
    let most = u64::from(u32::MAX) / mss * mss;
    (bytes.div_ceil(mss).saturating_mul(mss)).min(most) as u32
}
