//! `import hpcc`: the configuration, topology and flow files of HPCC's released simulator (alibaba-edu), and of its forks
//! by TLT, ConWeave and SimAI, made a scenario.
//!
//! | file | what |
//! |---|---|
//! | `keys` | the table of all keys of all forks |
//! | `config` | a configuration, with what became of each of its keys |
//! | `topology`, `flows` | the files that it names |
//! | `workload` | the flows that TLT's fork draws itself |
//! | `switches` | marking, buffers, pauses and paths |
//! | `transport` | the table of the transport's keys, theirs and ours |

mod config;
mod flows;
mod keys;
mod switches;
mod topology;
mod transport;
mod workload;

use std::path::Path;

use millpond_core::Time;

use crate::source::Source;
use crate::{Imported, Result, units};
use config::Config;
use topology::Topology;

/// Whose configuration it is. Constants that are in the programs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fork {
    Hpcc,
    Tlt,
    ConWeave,
    SimAi,
}

impl Fork {
    fn of(config: &Config) -> Fork {
        match () {
            () if config.word("HPCC_WORKLOAD").is_some() => Fork::Tlt,
            () if config.word("LB_MODE").is_some() || config.word("FLOWGEN_START_TIME").is_some() => Fork::ConWeave,
            () if config.word("MON_START").is_some() || config.word("QP_MON_INTERVAL").is_some() => Fork::SimAi,
            () => Fork::Hpcc,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Fork::Hpcc => "HPCC's released simulator",
            Fork::Tlt => "TLT's fork of HPCC's simulator",
            Fork::ConWeave => "ConWeave's fork of HPCC's simulator",
            Fork::SimAi => "SimAI's fork of HPCC's simulator",
        }
    }
}

/// Reads a configuration and the files that it names.
pub fn import(config: &Path) -> Result<Imported> {
    let stem = config.file_stem().map_or("hpcc".into(), |stem| stem.to_string_lossy().into_owned());
    of(&stem, Config::read(Source::read(config)?)?)
}

fn of(name: &str, config: Config) -> Result<Imported> {
    let fork = Fork::of(&config);
    let mut imported = Imported { facts: vec![format!("a configuration of {}", fork.name())], ..Imported::default() };
    let topology = topology::read(&config.file("TOPOLOGY_FILE")?)?;
    config.becomes("TOPOLOGY_FILE", format!("{name}-topology.json"));
    imported.facts.push(topology.network.fact());
    if topology.left_out > 0 {
        imported.facts.push(format!(
            "{} links to NVSwitches are left out: no flow goes between hosts that share one",
            topology.left_out
        ));
    }
    let payload = config.whole("PACKET_PAYLOAD_SIZE").filter(|bytes| *bytes > 0).unwrap_or(1000);
    config.becomes("PACKET_PAYLOAD_SIZE", format!("host.mss = {payload}"));
    let mut files = Vec::new();
    let (traffic, begin) = if fork == Fork::Tlt {
        let (text, sizes) = workload::read(&config, &topology, payload, name, &mut imported)?;
        files.push((format!("{name}-sizes.txt"), sizes));
        (text, Time::ZERO)
    } else {
        let flows = flows::read(&config.file("FLOW_FILE")?, &topology, &mut imported)?;
        if flows.several_groups {
            config.missing("FLOW_FILE", "its flows have several priority groups; here all have one priority");
        } else {
            config.becomes("FLOW_FILE", format!("{name}-flows.csv"));
        }
        config.unused("LOAD", "the flow file has the flows");
        files.push((format!("{name}-flows.csv"), flows.csv));
        let text = format!("[[traffic]]\nname = \"flows\"\nkind = \"flows\"\nfile = \"{name}-flows.csv\"\n");
        (text, flows.begin)
    };
    let mut scenario = format!("# Imported from a configuration of {}.\nname = {name:?}\n", fork.name());
    scenario += &run(&config, begin);
    scenario += &format!("\n[topology]\nkind = \"file\"\npath = \"{name}-topology.json\"\n");
    // Theirs have 48 bytes of headers on the wire; a host's link has no jitter.
    scenario += &format!("\n[host]\nmtu = {}\nmss = {payload}\nframe-overhead = 8\njitter = \"off\"\n", payload + 40);
    scenario += &format!(
        "\n{}\n{}\n{traffic}",
        switches::table(&config, fork, &topology)?,
        transport::tables(&config, fork, payload)
    );
    scenario += &failures(&config, &topology, begin)?;
    imported.files.push((format!("{name}.toml"), scenario));
    imported.files.extend(files);
    imported.files.push((format!("{name}-topology.json"), topology.network.json()));
    imported.told.extend(config.told());
    Ok(imported)
}

