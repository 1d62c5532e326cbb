//! The load that a plan's traffic offers to host links and the leaves' uplinks, as far as it is
//! known before the run: of Poisson arrivals, and of incasts with a rate or a period.
//!
//! Payload alone counts: headers and retransmissions come on top.

use crate::plan::Plan;
use crate::topology::Topology;
use crate::traffic::{Load, Pairing};
use millpond_core::Rate;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Of all links together, each direction.
    pub mean: f64,
    /// Of the busiest one, in its busier direction.
    pub most: f64,
    /// The host or leaf of the busiest one: "host3".
    pub at: String,
}

/// The load that traffic offers while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Of the host links; `None`: no traffic has a rate.
    pub host_links: Option<Share>,
    /// Of the leaves' uplinks; `None` also where leaves have none, or hosts have several NICs.
    pub uplinks: Option<Share>,
    /// The capacity of the links between leaves and hosts over that of the leaves' uplinks; `None`:
    /// there are none.
    pub oversubscription: Option<f64>,
    /// Traffics without a rate that is known in advance: closed loops, jobs, and flows that start
    /// once.
    pub unrated: Vec<String>,
}

/// Bits a second at each host or leaf, both directions, beside its capacity.
struct Site {
    capacity: f64,
    from: f64,
    to: f64,
}

fn share(sites: &[Site], name: impl Fn(usize) -> String) -> Option<Share> {
    let of = |site: &Site| site.from.max(site.to) / site.capacity;
    let there = sites.iter().enumerate().filter(|(_, site)| site.capacity > 0.0);
    let (busiest, site) = there.max_by(|a, b| of(a.1).total_cmp(&of(b.1)).then(b.0.cmp(&a.0)))?;
    let sum = |value: fn(&Site) -> f64| sites.iter().map(value).sum::<f64>();
    let mean = sum(|site| site.from) / sum(|site| site.capacity);
    Some(Share { mean, most: of(site), at: name(busiest) })
}

impl Offered {
    fn of(plan: &Plan) -> Offered {
        let topology = &*plan.topology;
        let (mut hosts, mut leaves) = sites(topology);
        let loads = plan.traffic.loads();
        loads.iter().for_each(|load| add(topology, load, &mut hosts, &mut leaves));
        let is_rated = |class: u16| loads.iter().any(|load| load.class == class);
        let sources = plan.traffic.sources.iter().filter(|source| !is_rated(source.class));
        let name = |class: u16| plan.traffic.classes[usize::from(class)].clone();
        let switch = |leaf: usize| topology.switches[leaf].name.clone();
        let fabric = topology.fabric_capacity();
        // Inner switches of servers lead nowhere else: their links are no load of the fabric.
        let up = |nic: &u32| leaves[topology.leaf_of(*nic) as usize].capacity > 0.0;
        let bps = |nic: u32| topology.links[nic as usize].rate.bps() as f64;
        let below: f64 = (0..topology.addresses()).filter(up).map(bps).sum();
        let is_known = !loads.is_empty();
        let has_uplinks = is_known && fabric > 0 && topology.further.is_empty();
        Offered {
            host_links: share(&hosts, |host| format!("host{host}")).filter(|_| is_known),
            uplinks: share(&leaves, switch).filter(|_| has_uplinks),
            oversubscription: (fabric > 0).then(|| below / fabric as f64),
            unrated: sources.map(|source| name(source.class)).collect(),
        }
    }
}

/// The hosts with the capacity of their links, and the switches with that of a leaf's uplinks.
fn sites(topology: &Topology) -> (Vec<Site>, Vec<Site>) {
    let empty = |capacity: f64| Site { capacity, from: 0.0, to: 0.0 };
    let rate = |link: u32| topology.links[link as usize].rate.bps() as f64;
    let hosts = (0..topology.hosts).map(|host| empty(topology.nics(host).map(rate).sum()));
    let uplinks = |switch: usize| -> f64 {
        let links = topology.wiring[switch].iter();
        links.filter(|link| !topology.is_host_link(**link as usize)).map(|link| rate(*link)).sum()
    };
    let leaves = topology.switches.iter().enumerate();
    let leaves = leaves.map(|(i, switch)| empty(if switch.tier == 0 { uplinks(i) } else { 0.0 }));
    (hosts.collect(), leaves.collect())
}

