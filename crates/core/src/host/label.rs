//! Labels: every segment that a connection's end hands down gets a label and a flowcell.
//!
//! The label goes into [`Packet::entropy`], by which the fabric distinguishes flows; the flowcell
//! into a data packet's body. A pure acknowledgement needs none, since receive offload does not
//! wait with it. The set of labels changes over time; the driver has it ([`HostWire::labels`]).
//! A flow that a central scheduler has placed has one label ([`super::Egress::pin`]).

use super::{HostWire, passes};
use crate::edge::Feedback;
use crate::edge::flowcell::{Flowcell, Opening, Rule, Stamp};
use crate::edge::plb::Plb;
use crate::packet::Packet;
use crate::random::mix64;
use crate::units::Time;

/// A host's knowledge of the ways to another.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The rule that opens a flowcell, and the order of labels.
    pub rule: &'a Rule,
    /// Whether switches follow labels. Where they hash, a hash of flow and flowcell takes a label's
    /// place (the paper's Presto + ECMP).
    pub is_followed: bool,
    /// Those that lead there; at least one.
    pub list: &'a [u16],
}

pub struct Label {
    cell: Flowcell,
    /// Of its 5-tuple.
    hash: u32,
    /// The machine that ends flowcells, if congestion does.
    plb: Option<Box<Plb>>,
    /// The label that a central scheduler has given it.
    pinned: Option<u16>,
    /// The place of the next segment's label among those of its NIC, if that is chosen.
    chosen: Option<usize>,
}

impl Label {
    /// Of a new connection; `key` is a random number of its own, `number` its first flowcell's.
    pub fn new(rule: &Rule, key: u64, hash: u32, number: u16) -> Label {
        let plb = match rule.opening {
            Opening::Congestion(rule) => Some(Box::new(Plb::new(rule, key))),
            Opening::Bytes(_) | Opening::Gap(_) => None,
        };
        Label { cell: Flowcell::new(rule, key, number), hash, plb, pinned: None, chosen: None }
    }

    /// Chooses the NIC of the next segment, which counts for so many bytes, by the path of its
    /// flowcell: one of so many NICs with so many labels each.
    pub(super) fn choose(
        &mut self,
        now: Time,
        rule: &Rule,
        bytes: u32,
        nics: usize,
        labels: usize,
    ) -> usize {
        let path = self.cell.path(now, rule, bytes, nics * labels);
        self.chosen = Some(path / nics);
        path % nics
    }

    /// Further segments go by this label; `None`: by their own.
    pub(super) fn pin(&mut self, label: Option<u16>) {
        self.pinned = label;
    }

    pub(super) fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Some(plb) = &mut self.plb
            && plb.on_feedback(now, feedback)
        {
            self.cell.end();
        }
    }

    pub(super) fn timed_out(&mut self, now: Time) {
        if let Some(plb) = &mut self.plb
            && plb.timed_out(now)
        {
            self.cell.end();
        }
    }

    /// Stamps the first packet of a segment that counts for so many bytes; the others are copied
    /// from it.
    #[inline(never)]
    pub(super) fn stamp<W: HostWire>(
        &mut self,
        now: Time,
        packet: &mut Packet,
        bytes: u32,
        wire: &mut W,
    ) {
        passes!(Label);
        let labels = wire.labels(now, packet.src, packet.dst);
        let stamp = match self.chosen.take() {
            None => self.cell.stamp(now, labels.rule, bytes, labels.list),
            Some(place) => Stamp {
                label: labels.list[place % labels.list.len()],
                flowcell: self.cell.number(),
            },
        };
        packet.entropy = match labels.is_followed {
            true => u32::from(self.pinned.unwrap_or(stamp.label)),
            false => mix64(u64::from(self.hash) << 32 | u64::from(stamp.flowcell)) as u32,
        };
        packet.set_flowcell(stamp.flowcell);
    }
}
