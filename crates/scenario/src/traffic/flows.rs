//! Flows from a list: a CSV file, or rows in the scenario.
//!
//! The file has a header with the columns `start_us`, `src`, `dst`, `bytes` and an optional `class`, in any order. Times
//! are decimal microseconds, kept exactly down to the picosecond. Rows may come in any order; equal times keep it.

use millpond_core::Time;
use millpond_core::params::{Field, Form, Value, ValueError};
use std::sync::Arc;

/// One flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// From the traffic's start.
    pub start: Time,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// How much.
    pub bytes: u64,
    /// Index in [`FlowTable::classes`].
    pub class: Option<u16>,
}

/// A list of flows, sorted by start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// The flows.
    pub rows: Vec<FlowRow>,
    /// The classes that they name, in the order in which a row first names them.
    pub classes: Vec<String>,
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
            _ => Err(ValueError("expected an array of rows such as [[\"10us\", 0, 1, 1000]]".into())),
        }
    }
}

/// What is wrong with a list of flows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FlowsError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// Decimal microseconds, exactly where they have at most six decimals, else to the nearest
/// picosecond; at most [`Time::LONGEST`].
pub(crate) fn parse_us(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !whole.is_empty() && whole.len() <= 13 && fraction.len() <= 6 && digits(whole) && digits(fraction) {
        let ps: u64 = format!("{whole}{fraction:0<6}").parse().ok()?;
        return Some(Time::from_ps(ps)).filter(|time| *time <= Time::LONGEST);
    }
    let us: f64 = text.parse().ok()?;
    (0.0..=1e12).contains(&us).then(|| Time::from_ps((us * 1e6 + 0.5) as u64))
}

impl FlowTable {
    /// Collects rows with the class's name each, and sorts them.
    pub fn new(rows: impl IntoIterator<Item = (FlowRow, Option<String>)>) -> Result<FlowTable, String> {
        let mut table = FlowTable::default();
        let mut numbers = std::collections::HashMap::<String, u16>::new();
        for (mut row, class) in rows {
            row.class = match class {
                None => None,
                Some(name) => {
                    let next = numbers.len();
                    if next >= 30_000 && !numbers.contains_key(&name) {
                        return Err("more than 30000 classes".into());
                    }
                    let number = *numbers.entry(name.clone()).or_insert(next as u16);
                    if number as usize == next {
                        table.classes.push(name);
                    }
                    Some(number)
                }
            };
            table.rows.push(row);
        }
        table.rows.sort_by_key(|row| row.start);
        Ok(table)
    }

    /// Reads a CSV text for a network of this many hosts.
    pub fn parse(text: &str, hosts: u32) -> Result<FlowTable, FlowsError> {
        let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim_start_matches('\u{feff}').trim()));
        let mut lines = lines.by_ref().filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
        let (line, header) =
            lines.next().ok_or(FlowsError { line: 1, message: "there is no header start_us,src,dst,bytes".into() })?;
        let columns = Columns::parse(header).map_err(|message| FlowsError { line, message })?;
        let mut rows = Vec::new();
        for (line, text) in lines {
            rows.push(columns.row(text, hosts).map_err(|message| FlowsError { line, message })?);
        }
        FlowTable::new(rows).map_err(|message| FlowsError { line: 1, message })
    }
}

/// What a flow's fields must satisfy, wherever it was written.
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
    class: Option<usize>,
    count: usize,
}

const NAMES: [&str; 4] = ["start_us", "src", "dst", "bytes"];

impl Columns {
    fn parse(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        for (i, name) in names.iter().enumerate() {
            if !NAMES.contains(name) && *name != "class" {
                return Err(format!("unknown column {name:?}; the columns are start_us, src, dst, bytes and class"));
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
        Ok(Columns { of, class: find("class"), count: names.len() })
    }

    fn row(&self, text: &str, hosts: u32) -> Result<(FlowRow, Option<String>), String> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let without_class = self.class == Some(self.count - 1) && fields.len() + 1 == self.count;
        if fields.len() != self.count && !without_class {
            return Err(format!("expected {} columns, found {}", self.count, fields.len()));
        }
        let number = |i: usize, name: &str| {
            let text = fields[self.of[i]];
            text.parse::<u64>().map_err(|_| format!("{name}: {text:?} is not a whole number"))
        };
        let host = |i: usize, name: &str| number(i, name).map(|h| u32::try_from(h).unwrap_or(u32::MAX));
        let start = fields[self.of[0]];
        let start = parse_us(start).ok_or_else(|| format!("start_us: {start:?} is not a time in microseconds"))?;
        let row =
            FlowRow { start, src: host(1, "src")?, dst: host(2, "dst")?, bytes: number(3, "bytes")?, class: None };
        check_row(&row, hosts)?;
        let class = self.class.and_then(|i| fields.get(i)).filter(|c| !c.is_empty());
        Ok((row, class.map(|c| c.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_in_any_order() {
        let text = "start_us,src,dst,bytes,class\n# comment\n2.5,0,1,100,web\n\n1,1,0,7\n2.5,2,0,9,\n";
        let t = FlowTable::parse(text, 3).unwrap();
        assert_eq!(t.classes, ["web"]);
        assert_eq!(
            t.rows.iter().map(|r| (r.start.as_ps(), r.bytes, r.class)).collect::<Vec<_>>(),
            [(1_000_000, 7, None), (2_500_000, 100, Some(0)), (2_500_000, 9, None)]
        );
        assert!(
            FlowTable::parse("bytes,dst,src,start_us\n5,1,0,0.000001\n", 2).unwrap().rows[0].start == Time::from_ps(1)
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
        fn any_text_is_a_table_or_an_error(text in "(start_us,src,dst,bytes(,class)?\n)?[0-9.,a-z\n\\-]{0,80}") {
            let _ = FlowTable::parse(&text, 10);
        }
    }
}
