//! The topology: tiers of a fat tree, each with its radix, its links and its latencies.
//!
//! Aggregation switch a of a pod has links to the core switches a, a + n, a + 2n, … of n
//! aggregation switches a pod, and `Bundle` links to each. A switch's latency lies on its links,
//! half on either side, so that a way has the sum.

use millpond_core::{Rate, Time};

use super::matrix::Matrix;
use crate::network::{Link, Network};
use crate::source::Source;
use crate::{Imported, Result};

/// A tier's settings with their lines.
#[derive(Clone, Debug, Default)]
struct Tier {
    line: usize,
    set: Vec<(usize, u64)>,
}

/// The settings of a tier, in lower case.
const KEYS: [&str; 7] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
];
/// What they are where they are not given; `None`: they must be.
const DEFAULTS: [Option<u64>; 7] = [None, None, None, None, Some(0), Some(1), Some(1)];
const SPEED: usize = 0;
const DOWN: usize = 1;
const UP: usize = 2;
const LATENCY: usize = 3;
const SWITCH: usize = 4;
const OVERSUBSCRIBED: usize = 5;
const BUNDLE: usize = 6;

/// The k of htsim's default network for so many nodes.
pub(super) fn default_fat_tree(matrix: &Matrix) -> Result<u64> {
    let nodes = u64::from(matrix.nodes);
    let k = (2u64..=512).step_by(2).find(|k| k * k * k / 4 == nodes);
    k.ok_or_else(|| {
        let text = format!("{nodes} nodes are no fat tree (k³/4: 16, 54, 128, …); give its topology by --topology");
        matrix.file.wrong(matrix.nodes_line, text)
    })
}

/// Reads it, for a matrix of so many nodes. Returns the topology file.
pub(super) fn read(source: &Source, nodes: u32, imported: &mut Imported) -> Result<String> {
    let (mut header, mut tiers) = ([None; 3], vec![Tier::default(); 3]);
    let mut current: Option<usize> = None;
    for (line, words) in source.lines() {
        let key = words[0].to_lowercase();
        let [_, value] = words[..] else { return Err(source.wrong(line, format!("expected `{} NUMBER`", words[0]))) };
        let value = source.whole((line, value), words[0])?;
        let place = ["nodes", "tiers", "podsize"].into_iter().position(|name| name == key);
        match (key.as_str(), place, current) {
            ("tier", ..) if value > 2 => {
                return Err(source.wrong(line, format!("there is no tier {value}; they are 0 to 2")));
            }
            ("tier", ..) => {
                current = Some(value as usize);
                tiers[value as usize].line = line;
            }
            (_, Some(place), _) => header[place] = Some((line, value)),
            (_, None, current) => {
                let Some(at) = KEYS.iter().position(|name| *name == key) else {
                    let near = millpond_scenario::nearest(&key, KEYS);
                    let help = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                    return Err(source.wrong(line, format!("a topology has no {:?}{help}", words[0])));
                };
                let tier =
                    current.ok_or_else(|| source.wrong(line, format!("{} belongs below a line `Tier N`", words[0])))?;
                if tiers[tier].set.iter().any(|(other, _)| *other == at) {
                    return Err(source.wrong(line, format!("{} is given twice for tier {tier}", words[0])));
                }
                tiers[tier].set.push((at, value));
            }
        }
    }
    let network = Tree::new(source, header, tiers, nodes)?.network();
    imported.facts.push(network.fact());
    Ok(network.json())
}

/// The tree in numbers.
struct Tree {
    /// By tier: what is said.
    tiers: Vec<[u64; 7]>,
    pods: u64,
    leaves: u64,
    /// Aggregation switches a pod; in two tiers, all spines.
    aggregations: u64,
    cores: u64,
}

