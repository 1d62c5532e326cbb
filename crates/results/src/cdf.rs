//! Distributions of completion times, read back from the Parquet files of runs for the page.
//!
//! Invariant: a file is read in batches and only in the columns needed; memory does not grow with its rows.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::error::{At, Error, Result};
use crate::statistics::{Between, Quantile, Samples, WHOLE};
use crate::writer::{FLOWS, QUERIES};

const BATCH: usize = 1 << 14;

/// Completion times of the runs of one variant: points `(microseconds, fraction)` with rising fractions; empty of nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cdf {
    /// All flows.
    pub all: Vec<(f64, f64)>,
    /// Flows below the mice's limit.
    pub mice: Vec<(f64, f64)>,
    /// Flows above the elephants' limit.
    pub elephants: Vec<(f64, f64)>,
    /// Queries.
    pub queries: Vec<(f64, f64)>,
}

impl Cdf {
    /// Of all runs in these folders together (the seeds of one variant). Spills to `scratch` if they are many.
    pub fn read(runs: &[PathBuf], scratch: &Path) -> Result<Cdf> {
        let samples = |name: &str| Samples::new(scratch.join(format!(".spill-cdf-{name}")));
        let (mut all, mut queries) = (samples("all"), samples("queries"));
        let (mut mice, mut elephants) = (samples("mice"), samples("elephants"));
        for run in runs {
            let path = run.join(FLOWS);
            let reader = open(&path)?;
            let mice_limit = note(reader.metadata(), &path, "millpond.mice_bytes")?;
            let elephants_limit = note(reader.metadata(), &path, "millpond.elephants_bytes")?;
            each_time(&reader, &path, "fct_us", |time, bytes| {
                all.push_float(time)?;
                if bytes < mice_limit {
                    mice.push_float(time)?;
                }
                if bytes > elephants_limit { elephants.push_float(time) } else { Ok(()) }
            })?;
            let path = run.join(QUERIES);
            each_time(&open(&path)?, &path, "qct_us", |time, _| queries.push_float(time))?;
        }
        Ok(Cdf {
            all: points(&mut all)?,
            mice: points(&mut mice)?,
            elephants: points(&mut elephants)?,
            queries: points(&mut queries)?,
        })
    }
}

/// The distribution at each percent, finer at the tail.
fn points(samples: &mut Samples) -> Result<Vec<(f64, f64)>> {
    let tail = [9_925, 9_950, 9_975, 9_990, 9_995, 10_000];
    let at: Vec<Quantile> = (0..100).map(|percent| percent * 100).chain(tail).collect();
    let Some(values) = samples.quantiles(&at)? else { return Ok(Vec::new()) };
    let fractions = at.iter().map(|&q| f64::from(q) / WHOLE as f64);
    Ok(values.into_iter().map(Between::interpolate_bits).zip(fractions).collect())
}

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    SerializedFileReader::new(File::open(path).at("read", path)?).at("read", path)
}

/// A whole number that the writer left in the file's metadata.
fn note(metadata: &ParquetMetaData, path: &Path, key: &str) -> Result<u64> {
    let notes = metadata.file_metadata().key_value_metadata();
    let value = notes.and_then(|notes| notes.iter().find(|note| note.key == key)?.value.as_deref());
    value.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let reason = format!("has no whole number {key:?} among its notes");
        Error::Malformed { path: path.to_path_buf(), reason }
    })
}

/// Calls `each` with every time of column `times` that is there, and its row's bytes (0 if the file has no such column).
fn each_time(
    reader: &SerializedFileReader<File>,
    path: &Path,
    times: &str,
    mut each: impl FnMut(f64, u64) -> Result<()>,
) -> Result<()> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let find = |name: &str| schema.columns().iter().position(|column| column.name() == name);
    let Some(times) = find(times) else {
        let reason = format!("has no column {times:?}");
        return Err(Error::Malformed { path: path.to_path_buf(), reason });
    };
    let bytes = find("bytes");
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).at("read", path)?;
        each_of_group(group.as_ref(), path, times, bytes, &mut each)?;
    }
    Ok(())
}

fn each_of_group(
    group: &dyn RowGroupReader,
    path: &Path,
    times: usize,
    bytes: Option<usize>,
    each: &mut impl FnMut(f64, u64) -> Result<()>,
) -> Result<()> {
    let wrong = || ParquetError::General("a column is not of the type that millpond writes".into());
    let ColumnReader::DoubleColumnReader(mut times) = group.get_column_reader(times).at("read", path)? else {
        return Err(wrong()).at("read", path);
    };
    let mut bytes = match bytes.map(|at| group.get_column_reader(at)).transpose().at("read", path)? {
        None => None,
        Some(ColumnReader::Int64ColumnReader(reader)) => Some(reader),
        Some(_) => return Err(wrong()).at("read", path),
    };
    let (mut time, mut present, mut size, mut unused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    loop {
        let rows = batch(&mut times, &mut time, &mut present).at("read", path)?;
        if let Some(reader) = &mut bytes {
            batch(reader, &mut size, &mut unused).at("read", path)?;
        }
        if rows == 0 {
            return Ok(());
        }
        let mut values = time.iter();
        for row in 0..rows {
            // Without definition levels the column is not optional, and every value is there.
            if present.get(row).is_none_or(|&level| level > 0)
                && let Some(&value) = values.next()
            {
                each(value, size.get(row).map_or(0, |&n: &i64| n.max(0) as u64))?;
            }
        }
    }
}

/// The next rows of a column: how many.
fn batch<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    values: &mut Vec<T::T>,
    present: &mut Vec<i16>,
) -> parquet::errors::Result<usize> {
    values.clear();
    present.clear();
    let (rows, _, _) = reader.read_records(BATCH, Some(present), None, values)?;
    Ok(rows)
}
