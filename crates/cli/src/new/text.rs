//! The text of a scenario: `scenario.toml` with the answers in it.
//!
//! A line `#? WORD…` of the template begins lines that stand where all of its words do, and not
//! those behind a `!`. `{NAME}` is a value. Two spaces and a `#` begin a comment, which moves to
//! the column of comments.

use super::answers::{Family, Mechanism, Needs, Topology, Traffic, Transport, ranks};
use millpond_core::units::Rate;
use std::fmt::Write as _;

const TEMPLATE: &str = include_str!("scenario.toml");

/// The answers to the five questions.
#[derive(Clone, Debug)]
pub struct Answers {
    pub topology: Topology,
    pub rate: Rate,
    pub transport: &'static Transport,
    pub traffic: Traffic,
    pub mechanisms: Vec<&'static Mechanism>,
}

/// Bytes of a run with a distribution: some tenths of a second on one core.
const VOLUME: f64 = 200e6;
/// The same of transports whose packets cost more.
const VOLUME_OF_OTHERS: f64 = 80e6;
/// Bytes of each answer of an incast.
const RESPONSE: u64 = 40_000;
const QUERIES: u64 = 20;
const COMMENT: usize = 34;

type Values = Vec<(&'static str, String)>;

impl Answers {
    /// The scenario. `file` is how a command names it.
    pub fn scenario(&self, name: &str, file: &str) -> String {
        let (words, values) = (self.words(), self.values(name, file));
        let (mut text, mut stands) = (String::new(), true);
        for line in TEMPLATE.lines() {
            if let Some(wanted) = line.strip_prefix("#?") {
                stands = wanted.split_whitespace().all(|word| match word.strip_prefix('!') {
                    Some(word) => !words.contains(&word),
                    None => words.contains(&word),
                });
            } else if stands {
                let (line, comment) = match line.split_once("  # ") {
                    Some((line, comment)) => (line, filled(comment, &values)),
                    None => (line, String::new()),
                };
                let line = filled(line, &values);
                let _ = match comment.as_str() {
                    "" => writeln!(text, "{line}"),
                    comment => writeln!(text, "{line:<COMMENT$}  # {comment}"),
                };
            }
        }
        for Mechanism { name, about, set, .. } in &self.mechanisms {
            let _ = write!(text, "\n# Mechanism: {about}.\n[[variant]]\nname = \"{name}\"\n");
            text += "[variant.set]\n";
            set.iter().for_each(|(key, value)| text += &format!("\"{key}\" = {value}\n"));
        }
        text
    }

    /// The words by which lines of the template stand.
    fn words(&self) -> Vec<&'static str> {
        let (family, marks) = (self.transport.family, self.transport.marks);
        let needs =
            |needs: Needs| self.mechanisms.iter().any(|mechanism| mechanism.needs == Some(needs));
        let family_word = match family {
            Family::Tcp => "tcp",
            Family::Rdma => "rdma",
            Family::Homa => "homa",
            Family::Uet => "uet",
        };
        let traffic = match self.traffic {
            Traffic::Sizes { .. } => "sizes",
            Traffic::Incast { .. } => "incast",
            Traffic::Elephants { .. } => "elephants",
            Traffic::Collective { .. } => "collective",
        };
        let is_paced = matches!(family, Family::Tcp | Family::Rdma);
        let others = [
            ("marks", marks),
            ("unmarked", is_paced && !marks),
            ("paths", self.topology.has_paths()),
            ("idle", ranks(&self.topology) < self.topology.hosts()),
            ("offload", needs(Needs::Offload)),
            ("application", needs(Needs::Application)),
            ("limit", needs(Needs::Limit)),
        ];
        let others = others.into_iter().filter_map(|(word, stands)| stands.then_some(word));
        [self.topology.kind(), family_word, traffic].into_iter().chain(others).collect()
    }

    fn values(&self, name: &str, file: &str) -> Values {
        let names: Vec<&str> = self.mechanisms.iter().map(|one| &*one.name).collect();
        let (beside, mechanisms) = match &names[..] {
            [] => ("without a mechanism".to_string(), "none".to_string()),
            names => (format!("plain, and with {}", names.join(", ")), names.join(",")),
        };
        let commands = [
            format!("check {file}"),
            format!("compare {file} --seeds 6"),
            "explain min-rto".into(),
        ];
        let width = commands.iter().map(String::len).max().unwrap_or(0);
        let [check, compare, explain] = commands.map(|command| format!("{command:width$}"));
        let bits = self.rate.bps() as f64;
        let uet = (174_300.0 * bits / 100e9).max(49_800.0);
        let values = vec![
            ("traffic", self.traffic.kind().to_string()),
            ("transport", self.transport.kind.to_string()),
            ("network", self.topology.kind().to_string()),
            ("hosts", self.topology.hosts().to_string()),
            ("rate", self.rate.to_string()),
            ("beside", beside),
            ("check", check),
            ("compare", compare),
            ("explain", explain),
            ("topology", self.topology.to_string()),
            ("asked", self.traffic.to_string()),
            ("mechanisms", mechanisms),
            ("name", format!("{name:?}")),
            ("latest", self.latest_ms().to_string()),
            // A switch with one memory: 4.5 MB for 12 ports of 40 Gb/s, in proportion at other
            // rates, but no less a port than at 10 Gb/s.
            ("pools", (9_600.0 * (10_000_000_000.0 / bits).max(1.0)).ceil().to_string()),
            ("uet", format!("{uet:.0}")),
            ("uet-min", format!("{:.0}", uet * (37.35 / 174.3))),
            ("uet-max", format!("{:.0}", uet * (145.25 / 174.3))),
            ("per-byte", (8e12 / (0.8 * bits)).round().max(1.0).to_string()),
            ("half", Rate(self.rate.bps() / 2).to_string()),
            ("response", (RESPONSE / 1000).to_string()),
            ("queries", QUERIES.to_string()),
            ("ranks", ranks(&self.topology).to_string()),
            ("last", (self.topology.hosts() / 2 - 1).to_string()),
        ];
        values.into_iter().chain(self.sizes()).collect()
    }

    /// The values of this network and this traffic.
    fn sizes(&self) -> Values {
        let mut values: Values =
            self.topology.parts().map(|(name, size)| (name, size.to_string())).collect();
        values.extend(match self.traffic {
            Traffic::Sizes { load, .. } => {
                vec![("load", load.to_string()), ("stop", self.stop_us(load).to_string())]
            }
            Traffic::Incast { degree } => {
                vec![("degree", degree.to_string()), ("period", self.period_us(degree).to_string())]
            }
            Traffic::Elephants { size } | Traffic::Collective { size, .. } => {
                vec![("size", size.to_string())]
            }
        });
        values
    }

    /// Microseconds in which flows of a distribution start.
    fn stop_us(&self, load: f64) -> u64 {
        let capacity = self.rate.bps() as f64 * f64::from(self.topology.links_of_load());
        let volume = if self.transport.family == Family::Tcp { VOLUME } else { VOLUME_OF_OTHERS };
        ((volume * 8e6 / (capacity * load)).ceil() as u64).max(100).next_multiple_of(100)
    }

    /// Microseconds from one query to the next: twice what the receiver's link needs.
    fn period_us(&self, degree: u32) -> u64 {
        let bits = 2 * 8 * RESPONSE * u64::from(degree);
        (bits * 1_000_000 / self.rate.bps()).max(100).next_multiple_of(100)
    }

    /// The latest end of a run in milliseconds, with time for some timeouts.
    fn latest_ms(&self) -> u64 {
        let alone_us = |size: u64| size * 8_000_000 / self.rate.bps();
        let hosts = u64::from(self.topology.hosts());
        let busy_us = match self.traffic {
            Traffic::Sizes { load, .. } => self.stop_us(load) * 5,
            Traffic::Incast { degree } => self.period_us(degree) * QUERIES,
            Traffic::Elephants { size } | Traffic::Collective { size, .. } => {
                alone_us(size.get()) * hosts
            }
        };
        (busy_us / 1000 + 100).next_multiple_of(100)
    }
}

/// A text with its values in the place of their names.
fn filled(text: &str, values: &[(&'static str, String)]) -> String {
    let mut parts = text.split('{');
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let value = part.split_once('}').and_then(|(name, rest)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some([value.as_str(), rest])
        });
        match value {
            Some([value, rest]) => whole.extend([value, rest]),
            None => whole.extend(["{", part]),
        }
    }
    whole
}