/// Adds the bits of one traffic.
fn add(topology: &Topology, load: &Load, hosts: &mut [Site], leaves: &mut [Site]) {
    let members: Vec<u32> = match &load.members {
        Some(members) => members.to_vec(),
        None => (0..topology.hosts).collect(),
    };
    let (n, bits) = (members.len() as f64, load.bits_per_second);
    let leaf = |host: u32| topology.leaf_of(host) as usize;
    let mut count = vec![0.0; leaves.len()];
    members.iter().for_each(|host| count[leaf(*host)] += 1.0);
    // Each host of a leaf sends so much to each host of another one.
    let crossing = |leaf: usize| bits / n / (n - count[leaf]);
    let all: f64 = members.iter().map(|host| crossing(leaf(*host))).sum();
    for &host in &members {
        let (own, at) = (leaf(host), host as usize);
        // Bits from and to the host, and the part of each that crosses the fabric.
        let (from, to, up, down) = match load.pairing {
            Pairing::Any => {
                let cross = bits / n * (n - count[own]) / (n - 1.0);
                (bits / n, bits / n, cross, cross)
            }
            Pairing::InterLeaf { answers } => {
                let other = all - count[own] * crossing(own);
                let (from, to) = if answers { (other, bits / n) } else { (bits / n, other) };
                (from, to, from, to)
            }
            Pairing::Into(client) if client == host => {
                (0.0, bits, 0.0, bits * (n - count[own]) / (n - 1.0))
            }
            Pairing::Into(client) => {
                let each = bits / (n - 1.0);
                (each, 0.0, if leaf(client) == own { 0.0 } else { each }, 0.0)
            }
        };
        (hosts[at].from, hosts[at].to) = (hosts[at].from + from, hosts[at].to + to);
        (leaves[own].from, leaves[own].to) = (leaves[own].from + up, leaves[own].to + down);
    }
}

