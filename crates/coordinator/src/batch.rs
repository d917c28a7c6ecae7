//! How a logged batch is atomic over shards.
//!
//! 1. A batch whose partitions all live on one shard is one record of its log: nothing more to do.
//! 2. Otherwise the whole batch is first written, synced, as a row of `system.batches`. When that fails and the row may
//!    be there all the same, it is deleted, and that tried again until it is done: a start would write the batch again,
//!    also into a table that was emptied since. (Cassandra compares the times: `SystemKeyspace.getTruncatedAt`.)
//! 3. The parts are written to their shards; once they are durable, the row is deleted. What fails
//!    here is read from the row and tried again until it is done: a batch that got so far does not
//!    stay half written. When many are so unfinished (`under_way.rs`), no other comes to step 2.
//! 4. A node that starts and finds rows in `system.batches` writes their mutations again, before it
//!    takes requests; in a ring beside them, since other nodes may not be there. They carry their timestamps, so those
//!    that were there already change nothing.
//!
//! In a ring the parts go to their replicas; the row stands on the node that was asked, and nowhere else yet.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use read::{PartitionRows, ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RingRange,
    RowBuilder,
};
use runtime::{Plant, trace};
use schema::{ColumnId, Table};
use storage::Shard;
use uuid::Uuid;

use crate::admission::Admitted;
use crate::under_way::BatchUnderWay;
use crate::{Consistency, Coordinator, CoordinatorError};

/// Largest batch that is kept whole: half of what one record may be in a log segment of the usual 32 MiB. Where
/// segments are smaller, the log refuses what is too large for a record.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// How long a batch that could not be finished, or taken back, rests before the next try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Version of the encoding of mutations in `system.batches`.
const VERSION: i32 = 1;

impl Coordinator {
    /// Writes a logged batch. When this returns, all of it is written; should the node die before,
    /// all or nothing will be there after its restart.
    ///
    /// # Errors
    /// Nothing is written after `Unavailable`, `Overloaded` and `BatchTooLarge`. After `Unfinished` the batch is
    /// recorded, and will be whole. After another error nothing is there, unless a restart comes before the record
    /// could be taken back: then it may be whole.
    ///
    /// # Cancel safety
    /// Dropped, the batch goes on.
    pub async fn write_logged_batch(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
    ) -> Result<(), CoordinatorError> {
        let (admitted, is_one_shard) = match self.seat().and_then(|seat| seat.replicas()) {
            Some(replicas) => {
                let (replicated, local): (Vec<_>, Vec<_>) =
                    mutations.iter().partition(|mutation| replicas.has(mutation.table));
                replicas.check(replicated, consistency)?;
                (self.admit_all(local, consistency)?, false)
            }
            None => {
                let tokens = mutations.iter().map(|mutation| mutation.key.token);
                let is_one_shard = mutations.is_empty() || self.owners().of_all(tokens).is_some();
                (self.admit_all(&mutations, consistency)?, is_one_shard)
            }
        };
        if is_one_shard || self.has_planted(Plant::BatchUnrecorded) {
            return self.write_to_owners(admitted, mutations).await;
        }
        let under_way = self.node.batches.begin(&mutations)?;
        let batch = LoggedBatch::new(self.clone(), admitted, consistency)?;
        let work = trace::carry(trace::current(), batch.write(mutations, under_way));
        runtime::spawn_local("logged batch", work).await?
    }

    /// Writes again what unfinished batches of an earlier run hold. To be called before the node
    /// takes requests. Gives how many there were.
    ///
    /// # Errors
    /// A batch can not be read or written; the node must not serve.
    pub async fn replay_batches(&self) -> Result<u64, CoordinatorError> {
        let log = BatchLog::of(self)?;
        if self.has_planted(Plant::BatchesForgotten) {
            return Ok(0);
        }
        let mut count = 0;
        let (table, all) = (Arc::clone(&log.table), ReadTarget::Range(RingRange::ALL));
        let mut command = ReadCommand::new(table, all, self.now_seconds());
        let admitted = Admitted::as_recorded();
        loop {
            let page = self.read(&command, Consistency::One).await?;
            for batch in &page.partitions {
                let mutations = known_of(self, log.mutations(batch)?);
                match Uuid::from_slice(&batch.key.bytes) {
                    Ok(id) => {
                        let (coordinator, log) = (self.clone(), log.clone());
                        // At which level it was asked for nobody knows any more.
                        let consistency = Consistency::Quorum;
                        let batch = LoggedBatch { coordinator, admitted, consistency, log, id };
                        batch.finish(mutations).await?;
                    }
                    Err(_) => self.write_to_owners(admitted, mutations).await?,
                }
                count += 1;
            }
            match page.next {
                Some(next) => command.resume = Some(next),
                None => return Ok(count),
            }
        }
    }
}

/// A batch over several shards: its row in `system.batches`.
struct LoggedBatch {
    coordinator: Coordinator,
    admitted: Admitted,
    /// Of how many replicas it waits for, where other nodes have them.
    consistency: Consistency,
    log: BatchLog,
    id: Uuid,
}

impl LoggedBatch {
    fn new(
        coordinator: Coordinator,
        admitted: Admitted,
        consistency: Consistency,
    ) -> Result<Self, CoordinatorError> {
        let (log, id) = (BatchLog::of(&coordinator)?, coordinator.time_uuid());
        Ok(LoggedBatch { coordinator, admitted, consistency, log, id })
    }

