//! The transport's part: one table of their keys and ours, by congestion control.
//!
//! What this program can run follows from its registries, not from this table: a congestion control
//! or key that is not there is told as not modelled, and DCTCP stands in for a congestion control
//! that is not.

use millpond_core::registry::Choice;
use millpond_scenario::catalogue;
use millpond_scenario::transport::TransportKind;

use super::config::Config;
use super::{Fork, switches};
use crate::units;

/// How a value is written here.
#[derive(Clone, Copy, Debug)]
enum As {
    Microseconds,
    Rate,
    Number,
    Flag,
}

/// A congestion control: its number there, its kind here, what it is called.
struct Mode {
    number: u64,
    kind: &'static str,
    name: &'static str,
    /// Their key, our key.
    keys: &'static [(&'static str, &'static str, As)],
}

/// The table.
const MODES: [Mode; 7] = [
    Mode {
        number: 1,
        kind: "dcqcn",
        name: "DCQCN",
        keys: &[
            ("ALPHA_RESUME_INTERVAL", "dcqcn-alpha-timer", As::Microseconds),
            ("RATE_DECREASE_INTERVAL", "dcqcn-decrease-interval", As::Microseconds),
            ("RP_TIMER", "dcqcn-increase-timer", As::Microseconds),
            ("EWMA_GAIN", "dcqcn-g", As::Number),
            ("FAST_RECOVERY_TIMES", "dcqcn-fast-recovery", As::Number),
            ("RATE_AI", "dcqcn-additive-increase", As::Rate),
            ("RATE_HAI", "dcqcn-hyper-increase", As::Rate),
            ("MIN_RATE", "dcqcn-min-rate", As::Rate),
            ("CLAMP_TARGET_RATE", "dcqcn-clamp-target", As::Flag),
        ],
    },
    Mode {
        number: 3,
        kind: "hpcc",
        name: "HPCC",
        keys: &[
            ("U_TARGET", "hpcc-eta", As::Number),
            ("MI_THRESH", "hpcc-max-stage", As::Number),
            ("RATE_AI", "hpcc-additive-increase", As::Rate),
            ("MULTI_RATE", "hpcc-multi-rate", As::Flag),
            ("FAST_REACT", "hpcc-fast-react", As::Flag),
            ("MIN_RATE", "hpcc-min-rate", As::Rate),
        ],
    },
    Mode {
        number: 7,
        kind: "timely",
        name: "TIMELY",
        keys: &[
            ("RATE_AI", "timely-additive-increase", As::Rate),
            ("RATE_HAI", "timely-hyper-increase", As::Rate),
            ("MIN_RATE", "timely-min-rate", As::Rate),
        ],
    },
    Mode {
        number: 8,
        kind: "rdma-dctcp",
        name: "DCTCP over RDMA",
        keys: &[
            ("EWMA_GAIN", "rdma-dctcp-g", As::Number),
            ("DCTCP_RATE_AI", "rdma-dctcp-additive-increase", As::Rate),
            ("MIN_RATE", "rdma-dctcp-min-rate", As::Rate),
        ],
    },
    Mode {
        number: 10,
        kind: "hpcc-pint",
        name: "HPCC-PINT",
        keys: &[
            ("PINT_LOG_BASE", "hpcc-pint-log-base", As::Number),
            ("PINT_PROB", "hpcc-pint-probability", As::Number),
            ("U_TARGET", "hpcc-eta", As::Number),
            ("MI_THRESH", "hpcc-max-stage", As::Number),
            ("RATE_AI", "hpcc-additive-increase", As::Rate),
            ("FAST_REACT", "hpcc-fast-react", As::Flag),
            ("MIN_RATE", "hpcc-min-rate", As::Rate),
        ],
    },
    Mode {
        number: 11,
        kind: "rdma-swift",
        name: "Swift over RDMA",
        keys: &[("MIN_RATE", "rdma-swift-min-rate", As::Rate)],
    },
    Mode { number: 13, kind: "dcqcn-real", name: "RealDcqcn", keys: &[("MIN_RATE", "dcqcn-min-rate", As::Rate)] },
];

/// What stands in for what is not there.
const STAND_IN: &str = "dctcp";

/// Whether a kind of a place has a key; with "" whether there is such a kind.
pub(super) fn has(place: &str, kind: &str, key: &str) -> bool {
    let places = catalogue::places();
    let kinds = places.iter().filter(|info| info.place.path == place).flat_map(|info| &info.kinds);
    kinds
        .filter(|info| info.mechanism.kind == kind)
        .any(|info| key.is_empty() || info.keys.iter().any(|own| own.name == key))
}

/// Whether a table has a key.
fn table_has(path: &str, key: &str) -> bool {
    catalogue::tables().iter().any(|table| table.path == path && table.keys.iter().any(|own| own.name == key))
}

