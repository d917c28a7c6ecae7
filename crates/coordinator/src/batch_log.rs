//! Rows of `system.batches`: each is a logged batch as it was recorded.

use std::iter::once;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use read::PartitionRows;
use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, Row,
    RowBuilder,
};
use schema::{ColumnId, Schema, Table};
use storage::Shard;
use uuid::Uuid;

use crate::admission::Admitted;
use crate::{Coordinator, CoordinatorError};

/// Largest batch that is kept whole: half of what one record may be in a log segment of the usual 32 MiB. Where
/// segments are smaller, the log refuses what is too large for a record.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// Version of the encoding in `system.batches`: the list begins with the epoch of the schema that the batch was planned
/// on, as eight bytes, and its mutations follow.
const VERSION: i32 = 2;
/// That without an epoch, of earlier builds: all of it is written.
const VERSION_WITHOUT_EPOCH: i32 = 1;
/// A batch is written again within this time, whatever `gc_grace_seconds` its tables have. (Cassandra does not write
/// one again at all when a table has 0.)
const AGE_ALLOWED: Duration = Duration::from_secs(3_600);

/// Stands for that.
const UNKNOWN_EPOCH: u64 = u64::MAX;

/// A batch as it was recorded.
pub(crate) struct Recorded {
    /// On which epoch of the schema.
    planned_on: u64,
    mutations: Vec<Mutation>,
}

impl Recorded {
    /// These, planned on that epoch of the schema.
    pub(crate) fn new(planned_on: u64, mutations: Vec<Mutation>) -> Recorded {
        Recorded { planned_on, mutations }
    }

    /// Of its mutations, together.
    pub(crate) fn bytes(&self) -> usize {
        self.mutations.iter().map(|mutation| mutation.as_encoded().len()).sum()
    }

    /// All of its mutations.
    pub(crate) fn into_mutations(self) -> Vec<Mutation> {
        self.mutations
    }

    /// Those whose table was not dropped or emptied since.
    pub(crate) fn into_current(self, schema: &Schema) -> Vec<Mutation> {
        let Recorded { planned_on, mut mutations } = self;
        mutations.retain(|mutation| {
            let table = mutation.table;
            schema.table_by_id(table).is_some() && planned_on >= schema.truncated_at(table)
        });
        mutations
    }

    /// The same of a batch that any node of a ring may have planned so long ago, when this one has come as far as that
    /// one. What is too old is left out: it may have been deleted since, and the deletion be forgotten.
    ///
    /// # Errors
    /// `Outdated`: this node is behind.
    pub(crate) fn into_current_of_ring(
        self,
        schema: &Schema,
        age: Duration,
    ) -> Result<Vec<Mutation>, CoordinatorError> {
        let epoch = self.planned_on;
        if epoch != UNKNOWN_EPOCH && epoch > schema.epoch() {
            return Err(CoordinatorError::Outdated { epoch });
        }
        let is_young = |mutation: &Mutation| {
            let table = schema.table_by_id(mutation.table);
            let seconds = table.map_or(0, |table| table.options().gc_grace_seconds);
            age <= Duration::from_secs(seconds.into()).max(AGE_ALLOWED)
        };
        let mut mutations = self.into_current(schema);
        mutations.retain(is_young);
        Ok(mutations)
    }
}

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

    /// A batch that was planned on that epoch of the schema, as its row.
    ///
    /// # Errors
    /// `BatchTooLarge`.
    pub(crate) fn record(
        &self,
        id: Uuid,
        mutations: &[Mutation],
        planned_on: u64,
        timestamp: i64,
    ) -> Result<Mutation, CoordinatorError> {
        check_size(mutations)?;
        let (version, planned_on) = (VERSION.to_be_bytes(), planned_on.to_be_bytes());
        // A list's paths are time UUIDs; here they need only keep the order.
        let paths: Vec<[u8; 16]> = (0..=mutations.len()).map(|index| *list_path(index).as_bytes()).collect();
        let values = once(&planned_on[..]).chain(mutations.iter().map(|mutation| &mutation.as_encoded()[..]));
        let cells = values.zip(&paths).map(|(value, path)| CellRef::live(timestamp, value).with_path(path));
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
    pub(crate) fn recorded(&self, batch: &PartitionRows) -> Result<Recorded, CoordinatorError> {
        let mut recorded = Recorded { planned_on: UNKNOWN_EPOCH, mutations: Vec::new() };
        for row in &batch.rows {
            let Some(ColumnData::Complex(list)) = row.column(self.mutations) else { continue };
            let mut values = list.cells().map(|cell| cell.value);
            match self.version(row) {
                VERSION_WITHOUT_EPOCH => {}
                VERSION => {
                    let planned_on = values.next().and_then(|value| value.try_into().ok());
                    let planned_on = planned_on.ok_or(CoordinatorError::UnknownBatch { version: VERSION })?;
                    recorded.planned_on = u64::from_be_bytes(planned_on);
                }
                version => return Err(CoordinatorError::UnknownBatch { version }),
            }
            for value in values {
                let mutation = Mutation::from_encoded(Bytes::copy_from_slice(value));
                recorded.mutations.push(mutation.map_err(CoordinatorError::DamagedBatch)?);
            }
        }
        Ok(recorded)
    }

    /// That of a row; 0 of one without.
    fn version(&self, row: &Row) -> i32 {
        match row.column(self.version) {
            Some(ColumnData::Simple(cell)) => cell.value.try_into().map_or(0, i32::from_be_bytes),
            _ => 0,
        }
    }
}