impl Tree {
    fn new(source: &Source, header: [Option<(usize, u64)>; 3], all: Vec<Tier>, nodes: u32) -> Result<Tree> {
        let said =
            |at: usize, name: &str| header[at].ok_or_else(|| source.wrong(1, format!("there is no line `{name} N`")));
        let ((nodes_line, hosts), (tiers_line, count), (pod_line, pod)) =
            (said(0, "Nodes")?, said(1, "Tiers")?, said(2, "Podsize")?);
        let fits = |line: usize, is: bool, text: String| if is { Ok(()) } else { Err(source.wrong(line, text)) };
        fits(nodes_line, hosts == u64::from(nodes), format!("{hosts} nodes, and the connection matrix has {nodes}"))?;
        fits(tiers_line, (2..=3).contains(&count), format!("{count} tiers; 2 and 3 are known"))?;
        let mut tiers = Vec::new();
        for (at, tier) in all.iter().enumerate().take(count as usize) {
            fits(source.end(), tier.line > 0, format!("there is no tier {at}"))?;
            let mut numbers = [0; 7];
            for (key, number) in numbers.iter_mut().enumerate() {
                let given = tier.set.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
                let is_top = at + 1 == count as usize;
                let default = DEFAULTS[key].or((key == UP && is_top).then_some(0));
                *number = given
                    .or(default)
                    .ok_or_else(|| source.wrong(tier.line, format!("tier {at} needs {}", KEYS[key])))?;
                let least = u64::from(!(key == SWITCH || key == LATENCY || key == UP && is_top));
                fits(tier.line, *number >= least, format!("tier {at}: {} is {number}", KEYS[key]))?;
            }
            tiers.push(numbers);
        }
        let divides = |line: usize, a: u64, b: u64, what: &str| {
            fits(line, a.is_multiple_of(b), format!("{what}: {a} is no multiple of {b}"))
        };
        divides(pod_line, hosts, pod, "the nodes are not whole pods")?;
        divides(pod_line, pod, tiers[0][DOWN], "a pod's nodes are not whole switches")?;
        let pods = if count == 2 { 1 } else { hosts / pod };
        let leaves = if count == 2 { hosts / tiers[0][DOWN] } else { pod / tiers[0][DOWN] };
        for (lower, upper) in (0..tiers.len()).zip(1..tiers.len()) {
            let ([down, up], line) = ([DOWN, UP].map(|key| tiers[lower][key]), all[lower].line);
            divides(line, up, tiers[upper][BUNDLE], &format!("tier {lower}'s links up are not whole bundles"))?;
            let (below, above) = (down * tiers[lower][SPEED], up * tiers[upper][SPEED] * tiers[lower][OVERSUBSCRIBED]);
            let text = format!(
                "tier {lower} is not {}-fold oversubscribed: {below} Gb/s down, {} up",
                tiers[lower][OVERSUBSCRIBED],
                up * tiers[upper][SPEED]
            );
            fits(line, below == above, text)?;
        }
        fits(all[0].line, tiers[0][BUNDLE] == 1, "hosts have one link: tier 0 has no bundles".into())?;
        let aggregations = tiers[0][UP] / tiers[1][BUNDLE];
        let asked = leaves * tiers[1][BUNDLE];
        fits(
            all[1].line,
            tiers[1][DOWN] == asked,
            format!("tier 1 has {} links down, and {asked} lead to it", tiers[1][DOWN]),
        )?;
        let cores = if count == 3 { aggregations * (tiers[1][UP] / tiers[2][BUNDLE]) } else { 0 };
        if count == 3 {
            let asked = pods * tiers[2][BUNDLE];
            fits(
                all[2].line,
                tiers[2][DOWN] == asked,
                format!("tier 2 has {} links down, and {asked} lead to it", tiers[2][DOWN]),
            )?;
        }
        Ok(Tree { tiers, pods, leaves, aggregations, cores })
    }

    fn network(&self) -> Network {
        let (tors, aggs) = (self.pods * self.leaves, self.pods * self.aggregations);
        let hosts = tors * self.tiers[0][DOWN];
        let mut network = Network { hosts: (0..hosts as u32).map(|host| (host, host)).collect(), ..Network::default() };
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
