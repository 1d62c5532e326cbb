//! Flows from a list: a CSV file, or rows in the scenario.
//!
//! The file has a header with the columns `start_us`, `src`, `dst`, `bytes` and, if need be,
//! `class`, `id`, `after` and `port`, in any order. Times are decimal microseconds, kept exactly
//! down to the picosecond. Rows may come in any order; equal times keep it.
//!
//! A row with `after`, ids with spaces between them, starts when all of those flows are delivered;
//! its `start_us` counts from then. No row may wait for itself by way of others.

use crate::error::meant;
use millpond_core::Time;
use millpond_core::params::{Field, Form, Value, ValueError};
use std::collections::HashMap;
use std::sync::Arc;

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// From the traffic's start; if it waits for others, from when they are delivered.
    pub start: Time,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// How much.
    pub bytes: u64,
    /// Index in [`FlowTable::classes`].
    pub class: Option<u16>,
    /// Its destination port in the files that it was imported from, which `fct.txt` gives back.
    pub port: Option<u16>,
}

/// A list of flows, sorted by start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// The flows.
    pub rows: Vec<FlowRow>,
    /// The classes that they name, in the order in which a row first names them.
    pub classes: Vec<String>,
    /// Which wait for which; `None`: no row has an id.
    pub waits: Option<Waits>,
}

/// The names of rows, and which they wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// By row: its id; empty: it has none.
    pub ids: Vec<String>,
    /// By row: the rows that it waits for, in the order of its text.
    pub after: Vec<Vec<u32>>,
}

/// A row as it is written.
#[derive(Clone, Debug)]
pub(crate) struct ListRow {
    pub row: FlowRow,
    pub class: Option<String>,
    pub id: Option<String>,
    pub after: Vec<String>,
    /// Where: errors name it.
    pub line: usize,
}

/// Flows written in the scenario itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRows(pub Option<Arc<FlowTable>>);

impl Field for FlowRows {
    const FORM: Form = Form::Text;
    const OPTIONAL: bool = true;
    fn to_value(&self) -> Value {
        if self.0.is_some() { Value::Text("rows".into()) } else { Value::Off }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Off => Ok(FlowRows(None)),
            _ => {
                Err(ValueError("expected an array of rows such as [[\"10us\", 0, 1, 1000]]".into()))
            }
        }
    }
}

/// The fault of a list of flows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FlowsError {
    /// The line, from 1.
    pub line: usize,
    /// The problem there.
    pub message: String,
}

/// Decimal microseconds, exactly where they have at most six decimals, else to the nearest
/// picosecond; at most [`Time::LONGEST`].
pub(crate) fn parse_us(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !whole.is_empty()
        && whole.len() <= 13
        && fraction.len() <= 6
        && digits(whole)
        && digits(fraction)
    {
        let ps: u64 = format!("{whole}{fraction:0<6}").parse().ok()?;
        return Some(Time::from_ps(ps)).filter(|time| *time <= Time::LONGEST);
    }
    let us: f64 = text.parse().ok()?;
    (0.0..=1e12).contains(&us).then(|| Time::from_ps((us * 1e6 + 0.5) as u64))
}

impl FlowTable {
    /// Sorts rows, and finds out what they name.
    pub(crate) fn new(mut rows: Vec<ListRow>) -> Result<FlowTable, FlowsError> {
        rows.sort_by_key(|row| row.row.start);
        let mut table = FlowTable { waits: waits(&rows)?, ..FlowTable::default() };
        let mut numbers = HashMap::<String, u16>::new();
        for ListRow { mut row, class, line, .. } in rows {
            if let Some(name) = class {
                let next = numbers.len();
                if next >= 30_000 && !numbers.contains_key(&name) {
                    return Err(FlowsError { line, message: "more than 30000 classes".into() });
                }
                let number = *numbers.entry(name.clone()).or_insert(next as u16);
                if number as usize == next {
                    table.classes.push(name);
                }
                row.class = Some(number);
            }
            table.rows.push(row);
        }
        Ok(table)
    }

