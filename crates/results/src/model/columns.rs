//! Parquet files by column: a table is given row by row, or by another file's rows, and written in
//! row groups of bounded size.
//!
//! Invariant: memory is that of one row group, however many rows there are, and the bytes depend on
//! the rows alone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::model::error::{At, Error, Result};
use crate::model::guard::guarded;

/// Rows of a row group: some 15 MB of flows.
pub(crate) const ROW_GROUP: usize = 1 << 17;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    U32,
    OptionalU32,
    /// Whole numbers that need every bit, such as seeds.
    U64,
    /// Stored signed: byte counts do not need the last bit, and every reader sums these.
    I64,
    OptionalI64,
    F64,
    OptionalF64,
    /// A name out of few.
    Name,
}

/// A column's name, content, and meaning with its unit, which is written into the file.
pub(crate) type Column<'a> = (&'a str, Of, &'a str);

#[derive(Debug)]
enum Values {
    U32(Vec<i32>),
    OptionalU32(Vec<i32>, Vec<i16>),
    /// Of unsigned columns: the same bits.
    I64(Vec<i64>),
    OptionalI64(Vec<i64>, Vec<i16>),
    F64(Vec<f64>),
    OptionalF64(Vec<f64>, Vec<i16>),
    Name(Vec<ByteArray>),
}

/// A value that all rows of an appended file share.
#[derive(Clone, Debug)]
pub(crate) enum Lead {
    Name(ByteArray),
    F64(f64),
    I64(u64),
}

/// A Parquet file being written. A value is appended to each column in turn, then
/// [`Table::end_row`].
pub(crate) struct Table {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    names: Vec<String>,
    columns: Vec<Values>,
    /// The column that the next value goes to.
    at: usize,
    in_group: usize,
    group: usize,
    /// Rows so far.
    pub rows: u64,
}

