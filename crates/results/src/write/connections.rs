//! `connections.parquet`: samples of the sending ends of connections.
//!
//! The last columns are what the run's control laws steer by. Each law names its own, so a file has
//! those of the transports that the run has, and a row has values in those of its own.
//!
//! Invariant: rows keep the order of the calls, and a column means the same in every file that has
//! it.

use std::path::Path;

use millpond_core::Time;
use millpond_core::congestion::Quantity;
use parquet::data_type::ByteArray;

use crate::model::columns::Column;
use crate::model::{CONNECTION_COLUMNS, ConnectionRecord, Of, ROW_GROUP, Result, Table};

/// The file being written.
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
        let own = laws.iter().map(|quantity| (quantity.name, Of::OptionalF64, quantity.meaning));
        let columns: Vec<Column<'_>> = CONNECTION_COLUMNS.into_iter().chain(own).collect();
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
    pub fn add(&mut self, it: &ConnectionRecord) -> Result<()> {
        let table = &mut self.table;
        table
            .f64(it.at.as_us_f64())
            .u32(it.flow)
            .name(&self.classes[it.class as usize])
            .u32(it.src)
            .u32(it.dst);
        table.name(&ByteArray::from(it.state)).i64(it.cwnd).optional_i64(it.ssthresh);
        table
            .i64(it.in_flight)
            .i64(it.acked)
            .optional_f64(it.srtt.map(Time::as_us_f64))
            .f64(it.rto.as_us_f64());
        table.u32(it.retransmitted).u32(it.timeouts);
        for quantity in &self.laws {
            let value =
                it.law.iter().find(|(name, _)| *name == quantity.name).map(|(_, value)| *value);
            table.optional_f64(value);
        }
        table.end_row()
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn close(self) -> Result<()> {
        self.table.close()
    }
}
