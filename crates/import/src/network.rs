//! A network of numbered nodes, checked, and written as the list of a topology file.
//!
//! Hosts are numbered anew, from zero in the order of their numbers.
//!
//! Invariant: each host has links, and all of them lead to switches.

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
    /// Where it is written.
    pub line: usize,
}

/// The network.
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

    /// The rates of links, each once.
    pub fn rates(&self) -> Vec<Rate> {
        let mut rates: Vec<Rate> = self.links.iter().map(|link| link.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }

    /// The most links of a switch.
    pub fn ports_max(&self) -> usize {
        let of = |node: &u32| {
            self.links.iter().filter(|link| link.a == *node || link.b == *node).count()
        };
        self.switches.keys().map(of).max().unwrap_or(0)
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

    /// Gives each host with a link to another host a switch of its own, which has its links and
    /// forwards. A link as fast as the host's fastest one, without delay, leads to the host.
    pub fn divide_forwarding_hosts(&mut self) {
        let is_host = |node: u32| self.hosts.contains_key(&node);
        let direct = self.links.iter().filter(|link| is_host(link.a) && is_host(link.b));
        let forward: BTreeSet<u32> = direct.flat_map(|link| [link.a, link.b]).collect();
        let nodes = self.hosts.keys().chain(self.switches.keys()).max().map_or(0, |last| last + 1);
        self.inner = forward.into_iter().zip(nodes..).collect();
        for (host, switch) in &self.inner {
            let own = self.links.iter().filter(|link| [link.a, link.b].contains(host));
            let Some(fastest) = own.max_by_key(|link| link.rate) else { continue };
            let (rate, line) = (fastest.rate, fastest.line);
            self.links.push(Link {
                a: *host,
                b: *switch,
                rate,
                delay: Time::ZERO,
                loss: 0.0,
                line,
            });
            let name = format!("inner{}", self.hosts[host]);
            self.switches.insert(*switch, (name, None));
        }
        let at = |node: u32| self.inner.get(&node).copied().unwrap_or(node);
        let written = self.links.len() - self.inner.len();
        for link in &mut self.links[..written] {
            (link.a, link.b) = (at(link.a), at(link.b));
        }
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
            Some(host) => Err(source.wrong(source.end(), format!("host {host} has no link"))),
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
        format!(
            "{{\n  \"hosts\": {},\n  \"switches\": [\n{}\n  ],\n  \"links\": [\n{}\n  ]\n}}\n",
            self.hosts.len(),
            switches.join(",\n"),
            links.join(",\n")
        )
    }

    /// A line about it.
    pub fn fact(&self) -> String {
        let rates: Vec<String> = self.rates().iter().map(Rate::to_string).collect();
        let (hosts, switches, links) = (self.hosts.len(), self.switches.len(), self.links.len());
        format!("{hosts} hosts, {switches} switches, {links} links of {}", rates.join(", "))
    }
}
