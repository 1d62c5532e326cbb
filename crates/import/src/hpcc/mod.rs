//! `import hpcc`: the configuration, topology and flow files of HPCC's released simulator
//! (alibaba-edu), and of its forks by TLT, ConWeave and SimAI, made a scenario.
//!
//! | file | what |
//! |---|---|
//! | `keys` | the table of all keys of all forks |
//! | `config` | a configuration, with what became of each of its keys |
//! | `guess` | what a key that is in no table probably means |
//! | `fork` | which fork's it is, and the constants of its program |
//! | `topology`, `flows` | the files that it names |
//! | `failures` | links that lose packets or go down |
//! | `round_trip` | the longest round trip of the network |
//! | `workload` | the flows that TLT's fork draws itself |
//! | `switches` | marking, buffers, pauses and paths |
//! | `transport` | the table of the transport's keys, theirs and ours |

mod config;
mod failures;
mod flows;
mod fork;
mod guess;
mod keys;
mod round_trip;
mod switches;
mod topology;
mod transport;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;

use millpond_core::Time;

use crate::network::Network;
use crate::outcome::Fate;
use crate::source::{Source, Words};
use crate::{Error, Imported, Result, program, units};
use config::Config;
use fork::Fork;
use topology::Topology;

/// Files that take the places of those that a configuration names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instead<'a> {
    pub topology: Option<&'a Path>,
    pub flows: Option<&'a Path>,
    /// A workload of SimAI, Chakra or GOAL, which replaces all flows.
    pub workload: Option<&'a Path>,
}

/// Reads a configuration and the files that it names, or others in their place.
///
/// # Errors
/// If a file cannot be read, or has a value that is none.
pub fn import(config: &Path, instead: Instead<'_>) -> Result<Imported> {
    let stem = config.file_stem().map_or("hpcc".into(), |stem| stem.to_string_lossy().into_owned());
    let mut config = Config::read(Source::read(config)?)?;
    config.instead("TOPOLOGY_FILE", instead.topology.map(Source::read).transpose()?);
    config.instead("FLOW_FILE", instead.flows.map(Source::read).transpose()?);
    of(&stem, config, instead.workload)
}

fn of(name: &str, config: Config, workload: Option<&Path>) -> Result<Imported> {
    let fork = Fork::of(&config);
    let mut imported = Imported {
        facts: vec![format!("a configuration of {}", fork.name())],
        ..Imported::default()
    };
    let source = config.file("TOPOLOGY_FILE")?;
    let mut topology = topology::read(&source, &mut imported)?;
    config.becomes("TOPOLOGY_FILE", format!("{name}-topology.json"));
    imported.facts.push(topology.network.fact());
    let payload = config.whole("PACKET_PAYLOAD_SIZE").filter(|bytes| *bytes > 0).unwrap_or(1000);
    if payload > PAYLOAD_MAX {
        let text =
            format!("{payload} bytes are no payload of a packet; {PAYLOAD_MAX} are the most");
        return config.line("PACKET_PAYLOAD_SIZE").fail(text);
    }
    config.becomes("PACKET_PAYLOAD_SIZE", format!("host.mss = {payload}"));
    let traffic = match workload {
        Some(path) => programs(name, &config, path, &mut imported)?,
        None if fork == Fork::Tlt => drawn(name, &config, &mut topology, payload, &mut imported)?,
        None => listed(name, &config, fork, &mut topology, payload, &mut imported)?,
    };
    let begin = traffic.begin;
    imported.facts.extend(about(&topology, &source));
    let mut scenario =
        format!("# Imported from a configuration of {}.\nname = {name:?}\n", fork.name());
    scenario += &run(&config, begin);
    scenario += &format!("\n[topology]\nkind = \"file\"\npath = \"{name}-topology.json\"\n");
    // Theirs have 48 bytes of headers on the wire; a host's link has no jitter.
    scenario += &format!(
        "\n[host]\nmtu = {}\nmss = {payload}\nframe-overhead = 8\njitter = \"off\"\n",
        payload + 40
    );
    scenario += &format!(
        "\n{}\n{}\n{}",
        switches::table(&config, fork, &topology)?,
        transport::tables(&config, fork, &topology.network, payload),
        traffic.table
    );
    scenario += &failures::tables(&config, fork, &topology, begin, &mut imported)?;
    imported.facts.extend(differences(&config, fork, &topology));
    imported.files.push((format!("{name}.toml"), scenario));
    imported.files.extend(traffic.file);
    imported.files.push((format!("{name}-topology.json"), topology.network.json()));
    // Keys first, then lines of the files that they name.
    let lines = std::mem::replace(&mut imported.keys, config.outcomes());
    imported.keys.extend(lines);
    Ok(imported)
}

/// More bytes than any fork sends in a packet.
const PAYLOAD_MAX: u64 = 1 << 20;

