//! Ultra Ethernet transport, as uet-htsim has it: packets with numbers, which take any path and are
//! taken in any order.
//!
//! The data that an application writes is cut into packets, each with a number (PSN) and an entropy
//! value by which switches choose its path (`core::edge::entropy`). A switch that has no room trims
//! the packet (`core::switch::trim`), and its receiver asks for it by a NACK. The
//! sender's window (`core::congestion::nscc`), the receiver's credit, or both bound the flight.
//!
//! | file | what it follows |
//! |---|---|
//! | `host` | what a host has beside its connections: credit to give, senders of a NIC |
//! | `sender` | packets that go out: window, credit, what is sent again, timeouts, SLEEK |
//! | `receiver` | packets that come in: which have, and when that is acknowledged |
//! | `pacer` | a receiving host's credit (RCCC): whose turn it is, and how much |
//!
//! Sizes in windows, credit and reports are bytes on the wire, with headers; those of applications
//! are payload.
//!
//! Not modelled: speculative packets below others in the NIC, the penalty that a receiver may put
//! on windows, and credit that follows an oversubscribed fabric.
//!
//! Invariant: every packet that was sent and is not acknowledged is in flight, or waits to be sent
//! again, and while any is in flight the deadline is set.

mod pacer;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use pacer::{Pacer, Pull};
pub use receiver::Receiver;
pub use sender::{Piece, Sender};

use millpond_core::congestion::{NsccTerms, UetControl, UetParams};
use millpond_core::edge::entropy::UetPathChoice;
use millpond_core::packet::Kind;
use millpond_core::packet::uet::HEADERS;
use millpond_core::random::mix64;
use millpond_core::switch::overflow::OverflowParams;
use millpond_core::switch::site::Auto;
use millpond_core::{Rate, Time};
use millpond_scenario::plan::Plan;

/// The kinds of packets that are counted, with the names of their counts.
pub const COUNTED: &[(Kind, &str)] = &[
    (Kind::UetAck, "acks"),
    (Kind::UetNack, "nacks"),
    (Kind::UetPull, "pulls"),
    (Kind::UetProbe, "probes"),
];

/// The value that switches hash of a packet: its connection and its entropy value.
pub fn entropy(hash: u32, value: u16) -> u32 {
    mix64(u64::from(hash) << 16 | u64::from(value)) as u32
}

/// Bytes in a unit of credit.
pub const CREDIT: u64 = 256;
/// Bytes that are acknowledged together, at most.
const ACK_BYTES: u64 = 16_384;
/// The fixed part of a timeout.
const RTO_FIXED: Time = Time::from_us(15);
/// Buffers of switches that drop, in those of switches that trim: bandwidth-delay products.
const BUFFERS_THAT_DROP: u64 = 5;
/// How often the queue's time is in a timeout.
const RTO_QUEUES: u64 = 6;

/// The configuration that the connections of one transport share: the scenario's parameters,
/// resolved to numbers.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest payload of a packet, in bytes.
    pub mss: u32,
    /// Headers and framing of a packet on the wire.
    pub header: u32,
    /// The control that bounds the flight.
    pub control: UetControl,
    pub terms: NsccTerms,
    path_choice: UetPathChoice,
    paths: u32,
    ack_bytes: u64,
    rto: Time,
    sleek: bool,
    trims: bool,
    seed: u64,
}

impl Config {
    pub fn new(plan: &Plan, p: &UetParams, mss: u32) -> Config {
        let header = HEADERS + plan.host.frame_overhead;
        let hosts = plan.topology.host_links();
        let rate = hosts.iter().map(|link| link.rate).max().unwrap_or(Rate(0));
        let mtu = u64::from(mss + header);
        let late = |rate| plan.host.late(rate);
        let base = plan.topology.longest_round_trip(mtu, u64::from(header), late);
        let trims = !matches!(plan.switch.overflow, OverflowParams::Drop(_));
        let target = match p.uet_target_delay {
            Auto::Given(time) => time,
            Auto::Auto if trims => base * 3 / 4,
            Auto::Auto => base,
        };
        let mut terms = NsccTerms::new(u64::from(mss), mtu, rate, base, target);
        if let Auto::Given(bytes) = p.uet_window {
            terms.initial = bytes.get();
        }
        let buffers = if trims { 1 } else { BUFFERS_THAT_DROP };
        let queue = buffers * mtu * rate.bytes_in(base).div_ceil(mtu);
        let rto = match p.uet_rto {
            Auto::Given(time) => time,
            Auto::Auto => RTO_FIXED + rate.transmission_time(RTO_QUEUES * queue),
        };
        Config {
            mss,
            header,
            control: p.uet_control,
            terms,
            path_choice: p.uet_path_choice,
            paths: p.uet_paths,
            ack_bytes: match p.uet_ack_bytes {
                Auto::Given(bytes) => bytes.get(),
                Auto::Auto => ACK_BYTES.min(terms.initial / 4),
            },
            rto,
            sleek: p.uet_sleek,
            trims,
            seed: plan.seed,
        }
    }

    /// A packet with so much payload, on the wire.
    fn wire(&self, payload: u16) -> u64 {
        u64::from(self.header) + u64::from(payload)
    }
}
