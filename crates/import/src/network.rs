//! A network of numbered nodes, checked, and written as the list of a topology file.
//!
//! Hosts are numbered anew, from zero in the order of their numbers. A link between two hosts is a
//! NIC of each.
//!
//! Invariant: each host has links.

use std::collections::{BTreeMap, BTreeSet};

use millpond_core::{Rate, Time};
use serde_json::json;

use crate::Result;
use crate::source::Source;

/// A link, each way the same.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub a: u32,
    pub b: u32,
    pub rate: Rate,
    pub delay: Time,
    /// Share of the packets that it loses.
    pub loss: f64,
    pub line: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    /// By node: its number among hosts.
    pub hosts: BTreeMap<u32, u32>,
    /// By node: the switch's name, and its tier where that is known.
    pub switches: BTreeMap<u32, (String, Option<u8>)>,
    pub links: Vec<Link>,
    /// By host that forwards: its inner switch.
    pub inner: BTreeMap<u32, u32>,
}

impl Network {
    /// The name of a node in scenarios.
    pub fn name(&self, node: u32) -> String {
        match (self.hosts.get(&node), self.switches.get(&node)) {
            (Some(host), _) => format!("host{host}"),
            (None, Some((name, _))) => name.clone(),
            (None, None) => format!("node {node}"),
        }
    }

