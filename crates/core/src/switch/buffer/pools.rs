//! Pools: one memory, accounted at both ends of the switch, as Broadcom's shared-memory chips do
//! it; the model of TLT's simulations (Lim et al., EuroSys 2021) and of the DCQCN and HPCC
//! simulators before them.
//!
//! *Egress*: the first bytes of each queue (port and priority) are its guaranteed minimum. Bytes
//! beyond it are charged to the egress pool, of which a queue may hold at most α times what is
//! free. *Ingress*: each priority of each ingress port is a group with a minimum of its own. All
//! bytes count against the ingress pool; when that is full, a group's further bytes go into its
//! port's headroom, which is there for what is on its way while a PAUSE travels.
//!
//! Sizes follow from the memory B, the number of ports P, the largest packet and the headroom H:
//! egress pool = B − P · 8 minima, ingress pool = B − ΣH − P · 8 minima.
//!
//! Charged to headroom is what a group receives beyond its minimum, while the pool is full, *after*
//! the packet that finds it full: that one makes the switch send the PAUSE. So a headroom of what
//! the link carries while the PAUSE travels, 2 · delay · rate + a packet at each end + the frame,
//! is never exceeded; that first packet and the minima have their place in the reserve of eight
//! minima a port. Hence the invariant:
//!
//! Invariant: with PFC and with a headroom of that size for each lossless priority, no packet is
//! refused at the ingress, whatever the load; and what all groups hold is what all queues hold.

use super::{Claim, IngressFacts, SwitchFacts};
use crate::counters::DropReason;
use crate::registry::About;
use crate::switch::pause_frame::FRAME_BYTES;
use crate::switch::site::ByTier;
use crate::units::{Bytes, Rate, Time};

pub(super) const ABOUT: About = About {
    summary: "one memory with an egress and an ingress pool, guaranteed minima and headroom, as \
              shared-memory chips have it",
    source: "Lim et al.: Towards timeout-less transport in commodity datacenter networks, EuroSys \
             2021 (simulators); Broadcom Tomahawk",
    ..About::PLAIN
};

crate::choice! {
    /// When a queue's share of the egress pool is limited.
    pub enum EgressLimit {
        /// Where the switch pauses nobody: then queues must be kept from taking everything.
        WithoutPause = "without-pause",
        /// Always.
        Always = "always",
    }
}

crate::choice! {
    /// The headroom that a port has where it is not written.
    pub enum HeadroomRule {
        /// Twice the link's delay at its rate, and two packets: what is on its way while a PAUSE
        /// travels.
        RoundTrip = "round-trip",
        /// Three times the link's delay at its rate, as HPCC's simulator has it.
        ThreeDelays = "three-delays",
    }
}

crate::params! {
    /// A memory with an egress and an ingress pool.
    pub struct PoolsParams {
        /// Bytes that may wait in the whole switch, headroom included. Source: 4.5 MB for 12 ports
        /// of 40 Gb/s, TLT's simulations.
        #[within(1..)]
        pub size: ByTier<Bytes> = ByTier::all(Bytes(4_500_000)),
        /// The size is for as much as this of the rates of the switch's links together. Off means
        /// that all switches (of a tier) have the same.
        #[within(1..)]
        pub per: Option<Rate> = None,
        /// A queue may hold at most alpha times the free bytes of the egress pool. Source: 1, TLT's
        /// simulations.
        pub alpha: f64 = 1.0,
        /// Whether that limit holds beside pauses: "without-pause" or "always". Source:
        /// "without-pause" in TLT's simulations of TCP, "always" in those of RDMA.
        pub egress_limit: EgressLimit = EgressLimit::WithoutPause,
        /// Bytes that each queue may hold beside the egress pool; off means one packet and one
        /// byte. Source: that is what TLT's simulations have.
        pub queue_min: Option<Bytes> = None,
        /// Bytes that each priority of an ingress port is guaranteed; off means one packet. Eight
        /// of them a port are kept out of both pools. Source: that is what TLT's simulations have.
        pub group_min: Option<Bytes> = None,
        /// Bytes that each ingress port is guaranteed beside; off means one packet. Source: that is
        /// what TLT's simulations have.
        pub port_min: Option<Bytes> = None,
        /// Headroom of each port and lossless priority, in bytes; off means by headroom-rule, from
        /// the port's link.
        pub headroom: Option<Bytes> = None,
        /// How headroom follows from a link where it is not written: "round-trip" (what is on its
        /// way while a PAUSE travels: twice the link's delay at its rate, and two packets) or
        /// "three-delays" (three times the delay at the rate, which is less where a link holds less
        /// than two packets). Source: round-trip, TLT's simulations (103 KB at 40 Gb/s and 10 us)
        /// and ConWeave's; three-delays, HPCC's released simulator.
        pub headroom_rule: HeadroomRule = HeadroomRule::RoundTrip,
        /// How many priorities headroom is kept for, 1 to 8. Source: 1, TLT's simulations.
        #[within(1..=8)]
        pub lossless_priorities: u32 = 1,
    }
}

