//! The NICs of hosts and their addresses.
//!
//! Invariant: every address belongs to one host, and a host's NICs have numbers without a gap.

use super::{LinkSite, Topology};

impl Topology {
    /// How many NICs all hosts have.
    pub fn addresses(&self) -> u32 {
        self.hosts + self.further.len() as u32
    }

    /// Whether any host has several NICs.
    pub fn has_several_nics(&self) -> bool {
        !self.further.is_empty()
    }

    #[inline]
    pub fn host_of(&self, address: u32) -> u32 {
        match address.checked_sub(self.hosts) {
            None => address,
            Some(further) => self.further[further as usize].0,
        }
    }

    /// The number of a NIC at its host.
    pub fn nic_number(&self, address: u32) -> u16 {
        address.checked_sub(self.hosts).map_or(0, |further| self.further[further as usize].1)
    }

    /// The addresses of a host's NICs, by number.
    pub fn nics(&self, host: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        let first = self.further.partition_point(|(other, _)| *other < host) as u32;
        let end = self.further.partition_point(|(other, _)| *other <= host) as u32;
        std::iter::once(host).chain(self.hosts + first..self.hosts + end)
    }

    /// The name of a NIC: "host3", and of the further NICs of that host "host3:1", "host3:2".
    pub fn nic_name(&self, address: u32) -> String {
        let host = self.host_of(address);
        match self.nic_number(address) {
            0 => format!("host{host}"),
            number => format!("host{host}:{number}"),
        }
    }

    /// The links of all NICs, by address.
    pub fn host_links(&self) -> &[LinkSite] {
        &self.links[..self.addresses() as usize]
    }

    /// Whether a packet finds a way from one NIC to another.
    pub fn connects(&self, from: u32, to: u32) -> bool {
        let (leaf, other) = (self.leaf_of(from), self.leaf_of(to));
        leaf == other || !self.routes[leaf as usize].towards_leaf(other as u16).is_empty()
    }
}