    /// Reads a CSV text for a network of this many hosts.
    ///
    /// # Errors
    /// The first line that has a wrong number of columns, a number out of range, an unknown host,
    /// or a flow from a host to itself; or a header without `start_us,src,dst,bytes`.
    pub fn parse(text: &str, hosts: u32) -> Result<FlowTable, FlowsError> {
        let mut lines =
            text.lines().enumerate().map(|(i, l)| (i + 1, l.trim_start_matches('\u{feff}').trim()));
        let mut lines = lines.by_ref().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
        let (line, header) = lines.next().ok_or(FlowsError {
            line: 1,
            message: "there is no header start_us,src,dst,bytes".into(),
        })?;
        let columns = Columns::parse(header).map_err(|message| FlowsError { line, message })?;
        let mut rows = Vec::new();
        for (line, text) in lines {
            let row = columns.row(text, hosts).map_err(|message| FlowsError { line, message })?;
            rows.push(ListRow { line, ..row });
        }
        FlowTable::new(rows)
    }

    /// The name of a row, if it is.
    pub fn id(&self, row: usize) -> Option<&str> {
        self.waits.as_ref()?.ids.get(row).map(String::as_str).filter(|id| !id.is_empty())
    }
}

/// Which of the sorted rows wait for which, if any has an id.
fn waits(rows: &[ListRow]) -> Result<Option<Waits>, FlowsError> {
    if rows.iter().all(|row| row.id.is_none() && row.after.is_empty()) {
        return Ok(None);
    }
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(id) = &row.id else { continue };
        if let Some(first) = numbers.insert(id, at as u32) {
            let (a, b) = (rows[first as usize].line, row.line);
            let message = format!("id {id:?} is that of line {} as well", a.min(b));
            return Err(FlowsError { line: a.max(b), message });
        }
    }
    let mut waits = Waits::default();
    for row in rows {
        let mut after: Vec<u32> = Vec::new();
        for id in &row.after {
            let Some(number) = numbers.get(id.as_str()) else {
                let help = meant(id, rows.iter().filter_map(|row| row.id.as_deref()));
                return Err(FlowsError {
                    line: row.line,
                    message: format!("after: no row has the id {id:?}{help}"),
                });
            };
            if !after.contains(number) {
                after.push(*number);
            }
        }
        waits.ids.push(row.id.clone().unwrap_or_default());
        waits.after.push(after);
    }
    match cycle(&waits.after) {
        None => Ok(Some(waits)),
        Some(cycle) => {
            let first =
                cycle.iter().copied().min_by_key(|at| rows[*at as usize].line).unwrap_or(cycle[0]);
            let from = cycle.iter().position(|at| *at == first).unwrap_or(0);
            let around = cycle[from..]
                .iter()
                .chain(&cycle[..=from])
                .map(|at| waits.ids[*at as usize].as_str());
            let text = around.collect::<Vec<_>>().join(" after ");
            Err(FlowsError {
                line: rows[first as usize].line,
                message: format!("waits for itself: {text}"),
            })
        }
    }
}

/// A cycle, if what waits for what has one: each waits for the next, and the last for the first.
pub fn cycle(after: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut left: Vec<usize> = after.iter().map(Vec::len).collect();
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); after.len()];
    for (at, others) in after.iter().enumerate() {
        others.iter().for_each(|other| before[*other as usize].push(at as u32));
    }
    let mut free: Vec<u32> = (0..after.len() as u32).filter(|at| left[*at as usize] == 0).collect();
    while let Some(at) = free.pop() {
        for &next in &before[at as usize] {
            left[next as usize] -= 1;
            if left[next as usize] == 0 {
                free.push(next);
            }
        }
    }
    // Whoever is left waits for another that is left.
    let mut walk = vec![left.iter().position(|left| *left > 0)? as u32];
    loop {
        let last = walk[walk.len() - 1] as usize;
        let next = *after[last].iter().find(|other| left[**other as usize] > 0)?;
        if let Some(from) = walk.iter().position(|at| *at == next) {
            return Some(walk.split_off(from));
        }
        walk.push(next);
    }
}

