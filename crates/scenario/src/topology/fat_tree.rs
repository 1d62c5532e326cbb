//! The fat tree of k-port switches (Al-Fares et al., SIGCOMM 2008 §3): k pods of k/2 edge and k/2
//! aggregation switches, and k²/4 cores. Aggregation switch j of each pod connects to cores j·k/2
//! up to (j+1)·k/2.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::FatTreeParams;
use millpond_core::switch::route::{Attachment, Routes};
use std::sync::Arc;

pub(super) fn build(p: &FatTreeParams) -> Result<Topology, Vec<Fault>> {
    check(p)?;
    let (k, half) = (p.k, p.k / 2);
    let (edges, aggs) = (k * half, k * half);
    let mut net = Builder::default();
    for edge in 0..edges {
        net.switch(format!("edge{edge}"), 0, Some(edge / half), k);
    }
    for agg in 0..aggs {
        net.switch(format!("agg{agg}"), 1, Some(agg / half), k);
    }
    for core in 0..half * half {
        net.switch(format!("core{core}"), 2, None, k);
    }
    for edge in 0..edges {
        for port in 0..half {
            net.host(edge, port, p.host_link_rate, p.host_link_delay);
        }
    }
    for edge in 0..edges {
        for j in 0..half {
            let agg = edges + edge / half * half + j;
            net.connect(
                (edge, half + j),
                (agg, edge % half),
                p.fabric_link_rate,
                p.fabric_link_delay,
            );
        }
    }
    for agg in 0..aggs {
        for c in 0..half {
            let core = edges + aggs + agg % half * half + c;
            net.connect(
                (edges + agg, half + c),
                (core, agg / half),
                p.fabric_link_rate,
                p.fabric_link_delay,
            );
        }
    }
    Ok(Topology { is_regular: true, ..net.finish(|attachment| routes(k, attachment)) })
}

/// Up by all uplinks, but for what is below: an aggregation switch's pod, and all of a core's.
fn routes(k: u32, attachment: &Arc<Attachment>) -> Vec<Routes> {
    let half = k / 2;
    let (edges, cores) = (k * half, (half * half) as usize);
    let uplinks: Vec<u16> = (half..k).map(|port| port as u16).collect();
    let down = |edges: u32, below: u32| {
        (0..edges).map(|edge| vec![(edge / below) as u16]).collect::<Vec<_>>()
    };
    let edge = Routes::regular(attachment.clone(), 0, &[], &uplinks);
    let agg = Routes::regular(attachment.clone(), 0, &down(half, 1), &uplinks);
    let core = Routes::regular(attachment.clone(), 0, &down(edges, half), &[]);
    let mut routes = Vec::with_capacity(edges as usize * 2 + cores);
    routes.extend((0..edges as u16).map(|number| edge.elsewhere(Some(number), 0)));
    routes.extend((0..edges).map(|number| agg.elsewhere(None, (number / half * half) as u16)));
    routes.extend(std::iter::repeat_n(core, cores));
    routes
}

fn check(p: &FatTreeParams) -> Result<(), Vec<Fault>> {
    let mut checks = Checks::default();
    checks.require(p.k >= 2 && p.k.is_multiple_of(2), "k", || {
        format!("{} is not an even number from 2", p.k)
    });
    checks.require(p.k <= 256, "k", || format!("{} is beyond the largest fat tree, 256", p.k));
    if p.k <= 256 {
        checks.links(p.k as u64 * p.k as u64 * p.k as u64 / 4 * 3, "k");
    }
    checks.of_links(p);
    checks.done()
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;

    #[test]
    fn k4_by_hand() {
        let t = build(&FatTreeParams { k: 4, ..Default::default() }).unwrap();
        assert_eq!((t.hosts, t.switches.len(), t.links.len()), (16, 20, 48));
        // Host 5 is on edge 2 (pod 1), port 1.
        assert_eq!(t.attachment.hosts[5], (2, 1));
        assert_eq!(t.routes[0].towards(5), &[2, 3]);
        assert_eq!(t.routes[3].towards(5), &[2, 3]);
        assert_eq!(t.routes[2].towards(5), &[1]);
        // Aggregation switches 8.. (pod 0: 8, 9; pod 1: 10, 11).
        assert_eq!(t.routes[8].towards(5), &[2, 3]);
        assert_eq!(t.routes[11].towards(5), &[0]);
        assert_eq!(t.routes[16].towards(5), &[1]);
        // Aggregation 1 of pod 2 (switch 13) reaches cores 2 and 3 (switches 18, 19) at their port
        // 2.
        let up = &t.links[t.link_at(13, 3) as usize];
        assert_eq!(up.b, End::Switch { switch: 19, port: 2 });
        assert_eq!(t.switches[13].pod, Some(2));
    }

    /// Every host reaches every other by shortest paths through any candidate.
    #[test]
    fn all_routes_arrive() {
        let t = build(&FatTreeParams { k: 6, ..Default::default() }).unwrap();
        for src in 0..t.hosts {
            for dst in (0..t.hosts).filter(|&d| d != src) {
                let mut at = t.leaf_of(src);
                let mut hops = 0;
                loop {
                    let ports = t.routes[at as usize].towards(dst);
                    let port = ports[(src as usize + hops) % ports.len()];
                    let link = &t.links[t.link_at(at, port) as usize];
                    hops += 1;
                    let here = End::Switch { switch: at, port };
                    match if link.a == here { link.b } else { link.a } {
                        End::Host(h) => break assert_eq!(h, dst),
                        End::Switch { switch, .. } => at = switch,
                    }
                    assert!(hops <= 5);
                }
            }
        }
    }

    #[test]
    fn eleven_thousand_hosts_have_so_many_switches() {
        let t = build(&FatTreeParams { k: 36, ..Default::default() }).unwrap();
        assert_eq!((t.hosts, t.switches.len()), (11_664, 1_620));
    }

    #[test]
    fn odd_k_is_refused() {
        assert!(
            build(&FatTreeParams { k: 5, ..Default::default() }).unwrap_err()[0].1.contains("even")
        );
        assert!(build(&FatTreeParams { k: 0, ..Default::default() }).is_err());
        assert!(build(&FatTreeParams { k: u32::MAX - 1, ..Default::default() }).is_err());
    }
}
