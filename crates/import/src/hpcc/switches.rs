//! The switches' part: marking by rate, the shared memory with its pauses, and the choice of paths.
//!
//! The forks of TLT and ConWeave have the memory of a Broadcom chip: two pools, an ingress
//! threshold of 1/16 and an egress threshold of 1, whether it pauses or not. HPCC's and SimAI's
//! keep 4 kB a port, never limit an egress, and pause a port at 1/8 of what is free, which doubles
//! with the port's rate beyond that of the hosts; a pause lasts until it is ended.

use std::collections::BTreeMap;

use millpond_core::{Bytes, Rate};

use super::config::Config;
use super::fork::Fork;
use super::topology::Topology;
use crate::Result;

/// Megabytes of a switch in HPCC's program without a key.
const DEFAULT_MB: u64 = 16;
/// Bytes of a port in the forks that size memory by ports.
const PER_PORT: u64 = 375_000;

/// The table `[switch]`.
pub(super) fn table(config: &Config, fork: Fork, topology: &Topology) -> Result<String> {
    let marking = marking(config, topology)?;
    let buffer = buffer(config, fork, topology);
    let pause = pause(config, fork, topology);
    let path = path(config);
    let queue = if fork.answers_first() { "queue = { kind = \"strict-priority\" }\n" } else { "" };
    let admission = importance(config);
    Ok(format!(
        "[switch]\nbuffer = {buffer}\nmarking = {marking}\npause = {pause}\npath = \
         {path}\n{queue}{admission}"
    ))
}

/// RED between two thresholds, in thousands of bytes, by the rate of the port.
fn marking(config: &Config, topology: &Topology) -> Result<String> {
    let maps = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];
    if config.whole("ENABLE_QCN") == Some(0) {
        config.becomes("ENABLE_QCN", "switches do not mark");
        maps.iter().chain(&SINGLE).for_each(|key| config.unused(key, "ENABLE_QCN is off"));
        return Ok("{ kind = \"none\" }".into());
    }
    config.becomes("ENABLE_QCN", "switches mark");
    let by_rate = thresholds(config, topology, maps)?;
    let Some((rate, [low, high, most])) = by_rate.iter().next().map(|(rate, of)| (*rate, *of))
    else {
        let why = "no port of a switch has a rate of it: switches do not mark";
        maps.iter().for_each(|key| config.unused(key, why));
        return Ok("{ kind = \"none\" }".into());
    };
    let share = |rate: &Rate, k: f64| k / rate.bps() as f64;
    let alike = by_rate.values().all(|of| *of == [low, high, most]);
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
    let in_proportion = by_rate.iter().all(|(other, of)| {
        near(share(other, of[0]), share(&rate, low))
            && near(share(other, of[1]), share(&rate, high))
            && of[2] == most
    });
    maps.iter().for_each(|key| config.becomes(key, "switch.marking, at departure"));
    let bytes = |k: f64| format!("\"{}\"", Bytes((k * 1000.0).round() as u64));
    if alike || in_proportion {
        let per = if alike { String::new() } else { format!(", per = \"{rate}\"") };
        let (low, high) = (bytes(low), bytes(high.max(low)));
        return Ok(format!(
            "{{ kind = \"red\", min-threshold = {low}, max-threshold = {high}, max-probability = \
             {most:?}{per}, at = \"after-dequeue\" }}"
        ));
    }
    // Ports of NVSwitches alone may have another rate.
    let table = |amount: &dyn Fn(&[f64; 3]) -> String| {
        let entries: Vec<String> =
            by_rate.iter().map(|(rate, of)| format!("\"{rate}\" = {}", amount(of))).collect();
        format!("{{ {}, others = {} }}", entries.join(", "), amount(&[low, high, most]))
    };
    Ok(format!(
        "{{ kind = \"red\", min-threshold = {}, max-threshold = {}, max-probability = {}, at = \
         \"after-dequeue\" }}",
        table(&|of| bytes(of[0])),
        table(&|of| bytes(of[1].max(of[0]))),
        table(&|of| format!("{:?}", of[2]))
    ))
}

/// The ancestor's thresholds, for links of any rate.
const SINGLE: [&str; 3] = ["KMIN", "KMAX", "PMAX"];

/// By rate: the two thresholds, in thousands of bytes, and the probability below the second.
fn thresholds(
    config: &Config,
    topology: &Topology,
    maps: [&str; 3],
) -> Result<BTreeMap<Rate, [f64; 3]>> {
    let mut by_rate: BTreeMap<Rate, [f64; 3]> = BTreeMap::new();
    let (needed, all) = topology.port_rates();
    for (at, (key, single)) in maps.into_iter().zip(SINGLE).enumerate() {
        let map = config.map(key);
        match (&map, config.number(single)) {
            (Some(_), _) => config.unused(single, format!("{key} is given")),
            (None, Some(_)) => config.becomes(single, "switch.marking, at departure"),
            (None, None) => {
                return config.source.end().fail(format!("there is no {key}"));
            }
        }
        for rate in &all {
            let value = match &map {
                Some(map) => map.get(rate).copied(),
                None => config.number(single),
            };
            // Such ports have the thresholds of others.
            if value.is_none() && !needed.contains(rate) {
                continue;
            }
            let value = value.ok_or_else(|| {
                config.line(key).wrong(format!("{key} has no threshold for links of {rate}"))
            })?;
            let is_share = (0.0..=1.0).contains(&value);
            if at == 2 && !is_share {
                let (key, text) =
                    (if map.is_some() { key } else { single }, "is no probability, from 0 to 1");
                return config.line(key).fail(format!("{key}: {value} {text}"));
            }
            by_rate.entry(*rate).or_default()[at] = value;
        }
    }
    Ok(by_rate)
}

