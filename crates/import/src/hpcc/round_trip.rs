//! The longest round trip of the empty network, as the family's programs work it out for windows
//! and for HPCC's arithmetic: twice the delays of a shortest way, and once the time of a packet's
//! payload on each of its links, in whole nanoseconds, without headers or an acknowledgement's
//! time.
//!
//! Of several shortest ways the first counts, in the order of the topology file; between two hosts
//! with a link it is the link.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use millpond_core::{Bytes, Rate, Time};

use crate::network::Network;

/// The quantities that add up along a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    delay: u64,
    /// A packet's time on all links.
    sending: u64,
    rate: Rate,
}

impl Way {
    const NOWHERE: Way = Way { delay: 0, sending: 0, rate: Rate(u64::MAX) };

    fn and(self, other: Way) -> Way {
        Way {
            delay: self.delay + other.delay,
            sending: self.sending + other.sending,
            rate: self.rate.min(other.rate),
        }
    }
}

/// The longest round trip, and the most that one has in flight; `None`: no two hosts are connected.
pub(super) fn longest(network: &Network, payload: u64) -> Option<(Time, Bytes)> {
    let mut switches: BTreeMap<u32, Vec<(u32, Way)>> = BTreeMap::new();
    // By leaf: the kinds of links to its hosts, and how many of a kind, up to two.
    let mut leaves: BTreeMap<u32, BTreeMap<Way, u32>> = BTreeMap::new();
    let mut longest: Option<(u64, u128)> = None;
    let mut count = |way: Way| {
        let rtt = 2 * way.delay + way.sending;
        let bytes = u128::from(rtt) * u128::from(way.rate.bps()) / 8_000_000_000;
        let (most_ns, most_bytes) = longest.unwrap_or_default();
        longest = Some((most_ns.max(rtt), most_bytes.max(bytes)));
    };
    for link in &network.links {
        let sending = u128::from(payload) * 8_000_000_000 / u128::from(link.rate.bps());
        let way =
            Way { delay: link.delay.as_ps() / 1000, sending: sending as u64, rate: link.rate };
        if network.is_direct(link) {
            count(way);
            continue;
        }
        for (from, to) in [(link.a, link.b), (link.b, link.a)] {
            match network.hosts.contains_key(&from) {
                true => *leaves.entry(to).or_default().entry(way).or_default() += 1,
                false if network.hosts.contains_key(&to) => {}
                false => switches.entry(from).or_default().push((to, way)),
            }
        }
    }
    for (leaf, own) in &leaves {
        for (other, between) in ways_from(*leaf, &switches) {
            for (up, hosts) in own {
                let Some(down) = leaves.get(&other) else { continue };
                let is_other = |down: &&Way| other != *leaf || *down != up || *hosts > 1;
                down.keys().filter(is_other).for_each(|down| count(up.and(between).and(*down)));
            }
        }
    }
    longest.map(|(ns, bytes)| {
        (Time::from_ns(ns), Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(1)))
    })
}

/// The first shortest way to each switch.
fn ways_from(leaf: u32, switches: &BTreeMap<u32, Vec<(u32, Way)>>) -> Vec<(u32, Way)> {
    let (mut known, mut ways) = (BTreeSet::from([leaf]), vec![(leaf, Way::NOWHERE)]);
    let mut next = VecDeque::from([(leaf, Way::NOWHERE)]);
    while let Some((at, way)) = next.pop_front() {
        for (to, link) in switches.get(&at).into_iter().flatten() {
            if known.insert(*to) {
                let way = way.and(*link);
                ways.push((*to, way));
                next.push_back((*to, way));
            }
        }
    }
    ways
}