    /// Steps 2 and 3. What could not be finished goes on behind the answer.
    async fn write(
        self,
        mutations: Vec<Mutation>,
        mut under_way: BatchUnderWay,
    ) -> Result<(), CoordinatorError> {
        trace::note(|| "Determining replicas for atomic batch".into());
        let coordinator = &self.coordinator;
        let local = Rc::clone(coordinator.shard().local());
        // It has its mutations until it is answered, whether somebody waits for that or not.
        let _with_mutations = local.writes().begin();
        let record = self.log.record(self.id, &mutations, coordinator.next_timestamp())?;
        if let Err(error) = self.write_synced(record).await {
            if !error.is_refusal() {
                tracing::warn!(id = %self.id, %error, "a logged batch that may be recorded is taken back");
                under_way.note_failure();
                runtime::spawn_local("logged batch", self.keep_trying(under_way, Self::take_back));
            }
            return Err(error);
        }
        let Err(error) = self.finish(mutations).await else { return Ok(()) };
        tracing::warn!(id = %self.id, %error, "a logged batch is not whole yet and is written again");
        under_way.note_failure();
        runtime::spawn_local("logged batch", self.keep_trying(under_way, Self::finish_recorded));
        // Whatever it was: the record is there, so the batch will be.
        Err(error.of_what_is_begun())
    }

    /// Writes to `system.batches`, whatever the sync mode.
    async fn write_synced(&self, mutation: Mutation) -> Result<(), CoordinatorError> {
        let owner = self.coordinator.owners().of(mutation.key.token);
        let write = move |shard: Rc<Shard>| async move { shard.write_synced(&[mutation]).await };
        Ok(self.coordinator.shards_for(self.admitted).on(owner, write).await??)
    }

    /// Step 2, undone.
    async fn take_back(&self) -> Result<(), CoordinatorError> {
        self.write_synced(self.removal()).await
    }

    /// Step 3.
    async fn finish(&self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        let split = coordinator.of_ring(mutations);
        let owners: BTreeSet<usize> =
            split.local.iter().map(|mutation| coordinator.owners().of(mutation.key.token)).collect();
        coordinator.write_split(self.admitted, split, self.consistency).await?;
        for owner in owners {
            coordinator.shard().on_when_free(owner, |shard| async move { shard.settle().await }).await??;
        }
        coordinator.write_to_owners(self.admitted, vec![self.removal()]).await
    }

    /// Of its row.
    fn removal(&self) -> Mutation {
        let coordinator = &self.coordinator;
        self.log.removal(self.id, coordinator.next_timestamp(), coordinator.now_seconds())
    }

    /// What ends the batch, again and again.
    async fn keep_trying(
        self,
        under_way: BatchUnderWay,
        end: impl AsyncFn(&Self) -> Result<(), CoordinatorError>,
    ) {
        loop {
            tokio::time::sleep(RETRY_AFTER).await;
            let _turn = under_way.turn().await;
            match end(&self).await {
                Ok(()) => return,
                Err(error) if error.is_final() => {
                    tracing::warn!(id = %self.id, %error, "a logged batch is left to the next start");
                    return;
                }
                Err(error) => tracing::debug!(id = %self.id, %error, "a logged batch has not ended yet"),
            }
        }
    }

    /// Step 3, of what is recorded. That is nothing when the row is deleted already and that may not be durable.
    async fn finish_recorded(&self) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        let (table, this) = (Arc::clone(&self.log.table), ReadTarget::Keys(vec![BatchLog::key(self.id)]));
        let command = ReadCommand::new(table, this, coordinator.now_seconds());
        let page = coordinator.read(&command, Consistency::One).await?;
        let mutations = page.partitions.first().map(|batch| self.log.mutations(batch)).transpose()?;
        self.finish(known_of(coordinator, mutations.unwrap_or_default())).await
    }
}

/// Those whose table was not dropped since.
fn known_of(coordinator: &Coordinator, mut mutations: Vec<Mutation>) -> Vec<Mutation> {
    let schema = coordinator.schema();
    mutations.retain(|mutation| schema.table_by_id(mutation.table).is_some());
    mutations
}

/// Writes and reads rows of `system.batches`.
#[derive(Clone)]
struct BatchLog {
    table: Arc<Table>,
    version: ColumnId,
    mutations: ColumnId,
}

impl BatchLog {
    fn of(coordinator: &Coordinator) -> Result<Self, CoordinatorError> {
        let missing = || CoordinatorError::NoTable { table: "system.batches".into() };
        let schema = coordinator.schema();
        let table = Arc::clone(schema.table("system", "batches").ok_or_else(missing)?);
        let id = |name: &str| table.column(name).map(|column| column.id).ok_or_else(missing);
        Ok(BatchLog { version: id("version")?, mutations: id("mutations")?, table })
    }

    fn key(id: Uuid) -> PartitionKey {
        PartitionKey::new(Bytes::copy_from_slice(id.as_bytes()))
    }

    fn record(&self, id: Uuid, mutations: &[Mutation], timestamp: i64) -> Result<Mutation, CoordinatorError> {
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

    fn removal(&self, id: Uuid, timestamp: i64, now: u32) -> Mutation {
        let mut removal = MutationBuilder::new(self.table.id(), Self::key(id));
        removal.partition_deletion(DeletionTime { timestamp, local_deletion_time: now });
        removal.finish()
    }

    fn mutations(&self, batch: &PartitionRows) -> Result<Vec<Mutation>, CoordinatorError> {
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
