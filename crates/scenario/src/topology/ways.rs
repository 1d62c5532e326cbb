//! The ways between two leaves: how fast one packet can get from one to the other, and how much can
//! pass at once.
//!
//! A way is any walk over the links between switches, not only a shortest path in hops: deflections
//! and reroutes take others. The fastest way of a packet is found by its store-and-forward time
//! (Dijkstra); what can pass at once is a maximum flow (Edmonds-Karp), whose minimum cut is kept
//! where it is narrower than any host's link. A minimum cut bounds what can have arrived by a time:
//! a link of the cut has carried nothing before the first packet could be there, and what it
//! carries last has its way to go.
//!
//! Invariant: no packet is faster than [`Ways::latency`], and no packets together than
//! [`Cut::passed`].

use super::{End, Topology};
use millpond_core::{Rate, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// A link as a packet sees it: it is sent at the rate, and then takes the delay.
pub(crate) type Hop = (Rate, Time);

/// The ways from one leaf to another.
#[derive(Debug)]
pub(crate) struct Ways {
    /// The links of the way that is fastest for the largest packet.
    pub large: Vec<Hop>,
    /// The same for the smallest packet, where it is another way.
    small: Option<Vec<Hop>>,
    /// The sizes of both on the wire.
    sizes: (u64, u64),
    /// Whether all ways go over the same links.
    pub is_only: bool,
    /// The narrowest cut, where it is narrower than every host's link.
    pub cut: Option<Cut>,
}

/// A step of a way: the switch before, the link from there, and how many steps it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    link: u32,
    before: u32,
    pub count: u32,
}

/// A cut: by the least time that a smallest packet takes beside a link of it, how fast the links
/// with that time are together, in the order of the times.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut(Vec<(Time, u128)>);

/// How long a packet takes over links one after the other.
pub(crate) fn crossing(hops: &[Hop], size: u64) -> Time {
    hops.iter().fold(Time::ZERO, |sum, (rate, delay)| {
        sum.saturating_add(rate.transmission_time(size)).saturating_add(*delay)
    })
}

impl Ways {
    /// From one leaf to another. `sizes` are those of the largest and the smallest packet on the
    /// wire.
    pub fn new(topology: &Topology, from: u32, to: u32, sizes: (u64, u64)) -> Ways {
        let way = |size| topology.fastest(from, to, size);
        let (large, small) = (way(sizes.0), way(sizes.1));
        let hops = |way: &[u32]| -> Vec<Hop> {
            way.iter()
                .map(|link| &topology.links[*link as usize])
                .map(|site| (site.rate, site.delay))
                .collect()
        };
        let is_only = large.iter().all(|link| {
            let ways = topology.flood(from, |other, _| other != *link);
            ways[to as usize].is_none()
        });
        Ways {
            large: hops(&large),
            small: (small != large).then(|| hops(&small)),
            sizes,
            is_only,
            cut: if is_only { None } else { topology.narrowest(from, to, sizes.1) },
        }
    }

    /// The least time that a packet of this size takes from leaf to leaf. The time of the fastest
    /// way is a concave function of the size, so where the largest and the smallest packet have
    /// different ways it is at least what lies between their times, but for a picosecond a link by
    /// rounding.
    pub fn latency(&self, size: u64) -> Time {
        let Some(small) = &self.small else { return crossing(&self.large, size) };
        let (largest, smallest) = self.sizes;
        let most = crossing(&self.large, largest).as_ps();
        let least = crossing(small, smallest).as_ps();
        let part = u128::from(most - least) * u128::from(size.clamp(smallest, largest) - smallest);
        let between = least.saturating_add((part / u128::from(largest - smallest).max(1)) as u64);
        Time::from_ps(between.saturating_sub(self.large.len().max(small.len()) as u64).max(least))
    }
}

impl Cut {
    /// The links of NICs, each with the least of the times that a smallest packet takes beside it.
    pub fn new(nics: impl Iterator<Item = (u32, Time)>, topology: &Topology) -> Cut {
        let mut least: BTreeMap<u32, Time> = BTreeMap::new();
        for (nic, time) in nics {
            let known = least.entry(nic).or_insert(time);
            *known = time.min(*known);
        }
        let rate = |nic: u32| u128::from(topology.links[nic as usize].rate.bps());
        let mut links: Vec<_> = least.into_iter().map(|(nic, time)| (time, rate(nic))).collect();
        links.sort_unstable();
        Cut(links)
    }

