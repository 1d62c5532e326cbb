//! Parquet files by column: a table is given row by row, or by another file's rows, and written in
//! row groups of bounded size.
//!
//! Invariant: memory is that of one row group, however many rows there are, and the bytes depend on
//! the rows alone.

use std::fs::File;
use std::iter::repeat_n;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::model::error::{At, Error, Result};
use crate::model::guard::guarded;

/// Rows of a row group: some 15 MB of flows.
pub(crate) const ROW_GROUP: usize = 1 << 17;

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
    Name,
}

impl Of {
    fn is_optional(self) -> bool {
        matches!(self, Of::OptionalU32 | Of::OptionalI64 | Of::OptionalF64)
    }
}

/// A column's name, content, and meaning with its unit, which is written into the file.
pub(crate) type Column<'a> = (&'a str, Of, &'a str);

#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Whole(u64),
    Float(f64),
    Name(ByteArray),
}

/// A type of values, with the column that takes them.
pub(crate) trait Value {
    const OF: Of;
    const OPTIONAL: Of;
    fn cell(self) -> Cell;
}

impl Value for u32 {
    const OF: Of = Of::U32;
    const OPTIONAL: Of = Of::OptionalU32;
    fn cell(self) -> Cell {
        Cell::Whole(self.into())
    }
}

impl Value for u64 {
    const OF: Of = Of::I64;
    const OPTIONAL: Of = Of::OptionalI64;
    fn cell(self) -> Cell {
        Cell::Whole(self)
    }
}

impl Value for f64 {
    const OF: Of = Of::F64;
    const OPTIONAL: Of = Of::OptionalF64;
    fn cell(self) -> Cell {
        Cell::Float(self)
    }
}

impl Value for &str {
    const OF: Of = Of::Name;
    const OPTIONAL: Of = Of::Name;
    fn cell(self) -> Cell {
        Cell::Name(self.into())
    }
}

impl Value for &ByteArray {
    const OF: Of = Of::Name;
    const OPTIONAL: Of = Of::Name;
    fn cell(self) -> Cell {
        Cell::Name(self.clone())
    }
}

impl<V: Value> Value for Option<V> {
    const OF: Of = V::OPTIONAL;
    const OPTIONAL: Of = V::OPTIONAL;
    fn cell(self) -> Cell {
        self.map_or(Cell::Null, V::cell)
    }
}

/// The columns of a table whose rows are records, and the cells of a record: `names` are those that
/// the record has by number alone.
pub(crate) struct Layout<R: 'static> {
    pub columns: &'static [Column<'static>],
    pub cells: fn(&R, names: &[ByteArray], row: &mut Table),
}

