//! The topology: tiers of a fat tree, each with its radix, its links and its latencies.
//!
//! Aggregation switch a of a pod has links to the core switches a, a + n, a + 2n, … of n
//! aggregation switches a pod, and `Bundle` links to each. A switch's latency lies on its links,
//! half on either side, so that a way has the sum.

use millpond_core::{Rate, Time};
use millpond_scenario::meant;

use super::matrix::{Failure, Matrix, Tier as Which};
use crate::network::{Link, Network};
use crate::outcome::Fate;
use crate::source::{Place, Source};
use crate::{Error, Imported, Result};

/// A tier's settings with their lines.
#[derive(Clone, Debug, Default)]
struct Tier<'s> {
    line: Option<Place<'s>>,
    set: Vec<Setting<'s>>,
}

/// A setting of a tier, by its place in [`KEYS`].
#[derive(Clone, Copy, Debug)]
struct Setting<'s> {
    key: usize,
    value: u64,
    line: Place<'s>,
}

/// The settings of a tier, in lower case.
const KEYS: [&str; 9] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
    "queue_up",
    "queue_down",
];
/// Their values where they are not given; `None`: they must be.
const DEFAULTS: [Option<u64>; 9] =
    [None, None, None, None, Some(0), Some(1), Some(1), Some(0), Some(0)];
/// The most that they may be: no product of them exceeds 64 bits.
const MOST: [u64; 9] =
    [1 << 20, 1 << 20, 1 << 20, 1 << 40, 1 << 40, 1 << 20, 1 << 20, 1 << 40, 1 << 40];
/// As many links as the list of a topology may have.
const LINKS_MAX: u128 = 8_000_000;
const SPEED: usize = 0;
const DOWN: usize = 1;
const UP: usize = 2;
const LATENCY: usize = 3;
const SWITCH: usize = 4;
const OVERSUBSCRIBED: usize = 5;
const BUNDLE: usize = 6;
const QUEUES: [usize; 2] = [7, 8];

/// The k of htsim's default network for so many nodes.
pub(super) fn default_fat_tree(matrix: &Matrix<'_>) -> Result<u64> {
    let nodes = u64::from(matrix.nodes);
    let k = (2u64..=512).step_by(2).find(|k| k * k * k / 4 == nodes);
    k.ok_or_else(|| {
        let text = format!(
            "{nodes} nodes are no fat tree (k³/4: 16, 54, 128, …); give its topology by --topology"
        );
        matrix.nodes_line.wrong(text)
    })
}

/// A network with its tiers, in which links can fail.
pub(super) struct Fabric {
    pub network: Network,
    tree: Tree,
    /// The table of the switches' buffer, if the topology has one.
    pub buffer: Option<String>,
}

/// htsim's default network, a fat tree of k-port switches.
pub(super) fn fat_tree(k: u64) -> Fabric {
    let half = k / 2;
    let tier = |up: u64, down: u64| [100, down, up, 1000, 0, 1, 1, 0, 0];
    let tiers = vec![tier(half, half), tier(half, half), tier(0, k)];
    let tree = Tree { tiers, pods: k, leaves: half, aggregations: half, cores: half * half };
    Fabric { network: tree.network(), tree, buffer: None }
}

impl Fabric {
    /// The `[[failure]]` of a link that is not there.
    pub fn failing(&self, failure: Failure<'_>) -> Result<String> {
        let tree = &self.tree;
        let (tors, aggs) = (tree.pods * tree.leaves, tree.pods * tree.aggregations);
        let (name, switches) = match failure.tier {
            Which::Tor => ("tor", tors),
            Which::Agg => ("agg", aggs),
            Which::Core => ("core", tree.cores),
        };
        let wrong = |text: String| failure.line.fail(text);
        if failure.switch >= switches {
            return wrong(format!("there is no {name}{}: there are {switches}", failure.switch));
        }
        // Of a bundle the first one fails.
        let links = match failure.tier {
            Which::Tor => tree.aggregations,
            Which::Agg if tree.cores > 0 => tree.tiers[1][UP] / tree.tiers[2][BUNDLE],
            Which::Agg => 0,
            Which::Core => tree.pods,
        };
        if failure.link >= links {
            return wrong(format!(
                "{name}{} has no link {} of {links}",
                failure.switch, failure.link
            ));
        }
        let other = match failure.tier {
            Which::Tor => {
                format!("agg{}", failure.switch / tree.leaves * tree.aggregations + failure.link)
            }
            Which::Agg => format!(
                "core{}",
                failure.switch % tree.aggregations + tree.aggregations * failure.link
            ),
            Which::Core => format!(
                "agg{}",
                failure.link * tree.aggregations + failure.switch % tree.aggregations
            ),
        };
        let own = format!("{name}{}", failure.switch);
        let numbers = self.network.numbers();
        let is_it = |link: &Link| {
            let ends = [self.network.name(link.a), self.network.name(link.b)];
            ends.contains(&own) && ends.contains(&other)
        };
        match self.network.links.iter().position(is_it) {
            Some(at) => Ok(self.network.failing(&self.network.links[at], numbers[at])),
            None => wrong(format!("there is no link between {own} and {other}")),
        }
    }
}

