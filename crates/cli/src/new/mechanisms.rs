//! The mechanisms that `millpond new` offers, where they fit, and what a variant sets for them.

use super::answers::{Mechanism, Network, Topology, Transport, mechanisms, transports, unknown};

impl Mechanism {
    /// Why it does not fit, if it does not.
    pub fn refuses(&self, topology: &Topology, transport: &Transport) -> Option<String> {
        if !self.families.contains(&transport.family) {
            let fits = transports().iter().filter(|one| self.families.contains(&one.family));
            let kinds: Vec<&str> = fits.map(|one| &*one.kind).collect();
            let kinds = kinds.join(", ");
            return Some(format!("needs one of the transports {kinds} (got {})", transport.kind));
        }
        let is_leaf_spine = topology.kind() == "leaf-spine";
        let has_several_nics = topology.kind() == "rail-optimised";
        match self.network {
            Some(Network::OneNic) if has_several_nics => {
                Some(format!("needs hosts with one NIC (got {})", topology.kind()))
            }
            Some(Network::Paths) if !topology.has_paths() => Some(format!(
                "needs several paths: leaf-spine or fat-tree (got {})",
                topology.kind()
            )),
            Some(Network::LeafSpine) if !is_leaf_spine => {
                Some(format!("needs a leaf-spine (got {})", topology.kind()))
            }
            _ => None,
        }
    }
}

pub fn fitting(topology: &Topology, transport: &Transport) -> Vec<&'static Mechanism> {
    mechanisms()
        .iter()
        .filter(|mechanism| mechanism.refuses(topology, transport).is_none())
        .collect()
}

/// Names of mechanisms, each once; `none` alone means none.
pub fn chosen(
    text: &str,
    topology: &Topology,
    transport: &Transport,
) -> Result<Vec<&'static Mechanism>, String> {
    let fitting = fitting(topology, transport);
    let mut chosen: Vec<&'static Mechanism> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none") {
        let known = mechanisms().iter().find(|mechanism| mechanism.name == name);
        let Some(known) = known else {
            return Err(unknown("mechanism", name, fitting.iter().map(|one| &*one.name)));
        };
        if let Some(why) = known.refuses(topology, transport) {
            let names: Vec<&str> = fitting.iter().map(|one| &*one.name).chain(["none"]).collect();
            return Err(format!("mechanism `{name}` {why}; here: {}", names.join(", ")));
        }
        if !chosen.iter().any(|other| other.name == known.name) {
            chosen.push(known);
        }
    }
    Ok(chosen)
}
