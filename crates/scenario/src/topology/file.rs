//! Any network: a list of hosts, switches and links, from a JSON file or from the scenario itself.
//!
//! ```json
//! { "hosts": 2,
//!   "switches": [ { "name": "left" }, { "name": "right" }, { "name": "middle", "tier": 1 } ],
//!   "links": [ { "a": "host0", "b": "left", "rate": "10Gbps", "delay": "1us" }, … ] }
//! ```
//!
//! Hosts are host0 up to host(n−1). Each has one or several links to switches or to other hosts,
//! and a NIC for each: NIC 0 has the first of a host's links in the list. Hosts forward no packets.
//! `numbers`, if it is there, has a number for each host: its own in files of another simulator,
//! which exports give back. A link between two hosts becomes two halves with a *joint* between
//! them, a switch with two ports at which nothing takes time. Switches with hosts are of tier 0 and
//! become the first; the others follow by their tier, which is (where it is not given) their
//! distance from the nearest switch with hosts. Ports are numbered in the order of the links, those
//! to hosts first. Routes are all shortest paths, in hops; each of several links between two
//! switches is a path of its own. A link may have a `name` of its own, by which failures and
//! captures refer to it.
//!
//! Parts of the network need not meet: a flow between hosts without a path is an error of the
//! traffic.
//!
//! Invariant: an error names its place in the list (`links[3].b`).

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::graph::{EdgeList, LinkEntry, SwitchEntry};
use crate::settings::topology::FileParams;
use millpond_core::Time;
use millpond_core::packet::TTL;
use millpond_core::switch::route::{Attachment, Routes};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Longer lists of routes would not fit a machine.
const ROUTES_MAX: usize = 200_000_000;
const FAR: u16 = u16::MAX;

/// An end of a link before ports are numbered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host(u32),
    Switch(usize),
}

/// The list with its names looked up.
struct Graphed<'a> {
    list: &'a EdgeList,
    ends: Vec<(Place, Place)>,
    host_links: Vec<usize>,
    has_hosts: Vec<bool>,
    /// By link: its place in the list as it was given.
    places: Vec<usize>,
    /// The switches from here on are joints.
    joints: usize,
}

/// The list with two halves and a joint in place of each link between two hosts, and by link its
/// place in the old list. Second halves come last.
fn joined(list: &EdgeList) -> (Cow<'_, EdgeList>, Vec<usize>) {
    let mut new = Cow::Borrowed(list);
    let mut places: Vec<usize> = (0..list.links.len()).collect();
    let is_host = |name: &str| host_number(name).is_some_and(|host| host < list.hosts);
    for (place, link) in list.links.iter().enumerate() {
        if link.a == link.b || !is_host(&link.a) || !is_host(&link.b) {
            continue;
        }
        let name = format!("{}-{}#{place}", link.a, link.b);
        let half = Time::from_ps(link.delay.as_ps() / 2);
        let new = new.to_mut();
        new.switches.push(SwitchEntry { name: name.clone(), tier: None });
        let (a, b, delay) = (link.b.clone(), name.clone(), link.delay - half);
        new.links.push(LinkEntry { a, b, rate: link.rate, delay, name: None });
        (new.links[place].b, new.links[place].delay) = (name, half);
        places.push(place);
    }
    (new, places)
}

pub(super) fn build(p: &FileParams) -> Result<Topology, Vec<Fault>> {
    let key = if p.path.is_some() { "path" } else { "graph" };
    let fault = |message: String| vec![(key.to_string(), message)];
    let Some(list) = &p.graph.0 else {
        return Err(fault("a topology from a file needs its path".into()));
    };
    let joints = list.switches.len();
    let (list, places) = joined(list);
    let graph = Graphed::new(&list, places, joints).map_err(fault)?;
    let mut checks = Checks::default();
    let leaves = graph.has_hosts.iter().filter(|has| **has).count();
    checks.leaves(leaves as u64, key);
    checks.links(list.links.len() as u64, key);
    let switches = list.switches.len();
    checks.require(leaves * switches <= ROUTES_MAX, key, || {
        format!(
            "makes {} routes ({switches} switches times {leaves} with hosts); {ROUTES_MAX} is the \
             most",
            leaves * switches
        )
    });
    for link in &list.links {
        checks.rate(link.rate, key);
        checks.delay(link.delay, key);
    }
    checks.done()?;
    let topology = graph.topology().map_err(fault)?;
    Ok(Topology { numbers: list.numbers.clone(), ..topology })
}

