//! `import hpcc`: the configuration, topology and flow files of HPCC's released simulator (alibaba-edu), and of its forks
//! by TLT, ConWeave and SimAI, made a scenario.
//!
//! | file | what |
//! |---|---|
//! | `keys` | the table of all keys of all forks |
//! | `config` | a configuration, with what became of each of its keys |
//! | `fork` | which fork's it is, and the constants of its program |
//! | `topology`, `flows` | the files that it names |
//! | `round_trip` | the longest round trip of the network |
//! | `workload` | the flows that TLT's fork draws itself |
//! | `switches` | marking, buffers, pauses and paths |
//! | `transport` | the table of the transport's keys, theirs and ours |

mod config;
mod flows;
mod fork;
mod keys;
mod round_trip;
mod switches;
mod topology;
mod transport;
mod workload;

use std::path::Path;

use millpond_core::Time;

use crate::source::Source;
use crate::{Imported, Result, units};
use config::Config;
use fork::Fork;
use topology::Topology;

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
        transport::tables(&config, fork, &topology.network, payload)
    );
    scenario += &failures(&config, fork, &topology, begin)?;
    imported.facts.extend(differences(&config, fork));
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

/// What no key says and is not the same here.
fn differences(config: &Config, fork: Fork) -> Vec<String> {
    let is_on = |key: &str| config.whole(key).unwrap_or(0) != 0;
    let mut facts = Vec::new();
    if fork == Fork::Hpcc {
        let text = "there nothing is sent again but for a NACK, so a flow whose last packets are lost never ends; here \
                    a timer sends them again after 4ms of silence";
        facts.push(text.to_string());
    }
    if fork == Fork::Tlt && is_on("ENABLE_IRN") && is_on("ENABLE_PFC") {
        facts.push("there IRN has no timer beside PFC; here it has".to_string());
    }
    facts
}

/// Links that lose packets, and the one that goes down.
fn failures(config: &Config, fork: Fork, topology: &Topology, begin: Time) -> Result<String> {
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
        let clock = units::seconds(&format!("{:.9}", fork.links_begin(config))).unwrap_or_default();
        let at = (clock + Time::from_us(*us)).saturating_sub(begin);
        let (a, b) = (network.name(link.a), network.name(link.b));
        config.becomes("LINK_DOWN", format!("[[failure]] of {a} and {b} at {at}"));
        text += &format!("\n[[failure]]\nlink = [\"{a}\", \"{b}\"]\nat = \"{at}\"\nconverge = \"0us\"\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