impl Table {
    /// Creates the file. `notes` are written into its metadata, beside the meaning of each column.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be created.
    pub fn create(
        path: &Path,
        columns: &[Column<'_>],
        notes: &[(&str, String)],
        group: usize,
    ) -> Result<Table> {
        let file = File::create(path).at("create", path)?;
        let schema = schema(columns).at("write", path)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties(columns, notes)))
            .at("write", path)?;
        let names = columns.iter().map(|&(name, _, _)| name.to_string()).collect();
        let columns = columns.iter().map(|&(_, of, _)| Values::new(of)).collect();
        Ok(Table {
            path: path.to_path_buf(),
            writer,
            names,
            columns,
            at: 0,
            in_group: 0,
            group,
            rows: 0,
        })
    }

    /// The next column's value.
    pub fn u32(&mut self, value: u32) -> &mut Table {
        if let Values::U32(values) = self.next() {
            values.push(value as i32);
        }
        self
    }

    /// The next column's value.
    pub fn optional_u32(&mut self, value: Option<u32>) -> &mut Table {
        if let Values::OptionalU32(values, present) = self.next() {
            present.push(i16::from(value.is_some()));
            values.extend(value.map(|v| v as i32));
        }
        self
    }

    /// The next column's value.
    pub fn i64(&mut self, value: u64) -> &mut Table {
        if let Values::I64(values) = self.next() {
            values.push(i64::try_from(value).unwrap_or(i64::MAX));
        }
        self
    }

    /// The next column's value.
    pub fn u64(&mut self, value: u64) -> &mut Table {
        if let Values::I64(values) = self.next() {
            values.push(value as i64);
        }
        self
    }
    /// The next column's value.
    pub fn optional_i64(&mut self, value: Option<u64>) -> &mut Table {
        if let Values::OptionalI64(values, present) = self.next() {
            present.push(i16::from(value.is_some()));
            values.extend(value.map(|v| i64::try_from(v).unwrap_or(i64::MAX)));
        }
        self
    }

    /// The next column's value.
    pub fn f64(&mut self, value: f64) -> &mut Table {
        if let Values::F64(values) = self.next() {
            values.push(value);
        }
        self
    }

    /// The next column's value.
    pub fn optional_f64(&mut self, value: Option<f64>) -> &mut Table {
        if let Values::OptionalF64(values, present) = self.next() {
            present.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self
    }

    /// The next column's value.
    pub fn name(&mut self, value: &ByteArray) -> &mut Table {
        if let Values::Name(values) = self.next() {
            values.push(value.clone());
        }
        self
    }

    /// The values of the first columns of a row.
    pub fn lead(&mut self, values: &[Lead]) {
        values.iter().for_each(|value| self.next().repeat(value, 1));
    }

    fn next(&mut self) -> &mut Values {
        let at = self.at;
        self.at += 1;
        &mut self.columns[at]
    }

    /// Ends a row, and the row group if it is full.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a full row group cannot be written.
    pub fn end_row(&mut self) -> Result<()> {
        debug_assert_eq!(self.at, self.columns.len());
        self.at = 0;
        self.rows += 1;
        self.in_group += 1;
        if self.in_group == self.group { self.write_group() } else { Ok(()) }
    }

    /// Appends the rows of a file that has this table's columns but the first ones, whose values
    /// are given.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if either file fails,
    /// [`Error::Malformed`](crate::Error::Malformed) if `path` is damaged or has other columns.
    pub fn append(&mut self, lead: &[Lead], path: &Path) -> Result<()> {
        guarded(path, || self.append_rows(lead, path))
    }

    fn append_rows(&mut self, lead: &[Lead], path: &Path) -> Result<()> {
        let file =
            SerializedFileReader::new(File::open(path).at("read", path)?).at("read", path)?;
        let there = file
            .metadata()
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|column| column.name());
        if !there.eq(self.names[lead.len()..].iter().map(String::as_str)) {
            let reason = "its columns are those of another version".to_string();
            return Err(Error::Malformed { path: path.to_path_buf(), reason });
        }
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).at("read", path)?;
            let columns = 0..group.num_columns();
            let mut readers = columns
                .map(|column| group.get_column_reader(column))
                .collect::<parquet::errors::Result<Vec<_>>>()
                .at("read", path)?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let rows = left.min(self.group - self.in_group);
                let (first, own) = self.columns.split_at_mut(lead.len());
                first.iter_mut().zip(lead).for_each(|(values, lead)| values.repeat(lead, rows));
                for (values, reader) in own.iter_mut().zip(&mut readers) {
                    values.read(reader, rows).at("read", path)?;
                }
                left -= rows;
                self.rows += rows as u64;
                self.in_group += rows;
                if self.in_group == self.group {
                    self.write_group()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rest and the footer, down to the disk.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written or synced to the disk.
    pub fn close(mut self) -> Result<()> {
        if self.in_group > 0 {
            self.write_group()?;
        }
        self.writer.finish().at("write", &self.path)?;
        self.writer.inner().sync_all().at("write", &self.path)
    }

    fn write_group(&mut self) -> Result<()> {
        self.in_group = 0;
        let (writer, columns) = (&mut self.writer, &mut self.columns);
        let mut write = || -> parquet::errors::Result<()> {
            let mut group = writer.next_row_group()?;
            for values in columns.iter_mut() {
                let Some(mut column) = group.next_column()? else { break };
                values.write(column.untyped())?;
                column.close()?;
                values.clear();
            }
            group.close().map(|_| ())
        };
        write().at("write", &self.path)
    }
}

impl Values {
    fn new(of: Of) -> Values {
        match of {
            Of::U32 => Values::U32(Vec::new()),
            Of::OptionalU32 => Values::OptionalU32(Vec::new(), Vec::new()),
            Of::I64 | Of::U64 => Values::I64(Vec::new()),
            Of::OptionalI64 => Values::OptionalI64(Vec::new(), Vec::new()),
            Of::F64 => Values::F64(Vec::new()),
            Of::OptionalF64 => Values::OptionalF64(Vec::new(), Vec::new()),
            Of::Name => Values::Name(Vec::new()),
        }
    }

    fn write(&self, column: &mut ColumnWriter<'_>) -> parquet::errors::Result<usize> {
        match (self, column) {
            (Values::U32(v), ColumnWriter::Int32ColumnWriter(w)) => w.write_batch(v, None, None),
            (Values::OptionalU32(v, d), ColumnWriter::Int32ColumnWriter(w)) => {
                w.write_batch(v, Some(d), None)
            }
            (Values::I64(v), ColumnWriter::Int64ColumnWriter(w)) => w.write_batch(v, None, None),
            (Values::OptionalI64(v, d), ColumnWriter::Int64ColumnWriter(w)) => {
                w.write_batch(v, Some(d), None)
            }
            (Values::F64(v), ColumnWriter::DoubleColumnWriter(w)) => w.write_batch(v, None, None),
            (Values::OptionalF64(v, d), ColumnWriter::DoubleColumnWriter(w)) => {
                w.write_batch(v, Some(d), None)
            }
            (Values::Name(v), ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(v, None, None)
            }
            _ => Err(parquet::errors::ParquetError::General(
                "a column is not of its schema's type".into(),
            )),
        }
    }

