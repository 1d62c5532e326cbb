//! The connection matrix: a header, connections `src->dst` with pairs of words, and triggers.
//!
//! A trigger is activated by each flow that names it as its `send_done_trigger` or
//! `recv_done_trigger`. `oneshot` lets all its flows start at its one activation, `barrier` at the
//! last of `count`, `multishot` one more flow at each. Which flow a multishot starts depends on who
//! is done first, unless its flows activate it themselves, one after the other: such a chain is
//! what is read.

use std::collections::BTreeMap;

use millpond_core::Time;
use millpond_scenario::traffic::flows::cycle;

use crate::source::{Source, Word};
use crate::told::{Fate, Told};
use crate::units::us_text;
use crate::{Imported, Result};

/// A matrix that is checked.
pub(super) struct Matrix {
    /// Hosts.
    pub nodes: u32,
    /// The line that says so.
    pub nodes_line: usize,
    /// Its file.
    pub file: Source,
    /// The list of flows.
    pub csv: String,
}

/// A connection.
#[derive(Default)]
struct Connection {
    line: usize,
    src: u32,
    dst: u32,
    size: Option<u64>,
    start: Option<Time>,
    id: Option<u64>,
    waits_for: Option<u64>,
    /// Triggers that it activates.
    activates: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    OneShot,
    MultiShot,
    Barrier,
}

struct Trigger {
    line: usize,
    kind: Kind,
    count: u64,
}

#[derive(Default)]
struct Reading {
    header: BTreeMap<&'static str, (usize, u64)>,
    connections: Vec<Connection>,
    triggers: BTreeMap<u64, Trigger>,
    failures: u64,
}

const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

/// Reads it. What is not modelled goes to `imported`.
pub(super) fn read(source: &Source, imported: &mut Imported) -> Result<Matrix> {
    let mut reading = Reading::default();
    for (line, words) in source.lines() {
        if let Some(key) = HEADER.into_iter().find(|key| *key == words[0]) {
            let value = words.get(1).ok_or_else(|| source.wrong(line, format!("{key} has no number")))?;
            reading.header.insert(key, (line, source.whole((line, value), key)?));
        } else if words[0].contains("->") {
            let connection = connection(source, line, &words, imported)?;
            reading.connections.push(connection);
        } else if words[0] == "trigger" {
            let (id, trigger) = trigger(source, line, &words)?;
            if let Some(other) = reading.triggers.insert(id, trigger) {
                return Err(source.wrong(line, format!("trigger {id} is that of line {} as well", other.line)));
            }
        } else if words[0] == "failure" {
            reading.failures += 1;
            imported.told.push(missing(source, line, &words.join(" "), "no link fails: the run is of a whole network"));
        } else {
            let known = HEADER.iter().copied().chain(["trigger", "failure"]);
            let near = millpond_scenario::nearest(words[0], known);
            let help = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(source.wrong(line, format!("{:?} is no line of a connection matrix{help}", words[0])));
        }
    }
    check(source, &reading)?;
    let (nodes_line, nodes) = reading.header["Nodes"];
    imported.facts.push(format!("{} flows, {} triggers", reading.connections.len(), reading.triggers.len()));
    let csv = list(source, &reading)?;
    Ok(Matrix { nodes: nodes as u32, nodes_line, file: source.clone(), csv })
}

fn missing(source: &Source, line: usize, text: &str, means: &str) -> Told {
    Told { place: format!("{}:{line}", source.name), text: text.into(), fate: Fate::Missing(means.into()) }
}