/// The tables `[transport]` and, where there is one, `[rdma]`. Every key of the transport's part is
/// told of.
pub(super) fn tables(config: &Config, fork: Fork, payload: u64) -> String {
    let number = config.whole("CC_MODE").unwrap_or(1);
    let mode = MODES.iter().find(|mode| mode.number == number);
    let mut text = String::from("[transport]\n");
    let is_there = mode.is_some_and(|mode| TransportKind::of_kind(mode.kind).is_some());
    match mode {
        Some(mode) if is_there => {
            config.becomes("CC_MODE", format!("transport \"{}\"", mode.kind));
            text += &format!("kind = \"{}\"\n", mode.kind);
        }
        _ => {
            let name = mode.map_or("a congestion control that is not known here", |mode| mode.name);
            let means = format!("{name} is no transport of this version: \"{STAND_IN}\" stands in its place");
            config.missing("CC_MODE", means);
            text += &format!("kind = \"{STAND_IN}\"\nhandshake = false\n");
        }
    }
    if switches::has_importance(config) {
        text += "importance = { kind = \"tlt\", first = \"first\" }\n";
    }
    for key in config.transport_keys() {
        let own = mode.and_then(|mode| mode.keys.iter().find(|(theirs, ..)| *theirs == key));
        match own {
            Some((_, ours, form)) if is_there && has("transport", mode.map_or("", |mode| mode.kind), ours) => {
                let value = written(config, key, *form);
                config.becomes(key, format!("{ours} = {value}"));
                text += &format!("{ours} = {value}\n");
            }
            Some(_) => {
                config.missing(key, format!("a parameter of CC_MODE {number}, which is not there or has no such key"))
            }
            None => {
                let of: Vec<String> = MODES
                    .iter()
                    .filter(|mode| mode.keys.iter().any(|(theirs, ..)| *theirs == key))
                    .map(|mode| mode.number.to_string())
                    .collect();
                if !of.is_empty() {
                    config.unused(key, format!("a parameter of CC_MODE {}, and CC_MODE is {number}", of.join(", ")));
                }
            }
        }
    }
    text + &queue_pairs(config, fork, payload)
}

fn written(config: &Config, key: &str, form: As) -> String {
    let word = config.word(key).unwrap_or("");
    match form {
        As::Number => word.to_string(),
        As::Flag => (config.whole(key) == Some(1)).to_string(),
        As::Rate => units::rate(word).map_or_else(String::new, |rate| format!("\"{rate}\"")),
        As::Microseconds => units::time(&format!("{word}us")).map_or_else(String::new, |time| format!("\"{time}\"")),
    }
}

/// The table `[rdma]`: windows, acknowledgements, recovery.
fn queue_pairs(config: &Config, fork: Fork, payload: u64) -> String {
    let mut text = String::from("\n[rdma]\n");
    let is_there = table_has("rdma", "flow-control");
    let mut set = |keys: &[&str], ours: &str, value: String| {
        for key in keys {
            if is_there {
                config.becomes(key, format!("rdma.{ours} = {value}"));
            } else {
                config.missing(key, format!("queue pairs are no part of this version (rdma.{ours})"));
            }
        }
        text += &format!("{ours} = {value}\n");
    };
    let on = |key: &str, default: u64| config.whole(key).unwrap_or(default) != 0;
    let window = match (on("HAS_WIN", 1), on("VAR_WIN", 0)) {
        (false, _) => "none",
        (true, false) => "static",
        (true, true) => "rate",
    };
    set(&["HAS_WIN", "VAR_WIN"], "flow-control", format!("\"{window}\""));
    set(&["GLOBAL_T"], "window", "\"auto\"".into());
    let packets = config.whole("L2_ACK_INTERVAL").unwrap_or(1).div_ceil(payload.max(1)).max(1);
    set(&["L2_ACK_INTERVAL"], "ack-interval", packets.to_string());
    if on("ACK_HIGH_PRIO", 0) {
        set(&["ACK_HIGH_PRIO"], "ack-priority", "7".into());
    }
    let recovery = if on("ENABLE_IRN", 0) {
        let no_bound = on("IRN_NO_BDPFC", 0) || config.whole("CC_MODE") == Some(3);
        let (low, high) = match fork {
            Fork::Tlt if no_bound => ("4ms", "4ms"),
            Fork::Tlt => ("454us", "1930us"),
            _ => ("100us", "320us"),
        };
        let bound = if fork == Fork::Tlt && no_bound { ", bdp-limit = \"off\"" } else { "" };
        format!("{{ kind = \"selective\", timeout-low = \"{low}\", timeout-high = \"{high}\"{bound} }}")
    } else {
        "{ kind = \"go-back-n\" }".into()
    };
    set(&["ENABLE_IRN", "IRN_NO_BDPFC"], "recovery", recovery);
    if config.whole("GLOBAL_T") == Some(0) {
        config.missing("GLOBAL_T", "all queue pairs have the window of the longest round trip, not each its own");
    }
    config.unused("L2_CHUNK_SIZE", "chunks matter with L2_BACK_TO_ZERO alone");
    config.missing("ns3::RdmaHw::NACKGenerationInterval", "the interval between NACKs is the default");
    if !on("ACK_HIGH_PRIO", 0) {
        config.becomes("ACK_HIGH_PRIO", "acknowledgements have their data's priority");
    }
    if is_there { text } else { String::new() }
}
