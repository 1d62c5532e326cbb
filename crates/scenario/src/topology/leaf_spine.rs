//! Leaf and spine: each leaf has one link to each spine.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::LeafSpineParams;
use millpond_core::switch::route::Routes;

pub(super) fn build(p: &LeafSpineParams) -> Result<Topology, Vec<Fault>> {
    check(p)?;
    let mut net = Builder::default();
    for leaf in 0..p.leaves {
        net.switch(format!("leaf{leaf}"), 0, Some(leaf), p.hosts_per_leaf + p.spines);
    }
    for spine in 0..p.spines {
        net.switch(format!("spine{spine}"), 1, None, p.leaves);
    }
    for leaf in 0..p.leaves {
        for port in 0..p.hosts_per_leaf {
            net.host(leaf, port, p.host_link_rate, p.host_link_delay);
        }
    }
    for leaf in 0..p.leaves {
        for spine in 0..p.spines {
            let up = (leaf, p.hosts_per_leaf + spine);
            net.connect(up, (p.leaves + spine, leaf), p.fabric_link_rate, p.fabric_link_delay);
        }
    }
    let uplinks: Vec<u16> =
        (p.hosts_per_leaf..p.hosts_per_leaf + p.spines).map(|port| port as u16).collect();
    let topology = net.finish(|attachment| {
        let leaf = Routes::regular(attachment.clone(), 0, &[], &uplinks);
        let mut routes: Vec<Routes> =
            (0..p.leaves as u16).map(|number| leaf.elsewhere(Some(number), 0)).collect();
        let down: Vec<Vec<u16>> = (0..p.leaves as u16).map(|leaf| vec![leaf]).collect();
        let spine = Routes::regular(attachment.clone(), 0, &down, &[]);
        routes.extend(std::iter::repeat_n(spine, p.spines as usize));
        routes
    });
    Ok(Topology { is_regular: true, ..topology })
}

fn check(p: &LeafSpineParams) -> Result<(), Vec<Fault>> {
    let mut checks = Checks::default();
    checks.at_least_one(p.leaves, "leaves");
    checks.at_least_one(p.spines, "spines");
    checks.at_least_one(p.hosts_per_leaf, "hosts-per-leaf");
    checks.leaves(p.leaves as u64, "leaves");
    checks.ports(p.hosts_per_leaf as u64 + p.spines as u64, "hosts-per-leaf");
    checks.links(p.leaves as u64 * (p.hosts_per_leaf as u64 + p.spines as u64), "leaves");
    checks.of_links(p);
    checks.done()
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;

    #[test]
    fn ports_and_routes_are_numbered_from_the_hosts_up() {
        let t = build(&LeafSpineParams {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 4,
            ..Default::default()
        })
        .unwrap();
        assert_eq!((t.hosts, t.switches.len(), t.links.len(), t.leaves()), (12, 5, 12 + 6, 3));
        assert_eq!(t.links[5].a, End::Host(5));
        assert_eq!(t.links[5].b, End::Switch { switch: 1, port: 1 });
        assert_eq!(t.routes[0].towards(5), &[4, 5]);
        assert_eq!(t.routes[1].towards(5), &[1]);
        assert_eq!(t.routes[3].towards(5), &[1]);
        let up = &t.links[t.link_at(2, 5) as usize];
        assert_eq!(
            (up.a, up.b),
            (End::Switch { switch: 2, port: 5 }, End::Switch { switch: 4, port: 2 })
        );
        assert_eq!(t.fabric_capacity(), 6 * 40_000_000_000);
        assert!(t.is_multipath());
    }

    #[test]
    fn impossible_numbers_are_all_named() {
        let bad =
            LeafSpineParams { leaves: 0, spines: 0, hosts_per_leaf: 70_000, ..Default::default() };
        let faults = build(&bad).unwrap_err();
        assert_eq!(
            faults.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(),
            ["leaves", "spines", "hosts-per-leaf"]
        );
    }
}
