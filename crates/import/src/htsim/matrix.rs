//! The connection matrix: a header, connections `src->dst` with pairs of words, and triggers.
//!
//! A trigger is activated by each flow that names it as its `send_done_trigger` or
//! `recv_done_trigger`. `oneshot` lets all its flows start at its one activation, `barrier` at the
//! last of `count`, `multishot` one more flow at each. Which flow a multishot starts depends on who
//! is done first, unless its flows activate it themselves, one after the other: such a chain is
//! what is read.
//!
//! A file with messages (`msg`) is for programs that reuse connections (`-conn_reuse` of
//! `main_uec`): they read each start as whole microseconds, and lines of one `id` are messages of
//! one connection. Other files have picoseconds, and an id a line.

use std::collections::BTreeMap;

use millpond_core::Time;
use millpond_scenario::meant;
use millpond_scenario::settings::flows::cycle;

use crate::outcome::{Fate, Outcome};
use crate::source::{Place, Source, Word};
use crate::units::us_text;
use crate::{Imported, Result};

/// The tier of a switch whose link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    Tor,
    Agg,
    Core,
}

/// A link that is not there: the `link`-th upwards of a switch, and downwards of a core switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<'s> {
    pub line: Place<'s>,
    pub tier: Tier,
    pub switch: u64,
    pub link: u64,
}

pub(super) struct Matrix<'s> {
    pub nodes: u32,
    pub nodes_line: Place<'s>,
    pub csv: String,
    pub is_empty: bool,
    /// Links that fail, with their texts.
    pub failures: Vec<(Failure<'s>, String)>,
    /// How long the run is, if a flow has no end.
    pub duration: Option<Time>,
}

struct Connection<'s> {
    line: Place<'s>,
    src: u32,
    dst: u32,
    size: Option<u64>,
    start: Option<Time>,
    id: Option<u64>,
    waits_for: Option<u64>,
    activates: Vec<u64>,
    /// Whether it is a message of a connection, and its text.
    message: Option<String>,
    strange: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    OneShot,
    MultiShot,
    Barrier,
}

struct Trigger<'s> {
    line: Place<'s>,
    kind: Kind,
    count: u64,
}

#[derive(Default)]
struct Reading<'s> {
    header: BTreeMap<&'static str, (Place<'s>, u64)>,
    connections: Vec<Connection<'s>>,
    triggers: BTreeMap<u64, Trigger<'s>>,
    failures: Vec<(Failure<'s>, String)>,
}

/// Bytes of an endless flow, a terabyte: more than any link sends in the time of a run.
const ENDLESS: u64 = 1 << 40;
/// How long htsim's programs run by default (`-end`).
const END: Time = Time::from_ms(1);

const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

/// Reads it. Parts that are not modelled go to `imported`.
pub(super) fn read<'s>(source: &'s Source, imported: &mut Imported) -> Result<Matrix<'s>> {
    let mut reading = Reading::default();
    let reuse =
        source.lines().any(|(_, words)| words[0].contains("->") && words.contains(&MESSAGE));
    if reuse {
        imported.facts.push(format!(
            "{}: it has messages, so each start is whole microseconds, as its program reads them",
            source.name
        ));
    }
    for (line, words) in source.lines() {
        if let Some(key) = HEADER.into_iter().find(|key| *key == words[0]) {
            let value = words.get(1).ok_or_else(|| line.wrong(format!("{key} has no number")))?;
            reading.header.insert(key, (line, line.whole(value, key)?));
        } else if words[0].contains("->") {
            let connection = connection(line, &words, reuse, imported)?;
            reading.connections.push(connection);
        } else if words[0] == "trigger" {
            let (id, trigger) = trigger(line, &words)?;
            if let Some(other) = reading.triggers.insert(id, trigger) {
                return line
                    .fail(format!("trigger {id} is that of line {} as well", other.line.number));
            }
        } else if words[0] == "failure" {
            reading.failures.push((failure(line, &words)?, words.join(" ")));
        } else {
            let near = meant(words[0], HEADER.iter().copied().chain(["trigger", "failure"]));
            let means = format!("no line of a connection matrix{near}: not read");
            imported.record(line, words.join(" "), Fate::Unknown(means));
        }
    }
    leave_out(&mut reading, imported);
    check(source, &reading, &imported.keys)?;
    let (nodes_line, nodes) = reading.header["Nodes"];
    imported.facts.push(format!(
        "{} flows, {} triggers",
        reading.connections.len(),
        reading.triggers.len()
    ));
    let csv = list(&reading)?;
    messages(&reading, imported);
    let duration = endless(&reading, imported);
    let failures = reading.failures;
    Ok(Matrix {
        nodes: nodes as u32,
        nodes_line,
        csv,
        is_empty: reading.connections.is_empty(),
        failures,
        duration,
    })
}