    /// The rates of the links with this property, each once.
    pub fn rates(&self, is: impl Fn(&Link) -> bool) -> Vec<Rate> {
        let mut rates: Vec<Rate> =
            self.links.iter().filter(|link| is(link)).map(|link| link.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }

    /// Whether a node is a switch of the input, and not one inside a host.
    pub fn is_real_switch(&self, node: u32) -> bool {
        let first_inner = self.inner.values().next();
        self.switches.contains_key(&node) && first_inner.is_none_or(|first| node < *first)
    }

    /// The most links of a switch of the input; without such switches, of one inside a host.
    pub fn ports_max(&self) -> usize {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for node in self.links.iter().flat_map(|link| [link.a, link.b]) {
            *counts.entry(node).or_default() += 1;
        }
        let most = |is: &dyn Fn(u32) -> bool| {
            let own = self.switches.keys().filter(|node| is(**node));
            own.filter_map(|node| counts.get(node)).max().copied()
        };
        most(&|node| self.is_real_switch(node)).or_else(|| most(&|_| true)).unwrap_or(0)
    }

    /// By link: its place among those between its two nodes, whichever is written first; `None`: it
    /// is alone.
    pub fn numbers(&self) -> Vec<Option<usize>> {
        let ends = |link: &Link| (link.a.min(link.b), link.a.max(link.b));
        let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut place = |link: &Link| {
            let count = counts.entry(ends(link)).or_default();
            *count += 1;
            *count - 1
        };
        let places: Vec<usize> = self.links.iter().map(&mut place).collect();
        let number = |(link, place): (&Link, usize)| (counts[&ends(link)] > 1).then_some(place);
        self.links.iter().zip(places).map(number).collect()
    }

    /// A link as a `[[failure]]` names it: its ends, and its number among parallel ones.
    pub fn failing(&self, link: &Link, number: Option<usize>) -> String {
        let number = number.map(|number| format!("number = {number}\n")).unwrap_or_default();
        format!(
            "[[failure]]\nlink = [\"{}\", \"{}\"]\n{number}",
            self.name(link.a),
            self.name(link.b)
        )
    }

    /// Whether a link joins two hosts.
    pub fn is_direct(&self, link: &Link) -> bool {
        [link.a, link.b].iter().all(|node| self.hosts.contains_key(node))
    }

    pub fn has_direct_links(&self) -> bool {
        self.links.iter().any(|link| self.is_direct(link))
    }

    /// The first of these pairs of hosts that has neither a link nor switches between them.
    pub fn apart(&self, pairs: impl IntoIterator<Item = (u32, u32)>) -> Option<(u32, u32)> {
        let mut near: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for link in &self.links {
            near.entry(link.a).or_default().insert(link.b);
            near.entry(link.b).or_default().insert(link.a);
        }
        // By switch: the first of those that it reaches.
        let mut islands: BTreeMap<u32, u32> = BTreeMap::new();
        for first in self.switches.keys() {
            let mut todo = vec![*first];
            while let Some(at) = todo.pop() {
                if self.switches.contains_key(&at) && !islands.contains_key(&at) {
                    islands.insert(at, *first);
                    todo.extend(near.get(&at).into_iter().flatten());
                }
            }
        }
        let reached = |host: &u32| {
            let own = near.get(host).into_iter().flatten();
            (*host, own.filter_map(|node| islands.get(node)).collect::<BTreeSet<_>>())
        };
        let reached: BTreeMap<u32, BTreeSet<&u32>> = self.hosts.keys().map(reached).collect();
        let is_apart = |(a, b): &(u32, u32)| {
            !near.get(a).is_some_and(|own| own.contains(b)) && reached[a].is_disjoint(&reached[b])
        };
        pairs.into_iter().find(is_apart)
    }

    /// Gives each host with a link to another host a switch of its own, which has its links and
    /// forwards. For each of them a link as fast, without delay, leads to the host.
    pub fn divide_forwarding_hosts(&mut self) {
        let direct = self.links.iter().filter(|link| self.is_direct(link));
        let forward: BTreeSet<u32> = direct.flat_map(|link| [link.a, link.b]).collect();
        let nodes = self.hosts.keys().chain(self.switches.keys()).max().map_or(0, |last| last + 1);
        self.inner = forward.into_iter().zip(nodes..).collect();
        let mut nics: Vec<Link> = Vec::new();
        for link in &mut self.links {
            for end in [&mut link.a, &mut link.b] {
                let Some(inner) = self.inner.get(end) else { continue };
                let (rate, line) = (link.rate, link.line);
                let (a, b, delay) = (*end, *inner, Time::ZERO);
                nics.push(Link { a, b, rate, delay, loss: 0.0, line });
                *end = *inner;
            }
        }
        self.links.extend(nics);
        let named =
            |(host, inner): (&u32, &u32)| (*inner, (format!("inner{}", self.hosts[host]), None));
        self.switches.extend(self.inner.iter().map(named));
    }

    /// Whether a link is inside a host that forwards.
    pub fn is_inside(&self, link: &Link) -> bool {
        self.inner.get(&link.a) == Some(&link.b)
    }

    /// The node that has a node's links.
    pub fn with_links_of(&self, node: u64) -> u64 {
        let inner = u32::try_from(node).ok().and_then(|node| self.inner.get(&node));
        inner.map_or(node, |switch| u64::from(*switch))
    }

    /// Whether each host has a link.
    pub fn check(&self, source: &Source) -> Result<()> {
        let linked: BTreeSet<u32> = self.links.iter().flat_map(|link| [link.a, link.b]).collect();
        match self.hosts.keys().find(|host| !linked.contains(host)) {
            Some(host) => source.end().fail(format!("host {host} has no link")),
            None => Ok(()),
        }
    }

    /// The list, as a topology file has it.
    pub fn json(&self) -> String {
        let switch = |(name, tier): &(String, Option<u8>)| match tier {
            Some(tier) => json!({ "name": name, "tier": tier }),
            None => json!({ "name": name }),
        };
        let link = |link: &Link| {
            let (a, b) = (self.name(link.a), self.name(link.b));
            let (rate, delay) = (link.rate.to_string(), link.delay.to_string());
            json!({ "a": a, "b": b, "rate": rate, "delay": delay })
        };
        let line = |value: serde_json::Value| format!("    {value}");
        let switches: Vec<String> = self.switches.values().map(switch).map(line).collect();
        let links: Vec<String> = self.links.iter().map(link).map(line).collect();
        // Hosts that come first have the same numbers here.
        let is_same = self.hosts.iter().all(|(node, host)| node == host);
        let numbers: Vec<&u32> = self.hosts.keys().collect();
        let numbers = match is_same {
            true => String::new(),
            false => format!("  \"numbers\": {},\n", json!(numbers)),
        };
        format!(
            "{{\n  \"hosts\": {},\n{numbers}  \"switches\": [\n{}\n  ],\n  \"links\": \
             [\n{}\n  ]\n}}\n",
            self.hosts.len(),
            switches.join(",\n"),
            links.join(",\n")
        )
    }

    pub fn fact(&self) -> String {
        let rates: Vec<String> = self.rates(|_| true).iter().map(Rate::to_string).collect();
        let (hosts, switches, links) = (self.hosts.len(), self.switches.len(), self.links.len());
        format!("{hosts} hosts, {switches} switches, {links} links of {}", rates.join(", "))
    }
}
