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

    /// The same routes with other ports towards some leaves: `changes` has each leaf once. Only the
    /// groups that change are written, so it costs no more than a copy of the table.
    pub fn amended(&self, changes: &[(u16, Vec<u16>)]) -> Routes {
        let mut routes = self.clone();
        let mut users = vec![0u32; routes.groups.len()];
        routes.group_of_leaf.iter().for_each(|group| users[*group as usize] += 1);
        changes.iter().for_each(|(leaf, _)| users[routes.group_of_leaf[*leaf as usize] as usize] -= 1);
        // Numbers that nobody uses any more come first: there are no more of them than of leaves.
        let mut free = (0..users.len()).filter(|group| users[*group] == 0);
        let mut known: std::collections::BTreeMap<&[u16], u16> = std::collections::BTreeMap::new();
        for (leaf, ports) in changes {
            let group = *known.entry(ports).or_insert_with(|| {
                let from = routes.ports.len() as u32;
                routes.ports.extend_from_slice(ports);
                let range = (from, routes.ports.len() as u32);
                let Some(group) = free.next() else {
                    routes.groups.push(range);
                    return (routes.groups.len() - 1) as u16;
                };
                routes.groups[group] = range;
                group as u16
            });
            routes.group_of_leaf[*leaf as usize] = group;
        }
        routes
    }

    /// The ports on shortest paths to another leaf, by its number among the switches with hosts.
    #[inline]
    pub fn towards_leaf(&self, leaf: u16) -> &[u16] {
        let (from, to) = self.groups[self.group_of_leaf[leaf as usize] as usize];
        &self.ports[from as usize..to as usize]
    }

    /// The ports on shortest paths to `host`.
    #[inline]
    pub fn towards(&self, host: HostId) -> &[u16] {
        let (leaf, port) = &self.attachment.hosts[host as usize];
        if *leaf == self.own_leaf {
            return std::slice::from_ref(port);
        }
        self.towards_leaf(*leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amended_routes_change_where_they_are_told_to() {
        let attachment = Arc::new(Attachment { hosts: (0..5).map(|leaf| (leaf, 0)).collect() });
        let lists = [vec![], vec![2, 3], vec![2, 3], vec![4], vec![2, 3]];
        let routes = Routes::new(attachment, Some(0), &lists);
        let amended = routes.amended(&[(1, vec![3]), (3, vec![]), (4, vec![3])]);
        let of = |routes: &Routes| [1, 2, 3, 4].map(|leaf| routes.towards(leaf).to_vec());
        assert_eq!(of(&amended), [vec![3], vec![2, 3], vec![], vec![3]]);
        assert_eq!(of(&routes), [vec![2, 3], vec![2, 3], vec![4], vec![2, 3]], "a new table");
        assert_eq!(amended.towards(0), &[0]);
        // However many change, the numbers of groups do not run out.
        assert_eq!(amended.groups.len(), 4);
        let all = routes.amended(&[(1, vec![5]), (2, vec![6]), (3, vec![7]), (4, vec![8])]);
        assert_eq!((of(&all), all.groups.len()), ([vec![5], vec![6], vec![7], vec![8]], 5));
    }

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
