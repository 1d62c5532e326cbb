//! Step marking on the instantaneous queue length, as DCTCP asks of its switches (RFC 8257 §3.1;
//! SIGCOMM 2010 §3.1).
//!
//! The threshold that keeps a link busy is proportional to its rate: K > C · RTT / 7 (SIGCOMM 2010
//! §3.4). So a threshold that nobody has written follows the link ([`packets_by_rate`]), and one
//! that is written can be made to (`per`).
//!
//! Invariant: at a given queue length the answer is always the same; there is no average and no
//! randomness.

use super::Marks;
use crate::context::Context;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::buffer::Capacity;
use crate::switch::site::{Auto, ByTier, PortSite, scaled};
use crate::units::{Bytes, Rate};

pub(super) const ABOUT: About = About {
    summary: "sets CE when the queue is at least as long as a threshold",
    source: "RFC 8257 §3.1; DCTCP, SIGCOMM 2010 §3.1",
    provides: &[Signal::Marks],
    ..About::PLAIN
};

crate::choice! {
    /// When the queue's length is looked at.
    pub enum MarkAt {
        /// On arrival: the packets that wait, without the arriving one.
        Enqueue = "enqueue",
        /// On departure: the packets that wait, with the departing one. Notifies the sender one
        /// queueing delay sooner.
        Dequeue = "dequeue",
        /// On departure: the packets that the departing one leaves behind.
        AfterDequeue = "after-dequeue",
    }
}

impl MarkAt {
    /// Whether the queue behind a departing packet decides, instead of the queue before it.
    pub fn is_departure(self) -> bool {
        self != MarkAt::Enqueue
    }

    /// The queue by which a departing packet is marked.
    #[inline]
    pub fn seen(self, context: &Context<'_, QueueView>) -> QueueView {
        let QueueView { packets, bytes } = context.view;
        match self {
            MarkAt::Enqueue | MarkAt::Dequeue => context.view,
            MarkAt::AfterDequeue => QueueView {
                packets: packets.saturating_sub(1),
                bytes: bytes.saturating_sub(u64::from(context.packet.size)),
            },
        }
    }
}

crate::params! {
    /// The keys of marking at a step: the threshold and where it is compared.
    pub struct EcnParams {
        /// CE is set when at least this many packets wait; a number is that number at every port.
        /// "auto" follows the link's rate: 65 packets for each 10 Gb/s, at least 20, and at most
        /// half of what the port can hold. Ignored where threshold-bytes is given. Source: 20 at 1
        /// Gb/s and 65 at 10 Gb/s (DCTCP, SIGCOMM 2010 §3.5), in proportion to the rate as K > C
        /// RTT / 7 is (§3.4) and as the released simulator of HPCC (SIGCOMM 2019) sets it for
        /// DCTCP.
        pub threshold_packets: ByTier<Auto<u32>> = ByTier::all(Auto::Auto),
        /// CE is set when at least this many bytes wait; off means that packets are counted.
        /// Source: RFC 8257 §3.1.
        pub threshold_bytes: ByTier<Option<Bytes>> = ByTier::all(None),
        /// The threshold that is written is for a link of this rate, and in proportion at others:
        /// with threshold-bytes = "100KB" and per = "25Gbps" a port of 100 Gb/s marks from 400 KB
        /// on. Off means that it is the same at every port. Source: the thresholds of HPCC's DCQCN
        /// (SIGCOMM 2019 §5.1) are such.
        #[within(1..)]
        pub per: Option<Rate> = None,
        /// Whether the queue is looked at on arrival ("enqueue") or on departure, with the
        /// departing packet ("dequeue") or without ("after-dequeue"). Source: RFC 8257 §3.1 leaves
        /// it open; arrival is the DCTCP paper's, and what is left HPCC's released simulator's
        /// (`SwitchNode::SwitchNotifyDequeue`).
        pub at: MarkAt = MarkAt::Enqueue,
    }
}

/// The step marker of one port.
#[derive(Clone, Debug)]
pub struct Ecn {
    /// In packets; `u32::MAX` where bytes count.
    packets: u32,
    /// In bytes; `u64::MAX` where packets count.
    bytes: u64,
    at: MarkAt,
}

/// When a port marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// From this many packets on.
    Packets(u32),
    /// From this many bytes on.
    Bytes(Bytes),
    /// From this many bytes on, on average.
    Average(Bytes),
}

impl EcnParams {
    /// Their meaning at a port that can hold `capacity`: packets or bytes.
    pub fn threshold(&self, site: &PortSite, capacity: Capacity) -> Threshold {
        match (self.threshold_bytes.at(site.tier), self.threshold_packets.at(site.tier)) {
            (Some(bytes), _) => Threshold::Bytes(Bytes(scaled(bytes.get(), self.per, site.rate))),
            (None, Auto::Given(packets)) => {
                let packets = scaled(u64::from(*packets), self.per, site.rate);
                Threshold::Packets(u32::try_from(packets).unwrap_or(u32::MAX))
            }
            (None, Auto::Auto) => Threshold::Packets(packets_by_rate(site, capacity)),
        }
    }

    /// The same at one port, as plain numbers.
    pub(super) fn at_port(&self, site: &PortSite, capacity: Capacity) -> EcnParams {
        let (packets, bytes) = match self.threshold(site, capacity) {
            Threshold::Packets(packets) => (Auto::Given(packets), None),
            Threshold::Bytes(bytes) | Threshold::Average(bytes) => (Auto::Auto, Some(bytes)),
        };
        EcnParams {
            threshold_packets: packets.into(),
            threshold_bytes: bytes.into(),
            per: None,
            at: self.at,
        }
    }
}