/// Reads it, for a matrix of so many nodes.
pub(super) fn read(source: &Source, nodes: u32, imported: &mut Imported) -> Result<Fabric> {
    let mut strange: Vec<(Place<'_>, String)> = Vec::new();
    let (mut header, mut tiers) = ([None; 3], vec![Tier::default(); 3]);
    let mut current: Option<usize> = None;
    for (line, words) in source.lines() {
        let key = words[0].to_lowercase();
        let is_known = KEYS.contains(&key.as_str())
            || ["nodes", "tiers", "podsize", "tier"].contains(&key.as_str());
        let value = match words[..] {
            [_, value] if is_known => line.whole(value, words[0])?,
            _ if is_known => {
                return line.fail(format!("expected `{} NUMBER`", words[0]));
            }
            _ => 0,
        };
        let place = ["nodes", "tiers", "podsize"].into_iter().position(|name| name == key);
        match (key.as_str(), place, current) {
            ("tier", ..) if value > 2 => {
                return line.fail(format!("there is no tier {value}; they are 0 to 2"));
            }
            ("tier", ..) => {
                current = Some(value as usize);
                tiers[value as usize].line = Some(line);
            }
            (_, Some(place), _) => header[place] = Some((line, value)),
            (_, None, current) => {
                let Some(at) = KEYS.iter().position(|name| *name == key) else {
                    let help = meant(&key, KEYS);
                    imported.record(
                        line,
                        words.join(" "),
                        Fate::Unknown(format!("no key of a topology{help}: not read")),
                    );
                    strange.push((line, words[0].to_string()));
                    continue;
                };
                let tier = current.ok_or_else(|| {
                    line.wrong(format!("{} belongs below a line `Tier N`", words[0]))
                })?;
                if tiers[tier].set.iter().any(|set| set.key == at) {
                    return line.fail(format!("{} is given twice for tier {tier}", words[0]));
                }
                tiers[tier].set.push(Setting { key: at, value, line });
            }
        }
    }
    let tree = Tree::new(source, header, &tiers, nodes).map_err(|error| hinted(error, &strange))?;
    let network = tree.network();
    imported.facts.push(network.fact());
    let buffer = buffer(&tiers[..tree.tiers.len()], imported);
    Ok(Fabric { network, tree, buffer })
}

/// An error about a key that is missing, with a key that was perhaps meant as it.
fn hinted(error: Error, strange: &[(Place<'_>, String)]) -> Error {
    let Error::Wrong { file, line, message } = error else { return error };
    let near = |word: &str| {
        KEYS.into_iter()
            .find(|key| millpond_scenario::nearest(&word.to_lowercase(), [*key]).is_some())
    };
    let meant = strange.iter().find_map(|(line, word)| {
        near(word).filter(|key| message.contains(key)).map(|_| (line, word))
    });
    let message = match meant {
        Some((line, word)) => {
            format!("{message}; is {word:?} in line {} meant as it?", line.number)
        }
        None => message,
    };
    Error::Wrong { file, line, message }
}

/// The switches' buffer, in packets: what a tier's queues have. Ports have one size a tier here.
fn buffer(tiers: &[Tier<'_>], imported: &mut Imported) -> Option<String> {
    let mut sizes: Vec<(usize, u64)> = Vec::new();
    for (at, tier) in tiers.iter().enumerate() {
        let own: Vec<&Setting<'_>> =
            tier.set.iter().filter(|set| QUEUES.contains(&set.key) && set.value > 0).collect();
        let Some(first) = own.first() else { continue };
        let alike = own.iter().all(|set| set.value == first.value);
        for set in &own {
            let fate = match alike {
                true => {
                    Fate::Becomes(format!("switch.buffer.packets of tier {at}, at all its ports"))
                }
                false => Fate::Missing(format!(
                    "the ports of a tier have queues of one size here: {} packets up and down",
                    first.value
                )),
            };
            let text = format!("{} {}", KEYS[set.key], set.value);
            imported.record(set.line, text, fate);
        }
        sizes.push((at, first.value));
    }
    let names: Vec<String> =
        sizes.iter().map(|(tier, packets)| format!("tier-{tier} = {packets}")).collect();
    let offs: Vec<String> =
        sizes.iter().map(|(tier, _)| format!("tier-{tier} = \"off\"")).collect();
    (!names.is_empty()).then(|| {
        let (packets, size) = (names.join(", "), offs.join(", "));
        format!(
            "buffer = {{ kind = \"per-port\", size = {{ {size}, others = \"auto\" }}, packets = \
             {{ {packets} }} }}"
        )
    })
}

struct Tree {
    /// By tier: the values of the file.
    tiers: Vec<[u64; 9]>,
    pods: u64,
    leaves: u64,
    /// Aggregation switches a pod; in two tiers, all spines.
    aggregations: u64,
    cores: u64,
}

/// An error of `line` with `text`, unless it fits.
fn fits(line: Place<'_>, is: bool, text: String) -> Result<()> {
    if is { Ok(()) } else { line.fail(text) }
}

impl Tree {
    fn new(
        source: &Source,
        header: [Option<(Place<'_>, u64)>; 3],
        all: &[Tier<'_>],
        nodes: u32,
    ) -> Result<Tree> {
        let given = |at: usize, name: &str| {
            header[at].ok_or_else(|| source.at(1).wrong(format!("there is no line `{name} N`")))
        };
        let ((nodes_line, hosts), (tiers_line, count), (pod_line, pod)) =
            (given(0, "Nodes")?, given(1, "Tiers")?, given(2, "Podsize")?);
        let text = format!("{hosts} nodes, and the connection matrix has {nodes}");
        fits(nodes_line, hosts == u64::from(nodes), text)?;
        fits(tiers_line, (2..=3).contains(&count), format!("{count} tiers; 2 and 3 are known"))?;
        let tiers = Tree::numbers(source, all, count as usize)?;
        let line_of = |tier: usize| all[tier].line.unwrap_or(source.end());
        let divides = |line: Place<'_>, a: u64, b: u64, what: &str| {
            fits(line, a.is_multiple_of(b), format!("{what}: {a} is no multiple of {b}"))
        };
        divides(pod_line, hosts, pod, "the nodes are not whole pods")?;
        divides(pod_line, pod, tiers[0][DOWN], "a pod's nodes are not whole switches")?;
        let pods = if count == 2 { 1 } else { hosts / pod };
        let leaves = if count == 2 { hosts / tiers[0][DOWN] } else { pod / tiers[0][DOWN] };
        for (lower, upper) in (0..tiers.len()).zip(1..tiers.len()) {
            let ([down, up], line) = ([DOWN, UP].map(|key| tiers[lower][key]), line_of(lower));
            let text = format!("tier {lower}'s links up are not whole bundles");
            divides(line, up, tiers[upper][BUNDLE], &text)?;
            let (below, above) = (
                down * tiers[lower][SPEED],
                up * tiers[upper][SPEED] * tiers[lower][OVERSUBSCRIBED],
            );
            let text = format!(
                "tier {lower} is not {}-fold oversubscribed: {below} Gb/s down, {} up",
                tiers[lower][OVERSUBSCRIBED],
                up * tiers[upper][SPEED]
            );
            fits(line, below == above, text)?;
        }
        fits(
            line_of(0),
            tiers[0][BUNDLE] == 1,
            "hosts have one link: tier 0 has no bundles".into(),
        )?;
        let aggregations = tiers[0][UP] / tiers[1][BUNDLE];
        let asked = leaves * tiers[1][BUNDLE];
        fits(
            line_of(1),
            tiers[1][DOWN] == asked,
            format!("tier 1 has {} links down, and {asked} lead to it", tiers[1][DOWN]),
        )?;
        let cores = if count == 3 { aggregations * (tiers[1][UP] / tiers[2][BUNDLE]) } else { 0 };
        if count == 3 {
            let asked = pods * tiers[2][BUNDLE];
            fits(
                line_of(2),
                tiers[2][DOWN] == asked,
                format!("tier 2 has {} links down, and {asked} lead to it", tiers[2][DOWN]),
            )?;
        }
        let up = |switches: u64, tier: usize| u128::from(switches) * u128::from(tiers[tier][UP]);
        let links = u128::from(hosts) + up(pods * leaves, 0) + up(pods * aggregations, 1);
        fits(nodes_line, links <= LINKS_MAX, format!("{links} links; {LINKS_MAX} are the most"))?;
        Ok(Tree { tiers, pods, leaves, aggregations, cores })
    }

    /// The numbers of the first `count` tiers, by tier and key.
    fn numbers(source: &Source, all: &[Tier<'_>], count: usize) -> Result<Vec<[u64; 9]>> {
        let mut tiers = Vec::new();
        for (at, tier) in all.iter().enumerate().take(count) {
            let missing = || source.end().wrong(format!("there is no tier {at}"));
            let line = tier.line.ok_or_else(missing)?;
            let mut numbers = [0; 9];
            for (key, number) in numbers.iter_mut().enumerate() {
                let given = tier.set.iter().find(|set| set.key == key).map(|set| set.value);
                let is_top = at + 1 == count;
                let default = DEFAULTS[key].or((key == UP && is_top).then_some(0));
                let lacks = || line.wrong(format!("tier {at} needs {}", KEYS[key]));
                *number = given.or(default).ok_or_else(lacks)?;
                let may_be_zero =
                    key == SWITCH || key == LATENCY || QUEUES.contains(&key) || key == UP && is_top;
                let least = u64::from(!may_be_zero);
                fits(
                    line,
                    (least..=MOST[key]).contains(number),
                    format!("tier {at}: {} is {number}; {least} to {} are", KEYS[key], MOST[key]),
                )?;
            }
            tiers.push(numbers);
        }
        Ok(tiers)
    }

    fn network(&self) -> Network {
        let (tors, aggs) = (self.pods * self.leaves, self.pods * self.aggregations);
        let hosts = tors * self.tiers[0][DOWN];
        let mut network = Network {
            hosts: (0..hosts as u32).map(|host| (host, host)).collect(),
            ..Network::default()
        };
        let names = [("tor", tors), ("agg", aggs), ("core", self.cores)];
        let mut first = hosts;
        let mut begins = Vec::new();
        for (tier, (name, count)) in names.into_iter().enumerate() {
            begins.push(first);
            let switch = |at: u64| ((first + at) as u32, (format!("{name}{at}"), Some(tier as u8)));
            network.switches.extend((0..count).map(switch));
            first += count;
        }
        let mut link = |tier: usize, a: u64, b: u64| {
            let numbers = &self.tiers[tier];
            let below = tier.checked_sub(1).map_or(0, |below| self.tiers[below][SWITCH]);
            let delay = Time::from_ps(numbers[LATENCY] * 1_000 + (below + numbers[SWITCH]) * 500);
            let rate = Rate(numbers[SPEED] * 1_000_000_000);
            network.links.push(Link { a: a as u32, b: b as u32, rate, delay, loss: 0.0, line: 0 });
        };
        (0..hosts).for_each(|host| link(0, host, begins[0] + host / self.tiers[0][DOWN]));
        for tor in 0..tors {
            for agg in 0..self.aggregations {
                let agg = begins[1] + tor / self.leaves * self.aggregations + agg;
                (0..self.tiers[1][BUNDLE]).for_each(|_| link(1, begins[0] + tor, agg));
            }
        }
        for agg in (0..aggs).filter(|_| self.cores > 0) {
            for step in 0..self.tiers[1][UP] / self.tiers[2][BUNDLE] {
                let core = agg % self.aggregations + self.aggregations * step;
                (0..self.tiers[2][BUNDLE]).for_each(|_| link(2, begins[1] + agg, begins[2] + core));
            }
        }
        network
    }
}
