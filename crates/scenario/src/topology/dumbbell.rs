//! Two switches with one link between them: the classic bottleneck.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::DumbbellParams;
use millpond_core::switch::route::Routes;

pub(super) fn build(p: &DumbbellParams) -> Result<Topology, Vec<Fault>> {
    let n = p.hosts_per_side;
    let mut checks = Checks::default();
    checks.at_least_one(n, "hosts-per-side");
    checks.ports(n as u64 + 1, "hosts-per-side");
    checks.of_links(p);
    checks.done()?;
    let mut net = Builder::default();
    for side in 0..2 {
        net.switch(format!("switch{side}"), 0, Some(side), n + 1);
    }
    for side in 0..2 {
        for port in 0..n {
            net.host(side, port, p.host_link_rate, p.host_link_delay);
        }
    }
    net.connect((0, n), (1, n), p.bottleneck_rate, p.bottleneck_delay);
    let across = vec![n as u16];
    Ok(net.finish(|attachment| {
        vec![
            Routes::new(attachment.clone(), Some(0), &[vec![], across.clone()]),
            Routes::new(attachment.clone(), Some(1), &[across, vec![]]),
        ]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_hosts_reach_right_ones_across_the_bottleneck() {
        let t = build(&DumbbellParams { hosts_per_side: 3, ..Default::default() }).unwrap();
        assert_eq!((t.hosts, t.switches.len(), t.links.len(), t.leaves()), (6, 2, 7, 2));
        assert_eq!(t.routes[0].towards(4), &[3]);
        assert_eq!(t.routes[1].towards(4), &[1]);
        // Each side's uplink counts once, as each leaf's does in a leaf-spine.
        assert_eq!(t.fabric_capacity(), 20_000_000_000);
    }
}
