//! `import htsim`: connection matrices (`.cm`) and topologies (`.topo`) of htsim as Broadcom releases it.
//!
//! A matrix says which node sends how much to which other, and when: at a time, or when a trigger
//! fires. Triggers are activated by flows that are done, so they become `after` in the list of
//! flows. The files say nothing of transports and queues, which are arguments of htsim's programs.

mod matrix;
mod topology;

use std::path::Path;

use crate::source::Source;
use crate::{Imported, Result};

/// Reads a matrix, and a topology if there is one.
pub fn import(matrix: &Path, topology: Option<&Path>) -> Result<Imported> {
    let name = matrix.file_stem().map_or("htsim".into(), |stem| stem.to_string_lossy().into_owned());
    let topology = topology.map(Source::read).transpose()?;
    of(&name, &Source::read(matrix)?, topology.as_ref())
}

fn of(name: &str, matrix: &Source, topology: Option<&Source>) -> Result<Imported> {
    let mut imported = Imported::default();
    let matrix = matrix::read(matrix, &mut imported)?;
    let mut scenario =
        format!("# Imported from a connection matrix of htsim.\nname = {name:?}\nuntil = \"flows-complete\"\n\n");
    let network = match topology {
        Some(source) => Some(topology::read(source, matrix.nodes, &mut imported)?),
        None => {
            let k = topology::default_fat_tree(&matrix)?;
            scenario += &format!(
                "[topology]\nkind = \"fat-tree\"\nk = {k}\nhost-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 fabric-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
            );
            imported.facts.push(format!(
                "no topology file: htsim's default, a fat tree of k = {k} with links of 100Gbps and 1us"
            ));
            None
        }
    };
    if network.is_some() {
        scenario += &format!("[topology]\nkind = \"file\"\npath = \"{name}-topology.json\"\n");
    }
    scenario += &format!("\n[[traffic]]\nname = \"matrix\"\nkind = \"flows\"\nfile = \"{name}-flows.csv\"\n");
    imported
        .facts
        .push("transport, marking and buffers are arguments of htsim's programs: the scenario has the defaults".into());
    imported.files.push((format!("{name}.toml"), scenario));
    imported.files.push((format!("{name}-flows.csv"), matrix.csv));
    if let Some(network) = network {
        imported.files.push((format!("{name}-topology.json"), network));
    }
    Ok(imported)
}

#[cfg(test)]
mod tests;
