//! Rail-optimised: a segment has a leaf for each rail, and rail r of each of its servers is on leaf
//! r; spines connect all leaves. Without spines, rails do not meet.
//!
//! A server is one host with a NIC for each rail. With inner switches each of its accelerators is a
//! host by itself, with NIC 0 on its rail and NIC 1 on the server's inner switch.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::RailOptimisedParams;
use millpond_core::switch::route::Routes;

pub(super) fn build(p: &RailOptimisedParams) -> Result<Topology, Vec<Fault>> {
    check(p)?;
    let (rails, per_segment) = (p.rails, p.servers_per_segment);
    let (leaves, servers) = (p.segments * rails, p.segments * per_segment);
    let inner = if p.inner_switch { servers } else { 0 };
    let mut net = Builder::default();
    for leaf in 0..leaves {
        net.switch(format!("leaf{leaf}"), 0, Some(leaf), per_segment + p.spines);
    }
    for server in 0..inner {
        net.switch(format!("inner{server}"), 0, Some(leaves + server), rails);
    }
    for spine in 0..p.spines {
        net.switch(format!("spine{spine}"), 1, None, leaves);
    }
    let place =
        |server: u32, rail: u32| (server / per_segment * rails + rail, server % per_segment);
    let (rate, delay) = (p.host_link_rate, p.host_link_delay);
    if p.inner_switch {
        for host in 0..servers * rails {
            let (leaf, port) = place(host / rails, host % rails);
            net.host(leaf, port, rate, delay);
        }
        for host in 0..servers * rails {
            let inner = leaves + host / rails;
            net.nic(host, inner, host % rails, p.inner_link_rate, p.inner_link_delay);
        }
    } else {
        for server in 0..servers {
            let (leaf, port) = place(server, 0);
            net.host(leaf, port, rate, delay);
        }
        for server in 0..servers {
            for (leaf, port) in (1..rails).map(|rail| place(server, rail)) {
                net.nic(server, leaf, port, rate, delay);
            }
        }
    }
    for leaf in 0..leaves {
        for spine in 0..p.spines {
            let ends = ((leaf, per_segment + spine), (leaves + inner + spine, leaf));
            net.connect(ends.0, ends.1, p.fabric_link_rate, p.fabric_link_delay);
        }
    }
    let uplinks: Vec<u16> = (per_segment..per_segment + p.spines).map(|port| port as u16).collect();
    Ok(net.finish(|attachment| {
        // Inner switches lead nowhere else, and nothing leads to them.
        let nowhere = || std::iter::repeat_n(Vec::new(), inner as usize);
        let of_leaf = |leaf: u32| {
            let up = |other| if other == leaf { Vec::new() } else { uplinks.clone() };
            let towards: Vec<Vec<u16>> = (0..leaves).map(up).chain(nowhere()).collect();
            Routes::new(attachment.clone(), Some(leaf as u16), &towards)
        };
        let of_inner = |server: u32| {
            let towards = vec![Vec::new(); (leaves + inner) as usize];
            Routes::new(attachment.clone(), Some((leaves + server) as u16), &towards)
        };
        let down: Vec<Vec<u16>> =
            (0..leaves as u16).map(|leaf| vec![leaf]).chain(nowhere()).collect();
        let spine = Routes::new(attachment.clone(), None, &down);
        let spines = std::iter::repeat_n(spine, p.spines as usize);
        (0..leaves).map(of_leaf).chain((0..inner).map(of_inner)).chain(spines).collect()
    }))
}

fn check(p: &RailOptimisedParams) -> Result<(), Vec<Fault>> {
    let mut checks = Checks::default();
    checks.at_least_one(p.segments, "segments");
    checks.at_least_one(p.servers_per_segment, "servers-per-segment");
    checks.at_least_one(p.rails, "rails");
    let wide = [p.segments, p.servers_per_segment, p.rails, p.spines].map(u64::from);
    let [segments, servers, rails, spines] = wide;
    let leaves = segments.saturating_mul(rails);
    let inner = if p.inner_switch { segments.saturating_mul(servers) } else { 0 };
    checks.leaves(leaves.saturating_add(inner), "segments");
    checks.ports(servers + spines, "servers-per-segment");
    checks.ports(leaves, "segments");
    checks.ports(rails, "rails");
    let doubled = if p.inner_switch { 2 } else { 1 };
    checks.links(leaves.saturating_mul(servers * doubled + spines), "segments");
    checks.of_links(p);
    checks.done()
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;

    fn small(inner_switch: bool) -> Topology {
        let p = RailOptimisedParams {
            segments: 2,
            servers_per_segment: 3,
            rails: 4,
            spines: 2,
            inner_switch,
            ..Default::default()
        };
        build(&p).unwrap()
    }

    #[test]
    fn rail_r_of_a_server_is_on_leaf_r_of_its_segment() {
        let t = small(false);
        assert_eq!((t.hosts, t.addresses(), t.switches.len()), (6, 24, 8 + 2));
        // Server 4 is the second of segment 1, whose leaves are 4 to 7.
        let at: Vec<_> = t.nics(4).map(|nic| t.attachment.hosts[nic as usize]).collect();
        assert_eq!(at, [(4, 1), (5, 1), (6, 1), (7, 1)]);
        let nic = t.nics(4).nth(2).unwrap();
        assert_eq!(t.routes[6].towards(nic), &[1]);
        assert_eq!(t.routes[2].towards(nic), &[3, 4]);
        assert_eq!(t.routes[9].towards(nic), &[6]);
        let up = &t.links[t.link_at(6, 4) as usize];
        assert_eq!(up.b, End::Switch { switch: 9, port: 6 });
    }

    #[test]
    fn accelerators_of_a_server_share_its_inner_switch() {
        let t = small(true);
        assert_eq!((t.hosts, t.addresses(), t.switches.len()), (24, 48, 8 + 6 + 2));
        // Host 18 is accelerator 2 of server 4.
        let at: Vec<_> = t.nics(18).map(|nic| t.attachment.hosts[nic as usize]).collect();
        assert_eq!(at, [(6, 1), (8 + 4, 2)]);
        let nvlink = |host: u32| t.nics(host).nth(1).unwrap();
        assert!(t.connects(nvlink(18), nvlink(16)) && !t.connects(nvlink(18), nvlink(20)));
        assert!(t.connects(18, 0) && !t.connects(18, nvlink(18)));
    }

    #[test]
    fn impossible_numbers_are_all_named() {
        let bad =
            RailOptimisedParams { segments: 0, rails: 70_000, spines: 0, ..Default::default() };
        let keys: Vec<_> = build(&bad).unwrap_err().into_iter().map(|fault| fault.0).collect();
        assert_eq!(keys, ["segments", "rails"]);
        let wide = RailOptimisedParams { segments: 60_000, rails: 60_000, ..Default::default() };
        assert!(build(&wide).is_err());
    }
}
