//! The buffer: where a port's packets may wait, and how much of it a port may take.
//!
//! *Per port*: each port has its own bytes or packets. *Shared*: one memory for all ports, of which
//! a queue may hold at most α times what is free (dynamic thresholds; Choudhury and Hahne, IEEE/ACM
//! ToN 1998). *Pools*: one memory that is accounted twice, for the queue where a packet waits and
//! for the port where it came in, with guaranteed minima and headroom, as shared-memory chips do it
//! and as lossless links need it ([`pools`]).
//!
//! A size can differ by the tier of the switch and follow the rate of the link, or of a switch's
//! links together.
//!
//! Invariant: the packet in transmission is outside the buffer, and a packet fits if occupancy +
//! its size ≤ capacity.

pub mod pools;

pub use pools::{EgressLimit, HeadroomRule, PoolsParams};

use crate::counters::DropReason;
use crate::packet::Packet;
use crate::registry::About;
use crate::switch::QueueView;
use crate::switch::site::{Auto, ByTier, PortSite, scaled};
use crate::units::{Bytes, Rate, Time};
use pools::Pools;

const PER_PORT: About = About {
    summary: "each port has its own memory",
    source: "the usual model of simulations",
    ..About::PLAIN
};
const SHARED: About = About {
    summary: "one memory for all ports, shared by dynamic thresholds",
    source: "Choudhury, Hahne: Dynamic queue length thresholds, IEEE/ACM ToN 1998",
    ..About::PLAIN
};

crate::params! {
    /// A buffer of each port's own.
    pub struct PerPortParams {
        /// Bytes that may wait at a port; a size is that size at every port, and off means that
        /// only packets are counted. "auto" follows the link's rate: 300 KB up to 10 Gb/s, and in
        /// proportion on faster links. Source: 300 KB is the Canary and Vertigo setting for 10 Gb/s
        /// ports; the released simulator of HPCC (SIGCOMM 2019) sizes a switch's memory in
        /// proportion to the rate of its links.
        pub size: ByTier<Auto<Option<Bytes>>> = ByTier::all(Auto::Auto),
        /// Packets that may wait at a port; off means that only bytes are counted.
        pub packets: ByTier<Option<u32>> = ByTier::all(None),
        /// The size and the packets that are written are for a link of this rate, and in proportion
        /// at others. Off means that they are the same at every port.
        #[within(1..)]
        pub per: Option<Rate> = None,
    }
}
crate::params! {
    /// One buffer for all ports.
    pub struct SharedParams {
        /// Bytes that may wait in the whole switch. Source: 9 MB is a Trident II's.
        pub size: ByTier<Bytes> = ByTier::all(Bytes(9_000_000)),
        /// The size is for as much as this of the rates of the switch's links together: size =
        /// "9.6KB" with per = "1Gbps" is 12.3 MB for 32 ports of 40 Gb/s. Off means that all
        /// switches (of a tier) have the same.
        #[within(1..)]
        pub per: Option<Rate> = None,
        /// A queue may hold at most alpha times the free bytes. Source: 1 is a common default;
        /// TLT's egress uses 1.
        pub alpha: f64 = 1.0,
    }
}

crate::registry! {
    /// Which buffer, with its parameters.
    place: "switch.buffer", question: "where may it wait, and how much?", default: PerPort,
    params: BufferParams;
    "per-port" => PerPort { PerPortParams; PER_PORT },
    "shared" => Shared { SharedParams; SHARED },
    "pools" => Pools { PoolsParams; pools::ABOUT },
}

/// The facts that a shared buffer's thresholds follow from, beside its parameters.
#[derive(Clone, Debug, Default)]
pub struct SwitchFacts {
    /// Bytes on the wire of the largest packet.
    pub packet_max: u64,
    /// By port: its link's rate, and its delay each way.
    pub links: Vec<(Rate, Time)>,
    /// Whether the switch pauses its neighbours.
    pub pauses: bool,
    /// The switch's tier.
    pub tier: u8,
}

impl SwitchFacts {
    /// The bytes of its memory, of a size that may follow the rates of all its links together.
    fn memory(&self, size: &ByTier<Bytes>, per: Option<Rate>) -> u64 {
        let rates = self.links.iter().fold(0u64, |sum, (rate, _)| sum.saturating_add(rate.bps()));
        scaled(size.at(self.tier).get(), per, Rate(rates))
    }
}

/// A packet that asks for room: whence, whither, how much.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The port where it would wait.
    pub port: u16,
    /// The port by which it came in.
    pub ingress: u16,
    /// Its priority.
    pub priority: u8,
    /// Its bytes.
    pub size: u64,
}