/// A share in percent: "15 %", "0.52 %".
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p >= 10.0 => format!("{p:.0} %"),
        p if p >= 1.0 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |share: &Share, of: &str| match share.most > 1.5 * share.mean {
            true => {
                format!("{} of {of} ({} at {})", percent(share.mean), percent(share.most), share.at)
            }
            false => format!("{} of {of}", percent(share.mean)),
        };
        let hosts = self.host_links.iter().map(|share| of(share, "the host links"));
        let uplinks = self.uplinks.iter().map(|share| of(share, "the leaves' uplinks"));
        let mut parts: Vec<String> = Vec::new();
        let load = hosts.chain(uplinks).collect::<Vec<_>>().join(", ");
        if !load.is_empty() {
            parts.push(format!("load {load}"));
        }
        if let Some(ratio) = self.oversubscription {
            let ratio = format!("{ratio:.2}");
            let ratio = ratio.trim_end_matches('0').trim_end_matches('.');
            parts.push(format!("oversubscription {ratio}:1"));
        }
        if !self.unrated.is_empty() {
            parts.push(format!("no rate in advance: {}", self.unrated.join(", ")));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A flow whose time is this part of the load's moves no statistic by its start.
const SHORT: u64 = 100;

impl Plan {
    /// Returns the load that its traffic offers.
    pub fn offered(&self) -> Offered {
        Offered::of(self)
    }

    /// Returns a sentence for each part of a steady load's time that does not show a steady state.
    pub fn notes(&self) -> Vec<String> {
        let loads = self.traffic.loads();
        let rates = self.topology.host_links().iter().map(|link| link.rate);
        let fastest = rates.max().unwrap_or(Rate::from_gbps(1));
        let alone =
            |bytes: f64| self.round_trip.saturating_add(fastest.transmission_time(bytes as u64));
        let steady = loads.iter().filter_map(|load| Some((load, alone(load.half_of_bytes?))));
        let mut notes = Vec::new();
        let Some((load, large)) = steady.max_by_key(|(_, large)| *large) else { return notes };
        let name = &self.traffic.classes[usize::from(load.class)];
        let end = load.end.min(self.horizon);
        let lasts = end.saturating_sub(load.start);
        let is_long = large.saturating_mul(SHORT) > lasts;
        if lasts < large {
            notes.push(format!(
                "half of the bytes of {name} are in flows that take {:#} and more alone, and \
                 its load ends at {:#}: there is no steady state",
                large, end
            ));
        } else if is_long && self.warm_up.saturating_sub(load.start) < large {
            notes.push(format!(
                "half of the bytes of {name} are in flows that take {:#} and more alone, and \
                 warm-up is {}: flows of an emptier network are counted",
                large, self.warm_up
            ));
        }
        if self.until_complete && load.end < self.horizon {
            notes.push(format!(
                "the load of {name} ends at {:#}, and the run with its last flow: open flows \
                 complete in an emptying network",
                end
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use crate::{Plan, Scenario};

    fn plan(text: &str) -> Plan {
        let text = text.replace("; ", "\n");
        Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap()
    }

    /// 4 leaves of 8 hosts and 2 uplinks, all of 10 Gb/s.
    const FABRIC: &str = "topology = { kind = \"leaf-spine\", leaves = 4, spines = 2, \
                          hosts-per-leaf = 8, host-link = { rate = \"10Gbps\" }, fabric-link = { \
                          rate = \"10Gbps\" } }; duration = \"100ms\"; ";

    #[test]
    fn load_between_any_hosts_crosses_the_fabric_as_often_as_pairs_do() {
        let load = "[[traffic]]; kind = \"poisson\"; sizes = \"10KB\"; load = 0.6";
        let offered = plan(&format!("{FABRIC}{load}")).offered();
        let (hosts, uplinks) =
            (offered.host_links.clone().unwrap(), offered.uplinks.clone().unwrap());
        assert!((hosts.mean - 0.6 * 80.0 / 320.0).abs() < 1e-9, "{hosts:?}");
        assert!((uplinks.mean - 0.6 * 24.0 / 31.0).abs() < 1e-9, "{uplinks:?}");
        let text = "load 15 % of the host links, 46 % of the leaves' uplinks; oversubscription 4:1";
        assert_eq!(offered.to_string(), text);
        let crossing = plan(&format!("{FABRIC}{load}; pairs = \"inter-leaf\"")).offered();
        let uplinks = crossing.uplinks.unwrap();
        assert!((uplinks.mean - 0.6).abs() < 1e-9 && (uplinks.most - 0.6).abs() < 1e-9);
    }

    #[test]
    fn links_within_a_server_do_not_count_as_oversubscription() {
        let rails = "topology = { kind = \"rail-optimised\", segments = 1, servers-per-segment = \
                     4, rails = 4, spines = 4, inner-switch = true, host-link = { rate = \
                     \"100Gbps\" }, fabric-link = { rate = \"50Gbps\" } }; duration = \"1ms\"; \
                     [[traffic]]; kind = \"collective\"; op = \"all-reduce\"; size = \"1MB\"";
        let offered = plan(rails).offered();
        assert_eq!(offered.oversubscription, Some(2.0));
        assert_eq!((offered.host_links, offered.uplinks), (None, None));
    }

    #[test]
    fn an_incast_to_one_host_is_named_at_its_link() {
        let load = "[[traffic]]; name = \"q\"; kind = \"incast\"; receiver = 3; degree = 10; \
                    response = \"10KB\"; period = \"100us\"; [[traffic]]; name = \"all\
                    pairs\"; kind = \"permutation\"";
        let offered = plan(&format!("{FABRIC}{load}")).offered();
        let hosts = offered.host_links.clone().unwrap();
        assert!((hosts.most - 0.8).abs() < 1e-9 && hosts.at == "host3", "{hosts:?}");
        let uplinks = offered.uplinks.clone().unwrap();
        assert!((uplinks.most - 8.0 / 20.0 * 24.0 / 31.0).abs() < 1e-9, "{uplinks:?}");
        assert_eq!(uplinks.at, "leaf0");
        assert_eq!(offered.unrated, ["allpairs"]);
        assert!(offered.to_string().contains("2.5 % of the host links (80 % at host3)"));
    }

    #[test]
    fn notes_name_a_warm_up_that_ends_too_early_and_a_load_that_ends_first() {
        let load = "[[traffic]]; name = \"w\"; kind = \"poisson\"; sizes = \"10MB\"; stop = ";
        let notes = |keys: &str, stop: &str| {
            let text = format!("{keys}; {FABRIC}{load}\"{stop}\"");
            plan(&text).notes().join("\n")
        };
        let early = notes("warm-up = \"1ms\"", "90ms");
        assert!(early.contains("warm-up is 1ms") && !early.contains("emptying"), "{early}");
        assert_eq!(notes("warm-up = \"20ms\"", "90ms"), "");
        assert!(notes("", "5ms").contains("no steady state"));
        let emptying = notes("warm-up = \"20ms\"; until = \"flows-complete\"", "90ms");
        assert!(emptying.contains("ends at 90ms"), "{emptying}");
    }
}
