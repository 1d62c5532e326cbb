//! The topology file: how many nodes, switches and links there are, which nodes are switches, and a
//! line a link, `node node rate delay error-rate`. What follows is not read, there as here.
//!
//! SimAI's begins with more numbers: nodes, hosts a server, NVSwitches, switches, links, and the
//! kind of GPU. Hosts have one NIC here, so NVSwitches are left out with their links; a flow whose
//! way they would be is refused.

use std::collections::BTreeMap;

use millpond_core::Rate;

use crate::network::{Link, Network};
use crate::source::Source;
use crate::{Result, units};

/// The network, and what it lacks.
pub(super) struct Topology {
    pub network: Network,
    /// By host: its NVSwitches.
    pub nvswitches: BTreeMap<u32, Vec<u32>>,
    /// Links to NVSwitches that are left out.
    pub left_out: usize,
}

impl Topology {
    /// The rate of the first host's link, which stands for all in the family's programs.
    pub fn host_rate(&self) -> Option<Rate> {
        let first = self.network.hosts.keys().next()?;
        self.network.links.iter().find(|link| [link.a, link.b].contains(first)).map(|link| link.rate)
    }
}

/// Reads it.
pub(super) fn read(source: &Source) -> Result<Topology> {
    let mut words = source.words();
    let in_first = words.left_in_line();
    let nodes = words.whole("the number of nodes")?;
    let simai = in_first > 3;
    if simai {
        words.whole("the number of hosts a server")?;
    }
    let nvswitch_count = if simai { words.whole("the number of NVSwitches")? } else { 0 };
    let switch_count = words.whole("the number of switches")?;
    let links = words.next("the number of links")?;
    let (links_line, link_count) = (links.0, source.whole(links, "the number of links")?);
    (5..in_first).try_for_each(|_| words.next("").map(drop))?;
    if nodes > 1 << 24 || switch_count + nvswitch_count > nodes {
        let text = format!("{switch_count} switches and {nvswitch_count} NVSwitches of {nodes} nodes");
        return Err(source.wrong(links_line, text));
    }
    let mut kinds: BTreeMap<u32, bool> = BTreeMap::new();
    for at in 0..nvswitch_count + switch_count {
        let word = words.next("a switch's number")?;
        let number = source.whole(word, "a switch's number")?;
        let node = known(source, word.0, number, nodes)?;
        if kinds.insert(node, at < nvswitch_count).is_some() {
            return Err(source.wrong(word.0, format!("node {node} is named a switch twice")));
        }
    }
    let mut network = Network::default();
    let hosts = (0..nodes as u32).filter(|node| !kinds.contains_key(node));
    network.hosts = hosts.zip(0..).collect();
    let switches = kinds.iter().filter(|(_, is_nv)| !**is_nv);
    network.switches = switches.map(|(node, _)| (*node, (format!("switch{node}"), None))).collect();
    let (mut nvswitches, mut left_out): (BTreeMap<u32, Vec<u32>>, usize) = (BTreeMap::new(), 0);
    for at in 0..link_count {
        let what = format!("link {} of {link_count}", at + 1);
        let link = link(source, &mut words, &what, nodes)?;
        let is_nv = |node: u32| kinds.get(&node) == Some(&true);
        match (is_nv(link.a), is_nv(link.b)) {
            (false, false) => network.links.push(link),
            (true, _) => {
                nvswitches.entry(link.b).or_default().push(link.a);
                left_out += 1;
            }
            (_, true) => {
                nvswitches.entry(link.a).or_default().push(link.b);
                left_out += 1;
            }
        }
    }
    network.check(source)?;
    Ok(Topology { network, nvswitches, left_out })
}

fn known(source: &Source, line: usize, number: u64, nodes: u64) -> Result<u32> {
    if number >= nodes {
        return Err(source.wrong(line, format!("there is no node {number}; there are {nodes}, from 0")));
    }
    Ok(number as u32)
}

fn link(source: &Source, words: &mut crate::source::Words<'_>, what: &str, nodes: u64) -> Result<Link> {
    if words.left_in_line() < 5 {
        let (line, word) = words.next(what)?;
        return Err(
            source.wrong(line, format!("{what}: expected node, node, rate, delay and error rate from {word:?} on"))
        );
    }
    let (line, a) = words.next(what)?;
    let a = known(source, line, source.whole((line, a), what)?, nodes)?;
    let b = words.next(what)?;
    let b = known(source, line, source.whole(b, what)?, nodes)?;
    let wrong = |text: String| source.wrong(line, text);
    if a == b {
        return Err(wrong(format!("{what} leads from node {a} to itself")));
    }
    let rate = words.next(what)?.1;
    let rate = units::rate(rate).ok_or_else(|| wrong(format!("{rate:?} is not a rate such as 100Gbps")))?;
    let delay = words.next(what)?.1;
    let delay = units::time(delay).ok_or_else(|| wrong(format!("{delay:?} is not a delay such as 1000ns")))?;
    let loss = words.next(what)?.1;
    let share = loss.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    let loss = share.ok_or_else(|| wrong(format!("{loss:?} is not an error rate, from 0 to 1")))?;
    Ok(Link { a, b, rate, delay, loss, line })
}
