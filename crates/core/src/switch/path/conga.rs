//! CONGA: at a leaf, each flowlet takes the uplink whose path to the other leaf is the least
//! congested (Alizadeh et al., SIGCOMM 2014 §3).
//!
//! Every port to another switch measures how busy it is ([`Estimator`]). A packet between leaves
//! carries the number of its uplink and the most that any port on its way measured. The leaf that
//! receives it keeps that, and reports it back on what it sends there: one entry a packet. So a
//! leaf has, for each leaf and uplink, the congestion of the way, and adds what its own uplink
//! measures.
//!
//! Only leaves choose so. A switch further up that has several ports to choose from takes one by
//! the flow's hash, and is in the measure of the way. Bytes count when their packet joins the
//! queue, not when it leaves.
//!
//! Invariant: the packets of a flowlet take one uplink; a measure is 0 to 2^Q - 1.

use super::flowlets::{self, Flowlets};
use super::{Choice, Chooses, Facts, Passing};
use crate::context::Context;
use crate::packet::CongaHeader;
use crate::packet::{PacketId, Packets};
use crate::random::Random;
use crate::registry::{About, PathProperty, Signal};
use crate::switch::route::Attachment;
use crate::units::{Rate, Time};
use std::sync::Arc;

pub(super) const ABOUT: About = About {
    summary: "at a leaf a flowlet takes the uplink whose way to the other leaf is least congested",
    source: "Alizadeh et al.: CONGA: Distributed Congestion-Aware Load Balancing for Datacenters, \
             SIGCOMM 2014",
    breaks: &[
        PathProperty::FifoPerFlow,
        PathProperty::FifoPerFlowcell,
        PathProperty::LabelFixesPath,
    ],
    reads: &[Signal::Paths],
    ..About::PLAIN
};

crate::params! {
    /// The keys of CONGA (SIGCOMM 2014).
    pub struct CongaParams {
        /// A longer silence ends a flowlet. Source: 500 us, CONGA §3.6.
        pub gap: Time = Time::from_us(500),
        /// Flowlets that a leaf distinguishes. Source: 64 Ki, CONGA §3.4.
        #[within(1..=1_048_576)]
        pub entries: u32 = 65_536,
        /// Bits of a measure: Q. Source: 3, CONGA §3.6.
        #[within(1..=8)]
        pub bits: u32 = 3,
        /// How long a port's bytes count: the time constant of the estimator. Source: 160 us, CONGA
        /// §3.6.
        pub window: Time = Time::from_us(160),
        /// An entry that is not reported again for so long is forgotten: the way counts as free.
        /// Source: 10 ms, CONGA §3.3.
        pub age: Time = Time::from_ms(10),
    }
}

/// An estimator takes off an eighth at a time, as often as gives its window.
const DECAY_SHIFT: u32 = 3;

/// How busy a port is: bytes, of which an eighth is taken off every eighth of the window
/// (the discounting rate estimator of §3.2).
#[derive(Clone, Copy, Debug, Default)]
struct Estimator {
    bytes: u64,
    /// Periods that have been taken off.
    periods: u64,
}

impl Estimator {
    fn settle(&mut self, now: Time, period: Time) {
        let periods = now.as_ps() / period.as_ps().max(1);
        for _ in self.periods..periods {
            // Rounded up, so that it comes to rest at nothing.
            self.bytes -= self.bytes.div_ceil(1 << DECAY_SHIFT);
            if self.bytes == 0 {
                break;
            }
        }
        self.periods = periods;
    }
}

/// The known measure of a way, and since when it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    measure: u8,
    at: Time,
    /// Not reported back since it changed.
    is_new: bool,
}

/// A leaf's knowledge of the ways to another and from it, by uplink.
#[derive(Clone, Debug)]
struct Ways {
    to: Vec<Entry>,
    from: Vec<Entry>,
    /// The uplink whose entry is reported next.
    turn: usize,
}

/// CONGA at one switch.
#[derive(Clone, Debug)]
pub struct Conga {
    params: CongaParams,
    attachment: Arc<Attachment>,
    /// By port.
    rates: Vec<Rate>,
    estimators: Vec<Estimator>,
    flowlets: Flowlets,
    /// By leaf; empty before something is known of it.
    ways: Vec<Option<Box<Ways>>>,
}

