//! The ideal flow completion time: the flow alone in the empty network, over whatever ways it could
//! take.
//!
//! Computed, not simulated, in exact picoseconds, and a lower bound: no transport and no choice of
//! paths is faster. It depends on the network, the hosts and the transport's form (headers,
//! handshake, how it cuts packets), not on the choice of paths, so all variants of a scenario are
//! measured by the same.
//!
//! The flow is n packets of the largest size S but for the last one of size s, all at the sender's
//! NIC at once (no window limits it), each packet stored and forwarded whole.
//!
//! **One way.** Over links 1…m with transmission times t_j(·) and delays d_j, packet n−1 leaves
//! link j at
//!
//! > L_j = Σ_{i≤j} t_i(S) + Σ_{i<j} d_i + (n−2) · max_{i≤j} t_i(S)
//!
//! (identical packets pile up behind the slowest link so far), and the last one at
//!
//! > F_j = max(F_{j−1} + d_{j−1}, L_j) + t_j(s)
//!
//! and the flow is over at F_m + d_m.
//!
//! **Several ways.** The hosts' links, the first and the last, are still the same for all packets.
//! Between them each packet may take its own way and a small last one may overtake others, so three
//! bounds hold and the largest counts: packets come one after the other out of the first link, each
//! at once by its own fastest way, and are served one after the other by the last; and all bytes
//! cross the narrowest cut between the two leaves ([`Ways`]). Where the hosts' links are the
//! narrowest this is the same as the time over one way, but for flows of so few packets that a
//! small last one can come first.
//!
//! **Several NICs.** A connection that takes all NICs of its hosts (MPTCP, Presto's flowcells) is
//! bound by the NICs of either host together, as by a cut, and by one packet's fastest way. Any
//! other has one pair of NICs, the fastest.
//!
//! To this come the stack's delay at either end and (where connections open with a handshake) one
//! round trip of header-only packets with the stack's delay on each of its four passages.
//!
//! Without silly-window avoidance a transport may cut packets anywhere once its first window is
//! full; then only the bytes and the first window's packets are known, and the bounds are those of
//! any cutting.

use crate::host::HEADER_BYTES;
use crate::plan::Plan;
use crate::topology::ways::{Cut, Hop, Ways, crossing};
use millpond_core::{Rate, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// More ways than this are worked out again when they are needed again.
const WAYS_MAX: usize = 1 << 16;

/// The ideal times of a plan's flows. The ways between two leaves are worked out when the first
/// flow between them asks, once for all pairs that are alike, and kept.
#[derive(Debug, Default)]
pub struct IdealTimes {
    ways: Mutex<BTreeMap<(u32, u32), Arc<Ways>>>,
}

/// The hosts of a connection and its class.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub class: u16,
    pub src: u32,
    pub dst: u32,
}

/// Bytes of a request and of its response.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub request: u64,
    pub response: u64,
}

impl Ends {
    fn back(self) -> Ends {
        Ends { src: self.dst, dst: self.src, ..self }
    }
}

/// A flow as packets on the wire.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// How many, cut as large as possible.
    packets: u64,
    /// Size of all but the last.
    full: u64,
    last: u64,
    /// Where packets may be cut anywhere: how many full ones come first, at least one.
    sure: Option<u64>,
    /// Size of the smallest packet that there can be.
    least: u64,
}

/// Never beyond the longest time.
fn total<const N: usize>(times: [Time; N]) -> Time {
    times.into_iter().fold(Time::ZERO, Time::saturating_add)
}

impl Train {
    /// Of a flow, the first `window` bytes of which are sent at once.
    fn new(plan: &Plan, bytes: u64, window: u64) -> Train {
        let mss = payload_max(plan);
        let packets = bytes.div_ceil(mss).max(1);
        let anyhow = !plan.transport.silly_window_avoidance && bytes > window;
        Train {
            packets,
            full: plan.host.wire_bytes(mss),
            last: plan.host.wire_bytes(bytes.max(1) - (packets - 1) * mss),
            sure: anyhow.then_some((window / mss).max(1)),
            least: plan.host.wire_bytes(0),
        }
    }

    /// One packet of this size.
    fn single(size: u64) -> Train {
        Train { packets: 1, full: size, last: size, sure: None, least: size }
    }

    /// All that goes over the wire, at least.
    fn bytes(&self) -> u64 {
        (self.packets - 1).saturating_mul(self.full).saturating_add(self.last)
    }