impl Claim {
    /// Of a packet at `port`.
    #[inline]
    pub fn of(packet: &Packet, port: u16) -> Claim {
        Claim {
            port,
            ingress: packet.ingress,
            priority: packet.priority(),
            size: packet.size as u64,
        }
    }
}

/// The facts that a pause policy goes by, beside a priority's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressFacts {
    /// Bytes that it is guaranteed.
    pub minimum: u64,
    /// Bytes that are left of what all ingresses share; negative where headroom is in use.
    pub free: i64,
    /// Bytes of it that are in headroom.
    pub headroom: u64,
}

/// The amount that one port may hold by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes, `u64::MAX` for no limit.
    pub bytes: u64,
    /// Packets, `u32::MAX` for no limit.
    pub packets: u32,
}

impl Capacity {
    /// A capacity that no queue reaches.
    pub const UNLIMITED: Capacity = Capacity { bytes: u64::MAX, packets: u32::MAX };

    /// Why a queue of `view` cannot hold `size` more bytes, if it cannot.
    #[inline]
    pub fn lacks_room(&self, view: &QueueView, size: u64) -> Option<DropReason> {
        let full = view.bytes + size > self.bytes || view.packets >= self.packets;
        if full { Some(DropReason::QueueFull) } else { None }
    }

    /// The capacity that the parameters allow one port.
    pub fn new(params: &BufferParams, site: &PortSite) -> Capacity {
        let BufferParams::PerPort(p) = params else { return Capacity::UNLIMITED };
        let bytes = match p.size.at(site.tier) {
            Auto::Auto => size_by_rate(site.rate),
            Auto::Given(size) => size.map_or(u64::MAX, |size| scaled(size.get(), p.per, site.rate)),
        };
        let packets = p
            .packets
            .at(site.tier)
            .map_or(u64::MAX, |packets| scaled(packets.into(), p.per, site.rate));
        Capacity { bytes, packets: u32::try_from(packets).unwrap_or(u32::MAX) }
    }
}

/// The memory of a port that nobody has given one.
pub(super) fn size_by_rate(rate: Rate) -> u64 {
    const UP_TO_TEN_GIGABIT: u64 = 300_000;
    scaled(UP_TO_TEN_GIGABIT, Some(Rate::from_gbps(10)), rate).max(UP_TO_TEN_GIGABIT)
}

/// The memory of a whole switch: counts what all its ports hold.
#[derive(Clone, Debug)]
pub struct Memory {
    size: u64,
    used: u64,
    /// α in 1/1024, so that no float decides.
    alpha: u64,
    /// Ports share it by what each of them holds.
    is_shared: bool,
    /// The record of who holds what, where that decides.
    pools: Option<Box<Pools>>,
}

impl Memory {
    /// The memory that the parameters describe; unlimited (and still counted) with per-port
    /// buffers.
    pub fn new(params: &BufferParams, facts: &SwitchFacts) -> Memory {
        let (size, alpha) = match params {
            BufferParams::PerPort(_) => (1 << 40, 1 << 20),
            BufferParams::Shared(p) => (facts.memory(&p.size, p.per), in_1024ths(p.alpha)),
            BufferParams::Pools(p) => (p.size(facts), in_1024ths(p.alpha)),
        };
        let pools = match params {
            BufferParams::Pools(p) => Some(Box::new(Pools::new(p, facts))),
            _ => None,
        };
        let is_shared = matches!(params, BufferParams::Shared(_));
        Memory { size, used: 0, alpha, is_shared, pools }
    }
    /// Why what claims room in a queue that holds `queued` bytes has none, if it has none. Pools go
    /// by their own counters.
    #[inline]
    pub fn test(&self, queued: u64, claim: &Claim) -> Option<DropReason> {
        if let Some(pools) = &self.pools {
            return pools.test(claim);
        }
        let free = self.size - self.used;
        let over =
            (queued + claim.size) << 10 > self.alpha.saturating_mul(free) || claim.size > free;
        if over { Some(DropReason::SharedBuffer) } else { None }
    }
    /// How many bytes must leave a queue that holds `queued` before `size` more fit: its own bytes
    /// count twice, once against its share and once for what the share is of. Not of pools, where
    /// other things than bytes of that queue can be in the way.
    pub fn missing(&self, queued: u64, size: u64) -> u64 {
        let free = self.size - self.used;
        let over = ((queued + size) << 10).saturating_sub(self.alpha.saturating_mul(free));
        over.div_ceil(self.alpha.saturating_add(1 << 10)).max(size.saturating_sub(free))
    }
    /// The most that a port of this capacity can hold, all others being empty.
    pub fn reach(&self, capacity: Capacity) -> Capacity {
        let share = match &self.pools {
            Some(pools) => pools.reach(),
            None => {
                (u128::from(self.size) * u128::from(self.alpha) / (u128::from(self.alpha) + 1024))
                    as u64
            }
        };
        Capacity { bytes: capacity.bytes.min(share), ..capacity }
    }
    /// A packet waits at `port` from now on.
    #[inline]
    pub fn take(&mut self, port: u16, packet: &Packet) {
        self.used += packet.size as u64;
        if let Some(pools) = &mut self.pools {
            pools.take(&Claim::of(packet, port));
        }
    }
    /// Whether it is accounted by pools, which are notified of packets.
    #[inline]
    pub fn has_pools(&self) -> bool {
        self.pools.is_some()
    }
    /// Whether ports share it by what each of them holds.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }
    /// So many bytes more wait, where there are no pools.
    #[inline]
    pub fn take_bytes(&mut self, size: u64) {
        self.used += size;
    }
    /// So many bytes wait no more, where there are no pools.
    #[inline]
    pub fn give_bytes(&mut self, size: u64) {
        self.used -= size;
    }
    /// A packet waits at `port` no more.
    #[inline]
    pub fn give(&mut self, port: u16, packet: &Packet) {
        self.used -= packet.size as u64;
        if let Some(pools) = &mut self.pools {
            pools.give(&Claim::of(packet, port));
        }
    }
    /// The facts that a pause policy goes by, of a priority's packets that came in at `ingress`.
    pub fn ingress(&self, ingress: u16, priority: u8) -> IngressFacts {
        match &self.pools {
            Some(pools) => pools.ingress(ingress, priority),
            None => IngressFacts { minimum: 0, free: (self.size - self.used) as i64, headroom: 0 },
        }
    }
    /// The same if of these packets only `own` bytes waited, and `all` in the whole switch.
    pub fn ingress_of(&self, ingress: u16, priority: u8, own: u64, all: u64) -> IngressFacts {
        match &self.pools {
            Some(pools) => pools.ingress_of(ingress, priority, own, all),
            None => IngressFacts { minimum: 0, free: self.size as i64 - all as i64, headroom: 0 },
        }
    }
    /// Bytes that wait in the whole switch.
    pub fn used(&self) -> u64 {
        self.used
    }
}