impl Conga {
    pub(super) fn new(params: &CongaParams) -> Conga {
        Conga {
            params: params.clone(),
            attachment: Arc::default(),
            rates: Vec::new(),
            estimators: Vec::new(),
            flowlets: Flowlets::new(params.gap, params.entries),
            ways: Vec::new(),
        }
    }

    fn leaf_of(&self, host: u32) -> usize {
        self.attachment.hosts.get(host as usize).map_or(usize::MAX, |(leaf, _)| usize::from(*leaf))
    }

    /// The measure of a port: floor(8 X / (C window) 2^Q), at most 2^Q - 1 (§3.2).
    fn measure(&mut self, now: Time, port: u16) -> u8 {
        let (window, bits, period) = (self.params.window, self.params.bits, self.period());
        let Some(estimator) = self.estimators.get_mut(usize::from(port)) else { return 0 };
        estimator.settle(now, period);
        let whole = u128::from(self.rates[usize::from(port)].bps()) * u128::from(window.as_ps());
        let ps_of_bits = (u128::from(estimator.bytes) * 8_000_000_000_000) << bits;
        (ps_of_bits / whole.max(1)).min((1 << bits) - 1) as u8
    }

    /// The known measure of the way to `leaf` by `port`: nothing, or what is too old, is 0.
    fn known(&self, now: Time, leaf: usize, port: u16) -> u8 {
        let ways = self.ways.get(leaf).and_then(Option::as_ref);
        let entry = ways.and_then(|ways| ways.to.get(usize::from(port)));
        entry.filter(|it| now.saturating_sub(it.at) <= self.params.age).map_or(0, |it| it.measure)
    }

    fn ways_of(&mut self, leaf: usize) -> &mut Ways {
        if self.ways.len() <= leaf {
            self.ways.resize(leaf + 1, None);
        }
        self.ways[leaf]
            .get_or_insert_with(|| Box::new(Ways { to: Vec::new(), from: Vec::new(), turn: 0 }))
    }

    /// The least congested of the candidates. Of equals it is `before`, if that is one of them, or
    /// one by lot.
    fn best(
        &mut self,
        now: Time,
        leaf: usize,
        candidates: &[u16],
        before: Option<u16>,
        random: &Random,
    ) -> u16 {
        let (mut least, mut best, mut equals) = (u8::MAX, candidates[0], 0);
        for &port in candidates {
            let measure = self.measure(now, port).max(self.known(now, leaf, port));
            if measure < least {
                (least, best, equals) = (measure, port, 1);
            } else if measure == least && Some(best) != before {
                equals += 1;
                if Some(port) == before || random.below(equals) == 0 {
                    best = port;
                }
            }
        }
        best
    }

    /// Keeps the measure of a way that a packet carries.
    fn keep(entries: &mut Vec<Entry>, uplink: u16, measure: u8, now: Time) {
        let uplink = usize::from(uplink);
        if entries.len() <= uplink {
            entries.resize(uplink + 1, Entry::default());
        }
        let entry = &mut entries[uplink];
        let is_new = entry.is_new || entry.measure != measure || entry.at == Time::ZERO;
        *entry = Entry { measure, at: now, is_new };
    }

    /// The report to `leaf` on the ways from it: one entry, in turn, those that changed first
    /// (§3.3).
    fn feedback(&mut self, leaf: usize) -> Option<(u16, u8)> {
        let ways = self.ways.get_mut(leaf)?.as_mut()?;
        let count = ways.from.len();
        let in_turn = |at: usize| (ways.turn + at) % count;
        let known = |at: &usize| ways.from[*at].at > Time::ZERO;
        let new = (0..count).map(in_turn).filter(known).find(|at| ways.from[*at].is_new);
        let at = new.or_else(|| (0..count).map(in_turn).find(known))?;
        ways.turn = (at + 1) % count;
        ways.from[at].is_new = false;
        Some((at as u16, ways.from[at].measure))
    }

    fn period(&self) -> Time {
        Time::from_ps(self.params.window.as_ps() >> DECAY_SHIFT)
    }

    /// A packet goes up to another leaf: writes its header.
    fn write(&mut self, now: Time, id: PacketId, port: u16, packets: &mut Packets) {
        let mut packet = packets[id];
        let feedback = self.feedback(self.leaf_of(packet.dst));
        let header = CongaHeader { uplink: port, congestion: self.measure(now, port), feedback };
        packets.attach(&mut packet, header);
        packets[id].side = packet.side;
    }