/// May a batch of these be recorded?
///
/// # Errors
/// `BatchTooLarge`.
pub(crate) fn check_size(mutations: &[Mutation]) -> Result<(), CoordinatorError> {
    let batch_bytes = mutations.iter().map(|mutation| mutation.as_encoded().len()).sum();
    match batch_bytes > BATCH_BYTES_MAX {
        true => Err(CoordinatorError::BatchTooLarge { batch_bytes, batch_bytes_max: BATCH_BYTES_MAX }),
        false => Ok(()),
    }
}

/// Writes to `system.batches`, whatever the sync mode.
pub(crate) async fn write_synced(
    coordinator: &Coordinator,
    mutation: Mutation,
) -> Result<(), CoordinatorError> {
    let owner = coordinator.owners().of(mutation.key.token);
    let write = move |shard: Rc<Shard>| async move { shard.write_synced(&[mutation]).await };
    Ok(coordinator.shards_for(Admitted::as_recorded()).on(owner, write).await??)
}

fn list_path(index: usize) -> Uuid {
    let time = u32::try_from(index).expect("a batch has fewer mutations than bytes");
    Uuid::from_fields(time, 0, 0x1000, &[0x80, 0, 0, 0, 0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use schema::{ColumnKind, Keyspace, Replication, TableBuilder, TableId, Transformation};
    use types::CqlType;

    use super::*;

    fn table(number: u128, name: &str) -> Table {
        let table = TableBuilder::new(TableId(Uuid::from_u128(number)), "k", name).column(
            "pk",
            ColumnKind::PartitionKey(0),
            CqlType::Int,
        );
        table.build().expect("a sound table")
    }

    fn mutation(table: &Table) -> Mutation {
        let mut mutation =
            MutationBuilder::new(table.id(), PartitionKey::new(Bytes::from_static(b"\0\0\0\x01")));
        mutation.partition_deletion(DeletionTime { timestamp: 1, local_deletion_time: 1 });
        mutation.finish()
    }

    #[test]
    fn in_a_ring_nothing_is_current_before_the_node_has_come_so_far_or_when_it_is_too_old() {
        let table = table(1, "t");
        let keyspace = Keyspace {
            name: "k".into(),
            replication: Replication { class: String::new(), options: Default::default() },
            durable_writes: true,
            tables: [("t".to_owned(), Arc::new(table.clone()))].into_iter().collect(),
            types: Default::default(),
        };
        let schema = Schema::new(4, [keyspace]);
        let count = |planned_on, seconds| {
            let recorded = Recorded { planned_on, mutations: vec![mutation(&table)] };
            recorded.into_current_of_ring(&schema, Duration::from_secs(seconds)).map(|current| current.len())
        };
        assert!(matches!(count(5, 0), Err(CoordinatorError::Outdated { epoch: 5 })));
        let grace = u64::from(table.options().gc_grace_seconds);
        for (planned_on, seconds, expected) in
            [(4, 0, 1), (UNKNOWN_EPOCH, 0, 1), (4, grace, 1), (4, grace + 1, 0)]
        {
            assert!(
                matches!(count(planned_on, seconds), Ok(count) if count == expected),
                "{planned_on} {seconds}"
            );
        }
    }

    #[test]
    fn what_was_planned_before_its_table_was_emptied_or_dropped_is_not_current() {
        let tables = [table(1, "stays"), table(2, "emptied"), table(3, "dropped")];
        let keyspace = Keyspace {
            name: "k".into(),
            replication: Replication { class: String::new(), options: Default::default() },
            durable_writes: true,
            tables: tables.iter().map(|table| (table.name().to_owned(), Arc::new(table.clone()))).collect(),
            types: Default::default(),
        };
        let (keyspace_name, name) = ("k".to_owned(), |index: usize| tables[index].name().to_owned());
        let truncate = Transformation::TruncateTable {
            keyspace: keyspace_name.clone(),
            name: name(1),
            id: tables[1].id(),
        };
        let drop = Transformation::DropTable { keyspace: keyspace_name, name: name(2), id: tables[2].id() };
        let schema = truncate.apply(&Schema::new(4, [keyspace])).expect("it is there");
        let schema = drop.apply(&schema).expect("it is there");
        assert_eq!((schema.epoch(), schema.truncated_at(tables[1].id())), (6, 5));
        let current = |planned_on| {
            let mutations = tables.iter().map(mutation).collect();
            let current = Recorded { planned_on, mutations }.into_current(&schema);
            current.into_iter().map(|mutation| mutation.table).collect::<Vec<_>>()
        };
        assert_eq!(current(4), [tables[0].id()]);
        assert_eq!(current(5), [tables[0].id(), tables[1].id()]);
    }
}
