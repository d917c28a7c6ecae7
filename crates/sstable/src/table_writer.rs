//! Writes a table file, partition by partition in ring order.

use std::sync::Arc;

use rows::{PartitionHeader, Unfiltered};
use runtime::Disk;
use schema::Table;

use crate::{Component, Descriptor, SstableError, TableSummary, WriterOptions};

/// Writes a table file, partition by partition in ring order.
#[derive(Debug)]
pub struct TableWriter {
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
}

impl TableWriter {
    /// Begins a table file; nothing of that id may exist in the directory.
    ///
    /// # Errors
    /// The disk fails, or the options ask for a compressor that is not known.
    pub fn create(
        disk: Arc<dyn Disk>,
        descriptor: Descriptor,
        _table: Arc<Table>,
        _options: WriterOptions,
    ) -> Result<Self, SstableError> {
        let writer = TableWriter { disk, descriptor };
        Err(writer.not_built())
    }

    /// Begins a partition: keys must rise.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn start_partition(&mut self, _header: &PartitionHeader) -> Result<(), SstableError> {
        Err(self.not_built())
    }

    /// Writes the next row or marker of the partition: they must rise, and markers must match.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn append(&mut self, _item: &Unfiltered) -> Result<(), SstableError> {
        Err(self.not_built())
    }

    /// Ends the partition.
    ///
    /// # Errors
    /// The disk fails, or the call is out of turn.
    pub fn end_partition(&mut self) -> Result<(), SstableError> {
        Err(self.not_built())
    }

    /// Uncompressed bytes of Data so far.
    pub fn data_bytes_written(&self) -> u64 {
        0
    }

    /// Writes what is left, makes all files and their names durable, the list of components last.
    ///
    /// # Errors
    /// The disk fails, or no partition was written. What was written is deleted.
    pub fn finish(self) -> Result<TableSummary, SstableError> {
        Err(self.not_built())
    }

    /// Deletes what was written.
    ///
    /// # Errors
    /// The disk fails.
    pub fn abort(self) -> Result<(), SstableError> {
        let _ = self.disk;
        Ok(())
    }

    fn not_built(&self) -> SstableError {
        SstableError::Unsupported {
            path: self.descriptor.path(Component::Data),
            what: "writing is not built yet".into(),
        }
    }
}