/// The facts to report of a topology file.
fn about(topology: &Topology, source: &Source) -> Vec<String> {
    let mut facts = Vec::new();
    if !topology.nvswitches.is_empty() {
        facts.push(format!(
            "{} NVSwitches are switches that the hosts of a server share: a host has a NIC there \
             and one in the network, and their ports have the thresholds of others where there are \
             none of their rate",
            topology.nvswitches.len()
        ));
    }
    if !topology.network.inner.is_empty() {
        facts.push(format!(
            "{} hosts have links to hosts, and a flow has no other way than over one of them: \
             each is read as a host that forwards, by an inner switch to which its links lead",
            topology.network.inner.len()
        ));
    }
    if topology.bare_rates > 0 {
        facts.push(format!(
            "{} rates of links have no unit: they are bit/s, as in ns-3",
            topology.bare_rates
        ));
    }
    if let Some(line) = topology.surplus {
        facts.push(format!(
            "{}:{line}: values behind a link's error rate are not read",
            source.name
        ));
    }
    facts
}

struct Traffic {
    table: String,
    /// When the first flow starts there.
    begin: Time,
    /// The name and text of the file that the table names.
    file: Option<(String, String)>,
}

/// Keys about the workload that HPCC_WORKLOAD chooses in TLT's fork.
const DRAWN: [&str; 6] = [
    "LOAD",
    "HPCC_WORKLOAD",
    "FOREGROUND_RATIO",
    "INCAST_FLOW_SIZE",
    "FOREGROUND_INCAST_FLOW_PER_HOST",
    "NUM_BG_FLOWS",
];

/// The traffic that a workload file has, in the place of flows.
fn programs(name: &str, config: &Config, path: &Path, imported: &mut Imported) -> Result<Traffic> {
    let workload = program::read(path, name)?;
    let keys = DRAWN.iter().chain(&["FLOW_FILE", "TCP_FLOW_FILE"]);
    keys.for_each(|key| config.unused(key, "--workload gives the traffic"));
    imported.copies = workload.copies;
    Ok(Traffic { table: workload.table, begin: Time::ZERO, file: None })
}

fn drawn(
    name: &str,
    config: &Config,
    topology: &mut Topology,
    payload: u64,
    imported: &mut Imported,
) -> Result<Traffic> {
    config.unused("TCP_FLOW_FILE", "HPCC_WORKLOAD names the sizes");
    let (table, sizes) = workload::read(config, topology, payload, name, imported)?;
    let hosts: Vec<u32> = topology.network.hosts.keys().copied().collect();
    let pairs = hosts.iter().flat_map(|a| hosts.iter().map(|b| (*a, *b))).filter(|(a, b)| a != b);
    if topology.network.has_direct_links() && topology.network.apart(pairs).is_some() {
        topology.network.divide_forwarding_hosts();
    }
    Ok(Traffic { table, begin: Time::ZERO, file: Some((format!("{name}-sizes.txt"), sizes)) })
}

/// The traffic of a list of flows.
fn listed(
    name: &str,
    config: &Config,
    fork: Fork,
    topology: &mut Topology,
    payload: u64,
    imported: &mut Imported,
) -> Result<Traffic> {
    let time = |key: &str| config.word(key).and_then(units::seconds);
    let starts_late = time("FLOWGEN_START_TIME").filter(|_| fork == Fork::ConWeave);
    let stops =
        [time("SIMULATOR_STOP_TIME"), time("FLOWGEN_STOP_TIME").filter(|_| fork == Fork::ConWeave)];
    let reading = flows::Reading {
        fork,
        topology,
        payload,
        from: starts_late.unwrap_or(Time::ZERO),
        to: stops.into_iter().flatten().min().unwrap_or(Time::LONGEST),
    };
    config.unused("LOAD", "the flow file has the flows");
    DRAWN[2..].iter().for_each(|key| {
        config.unused(key, "about the workload that HPCC_WORKLOAD chooses in TLT's fork")
    });
    config.missing("TCP_FLOW_FILE", "flows of TCP beside those of FLOW_FILE: not in the scenario");
    let source = match config.file("FLOW_FILE") {
        Err(Error::Missing { .. }) => None,
        Err(Error::Wrong { .. }) if config.word("FLOW_FILE").is_none() => None,
        source => Some(source?),
    };
    let flows = match &source {
        None => None,
        Some(source) => flows::read(source, &reading, imported)?.map(|flows| (source, flows)),
    };
    let Some((source, flows)) = flows else {
        let why = if source.is_some() { "it has no flows" } else { "there is no such file" };
        config.missing("FLOW_FILE", format!("{why}: the scenario has no traffic"));
        imported.facts.extend(program::COMPLETES.map(String::from));
        return Ok(Traffic { table: String::new(), begin: Time::ZERO, file: None });
    };
    if flows.groups.len() > 1 {
        config.missing("FLOW_FILE", several(&flows.groups));
    } else {
        config.becomes("FLOW_FILE", format!("{name}-flows.csv"));
    }
    ways(source, &flows, &mut topology.network)?;
    let table =
        format!("[[traffic]]\nname = \"flows\"\nkind = \"flows\"\nfile = \"{name}-flows.csv\"\n");
    let file = Some((format!("{name}-flows.csv"), flows.csv));
    Ok(Traffic { table, begin: flows.begin, file })
}