    /// The first packet's size.
    fn first(&self) -> u64 {
        if self.packets > 1 { self.full } else { self.last }
    }

    /// How long a link takes for all of them.
    fn time(&self, rate: Rate) -> Time {
        if self.sure.is_some() {
            return rate.transmission_time(self.bytes());
        }
        let full = rate.transmission_time(self.full).saturating_mul(self.packets - 1);
        full.saturating_add(rate.transmission_time(self.last))
    }

    /// When all have arrived over one way.
    fn over(&self, hops: &[Hop]) -> Time {
        if self.sure.is_some() {
            // The first packet leads to each link, which then has all bytes to carry; the last
            // packet may be the smallest.
            let bound = |(j, (rate, delay)): (usize, &Hop)| {
                let to = crossing(&hops[..j], self.full);
                let on = crossing(&hops[j + 1..], self.least);
                total([to, self.time(*rate), *delay, on])
            };
            return hops.iter().enumerate().map(bound).max().unwrap_or_default();
        }
        let (mut sum, mut slowest) = (Time::ZERO, Time::ZERO);
        let mut done = Time::ZERO;
        for &(rate, delay) in hops {
            let whole = rate.transmission_time(self.full);
            sum = sum.saturating_add(whole);
            slowest = slowest.max(whole);
            // When the link is free of the packets before the last.
            let free = match self.packets {
                1 => Time::ZERO,
                n => sum.saturating_add(slowest.saturating_mul(n - 2)),
            };
            done = total([done.max(free), rate.transmission_time(self.last), delay]);
            sum = sum.saturating_add(delay);
        }
        done
    }

    /// When all have arrived, at best, over several ways between the first and the last link.
    fn through(&self, first: Hop, ways: &Ways, last: Hop) -> Time {
        let between = if self.sure.is_some() {
            self.cut_anyhow(first, ways, last)
        } else {
            self.in_turn(first, ways, last)
        };
        let Some(cut) = &ways.cut else { return between };
        let head = first.0.transmission_time(self.first()).saturating_add(first.1);
        let tail = last.0.transmission_time(self.least).saturating_add(last.1);
        between.max(total([head, cut.passed(self.bytes()), tail]))
    }

    /// One after the other out of the first link, each by its own fastest way, one after the other
    /// over the last link: what is served last has waited for all that came with it or later.
    fn in_turn(&self, first: Hop, ways: &Ways, last: Hop) -> Time {
        let way = |size| first.1.saturating_add(ways.latency(size));
        let sent = |size| first.0.transmission_time(size);
        let served = |size| last.0.transmission_time(size);
        let fulls = self.packets - 1;
        let comes = |n: u64| sent(self.full).saturating_mul(n).saturating_add(way(self.full));
        let waits = |n: u64| served(self.full).saturating_mul(n);
        let small = total([sent(self.full).saturating_mul(fulls), sent(self.last), way(self.last)]);
        // Of the full ones, so many come no later than the last.
        let before = small.saturating_sub(way(self.full)).as_ps() / sent(self.full).as_ps().max(1);
        let before = before.min(fulls);
        let mut done = total([small, served(self.last), waits(fulls - before)]);
        for n in [1, before].into_iter().filter(|n| (1..=before).contains(n)) {
            done = done.max(total([comes(n), waits(fulls - n + 1), served(self.last)]));
        }
        for n in [before + 1, fulls].into_iter().filter(|n| (before + 1..=fulls).contains(n)) {
            done = done.max(comes(n).saturating_add(waits(fulls - n + 1)));
        }
        done.saturating_add(last.1)
    }

    /// The same whatever the packets after the sure ones are: the last link begins with the first
    /// packet, or with a small one that has overtaken it, and what leaves the first link last has
    /// its way to go.
    fn cut_anyhow(&self, first: Hop, ways: &Ways, last: Hop) -> Time {
        let out = |size: u64, packets: u64| {
            first.0.transmission_time(size).saturating_mul(packets).saturating_add(first.1)
        };
        let (full, least) = (ways.latency(self.full), ways.latency(self.least));
        let overtakes = out(self.full, self.sure.unwrap_or(1)).saturating_add(least);
        let begins = out(self.full, 1).saturating_add(full).min(overtakes);
        let ends = total([self.time(first.0), first.1, least]);
        let last_out = ends.saturating_add(last.0.transmission_time(self.least));
        total([begins, self.time(last.0)]).max(last_out).saturating_add(last.1)
    }
}

