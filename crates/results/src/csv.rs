//! Tables of a results folder as CSV (RFC 4180): a header, then one line a row; what is not there
//! is an empty field.
//!
//! Invariant: a number is written so that reading it gives the same number, and memory does not
//! grow with the rows.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::compare::{COMPARE, Difference, Estimate, Tree, read_compare};
use crate::error::{At, Error, Result};
use crate::guard::guarded;
use crate::interval::IntervalKind;
use crate::manifest::{Kind, Manifest, check_files};
use crate::sweep::SWEEP;

/// Tables that a results folder may have. All are `TABLE.parquet` but `compare`, which is made of
/// `compare.json`.
pub const TABLES: [&str; 7] =
    ["flows", "queries", "sizes", "queues", "connections", "compare", "sweep"];

/// Returns the table that fits the folder's kind: `flows` of a run, `compare` of a compare, `sweep`
/// of a sweep.
///
/// # Errors
/// [`Error::Io`] or [`Error::Malformed`] if the folder has no readable manifest.
pub fn default_table(dir: &Path) -> Result<&'static str> {
    Ok(match Manifest::read(dir)?.kind {
        Kind::Run => "flows",
        Kind::Compare => "compare",
        // The sweeps of a reproduction are in its subfolders; there is none beside the claims.
        Kind::Sweep | Kind::Reproduce => "sweep",
    })
}

/// Writes a table of `dir` as CSV. Returns the number of rows.
///
/// `target` is what errors of `out` name: the file, or "stdout".
///
/// # Errors
/// [`Error::NoTable`] if the folder has no such table, [`Error::Malformed`] if the table is
/// damaged, [`Error::Io`] if it cannot be read or `out` cannot be written.
pub fn write_csv(dir: &Path, table: &str, out: &mut dyn Write, target: &Path) -> Result<u64> {
    if table == "compare" {
        if !dir.join(COMPARE).is_file() {
            return Err(missing(dir, table));
        }
        let results = read_compare(dir)?;
        return compare_csv(&results, out).at("write", target);
    }
    let name = format!("{table}.parquet");
    let path = dir.join(&name);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(dir, table)),
        other => other.at("read", &path)?,
    };
    check_files(dir, &|listed| listed == name)?;
    let reader = guarded(&path, || SerializedFileReader::new(file).at("read", &path))?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let head: Vec<String> = schema.columns().iter().map(|column| quoted(column.name())).collect();
    let mut line = head.join(",");
    line.push('\n');
    out.write_all(line.as_bytes()).at("write", target)?;
    let mut rows = 0;
    let mut all = guarded(&path, || reader.get_row_iter(None).at("read", &path))?;
    while let Some(row) = guarded(&path, || all.next().transpose().at("read", &path))? {
        line.clear();
        for (at, (_, field)) in row.get_column_iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            push(&mut line, field);
        }
        line.push('\n');
        out.write_all(line.as_bytes()).at("write", target)?;
        rows += 1;
    }
    Ok(rows)
}

/// Why there is no such table, and what there is.
fn missing(dir: &Path, table: &str) -> Error {
    let there = |name: &&&str| match **name {
        "compare" => dir.join("compare.json").exists(),
        name => dir.join(format!("{name}.parquet")).exists(),
    };
    let tables: Vec<&str> = TABLES.iter().filter(there).copied().collect();
    let reason = if !tables.is_empty() {
        let runs = if tables == ["compare"] {
            ", and the tables of runs are in its subfolders"
        } else {
            ""
        };
        format!("it has {}{runs}", tables.join(", "))
    } else if dir.join(SWEEP).exists() {
        "the sweep is not finished; run it again".to_string()
    } else {
        "it is no results folder".to_string()
    };
    Error::NoTable { path: dir.to_path_buf(), table: table.into(), reason }
}

fn push(line: &mut String, field: &Field) {
    use std::fmt::Write;
    // Writing to a text cannot fail.
    let _ = match field {
        Field::Null => Ok(()),
        Field::Bool(value) => write!(line, "{value}"),
        Field::Byte(value) => write!(line, "{value}"),
        Field::Short(value) => write!(line, "{value}"),
        Field::Int(value) => write!(line, "{value}"),
        Field::Long(value) => write!(line, "{value}"),
        Field::UByte(value) => write!(line, "{value}"),
        Field::UShort(value) => write!(line, "{value}"),
        Field::UInt(value) => write!(line, "{value}"),
        Field::ULong(value) => write!(line, "{value}"),
        Field::Float(value) => write!(line, "{value}"),
        Field::Double(value) => write!(line, "{value}"),
        Field::Str(text) => write!(line, "{}", quoted(text)),
        other => write!(line, "{}", quoted(&other.to_string())),
    };
}

/// In quotes where it needs them.
fn quoted(text: &str) -> String {
    if !text.contains([',', '"', '\n', '\r']) {
        return text.to_string();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// One line for each variant and statistic.
fn compare_csv(results: &[crate::VariantResult], out: &mut dyn Write) -> io::Result<u64> {
    out.write_all(
        b"variant,statistic,mean,low,high,interval_kind,n,\
          difference,relative,difference_low,difference_high,difference_interval_kind,\
          pairs,noise\n",
    )?;
    let mut rows = 0;
    for result in results {
        let variant = quoted(&result.variant);
        let mut path = Vec::new();
        rows +=
            branch_csv(&variant, &result.statistics, result.differences.as_ref(), &mut path, out)?;
    }
    Ok(rows)
}

fn branch_csv(
    variant: &str,
    tree: &Tree<Estimate>,
    differences: Option<&Tree<Difference>>,
    path: &mut Vec<String>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    match tree {
        Tree::Branch(children) => {
            let mut rows = 0;
            for (key, child) in children.iter() {
                path.push(key.to_string());
                rows += branch_csv(variant, child, differences, path, out)?;
                path.pop();
            }
            Ok(rows)
        }
        Tree::Leaf(estimate) => {
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let difference = differences.and_then(|tree| tree.leaf(&keys));
            let text =
                |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
            let interval = |ends: Option<[f64; 2]>, kind: Option<IntervalKind>| {
                let [low, high] = [0, 1].map(|end| text(ends.map(|ends| ends[end])));
                format!("{low},{high},{}", kind.map_or("", IntervalKind::name))
            };
            let own = interval(estimate.interval, estimate.interval_kind);
            let own = format!("{},{own},{}", text(estimate.mean), estimate.n);
            let compared = difference.map_or(",,,,,,".to_string(), |d| {
                let interval = interval(d.interval, d.interval_kind);
                format!(
                    "{},{},{interval},{},{}",
                    text(d.mean),
                    text(d.relative),
                    d.n,
                    d.noise.name()
                )
            });
            let line = format!("{variant},{},{own},{compared}\n", quoted(&keys.join(".")));
            out.write_all(line.as_bytes())?;
            Ok(1)
        }
    }
}
