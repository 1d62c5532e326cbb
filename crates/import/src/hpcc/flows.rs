//! The flow file: how many flows there are, and a line a flow. The rest is not read, there as here;
//! lines of it that look like flows are reported.
//!
//! Forks differ in the columns ([`Columns`]). Of those that have as many as the first flow's line,
//! the one is taken that makes sense of the most lines: hosts that are there, a size, a start
//! before the stop. If several do, the report names the one taken.

use millpond_core::{Bytes, Time};
use std::collections::BTreeMap;

use super::fork::Fork;
use super::surplus;
use super::topology::Topology;
use crate::outcome::Fate;
use crate::source::{Place, Source, Words};
use crate::units::{seconds, us_text};
use crate::{Imported, Result};

pub(super) struct Flows {
    pub csv: String,
    /// When the first one starts there: the beginning here.
    pub begin: Time,
    /// Their priority groups: how many flows each has, and the line of its first.
    pub groups: BTreeMap<u64, (usize, usize)>,
    /// The nodes that send, with those that they send to, and the line of the first flow.
    pub pairs: BTreeMap<(u32, u32), usize>,
}

/// The facts that a reading of the file goes by.
pub(super) struct Reading<'a> {
    pub fork: Fork,
    pub topology: &'a Topology,
    /// Bytes of a packet's payload.
    pub payload: u64,
    /// When flows may start, as far as keys bound it.
    pub from: Time,
    pub to: Time,
}

/// The columns of a line, as places of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    text: &'static str,
    /// How many there are; what follows is not read.
    count: usize,
    id: Option<usize>,
    port: Option<usize>,
    /// Source, destination and priority group are one after the other from here on.
    first: usize,
    bytes: usize,
    start: usize,
    /// Whether sizes are numbers of packets.
    in_packets: bool,
}

const fn columns(text: &'static str, count: usize, first: usize, bytes: usize) -> Columns {
    // Between the priority group and the size.
    let port = if bytes > first + 3 { Some(first + 3) } else { None };
    Columns { text, count, id: None, port, first, bytes, start: bytes + 1, in_packets: false }
}

const PLAIN: Columns = columns("src dst pg port bytes start", 6, 0, 4);
const PORTLESS: Columns = columns("src dst pg bytes start", 5, 0, 3);
/// Those of m3's fork and others.
const NUMBERED: Columns =
    Columns { id: Some(0), ..columns("id src dst pg port bytes start", 7, 1, 5) };
const PACKETS: Columns =
    Columns { in_packets: true, ..columns("src dst pg packets start stop", 5, 0, 3) };

/// The port of nearly all lists, which `fct.txt` has for lists without ports.
const COMMON_PORT: u16 = 100;

struct Flow<'s> {
    line: Place<'s>,
    id: Option<u64>,
    start: Time,
    nodes: [u32; 2],
    src: u32,
    dst: u32,
    bytes: u64,
    group: u64,
    port: Option<u16>,
}

/// Reads it; `None`: it announces no flows, and has none.
pub(super) fn read(
    source: &Source,
    reading: &Reading<'_>,
    imported: &mut Imported,
) -> Result<Option<Flows>> {
    let mut words = source.words();
    let count = words.whole("the number of flows")?;
    let first = words.left_in_line();
    let lines = lines(&mut words, count)?;
    surplus(&words, &format!("the {count} announced flows"), imported);
    if lines.is_empty() {
        return Ok(None);
    }
    let columns = chosen(source, &lines, first, reading, imported);
    let mut flows: Vec<Flow<'_>> = Vec::new();
    for (at, (line, words)) in lines.iter().enumerate() {
        let what = format!("flow {} of {count}", at + 1);
        let flow = flow(reading, &columns, *line, words, &what)?;
        let left_out = match () {
            () if flow.src == flow.dst => {
                Some("a flow from a host to itself is left out: nothing of it is sent")
            }
            () if flow.bytes == 0 => Some("a flow of 0 bytes is left out"),
            () => None,
        };
        match left_out {
            None => flows.push(flow),
            Some(why) => imported.record(*line, words.join(" "), Fate::LeftOut(why.into())),
        }
    }
    if flows.is_empty() {
        return lines[0].0.fail("no flow sends anything: all are left out");
    }
    Ok(Some(list(flows, imported)))
}

