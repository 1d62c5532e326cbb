//! `connections.parquet`: samples of the sending ends of connections.
//!
//! The last columns are what the run's control laws steer by. Each law names its own, so a file has
//! those of the transports that the run has, and a row has values in those of its own.
//!
//! Invariant: rows keep the order of the calls, and a column means the same in every file that has
//! it.

use std::path::Path;

use millpond_core::congestion::Quantity;
use parquet::data_type::ByteArray;

use crate::model::columns::Column;
use crate::model::{CONNECTION_COLUMNS, ConnectionRecord, Of, ROW_GROUP, Result, Table};

pub(crate) struct Connections {
    table: Table,
    classes: Vec<ByteArray>,
    laws: Vec<Quantity>,
}

impl Connections {
    /// Creates the file. `laws` are the last columns, in this order.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be created.
    pub fn create(
        path: &Path,
        classes: &[String],
        laws: &[Quantity],
        note: (&str, String),
    ) -> Result<Connections> {
        let own = laws.iter().map(|law| (law.name, Of::OptionalF64, law.meaning));
        let columns: Vec<Column<'_>> =
            CONNECTION_COLUMNS.columns.iter().copied().chain(own).collect();
        Ok(Connections {
            table: Table::create(path, &columns, &[note], ROW_GROUP)?,
            classes: classes.iter().map(|name| ByteArray::from(name.as_str())).collect(),
            laws: laws.to_vec(),
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn add(&mut self, record: &ConnectionRecord) -> Result<()> {
        let class = usize::from(record.class);
        (CONNECTION_COLUMNS.cells)(record, &self.classes[class..=class], &mut self.table);
        for law in &self.laws {
            let value = record.law.iter().find(|(name, _)| *name == law.name);
            self.table.cell(value.map(|(_, value)| *value));
        }
        self.table.end_row()
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn close(self) -> Result<()> {
        self.table.close()
    }
}
