//! A compaction that goes on, as it is listed and stopped.

use std::rc::Rc;
use std::sync::Arc;

use compaction::{ActiveCompaction, CompactionKind, MergeJob, MergeWatch};
use uuid::Uuid;

use crate::TableStore;

/// A compaction that goes on.
pub(crate) struct Active {
    id: Uuid,
    kind: CompactionKind,
    store: Rc<TableStore>,
    total_bytes: u64,
    total_compressed_bytes: u64,
    file_count: u64,
    watch: Arc<MergeWatch>,
}

impl Active {
    pub(super) fn new(store: &Rc<TableStore>, kind: CompactionKind, job: &MergeJob) -> Self {
        let sum = |of: fn(&sstable::TableSummary) -> u64| -> u64 {
            job.inputs.iter().map(|(file, _)| of(file.summary())).sum()
        };
        let runtime = &store.shared().runtime;
        Active {
            id: runtime.random.uuid_v1(&*runtime.clock),
            kind,
            store: Rc::clone(store),
            total_bytes: sum(|summary| summary.uncompressed_bytes),
            total_compressed_bytes: sum(|summary| summary.data_file_bytes),
            file_count: job.inputs.len() as u64,
            watch: Arc::clone(&job.watch),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Why it goes on.
    pub(crate) fn kind(&self) -> CompactionKind {
        self.kind
    }

    /// Bytes of its inputs.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The same as they lie on the disk.
    pub(crate) fn total_compressed_bytes(&self) -> u64 {
        self.total_compressed_bytes
    }

    /// Is it one of that table?
    pub(crate) fn is_of(&self, store: &TableStore) -> bool {
        std::ptr::eq(&*self.store, store)
    }

    /// Has it end; its inputs stay.
    pub(crate) fn stop(&self) {
        self.watch.stop();
    }

    /// Did somebody ask for that?
    pub(super) fn is_stopped(&self) -> bool {
        self.watch.is_stopped()
    }

    /// Bytes of its inputs that it has read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.watch.read_bytes()
    }

    /// How many bytes on the disk are one of its inputs.
    pub(super) fn compressed_part(&self) -> f64 {
        self.total_compressed_bytes as f64 / self.total_bytes.max(1) as f64
    }

    /// What it is still to write, of what its inputs take on the disk.
    pub(crate) fn bytes_to_write(&self) -> u64 {
        let left = self.total_bytes.saturating_sub(self.read_bytes());
        (self.total_compressed_bytes as f64 * left as f64 / self.total_bytes.max(1) as f64) as u64
    }

    /// How far it is.
    pub(crate) fn tell(&self) -> ActiveCompaction {
        let (table, shared) = (self.store.table(), self.store.shared());
        ActiveCompaction {
            id: self.id,
            kind: self.kind,
            keyspace: table.keyspace().to_owned(),
            table: table.name().to_owned(),
            completed_bytes: self.read_bytes().min(self.total_bytes),
            total_bytes: self.total_bytes,
            total_compressed_bytes: self.total_compressed_bytes,
            file_count: self.file_count,
            directory: shared.table_directory(&table).unwrap_or_else(|_| shared.directories.table(&table)),
        }
    }
}
