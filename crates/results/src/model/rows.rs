//! Rows of Parquet files, read back in batches and only in the columns needed.
//!
//! Invariant: memory does not grow with a file's rows.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::model::error::{At, Error, Result};
use crate::model::guard::guarded;

const BATCH: usize = 1 << 14;

pub(crate) struct Rows {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

/// A batch of one column's values; `None` in a row without one.
#[derive(Debug)]
pub(crate) enum Column {
    Whole(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Text(Vec<Option<ByteArray>>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Column::Whole(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }
}

/// One row of a batch, by the places of the columns.
pub(crate) struct Row<'a> {
    columns: &'a [Column],
    at: usize,
}

impl<'a> Row<'a> {
    /// The number in this column; `None` if the value is missing.
    pub fn float(&self, column: usize) -> Option<f64> {
        match &self.columns[column] {
            Column::Float(values) => *values.get(self.at)?,
            Column::Whole(values) => values.get(self.at)?.map(|n| n as f64),
            Column::Text(_) => None,
        }
    }

    /// A column's whole number; a negative one is zero.
    pub fn whole(&self, column: usize) -> Option<u64> {
        match &self.columns[column] {
            Column::Whole(values) => values.get(self.at)?.map(|n| n.max(0) as u64),
            _ => None,
        }
    }

    /// The text in this column; `None` if the value is missing.
    pub fn text(&self, column: usize) -> Option<&'a str> {
        match &self.columns[column] {
            Column::Text(values) => values.get(self.at)?.as_ref()?.as_utf8().ok(),
            _ => None,
        }
    }
}

impl Rows {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read or is no Parquet file.
    pub fn open(path: &Path) -> Result<Rows> {
        let file = File::open(path).at("read", path)?;
        let reader = guarded(path, || SerializedFileReader::new(file).at("read", path))?;
        Ok(Rows { path: path.to_path_buf(), reader })
    }

    /// A whole number that the writer left in the file's metadata.
    ///
    /// # Errors
    /// [`Error::Malformed`](crate::Error::Malformed) if the file has no whole number of this name.
    pub fn note(&self, key: &str) -> Result<u64> {
        let value = self.text_note(key);
        let missing = || self.malformed(format!("has no whole number {key:?} among its notes"));
        value.and_then(|text| text.parse().ok()).ok_or_else(missing)
    }

    /// A text that the writer left there, if it did.
    pub fn text_note(&self, key: &str) -> Option<&str> {
        let notes = self.reader.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().any(|column| column.name() == name)
    }

    /// The names of its columns, in their order, each with what the writer has noted of its
    /// meaning.
    pub fn columns(&self) -> Vec<(String, String)> {
        let metadata = self.reader.metadata().file_metadata();
        let meaning = |name: &str| {
            let key = format!("millpond.column.{name}");
            let notes = metadata.key_value_metadata()?;
            notes.iter().find(|note| note.key == key)?.value.clone()
        };
        let names =
            metadata.schema_descr().columns().iter().map(|column| column.name().to_string());
        names
            .map(|name| (meaning(&name).unwrap_or_default(), name))
            .map(|(meaning, name)| (name, meaning))
            .collect()
    }

    /// Calls `each` with each row of these columns, in the file's order.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) or [`Error::Malformed`](crate::Error::Malformed) if a column
    /// is missing or damaged, and the first error of `each`.
    pub fn each<const N: usize>(
        &self,
        names: [&str; N],
        mut each: impl FnMut(Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut places = Vec::new();
        for name in names {
            let place = schema.columns().iter().position(|column| column.name() == name);
            places.push(place.ok_or_else(|| self.malformed(format!("has no column {name:?}")))?);
        }
        let mut each_of = |columns: &[Column], count: usize| {
            (0..count).try_for_each(|at| each(Row { columns, at }))
        };
        for group in 0..self.reader.num_row_groups() {
            let group =
                guarded(&self.path, || self.reader.get_row_group(group).at("read", &self.path))?;
            each_batch(group.as_ref(), &self.path, &places, &mut each_of)?;
        }
        Ok(())
    }

    fn malformed(&self, reason: String) -> Error {
        Error::Malformed { path: self.path.clone(), reason }
    }
}

fn each_batch(
    group: &dyn RowGroupReader,
    path: &Path,
    places: &[usize],
    each: &mut impl FnMut(&[Column], usize) -> Result<()>,
) -> Result<()> {
    let mut readers = Vec::new();
    for &place in places {
        readers.push(guarded(path, || group.get_column_reader(place).at("read", path))?);
    }
    loop {
        let mut columns = Vec::new();
        for reader in &mut readers {
            columns.push(guarded(path, || batch(reader).at("read", path))?);
        }
        let rows = columns.first().map_or(0, Column::len);
        if rows == 0 {
            return Ok(());
        }
        each(&columns, rows)?;
    }
}

fn batch(reader: &mut ColumnReader) -> parquet::errors::Result<Column> {
    Ok(match reader {
        ColumnReader::DoubleColumnReader(reader) => Column::Float(values(reader, |v| v)?),
        ColumnReader::Int64ColumnReader(reader) => Column::Whole(values(reader, |v| v)?),
        // Stored as the bits of an unsigned number.
        ColumnReader::Int32ColumnReader(reader) => {
            Column::Whole(values(reader, |v| i64::from(v as u32))?)
        }
        ColumnReader::ByteArrayColumnReader(reader) => Column::Text(values(reader, |v| v)?),
        _ => {
            return Err(ParquetError::General(
                "a column is not of a type that millpond writes".into(),
            ));
        }
    })
}

/// The next rows of a column.
fn values<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    convert: impl Fn(T::T) -> V,
) -> parquet::errors::Result<Vec<Option<V>>> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let (rows, _, _) = reader.read_records(BATCH, Some(&mut present), None, &mut values)?;
    let mut values = values.into_iter();
    // Without definition levels the column is not optional, and every value is there.
    let there = |row: usize| present.get(row).is_none_or(|&level| level > 0);
    Ok((0..rows).map(|row| if there(row) { values.next().map(&convert) } else { None }).collect())
}