fn connection(source: &Source, line: usize, words: &[&str], imported: &mut Imported) -> Result<Connection> {
    let (src, dst) = words[0].split_once("->").unwrap_or((words[0], ""));
    let node = |word: &str, what: &str| -> Result<u32> {
        let number = source.whole((line, word), what)?;
        u32::try_from(number).map_err(|_| source.wrong(line, format!("{what}: {number} is no node")))
    };
    let mut found =
        Connection { line, src: node(src, "source")?, dst: node(dst, "destination")?, ..Connection::default() };
    let mut at = 1;
    while let Some(&key) = words.get(at) {
        at += 1;
        if key == "addon" {
            imported.told.push(missing(source, line, key, "the flow starts as if it were not an add-on"));
            continue;
        }
        let value = words.get(at).ok_or_else(|| source.wrong(line, format!("{key} has no value")))?;
        at += 1;
        let whole = || source.whole((line, value), key);
        match key {
            "start" => found.start = Some(start(source, (line, value))?),
            "size" => found.size = Some(whole()?),
            "id" => found.id = Some(whole()?),
            "trigger" => found.waits_for = Some(whole()?),
            "send_done_trigger" | "recv_done_trigger" => found.activates.push(whole()?),
            "prio" => {
                let means = "flows have one priority, and what is sent is not ordered by it";
                imported.told.push(missing(source, line, &format!("prio {value}"), means));
            }
            _ => {
                let known =
                    ["start", "size", "id", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "addon"];
                let near = millpond_scenario::nearest(key, known);
                let help = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                return Err(source.wrong(line, format!("a connection has no {key:?}{help}")));
            }
        }
    }
    found.activates.retain(|trigger| *trigger != 0);
    Ok(found)
}

/// Picoseconds.
fn start(source: &Source, (line, word): Word<'_>) -> Result<Time> {
    let ps = word.parse::<f64>().ok().filter(|ps| *ps >= 0.0 && *ps <= Time::LONGEST.as_ps() as f64);
    let ps = ps.ok_or_else(|| source.wrong(line, format!("start: {word:?} is not a time in picoseconds")))?;
    Ok(Time::from_ps(ps.round() as u64))
}

fn trigger(source: &Source, line: usize, words: &[&str]) -> Result<(u64, Trigger)> {
    let (mut id, mut count, mut kind) = (None, None, None);
    let mut at = 1;
    while let Some(&key) = words.get(at) {
        at += 1;
        let own = match key {
            "oneshot" => Kind::OneShot,
            "multishot" => Kind::MultiShot,
            "barrier" => Kind::Barrier,
            "id" | "count" => {
                let value = words.get(at).ok_or_else(|| source.wrong(line, format!("{key} has no value")))?;
                at += 1;
                let place = if key == "id" { &mut id } else { &mut count };
                *place = Some(source.whole((line, value), key)?);
                continue;
            }
            _ => {
                return Err(source.wrong(
                    line,
                    format!("a trigger has id, count, and one of oneshot, multishot and barrier; not {key:?}"),
                ));
            }
        };
        if kind.replace(own).is_some() {
            return Err(source.wrong(line, "a trigger is one of oneshot, multishot and barrier"));
        }
    }
    let id = id.filter(|id| *id > 0).ok_or_else(|| source.wrong(line, "a trigger needs an id, from 1"))?;
    let kind = kind.ok_or_else(|| source.wrong(line, "a trigger needs to be oneshot, multishot or barrier"))?;
    if kind == Kind::Barrier && count.is_none_or(|count| count == 0) {
        return Err(source.wrong(line, "a barrier needs a count, from 1"));
    }
    Ok((id, Trigger { line, kind, count: count.unwrap_or(1) }))
}

/// Counts, nodes, sizes, and that all has a beginning.
fn check(source: &Source, reading: &Reading) -> Result<()> {
    let Some(&(line, nodes)) = reading.header.get("Nodes") else {
        return Err(source.wrong(1, "there is no line `Nodes N`"));
    };
    if !(2..=1 << 24).contains(&nodes) {
        return Err(source.wrong(line, format!("{nodes} nodes; 2 and more are a network")));
    }
    let found = [
        ("Connections", reading.connections.len() as u64),
        ("Triggers", reading.triggers.len() as u64),
        ("Failures", reading.failures),
    ];
    for (key, found) in found {
        let (line, said) = reading.header.get(key).copied().unwrap_or((source.end(), 0));
        if said != found {
            return Err(source.wrong(line, format!("{key}: {said} are announced, and there are {found}")));
        }
    }
    let mut ids: BTreeMap<u64, usize> = BTreeMap::new();
    for c in &reading.connections {
        let wrong = |text: String| Err(source.wrong(c.line, text));
        for (what, node) in [("source", c.src), ("destination", c.dst)] {
            if u64::from(node) >= nodes {
                return wrong(format!("{what}: there is no node {node}; they are 0 to {}", nodes - 1));
            }
        }
        match (c.size, c.start, c.waits_for) {
            _ if c.src == c.dst => return wrong(format!("node {} sends to itself", c.src)),
            (None | Some(0), ..) => return wrong("a flow needs a size; flows without an end are not modelled".into()),
            (_, None, None) => return wrong("a flow needs a start or a trigger".into()),
            (_, Some(_), Some(_)) => return wrong("a flow has a start or a trigger, not both".into()),
            (_, None, Some(_)) if c.id.is_none() => return wrong("a flow with a trigger needs an id".into()),
            _ => {}
        }
        if let Some(id) = c.id
            && let Some(line) = ids.insert(id, c.line)
        {
            return wrong(format!("id {id} is that of line {line} as well"));
        }
        for trigger in c.activates.iter().chain(&c.waits_for) {
            if !reading.triggers.contains_key(trigger) {
                return wrong(format!("there is no trigger {trigger}"));
            }
        }
    }
    Ok(())
}