impl<'a> Graphed<'a> {
    fn new(list: &'a EdgeList, places: Vec<usize>, joints: usize) -> Result<Graphed<'a>, String> {
        let mut numbers = HashMap::new();
        for (i, switch) in list.switches.iter().enumerate() {
            let name = switch.name.as_str();
            let bad = name.is_empty()
                || name.contains([':', ',', '/'])
                || name.chars().any(char::is_control);
            if bad || host_number(name).is_some() {
                return Err(format!("switches[{i}].name: {name:?} cannot name a switch"));
            }
            if numbers.insert(name, i).is_some() {
                return Err(format!("switches[{i}].name: two switches are called {name:?}"));
            }
        }
        check_names(list, &numbers)?;
        let mut graph = Graphed {
            list,
            ends: Vec::with_capacity(list.links.len()),
            host_links: vec![usize::MAX; list.hosts.min(list.links.len() as u32) as usize],
            has_hosts: vec![false; list.switches.len()],
            places,
            joints,
        };
        for (i, link) in list.links.iter().enumerate() {
            let find = |key: &str, name: &str| match (host_number(name), numbers.get(name)) {
                (Some(host), _) if host < list.hosts => Ok(Place::Host(host)),
                (Some(_), _) => Err(format!(
                    "links[{i}].{key}: there is no {name}; there are {} hosts",
                    list.hosts
                )),
                (None, Some(switch)) => Ok(Place::Switch(*switch)),
                (None, None) => Err(format!("links[{i}].{key}: there is no node {name:?}")),
            };
            let ends = (find("a", &link.a)?, find("b", &link.b)?);
            graph.connect(i, ends)?;
        }
        let lonely = (0..list.hosts)
            .find(|h| graph.host_links.get(*h as usize).is_none_or(|l| *l == usize::MAX));
        match lonely {
            Some(host) => Err(format!("host{host} has no link")),
            None => Ok(graph),
        }
    }

    fn connect(&mut self, link: usize, ends: (Place, Place)) -> Result<(), String> {
        match ends {
            (Place::Host(host), Place::Switch(switch))
            | (Place::Switch(switch), Place::Host(host)) => {
                let slot = self
                    .host_links
                    .get_mut(host as usize)
                    .ok_or("there are fewer links than hosts")?;
                if *slot == usize::MAX || self.places[link] < self.places[*slot] {
                    *slot = link;
                }
                self.has_hosts[switch] = true;
                self.ends.push((Place::Host(host), Place::Switch(switch)));
            }
            (Place::Host(_), Place::Host(_)) => {
                return Err(format!("links[{link}]: a link from a host to itself"));
            }
            (a, b) if a == b => {
                return Err(format!("links[{link}]: a link from a switch to itself"));
            }
            ends => self.ends.push(ends),
        }
        Ok(())
    }

    /// By switch: (neighbour, link), in the order of the links.
    fn neighbours(&self) -> Vec<Vec<(usize, usize)>> {
        let mut list = vec![Vec::new(); self.list.switches.len()];
        for (link, ends) in self.ends.iter().enumerate() {
            if let (Place::Switch(a), Place::Switch(b)) = *ends {
                list[a].push((b, link));
                list[b].push((a, link));
            }
        }
        list
    }

    fn tiers(&self, neighbours: &[Vec<(usize, usize)>]) -> Result<Vec<u8>, String> {
        let leaves = (0..self.has_hosts.len()).filter(|s| self.has_hosts[*s]);
        let far = distances(neighbours, leaves);
        let tier = |(i, switch): (usize, &SwitchEntry)| match (self.has_hosts[i], switch.tier) {
            (true, None | Some(0)) => Ok(0),
            (true, Some(_)) => Err(format!("switches[{i}].tier: a switch with hosts is of tier 0")),
            (false, Some(0)) => {
                Err(format!("switches[{i}].tier: a switch without hosts is of tier 1 or above"))
            }
            (false, Some(tier)) => Ok(tier),
            (false, None) => Ok(far[i].clamp(1, 255) as u8),
        };
        self.list.switches.iter().enumerate().map(tier).collect()
    }

    fn topology(&self) -> Result<Topology, String> {
        let neighbours = self.neighbours();
        let tiers = self.tiers(&neighbours)?;
        let mut order: Vec<usize> = (0..tiers.len()).collect();
        order.sort_by_key(|s| tiers[*s]);
        let mut rank = vec![0u32; tiers.len()];
        order.iter().enumerate().for_each(|(new, old)| rank[*old] = new as u32);
        // Ports: hosts first, then the other links, each in the order of the list.
        let mut used = vec![0u32; tiers.len()];
        let mut port = |switch: usize| {
            used[switch] += 1;
            used[switch] - 1
        };
        let mut hosts = Vec::with_capacity(self.host_links.len());
        let mut links = Vec::new();
        let mut by_list: Vec<usize> = (0..self.ends.len()).collect();
        by_list.sort_by_key(|l| !matches!(self.ends[*l].0, Place::Host(_)));
        for link in by_list {
            match self.ends[link] {
                (Place::Host(host), Place::Switch(switch)) => {
                    hosts.push((host, switch, port(switch), link))
                }
                (Place::Switch(a), Place::Switch(b)) => {
                    let (a, b) = if tiers[b] < tiers[a] { (b, a) } else { (a, b) };
                    links.push(((a, port(a)), (b, port(b)), link));
                }
                _ => {}
            }
        }
        // First NICs come first; then the others, host by host and in the order of the list.
        hosts.sort_unstable_by_key(|(host, .., link)| {
            let is_first = self.host_links[*host as usize] == *link;
            (!is_first, *host, self.places[*link])
        });
        self.check_ports(&used)?;
        let mut net = Builder::default();
        for &s in &order {
            let pod = self.has_hosts[s].then_some(rank[s]);
            net.switch(self.list.switches[s].name.clone(), tiers[s], pod, used[s]);
            if s >= self.joints {
                net.join();
            }
        }
        for (host, switch, port, link) in hosts {
            let entry = &self.list.links[link];
            if self.host_links[host as usize] == link {
                net.host(rank[switch], port, entry.rate, entry.delay);
            } else {
                net.nic(host, rank[switch], port, entry.rate, entry.delay);
            }
            net.name(entry.name.as_deref());
        }
        let mut towards = vec![Vec::new(); tiers.len()];
        for ((a, pa), (b, pb), link) in links {
            let entry = &self.list.links[link];
            net.connect((rank[a], pa), (rank[b], pb), entry.rate, entry.delay);
            net.name(entry.name.as_deref());
            towards[a].push((b, pa as u16));
            towards[b].push((a, pb as u16));
        }
        let leaves = self.has_hosts.iter().filter(|has| **has).count();
        let far: Vec<Vec<u16>> =
            order[..leaves].iter().map(|leaf| distances(&neighbours, [*leaf])).collect();
        self.check_lengths(&order[..leaves], &far)?;
        Ok(net.finish(|attachment| {
            order.iter().map(|s| routes(*s, &rank, &towards[*s], &far, attachment)).collect()
        }))
    }

    fn check_ports(&self, used: &[u32]) -> Result<(), String> {
        let Some(s) = used.iter().position(|ports| *ports > 65_535) else { return Ok(()) };
        Err(format!("{} has {} ports; 65535 is the most", self.list.switches[s].name, used[s]))
    }

    /// A packet that meets as many switches as its TTL ends at the last of them.
    fn check_lengths(&self, leaves: &[usize], far: &[Vec<u16>]) -> Result<(), String> {
        for (from, far) in leaves.iter().zip(far) {
            let is_far = |to: &&usize| far[**to] < FAR && far[**to] + 1 >= u16::from(TTL);
            if let Some(to) = leaves.iter().find(is_far) {
                let name = |switch: &usize| &self.list.switches[*switch].name;
                let (from, to, switches) = (name(from), name(to), u32::from(far[*to]) + 1);
                let most = TTL - 1;
                return Err(format!(
                    "from {from} to {to} a packet meets {switches} switches; its TTL lets it pass \
                     {most}"
                ));
            }
        }
        Ok(())
    }
}

/// Links' own names are apart from each other and from those of nodes.
fn check_names(list: &EdgeList, switches: &HashMap<&str, usize>) -> Result<(), String> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (i, name) in
        list.links.iter().enumerate().filter_map(|(i, link)| Some((i, link.name.as_deref()?)))
    {
        let bad = name.is_empty()
            || name.contains([':', ',', '/', '#', '>'])
            || name.chars().any(char::is_control);
        if bad || host_number(name).is_some() || switches.contains_key(name) {
            return Err(format!("links[{i}].name: {name:?} cannot name a link"));
        }
        if let Some(other) = first.insert(name, i) {
            return Err(format!("links[{i}].name: links[{other}] is called {name:?} as well"));
        }
    }
    Ok(())
}

