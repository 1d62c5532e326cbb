//! RED that marks: random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993, §3 to §5; RFC 2309), told by CE (RFC 3168).
//!
//! The average and the lots are [`Estimate`]'s, as the admission `red` has them; here a packet that is hit gets CE. From the
//! maximum on every packet does: RFC 3168 §7 would have it dropped there, which is the admission's part.
//!
//! Invariant: no packet is dropped for it; each arrival that finds room is in the average once, whether it can be marked
//! or not.

use super::Marks;
use crate::context::Context;
use crate::registry::About;
use crate::switch::QueueView;
use crate::switch::early::{Curve, Estimate};
use crate::switch::site::{Auto, PortSite};
use crate::units::Bytes;

pub(super) const ABOUT: About = About {
    summary: "sets CE at random, more often the longer the queue is on average",
    source: "Floyd, Jacobson: Random early detection gateways for congestion avoidance, IEEE/ACM ToN 1993; RFC 2309",
    needs: &[],
    breaks: &[],
    restores: &[],
};

crate::params! {
    /// RED that marks.
    pub struct RedParams {
        /// The average from which packets are marked. Source: five packets, Floyd: RED: Discussions of setting parameters,
        /// 1997.
        pub min_threshold: Bytes = Bytes(7_500),
        /// The average from which every packet is marked. Source: three times the minimum, the same note.
        #[within(1..)]
        pub max_threshold: Bytes = Bytes(22_500),
        /// Probability of a mark just below the maximum, before the spacing. Source: 0.1, the same note.
        #[within(0..=1)]
        pub max_probability: f64 = 0.1,
        /// w: weight of an arrival's queue length in the average. Source: 0.002, the same note and the paper.
        #[within(0..=1)]
        pub weight: f64 = 0.002,
        /// Packets per second by which the average falls while the queue is empty, as if so many had come. "auto" is as
        /// many full packets as the link sends. Source: the paper's s, the time that a packet takes (§4).
        #[within(1..)]
        pub packet_rate: Auto<f64> = Auto::Auto,
    }
}

impl RedParams {
    /// What they mean at one port.
    pub(super) fn at_port(&self, site: &PortSite) -> RedParams {
        RedParams { packet_rate: Auto::Given(self.rate_at(site)), ..self.clone() }
    }

    fn rate_at(&self, site: &PortSite) -> f64 {
        match self.packet_rate {
            Auto::Given(rate) => rate,
            Auto::Auto => site.rate.bps() as f64 / (8 * site.packet_max.max(1)) as f64,
        }
    }
}

/// RED that marks.
#[derive(Clone, Debug)]
pub struct Red {
    /// Boxed, so that a port with another policy does not carry the space.
    state: Box<(Curve, Estimate)>,
}

impl Red {
    /// Of parameters of one port ([`RedParams::at_port`]); others are taken as at a port of 10 Gb/s.
    pub(super) fn new(params: &RedParams) -> Red {
        let curve = Curve::new(params.min_threshold, params.max_threshold, params.max_probability);
        Red { state: Box::new((curve, Estimate::new(params.weight, params.rate_at(&PortSite::default())))) }
    }
}

impl Marks for Red {
    fn at_enqueue(&mut self, context: &Context<'_, QueueView>) -> bool {
        let (curve, estimate) = &mut *self.state;
        estimate.draws(context, curve)
    }

    fn on_dequeue(&mut self, context: &Context<'_, QueueView>) {
        self.state.1.on_dequeue(context);
    }

    fn watches_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::random::{Random, Stream};
    use crate::switch::marking::{Marking, MarkingParams};
    use crate::units::{Rate, Time};

    /// Shares of packets that are marked at queues that stay so long, with an average that follows at once.
    fn marked(lengths: &[u64]) -> Vec<f64> {
        const PACKETS: u32 = 40_000;
        let params = RedParams { weight: 1.0, ..RedParams::default() };
        let random = Random::from(Stream::new(1, "t"));
        let share = |bytes: &u64| {
            let mut red = Marking::new(&MarkingParams::Red(params.clone()));
            let view = QueueView { packets: (bytes / 1500) as u32, bytes: *bytes };
            let context = Context { now: Time::ZERO, packet: &Packet::default(), view, random: &random };
            f64::from((0..PACKETS).map(|_| u32::from(red.at_enqueue(&context))).sum::<u32>()) / f64::from(PACKETS)
        };
        lengths.iter().map(share).collect()
    }

    /// Gaps between marks are uniform on 1 to 1/p_b − 1, in the mean half of 1/p_b: twice as many are marked as p_b says.
    #[test]
    fn the_share_that_is_marked_follows_the_average() {
        let shares = marked(&[7_499, 15_000, 22_499, 22_500]);
        assert_eq!((shares[0], shares[3]), (0.0, 1.0));
        for (share, p) in [(shares[1], 0.05), (shares[2], 0.1)] {
            assert!((share / (2.0 * p) - 1.0).abs() < 0.03, "{share} at p_b {p}");
        }
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