/// The keys outside of tables: how long, and the seed.
fn run(config: &Config, begin: Time) -> String {
    let mut text = String::from("until = \"flows-complete\"\n");
    if let Some(stop) = config.word("SIMULATOR_STOP_TIME") {
        match units::seconds(stop).map(|stop| stop.saturating_sub(begin)) {
            Some(duration) if duration > Time::ZERO => {
                config.becomes("SIMULATOR_STOP_TIME", format!("duration = \"{duration}\", from the first flow on"));
                text += &format!("duration = \"{duration}\"\n");
            }
            _ => config.becomes("SIMULATOR_STOP_TIME", "the run ends with the last flow"),
        }
    }
    if let Some(seed) = config.whole("RANDOM_SEED") {
        config.becomes("RANDOM_SEED", format!("seed = {seed}; what is drawn with it is not what is drawn there"));
        text += &format!("seed = {seed}\n");
    }
    text
}

/// Links that lose packets, and the one that goes down.
fn failures(config: &Config, topology: &Topology, begin: Time) -> Result<String> {
    let network = &topology.network;
    let mut text = String::new();
    let all = config.number("ERROR_RATE_PER_LINK").unwrap_or(0.0);
    if all > 1.0 {
        return Err(config
            .source
            .wrong(config.line("ERROR_RATE_PER_LINK"), format!("{all} is not a share, from 0 to 1")));
    }
    config.becomes(
        "ERROR_RATE_PER_LINK",
        if all > 0.0 { "[[failure]] of every link, with its loss" } else { "no link loses packets" },
    );
    let mut lossy: Vec<(String, String, f64)> = Vec::new();
    for link in &network.links {
        let loss = if link.loss > 0.0 { link.loss } else { all };
        let (a, b) = (network.name(link.a), network.name(link.b));
        // Parallel links fail together.
        if loss > 0.0 && !lossy.iter().any(|other| other.0 == a && other.1 == b) {
            lossy.push((a, b, loss));
        }
    }
    for (a, b, loss) in lossy {
        text += &format!("\n[[failure]]\nlink = [\"{a}\", \"{b}\"]\nat = \"0us\"\nloss = {loss:?}\n");
    }
    if let Some([us, a, b]) = config.numbers("LINK_DOWN").as_deref() {
        if *us == 0 {
            config.becomes("LINK_DOWN", "no link goes down");
            return Ok(text);
        }
        let link = network.links.iter().find(|link| {
            let ends = (u64::from(link.a), u64::from(link.b));
            ends == (*a, *b) || ends == (*b, *a)
        });
        let line = config.line("LINK_DOWN");
        let link = link.ok_or_else(|| config.source.wrong(line, format!("there is no link between {a} and {b}")))?;
        // Their clock of links begins at two seconds.
        let at = (Time::from_s(2) + Time::from_us(*us)).saturating_sub(begin);
        let (a, b) = (network.name(link.a), network.name(link.b));
        config.becomes("LINK_DOWN", format!("[[failure]] of {a} and {b} at {at}"));
        text += &format!("\n[[failure]]\nlink = [\"{a}\", \"{b}\"]\nat = \"{at}\"\nconverge = \"0us\"\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