fn host_number(name: &str) -> Option<u32> {
    name.strip_prefix("host")?.parse().ok().filter(|n| name == format!("host{n}"))
}

/// Hops from the nearest of `from`, by switch.
fn distances(
    neighbours: &[Vec<(usize, usize)>],
    from: impl IntoIterator<Item = usize>,
) -> Vec<u16> {
    let mut far = vec![FAR; neighbours.len()];
    let mut queue: VecDeque<usize> = from.into_iter().collect();
    queue.iter().for_each(|s| far[*s] = 0);
    while let Some(at) = queue.pop_front() {
        for &(next, _) in &neighbours[at] {
            if far[next] == FAR {
                far[next] = far[at].saturating_add(1).min(FAR - 1);
                queue.push_back(next);
            }
        }
    }
    far
}

/// The routes of one switch: towards each leaf, its ports to neighbours that are one hop nearer.
fn routes(
    switch: usize,
    rank: &[u32],
    ports: &[(usize, u16)],
    far: &[Vec<u16>],
    attachment: &Arc<Attachment>,
) -> Routes {
    let own = (rank[switch] < far.len() as u32).then_some(rank[switch] as u16);
    let towards = |far: &Vec<u16>| {
        let nearer = |(next, _): &&(usize, u16)| far[*next] < far[switch];
        let mut list: Vec<u16> = ports.iter().filter(nearer).map(|(_, port)| *port).collect();
        list.sort_unstable();
        list
    };
    let towards: Vec<Vec<u16>> = far.iter().map(towards).collect();
    Routes::new(attachment.clone(), own, &towards)
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;
    use crate::settings::graph::Graph;
    use crate::settings::topology::FatTreeParams;
    use millpond_core::Rate;

    const DIAMOND: &str = r#"{ "hosts": 3,
        "switches": [ { "name": "up" }, { "name": "down", "tier": 1 },
                      { "name": "left" }, { "name": "right" } ],
        "links": [ { "a": "up", "b": "left", "rate": "40Gbps", "delay": "2us" },
                   { "a": "host1", "b": "left", "rate": "10Gbps", "delay": "1us" },
                   { "a": "left", "b": "down", "rate": "40Gbps", "delay": "2us" },
                   { "a": "right", "b": "host2", "rate": "10Gbps", "delay": "1us" },
                   { "a": "right", "b": "up", "rate": "40Gbps", "delay": "2us" },
                   { "a": "left", "b": "host0", "rate": "25Gbps", "delay": "1us" },
                   { "a": "down", "b": "right", "rate": "40Gbps", "delay": "3us" } ] }"#;

    fn of(text: &str) -> Result<Topology, String> {
        let list = EdgeList::parse(text)?;
        let p = FileParams { path: None, graph: Graph(Some(Arc::new(list))) };
        build(&p).map_err(|faults| faults[0].1.clone())
    }

    #[test]
    fn a_diamond_by_hand() {
        let t = of(DIAMOND).unwrap();
        let names: Vec<&str> = t.switches.iter().map(|s| s.name.as_str()).collect();
        assert_eq!((names, t.hosts, t.leaves()), (vec!["left", "right", "up", "down"], 3, 2));
        // left: ports 0 (host1, which comes first in the list), 1 (host0), 2 (up), 3 (down).
        assert_eq!(t.attachment.hosts, [(0, 1), (0, 0), (1, 0)]);
        assert_eq!(t.routes[0].towards(2), &[2, 3]);
        assert_eq!(t.routes[1].towards(0), &[1, 2]);
        assert_eq!(t.routes[2].towards(0), &[0]);
        assert_eq!(t.routes[2].towards(2), &[1]);
        assert_eq!(t.links[0].rate, Rate::from_gbps(25));
        assert_eq!(
            (t.links[0].a, t.links[0].b),
            (End::Host(0), End::Switch { switch: 0, port: 1 })
        );
        assert_eq!(t.links[t.link_at(1, 2) as usize].delay, Time::from_us(3));
        assert!(t.is_multipath());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let wrong = |from: &str, to: &str, message: &str| {
            let text = DIAMOND.replacen(from, to, 1);
            assert_ne!(text, DIAMOND);
            let e = of(&text).unwrap_err();
            assert!(e.contains(message), "{e}");
        };
        wrong("\"host2\"", "\"host3\"", "links[3].b: there is no host3");
        wrong("\"host2\"", "\"host1\"", "host2 has no link");
        wrong("\"hosts\": 3", "\"hosts\": 4", "host3 has no link");
        wrong("\"b\": \"down\"", "\"b\": \"dwon\"", "links[2].b: there is no node \"dwon\"");
        wrong("25Gbps", "25Gpbs", "links[5].rate");
        wrong("\"tier\"", "\"teir\"", "switches[1].teir: unknown key (did you mean `tier`?)");
        wrong("\"tier\": 1", "\"tier\": 0", "switches[1].tier");
        wrong("\"a\": \"up\"", "\"a\": \"left\"", "links[0]: a link from a switch to itself");
        wrong("\"delay\": \"3us\"", "\"dalay\": \"3us\"", "unknown key");
        wrong("}, {", "} {", "line 2");
        let apart =
            DIAMOND.replace("\"a\": \"right\", \"b\": \"up\"", "\"a\": \"left\", \"b\": \"up\"");
        let apart =
            apart.replace("\"a\": \"down\", \"b\": \"right\"", "\"a\": \"down\", \"b\": \"left\"");
        let parts = of(&apart).unwrap();
        assert!(parts.connects(0, 1) && !parts.connects(0, 2));
    }

    /// A ring of three hosts, each with a NIC to the one before and to the one after.
    #[test]
    fn hosts_may_have_links_to_hosts() {
        let ring = r#"{ "hosts": 3, "switches": [], "links": [
            { "a": "host0", "b": "host1", "rate": "10Gbps", "delay": "3ps", "name": "first" },
            { "a": "host1", "b": "host2", "rate": "10Gbps", "delay": "1us" },
            { "a": "host2", "b": "host0", "rate": "25Gbps", "delay": "1us" } ] }"#;
        let t = of(ring).unwrap();
        assert!(t.switches.iter().all(|switch| switch.is_joint && switch.ports == 2));
        // NIC 0 of each host has the first of its links: host 1's is that to host 0.
        let rate = |nic: u32| t.links[nic as usize].rate.bps() / 1_000_000_000;
        let nics = |host: u32| t.nics(host).collect::<Vec<u32>>();
        assert_eq!(nics(0).into_iter().map(rate).collect::<Vec<_>>(), [10, 25]);
        assert_eq!(nics(1), [1, 4]);
        assert!(t.connects(0, 1) && t.connects(4, 2) && !t.connects(0, 2));
        let first = t.whole(t.link_names["first"]);
        assert_eq!(first, [0, 1]);
        let ends: Vec<_> = first.iter().map(|half| t.ends(*half)).collect();
        assert_eq!(ends, [(End::Host(0), End::Host(1)); 2]);
        assert_eq!(t.counts(), (3, 0));
        let delays: Vec<u64> = first.iter().map(|l| t.links[*l as usize].delay.as_ps()).collect();
        assert_eq!(delays, [1, 2]);
        let own = ring.replace("\"b\": \"host2\"", "\"b\": \"host1\"");
        assert!(of(&own).unwrap_err().contains("links[1]: a link from a host to itself"));
    }

    /// Damaged lists are networks or errors.
    #[test]
    fn damaged_lists_are_errors_and_end_no_program() {
        let mut random = millpond_core::random::Stream::from_key(57);
        let words = ["0", "1", "-1", "4294967296", "1e99", "\"host0\"", "\"\"", "[]", "{}", "null"];
        let whole = DIAMOND.replacen("3,", "3, \"numbers\": [4, 7, 1],", 1);
        let mut taken = 0;
        for _ in 0..4_000 {
            let mut tokens: Vec<&str> = whole.split_inclusive([' ', ',', ':']).collect();
            for _ in 0..1 + random.below(3) {
                let at = random.below(tokens.len() as u64) as usize;
                let word = words[random.below(words.len() as u64) as usize];
                match random.below(4) {
                    0 => drop(tokens.remove(at)),
                    1 => tokens.swap(at, 0),
                    2 => tokens.insert(at, word),
                    _ => tokens[at] = word,
                }
            }
            taken += usize::from(of(&tokens.concat()).is_ok());
        }
        assert!(taken > 0 && of(&whole).is_ok_and(|t| t.numbers == [4, 7, 1]), "{taken} taken");
    }

    /// A chain of switches with a host at either end.
    fn chain(switches: usize) -> String {
        let link = |a: String, b: String| {
            format!(r#"{{ "a": "{a}", "b": "{b}", "rate": "10Gbps", "delay": "1us" }}"#)
        };
        let names: Vec<String> =
            (0..switches).map(|s| format!(r#"{{ "name": "s{s}" }}"#)).collect();
        let ends =
            [link("host0".into(), "s0".into()), link("host1".into(), format!("s{}", switches - 1))];
        let between = (1..switches).map(|s| link(format!("s{}", s - 1), format!("s{s}")));
        let links: Vec<String> = ends.into_iter().chain(between).collect();
        format!(
            r#"{{ "hosts": 2, "switches": [{}], "links": [{}] }}"#,
            names.join(", "),
            links.join(", ")
        )
    }

    #[test]
    fn a_path_has_as_many_switches_as_a_packet_may_meet() {
        assert_eq!(of(&chain(249)).unwrap().switches.len(), 249);
        let text = of(&chain(250)).unwrap_err();
        let expected = "from s0 to s249 a packet meets 250 switches; its TTL lets it pass 249";
        assert_eq!(text, expected);
    }

    /// 1,024 hosts in three tiers, without one of the links between the upper two.
    #[test]
    fn a_network_has_more_switches_than_a_path() {
        let built =
            super::super::fat_tree::build(&FatTreeParams { k: 16, ..Default::default() }).unwrap();
        let mut list = listed(&built);
        list.links.pop();
        let t = build(&FileParams { path: None, graph: Graph(Some(Arc::new(list))) }).unwrap();
        assert_eq!((t.hosts, t.switches.len()), (1_024, 320));
        assert_eq!(t.most_switches(), 5);
    }

    fn listed(built: &Topology) -> EdgeList {
        let name = |end: End| match end {
            End::Host(h) => format!("host{h}"),
            End::Switch { switch, .. } => built.switches[switch as usize].name.clone(),
        };
        EdgeList {
            hosts: built.hosts,
            numbers: Vec::new(),
            switches: built
                .switches
                .iter()
                .map(|s| SwitchEntry { name: s.name.clone(), tier: None })
                .collect(),
            links: (built.links.iter())
                .map(|l| LinkEntry {
                    a: name(l.a),
                    b: name(l.b),
                    rate: l.rate,
                    delay: l.delay,
                    name: None,
                })
                .collect(),
        }
    }

    /// The list of a built-in topology gives its routes.
    #[test]
    fn a_fat_tree_as_a_list_has_the_same_routes() {
        let built =
            super::super::fat_tree::build(&FatTreeParams { k: 4, ..Default::default() }).unwrap();
        let list = listed(&built);
        let t = build(&FileParams { path: None, graph: Graph(Some(Arc::new(list))) }).unwrap();
        for (a, b) in t.switches.iter().zip(&built.switches) {
            assert_eq!((&a.name, a.tier, a.ports), (&b.name, b.tier, b.ports));
        }
        for switch in 0..t.switches.len() {
            for host in 0..t.hosts {
                assert_eq!(t.routes[switch].towards(host), built.routes[switch].towards(host));
            }
        }
    }
}
