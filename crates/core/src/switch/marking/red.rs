//! RED that marks: random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993, §3 to §5; RFC
//! 2309), signalled by CE (RFC 3168).
//!
//! The average and the lots are [`Estimate`]'s, as the admission `red` has them; here a packet that
//! is hit gets CE. From the maximum on every packet does: RFC 3168 §7 would have it dropped there,
//! which is the admission's part.
//!
//! With `at = "dequeue"` it is the marking of DCQCN's switches (SIGCOMM 2015 §3.1): a packet that
//! leaves is marked by the queue's length as it is, with neither average nor spacing.
//!
//! Invariant: no packet is dropped for it; each arrival that finds room is in the average once,
//! whether it can be marked or not.

use super::ecn::MarkAt;
use super::{Marks, Threshold};
use crate::context::Context;
use crate::registry::{About, Signal};
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::switch::site::{Auto, ByPort, PortSite, scaled};
use crate::units::{Bytes, Rate};

pub(super) const ABOUT: About = About {
    summary: "sets CE at random, more often the longer the queue is on average",
    source: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM \
             ToN 1993; RFC 2309",
    provides: &[Signal::Marks],
    ..About::PLAIN
};

crate::params! {
    /// The keys of RED that marks instead of drops.
    pub struct RedParams {
        /// The average from which packets are marked; a table gives amounts by rate of the link or
        /// by tier, such as { 50Gbps = "10KB", 100Gbps = "400KB", others = "100KB" }. Source: five
        /// packets, Floyd: RED: Discussions of setting parameters, 1997.
        pub min_threshold: ByPort<Bytes> = ByPort::all(Bytes(7_500)),
        /// The average from which every packet is marked. Source: three times the minimum, the same
        /// note.
        #[within(1..)]
        pub max_threshold: ByPort<Bytes> = ByPort::all(Bytes(22_500)),
        /// Probability of a mark just below the maximum, before the spacing. Source: 0.1, the same
        /// note.
        #[within(0..=1)]
        pub max_probability: ByPort<f64> = ByPort::all(0.1),
        /// Whether the average of arrivals decides ("enqueue"), or on departure the length as it
        /// is, with the departing packet ("dequeue") or without ("after-dequeue"): then nothing is
        /// averaged, marks are not spaced, and weight and packet-rate have no effect. Source: the
        /// paper looks on arrival; DCQCN's switches on departure (SIGCOMM 2015 §3.1), with 5KB,
        /// 200KB and 0.01 at 40 Gb/s; HPCC's released simulator at what is left
        /// (`SwitchNode::SwitchNotifyDequeue`).
        pub at: MarkAt = MarkAt::Enqueue,
        /// The thresholds are for a link of this rate, and in proportion at others. Off means that
        /// they are the same at every port. Source: HPCC's released simulator has DCQCN's so, 100KB
        /// and 400KB at 25 Gb/s.
        #[within(1..)]
        pub per: Option<Rate> = None,
        /// w: weight of an arrival's queue length in the average. Source: 0.002, the same note and
        /// the paper.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty, as if so many
        /// had come. "auto" is as many full packets as the link sends. Source: the paper's s, the
        /// time that a packet takes (§4).
        #[within(1..)]
        pub packet_rate: Auto<f64> = Auto::Auto,
    }
}

impl RedParams {
    /// Their values at one port.
    pub(super) fn at_port(&self, site: &PortSite) -> RedParams {
        let here = |threshold: &ByPort<Bytes>| {
            ByPort::all(Bytes(scaled(threshold.at(site).get(), self.per, site.rate)))
        };
        RedParams {
            min_threshold: here(&self.min_threshold),
            max_threshold: here(&self.max_threshold),
            max_probability: ByPort::all(*self.max_probability.at(site)),
            packet_rate: Auto::Given(self.rate_at(site)),
            per: None,
            ..self.clone()
        }
    }

    /// From where on such a port marks.
    pub(super) fn threshold(&self, site: &PortSite) -> Threshold {
        let least = *self.at_port(site).min_threshold.at(site);
        match self.at {
            MarkAt::Enqueue => Threshold::Average(least),
            MarkAt::Dequeue | MarkAt::AfterDequeue => Threshold::Bytes(least),
        }
    }

    fn rate_at(&self, site: &PortSite) -> f64 {
        self.packet_rate.or(|| site.packet_rate())
    }
}

/// RED's marker of one port.
#[derive(Clone, Debug)]
pub struct Red {
    /// Boxed, so that a port with another policy does not carry the space.
    state: Box<(Curve, Estimate)>,
    at: MarkAt,
}