/// Payload of the largest packet.
fn payload_max(plan: &Plan) -> u64 {
    plan.transport.mss.unwrap_or(plan.host.mtu.saturating_sub(HEADER_BYTES)).max(1) as u64
}

/// The bytes that a new connection may send before anything is acknowledged.
fn first_window(plan: &Plan) -> u64 {
    let p = &plan.transport;
    let buffer =
        [p.send_buffer, p.receive_buffer].into_iter().flatten().map(|bytes| bytes.get()).min();
    let initial = u64::from(p.initial_window).saturating_mul(payload_max(plan));
    initial.min(buffer.unwrap_or(u64::MAX)).max(payload_max(plan))
}

impl IdealTimes {
    /// The time that a flow of `bytes` takes alone in the empty network, from its start to its last
    /// byte at the receiving application.
    pub fn flow(&self, plan: &Plan, ends: Ends, bytes: u64) -> Time {
        let there = self.one_way(plan, ends, bytes, first_window(plan));
        self.handshake(plan, ends).saturating_add(there)
    }

    /// The same for a request and its response on one connection, from the request's start to the
    /// response's last byte, with the time that the server thinks in between. The thinking time is
    /// the one drawn for this exchange and not the mean, so that the result stays what no transport
    /// can beat.
    pub fn exchange(&self, plan: &Plan, client: Ends, sizes: Exchange, thinks: Time) -> Time {
        let there = self.flow(plan, client, sizes.request);
        let back = self.one_way(plan, client.back(), sizes.response, first_window(plan));
        total([there, thinks, back])
    }

    /// The same on a connection that has been open before, so that its windows may have any size.
    pub fn call(&self, plan: &Plan, client: Ends, sizes: Exchange) -> Time {
        let window = payload_max(plan);
        let there = self.one_way(plan, client, sizes.request, window);
        there.saturating_add(self.one_way(plan, client.back(), sizes.response, window))
    }

    /// The same for one message on a connection that has been open before.
    pub fn message(&self, plan: &Plan, ends: Ends, bytes: u64) -> Time {
        self.one_way(plan, ends, bytes, payload_max(plan))
    }

    /// From the sender's transport to the receiver's, without a handshake, where `window` bytes may
    /// be sent at once.
    fn one_way(&self, plan: &Plan, ends: Ends, bytes: u64, window: u64) -> Time {
        let train = Train::new(plan, bytes, window);
        self.time(plan, ends, &train).saturating_add(plan.host.stack_delay.saturating_mul(2))
    }

    /// The round trip of a handshake, if connections open with one.
    pub fn handshake(&self, plan: &Plan, ends: Ends) -> Time {
        if !plan.transport.handshake {
            return Time::ZERO;
        }
        let header = plan.host.wire_bytes(0);
        self.time(plan, ends, &Train::single(header))
            .saturating_add(plan.host.stack_delay.saturating_mul(2))
            .saturating_mul(2)
    }

    /// From the one host to the other.
    fn time(&self, plan: &Plan, Ends { class, src, dst }: Ends, train: &Train) -> Time {
        let topology = &plan.topology;
        if !topology.has_several_nics() {
            return self.between(plan, src, dst, train);
        }
        let pairs = topology.nics(src).flat_map(|a| topology.nics(dst).map(move |b| (a, b)));
        let pairs: Vec<_> = pairs.filter(|(a, b)| topology.connects(*a, *b)).collect();
        let fastest = |train: &Train| {
            pairs
                .iter()
                .map(|pair| self.between(plan, pair.0, pair.1, train))
                .min()
                .unwrap_or_default()
        };
        if !plan.takes_several_nics(class) || train.packets == 1 {
            return fastest(train);
        }
        // Beside the link of a NIC, the smallest packet takes at least so long.
        let least = Train::single(train.least);
        let beside = |pair: &(u32, u32), nic: u32| {
            let on = topology.links[nic as usize].rate.transmission_time(train.least);
            self.between(plan, pair.0, pair.1, &least).saturating_sub(on)
        };
        let sent = Cut::new(pairs.iter().map(|pair| (pair.0, beside(pair, pair.0))), topology);
        let received = Cut::new(pairs.iter().map(|pair| (pair.1, beside(pair, pair.1))), topology);
        let bytes = train.bytes();
        sent.passed(bytes).max(received.passed(bytes)).max(fastest(&least))
    }

