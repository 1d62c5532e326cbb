//! The topology file: how many nodes, switches and links there are, which nodes are switches, and a
//! line a link, `node node rate delay error-rate`. The rest is not read, there as here; lines of it
//! that look like links are reported.
//!
//! Its first line differs from fork to fork ([`Form`]); the one whose numbers fit the rest of the
//! file is taken. A host has a NIC for each of its links, so SimAI's NVSwitches are switches that a
//! server's hosts share. A link between two hosts is a NIC of each.

use std::collections::{BTreeMap, BTreeSet};

use millpond_core::Rate;

use super::surplus;
use crate::network::{Link, Network};
use crate::source::{Place, Source, Words};
use crate::{Imported, Result, units};

/// The network, and what it lacks.
pub(super) struct Topology {
    pub network: Network,
    pub nvswitches: BTreeSet<u32>,
    /// Links whose rate is written without a unit.
    pub bare_rates: usize,
    /// The first line that has values behind the error rate.
    pub surplus: Option<usize>,
}

impl Topology {
    /// The rates of ports of switches that need thresholds, and of all ports of switches. NVLink's
    /// rate is rarely among the thresholds, and switches inside hosts are none of the input.
    pub fn port_rates(&self) -> (Vec<Rate>, Vec<Rate>) {
        let network = &self.network;
        let of = |is: &dyn Fn(u32) -> bool| network.rates(|link| is(link.a) || is(link.b));
        let needs = |node| network.is_real_switch(node) && !self.nvswitches.contains(&node);
        (of(&needs), of(&|node| network.switches.contains_key(&node)))
    }

    /// The rate of the first host's link to the network, which stands for all in the family's
    /// programs.
    pub fn host_rate(&self) -> Option<Rate> {
        let first = self.network.hosts.keys().next()?;
        let is_switch = |node: &u32| {
            self.network.switches.contains_key(node) && !self.nvswitches.contains(node)
        };
        let is_it = |link: &&Link| {
            let ends = [link.a, link.b];
            ends.contains(first) && ends.iter().any(is_switch)
        };
        self.network.links.iter().find(is_it).map(|link| link.rate)
    }
}

/// The forms of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nodes, switches, links: HPCC's, TLT's, ConWeave's.
    Plain,
    /// Nodes, switches, top-of-rack switches, links, in Reverie also the capacities of two kinds of
    /// links: PowerTCP's, Reverie's. Nothing but the nodes, switches and links is used there.
    Tors,
    /// Nodes, hosts a server, NVSwitches, switches, links, and the kind of GPU: SimAI's.
    SimAi,
}

impl Form {
    fn text(self) -> &'static str {
        match self {
            Form::Plain => "nodes switches links",
            Form::Tors => "nodes switches tors links",
            Form::SimAi => "nodes hosts-a-server NVSwitches switches links",
        }
    }
}