/// Leaves out flows from a node to itself that nobody waits for.
fn leave_out(reading: &mut Reading<'_>, imported: &mut Imported) {
    let all = std::mem::take(&mut reading.connections);
    let is_left_out =
        |c: &Connection<'_>| c.src == c.dst && c.activates.is_empty() && c.waits_for.is_none();
    let (out, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_left_out);
    reading.connections = kept;
    if let Some((_, announced)) = reading.header.get_mut("Connections") {
        *announced = announced.saturating_sub(out.len() as u64);
    }
    for c in out {
        let why = "a flow from a node to itself is left out: nothing of it is sent";
        let text = format!("{}->{}", c.src, c.dst);
        imported.record(c.line, text, Fate::LeftOut(why.into()));
    }
}

/// Messages: one of its connection is a flow, several have an order there.
fn messages(reading: &Reading<'_>, imported: &mut Imported) {
    // Lines of one id, or between the same nodes where there is none.
    let of = |c: &Connection<'_>| (c.id, c.id.is_none().then_some((c.src, c.dst)));
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for c in &reading.connections {
        *counts.entry(of(c)).or_default() += 1;
    }
    for c in &reading.connections {
        let Some(text) = &c.message else { continue };
        let fate = match counts[&of(c)] {
            1 => Fate::Becomes("a flow: the only message of its connection".into()),
            _ => Fate::Missing(
                "messages of one connection have an order there; here each is a flow by itself, \
                 beside the others"
                    .into(),
            ),
        };
        imported.record(c.line, text, fate);
    }
}

/// Reports flows without an end. Returns how long the run is, if there is one.
fn endless(reading: &Reading<'_>, imported: &mut Imported) -> Option<Time> {
    let all = reading.connections.iter().filter(|c| c.size == Some(0));
    let last = reading.connections.iter().filter_map(|c| c.start).max().unwrap_or_default();
    let duration = last.saturating_add(END);
    let mut any = None;
    for c in all {
        let means =
            format!("a flow without an end there; here it sends until the run ends, at {duration}");
        imported.record(c.line, "size 0", Fate::Missing(means));
        any = Some(duration);
    }
    any
}

fn failure<'s>(line: Place<'s>, words: &[&str]) -> Result<Failure<'s>> {
    let (mut tier, mut switch, mut link) = (None, None, None);
    for pair in words[1..].chunks(2) {
        let [key, value] = *pair else {
            return line.fail(format!("{} has no value", pair[0]));
        };
        match key {
            "switch_type" => {
                tier = Some(match value.to_uppercase().as_str() {
                    "TOR" => Tier::Tor,
                    "AGG" => Tier::Agg,
                    "CORE" => Tier::Core,
                    _ => {
                        return line
                            .fail(format!("switch_type is TOR, AGG or CORE, not {value:?}"));
                    }
                });
            }
            "switch_id" => switch = Some(line.whole(value, key)?),
            "link_id" => link = Some(line.whole(value, key)?),
            _ => {
                let near = meant(key, ["switch_type", "switch_id", "link_id"]);
                return line.fail(format!("a failure has no {key:?}{near}"));
            }
        }
    }
    match (tier, switch, link) {
        (Some(tier), Some(switch), Some(link)) => Ok(Failure { line, tier, switch, link }),
        _ => line.fail("a failure needs switch_type, switch_id and link_id"),
    }
}