/// The conditions that a flow's fields must satisfy, wherever it was written.
pub(crate) fn check_row(row: &FlowRow, hosts: u32) -> Result<(), String> {
    for (name, host) in [("src", row.src), ("dst", row.dst)] {
        if host >= hosts {
            return Err(format!("{name} {host} is no host; there are {hosts}, from 0"));
        }
    }
    if row.src == row.dst {
        return Err(format!("host {} sends to itself", row.src));
    }
    if row.bytes == 0 || row.bytes > BYTES_MAX {
        return Err(format!("{} bytes is no size of a flow; 1 to {BYTES_MAX} are", row.bytes));
    }
    Ok(())
}

/// The largest flow: sequence numbers must not run out.
pub(crate) const BYTES_MAX: u64 = 1 << 48;

/// Where the header puts each column.
struct Columns {
    /// Positions of `start_us`, `src`, `dst`, `bytes`.
    of: [usize; 4],
    /// Positions of `class`, `id`, `after`, `port`.
    optional: [Option<usize>; 4],
    count: usize,
}

const NAMES: [&str; 4] = ["start_us", "src", "dst", "bytes"];
const OPTIONAL: [&str; 4] = ["class", "id", "after", "port"];

impl Columns {
    fn parse(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        for (i, name) in names.iter().enumerate() {
            if !NAMES.contains(name) && !OPTIONAL.contains(name) {
                let (required, optional) = (NAMES.join(", "), OPTIONAL.join(", "));
                return Err(format!(
                    "unknown column {name:?}; the columns are {required}, and if need be \
                     {optional}"
                ));
            }
            if names[..i].contains(name) {
                return Err(format!("two columns {name:?}"));
            }
        }
        let find = |name: &str| names.iter().position(|n| *n == name);
        let mut of = [0; 4];
        for (at, name) in of.iter_mut().zip(NAMES) {
            *at = find(name).ok_or_else(|| format!("there is no column {name:?}"))?;
        }
        Ok(Columns { of, optional: OPTIONAL.map(find), count: names.len() })
    }

    fn row(&self, text: &str, hosts: u32) -> Result<ListRow, String> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        // Optional columns at the end need not be there.
        let required = (0..self.count)
            .rev()
            .find(|at| !self.optional.contains(&Some(*at)))
            .map_or(0, |last| last + 1);
        if !(required..=self.count).contains(&fields.len()) {
            return Err(format!("expected {} columns, found {}", self.count, fields.len()));
        }
        let number = |i: usize, name: &str| {
            let text = fields[self.of[i]];
            text.parse::<u64>().map_err(|_| format!("{name}: {text:?} is not a whole number"))
        };
        let host =
            |i: usize, name: &str| number(i, name).map(|h| u32::try_from(h).unwrap_or(u32::MAX));
        let start = fields[self.of[0]];
        let start = parse_us(start)
            .ok_or_else(|| format!("start_us: {start:?} is not a time in microseconds"))?;
        let mut row = FlowRow {
            start,
            src: host(1, "src")?,
            dst: host(2, "dst")?,
            bytes: number(3, "bytes")?,
            class: None,
            port: None,
        };
        check_row(&row, hosts)?;
        let [class, id, after, port] = self
            .optional
            .map(|at| at.and_then(|at| fields.get(at)).copied().filter(|field| !field.is_empty()));
        if let Some(id) = id {
            check_id(id)?;
        }
        let whole =
            |port: &str| port.parse().map_err(|_| format!("port: {port:?} is no port, 0 to 65535"));
        row.port = port.map(whole).transpose()?;
        let after =
            after.map_or(Vec::new(), |ids| ids.split_whitespace().map(String::from).collect());
        Ok(ListRow {
            row,
            class: class.map(String::from),
            id: id.map(String::from),
            after,
            line: 0,
        })
    }
}