/// Bytes of a switch's memory, where a key has them.
pub(super) fn buffer_bytes(config: &Config) -> u64 {
    config.whole("BUFFER_SIZE").unwrap_or(DEFAULT_MB).saturating_mul(1 << 20)
}

fn buffer(config: &Config, fork: Fork, topology: &Topology) -> String {
    let (_, rates) = topology.port_rates();
    let ports = topology.network.ports_max().max(1) as u64;
    let size = match config.whole("BUFFER_SIZE").unwrap_or(if fork.has_pools() {
        0
    } else {
        DEFAULT_MB
    }) {
        0 if rates.len() == 1 => {
            config.becomes("BUFFER_SIZE", format!("{PER_PORT} bytes a port"));
            format!("size = \"{}\", per = \"{}\"", Bytes(PER_PORT), rates[0])
        }
        0 => {
            config.missing(
                "BUFFER_SIZE",
                format!(
                    "switches differ in their ports there; all have the memory of {ports} ports"
                ),
            );
            format!("size = \"{}\"", Bytes(PER_PORT * ports))
        }
        megabytes => {
            let size = Bytes(megabytes.saturating_mul(1 << 20));
            config.becomes("BUFFER_SIZE", format!("switch.buffer.size = \"{size}\""));
            format!("size = \"{size}\"")
        }
    };
    if fork.has_pools() {
        return format!("{{ kind = \"pools\", {size}, alpha = 1.0, egress-limit = \"always\" }}");
    }
    // Of the 4 kB of a port an eighth is kept for each of eight priorities, and all is one's.
    let own = "group-min = \"512B\", port-min = \"3584B\"";
    format!(
        "{{ kind = \"pools\", {size}, alpha = 1000.0, {own}, headroom-rule = \"three-delays\" }}"
    )
}

fn pause(config: &Config, fork: Fork, topology: &Topology) -> String {
    if config.whole("ENABLE_PFC") == Some(0) {
        config.becomes("ENABLE_PFC", "no pauses");
        config.unused("PAUSE_TIME", "there are no pauses");
        return "{ kind = \"none\" }".into();
    }
    config.becomes("ENABLE_PFC", "switch.pause = pfc");
    if !fork.has_pools() {
        config.unused("PAUSE_TIME", "a pause lasts until it is ended, whatever its frame says");
        let per = topology.host_rate().map_or(String::new(), |rate| format!(", per = \"{rate}\""));
        // 3 kB of a threshold, which is an eighth of what is free.
        return format!("{{ kind = \"pfc\", alpha = 0.125{per}, resume-offset = \"24576B\" }}");
    }
    let time = config.number("PAUSE_TIME").unwrap_or(if fork == Fork::Tlt { 671.0 } else { 5.0 });
    config.becomes("PAUSE_TIME", format!("switch.pause.pause-time = \"{time}us\""));
    format!("{{ kind = \"pfc\", alpha = 0.0625, pause-time = \"{time}us\" }}")
}

/// ECMP, or one of ConWeave's comparators with the constants of its program.
fn path(config: &Config) -> String {
    const CONWEAVE: [&str; 5] = [
        "CONWEAVE_TX_EXPIRY_TIME",
        "CONWEAVE_REPLY_TIMEOUT_EXTRA",
        "CONWEAVE_PATH_PAUSE_TIME",
        "CONWEAVE_EXTRA_VOQ_FLUSH_TIME",
        "CONWEAVE_DEFAULT_VOQ_WAITING_TIME",
    ];
    let mode = config.whole("LB_MODE").unwrap_or(0);
    for key in CONWEAVE {
        if mode == 9 {
            config.missing(key, "a parameter of ConWeave, which is not modelled");
        } else {
            config.unused(key, format!("a parameter of ConWeave, and LB_MODE is {mode}"));
        }
    }
    let text = match mode {
        0 => "{ kind = \"ecmp\" }",
        2 => "{ kind = \"drill\" }",
        // An estimator that takes off a fifth every 50 us counts for 250 us.
        3 => "{ kind = \"conga\", gap = \"100us\", bits = 3, window = \"250us\", age = \"500us\" }",
        6 => "{ kind = \"letflow\", gap = \"100us\" }",
        _ => {
            let name = if mode == 9 { "ConWeave" } else { "a path choice that is not known here" };
            config.missing(
                "LB_MODE",
                format!("{name} is not modelled: \"ecmp\" stands in its place"),
            );
            return "{ kind = \"ecmp\" }".into();
        }
    };
    config.becomes("LB_MODE", format!("switch.path = {text}"));
    text.into()
}

/// TLT: the threshold on what is not important. Which packets are is the transport's part.
fn importance(config: &Config) -> String {
    if !has_importance(config) {
        config.becomes("ENABLE_TLT", "no packet is important");
        config.unused("TLT_MAXBYTES_UIP", "ENABLE_TLT is off");
        return String::new();
    }
    let bytes = Bytes(config.number("TLT_MAXBYTES_UIP").unwrap_or(0.0).round() as u64);
    config.becomes(
        "ENABLE_TLT",
        "transport.importance = tlt, from the first packet on, as in TLT's RDMA simulator",
    );
    config.becomes("TLT_MAXBYTES_UIP", format!("switch.admission.threshold = \"{bytes}\""));
    format!("admission = {{ kind = \"color-aware\", threshold = \"{bytes}\" }}\n")
}

/// Whether packets have an importance.
pub(super) fn has_importance(config: &Config) -> bool {
    config.whole("ENABLE_TLT").unwrap_or(0) != 0
}
