//! One switch with all hosts on it.

use super::builder::{Builder, Checks};
use super::{Fault, Topology};
use crate::settings::topology::SingleSwitchParams;
use millpond_core::switch::route::Routes;

pub(super) fn build(p: &SingleSwitchParams) -> Result<Topology, Vec<Fault>> {
    let mut checks = Checks::default();
    checks
        .require(p.hosts >= 2, "hosts", || format!("{} is too few to talk to each other", p.hosts));
    checks.ports(p.hosts as u64, "hosts");
    checks.of_links(p);
    checks.done()?;
    let mut net = Builder::default();
    net.switch("switch0".into(), 0, Some(0), p.hosts);
    for port in 0..p.hosts {
        net.host(0, port, p.host_link_rate, p.host_link_delay);
    }
    Ok(net.finish(|attachment| vec![Routes::new(attachment.clone(), Some(0), &[vec![]])]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_ports() {
        let t = build(&SingleSwitchParams { hosts: 5, ..Default::default() }).unwrap();
        assert_eq!((t.hosts, t.switches.len(), t.links.len()), (5, 1, 5));
        assert_eq!(t.routes[0].towards(3), &[3]);
        assert_eq!(t.fabric_capacity(), 0);
        assert!(!t.is_multipath());
        assert!(build(&SingleSwitchParams { hosts: 1, ..Default::default() }).is_err());
    }
}
