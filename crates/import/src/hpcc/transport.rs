//! The transport's part: one table of their keys and ours, by congestion control, and what all
//! queue pairs have in common.
//!
//! For a congestion control that is not modelled the one that is nearest stands in, with what both
//! have in common, and the import reports what is lost.

use millpond_core::{Bytes, Rate, Time};
use millpond_scenario::built_in;
use serde::Deserialize;
use std::sync::LazyLock;

use super::config::Config;
use super::fork::Fork;
use super::{round_trip, switches};
use crate::network::Network;
use crate::units;

/// How a value is written here.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum As {
    Nanoseconds,
    Microseconds,
    Rate,
    Number,
    Flag,
}

/// A congestion control: its number there, and its kind here.
#[derive(Deserialize)]
struct Mode {
    number: u64,
    kind: String,
    /// The congestion control that the kind only stands in for.
    instead: Option<String>,
    keys: Vec<(String, String, As)>,
    #[serde(default)]
    lost: Lost,
}

/// Keys that have no counterpart, and what that means.
#[derive(Default, Deserialize)]
struct Lost {
    keys: Vec<String>,
    means: String,
}

/// The table. A control that is in none of them runs as the first, without its keys.
static MODES: LazyLock<Vec<Mode>> =
    LazyLock::new(|| built_in("modes.toml", include_str!("modes.toml")));

/// Keys of telemetry, and the value that is modelled; otherwise what that means.
const TELEMETRY: [(&str, u64, &str); 2] = [
    ("INT_MULTI", 1, "telemetry is exact: it has no coarser units"),
    ("SAMPLE_FEEDBACK", 0, "every acknowledgement carries telemetry, not only some"),
];

const TIMELY: u64 = 7;

impl Mode {
    fn has(&self, key: &str) -> bool {
        self.key(key).is_some() || self.loses(key)
    }

    /// Our key for one of theirs.
    fn key(&self, key: &str) -> Option<&(String, String, As)> {
        self.keys.iter().find(|(theirs, ..)| theirs == key)
    }

    fn loses(&self, key: &str) -> bool {
        self.lost.keys.iter().any(|lost| lost == key)
    }
}

/// The tables `[transport]` and `[rdma]`. Every key of the transport's part is reported.
pub(super) fn tables(config: &Config, fork: Fork, network: &Network, payload: u64) -> String {
    let number = config.whole("CC_MODE").unwrap_or(1);
    let known = MODES.iter().find(|mode| mode.number == number);
    let kind = &known.unwrap_or(&MODES[0]).kind;
    match known.map(|mode| mode.instead.as_deref()) {
        Some(None) => config.becomes("CC_MODE", format!("transport \"{kind}\"")),
        lost => {
            let name = lost.flatten().unwrap_or("a congestion control that is not known here");
            config.missing(
                "CC_MODE",
                format!("{name} is not modelled: \"{kind}\" stands in its place"),
            );
        }
    }
    let mut text = format!("[transport]\nkind = \"{kind}\"\n");
    if switches::has_importance(config) {
        // Its program looks at the last round, as that of TCP does.
        text += "importance = { kind = \"tlt\", first = \"first\", lost-rounds = \"last\" }\n";
    }
    for key in config.transport_keys() {
        if let Some((_, ours, form)) = known.and_then(|mode| mode.key(key)) {
            // Two keys of different forks have become one of ours: the first one given counts.
            if text.contains(&format!("\n{ours} = ")) {
                config.unused(key, format!("{ours} is given by another key"));
                continue;
            }
            let value = written(config, key, *form);
            match ours.ends_with("min-rate") && config.word(key).and_then(units::rate).is_none() {
                true => config
                    .missing(key, "no rate at all would never end; here the least rate is 1 bit/s"),
                false => config.becomes(key, format!("{ours} = {value}")),
            }
            text += &format!("{ours} = {value}\n");
            continue;
        }
        if let Some(mode) = known.filter(|mode| mode.loses(key)) {
            config.missing(key, &mode.lost.means);
            continue;
        }
        let of: Vec<String> =
            MODES.iter().filter(|mode| mode.has(key)).map(|mode| mode.number.to_string()).collect();
        if !of.is_empty() {
            config.unused(
                key,
                format!("a parameter of CC_MODE {}, and CC_MODE is {number}", of.join(", ")),
            );
        }
    }
    for (key, modelled, means) in TELEMETRY {
        match config.whole(key) {
            _ if kind != "hpcc" => {
                config.unused(key, format!("about telemetry, and CC_MODE is {number}"))
            }
            Some(value) if value != modelled => config.missing(key, means),
            _ => config.becomes(key, "as here: no other value is modelled"),
        }
    }
    text + &queue_pairs(config, fork, network, payload)
}