pub(super) fn read(source: &Source, imported: &mut Imported) -> Result<Topology> {
    let count = source.words().left_in_line();
    let forms: &[Form] = match count {
        0..=3 => &[Form::Plain],
        4 => &[Form::Tors, Form::Plain],
        _ => &[Form::SimAi, Form::Tors, Form::Plain],
    };
    let mut fits: Vec<(Form, Topology, Words<'_>)> = Vec::new();
    let mut wrong = None;
    for form in forms {
        match as_form(source, *form) {
            Ok((topology, rest)) => fits.push((*form, topology, rest)),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    if fits.len() > 1 {
        let others: Vec<&str> = fits[1..].iter().map(|fit| fit.0.text()).collect();
        imported.facts.push(format!(
            "{}: the first line is read as `{}`; `{}` would fit as well",
            source.name,
            fits[0].0.text(),
            others.join("` and `")
        ));
    }
    match (fits.into_iter().next(), wrong) {
        (Some((form, topology, rest)), _) => {
            if form != Form::Plain {
                imported.facts.push(format!(
                    "{}: the first line is `{}`",
                    source.name,
                    form.text()
                ));
            }
            let announced = format!("the {} announced links", topology.network.links.len());
            surplus(&rest, &announced, imported);
            Ok(topology)
        }
        (None, Some(wrong)) => Err(wrong),
        (None, None) => source.at(1).fail("there is no topology"),
    }
}

/// Reads it as if its first line had this form.
fn as_form(source: &Source, form: Form) -> Result<(Topology, Words<'_>)> {
    let mut words = source.words();
    let first = words.line().unwrap_or(source.at(1));
    let nodes = words.whole("the number of nodes")?;
    let mut nvswitch_count = 0;
    if form == Form::SimAi {
        words.whole("the number of hosts a server")?;
        nvswitch_count = words.whole("the number of NVSwitches")?;
    }
    let switch_count = words.whole("the number of switches")?;
    if form == Form::Tors {
        words.whole("the number of top-of-rack switches")?;
    }
    let (line, count) = words.next("the number of links")?;
    let link_count = line.whole(count, "the number of links")?;
    if line.number == first.number {
        words.skip_line(first);
    } else if form != Form::Plain {
        return line.fail(format!("the first line should be `{}`", form.text()));
    }
    if nodes > 1 << 24 || switch_count.saturating_add(nvswitch_count) > nodes {
        let text =
            format!("{switch_count} switches and {nvswitch_count} NVSwitches of {nodes} nodes");
        return first.fail(text);
    }
    let kinds = switches(&mut words, nodes, nvswitch_count, switch_count)?;
    let mut network = Network::default();
    let hosts = (0..nodes as u32).filter(|node| !kinds.contains_key(node));
    network.hosts = hosts.zip(0..).collect();
    let name =
        |node: &u32, is_nv: bool| format!("{}{node}", if is_nv { "nvswitch" } else { "switch" });
    network.switches =
        kinds.iter().map(|(node, is_nv)| (*node, (name(node, *is_nv), None))).collect();
    let mut topology = Topology {
        network,
        nvswitches: kinds.iter().filter(|(_, is_nv)| **is_nv).map(|(node, _)| *node).collect(),
        bare_rates: 0,
        surplus: None,
    };
    for at in 0..link_count {
        let what = format!("link {} of {link_count}", at + 1);
        topology.bare_rates += usize::from(words.ahead(2).is_some_and(units::has_no_unit));
        let (link, surplus) = link(&mut words, &what, nodes)?;
        topology.surplus = topology.surplus.or((surplus > 0).then_some(link.line));
        topology.network.links.push(link);
    }
    topology.network.check(source)?;
    Ok((topology, words))
}

/// Which nodes are switches: by node, whether it is an NVSwitch.
fn switches(
    words: &mut Words<'_>,
    nodes: u64,
    nvswitch_count: u64,
    switch_count: u64,
) -> Result<BTreeMap<u32, bool>> {
    let mut kinds: BTreeMap<u32, bool> = BTreeMap::new();
    for at in 0..nvswitch_count + switch_count {
        let (line, word) = words.next("a switch's number")?;
        let node = known(line, line.whole(word, "a switch's number")?, nodes)?;
        if kinds.insert(node, at < nvswitch_count).is_some() {
            return line.fail(format!("node {node} is named a switch twice"));
        }
    }
    Ok(kinds)
}

fn known(line: Place<'_>, number: u64, nodes: u64) -> Result<u32> {
    if number >= nodes {
        return line.fail(format!("there is no node {number}; there are {nodes}, from 0"));
    }
    Ok(number as u32)
}

/// A link, and how many words of its line are left over.
fn link(words: &mut Words<'_>, what: &str, nodes: u64) -> Result<(Link, usize)> {
    if words.left_in_line() < 5 {
        let (line, word) = words.next(what)?;
        return line.fail(format!(
            "{what}: expected node, node, rate, delay and error rate from {word:?} on"
        ));
    }
    let (line, a) = words.next(what)?;
    let a = known(line, line.whole(a, what)?, nodes)?;
    let (at, b) = words.next(what)?;
    let b = known(line, at.whole(b, what)?, nodes)?;
    let wrong = |text: String| line.wrong(text);
    if a == b {
        return Err(wrong(format!("{what} leads from node {a} to itself")));
    }
    let rate = words.next(what)?.1;
    let rate = units::rate(rate)
        .ok_or_else(|| wrong(format!("{rate:?} is not a rate such as 100Gbps")))?;
    let delay = words.next(what)?.1;
    let delay = units::time(delay)
        .ok_or_else(|| wrong(format!("{delay:?} is not a delay such as 1000ns")))?;
    let loss = words.next(what)?.1;
    let share = units::number(loss).filter(|share| (0.0..=1.0).contains(share));
    let loss = share.ok_or_else(|| wrong(format!("{loss:?} is not an error rate, from 0 to 1")))?;
    let number = line.number;
    Ok((Link { a, b, rate, delay, loss, line: number }, words.skip_line(line)))
}
