//! `import htsim`: connection matrices (`.cm`) and topologies (`.topo`) of htsim as Broadcom
//! releases it.
//!
//! A matrix lists which node sends how much to which other, and when: at a time, or when a trigger
//! fires. Triggers are activated by flows that are done, so they become `after` in the list of
//! flows. The files lack transports and queues, which are arguments of htsim's programs.

mod matrix;
mod topology;

use std::path::Path;

use crate::source::Source;
use crate::{Fate, Imported, Result, program};

/// Reads a connection matrix, and a topology if there is one. Without a topology, htsim's default
/// fat tree carries the matrix.
///
/// # Errors
/// [`Unread`](crate::Error::Unread) if a file cannot be read, [`Wrong`](crate::Error::Wrong) with
/// file and line if it has a syntax error or contradicts itself.
pub fn import(matrix: &Path, topology: Option<&Path>) -> Result<Imported> {
    let name =
        matrix.file_stem().map_or("htsim".into(), |stem| stem.to_string_lossy().into_owned());
    let topology = topology.map(Source::read).transpose()?;
    of(&name, &Source::read(matrix)?, topology.as_ref())
}

fn of(name: &str, matrix: &Source, topology: Option<&Source>) -> Result<Imported> {
    let mut imported = Imported::default();
    let matrix = matrix::read(matrix, &mut imported)?;
    let mut scenario = format!(
        "# Imported from a connection matrix of htsim.\nname = {name:?}\nuntil = \
         \"flows-complete\"\n"
    );
    if let Some(duration) = matrix.duration {
        scenario += &format!("duration = \"{duration}\"\n");
    }
    let fabric = match topology {
        Some(source) => Some(topology::read(source, matrix.nodes, &mut imported)?),
        None => {
            let k = topology::default_fat_tree(&matrix)?;
            imported.facts.push(format!(
                "no topology file: htsim's default, a fat tree of k = {k} with links of 100Gbps \
                 and 1us"
            ));
            // Which aggregation switch leads to which core is htsim's own: a failure names both.
            if matrix.failures.is_empty() {
                scenario += &format!(
                    "\n[topology]\nkind = \"fat-tree\"\nk = {k}\nhost-link = {{ rate = \
                     \"100Gbps\", delay = \"1us\" }}\nfabric-link = {{ rate = \"100Gbps\", delay \
                     = \"1us\" }}\n"
                );
                None
            } else {
                Some(topology::fat_tree(k))
            }
        }
    };
    if let Some(fabric) = &fabric {
        scenario += &format!("\n[topology]\nkind = \"file\"\npath = \"{name}-topology.json\"\n");
        if let Some(buffer) = &fabric.buffer {
            scenario += &format!("\n[switch]\n{buffer}\n");
        }
    }
    if matrix.is_empty {
        imported.facts.extend(program::COMPLETES.map(String::from));
    } else {
        imported.files.push((format!("{name}-flows.csv"), matrix.csv));
        scenario += "\n[[traffic]]\nname = \"matrix\"\nkind = \"flows\"\n";
        scenario += &format!("file = \"{name}-flows.csv\"\n");
    }
    for (failure, text) in &matrix.failures {
        let Some(fabric) = &fabric else { continue };
        scenario += &format!("\n{}at = \"0us\"\nconverge = \"0us\"\n", fabric.failing(*failure)?);
        imported.record(
            failure.line,
            text.clone(),
            Fate::Becomes("[[failure]] of that link, from the beginning on".into()),
        );
    }
    let by_arguments = match fabric.as_ref().is_some_and(|fabric| fabric.buffer.is_some()) {
        true => "transport and marking are",
        false => "transport, marking and buffers are",
    };
    imported.facts.push(format!(
        "{by_arguments} arguments of htsim's programs: the scenario has the defaults"
    ));
    imported.files.insert(0, (format!("{name}.toml"), scenario));
    if let Some(fabric) = fabric {
        imported.files.push((format!("{name}-topology.json"), fabric.network.json()));
    }
    Ok(imported)
}

#[cfg(test)]
mod tests;
