//! The share of each port of a network in the amounts that follow its tier or its link's rate: its
//! memory, and from where on it marks.
//!
//! Invariant: the amounts given here are the ones that the simulator's ports are built with, for
//! both come from [`Capacity::new`] and [`MarkingParams::threshold`].

use crate::choices::SwitchChoices;
use crate::error::Report;
use crate::host::HostPlan;
use crate::settings::{NicChoice, Settings};
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::params::{Params, Value};
use millpond_core::registry::Choice;
use millpond_core::switch::buffer::{BufferParams, Capacity, Memory};
use millpond_core::switch::marking::Threshold;
use millpond_core::switch::site::{OTHERS, PortSite, tier_of};
use millpond_core::{Bytes, Rate};
use std::collections::BTreeSet;

/// The ports of one tier whose links have one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct PortKind {
    /// "leaf", "spine", "edge", "agg"; "tier 2" where the switches of a tier have no common name.
    pub tier: String,
    pub rate: Rate,
    /// The same with their tier's number, for rules that follow them.
    pub site: PortSite,
    pub count: usize,
    /// The most that one can hold, all others being empty.
    pub capacity: Capacity,
    /// From where on one marks; `None`: never.
    pub threshold: Option<Threshold>,
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ports of {}: ", self.tier, self.rate)?;
        match (self.capacity.bytes, self.capacity.packets) {
            (u64::MAX, u32::MAX) => f.write_str("unlimited")?,
            (bytes, u32::MAX) => write!(f, "up to {}", Bytes(bytes))?,
            (u64::MAX, packets) => write!(f, "up to {packets} packets")?,
            (bytes, packets) => write!(f, "up to {} and {packets} packets", Bytes(bytes))?,
        }
        match self.threshold {
            None => Ok(()),
            Some(Threshold::Packets(packets)) => write!(f, ", CE from {packets} packets on"),
            Some(Threshold::Bytes(bytes)) => write!(f, ", CE from {bytes} on"),
            Some(Threshold::Average(bytes)) => write!(f, ", CE from an average of {bytes} on"),
        }
    }
}

