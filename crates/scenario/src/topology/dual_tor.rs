//! Dual ToR: each host has two NICs, each on a top-of-rack switch of its own, and all switches have
//! a link to each spine. With two planes the spines are divided too, and the planes do not meet.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::DualTorParams;
use millpond_core::switch::route::Routes;

pub(super) fn build(p: &DualTorParams) -> Result<Topology, Vec<Fault>> {
    check(p)?;
    let (tors, hosts) = (p.pairs * 2, p.hosts_per_pair);
    let planes = if p.two_planes { 2 } else { 1 };
    let mut net = Builder::default();
    for tor in 0..tors {
        net.switch(format!("tor{tor}"), 0, Some(tor), hosts + p.spines);
    }
    for spine in 0..p.spines * planes {
        net.switch(format!("spine{spine}"), 1, None, tors / planes);
    }
    for host in 0..p.pairs * hosts {
        net.host(host / hosts * 2, host % hosts, p.host_link_rate, p.host_link_delay);
    }
    for host in 0..p.pairs * hosts {
        let tor = host / hosts * 2 + 1;
        net.nic(host, tor, host % hosts, p.host_link_rate, p.host_link_delay);
    }
    for tor in 0..tors {
        let plane = tor % planes;
        for up in 0..p.spines {
            let spine = tors + plane * p.spines + up;
            let ends = ((tor, hosts + up), (spine, tor / planes));
            net.connect(ends.0, ends.1, p.fabric_link_rate, p.fabric_link_delay);
        }
    }
    let uplinks: Vec<u16> = (hosts..hosts + p.spines).map(|port| port as u16).collect();
    Ok(net.finish(|attachment| {
        let of_tor = |tor: u32| {
            let reached = |other: u32| other != tor && other % planes == tor % planes;
            let ways = |other| if reached(other) { uplinks.clone() } else { Vec::new() };
            let towards: Vec<Vec<u16>> = (0..tors).map(ways).collect();
            Routes::new(attachment.clone(), Some(tor as u16), &towards)
        };
        let of_plane = |plane: u32| {
            let down = |tor: u32| {
                if tor % planes == plane { vec![(tor / planes) as u16] } else { Vec::new() }
            };
            let towards: Vec<Vec<u16>> = (0..tors).map(down).collect();
            Routes::new(attachment.clone(), None, &towards)
        };
        let spines =
            (0..planes).flat_map(|plane| std::iter::repeat_n(of_plane(plane), p.spines as usize));
        (0..tors).map(of_tor).chain(spines).collect()
    }))
}

fn check(p: &DualTorParams) -> Result<(), Vec<Fault>> {
    let mut checks = Checks::default();
    checks.at_least_one(p.pairs, "pairs");
    checks.at_least_one(p.hosts_per_pair, "hosts-per-pair");
    checks.at_least_one(p.spines, "spines");
    checks.leaves(u64::from(p.pairs) * 2, "pairs");
    checks.ports(u64::from(p.hosts_per_pair) + u64::from(p.spines), "hosts-per-pair");
    let links = u64::from(p.hosts_per_pair) + u64::from(p.spines);
    checks.links(u64::from(p.pairs) * 2 * links, "pairs");
    checks.of_links(p);
    checks.done()
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;

    fn small(two_planes: bool) -> Topology {
        let p = DualTorParams {
            pairs: 2,
            hosts_per_pair: 3,
            spines: 2,
            two_planes,
            ..Default::default()
        };
        build(&p).unwrap()
    }

    #[test]
    fn each_host_has_a_nic_at_both_switches_of_its_pair() {
        let t = small(false);
        assert_eq!((t.hosts, t.addresses(), t.switches.len()), (6, 12, 6));
        // Host 4 is the second of pair 1: port 1 of tor2 and of tor3.
        assert_eq!(t.nics(4).collect::<Vec<_>>(), [4, 10]);
        assert_eq!((t.attachment.hosts[4], t.attachment.hosts[10]), ((2, 1), (3, 1)));
        assert_eq!((t.links[10].a, t.host_of(10), t.nic_number(10)), (End::Host(10), 4, 1));
        // The other switch of a pair is reached by the spines.
        assert_eq!(t.routes[2].towards(10), &[3, 4]);
        assert_eq!(t.routes[4].towards(10), &[3]);
    }

    #[test]
    fn planes_do_not_meet() {
        let t = small(true);
        assert_eq!(t.switches.len(), 8);
        assert!(t.connects(0, 4) && t.connects(6, 10), "NIC 0 to NIC 0, and 1 to 1");
        assert!(!t.connects(0, 10) && !t.connects(6, 4) && !t.connects(0, 7));
        assert_eq!((t.routes[4].towards(4), t.routes[6].towards(10)), (&[1][..], &[1][..]));
        let up = &t.links[t.link_at(3, 4) as usize];
        assert_eq!(up.b, End::Switch { switch: 7, port: 1 });
    }

    #[test]
    fn impossible_numbers_are_all_named() {
        let bad =
            DualTorParams { pairs: 0, hosts_per_pair: 70_000, spines: 0, ..Default::default() };
        let keys: Vec<_> = build(&bad).unwrap_err().into_iter().map(|fault| fault.0).collect();
        assert_eq!(keys, ["pairs", "spines", "hosts-per-pair"]);
    }
}
