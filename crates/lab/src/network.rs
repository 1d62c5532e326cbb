//! A plan's switches and links as a [`Fabric`]: the nodes are the simulator's own, made from the
//! same choices.
//!
//! Lines are numbered switch by switch and port by port. A link to a host leads to the driver,
//! which owns the host's port.
//!
//! Invariant: every switch port has one line, and a link's two lines name each other.

use crate::address::mac;
use millpond_core::Time;
use millpond_core::jitter::Jitter;
use millpond_core::outages::Outages;
use millpond_core::switch::Switch;
use millpond_core::switch::port::LinkRate;
use millpond_linux::dataplane::flow::Keys;
use millpond_linux::dataplane::metadata::Classifier;
use millpond_linux::fabric::{Fabric, Far, Line};
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::{End, Topology};
use millpond_sim::build::lot_of;
use millpond_sim::failing;
use millpond_sim::jitter::jitter;

/// A host's end of its link.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// The line of the switch port at the other end.
    pub line: u32,
    pub rate: LinkRate,
    pub delay: Time,
    /// When it fails, on the way to the switch.
    pub outages: Outages,
    /// How late the host is with what it sends, if it is.
    pub jitter: Option<Jitter>,
}

/// By switch: the number of its first line.
pub fn first_lines(topology: &Topology) -> Vec<u32> {
    let ports = topology.switches.iter().map(|site| u32::from(site.ports));
    let first = |next: &mut u32, ports: u32| {
        *next += ports;
        Some(*next - ports)
    };
    ports.scan(0, first).collect()
}

/// The lines of a switch's ports.
fn lines(plan: &Plan, switch: u32, first: &[u32]) -> Vec<Line> {
    let topology = &plan.topology;
    let site = &topology.switches[switch as usize];
    let line = |port: u16| {
        let number = topology.link_at(switch, port);
        let link = &topology.links[number as usize];
        let own = End::Switch { switch, port };
        let far = match if link.a == own { link.b } else { link.a } {
            End::Host(host) => Far::Host(host, link.delay),
            End::Switch { switch, port } => {
                Far::Line(first[switch as usize] + u32::from(port), link.delay)
            }
        };
        let directed = 2 * number + u32::from(link.a != own);
        let outages = failing::outages(plan, directed);
        let outages = (!outages.is_empty()).then(|| Box::new(outages));
        let mut line = Line::inside(format!("{}:{port}", site.name), link.rate, far);
        line.outages = outages;
        line.jitter = jitter(plan, directed).map(Box::new);
        line.lots = lot_of(plan, directed ^ 1).zip(lot_of(plan, directed)).map(Into::into);
        line
    };
    (0..site.ports).map(line).collect()
}

/// The switches of a plan before their first packet, by number.
fn nodes(plan: &Plan) -> Vec<Switch> {
    let (_, partitions) = millpond_sim::build::build(plan, 1);
    let mut nodes: Vec<_> = partitions.into_iter().flat_map(|part| part.switches).collect();
    nodes.sort_by_key(|node| node.index);
    nodes.into_iter().map(|node| node.switch).collect()
}

pub fn fabric(plan: &Plan) -> Fabric {
    let topology = &plan.topology;
    let hosts = (0..topology.hosts).map(|host| (mac(host), host));
    let classifier = Classifier::new(hosts, plan.host.frame_overhead as u16);
    let classifier = classifier.keyed(Keys::seeded(plan.seed));
    let first = first_lines(topology);
    let switches = nodes(plan).into_iter().zip(0..);
    Fabric::of(switches.map(|(node, switch)| (node, lines(plan, switch, &first))), classifier)
}

/// The line of the switch port at the other end of a host's link.
pub fn line_of(topology: &Topology, first: &[u32], host: u32) -> u32 {
    match topology.links[host as usize].b {
        End::Switch { switch, port } => first[switch as usize] + u32::from(port),
        End::Host(_) => unreachable!("host {host} hangs on a switch"),
    }
}

/// By host: its end of its link.
pub fn uplinks(plan: &Plan) -> Vec<Uplink> {
    let topology = &plan.topology;
    let first = first_lines(topology);
    let uplink = |host: u32| {
        let link = &topology.links[host as usize];
        let line = line_of(topology, &first, host);
        let (outages, jitter) = (failing::outages(plan, 2 * host), jitter(plan, 2 * host));
        Uplink { line, rate: LinkRate::new(link.rate), delay: link.delay, outages, jitter }
    };
    (0..topology.hosts).map(uplink).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;

    #[test]
    fn hosts_jitter_both_ways_unless_they_are_exact() {
        let text = "duration = \"1ms\"\n[topology]\nkind = \"dumbbell\"\nhosts-per-side = 1\n\
                    [[traffic]]\nkind = \"permutation\"\nsize = 1\n";
        let plan = |jitter: &str| {
            let set = [("host.jitter".to_string(), format!("{{ kind = \"{jitter}\" }}"))];
            Scenario::parse("a", text).unwrap().plan(None, &set, None).unwrap()
        };
        let jitters = |plan: &Plan| {
            let lines = fabric(plan);
            let to_hosts = lines.lines().iter().filter(|line| matches!(line.far, Far::Host(..)));
            let received = to_hosts.filter(|line| line.jitter.is_some()).count();
            let between = lines.lines().iter().filter(|line| matches!(line.far, Far::Line(..)));
            assert!(between.clone().count() == 2 && between.clone().all(|it| it.jitter.is_none()));
            (received, uplinks(plan).iter().filter(|uplink| uplink.jitter.is_some()).count())
        };
        assert_eq!(jitters(&plan("uniform")), (2, 2));
        assert_eq!(jitters(&plan("none")), (0, 0));
    }
}