/// The keyword of a message of a connection.
const MESSAGE: &str = "msg";
const KEYS: [&str; 9] = [
    "start",
    "size",
    "id",
    "trigger",
    "send_done_trigger",
    "recv_done_trigger",
    "prio",
    "addon",
    MESSAGE,
];

fn connection<'s>(
    line: Place<'s>,
    words: &[&str],
    reuse: bool,
    imported: &mut Imported,
) -> Result<Connection<'s>> {
    let (src, dst) = words[0].split_once("->").unwrap_or((words[0], ""));
    let node = |word: &str, what: &str| -> Result<u32> {
        let number = line.whole(word, what)?;
        u32::try_from(number).map_err(|_| line.wrong(format!("{what}: {number} is no node")))
    };
    let mut found = Connection {
        line,
        src: node(src, "source")?,
        dst: node(dst, "destination")?,
        size: None,
        start: None,
        id: None,
        waits_for: None,
        activates: Vec::new(),
        message: None,
        strange: Vec::new(),
    };
    let mut at = 1;
    while let Some(&key) = words.get(at) {
        at += 1;
        if key == "addon" {
            let means = "the flow starts as if it were not an add-on";
            imported.record(line, key, Fate::Missing(means.into()));
            continue;
        }
        let next_is_number = words.get(at).is_some_and(|word| word.parse::<f64>().is_ok());
        if key == MESSAGE {
            found.message =
                Some(if next_is_number { format!("msg {}", words[at]) } else { key.into() });
            at += usize::from(next_is_number);
            continue;
        }
        if !KEYS.contains(&key) {
            let text =
                if next_is_number { format!("{key} {}", words[at]) } else { key.to_string() };
            at += usize::from(next_is_number);
            let means = format!("no word of a connection{}: not read", meant(key, KEYS));
            imported.record(line, text, Fate::Unknown(means));
            found.strange.push(key.to_string());
            continue;
        }
        let value = words.get(at).ok_or_else(|| line.wrong(format!("{key} has no value")))?;
        at += 1;
        let whole = || line.whole(value, key);
        match key {
            "start" => found.start = Some(start((line, value), reuse)?),
            "size" => found.size = Some(whole()?),
            "id" => found.id = Some(whole()?),
            "trigger" => found.waits_for = Some(whole()?),
            "send_done_trigger" | "recv_done_trigger" => found.activates.push(whole()?),
            _ => {
                let means = "flows have one priority, and what is sent is not ordered by it";
                imported.record(line, format!("prio {value}"), Fate::Missing(means.into()));
            }
        }
    }
    found.activates.retain(|trigger| *trigger != 0);
    Ok(found)
}

fn start((line, word): Word<'_>, reuse: bool) -> Result<Time> {
    let (unit, name) = match reuse {
        true => (Time::from_us(1), "microseconds"),
        false => (Time::from_ps(1), "picoseconds"),
    };
    let number = word.parse::<f64>().ok().map(|n| if reuse { n.trunc() } else { n.round() });
    let longest = (Time::LONGEST.as_ps() / unit.as_ps()) as f64;
    let number = number.filter(|n| (0.0..=longest).contains(n));
    let wrong = || line.wrong(format!("start: {word:?} is not a time in {name}"));
    Ok(unit * number.ok_or_else(wrong)? as u64)
}