impl PoolsParams {
    /// Headroom of a port whose link has this rate and delay, for one priority.
    pub fn headroom_of(&self, rate: Rate, delay: Time, packet_max: u64) -> u64 {
        match (self.headroom, self.headroom_rule) {
            (Some(headroom), _) => headroom.get(),
            (None, HeadroomRule::RoundTrip) => round_trip(rate, delay, packet_max),
            (None, HeadroomRule::ThreeDelays) => bytes_within(rate, delay, 1).saturating_mul(3),
        }
    }

    /// The bytes that this headroom lacks to hold all that is on its way while a PAUSE travels.
    pub fn lacks(&self, rate: Rate, delay: Time, packet_max: u64) -> u64 {
        round_trip(rate, delay, packet_max)
            .saturating_sub(self.headroom_of(rate, delay, packet_max))
    }

    /// Bytes of the whole memory.
    pub fn size(&self, facts: &SwitchFacts) -> u64 {
        facts.memory(&self.size, self.per)
    }

    /// Sizes of the egress and the ingress pool; negative where minima and headroom leave nothing.
    /// Reckoned in 128 bits: the shares of all ports together may be far beyond what a byte count
    /// holds.
    pub fn pools(&self, facts: &SwitchFacts) -> (i128, i128) {
        let (ports, group) = (facts.links.len() as i128, i128::from(self.group_min(facts)));
        let lossless = i128::from(self.lossless_priorities);
        let of_port = |(rate, delay): &(Rate, Time)| {
            i128::from(self.headroom_of(*rate, *delay, facts.packet_max))
        };
        let headroom: i128 = facts.links.iter().map(|link| lossless * of_port(link)).sum();
        // Beside pool and headroom lossless priorities can hold their minima and the packet that
        // found the pool full.
        let beside = lossless
            * (group
                + i128::from(self.port_min(facts))
                + i128::from(facts.packet_max + FRAME_BYTES));
        let size = i128::from(self.size(facts));
        (size - ports * 8 * group, size - headroom - ports * (8 * group).max(beside))
    }

    fn group_min(&self, facts: &SwitchFacts) -> u64 {
        self.group_min.map_or(facts.packet_max, Bytes::get)
    }
    fn port_min(&self, facts: &SwitchFacts) -> u64 {
        self.port_min.map_or(facts.packet_max, Bytes::get)
    }
}

/// Bytes that a link carries in so many times its delay.
fn bytes_within(rate: Rate, delay: Time, times: u128) -> u64 {
    let bytes = times * u128::from(rate.bps()) * u128::from(delay.as_ps()) / 8_000_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The bytes on their way while a PAUSE travels: on the link both ways, a packet that delays the
/// frame, and one that the neighbour has begun.
fn round_trip(rate: Rate, delay: Time, packet_max: u64) -> u64 {
    bytes_within(rate, delay, 2).saturating_add(2 * packet_max)
}

/// The packets that came in at one port with one priority, and wait.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    bytes: u64,
    /// Of these: in headroom.
    headroom: u64,
    /// The shortage during which its first packet found the pool full; 0: none.
    warned: u64,
}

/// One ingress port.
#[derive(Clone, Debug)]
struct Ingress {
    groups: [Group; 8],
    /// The bytes that each group may hold in headroom.
    headroom: u64,
}

/// The pools of a switch.
#[derive(Clone, Debug)]
pub struct Pools {
    size: u64,
    /// Bytes that wait.
    used: u64,
    /// Size of the egress pool, and what queues hold of it.
    egress: u64,
    egress_used: u64,
    /// α of the egress pool in 1/1024, if queues are limited.
    alpha: Option<u64>,
    queue_min: u64,
    /// Size of the ingress pool; all that waits counts against it.
    ingress: u64,
    /// Each group's minimum.
    minimum: u64,
    /// By egress port and priority: bytes that wait.
    queues: Vec<[u64; 8]>,
    /// By ingress port.
    ports: Vec<Ingress>,
    /// Number of the present or next time that the ingress pool is full, counted from one.
    shortage: u64,
}