    /// The same value for these many rows.
    fn repeat(&mut self, lead: &Lead, rows: usize) {
        match (self, lead) {
            (Values::Name(values), Lead::Name(name)) => {
                values.extend(std::iter::repeat_n(name.clone(), rows))
            }
            (Values::F64(values), Lead::F64(number)) => {
                values.extend(std::iter::repeat_n(*number, rows))
            }
            (Values::I64(values), Lead::I64(number)) => {
                let number = i64::try_from(*number).unwrap_or(i64::MAX);
                values.extend(std::iter::repeat_n(number, rows));
            }
            _ => debug_assert!(false, "a column is not of its value's type"),
        }
    }

    /// The next rows of a column.
    fn read(&mut self, reader: &mut ColumnReader, rows: usize) -> parquet::errors::Result<()> {
        match (self, reader) {
            (Values::U32(v), ColumnReader::Int32ColumnReader(r)) => read_rows(r, rows, None, v),
            (Values::OptionalU32(v, d), ColumnReader::Int32ColumnReader(r)) => {
                read_rows(r, rows, Some(d), v)
            }
            (Values::I64(v), ColumnReader::Int64ColumnReader(r)) => read_rows(r, rows, None, v),
            (Values::F64(v), ColumnReader::DoubleColumnReader(r)) => read_rows(r, rows, None, v),
            (Values::OptionalF64(v, d), ColumnReader::DoubleColumnReader(r)) => {
                read_rows(r, rows, Some(d), v)
            }
            (Values::Name(v), ColumnReader::ByteArrayColumnReader(r)) => {
                read_rows(r, rows, None, v)
            }
            _ => Err(parquet::errors::ParquetError::General(
                "a column is not of its table's type".into(),
            )),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::U32(v) => v.clear(),
            Values::I64(v) => v.clear(),
            Values::F64(v) => v.clear(),
            Values::Name(v) => v.clear(),
            Values::OptionalU32(v, d) => {
                v.clear();
                d.clear();
            }
            Values::OptionalI64(v, d) => {
                v.clear();
                d.clear();
            }
            Values::OptionalF64(v, d) => {
                v.clear();
                d.clear();
            }
        }
    }
}

fn read_rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    present: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> parquet::errors::Result<()> {
    let (read, ..) = reader.read_records(rows, present, None, values)?;
    if read == rows {
        return Ok(());
    }
    Err(parquet::errors::ParquetError::General("a column is shorter than its row group".into()))
}

fn schema(columns: &[Column<'_>]) -> parquet::errors::Result<Arc<Type>> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let mut fields = Vec::new();
    for &(name, of, _) in columns {
        let (physical, logical, converted) = match of {
            Of::U32 | Of::OptionalU32 => (Physical::INT32, unsigned(32), ConvertedType::UINT_32),
            Of::U64 => (Physical::INT64, unsigned(64), ConvertedType::UINT_64),
            Of::I64 | Of::OptionalI64 => (Physical::INT64, None, ConvertedType::NONE),
            Of::F64 | Of::OptionalF64 => (Physical::DOUBLE, None, ConvertedType::NONE),
            Of::Name => (Physical::BYTE_ARRAY, Some(LogicalType::String), ConvertedType::UTF8),
        };
        let optional = matches!(of, Of::OptionalU32 | Of::OptionalI64 | Of::OptionalF64);
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_converted_type(converted)
            .with_repetition(if optional { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn properties(columns: &[Column<'_>], notes: &[(&str, String)]) -> WriterProperties {
    let meanings = columns
        .iter()
        .map(|&(name, _, meaning)| (format!("millpond.column.{name}"), meaning.to_string()));
    let notes = notes.iter().map(|(key, value)| (format!("millpond.{key}"), value.clone()));
    let metadata = notes.chain(meanings).map(|(key, value)| KeyValue::new(key, value)).collect();
    let mut builder = WriterProperties::builder()
        .set_created_by("millpond".into())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(metadata));
    for &(name, of, _) in columns {
        // Times hardly repeat: a dictionary of them is built in vain.
        if matches!(of, Of::F64 | Of::OptionalF64) || name == "flow" || name == "query" {
            builder = builder.set_column_dictionary_enabled(ColumnPath::from(name), false);
        }
        if name == "flow" {
            builder =
                builder.set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder.build()
}