impl Red {
    /// Of parameters of one port ([`RedParams::at_port`]); others are taken as at a port of 10
    /// Gb/s.
    pub(super) fn new(params: &RedParams) -> Red {
        let site = PortSite::default();
        let (least, most) = (*params.min_threshold.at(&site), *params.max_threshold.at(&site));
        let curve = Curve::new(least, most, *params.max_probability.at(&site));
        let estimate = Estimate::new(params.weight, params.rate_at(&site));
        Red { state: Box::new((curve, estimate)), at: params.at }
    }
}

impl Marks for Red {
    fn at_enqueue(&mut self, context: &Context<'_, QueueView>) -> bool {
        let (curve, estimate) = &mut *self.state;
        self.at == MarkAt::Enqueue && estimate.draws(context, curve)
    }

    fn at_dequeue(&self, context: &Context<'_, QueueView>) -> bool {
        if !self.at.is_departure() {
            return false;
        }
        let probability = self.state.0.probability(self.at.seen(context).bytes);
        probability >= 1.0 || (probability > 0.0 && context.random.unit() < probability)
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        if self.at == MarkAt::Enqueue {
            self.state.1.on_dequeue(context);
        }
    }

    fn watches_departures(&self) -> bool {
        self.at == MarkAt::Enqueue
    }

    fn marks_at_dequeue(&self) -> bool {
        self.at.is_departure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};
    use crate::switch::marking::{Marking, MarkingParams};
    use crate::units::{Rate, Time};

    /// Shares of packets that are marked at queues that stay so long, with an average that follows
    /// at once.
    fn marked(lengths: &[u64]) -> Vec<f64> {
        const PACKETS: u32 = 40_000;
        let params = RedParams { weight: 1.0, ..RedParams::default() };
        let random = Random::from(Stream::new(1, "t"));
        let share = |bytes: &u64| {
            let mut red = Marking::new(&MarkingParams::Red(params.clone()));
            let view = QueueView { packets: (bytes / 1500) as u32, bytes: *bytes };
            let context =
                Context { now: Time::ZERO, packet: &Packet::default(), view, random: &random };
            f64::from((0..PACKETS).map(|_| u32::from(red.at_enqueue(&context))).sum::<u32>())
                / f64::from(PACKETS)
        };
        lengths.iter().map(share).collect()
    }

    /// Gaps between marks are uniform on 1 to 1/p_b − 1, in the mean half of 1/p_b: twice as many
    /// are marked as p_b says.
    #[test]
    fn the_share_that_is_marked_follows_the_average() {
        let shares = marked(&[7_499, 15_000, 22_499, 22_500]);
        assert_eq!((shares[0], shares[3]), (0.0, 1.0));
        for (share, p) in [(shares[1], 0.05), (shares[2], 0.1)] {
            assert!((share / (2.0 * p) - 1.0).abs() < 0.03, "{share} at p_b {p}");
        }
    }

    /// On departure the share is that of DCQCN's curve at the length as it is, of the very packet.
    #[test]
    fn on_departure_the_length_itself_decides() {
        const PACKETS: u32 = 40_000;
        let params = RedParams {
            min_threshold: Bytes(5_000).into(),
            max_threshold: Bytes(200_000).into(),
            max_probability: 0.5.into(),
            at: MarkAt::Dequeue,
            ..RedParams::default()
        };
        let random = Random::from(Stream::new(1, "t"));
        let mut red = Marking::new(&MarkingParams::Red(params.clone()));
        assert!(red.marks_at_dequeue() && !red.watches_departures());
        let mut share = |bytes: u64| {
            let view = QueueView { packets: 1, bytes };
            let context =
                Context { now: Time::ZERO, packet: &Packet::default(), view, random: &random };
            assert!(!red.at_enqueue(&context));
            f64::from((0..PACKETS).map(|_| u32::from(red.at_dequeue(&context))).sum::<u32>())
                / f64::from(PACKETS)
        };
        assert_eq!([share(0), share(4_999), share(5_000), share(200_000)], [0.0, 0.0, 0.0, 1.0]);
        for (bytes, p) in [(102_500, 0.25), (199_999, 0.5)] {
            assert!((share(bytes) / p - 1.0).abs() < 0.03, "{bytes}");
        }
        let site = PortSite { rate: Rate::from_gbps(100), ..PortSite::default() };
        let fast = RedParams { per: Some(Rate::from_gbps(25)), ..params }.at_port(&site);
        assert_eq!(
            (fast.min_threshold, fast.max_threshold),
            (Bytes(20_000).into(), Bytes(800_000).into())
        );
    }

    /// Idle time counts as the packets that the link could have sent, where nobody says how many.
    #[test]
    fn idle_time_is_packets_of_the_link() {
        let site = PortSite { rate: Rate::from_gbps(10), packet_max: 1250, ..PortSite::default() };
        assert_eq!(RedParams::default().at_port(&site).packet_rate, Auto::Given(1e6));
        let given = RedParams { packet_rate: Auto::Given(150.0), ..RedParams::default() };
        assert_eq!(given.at_port(&site).packet_rate, Auto::Given(150.0));
    }
}