impl Pools {
    /// The pools of a switch with these ports and this memory.
    pub fn new(params: &PoolsParams, facts: &SwitchFacts) -> Pools {
        let (egress, ingress) = params.pools(facts);
        let limited = params.egress_limit == EgressLimit::Always || !facts.pauses;
        // The frame that stops the neighbour takes its time on the wire as well; its bytes lie in
        // the reserve.
        let headroom = |(rate, delay): &(Rate, Time)| {
            let of_port = params.headroom_of(*rate, *delay, facts.packet_max);
            Ingress { groups: [Group::default(); 8], headroom: of_port.saturating_add(FRAME_BYTES) }
        };
        Pools {
            size: params.size(facts),
            used: 0,
            // Never more than the memory, which is a byte count.
            egress: egress.max(0) as u64,
            egress_used: 0,
            alpha: limited.then(|| super::in_1024ths(params.alpha)),
            queue_min: params.queue_min.map_or(facts.packet_max + 1, Bytes::get),
            ingress: ingress.max(0) as u64,
            minimum: params.group_min(facts) + params.port_min(facts),
            queues: vec![[0; 8]; facts.links.len()],
            ports: facts.links.iter().map(headroom).collect(),
            shortage: 1,
        }
    }

    fn group(&self, port: u16, priority: u8) -> &Group {
        &self.ports[port as usize].groups[priority as usize]
    }

    /// Whether a packet more of this group goes into headroom.
    fn is_headroom(&self, group: &Group, size: u64) -> bool {
        self.used + size > self.ingress
            && group.bytes + size > self.minimum
            && group.warned == self.shortage
    }

    /// Why there is no room for a packet.
    pub fn test(&self, claim: &Claim) -> Option<DropReason> {
        let size = claim.size;
        let group = self.group(claim.ingress, claim.priority);
        let headroom = self.ports[claim.ingress as usize].headroom;
        let no_headroom = self.is_headroom(group, size) && group.headroom + size > headroom;
        let full = self.used + size > self.size || no_headroom || self.exceeds_share(claim);
        if full { Some(DropReason::SharedBuffer) } else { None }
    }

    fn exceeds_share(&self, claim: &Claim) -> bool {
        let Some(alpha) = self.alpha else { return false };
        let queued = self.queues[claim.port as usize][claim.priority as usize];
        let shared = (queued + claim.size).saturating_sub(self.queue_min);
        let free = self.egress.saturating_sub(self.egress_used);
        u128::from(shared) << 10 > u128::from(alpha) * u128::from(free) && shared > 0
    }

    /// A packet waits from now on.
    pub fn take(&mut self, claim: &Claim) {
        let size = claim.size;
        let charged = self.is_headroom(self.group(claim.ingress, claim.priority), size);
        let (minimum, shortage) = (self.minimum, self.shortage);
        self.used += size;
        let full = self.used > self.ingress;
        let group = &mut self.ports[claim.ingress as usize].groups[claim.priority as usize];
        group.bytes += size;
        if charged {
            group.headroom += size;
        } else if full && group.bytes > minimum {
            group.warned = shortage;
        }
        let queued = &mut self.queues[claim.port as usize][claim.priority as usize];
        let shared = queued.saturating_sub(self.queue_min);
        *queued += size;
        self.egress_used += queued.saturating_sub(self.queue_min) - shared;
    }

    /// A packet waits no more. A group's headroom empties first.
    pub fn give(&mut self, claim: &Claim) {
        let size = claim.size;
        let was_full = self.used > self.ingress;
        self.used -= size;
        if was_full && self.used <= self.ingress {
            self.shortage += 1;
        }
        let minimum = self.minimum;
        let group = &mut self.ports[claim.ingress as usize].groups[claim.priority as usize];
        group.bytes -= size;
        group.headroom = group.headroom.saturating_sub(size);
        if group.bytes <= minimum {
            (group.headroom, group.warned) = (0, 0);
        }
        let queued = &mut self.queues[claim.port as usize][claim.priority as usize];
        let shared = queued.saturating_sub(self.queue_min);
        *queued -= size;
        self.egress_used -= shared - queued.saturating_sub(self.queue_min);
    }

    /// The facts that a pause policy goes by.
    pub fn ingress(&self, port: u16, priority: u8) -> IngressFacts {
        let free = self.ingress as i64 - self.used as i64;
        IngressFacts { minimum: self.minimum, free, headroom: self.group(port, priority).headroom }
    }

    /// The same if the group held only `own` bytes, and all groups `all`. A group's headroom
    /// empties first.
    pub fn ingress_of(&self, port: u16, priority: u8, own: u64, all: u64) -> IngressFacts {
        let group = self.group(port, priority);
        let left = group.headroom.saturating_sub(group.bytes.saturating_sub(own));
        let headroom = if own <= self.minimum { 0 } else { left };
        IngressFacts { minimum: self.minimum, free: self.ingress as i64 - all as i64, headroom }
    }

    /// The most that one queue can hold, all others being empty.
    pub fn reach(&self) -> u64 {
        let Some(alpha) = self.alpha else { return self.size };
        let share = u128::from(self.egress) * u128::from(alpha) / (u128::from(alpha) + 1024);
        (share as u64).saturating_add(self.queue_min).min(self.size)
    }
}

#[cfg(test)]
mod tests;