/// DCTCP's K for a link that nobody has given one: 65 packets for each 10 Gb/s, 20 for slow links.
/// It leaves half of the port's memory to bursts, lest a scenario that sizes its buffers and
/// nothing else never marks.
fn packets_by_rate(site: &PortSite, capacity: Capacity) -> u32 {
    const AT_TEN_GIGABIT: u64 = 65;
    const LEAST: u64 = 20;
    let proportional = scaled(AT_TEN_GIGABIT, Some(Rate::from_gbps(10)), site.rate).max(LEAST);
    let held = (capacity.bytes / site.packet_max.max(1)).min(u64::from(capacity.packets));
    proportional.min((held / 2).max(1)) as u32
}

impl Ecn {
    /// Of parameters of one port ([`EcnParams::at_port`]); others are taken as at a leaf's port of
    /// 10 Gb/s.
    pub(super) fn new(params: &EcnParams) -> Ecn {
        match params.threshold(&PortSite::default(), Capacity::UNLIMITED) {
            Threshold::Bytes(bytes) | Threshold::Average(bytes) => {
                Ecn { packets: u32::MAX, bytes: bytes.get(), at: params.at }
            }
            Threshold::Packets(packets) => Ecn { packets, bytes: u64::MAX, at: params.at },
        }
    }
    #[inline]
    fn above(&self, view: &QueueView) -> bool {
        view.packets >= self.packets || view.bytes >= self.bytes
    }
}

impl Marks for Ecn {
    fn asked_from(&self) -> QueueView {
        QueueView { packets: self.packets, bytes: self.bytes }
    }
    #[inline]
    fn at_enqueue(&mut self, context: &Context<'_, QueueView>) -> bool {
        self.at == MarkAt::Enqueue && self.above(&context.view)
    }
    #[inline]
    fn at_dequeue(&self, context: &Context<'_, QueueView>) -> bool {
        self.at.is_departure() && self.above(&self.at.seen(context))
    }
    #[inline]
    fn marks_at_dequeue(&self) -> bool {
        self.at.is_departure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::params::{Field, Value};

    fn with<T>(packets: u32, bytes: u64, ask: impl FnOnce(&Context<'_, QueueView>) -> T) -> T {
        crate::switch::tests::seeing(QueueView { packets, bytes }, &Packet::default(), ask)
    }

    #[test]
    fn marks_when_at_least_the_threshold_waits() {
        let mut ecn = Ecn::new(&EcnParams::default());
        assert!(!with(64, 96_000, |it| ecn.at_enqueue(it)));
        assert!(with(65, 97_500, |it| ecn.at_enqueue(it)));
        assert!(!with(65, 97_500, |it| ecn.at_dequeue(it)));
    }

    #[test]
    fn what_nobody_wrote_follows_the_rate() {
        let packets = |rate, bytes| {
            let site = PortSite { rate, ..PortSite::default() };
            match EcnParams::default().threshold(&site, Capacity { bytes, packets: u32::MAX }) {
                Threshold::Packets(packets) => packets,
                other => unreachable!("{other:?}"),
            }
        };
        let wide = |gbps| packets(Rate::from_gbps(gbps), 30_000_000);
        // The two published points, and the line through the second.
        assert_eq!(
            [wide(1), wide(5), wide(10), wide(25), wide(40), wide(100)],
            [20, 32, 65, 162, 260, 650]
        );
        // Half of a port's memory is for bursts.
        assert_eq!(packets(Rate::from_gbps(40), 300_000), 100);
        assert_eq!(packets(Rate::from_gbps(40), 30_000), 10);
        assert_eq!(packets(Rate::from_gbps(10), 30_000), 10);
        assert_eq!(packets(Rate::from_gbps(1), 1_500), 1);
    }

    #[test]
    fn what_is_written_follows_rate_or_tier_if_told_to() {
        let threshold = |params: &EcnParams, gbps, tier| {
            let site = PortSite { rate: Rate::from_gbps(gbps), tier, ..PortSite::default() };
            params.threshold(&site, Capacity::UNLIMITED)
        };
        let flat = EcnParams { threshold_packets: Auto::Given(65).into(), ..EcnParams::default() };
        assert_eq!(
            (threshold(&flat, 1, 0), threshold(&flat, 100, 1)),
            (Threshold::Packets(65), Threshold::Packets(65))
        );
        let per = EcnParams {
            threshold_bytes: Some(Bytes(100_000)).into(),
            per: Some(Rate::from_gbps(25)),
            ..EcnParams::default()
        };
        let bytes = |bytes| Threshold::Bytes(Bytes(bytes));
        assert_eq!(
            (threshold(&per, 25, 0), threshold(&per, 100, 1)),
            (bytes(100_000), bytes(400_000))
        );
        let tiers = Value::Tiers(vec![("spine".into(), Value::Int(200))]);
        let tiered = EcnParams {
            threshold_packets: Field::from_value(&tiers).unwrap(),
            ..EcnParams::default()
        };
        let packets = Threshold::Packets;
        assert_eq!(
            (threshold(&tiered, 10, 0), threshold(&tiered, 10, 1)),
            (packets(65), packets(200))
        );
    }

    #[test]
    fn bytes_take_the_place_of_packets() {
        let mut ecn = Ecn::new(&EcnParams {
            threshold_bytes: Some(Bytes(30_000)).into(),
            at: MarkAt::Dequeue,
            ..Default::default()
        });
        assert!(!with(1_000, 29_999, |it| ecn.at_dequeue(it)));
        assert!(with(1, 30_000, |it| ecn.at_dequeue(it)));
        assert!(!with(1_000, 30_000, |it| ecn.at_enqueue(it)));
    }
}