fn trigger<'s>(line: Place<'s>, words: &[&str]) -> Result<(u64, Trigger<'s>)> {
    let (mut id, mut count, mut kind) = (None, None, None);
    let mut at = 1;
    while let Some(&key) = words.get(at) {
        at += 1;
        let own = match key {
            "oneshot" => Kind::OneShot,
            "multishot" => Kind::MultiShot,
            "barrier" => Kind::Barrier,
            "id" | "count" => {
                let value =
                    words.get(at).ok_or_else(|| line.wrong(format!("{key} has no value")))?;
                at += 1;
                let place = if key == "id" { &mut id } else { &mut count };
                *place = Some(line.whole(value, key)?);
                continue;
            }
            _ => {
                return line.fail(format!(
                    "a trigger has id, count, and one of oneshot, multishot and barrier; not \
                         {key:?}"
                ));
            }
        };
        if kind.replace(own).is_some() {
            return line.fail("a trigger is one of oneshot, multishot and barrier");
        }
    }
    let id = id.filter(|id| *id > 0).ok_or_else(|| line.wrong("a trigger needs an id, from 1"))?;
    let kind =
        kind.ok_or_else(|| line.wrong("a trigger needs to be oneshot, multishot or barrier"))?;
    if kind == Kind::Barrier && count.is_none_or(|count| count == 0) {
        return line.fail("a barrier needs a count, from 1");
    }
    Ok((id, Trigger { line, kind, count: count.unwrap_or(1) }))
}

/// Whether there are as many lines of each kind as are announced.
fn announced(source: &Source, reading: &Reading<'_>, outcomes: &[Outcome]) -> Result<()> {
    let found = [
        ("Connections", reading.connections.len() as u64),
        ("Triggers", reading.triggers.len() as u64),
        ("Failures", reading.failures.len() as u64),
    ];
    for (key, found) in found {
        let Some((line, announced)) = reading.header.get(key).copied() else {
            // Its programs read as many lines as are announced.
            if found > 0 {
                let meant = |outcome: &&Outcome| {
                    let first = outcome.text.split(' ').next().unwrap_or_default();
                    millpond_scenario::nearest(first, [key]).is_some()
                };
                let near = outcomes.iter().find(meant).map(|outcome| {
                    format!("; is {:?} at {} meant as it?", outcome.text, outcome.place)
                });
                let near = near.unwrap_or_default();
                let text = format!("there is no line `{key} N`, and there are {found}{near}");
                return source.end().fail(text);
            }
            continue;
        };
        if announced != found {
            return line.fail(format!("{key}: {announced} are announced, and there are {found}"));
        }
    }
    Ok(())
}

/// Counts, nodes, sizes, and that all has a beginning.
fn check(source: &Source, reading: &Reading<'_>, outcomes: &[Outcome]) -> Result<()> {
    let Some(&(line, nodes)) = reading.header.get("Nodes") else {
        return source.at(1).fail("there is no line `Nodes N`");
    };
    if !(2..=1 << 24).contains(&nodes) {
        return line.fail(format!("{nodes} nodes; 2 and more are a network"));
    }
    announced(source, reading, outcomes)?;
    let mut ids: BTreeMap<u64, &Connection<'_>> = BTreeMap::new();
    let reuse = reading.connections.iter().any(|c| c.message.is_some());
    for c in &reading.connections {
        let wrong = |text: String| c.line.fail(text);
        for (what, node) in [("source", c.src), ("destination", c.dst)] {
            if u64::from(node) >= nodes {
                return wrong(format!(
                    "{what}: there is no node {node}; they are 0 to {}",
                    nodes - 1
                ));
            }
        }
        match (c.size, c.start, c.waits_for) {
            _ if c.src == c.dst => return wrong(format!("node {} sends to itself", c.src)),
            (None, ..) => return wrong(format!("a flow needs a size{}", strange(c, "size"))),
            (_, None, None) => {
                return wrong(format!("a flow needs a start or a trigger{}", strange(c, "start")));
            }
            (_, Some(_), Some(_)) => {
                return wrong("a flow has a start or a trigger, not both".into());
            }
            (_, None, Some(_)) if c.id.is_none() => {
                return wrong("a flow with a trigger needs an id".into());
            }
            _ => {}
        }
        if let Some(id) = c.id
            && let Some(first) = ids.insert(id, c)
            && !(reuse && (first.src, first.dst) == (c.src, c.dst))
        {
            return wrong(format!("id {id} is that of line {} as well", first.line.number));
        }
        for trigger in c.activates.iter().chain(&c.waits_for) {
            if !reading.triggers.contains_key(trigger) {
                return wrong(format!("there is no trigger {trigger}"));
            }
        }
    }
    Ok(())
}

