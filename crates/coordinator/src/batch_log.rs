//! Rows of `system.batches`: each is a logged batch as it was recorded.

use std::sync::Arc;

use bytes::Bytes;
use read::PartitionRows;
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RowBuilder,
};
use schema::{ColumnId, Table};
use uuid::Uuid;

use crate::{Coordinator, CoordinatorError};

/// Largest batch that is kept whole: half of what one record may be in a log segment of the usual 32 MiB. Where
/// segments are smaller, the log refuses what is too large for a record.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// Version of the encoding of mutations in `system.batches`.
const VERSION: i32 = 1;

/// Writes and reads rows of `system.batches`.
#[derive(Clone)]
pub(crate) struct BatchLog {
    pub(crate) table: Arc<Table>,
    version: ColumnId,
    mutations: ColumnId,
}

impl BatchLog {
    pub(crate) fn of(coordinator: &Coordinator) -> Result<Self, CoordinatorError> {
        let missing = || CoordinatorError::NoTable { table: "system.batches".into() };
        let schema = coordinator.schema();
        let table = Arc::clone(schema.table("system", "batches").ok_or_else(missing)?);
        let id = |name: &str| table.column(name).map(|column| column.id).ok_or_else(missing);
        Ok(BatchLog { version: id("version")?, mutations: id("mutations")?, table })
    }

    /// The key of a batch's row.
    pub(crate) fn key(id: Uuid) -> PartitionKey {
        PartitionKey::new(Bytes::copy_from_slice(id.as_bytes()))
    }

    /// A batch as its row.
    ///
    /// # Errors
    /// `BatchTooLarge`.
    pub(crate) fn record(
        &self,
        id: Uuid,
        mutations: &[Mutation],
        timestamp: i64,
    ) -> Result<Mutation, CoordinatorError> {
        let batch_bytes = mutations.iter().map(|mutation| mutation.as_encoded().len()).sum();
        if batch_bytes > BATCH_BYTES_MAX {
            return Err(CoordinatorError::BatchTooLarge { batch_bytes, batch_bytes_max: BATCH_BYTES_MAX });
        }
        let version = VERSION.to_be_bytes();
        // A list's paths are time UUIDs; here they need only keep the order.
        let paths: Vec<[u8; 16]> = (0..mutations.len()).map(|index| *list_path(index).as_bytes()).collect();
        let cells = mutations
            .iter()
            .zip(&paths)
            .map(|(mutation, path)| CellRef::live(timestamp, mutation.as_encoded()).with_path(path));
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
        if self.version < self.mutations {
            row.cell(self.version, CellRef::live(timestamp, &version));
            row.complex(self.mutations, DeletionTime::LIVE, cells);
        } else {
            row.complex(self.mutations, DeletionTime::LIVE, cells);
            row.cell(self.version, CellRef::live(timestamp, &version));
        }
        let mut record = MutationBuilder::new(self.table.id(), Self::key(id));
        record.row(row.finish());
        Ok(record.finish())
    }

    /// Deletes the row of a batch.
    pub(crate) fn removal(&self, id: Uuid, timestamp: i64, now: u32) -> Mutation {
        let mut removal = MutationBuilder::new(self.table.id(), Self::key(id));
        removal.partition_deletion(DeletionTime { timestamp, local_deletion_time: now });
        removal.finish()
    }

    /// What a row says.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn mutations(&self, batch: &PartitionRows) -> Result<Vec<Mutation>, CoordinatorError> {
        let mut mutations = Vec::new();
        for row in &batch.rows {
            if let Some(rows::ColumnData::Complex(list)) = row.column(self.mutations) {
                for cell in list.cells() {
                    let mutation = Mutation::from_encoded(Bytes::copy_from_slice(cell.value));
                    mutations.push(mutation.map_err(CoordinatorError::DamagedBatch)?);
                }
            }
        }
        Ok(mutations)
    }
}

fn list_path(index: usize) -> Uuid {
    let time = u32::try_from(index).expect("a batch has fewer mutations than bytes");
    Uuid::from_fields(time, 0, 0x1000, &[0x80, 0, 0, 0, 0, 0, 0, 0])
}
