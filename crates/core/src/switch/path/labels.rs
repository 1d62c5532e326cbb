//! Labels: the next hop follows the label that the sending edge has written, and nothing else.
//!
//! Presto (SIGCOMM 2015, section 3.1): a controller installs an entry for each label and leaf, as
//! for any other layer-2 address. The label stands in [`Packet::entropy`], the field by which a
//! fabric distinguishes flows. A port that is known to be down has its traffic moved to the next
//! one that is not (the switch's fast failover), without the edge. A packet that
//! would go back to where it came from has been moved so; it takes the next port, too.
//!
//! Invariant: with all links up, packets of one label and destination leave by one port.

use super::{Choice, Chooses, Facts};
use crate::context::Context;
use crate::edge::controller::Entries;
use crate::packet::{HostId, Packet};
use crate::registry::{About, Signal};
use crate::switch::route::Attachment;
use std::sync::Arc;

pub(super) const ABOUT: About = About {
    summary: "the label that the sending edge has written picks the port",
    source: "He et al.: Presto: Edge-based Load Balancing for Fast Datacenter Networks, SIGCOMM \
             2015, section 3.1",
    reads: &[Signal::Labels, Signal::Paths],
    ..About::PLAIN
};

crate::params! {
    /// Forwarding by label has no keys.
    pub struct LabelsParams {}
}

/// The labels that the controller has installed at a switch.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    attachment: Arc<Attachment>,
    entries: Entries,
}

impl Labels {
    pub(super) fn new(_: &LabelsParams) -> Labels {
        Labels::default()
    }
    /// The controller's entries for this switch.
    pub fn follow(&mut self, entries: Entries) {
        self.entries = entries;
    }
    /// The place among `candidates` that the label names; without an entry for it, one that it
    /// always names.
    #[inline]
    fn place(&self, candidates: &[u16], label: u32, dst: HostId) -> usize {
        let leaf = self.attachment.hosts.get(dst as usize).map_or(0, |(leaf, _)| *leaf);
        let place = candidates.binary_search(&self.entries.port(label, leaf));
        place.unwrap_or(label as usize % candidates.len())
    }
}

impl Chooses for Labels {
    fn follows_labels(&self) -> bool {
        true
    }
    /// The label's port, or the next of the candidates that may be taken.
    fn failover(&self, candidates: &[u16], packet: &Packet, dead: &[u16]) -> Option<u16> {
        let place = self.place(candidates, packet.entropy, packet.dst);
        let mut ports = candidates.iter().cycle().skip(place).take(candidates.len());
        ports.find(|port| !dead.contains(port) && **port != packet.ingress).copied()
    }
    fn install(&mut self, facts: &Facts<'_>) {
        self.attachment = facts.attachment.clone();
    }

    #[inline]
    fn choose(&mut self, context: &mut Context<'_, Choice<'_>>) -> u16 {
        let (packet, Choice { candidates, .. }) = (context.packet, &context.view);
        let place = self.place(candidates, packet.entropy, packet.dst);
        let port = candidates[place];
        if port == packet.ingress { candidates[(place + 1) % candidates.len()] } else { port }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use super::super::tests::choose_at;
    use super::*;
    use crate::edge::controller::{FabricLink, Network};
    use crate::units::Rate;

    fn labels() -> Labels {
        let mut labels = Labels::new(&LabelsParams {});
        let attachment = Arc::new(Attachment { hosts: vec![(0, 0), (1, 0), (2, 0)] });
        // Three leaves and three spines, seen from leaf 0 with its uplinks at 4, 5, 6.
        let ways = (0..3u32).flat_map(|leaf| (0..3u32).map(move |spine| (leaf, spine)));
        let link = |(leaf, spine): (u32, u32)| FabricLink {
            ends: [(leaf, 4 + spine as u16), (3 + spine, leaf as u16)],
            rate: Rate::from_gbps(10),
        };
        let network = Network { leaves: 3, switches: 6, links: ways.map(link).collect() };
        labels.install(&Facts { attachment: &attachment, rates: &[] });
        labels.follow(network.entries(&network.trees()).swap_remove(0));
        labels
    }
    fn choose(labels: &mut Labels, label: u32, dst: HostId, ingress: u16) -> u16 {
        let packet = Packet { entropy: label, dst, ingress, ..Packet::default() };
        choose_at(labels, Site { tier: 0, salt: 9 }, &[4, 5, 6], &packet)
    }

    #[test]
    fn the_label_alone_picks_the_port() {
        let mut labels = labels();
        for dst in [1, 2] {
            assert_eq!([0, 1, 2].map(|label| choose(&mut labels, label, dst, 0)), [4, 5, 6]);
        }
        assert_eq!(choose(&mut labels, 7, 1, 0), 5, "an unknown label has a port, too");
        assert_eq!(choose(&mut labels, 1, 1, 5), 6, "and none goes back");
    }

    #[test]
    fn a_dead_port_is_passed_over() {
        let labels = labels();
        let of = |label, ingress, dead: &[u16]| {
            labels.failover(
                &[4, 5, 6],
                &Packet { entropy: label, dst: 1, ingress, ..Packet::default() },
                dead,
            )
        };
        assert_eq!(of(0, 0, &[4]), Some(5));
        assert_eq!(of(1, 0, &[4]), Some(5));
        assert_eq!(of(2, 0, &[6]), Some(4));
        assert_eq!(of(0, 5, &[4]), Some(6));
        assert_eq!(of(0, 0, &[4, 5, 6]), None);
    }
}
