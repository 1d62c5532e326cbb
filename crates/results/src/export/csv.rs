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

use crate::model::{
    At, COMPARE, Error, Estimate, IntervalKind, Kind, Manifest, Result, SWEEP, Tree, VariantResult,
    check_files, guarded, read_compare,
};

/// Tables that a results folder may have. All are `TABLE.parquet` but `compare`, which is made of
/// `compare.json`.
pub const TABLES: [&str; 10] = [
    "flows",
    "queries",
    "sizes",
    "queues",
    "connections",
    "collectives",
    "ranks",
    "computations",
    "compare",
    "sweep",
];

const HOSTS: [&str; 4] = ["src", "dst", "client", "host"];

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
    let mut out = csv::Writer::from_writer(out);
    let head: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    // Columns of hosts, which imported networks have again with the numbers of their files.
    let manifest = Manifest::read(dir)?;
    let is_host = |name: &&str| !manifest.host_numbers.is_empty() && HOSTS.contains(name);
    let hosts: Vec<usize> = (0..head.len()).filter(|at| is_host(&head[*at])).collect();
    let nodes = hosts.iter().map(|at| format!("{}_node", head[*at]));
    let head: Vec<String> = head.iter().map(|name| name.to_string()).chain(nodes).collect();
    out.write_record(head).map_err(io_error).at("write", target)?;
    let mut rows = 0;
    let mut all = guarded(&path, || reader.get_row_iter(None).at("read", &path))?;
    while let Some(row) = guarded(&path, || all.next().transpose().at("read", &path))? {
        let mut fields: Vec<String> =
            row.get_column_iter().map(|(_, field)| text_of(field)).collect();
        for at in &hosts {
            let number = fields[*at].parse().map(|host| manifest.number(host).to_string());
            fields.push(number.unwrap_or_default());
        }
        out.write_record(fields).map_err(io_error).at("write", target)?;
        rows += 1;
    }
    out.flush().at("write", target)?;
    Ok(rows)
}

/// The error of the file system, with its kind: callers ignore a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
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

fn text_of(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Double(value) => value.to_string(),
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One line for each variant and statistic.
fn compare_csv(results: &[VariantResult], out: &mut dyn Write) -> io::Result<u64> {
    let mut out = csv::Writer::from_writer(out);
    let head = "variant,statistic,mean,low,high,interval_kind,n,\
                difference,relative,difference_low,difference_high,difference_interval_kind,\
                pairs,noise,relative_low,relative_high";
    out.write_record(head.split(',')).map_err(io_error)?;
    let mut rows = 0;
    for result in results {
        rows += branch_csv(result, &result.statistics, &mut Vec::new(), &mut out)?;
    }
    out.flush()?;
    Ok(rows)
}

fn branch_csv<'a>(
    of: &VariantResult,
    tree: &'a Tree<Estimate>,
    path: &mut Vec<&'a str>,
    out: &mut csv::Writer<&mut dyn Write>,
) -> io::Result<u64> {
    let estimate = match tree {
        Tree::Leaf(estimate) => estimate,
        Tree::Branch(children) => {
            let mut rows = 0;
            for (key, child) in children.iter() {
                path.push(key);
                rows += branch_csv(of, child, path, out)?;
                path.pop();
            }
            return Ok(rows);
        }
    };
    let text = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let interval = |ends: Option<[f64; 2]>, kind: Option<IntervalKind>| {
        let [low, high] = [0, 1].map(|end| text(ends.map(|ends| ends[end])));
        [low, high, kind.map_or("", IntervalKind::name).to_string()]
    };
    let mut row = vec![of.variant.clone(), path.join("."), text(estimate.mean)];
    row.extend(interval(estimate.interval, estimate.interval_kind));
    row.push(estimate.n.to_string());
    match of.differences.as_ref().and_then(|tree| tree.leaf(path)) {
        Some(d) => {
            row.extend([text(d.mean), text(d.relative)]);
            row.extend(interval(d.interval, d.interval_kind));
            row.extend([d.n.to_string(), d.noise.name().to_string()]);
            row.extend([0, 1].map(|end| text(d.relative_interval.map(|ends| ends[end]))));
        }
        None => row.resize(16, String::new()),
    }
    out.write_record(row).map_err(io_error)?;
    Ok(1)
}
