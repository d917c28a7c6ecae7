//! How a logged batch is atomic over shards.
//!
//! 1. A batch whose partitions all live on one shard is one record of its log: nothing more to do.
//! 2. Otherwise the whole batch is first written, synced, as a row of `system.batches`. When that fails and the row may
//!    be there all the same, it is deleted, and that tried again until it is done: a start would write the batch again,
//!    also into a table that was emptied since. (Cassandra compares the times: `SystemKeyspace.getTruncatedAt`.)
//! 3. The parts are written to their shards; once they are durable, the row is deleted. What fails
//!    here is read from the row and tried again until it is done: a batch that got so far does not
//!    stay half written. When many are so unfinished (`under_way.rs`), no other comes to step 2.
//! 4. A node that starts and finds rows in `system.batches` writes their mutations again (`batch_replay.rs`). They
//!    carry their timestamps, so those that were there already change nothing.
//!
//! In a ring the parts go to their replicas; the row stands on the node that was asked, and nowhere else yet. The
//! first time they are written at the level that the client asked for. When they are written *again*, all replicas are
//! waited for; a part is done when one has it, and each of the others has it or is marked, on the disk, as having
//! missed it. So does Cassandra, where hints stand for the marks (`BatchlogManager.ReplayingBatch` of 5.0); a hint is
//! a copy of the row, which a mark is not, so here one replica must have it. No batch waits for a node that stays
//! away.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use read::{ReadCommand, ReadTarget};
use rows::Mutation;
use runtime::{Plant, trace};
use schema::Schema;
use storage::{Shard, StorageError};
use uuid::Uuid;

use crate::admission::Admitted;
use crate::batch_log::{BatchLog, Recorded};
use crate::under_way::BatchUnderWay;
use crate::write::OfRing;
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// How long a batch that could not be finished, or taken back, rests before the next try, and at most when it has
/// failed again and again: as often as Cassandra looks for such batches (`BatchlogManager.REPLAY_INTERVAL`).
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

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
        let batch = LoggedBatch::new(self.clone(), admitted)?;
        let work = trace::carry(trace::current(), batch.write(mutations, consistency, under_way));
        runtime::spawn_local("logged batch", work).await?
    }
}

/// A batch over several shards: its row in `system.batches`.
pub(crate) struct LoggedBatch {
    coordinator: Coordinator,
    admitted: Admitted,
    log: BatchLog,
    id: Uuid,
}

impl LoggedBatch {
    fn new(coordinator: Coordinator, admitted: Admitted) -> Result<Self, CoordinatorError> {
        let (log, id) = (BatchLog::of(&coordinator)?, coordinator.time_uuid());
        Ok(LoggedBatch { coordinator, admitted, log, id })
    }

    /// One that is found recorded.
    pub(crate) fn as_recorded(coordinator: Coordinator, log: BatchLog, id: Uuid) -> Self {
        LoggedBatch { coordinator, admitted: Admitted::as_recorded(), log, id }
    }

    /// Which one it is.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Steps 2 and 3. What could not be finished goes on behind the answer.
    async fn write(
        self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        mut under_way: BatchUnderWay,
    ) -> Result<(), CoordinatorError> {
        trace::note(|| "Determining replicas for atomic batch".into());
        let coordinator = &self.coordinator;
        let local = Rc::clone(coordinator.shard().local());
        // It has its mutations until it is answered, whether somebody waits for that or not.
        let _with_mutations = local.writes().begin();
        let planned_on = local.with_schema(Schema::epoch);
        let record = self.log.record(self.id, &mutations, planned_on, coordinator.next_timestamp())?;
        if let Err(error) = self.write_synced(record).await {
            if !error.is_refusal() {
                tracing::warn!(id = %self.id, %error, "a logged batch that may be recorded is taken back");
                under_way.note_failure();
                runtime::spawn_local("logged batch", self.keep_trying(under_way, Self::take_back));
            }
            return Err(error);
        }
        let Err(error) = self.finish(Recorded::new(planned_on, mutations), consistency).await else {
            return Ok(());
        };
        tracing::warn!(id = %self.id, %error, "a logged batch is not whole yet and is written again");
        under_way.note_failure();
        runtime::spawn_local("logged batch", self.finish_later(under_way));
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

    /// Step 3, for the first time.
    async fn finish(&self, recorded: Recorded, consistency: Consistency) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        // In the turn in which it is sent: all of it comes before a truncation, or nothing of that table is left.
        let mutations = recorded.into_current(&coordinator.schema());
        let owners = self.owners_of(&mutations);
        let split = coordinator.of_ring(mutations);
        coordinator.write_split(self.admitted, split, consistency).await?;
        self.end(owners).await
    }

    /// Step 3, again.
    pub(crate) async fn finish_again(&self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        let owners = self.owners_of(&mutations);
        let OfRing { replicas, local, replicated } = coordinator.of_ring(mutations);
        if let (Some(replicas), Some(seat)) = (replicas, coordinator.seat()) {
            replicas.deliver(replicated, coordinator.patience(TimeoutKind::Write)).await?;
            seat.keep_marks().await.map_err(StorageError::from)?;
        }
        coordinator.write_to_owners(self.admitted, local).await?;
        self.end(owners).await
    }

    /// The shards of this node that write these, if it is one of their replicas.
    fn owners_of(&self, mutations: &[Mutation]) -> BTreeSet<usize> {
        mutations.iter().map(|mutation| self.coordinator.owners().of(mutation.key.token)).collect()
    }

    /// Deletes its row, once what these shards have written is durable.
    async fn end(&self, owners: BTreeSet<usize>) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
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

    /// Step 3 again and again, until it is done.
    pub(crate) async fn finish_later(self, under_way: BatchUnderWay) {
        self.keep_trying(under_way, Self::finish_recorded).await;
    }

    /// What ends the batch, again and again.
    async fn keep_trying(
        self,
        under_way: BatchUnderWay,
        end: impl AsyncFn(&Self) -> Result<(), CoordinatorError>,
    ) {
        let mut retry_after = RETRY_AFTER;
        loop {
            tokio::time::sleep(retry_after).await;
            retry_after = RETRY_AFTER_MAX.min(2 * retry_after);
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
        let recorded = page.partitions.first().map(|batch| self.log.recorded(batch)).transpose()?;
        let schema = coordinator.schema();
        let mutations = match coordinator.has_planted(Plant::DroppedStaysInBatch) {
            true => recorded.map(|recorded| recorded.mutations().to_vec()),
            false => recorded.map(|recorded| recorded.into_current(&schema)),
        };
        self.finish_again(mutations.unwrap_or_default()).await
    }
}