/// The words of each flow's line. A program reads words, so a flow may go over several lines: then
/// all have as many words as the columns of the first line that is complete.
fn lines<'s>(words: &mut Words<'s>, count: u64) -> Result<Vec<(Place<'s>, Vec<&'s str>)>> {
    let mut lines: Vec<(Place<'s>, Vec<&str>)> = Vec::new();
    for at in 1..=count {
        let what = format!("flow {at} of {count}");
        let fields = words.left_in_line();
        let (line, word) = words.next(&what)?;
        let mut own = vec![word];
        for _ in 1..fields {
            own.push(words.next(&what)?.1);
        }
        let least = lines.first().map_or(5, |first| first.1.len());
        if own.len() < least {
            let text = format!(
                "{what}: expected source, destination, priority group, port (not in ConWeave's), \
                 bytes and start, found {} values",
                own.len()
            );
            return line.fail(text);
        }
        lines.push((line, own));
    }
    Ok(lines)
}

/// The columns that make sense of the most lines; of several that do, the fork's own.
fn chosen(
    source: &Source,
    lines: &[(Place<'_>, Vec<&str>)],
    found: usize,
    reading: &Reading<'_>,
    imported: &mut Imported,
) -> Columns {
    let own = match reading.fork {
        Fork::ConWeave => [PORTLESS, PLAIN, NUMBERED],
        Fork::Ancestor => [PACKETS, PLAIN, NUMBERED],
        _ => [PLAIN, PORTLESS, NUMBERED],
    };
    // A list with columns more is the fork's own, or one of those with the most.
    let fits =
        |columns: &Columns| columns.count == found || *columns == own[0] || found > NUMBERED.count;
    let candidates = own.into_iter().filter(|columns| columns.count <= found && fits(columns));
    let sound = |columns: &Columns| {
        lines.iter().filter(|(_, words)| is_sound(words, columns, reading)).count()
    };
    let mut scored: Vec<(usize, Columns)> =
        candidates.map(|columns| (sound(&columns), columns)).collect();
    // As many columns as the line has are more likely than fewer, but for a fork's own.
    scored.sort_by_key(|(sound, columns)| {
        (usize::MAX - sound, *columns != own[0], columns.count != found)
    });
    let Some((most, columns)) = scored.first().copied() else {
        return if found > 6 { NUMBERED } else { own[0] };
    };
    let also: Vec<&str> =
        scored[1..].iter().filter(|(sound, _)| *sound == most).map(|(_, of)| of.text).collect();
    if columns != own[0] || found > columns.count || !also.is_empty() {
        let others = match also.is_empty() {
            true => String::new(),
            false => format!("; `{}` would fit as well", also.join("` and `")),
        };
        imported
            .facts
            .push(format!("{}: its lines are read as `{}`{others}", source.name, columns.text));
    }
    if found > columns.count {
        let (line, words) = &lines[0];
        imported.record(
            *line,
            words.join(" "),
            Fate::Unknown(format!("column {} and what follows it are not read", columns.count + 1)),
        );
    }
    columns
}

/// Whether a line makes sense in these columns.
fn is_sound(words: &[&str], columns: &Columns, reading: &Reading<'_>) -> bool {
    let host = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
    let is_host = |node: Option<u32>| {
        node.is_some_and(|node| reading.topology.network.hosts.contains_key(&node))
    };
    let (src, dst) = (host(columns.first), host(columns.first + 1));
    let bytes = words.get(columns.bytes).and_then(|word| word.parse::<u64>().ok());
    let start = words.get(columns.start).and_then(|word| seconds(word));
    is_host(src)
        && is_host(dst)
        && src != dst
        && bytes.is_some_and(|bytes| bytes > 0)
        && start.is_some_and(|start| reading.from <= start && start <= reading.to)
}

fn flow<'s>(
    reading: &Reading<'_>,
    columns: &Columns,
    line: Place<'s>,
    words: &[&str],
    what: &str,
) -> Result<Flow<'s>> {
    let topology = reading.topology;
    if words.len() < columns.count {
        let text = format!("{what}: expected `{}`, found {} values", columns.text, words.len());
        return line.fail(text);
    }
    let whole = |at: usize, what: &str| line.whole(words[at], what);
    let host = |at: usize| -> Result<(u32, u32)> {
        let number = whole(at, what)?;
        let node = u32::try_from(number).ok();
        let host = node.and_then(|node| Some((node, *topology.network.hosts.get(&node)?)));
        let is_switch =
            u32::try_from(number).is_ok_and(|node| topology.network.switches.contains_key(&node));
        host.ok_or_else(|| {
            let what = if is_switch {
                "is a switch, and sends and receives no flows"
            } else {
                "is no host of the topology"
            };
            line.wrong(format!("node {number} {what}"))
        })
    };
    let ((a, src), (b, dst)) = (host(columns.first)?, host(columns.first + 1)?);
    let group = whole(columns.first + 2, "the priority group")?;
    // Programs take the lowest 16 bits.
    let port = columns.port.and_then(|at| words[at].parse::<u64>().ok()).map(|port| port as u16);
    let id = columns.id.map(|at| whole(at, "the flow's number")).transpose()?;
    let unit = if columns.in_packets { reading.payload } else { 1 };
    let bytes = whole(columns.bytes, "the size")?.saturating_mul(unit);
    // ConWeave's fork sends a byte where the file has zero.
    let bytes = bytes.max(u64::from(reading.fork == Fork::ConWeave));
    if bytes > 1 << 48 {
        return line.fail(format!("{bytes} bytes is no size of a flow"));
    }
    let start = words[columns.start];
    let start = seconds(start)
        .ok_or_else(|| line.wrong(format!("start: {start:?} is not a time in seconds, from 0")))?;
    Ok(Flow { line, id, start, nodes: [a, b], src, dst, bytes, group, port })
}

/// The flows as CSV, from the first one's start on. Their numbers become ids where they are apart.
fn list(flows: Vec<Flow<'_>>, imported: &mut Imported) -> Flows {
    let begin = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
    let mut ids: Vec<u64> = flows.iter().filter_map(|flow| flow.id).collect();
    let has_ids = !ids.is_empty();
    ids.sort_unstable();
    ids.dedup();
    let are_apart = ids.len() == flows.len();
    if has_ids && !are_apart {
        imported.record(
            flows[0].line,
            "the flow's number",
            Fate::Unknown("several flows have the same number, so flows have no id here".into()),
        );
    }
    let with_ids = has_ids && are_apart;
    let with_ports = flows.iter().any(|flow| flow.port.is_some_and(|port| port != COMMON_PORT));
    let mut csv = String::from("start_us,src,dst,bytes");
    csv += if with_ids { ",id" } else { "" };
    csv += if with_ports { ",port\n" } else { "\n" };
    for flow in &flows {
        let start = us_text(flow.start.saturating_sub(begin));
        csv += &format!("{start},{},{},{}", flow.src, flow.dst, flow.bytes);
        if let Some(id) = flow.id.filter(|_| with_ids) {
            csv += &format!(",{id}");
        }
        if let Some(port) = flow.port.filter(|_| with_ports) {
            csv += &format!(",{port}");
        }
        csv.push('\n');
    }
    let bytes = Bytes(flows.iter().fold(0, |sum, flow| flow.bytes.saturating_add(sum)));
    imported.facts.push(format!(
        "flows: {}, with {bytes} in all; the first one's start, {begin} there, is zero here",
        flows.len()
    ));
    let mut groups: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for flow in &flows {
        groups.entry(flow.group).or_insert((0, flow.line.number)).0 += 1;
        pairs.entry(flow.nodes.into()).or_insert(flow.line.number);
    }
    Flows { csv, begin, groups, pairs }
}