    /// The least time, from when the first packet can leave the leaf, after which this many bytes
    /// can have crossed the cut and arrived at the other leaf.
    pub fn passed(&self, bytes: u64) -> Time {
        const PS_PER_S: u128 = 1_000_000_000_000;
        let bits = u128::from(bytes) * 8 * PS_PER_S;
        let (mut rate, mut late) = (0u128, 0u128);
        let mut passed = u128::from(u64::MAX);
        for (index, (latency, more)) in self.0.iter().enumerate() {
            rate = rate.saturating_add(*more);
            late = late.saturating_add(more.saturating_mul(u128::from(latency.as_ps())));
            passed = bits.saturating_add(late).div_ceil(rate.max(1));
            // The links that only begin later than this have no part in it.
            if self.0.get(index + 1).is_none_or(|(next, _)| passed <= u128::from(next.as_ps())) {
                break;
            }
        }
        Time::from_ps(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

impl Topology {
    /// The links between switches at a switch, each with the switch across it.
    fn neighbours(&self, at: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.wiring[at as usize]
            .iter()
            .filter_map(move |link| Some((*link, self.across(*link, at)?)))
    }

    /// The switch at the other end of a link from a switch.
    pub(super) fn across(&self, link: u32, from: u32) -> Option<u32> {
        match (self.links[link as usize].a, self.links[link as usize].b) {
            (End::Switch { switch: a, .. }, End::Switch { switch: b, .. }) => {
                Some(if a == from { b } else { a })
            }
            _ => None,
        }
    }

    /// How long a packet takes at least from `from` to each switch, and over which link it comes
    /// there.
    pub(crate) fn soonest(
        &self,
        from: u32,
        until: Option<u32>,
        size: u64,
    ) -> (Vec<Time>, Vec<u32>) {
        let (mut soonest, mut by) =
            (vec![Time::MAX; self.switches.len()], vec![u32::MAX; self.switches.len()]);
        soonest[from as usize] = Time::ZERO;
        let mut queue = BinaryHeap::from([Reverse((Time::ZERO, from))]);
        while let Some(Reverse((time, at))) = queue.pop() {
            if Some(at) == until {
                break;
            }
            if time > soonest[at as usize] {
                continue;
            }
            for (link, next) in self.neighbours(at) {
                let site = &self.links[link as usize];
                let arrives = time
                    .saturating_add(site.rate.transmission_time(size))
                    .saturating_add(site.delay);
                if arrives < soonest[next as usize] {
                    soonest[next as usize] = arrives;
                    by[next as usize] = link;
                    queue.push(Reverse((arrives, next)));
                }
            }
        }
        (soonest, by)
    }

    /// The links of the fastest way of a packet.
    fn fastest(&self, from: u32, to: u32, size: u64) -> Vec<u32> {
        let (_, by) = self.soonest(from, Some(to), size);
        let (mut way, mut at) = (Vec::new(), to);
        while at != from && by[at as usize] != u32::MAX {
            way.push(by[at as usize]);
            let Some(before) = self.across(by[at as usize], at) else { break };
            at = before;
        }
        way.reverse();
        way
    }

    /// By switch: the last step of a way there with the fewest steps, over links that are open from
    /// a switch; from `from` to itself it is none.
    pub(super) fn flood(&self, from: u32, is_open: impl Fn(u32, u32) -> bool) -> Vec<Option<Step>> {
        let mut steps = vec![None; self.switches.len()];
        steps[from as usize] = Some(Step { link: u32::MAX, before: from, count: 0 });
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((before, count)) = queue.pop_front() {
            for (link, next) in self.neighbours(before) {
                let step = &mut steps[next as usize];
                if step.is_none() && is_open(link, before) {
                    *step = Some(Step { link, before, count: count + 1 });
                    queue.push_back((next, count + 1));
                }
            }
        }
        steps
    }

    /// A minimum cut between two leaves, if it is narrower than the widest of the hosts' links:
    /// otherwise it holds nobody up.
    fn narrowest(&self, from: u32, to: u32, size: u64) -> Option<Cut> {
        let enough = self.host_links().iter().map(|link| i128::from(link.rate.bps())).max()?;
        // By link: what flows from its end a to its end b.
        let mut flows: BTreeMap<u32, i128> = BTreeMap::new();
        let mut total = 0;
        loop {
            let has_room = |link, at| self.room(link, self.direction(link, at), &flows) > 0;
            let by = self.flood(from, has_room);
            if by[to as usize].is_none() {
                return Some(self.cut(from, to, &by, size));
            }
            let mut way = Vec::new();
            let mut at = to;
            while let Some(Step { link, before, .. }) = by[at as usize].filter(|_| at != from) {
                way.push((link, self.direction(link, before)));
                at = before;
            }
            let room = |(link, sign): &(u32, i128)| self.room(*link, *sign, &flows);
            let more = way.iter().map(room).min().unwrap_or(0);
            for (link, sign) in way {
                *flows.entry(link).or_insert(0) += sign * more;
            }
            total += more;
            if total >= enough {
                return None;
            }
        }
    }

    /// 1 if the switch is the link's end a.
    fn direction(&self, link: u32, from: u32) -> i128 {
        if matches!(self.links[link as usize].a, End::Switch { switch, .. } if switch == from) {
            1
        } else {
            -1
        }
    }

    /// The rate that can still flow over a link.
    fn room(&self, link: u32, sign: i128, flows: &BTreeMap<u32, i128>) -> i128 {
        i128::from(self.links[link as usize].rate.bps())
            - sign * flows.get(&link).copied().unwrap_or(0)
    }

    /// The links from where more can flow to where no more can.
    fn cut(&self, from: u32, to: u32, by: &[Option<Step>], size: u64) -> Cut {
        let (there, _) = self.soonest(from, None, size);
        let (back, _) = self.soonest(to, None, size);
        let mut rates: BTreeMap<Time, u128> = BTreeMap::new();
        for at in (0..self.switches.len() as u32).filter(|at| by[*at as usize].is_some()) {
            for (link, next) in self.neighbours(at).filter(|(_, next)| by[*next as usize].is_none())
            {
                let site = &self.links[link as usize];
                let beside = there[at as usize]
                    .saturating_add(site.delay)
                    .saturating_add(back[next as usize]);
                *rates.entry(beside).or_insert(0) += u128::from(site.rate.bps());
            }
        }
        Cut(rates.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::graph::{EdgeList, Graph};
    use crate::settings::topology::{FatTreeParams, FileParams, LeafSpineParams, TopologyParams};
    use std::sync::Arc;

    /// A rate in Gb/s and a delay in µs.
    type Drawn = (u64, u64);

    /// Two leaves with a host of 40 Gb/s each, and these links: (rate in Gb/s, delay in µs) from
    /// leaf0 to a spine and on to leaf1.
    fn spines(rates: &[(Drawn, Drawn)]) -> Topology {
        let mut links = "{ \"a\": \"host0\", \"b\": \"leaf0\", \"rate\": \"40Gbps\", \"delay\": \
                         \"1us\" },
            { \"a\": \"host1\", \"b\": \"leaf1\", \"rate\": \"40Gbps\", \"delay\": \"1us\" }"
            .to_string();
        let mut names = "{ \"name\": \"leaf0\" }, { \"name\": \"leaf1\" }".to_string();
        for (i, (up, down)) in rates.iter().enumerate() {
            names += &format!(", {{ \"name\": \"spine{i}\" }}");
            for (leaf, (rate, delay)) in [(0, up), (1, down)] {
                links += &format!(
                    ", {{ \"a\": \"leaf{leaf}\", \"b\": \"spine{i}\", \"rate\": \"{rate}Gbps\", \
                     \"delay\": \"{delay}us\" }}"
                );
            }
        }
        let list = EdgeList::parse(&format!(
            "{{ \"hosts\": 2, \"switches\": [{names}], \"links\": [{links}] }}"
        ));
        let p = FileParams { path: None, graph: Graph(Some(Arc::new(list.unwrap()))) };
        Topology::build(&TopologyParams::File(p)).unwrap()
    }

    #[test]
    fn the_narrower_link_of_each_way_counts() {
        let t = spines(&[((10, 1), (2, 1)), ((2, 1), (10, 1)), ((5, 1), (5, 1))]);
        let ways = Ways::new(&t, 0, 1, (1500, 40));
        assert!(!ways.is_only);
        let cut = ways.cut.unwrap();
        assert_eq!(cut.0.iter().map(|(_, rate)| rate).sum::<u128>(), 9_000_000_000);
        // Where the widest host is narrower than the ways together, nothing is cut.
        let t = spines(&[((25, 1), (25, 1)), ((25, 1), (25, 1))]);
        assert_eq!(Ways::new(&t, 0, 1, (1500, 40)).cut, None);
    }

    #[test]
    fn a_slow_start_has_no_part_in_what_is_over_before() {
        // 10 Gb/s after 2 µs and 20 Gb/s after 12 µs.
        let cut =
            Cut(vec![(Time::from_us(2), 10_000_000_000), (Time::from_us(12), 20_000_000_000)]);
        assert_eq!(cut.passed(1_250), Time::from_us(3));
        assert_eq!(cut.passed(12_500), Time::from_us(12));
        // 10 µs more: 12,500 + 37,500 bytes.
        assert_eq!(cut.passed(50_000), Time::from_us(22));
        assert_eq!(cut.passed(50_001), Time::from_ps(22_000_267));
    }

    #[test]
    fn the_fastest_way_depends_on_the_size() {
        // Near and narrow, or far and wide: 1500 B take 14 or 8.6 µs, 40 B 2.32 or 6.016.
        let t = spines(&[((2, 1), (2, 1)), ((40, 4), (40, 4))]);
        let ways = Ways::new(&t, 0, 1, (1500, 40));
        assert_eq!(ways.latency(1500), Time::from_ps(8_600_000 - 2));
        assert_eq!(ways.latency(40), Time::from_ps(2_320_000));
        for size in 40..1500 {
            let fastest = t.soonest(0, None, size).0[1];
            assert!(ways.latency(size) <= fastest, "{size}");
        }
        assert!(Ways::new(&spines(&[((2, 1), (2, 1))]), 0, 1, (1500, 40)).is_only);
    }

    #[test]
    fn one_way_of_many_hops_is_the_only_one() {
        let spine = LeafSpineParams { spines: 1, ..Default::default() };
        let t = Topology::build(&TopologyParams::LeafSpine(spine)).unwrap();
        assert!(Ways::new(&t, 0, 5, (1500, 40)).is_only);
        let t =
            Topology::build(&TopologyParams::FatTree(FatTreeParams { k: 4, ..Default::default() }))
                .unwrap();
        let ways = Ways::new(&t, 0, 7, (1500, 40));
        assert_eq!((ways.is_only, ways.large.len(), ways.cut), (false, 4, None));
    }
}