/// All kinds of ports of a network's switches, tier by tier, slow ones first. `facts`: of a switch,
/// by its number.
pub(crate) fn kinds(topology: &Topology, host: &HostPlan, of: &SwitchChoices) -> Vec<PortKind> {
    let (buffer, pauses) = (&of.buffer, of.pause.kind() != "none");
    let mut kinds: Vec<(u8, PortKind)> = Vec::new();
    for (index, switch) in topology.switches.iter().enumerate() {
        let facts = host.switch_facts(topology, index, pauses);
        let memory = Memory::new(buffer, &facts);
        for (rate, _) in &facts.links {
            let site = PortSite { rate: *rate, tier: switch.tier, packet_max: facts.packet_max };
            let own = Capacity::new(buffer, &site);
            // Ports of their own memory share none.
            let capacity =
                if matches!(buffer, BufferParams::PerPort(_)) { own } else { memory.reach(own) };
            let threshold = of.marking.threshold(&site, capacity);
            let same = |(tier, kind): &&mut (u8, PortKind)| {
                (*tier, kind.rate, kind.capacity, kind.threshold)
                    == (switch.tier, *rate, capacity, threshold)
            };
            match kinds.iter_mut().find(same) {
                Some((_, kind)) => kind.count += 1,
                None => {
                    let tier = tier_name(topology, switch.tier);
                    kinds.push((
                        switch.tier,
                        PortKind { tier, rate: *rate, site, count: 1, capacity, threshold },
                    ));
                }
            }
        }
    }
    kinds.sort_by_key(|(tier, kind)| (*tier, kind.rate));
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

/// The name of a tier's switches.
fn tier_name(topology: &Topology, tier: u8) -> String {
    let of_tier = topology.switches.iter().filter(|switch| switch.tier == tier);
    let names: BTreeSet<&str> =
        of_tier.map(|switch| switch.name.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    match names.first() {
        Some(name) if names.len() == 1 && !name.is_empty() => name.to_string(),
        _ => format!("tier {tier}"),
    }
}

/// The tiers and rates of the ports that a table can name.
struct There {
    tiers: BTreeSet<u8>,
    rates: BTreeSet<Rate>,
}

/// Checks what takes the network's tiers and rates.
pub(crate) fn check(s: &Settings, topology: &Topology, host: &HostPlan, report: &mut Report) {
    let there = There {
        tiers: topology.switches.iter().map(|switch| switch.tier).collect(),
        rates: topology.links.iter().map(|link| link.rate).collect(),
    };
    amounts(s, s.switch.buffer.params(), "switch.buffer", &there, report);
    amounts(s, s.switch.marking.params(), "switch.marking", &there, report);
    // A NIC counts as a port of the lowest tier.
    let nic = There {
        tiers: BTreeSet::from([0]),
        rates: topology.host_links().iter().map(|link| link.rate).collect(),
    };
    if let NicChoice::Own(buffer) = &s.nic.buffer {
        amounts(s, buffer.params(), "host.nic.buffer", &nic, report);
    }
    if let NicChoice::Own(marking) = &s.nic.marking {
        amounts(s, marking.params(), "host.nic.marking", &nic, report);
    }
    let transports = s.traffic.iter().map(|t| t.transport.as_ref().unwrap_or(&s.transport_kind));
    if transports.into_iter().any(TransportKind::declares_ecn) {
        reach(s, topology, host, report);
    }
}

/// Tiers that the network lacks, and a `per` that scales nothing. Where no key goes by tier it
/// scales the amounts that the mechanism's page names, written or not.
fn amounts(s: &Settings, params: &dyn Params, path: &str, there: &There, report: &mut Report) {
    let mut scalable = Vec::new();
    for (index, key) in params.keys().iter().enumerate().filter(|(_, key)| key.tiered) {
        let key = format!("{path}.{}", key.name());
        if let Value::Tiers(named) = params.get(index) {
            let is_there = |name: &str| match (tier_of(name), name.parse::<Rate>()) {
                (Some(tier), _) => there.tiers.contains(&tier),
                (None, Ok(rate)) => there.rates.contains(&rate),
                (None, Err(_)) => name == OTHERS,
            };
            if let Some((name, _)) = named.iter().find(|(name, _)| !is_there(name)) {
                let what = if tier_of(name).is_some() { "no tier" } else { "no link of" };
                report.wrong(&key, format!("the network has {what} {name:?}"));
            }
        }
        scalable.push(key);
    }
    let per = params.keys().iter().position(|key| key.field == "per");
    let scales_nothing = !scalable.is_empty() && !scalable.iter().any(|key| s.is_written(key));
    if per.is_some_and(|per| params.get(per) != Value::Off) && scales_nothing {
        let key = format!("{path}.per");
        let keys: Vec<&str> = scalable.iter().map(|key| &key[path.len() + 1..]).collect();
        report.wrong(&key, format!("scales what is written; write {} as well", keys.join(" or ")));
    }
}

/// Ports that full packets fill before one is marked.
fn reach(s: &Settings, topology: &Topology, host: &HostPlan, report: &mut Report) {
    let (packet_max, marking) = (host.packet_max(), &s.switch.marking);
    for kind in kinds(topology, host, &s.switch) {
        let held = (kind.capacity.bytes / packet_max.max(1)).min(u64::from(kind.capacity.packets));
        let is_reached = match kind.threshold {
            Some(Threshold::Packets(packets)) => u64::from(packets) <= held,
            Some(Threshold::Bytes(bytes) | Threshold::Average(bytes)) => {
                bytes.get() <= held.saturating_mul(packet_max)
            }
            None => true,
        };
        if !is_reached {
            let by = marking.kind();
            report.warn(format!(
                "switch.marking \"{by}\" marks no full queue of {kind}: full packets overflow \
                 first"
            ));
        }
    }
}