/// Declares a [`Layout`]: each column with its meaning, its type, and its value of a record.
macro_rules! layout {
    (
        $(#[$about:meta])*
        $LAYOUT:ident of |$record:ident: $Record:ty, $names:ident| {
            $($(#[doc = $meaning:literal])+ $column:ident: $Type:ty = $value:expr,)+
        }
    ) => {
        $(#[$about])*
        pub(crate) const $LAYOUT: Layout<$Record> = Layout {
            columns: &[$((
                stringify!($column),
                <$Type as Value>::OF,
                concat!($($meaning),+).trim_ascii_start(),
            )),+],
            cells: |$record, $names, row| {
                $(row.cell::<$Type>($value);)+
            },
        };
    };
}

pub(crate) use layout;

/// The values of a column in a row group: those that are there and, where not all are, which.
#[derive(Debug)]
struct Values {
    data: Data,
    present: Option<Vec<i16>>,
}

#[derive(Debug)]
enum Data {
    U32(Vec<i32>),
    I64(Vec<i64>),
    /// The same bits.
    U64(Vec<i64>),
    F64(Vec<f64>),
    Name(Vec<ByteArray>),
}

/// A Parquet file being written: a cell is appended to each column in turn, then
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

    /// Creates the file of a layout.
    ///
    /// # Errors
    /// As [`Table::create`].
    pub fn of<R>(path: &Path, layout: &Layout<R>, notes: &[(&str, String)]) -> Result<Table> {
        Table::create(path, layout.columns, notes, ROW_GROUP)
    }

    pub fn cell<V: Value>(&mut self, value: V) {
        self.columns[self.at].push(&value.cell(), 1);
        self.at += 1;
    }

    /// The values of the first columns of a row.
    pub fn lead(&mut self, cells: &[Cell]) {
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            values.push(cell, 1);
        }
        self.at = cells.len();
    }

    /// Appends a record as a row.
    ///
    /// # Errors
    /// As [`Table::end_row`].
    pub fn row<R>(&mut self, layout: &Layout<R>, record: &R, names: &[ByteArray]) -> Result<()> {
        (layout.cells)(record, names, self);
        self.end_row()
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
    pub fn append(&mut self, lead: &[Cell], path: &Path) -> Result<()> {
        guarded(path, || self.append_rows(lead, path))
    }

    fn append_rows(&mut self, lead: &[Cell], path: &Path) -> Result<()> {
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
                first.iter_mut().zip(lead).for_each(|(values, lead)| values.push(lead, rows));
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
        let data = match of {
            Of::U32 | Of::OptionalU32 => Data::U32(Vec::new()),
            Of::I64 | Of::OptionalI64 => Data::I64(Vec::new()),
            Of::U64 => Data::U64(Vec::new()),
            Of::F64 | Of::OptionalF64 => Data::F64(Vec::new()),
            Of::Name => Data::Name(Vec::new()),
        };
        Values { data, present: of.is_optional().then(Vec::new) }
    }

    /// The same value for these many rows.
    fn push(&mut self, cell: &Cell, rows: usize) {
        if let Some(present) = &mut self.present {
            present.extend(repeat_n(i16::from(!matches!(cell, Cell::Null)), rows));
        }
        match (&mut self.data, cell) {
            (_, Cell::Null) => debug_assert!(self.present.is_some(), "a value is missing"),
            (Data::U32(v), Cell::Whole(n)) => v.extend(repeat_n(*n as u32 as i32, rows)),
            (Data::I64(v), Cell::Whole(n)) => {
                v.extend(repeat_n(i64::try_from(*n).unwrap_or(i64::MAX), rows))
            }
            (Data::U64(v), Cell::Whole(n)) => v.extend(repeat_n(*n as i64, rows)),
            (Data::F64(v), Cell::Float(n)) => v.extend(repeat_n(*n, rows)),
            (Data::Name(v), Cell::Name(name)) => v.extend(repeat_n(name.clone(), rows)),
            _ => debug_assert!(false, "a column is not of its value's type"),
        }
    }

    fn write(&self, column: &mut ColumnWriter<'_>) -> parquet::errors::Result<usize> {
        let present = self.present.as_deref();
        match (&self.data, column) {
            (Data::U32(v), ColumnWriter::Int32ColumnWriter(w)) => w.write_batch(v, present, None),
            (Data::I64(v) | Data::U64(v), ColumnWriter::Int64ColumnWriter(w)) => {
                w.write_batch(v, present, None)
            }
            (Data::F64(v), ColumnWriter::DoubleColumnWriter(w)) => w.write_batch(v, present, None),
            (Data::Name(v), ColumnWriter::ByteArrayColumnWriter(w)) => {
                w.write_batch(v, present, None)
            }
            _ => Err(general("a column is not of its schema's type")),
        }
    }

    /// The next rows of a column.
    fn read(&mut self, reader: &mut ColumnReader, rows: usize) -> parquet::errors::Result<()> {
        let present = self.present.as_mut();
        match (&mut self.data, reader) {
            (Data::U32(v), ColumnReader::Int32ColumnReader(r)) => read_rows(r, rows, present, v),
            (Data::I64(v) | Data::U64(v), ColumnReader::Int64ColumnReader(r)) => {
                read_rows(r, rows, present, v)
            }
            (Data::F64(v), ColumnReader::DoubleColumnReader(r)) => read_rows(r, rows, present, v),
            (Data::Name(v), ColumnReader::ByteArrayColumnReader(r)) => {
                read_rows(r, rows, present, v)
            }
            _ => Err(general("a column is not of its table's type")),
        }
    }

    fn clear(&mut self) {
        self.present.iter_mut().for_each(Vec::clear);
        match &mut self.data {
            Data::U32(v) => v.clear(),
            Data::I64(v) | Data::U64(v) => v.clear(),
            Data::F64(v) => v.clear(),
            Data::Name(v) => v.clear(),
        }
    }
}

fn general(text: &str) -> ParquetError {
    ParquetError::General(text.into())
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
    Err(general("a column is shorter than its row group"))
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
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_converted_type(converted)
            .with_repetition(match of.is_optional() {
                true => Repetition::OPTIONAL,
                false => Repetition::REQUIRED,
            })
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