    fn between(&self, plan: &Plan, src: u32, dst: u32, train: &Train) -> Time {
        let topology = &plan.topology;
        let hop =
            |nic: u32| (topology.links[nic as usize].rate, topology.links[nic as usize].delay);
        let (first, last) = (hop(src), hop(dst));
        let (from, to) = (topology.leaf_of(src), topology.leaf_of(dst));
        if topology.switches[from as usize].is_joint {
            return train.over(&[(first.0, first.1.saturating_add(last.1))]);
        }
        if from == to {
            return train.over(&[first, last]);
        }
        let (from, to) = topology.alike(from, to);
        let ways = self.ways(plan, from, to);
        if ways.is_only {
            let hops: Vec<Hop> =
                [first].into_iter().chain(ways.large.iter().copied()).chain([last]).collect();
            return train.over(&hops);
        }
        train.through(first, &ways, last)
    }

    fn ways(&self, plan: &Plan, from: u32, to: u32) -> Arc<Ways> {
        let mut known = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= WAYS_MAX {
            known.clear();
        }
        let sizes = (plan.host.wire_bytes(payload_max(plan)), plan.host.wire_bytes(0));
        let new = || Arc::new(Ways::new(&plan.topology, from, to, sizes));
        known.entry((from, to)).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::settings::topology::{LeafSpineParams, TopologyParams};
    use crate::topology::Topology;

    fn ends(src: u32, dst: u32) -> Ends {
        Ends { class: 0, src, dst }
    }

    fn plan(extra: &str) -> Plan {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n{extra}"
        );
        Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap()
    }

    /// Ten packets of 1500 B over 10G, 40G, 40G, 10G with 1, 5, 5, 1 µs: by hand, 1200, 300, 300
    /// and 1200 ns for the first packet, 12 µs of delays, nine more behind the 1200 ns links; a
    /// handshake is twice (32, 8, 8 and 32 ns and 12 µs).
    #[test]
    fn a_whole_number_of_packets_by_hand() {
        let p = plan("[transport]\nhandshake = false");
        assert_eq!(
            IdealTimes::default().flow(&p, ends(0, 2), 14_600),
            Time::from_ns(3_000 + 12_000 + 9 * 1_200)
        );
        let p = plan("[transport]\nhandshake = true");
        let round_trip = 2 * (80 + 12_000);
        assert_eq!(
            IdealTimes::default().flow(&p, ends(0, 2), 14_600),
            Time::from_ns(3_000 + 12_000 + 9 * 1_200 + round_trip)
        );
        assert_eq!(
            IdealTimes::default().exchange(
                &p,
                ends(0, 2),
                Exchange { request: 1, response: 14_600 },
                Time::from_us(20)
            ),
            Time::from_ps(
                round_trip * 1000 + 12_000_000 + 41 * (800 + 200) * 2 + 25_800_000 + 20_000_000
            )
        );
    }

    /// Two packets, 1460 + 1 bytes of payload: the short one catches up on the long one at every
    /// link but never passes. It leaves link 1 at 1200 + 32.8, meets the first leaving link 2 at
    /// 2500 (after 1 µs), goes at 2508.2, and so on.
    #[test]
    fn a_short_last_packet_waits_behind_the_one_before() {
        let mut p = plan("[host]\nstack-delay = \"1us\"\n[transport]\nhandshake = false");
        let only =
            LeafSpineParams { leaves: 2, spines: 1, hosts_per_leaf: 2, ..Default::default() };
        p.topology = Arc::new(Topology::build(&TopologyParams::LeafSpine(only)).unwrap());
        let first_leaves_last_link = 3_000_000 + 11_000_000;
        let expected = first_leaves_last_link + 32_800 + 1_000_000 + 2_000_000;
        assert_eq!(IdealTimes::default().flow(&p, ends(0, 2), 1_461), Time::from_ps(expected));
        // One packet alone, on one leaf.
        assert_eq!(
            IdealTimes::default().flow(&p, ends(0, 1), 60),
            Time::from_ps(2 * 100 * 800 + 2_000_000 + 2_000_000)
        );
    }