fn written(config: &Config, key: &str, form: As) -> String {
    let word = config.word(key).unwrap_or("");
    match form {
        As::Number => {
            units::number(word).map_or_else(String::new, |number| match number.fract() == 0.0 {
                true => format!("{number:.0}"),
                false => format!("{number:?}"),
            })
        }
        As::Flag => (config.whole(key) == Some(1)).to_string(),
        As::Rate if key == "MIN_RATE" => format!("\"{}\"", units::rate(word).unwrap_or(Rate(1))),
        As::Rate => {
            units::rate_or_zero(word).map_or_else(String::new, |rate| format!("\"{rate}\""))
        }
        As::Microseconds => {
            units::time(&format!("{word}us")).map_or_else(String::new, |time| format!("\"{time}\""))
        }
        As::Nanoseconds => {
            units::time(&format!("{word}ns")).map_or_else(String::new, |time| format!("\"{time}\""))
        }
    }
}

/// The table `[rdma]`: windows, answers, recovery.
fn queue_pairs(config: &Config, fork: Fork, network: &Network, payload: u64) -> String {
    let on = |key: &str, default: u64| config.whole(key).unwrap_or(default) != 0;
    let window = match (on("HAS_WIN", 1), on("VAR_WIN", 0)) {
        (false, _) => "none",
        (true, false) => "static",
        (true, true) => "rate",
    };
    let mut text = format!("\n[rdma]\nflow-control = \"{window}\"\n");
    for key in ["HAS_WIN", "VAR_WIN"] {
        config.becomes(key, format!("rdma.flow-control = \"{window}\""));
    }
    let longest =
        round_trip::longest(network, payload).map(|(rtt, bytes)| given_window(config, rtt, bytes));
    if let Some((rtt, bytes)) = longest {
        text += &format!("base-rtt = \"{rtt}\"\nwindow = \"{bytes}\"\n");
        config.becomes("GLOBAL_T", format!("rdma.base-rtt = \"{rtt}\", rdma.window = \"{bytes}\""));
    }
    if config.whole("GLOBAL_T") == Some(0) {
        config.missing(
            "GLOBAL_T",
            "all queue pairs have the window of the longest round trip, not each its own",
        );
    }
    if config.whole("CC_MODE") == Some(TIMELY) {
        text += "data-header = 8\n"; // a timestamp (`IntHeader`)
    }
    let bdp = longest.map(|(_, bytes)| bytes.to_string());
    text + &answers(config, fork, payload) + &recovery(config, fork, network, bdp)
}

/// The round trip and the window that m3's keys give in the place of those of the network.
fn given_window(config: &Config, rtt: Time, bytes: Bytes) -> (Time, Bytes) {
    let given_rtt = config.word("BASE_RTT").and_then(|word| units::time(&format!("{word}ns")));
    let rtt = given_rtt.filter(|rtt| *rtt > Time::ZERO).unwrap_or(rtt);
    let bytes = config.whole("FIXED_WIN").filter(|bytes| *bytes > 0).map_or(bytes, Bytes);
    config.becomes("BASE_RTT", format!("rdma.base-rtt = \"{rtt}\""));
    config.becomes("FIXED_WIN", format!("rdma.window = \"{bytes}\""));
    (rtt, bytes)
}

/// The silence after which a sender whose fork has no timer sends again: 4 ms, as in TLT's fork, or
/// what a packet takes at most on the longest way and through a full buffer in front of the slowest
/// link.
pub(super) fn stand_in(config: &Config, network: &Network) -> Time {
    const LEAST: Time = Time::from_ms(4);
    let rtt = round_trip::longest(network, 1000).map_or(Time::ZERO, |(rtt, _)| rtt);
    let slowest = network.rates(|_| true).first().map_or(1, |rate| rate.bps());
    let buffer =
        u128::from(switches::buffer_bytes(config)) * 8 * 1_000_000_000_000 / u128::from(slowest);
    let queueing =
        Time::from_ps(u64::try_from(buffer).unwrap_or(u64::MAX).min(Time::LONGEST.as_ps() / 4));
    let longest = rtt.saturating_add(rtt).saturating_add(queueing).min(Time::LONGEST);
    // Whole microseconds are enough.
    LEAST.max(Time::from_us(longest.as_ps().div_ceil(1_000_000)))
}