/// Gives each flow a way: hosts forward if one has no other.
fn ways(source: &Source, flows: &flows::Flows, network: &mut Network) -> Result<()> {
    let pairs = || flows.pairs.keys().copied();
    if network.has_direct_links() && network.apart(pairs()).is_some() {
        network.divide_forwarding_hosts();
    }
    let Some(pair) = network.apart(pairs()) else { return Ok(()) };
    let text = format!(
        "no path leads from node {} to node {}; give the topology a link between their switches, \
         or leave the flow out",
        pair.0, pair.1
    );
    source.at(flows.pairs[&pair]).fail(text)
}

/// The most priority groups that the report names.
const GROUPS_NAMED: usize = 8;

/// The priority groups of flows, each with its number of flows and the line of the first.
fn several(groups: &BTreeMap<u64, (usize, usize)>) -> String {
    let named = groups.iter().take(GROUPS_NAMED);
    let mut list: Vec<String> = named
        .map(|(group, (count, line))| format!("{group} has {count} from line {line} on"))
        .collect();
    if let Some(more) = groups.len().checked_sub(GROUPS_NAMED).filter(|more| *more > 0) {
        list.push(format!("and {more} more"));
    }
    let list = list.join(", ");
    format!(
        "its flows have {} priority groups ({list}), which take turns at a port there; here all \
         have one priority, and no queue serves groups in turn. Groups one before the other are \
         possible: write a [[traffic]] with `priority` and a list of its own for each, and set \
         `switch.queue.kind = \"strict-priority\"`",
        groups.len()
    )
}

/// Reports lines behind the last announced one that look like data. The family's own files end with
/// a legend, whose lines begin with a letter.
fn surplus(words: &Words<'_>, announced: &str, imported: &mut Imported) {
    for (line, words) in words.lines_left() {
        if units::number(words[0]).is_none() {
            continue;
        }
        imported.record(
            line,
            words.join(" "),
            Fate::LeftOut(format!(
                "it is beyond {announced}, and so not read, as there: correct the number in the \
                 file if it should count"
            )),
        );
    }
}

/// The keys outside of tables: how long, and the seed.
fn run(config: &Config, begin: Time) -> String {
    let mut text = String::from("until = \"flows-complete\"\n");
    let ends = "the run ends with the last flow";
    match config.word("SIMULATOR_STOP_TIME").map(units::seconds) {
        None => {}
        Some(None) => config.unused("SIMULATOR_STOP_TIME", format!("later than any run: {ends}")),
        Some(Some(stop)) if stop <= begin => config.missing(
            "SIMULATOR_STOP_TIME",
            format!(
                "there nothing starts: the first flow is at {begin}, and the stop at {stop}; here \
                 {ends}"
            ),
        ),
        Some(Some(stop)) => {
            let duration = stop - begin;
            config.becomes(
                "SIMULATOR_STOP_TIME",
                format!("duration = \"{duration}\", from the first flow on"),
            );
            text += &format!("duration = \"{duration}\"\n");
        }
    }
    if let Some(seed) = config.whole("RANDOM_SEED") {
        config.becomes(
            "RANDOM_SEED",
            format!("seed = {seed}; what is drawn with it is not what is drawn there"),
        );
        text += &format!("seed = {seed}\n");
    }
    text
}

/// The differences from there that no key names.
fn differences(config: &Config, fork: Fork, topology: &Topology) -> Vec<String> {
    let is_on = |key: &str| config.whole(key).unwrap_or(0) != 0;
    let mut facts = Vec::new();
    if fork.has_no_timer() && !is_on("ENABLE_IRN") {
        facts.push(format!(
            "there nothing is sent again but for a NACK, so a flow whose last packets are lost \
             never ends; here a timer sends them again after {} of silence, longer than any round \
             trip and queue",
            transport::stand_in(config, &topology.network)
        ));
    }
    if topology.network.numbers().iter().any(Option::is_some) {
        let text = "there a node keeps one port for each neighbour, so of several parallel links \
                    it uses the last of the file alone; here flows are spread over all of them";
        facts.push(text.to_string());
    }
    if fork == Fork::Tlt && is_on("ENABLE_IRN") && is_on("ENABLE_PFC") {
        facts.push("there IRN has no timer beside PFC; here it has".to_string());
    }
    facts
}

#[cfg(test)]
mod tests;