/// Whether this can name a flow: names are written with spaces between them.
pub(crate) fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("id: {id:?} has spaces in it, or nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_in_any_order() {
        let text =
            "start_us,src,dst,bytes,class\n# comment\n2.5,0,1,100,web\n\n1,1,0,7\n2.5,2,0,9,\n";
        let t = FlowTable::parse(text, 3).unwrap();
        assert_eq!(t.classes, ["web"]);
        assert_eq!(
            t.rows.iter().map(|r| (r.start.as_ps(), r.bytes, r.class)).collect::<Vec<_>>(),
            [(1_000_000, 7, None), (2_500_000, 100, Some(0)), (2_500_000, 9, None)]
        );
        assert!(
            FlowTable::parse("bytes,dst,src,start_us\n5,1,0,0.000001\n", 2).unwrap().rows[0].start
                == Time::from_ps(1)
        );
    }

    #[test]
    fn errors_name_their_line() {
        let fails = |text: &str| FlowTable::parse(text, 3).unwrap_err();
        let head = "start_us,src,dst,bytes\n";
        assert_eq!(fails("").line, 1);
        assert!(fails("start,src,dst,bytes\n").message.contains("start_us"));
        assert!(fails("start_us,src,dst\n").message.contains("bytes"));
        for (row, what) in [
            ("0,0,3,5", "no host"),
            ("0,1,1,5", "itself"),
            ("0,0,1,0", "0 bytes"),
            ("0,0,1", "columns"),
            ("-1,0,1,5", "start_us"),
            ("1e400,0,1,5", "start_us"),
            ("0,x,1,5", "whole number"),
        ] {
            let e = fails(&format!("{head}\n{row}\n"));
            assert!(e.line == 3 && e.message.contains(what), "{row}: {e}");
        }
    }

    #[test]
    fn rows_wait_for_rows() {
        let text = "start_us,src,dst,bytes,id,after\r\n5,0,1,100,a\r\n0.5,1,2,100,b,a\r\n0,2,0,9,,\
                    a  b a\r\n";
        let table = FlowTable::parse(text, 3).unwrap();
        let waits = table.waits.as_ref().unwrap();
        // By start: the last, b, a.
        assert_eq!(waits.ids, ["", "b", "a"]);
        assert_eq!(waits.after, [vec![2, 1], vec![2], vec![]]);
        assert_eq!(
            (table.id(0), table.id(2), table.rows[1].start),
            (None, Some("a"), Time::from_ns(500))
        );
        assert_eq!(FlowTable::parse("start_us,src,dst,bytes\n0,0,1,5\n", 3).unwrap().waits, None);
        let fails = |rows: &str| {
            let e = FlowTable::parse(&format!("start_us,src,dst,bytes,id,after\n{rows}"), 3)
                .unwrap_err();
            (e.line, e.message)
        };
        let (line, text) = fails("9,0,1,5,a,c\n0,1,2,5,b,a\n0,1,2,5,c,b\n");
        assert_eq!((line, text.as_str()), (2, "waits for itself: a after c after b after a"));
        let (line, text) = fails("0,0,1,5,flow1\n0,1,2,5,,flow2\n");
        assert!(
            line == 3 && text.contains("no row has the id \"flow2\"") && text.contains("flow1"),
            "{text}"
        );
        assert_eq!(
            fails("3,0,1,5,x\n\n0,1,2,5,x\n"),
            (4, "id \"x\" is that of line 2 as well".into())
        );
        assert!(
            fails("0,0,1,5,a b\n").1.contains("spaces")
                && fails("0,0,1,5,a,a\n").1.contains("a after a")
        );
    }

    #[test]
    fn microseconds_are_exact() {
        assert_eq!(parse_us("0.1").unwrap().as_ps(), 100_000);
        assert_eq!(parse_us("12345678.000001").unwrap().as_ps(), 12_345_678_000_001);
        assert_eq!(parse_us("1e3").unwrap(), Time::from_ms(1));
        assert_eq!(parse_us("1.23456789").unwrap().as_ps(), 1_234_568);
        assert_eq!(parse_us("1000000000000"), Some(Time::LONGEST));
        assert!(parse_us("1000000000000.1").is_none() && parse_us("1.1e12").is_none());
        assert!(parse_us("inf").is_none() && parse_us("").is_none() && parse_us(".").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_a_table_or_an_error(
            text in "(start_us,src,dst,bytes(,class)?\n)?[0-9.,a-z\n\\-]{0,80}",
        ) {
            let _ = FlowTable::parse(&text, 10);
        }
    }
}