/// An unread key of a connection that resembles this one.
fn strange(c: &Connection<'_>, key: &str) -> String {
    let near = c.strange.iter().find(|word| millpond_scenario::nearest(word, [key]).is_some());
    near.map(|word| format!("; is {word:?} meant as {key:?}?")).unwrap_or_default()
}

/// By place of each connection: the places of those that it waits for. Flows that a trigger starts
/// wait for the flows that activate it.
fn predecessors(reading: &Reading<'_>) -> Result<Vec<Vec<usize>>> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); reading.connections.len()];
    for (id, trigger) in &reading.triggers {
        let of = |is: &dyn Fn(&Connection<'_>) -> bool| -> Vec<usize> {
            (0..reading.connections.len()).filter(|at| is(&reading.connections[*at])).collect()
        };
        let activators = of(&|c| c.activates.contains(id));
        let targets = of(&|c| c.waits_for == Some(*id));
        let wrong = |text: String| trigger.line.fail(format!("trigger {id} {text}"));
        if targets.is_empty() {
            continue;
        }
        let (needed, found) = (trigger.count as usize, activators.len());
        match trigger.kind {
            _ if found == 0 => return wrong("never fires: no flow names it".into()),
            Kind::OneShot if found > 1 => {
                return wrong(format!("is oneshot, and {found} flows name it"));
            }
            Kind::Barrier if found < needed => {
                return wrong(format!(
                    "never fires: it waits for {needed} flows, and {found} name it"
                ));
            }
            Kind::Barrier if found > needed => {
                return wrong(format!("waits for {needed} flows, and {found} name it"));
            }
            Kind::OneShot | Kind::Barrier => {
                targets.iter().for_each(|target| after[*target].extend(&activators))
            }
            Kind::MultiShot => {
                let first: Vec<usize> =
                    activators.iter().copied().filter(|at| !targets.contains(at)).collect();
                let in_chain =
                    targets[..targets.len() - 1].iter().all(|target| activators.contains(target));
                let ([first], true) = (&first[..], in_chain) else {
                    return wrong(
                        "is multishot with several flows at a time: which starts next depends on \
                         who is done first, which is not modelled"
                            .into(),
                    );
                };
                let before = std::iter::once(first).chain(&targets);
                targets
                    .iter()
                    .zip(before)
                    .for_each(|(target, before)| after[*target].push(*before));
            }
        }
    }
    Ok(after)
}

fn list(reading: &Reading<'_>) -> Result<String> {
    let after = predecessors(reading)?;
    // A file without triggers is a plain list.
    let with_ids = !reading.triggers.is_empty();
    let mut csv = String::from(if with_ids {
        "start_us,src,dst,bytes,id,after\n"
    } else {
        "start_us,src,dst,bytes\n"
    });
    let all = &reading.connections;
    // The first line of an id has it: later ones are messages of its connection.
    let first = |id: u64| all.iter().position(|c| c.id == Some(id));
    let name = |at: usize| match all[at].id.filter(|id| first(*id) == Some(at)) {
        Some(id) => id.to_string(),
        None => format!("line{}", all[at].line.number),
    };
    for (at, c) in all.iter().enumerate() {
        let start = us_text(c.start.unwrap_or_default());
        csv += &format!(
            "{start},{},{},{}",
            c.src,
            c.dst,
            c.size.filter(|size| *size > 0).unwrap_or(ENDLESS)
        );
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
            c.line.fail(format!("{}->{} waits for itself, by way of triggers", c.src, c.dst))
        }
        None => Ok(csv),
    }
}