/// A share in 1/1024.
fn in_1024ths(share: f64) -> u64 {
    (share * 1024.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With α = 1 a single hot queue settles at half the memory (Choudhury and Hahne, eq. 2:
    /// α/(1+α)).
    #[test]
    fn one_hot_queue_takes_alpha_over_one_plus_alpha() {
        for (alpha, share) in [(1.0, 0.5), (2.0, 2.0 / 3.0), (0.5, 1.0 / 3.0)] {
            let params = BufferParams::Shared(SharedParams {
                size: Bytes(3_000_000).into(),
                alpha,
                per: None,
            });
            let mut memory = Memory::new(&params, &SwitchFacts::default());
            let packet = Packet { size: 1_500, ..Packet::default() };
            let mut queued = 0;
            while memory.test(queued, &Claim::of(&packet, 0)).is_none() {
                memory.take(0, &packet);
                queued += 1_500;
            }
            let expected = 3_000_000.0 * share;
            assert!((queued as f64 - expected).abs() <= 3_000.0, "{queued} against {expected}");
        }
    }

    #[test]
    fn a_ports_memory_follows_its_link_where_it_is_told_to() {
        let bytes = |params: PerPortParams, gbps| {
            let site = PortSite { rate: Rate::from_gbps(gbps), ..PortSite::default() };
            Capacity::new(&BufferParams::PerPort(params), &site)
        };
        let auto = |gbps| bytes(PerPortParams::default(), gbps).bytes;
        assert_eq!(
            [auto(1), auto(10), auto(40), auto(100)],
            [300_000, 300_000, 1_200_000, 3_000_000]
        );
        let size = Auto::Given(Some(Bytes(100_000)));
        let flat = PerPortParams { size: size.into(), ..PerPortParams::default() };
        assert_eq!([bytes(flat.clone(), 1).bytes, bytes(flat.clone(), 100).bytes], [100_000; 2]);
        let per =
            PerPortParams { packets: Some(10).into(), per: Some(Rate::from_gbps(10)), ..flat };
        assert_eq!(bytes(per.clone(), 25), Capacity { bytes: 250_000, packets: 25 });
        assert_eq!(bytes(per, 1), Capacity { bytes: 10_000, packets: 1 });
    }

    #[test]
    fn a_switchs_memory_follows_its_links_where_it_is_told_to() {
        let size = ByTier::all(Bytes(9_600));
        let facts = SwitchFacts {
            links: vec![(Rate::from_gbps(40), Time::ZERO); 32],
            ..SwitchFacts::default()
        };
        assert_eq!(facts.memory(&size, Some(Rate::from_gbps(1))), 12_288_000);
        assert_eq!(facts.memory(&size, None), 9_600);
    }
}
