//! Names of ports: "leaf0:4", "leaf0->spine1", "leaf0->spine1#2" (one of several), "leaf0" (all its
//! ports), "host3" (all NICs of a host), "host3:1" (one of several), and a link's own name (the
//! ports at both its ends).
//!
//! An arrow names the ports by where they lead, which the scenario has;
//! parallel links have several.
//!
//! Invariant: a name that is accepted names at least one port, and each is there.

use super::{node, unknown};
use crate::error::{Problem, nearest};
use crate::topology::{End, Node, Topology};

/// The fault of a name, and what would do.
type Wrong = (Problem, String);

fn wrong<T>(what: impl Into<String>, name: &str, help: String) -> Result<T, Wrong> {
    Err((Problem::Unknown { what: what.into(), name: name.into() }, help))
}

pub(super) fn named(topology: &Topology, text: &str) -> Result<Vec<End>, Wrong> {
    if let Some((from, to)) = text.split_once("->") {
        return towards(topology, from.trim(), to.trim());
    }
    if let Some(link) = topology.link_names.get(text) {
        let (a, b) = topology.ends(*link);
        return Ok(vec![a, b]);
    }
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    match (find(topology, name)?, port) {
        (Node::Host(host), None) => Ok(topology.nics(host).map(End::Host).collect()),
        (Node::Host(host), Some(nic)) => {
            let number = nic.parse::<usize>().ok();
            let count = topology.nics(host).count();
            match number.and_then(|number| topology.nics(host).nth(number)) {
                _ if count == 1 => wrong("port", text, format!("a host has one port: {name}")),
                Some(nic) => Ok(vec![End::Host(nic)]),
                None => {
                    let help = format!("it has NICs 0 to {}", count - 1);
                    wrong(format!("NIC of {name}"), nic, help)
                }
            }
        }
        (Node::Switch(switch), None) => Ok((0..topology.switches[switch as usize].ports)
            .map(|port| End::Switch { switch, port })
            .collect()),
        (Node::Switch(switch), Some(port)) => {
            let ports = topology.switches[switch as usize].ports;
            match port.parse::<u16>() {
                Ok(port) if port < ports => Ok(vec![End::Switch { switch, port }]),
                _ => wrong(
                    format!("port of {name}"),
                    port,
                    format!("it has ports 0 to {}", ports.saturating_sub(1)),
                ),
            }
        }
    }
}

/// The name of this port's file: "host3", "leaf0-4".
pub(super) fn file_name(topology: &Topology, end: End) -> String {
    match end {
        End::Host(nic) => topology.nic_name(nic).replace(':', "-"),
        End::Switch { switch, port } => {
            format!("{}-{port}", topology.switches[switch as usize].name)
        }
    }
}

/// The nodes at the two ends of this port's link: "leaf0 → host4".
pub(super) fn link(topology: &Topology, end: End) -> String {
    format!("{} → {}", name(topology, end), name(topology, other_end(topology, end)))
}

fn find(topology: &Topology, name: &str) -> Result<Node, Wrong> {
    node(topology, name).ok_or_else(|| unknown(topology, name))
}

/// The ports of a node whose links lead to another.
fn towards(topology: &Topology, from: &str, to: &str) -> Result<Vec<End>, Wrong> {
    let source = find(topology, from)?;
    // A node may have a name with a number sign.
    if let (None, Some((other, number))) = (node(topology, to), to.rsplit_once('#')) {
        let ports = towards(topology, from, other)?;
        let port = number.parse::<usize>().ok().and_then(|at| ports.get(at)).copied();
        let help = format!("there are links 0 to {} from {from} to {other}", ports.len() - 1);
        return port
            .map_or_else(|| wrong("link", &format!("{from}->{to}"), help), |port| Ok(vec![port]));
    }
    find(topology, to)?;
    let ends: Vec<End> = match source {
        Node::Host(host) => topology.nics(host).map(End::Host).collect(),
        Node::Switch(switch) => (0..topology.switches[switch as usize].ports)
            .map(|port| End::Switch { switch, port })
            .collect(),
    };
    let next: Vec<(End, String)> =
        ends.into_iter().map(|end| (end, name(topology, other_end(topology, end)))).collect();
    let ports: Vec<End> = next.iter().filter(|(_, name)| name == to).map(|(end, _)| *end).collect();
    if !ports.is_empty() {
        return Ok(ports);
    }
    let mut names: Vec<&str> = next.iter().map(|(_, name)| name.as_str()).collect();
    names.dedup();
    let help = match nearest(to, names.iter().copied()) {
        Some(near) => format!("did you mean `{from}->{near}`?"),
        None => format!("{from} leads to {} … {}", names[0], names[names.len() - 1]),
    };
    wrong("port", &format!("{from}->{to}"), help)
}

/// Where the link of a port leads.
fn other_end(topology: &Topology, end: End) -> End {
    let link = match end {
        End::Host(nic) => nic,
        End::Switch { switch, port } => topology.link_at(switch, port),
    };
    let (a, b) = topology.ends(link);
    if a == end { b } else { a }
}

/// The name of a port's node.
fn name(topology: &Topology, end: End) -> String {
    match end {
        End::Host(nic) => format!("host{}", topology.host_of(nic)),
        End::Switch { switch, .. } => topology.switches[switch as usize].name.clone(),
    }
}
