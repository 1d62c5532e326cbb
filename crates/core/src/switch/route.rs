//! Routes: the ports on shortest paths from a switch to a host, looked up in three small reads.
//!
//! A host is reached through the switch that it hangs on (its leaf), so a switch keeps one entry a leaf, not one a host:
//! the port group towards that leaf. At the leaf itself the host's own port is the answer.

use crate::packet::HostId;
use std::sync::Arc;

/// Where each host hangs; one table for the whole network.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// By host: (the leaf's number among all switches with hosts, the port there).
    pub hosts: Vec<(u16, u16)>,
}

/// One switch's routes.
#[derive(Clone, Debug)]
pub struct Routes {
    attachment: Arc<Attachment>,
    /// This switch's own leaf number, or `u16::MAX` if no host hangs on it.
    own_leaf: u16,
    /// By leaf: which group leads there.
    group_of_leaf: Vec<u16>,
    /// By group: `[from, to)` in `ports`.
    groups: Vec<(u32, u32)>,
    ports: Vec<u16>,
}

impl Routes {
    /// Builds the table from the ports towards each leaf, in ascending order each; an empty list means "unreachable".
    pub fn new(attachment: Arc<Attachment>, own_leaf: Option<u16>, towards: &[Vec<u16>]) -> Routes {
        let mut routes = Routes {
            attachment,
            own_leaf: own_leaf.unwrap_or(u16::MAX),
            group_of_leaf: Vec::with_capacity(towards.len()),
            groups: Vec::new(),
            ports: Vec::new(),
        };
        let mut known: std::collections::BTreeMap<&[u16], u16> = std::collections::BTreeMap::new();
        for ports in towards {
            let next = known.len() as u16;
            let group = *known.entry(ports).or_insert(next);
            if group == next {
                let from = routes.ports.len() as u32;
                routes.ports.extend_from_slice(ports);
                routes.groups.push((from, routes.ports.len() as u32));
            }
            routes.group_of_leaf.push(group);
        }
        routes
    }

    /// The ports on shortest paths to `host`.
    #[inline]
    pub fn towards(&self, host: HostId) -> &[u16] {
        let (leaf, port) = &self.attachment.hosts[host as usize];
        if *leaf == self.own_leaf {
            return std::slice::from_ref(port);
        }
        let (from, to) = self.groups[self.group_of_leaf[*leaf as usize] as usize];
        &self.ports[from as usize..to as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_hosts_by_port_and_others_by_group() {
        let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (0, 1), (1, 0), (2, 0)] });
        let routes = Routes::new(attachment, Some(0), &[vec![], vec![2, 3], vec![2, 3]]);
        assert_eq!(routes.towards(1), &[1]);
        assert_eq!(routes.towards(2), &[2, 3]);
        assert_eq!(routes.towards(3), &[2, 3]);
        assert_eq!(routes.groups.len(), 2);
    }
}