/// The flows as CSV: what activates a trigger is what its flows come after.
fn list(source: &Source, reading: &Reading) -> Result<String> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); reading.connections.len()];
    for (id, trigger) in &reading.triggers {
        let of = |is: &dyn Fn(&Connection) -> bool| -> Vec<usize> {
            (0..reading.connections.len()).filter(|at| is(&reading.connections[*at])).collect()
        };
        let activators = of(&|c| c.activates.contains(id));
        let targets = of(&|c| c.waits_for == Some(*id));
        let wrong = |text: String| Err(source.wrong(trigger.line, format!("trigger {id} {text}")));
        if targets.is_empty() {
            continue;
        }
        let (needed, found) = (trigger.count as usize, activators.len());
        match trigger.kind {
            _ if found == 0 => return wrong("never fires: no flow names it".into()),
            Kind::OneShot if found > 1 => return wrong(format!("is oneshot, and {found} flows name it")),
            Kind::Barrier if found < needed => {
                return wrong(format!("never fires: it waits for {needed} flows, and {found} name it"));
            }
            Kind::Barrier if found > needed => return wrong(format!("waits for {needed} flows, and {found} name it")),
            Kind::OneShot | Kind::Barrier => targets.iter().for_each(|target| after[*target].extend(&activators)),
            Kind::MultiShot => {
                let first: Vec<usize> = activators.iter().copied().filter(|at| !targets.contains(at)).collect();
                let in_chain = targets[..targets.len() - 1].iter().all(|target| activators.contains(target));
                let ([first], true) = (&first[..], in_chain) else {
                    return wrong("is multishot with several flows at a time: which starts next depends on who is done first, which is not modelled".into());
                };
                let before = std::iter::once(first).chain(&targets);
                targets.iter().zip(before).for_each(|(target, before)| after[*target].push(*before));
            }
        }
    }
    // A file without triggers is a plain list.
    let with_ids = !reading.triggers.is_empty();
    let mut csv = String::from(if with_ids { "start_us,src,dst,bytes,id,after\n" } else { "start_us,src,dst,bytes\n" });
    let name = |at: usize| {
        reading.connections[at].id.map_or(format!("line{}", reading.connections[at].line), |id| id.to_string())
    };
    for (at, c) in reading.connections.iter().enumerate() {
        let start = us_text(c.start.unwrap_or_default());
        csv += &format!("{start},{},{},{}", c.src, c.dst, c.size.unwrap_or_default());
        if with_ids {
            let others: Vec<String> = after[at].iter().map(|other| name(*other)).collect();
            csv += &format!(",{},{}", name(at), others.join(" "));
        }
        csv.push('\n');
    }
    let after: Vec<Vec<u32>> =
        after.into_iter().map(|others| others.into_iter().map(|at| at as u32).collect()).collect();
    match cycle(&after).and_then(|cycle| cycle.into_iter().min()) {
        Some(at) => {
            let c = &reading.connections[at as usize];
            Err(source.wrong(c.line, format!("{}->{} waits for itself, by way of triggers", c.src, c.dst)))
        }
        None => Ok(csv),
    }
}
