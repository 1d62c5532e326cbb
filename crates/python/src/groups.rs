//! The row groups of a Parquet file as Arrow batches, decoded by several threads, in order.
//!
//! Invariant: the reader holds one batch a thread beside the one that it hands out; memory does not
//! grow with the file.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// A file that threads read at their own places.
#[derive(Clone)]
struct Shared {
    file: Arc<File>,
    bytes: u64,
}

/// One place in it.
struct Place {
    file: Arc<File>,
    at: u64,
}

impl Read for Place {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Shared {
    type T = BufReader<Place>;

    fn get_read(&self, start: u64) -> Result<BufReader<Place>> {
        Ok(BufReader::new(Place { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// An open file.
#[derive(Clone)]
pub struct Groups {
    file: Shared,
    metadata: ArrowReaderMetadata,
}

impl Groups {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no Parquet.
    pub fn open(path: &Path) -> Result<Groups> {
        let file = File::open(path)?;
        let file = Shared { bytes: file.metadata()?.len(), file: Arc::new(file) };
        // Types are those that the Parquet schema has.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::load(&file, options)?;
        Ok(Groups { file, metadata })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        let rows = self.metadata.metadata().file_metadata().num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    /// The writer's note under a key.
    pub fn note(&self, key: &str) -> Option<&str> {
        let notes = self.metadata.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// All rows, a batch a row group; of one column only, if it is given.
    pub fn batches(&self, column: Option<&str>) -> Batches {
        let parquet = self.metadata.parquet_schema();
        let mask = match column {
            Some(name) => ProjectionMask::columns(parquet, [name]),
            None => ProjectionMask::all(),
        };
        let groups = self.metadata.metadata().num_row_groups();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(groups).max(1);
        let decoder = |first: usize| {
            let (sender, receiver) = sync_channel(1);
            let (all, mask) = (self.clone(), mask.clone());
            thread::spawn(move || all.decode((first..groups).step_by(threads), &mask, &sender));
            receiver
        };
        let receivers = (0..threads).map(decoder).collect();
        let schema = match column.and_then(|name| self.schema().column_with_name(name)) {
            Some((_, field)) => Arc::new(Schema::new(vec![field.clone()])),
            None => self.schema().clone(),
        };
        Batches { schema, receivers, groups, next: 0 }
    }

    /// Sends these groups' batches until nobody wants them.
    fn decode(
        &self,
        groups: impl Iterator<Item = usize>,
        mask: &ProjectionMask,
        to: &SyncSender<Result<RecordBatch>>,
    ) {
        for group in groups {
            let batch = self.batch(group, mask);
            let failed = batch.is_err();
            if to.send(batch).is_err() || failed {
                return;
            }
        }
    }

    fn batch(&self, group: usize, mask: &ProjectionMask) -> Result<RecordBatch> {
        let rows = self.metadata.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).unwrap_or(0);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.file.clone(),
            self.metadata.clone(),
        );
        let builder = builder.with_row_groups(vec![group]).with_projection(mask.clone());
        let batch = builder.with_batch_size(rows).build()?.next();
        let missing = || ParquetError::General(format!("row group {group} has no rows"));
        Ok(batch.ok_or_else(missing)??)
    }
}

/// Batches in the file's order.
pub struct Batches {
    schema: SchemaRef,
    /// A thread's each; groups go round.
    receivers: Vec<Receiver<Result<RecordBatch>>>,
    groups: usize,
    next: usize,
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.groups {
            return None;
        }
        let batch = self.receivers[self.next % self.receivers.len()].recv();
        self.next += 1;
        let died = || ParquetError::General("a thread that decodes the file has ended".into());
        let batch = batch.map_err(|_| died()).and_then(|batch| batch);
        if batch.is_err() {
            self.next = self.groups;
        }
        Some(batch.map_err(ArrowError::from))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