/// When receivers answer, with which priority, and how they report marks.
fn answers(config: &Config, fork: Fork, payload: u64) -> String {
    let mut text = String::from("ack-interval = 1\nnotification = \"answers\"\n");
    match config.whole("L2_ACK_INTERVAL") {
        Some(bytes) if bytes > payload => config.missing(
            "L2_ACK_INTERVAL",
            format!(
                "there the first {bytes} bytes of a flow wait for it, and all that follows is \
                 acknowledged packet by packet, for the program sets the mark anew with each; \
                 here every packet is acknowledged"
            ),
        ),
        Some(0) => config.missing(
            "L2_ACK_INTERVAL",
            "there no flow ends with it; here every packet is acknowledged",
        ),
        Some(bytes) if bytes > 1 => config.becomes(
            "L2_ACK_INTERVAL",
            "rdma.ack-interval = 1: so few bytes pass with each packet, so each is answered",
        ),
        _ => config.becomes("L2_ACK_INTERVAL", "rdma.ack-interval = 1"),
    }
    config.unused(
        "L2_CHUNK_SIZE",
        "every packet is acknowledged, and chunks matter with L2_BACK_TO_ZERO alone",
    );
    if fork.answers_first() {
        config.unused("ACK_HIGH_PRIO", "acknowledgements have the highest priority in this fork");
    } else {
        let is_high = config.whole("ACK_HIGH_PRIO").unwrap_or(0) != 0;
        let means = if is_high {
            "rdma.ack-priority = 7, in hosts"
        } else {
            "answers have their data's priority"
        };
        config.becomes("ACK_HIGH_PRIO", means);
    }
    if fork.answers_first() || config.whole("ACK_HIGH_PRIO").unwrap_or(0) != 0 {
        text += "ack-priority = 7\nnack-priority = 7\n";
    }
    if fork.slows_on_reordering() {
        text += "cnp-on-reordering = true\n";
    }
    text
}

/// Go-back-N, or IRN with its timeouts and its bound.
fn recovery(config: &Config, fork: Fork, network: &Network, bdp: Option<String>) -> String {
    const NACKS: &str = "ns3::RdmaHw::NACKGenerationInterval";
    let interval = config.word(NACKS).and_then(|word| units::time(&format!("{word}us")));
    let interval: Time = interval.unwrap_or(fork.nack_interval());
    config.becomes(NACKS, format!("rdma.recovery.nack-interval = \"{interval}\""));
    let on = |key: &str| config.whole(key).unwrap_or(0) != 0;
    let nacks = format!("nack-interval = \"{interval}\"");
    if !on("ENABLE_IRN") {
        config.becomes("ENABLE_IRN", "rdma.recovery = go-back-n");
        config.unused("IRN_NO_BDPFC", "ENABLE_IRN is off");
        let timeout = match fork.has_no_timer() {
            true => format!(", timeout = \"{}\"", stand_in(config, network)),
            false => String::new(),
        };
        let answers = if fork.answers_duplicates() { "" } else { ", answer-duplicates = false" };
        return format!("recovery = {{ kind = \"go-back-n\", {nacks}{timeout}{answers} }}\n");
    }
    let unbound = fork == Fork::Tlt && (on("IRN_NO_BDPFC") || config.whole("CC_MODE") == Some(3));
    let (low, high, limit) = match fork {
        Fork::Tlt if unbound => ("4ms", "4ms", "off".into()),
        Fork::Tlt => ("454us", "1930us", "18750B".into()),
        _ => ("100us", "320us", bdp.unwrap_or("auto".into())),
    };
    config.becomes(
        "ENABLE_IRN",
        format!("rdma.recovery = selective, with timeouts of {low} and {high}"),
    );
    match fork {
        Fork::Tlt => {
            config.becomes("IRN_NO_BDPFC", format!("rdma.recovery.bdp-limit = \"{limit}\""))
        }
        _ => config.unused("IRN_NO_BDPFC", "TLT's fork alone reads it"),
    }
    format!(
        "recovery = {{ kind = \"selective\", {nacks}, timeout-low = \"{low}\", timeout-high = \
         \"{high}\", bdp-limit = \"{limit}\", few = 4, resend = \"all\" }}\n"
    )
}