    /// A packet from another leaf leaves to a host: reads its header and takes it off.
    fn learn(&mut self, now: Time, id: PacketId, packets: &mut Packets) {
        let mut packet = packets[id];
        let Some(header) = packets.detach::<CongaHeader>(&mut packet) else { return };
        packets[id].side = packet.side;
        let ways = self.ways_of(self.leaf_of(packet.src));
        Conga::keep(&mut ways.from, header.uplink, header.congestion, now);
        if let Some((uplink, measure)) = header.feedback {
            Conga::keep(&mut ways.to, uplink, measure, now);
        }
    }
}

impl Chooses for Conga {
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let (now, packet, random) = (context.now, context.packet, context.random);
        let Choice { candidates, site, .. } = &context.view;
        if site.tier > 0 {
            return candidates[flowlets::place(packet, *site, candidates.len())];
        }
        let leaf = self.leaf_of(packet.dst);
        let mut flowlets = std::mem::take(&mut self.flowlets);
        let port = flowlets.port(now, packet, *site, candidates, |before| {
            self.best(now, leaf, candidates, before, random)
        });
        self.flowlets = flowlets;
        port
    }

    fn install(&mut self, facts: &Facts<'_>) {
        self.attachment = facts.attachment.clone();
        self.rates = facts.rates.to_vec();
        self.estimators = vec![Estimator::default(); facts.rates.len()];
    }

    fn watches(&self) -> bool {
        true
    }

    fn passes(&mut self, passing: Passing, packets: &mut Packets) {
        let Passing { now, id, port, is_from_host, is_to_host } = passing;
        match (is_from_host, is_to_host) {
            (true, true) => {}
            (_, true) => self.learn(now, id, packets),
            (true, _) => self.write(now, id, port, packets),
            (false, false) => {
                let measure = self.measure(now, port);
                let packet = packets[id];
                if let Some(header) = packets.side_mut::<CongaHeader>(&packet) {
                    header.congestion = header.congestion.max(measure);
                }
            }
        }
    }

    fn joined(&mut self, now: Time, port: u16, size: u16) {
        let period = self.period();
        if let Some(estimator) = self.estimators.get_mut(usize::from(port)) {
            estimator.settle(now, period);
            estimator.bytes += u64::from(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Crossing;
    use super::*;
    use crate::packet::CongaHeader;
    use crate::packet::Packet;
    use crate::random::mix64;

    const PORTS: [u16; 4] = [2, 3, 4, 5];

    /// A switch of a network of two leaves with two hosts each; four ports lead to other switches.
    fn leaf() -> Conga {
        let mut it = Conga::new(&CongaParams::default());
        let hosts = vec![(0, 0), (0, 1), (1, 0), (1, 1)];
        it.install(&Facts {
            attachment: &Arc::new(Attachment { hosts }),
            rates: &[Rate::from_gbps(10); 6],
        });
        it
    }

    fn of_flow(flow: u64) -> Packet {
        Packet { entropy: mix64(flow) as u32, dst: 2, ..Packet::default() }
    }

    /// A steady load settles at its share of the scale, and a scale is never left: public code
    /// lacks the clamp.
    #[test]
    fn a_measure_is_the_share_of_the_link_and_stays_on_its_scale() {
        // Packets of 1,500 bytes take 1.2 us at 10 Gb/s.
        for (every_ns, least, most) in [(1_200, 6, 7), (2_400, 3, 4), (4_800, 1, 2), (48_000, 0, 0)]
        {
            let mut it = leaf();
            (0..2_000).for_each(|packet| it.joined(Time::from_ns(packet * every_ns), 2, 1_500));
            let measure = it.measure(Time::from_ns(2_000 * every_ns), 2);
            assert!((least..=most).contains(&measure), "{every_ns}: {measure}");
        }
        let mut it = leaf();
        (0..10_000).for_each(|_| it.joined(Time::from_us(1), 2, 9_000));
        assert_eq!(it.measure(Time::from_us(1), 2), 7);
        assert_eq!(it.measure(Time::from_ms(50), 2), 0, "and comes to rest");
    }

    /// A packet from one leaf to the other takes a measure there, and the next one back brings it
    /// home.
    #[test]
    fn what_a_way_measures_comes_back_to_its_leaf() {
        let (mut here, mut spine, mut there) = (leaf(), leaf(), leaf());
        let now = Time::from_us(100);
        (0..1_000).for_each(|_| spine.joined(now, 0, 1_500));
        let mut packets = Packets::default();
        let id = packets.insert(Packet { src: 0, dst: 2, ..Packet::default() });
        let pass = |id, port, is_from_host, is_to_host| Passing {
            now,
            id,
            port,
            is_from_host,
            is_to_host,
        };
        here.passes(pass(id, 4, true, false), &mut packets);
        spine.passes(pass(id, 0, false, false), &mut packets);
        let header = *packets.side::<CongaHeader>(&packets[id]).expect("its header");
        assert_eq!(header, CongaHeader { uplink: 4, congestion: 7, feedback: None });
        there.passes(pass(id, 0, false, true), &mut packets);
        assert_eq!(packets.live_records(), 0, "hosts see none of it");

        let back = packets.insert(Packet { src: 2, dst: 0, ..Packet::default() });
        there.passes(pass(back, 3, true, false), &mut packets);
        here.passes(pass(back, 0, false, true), &mut packets);
        assert_eq!((here.known(now, 1, 4), here.known(now, 1, 3)), (7, 0));
        let late = now + Time::from_ms(10) + Time::from_ps(1);
        assert_eq!(here.known(late, 1, 4), 0, "what is old is forgotten");
    }

    #[test]
    fn what_has_changed_is_told_first_and_the_rest_in_turn() {
        let (mut it, now) = (leaf(), Time::from_us(1));
        for uplink in [2, 3, 4] {
            Conga::keep(&mut it.ways_of(1).from, uplink, 1, now);
        }
        let told: Vec<u16> =
            (0..5).map(|_| it.feedback(1).expect("something is known").0).collect();
        assert_eq!(told, [2, 3, 4, 2, 3]);
        Conga::keep(&mut it.ways_of(1).from, 3, 5, now);
        assert_eq!((it.feedback(1), it.feedback(1)), (Some((3, 5)), Some((4, 1))));
        assert_eq!(it.feedback(0), None);
    }

    /// The strict winner counts once: public code adds it twice, so a tie that follows is not fair.
    #[test]
    fn the_least_congested_wins_and_ties_are_fair() {
        let (mut it, mut at) = (leaf(), Crossing::default());
        at.now = Time::from_us(1);
        let mut counts = [0u32; 6];
        for uplink in [2, 5] {
            Conga::keep(&mut it.ways_of(1).to, uplink, 3, at.now);
        }
        for flow in 0..4_000 {
            counts[at.choose(&mut it, &PORTS, &of_flow(flow)) as usize] += 1;
        }
        assert!(counts[2] == 0 && counts[5] == 0, "{counts:?}");
        assert!((1_850..2_150).contains(&counts[3]), "{counts:?}");
    }

    #[test]
    fn a_flowlet_stays_and_the_next_prefers_the_port_it_had() {
        let (mut it, mut at) = (leaf(), Crossing::default());
        at.now = Time::from_ms(1);
        for flow in 0..50 {
            let port = at.choose(&mut it, &PORTS, &of_flow(flow));
            Conga::keep(&mut it.ways_of(1).to, port, 7, at.now);
            at.now += Time::from_us(500);
            assert_eq!(
                at.choose(&mut it, &PORTS, &of_flow(flow)),
                port,
                "the gap is the default's"
            );
            at.now += Time::from_us(501);
            let next = at.choose(&mut it, &PORTS, &of_flow(flow));
            assert_ne!(next, port, "the way is congested");
            at.now += Time::from_ms(20);
            assert_eq!(at.choose(&mut it, &PORTS, &of_flow(flow)), next, "all are alike");
        }
    }

    #[test]
    fn above_the_leaves_a_flow_has_one_port() {
        let (mut it, mut at) = (leaf(), Crossing::default());
        at.site.tier = 1;
        let port = at.choose(&mut it, &PORTS, &of_flow(1));
        at.now = Time::from_s(1);
        assert_eq!(at.choose(&mut it, &PORTS, &of_flow(1)), port);
    }
}