    /// The closed form against the recursion over every packet.
    #[test]
    fn the_closed_form_is_the_recursion() {
        let rates = [10, 40, 3, 40, 1].map(Rate::from_gbps);
        let delays = [1, 5, 2, 0, 1].map(Time::from_us);
        let links: Vec<_> = rates.into_iter().zip(delays).collect();
        for (n, full, last) in [(1, 1500, 60), (2, 1500, 1500), (7, 1500, 41), (30, 9000, 8999)] {
            let mut free = [Time::ZERO; 5];
            let mut end = Time::ZERO;
            for packet in 0..n {
                let size = if packet == n - 1 { last } else { full };
                let mut at = Time::ZERO;
                for (j, &(rate, delay)) in links.iter().enumerate() {
                    let leaves = at.max(free[j]) + rate.transmission_time(size);
                    free[j] = leaves;
                    at = leaves + delay;
                }
                end = at;
            }
            let train = Train { packets: n, full, last, sure: None, least: 40 };
            assert_eq!(train.over(&links), end, "{n} packets");
            // Cut anyhow they are no slower, and no faster than the slowest link alone.
            let anyhow = Train { sure: Some(1), ..train }.over(&links);
            assert!(
                n == 1 || anyhow <= end && anyhow > rates[4].transmission_time(train.bytes()),
                "{anyhow} {end}"
            );
        }
    }

    /// Where no link is slower than the hosts', several ways are as fast as one, to the picosecond:
    /// but for flows of two packets, and in three tiers of five, whose small last one may be there
    /// first.
    #[test]
    fn where_the_hosts_are_the_bottleneck_the_bound_is_one_paths() {
        let networks = [
            (
                "leaf-spine",
                "leaves = 3\nspines = 3\nhosts-per-leaf = 2\nfabric-link = { rate = \"10Gbps\", \
                 delay = \"2us\" }",
                3,
                3,
            ),
            (
                "leaf-spine",
                "leaves = 3\nspines = 3\nhosts-per-leaf = 2\nfabric-link = { rate = \"40Gbps\", \
                 delay = \"5us\" }",
                5,
                2,
            ),
            ("fat-tree", "k = 4\nfabric-link = { rate = \"10Gbps\", delay = \"1us\" }", 15, 5),
            ("fat-tree", "k = 4\nfabric-link = { rate = \"25Gbps\", delay = \"1us\" }", 2, 2),
        ];
        for (kind, network, dst, few) in networks {
            for silly in [true, false] {
                let text = format!(
                    "duration = \"1ms\"\n[topology]\nkind = \
                     \"{kind}\"\n{network}\n[transport]\nhandshake = \
                     false\nsilly-window-avoidance = {silly}"
                );
                let p = Scenario::parse("t", &text).unwrap().plan(None, &[], None).unwrap();
                let times = IdealTimes::default();
                let (from, to) = p.topology.alike(p.topology.leaf_of(0), p.topology.leaf_of(dst));
                let ways = times.ways(&p, from, to);
                assert!(!ways.is_only && ways.cut.is_none());
                let host = (p.topology.links[0].rate, p.topology.links[0].delay);
                let hops: Vec<Hop> =
                    [host].into_iter().chain(ways.large.clone()).chain([host]).collect();
                for bytes in
                    [1, 700, 1_460, 1_461, 2_920, 4_380, 4_381, 7_301, 14_600, 100_001, 10_000_000]
                {
                    let train = Train { sure: None, ..Train::new(&p, bytes, u64::MAX) };
                    let (one, several) = (train.over(&hops), times.flow(&p, ends(0, dst), bytes));
                    assert!(several <= one, "{kind} {network} {bytes}");
                    let is_small = train.last < train.full && train.packets <= few;
                    assert!(
                        is_small || several == one,
                        "{kind} {network} {bytes}: {several} for {one}"
                    );
                }
            }
        }
        // Two packets of which the small one is first: only the large one counts.
        let p = plan(
            "fabric-link = { rate = \"10Gbps\", delay = \"5us\" }\n[transport]\nhandshake = false",
        );
        assert_eq!(
            IdealTimes::default().flow(&p, ends(0, 2), 1_461),
            Time::from_ns(4 * 1_200 + 12_000)
        );
    }

    /// A hundred thousand pairs in the largest network cost two searches.
    #[test]
    fn sixty_five_thousand_hosts_have_two_kinds_of_pairs() {
        let text = "duration = \"1ms\"\n[topology]\nkind = \"fat-tree\"\nk = 64\nfabric-link = { \
                    rate = \"2500Mbps\", delay = \"1us\" }";
        let p = Scenario::parse("t", text).unwrap().plan(None, &[], None).unwrap();
        let times = IdealTimes::default();
        for src in 0..100_000u32 {
            let (src, dst) = (src % 65_536, src.wrapping_mul(40_503) % 65_536);
            assert!(src == dst || times.flow(&p, ends(src, dst), 1_000_000) > Time::from_us(800));
        }
        assert_eq!(times.ways.lock().unwrap().len(), 2);
    }
}
