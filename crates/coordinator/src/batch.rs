//! How a logged batch is atomic over shards, and over nodes.
//!
//! 1. A batch whose partitions all live on one shard is one record of its log: nothing more to do.
//! 2. Otherwise the whole batch is first *recorded*, synced, as a row of `system.batches`.
//! 3. The parts are written to their shards, or to their replicas at the level that the client asked for. Then the
//!    record goes. What fails here is read from the record and tried again until it is done: a batch that got so far
//!    does not stay half written.
//! 4. A node that starts and finds rows in `system.batches` writes their mutations again (`batch_replay.rs`). They
//!    carry their timestamps, so those that were there already change nothing.
//!
//! A node that is alone records its batches itself. When that fails and the row may be there all the same, it is
//! deleted, and that tried again until it is done: a start would write the batch again, also into a table that was
//! emptied since. (Cassandra compares the times: `SystemKeyspace.getTruncatedAt`.) When many are unfinished
//! (`under_way.rs`), no other comes to step 2.
//!
//! In a ring two *keepers* record it, other nodes that are chosen for each batch (`replicas/keepers.rs`), so that it
//! becomes whole without this node. As soon as one may have it there is no way back: what is not done then is left to
//! them (`kept_batches.rs`). This node records it, too, when there are not two that do, or one of them is late.
//!
//! When parts are written *again*, all replicas are waited for; a part is done when two have it (or the only one), and
//! each of the others has it or is marked, on the disk, as having missed it. So does Cassandra, where hints stand for
//! the marks (`BatchlogManager.ReplayingBatch` of 5.0); a hint is a copy of the row, which a mark is not. Where two
//! replicas are there, no batch waits for one that stays away.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use read::{ReadCommand, ReadTarget};
use rows::Mutation;
use runtime::{Plant, trace};
use schema::Schema;
use storage::StorageError;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::admission::Admitted;
use crate::batch_log::{BatchLog, Recorded, check_size, write_synced};
use crate::replicas::Replicas;
use crate::replicas::keepers::{Keepers, Keeping, RECORD_COUNT, hosts_of, keep_batch, keepers_of};
use crate::under_way::BatchUnderWay;
use crate::write::OfRing;
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// How long a batch that could not be finished, or taken back, rests before the next try, and at most when it has
/// failed again and again: as often as Cassandra looks for such batches (`BatchlogManager.REPLAY_INTERVAL`).
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// This node records a batch, too, when a keeper has said nothing for so long: it takes longer until the ring knows
/// that a node hangs, and most disks sync sooner.
const KEEPER_LATE: Duration = Duration::from_millis(100);

/// How far a logged batch has come, for who waits for it.
#[derive(Clone, Debug, Default)]
pub struct BatchProgress(Rc<Recording>);

#[derive(Debug, Default)]
struct Recording {
    is_over: Cell<bool>,
    /// So many nodes are to record it.
    required: Cell<u32>,
    /// What those have said so far that are to keep it.
    heard: Cell<Keeping>,
}

impl BatchProgress {
    /// Is it recorded? Then it will be whole.
    pub fn is_recorded(&self) -> bool {
        self.0.is_over.get()
    }

    /// What a client hears that can not wait until it is recorded.
    pub fn unrecorded(&self) -> CoordinatorError {
        let (received, required) = (self.0.heard.get().kept, self.0.required.get().max(1));
        CoordinatorError::Unrecorded { received, required }
    }
}

impl Coordinator {
    /// Writes a logged batch. When this returns, all of it is written; should the node die before,
    /// all or nothing will be there after its restart, or in a ring without that.
    ///
    /// # Errors
    /// Nothing is written after `Unavailable`, `Overloaded` and `BatchTooLarge`. After `Unfinished` the batch is
    /// recorded, and will be whole. After `Unrecorded` it may be. After another error nothing is there, unless a
    /// restart comes before the record could be taken back: then it may be whole.
    ///
    /// # Cancel safety
    /// Dropped, the batch goes on.
    pub async fn write_logged_batch(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        progress: BatchProgress,
    ) -> Result<(), CoordinatorError> {
        let (admitted, is_one_shard, recorders) = match self.seat().and_then(|seat| seat.replicas()) {
            Some(replicas) => {
                let (replicated, local): (Vec<_>, Vec<_>) =
                    mutations.iter().partition(|mutation| replicas.has(mutation.table));
                // At `ANY` a batch waits for replicas, if need be.
                if consistency != Consistency::Any {
                    replicas.check(replicated, consistency)?;
                }
                // Only this node can write what is its own.
                let keepers = if local.is_empty() { keepers_of(&replicas) } else { Keepers::new() };
                (self.admit_all(local, consistency)?, false, Recorders::of_ring(replicas, keepers))
            }
            None => {
                let tokens = mutations.iter().map(|mutation| mutation.key.token);
                let is_one_shard = mutations.is_empty() || self.owners().of_all(tokens).is_some();
                (self.admit_all(&mutations, consistency)?, is_one_shard, Recorders::alone())
            }
        };
        if is_one_shard || self.has_planted(Plant::BatchUnrecorded) {
            return self.write_to_owners(admitted, mutations).await;
        }
        let under_way = self.node.batches.begin(&mutations)?;
        let batch = LoggedBatch::new(self.clone(), admitted, recorders)?;
        let work = trace::carry(trace::current(), batch.write(mutations, consistency, under_way, progress));
        runtime::spawn_local("logged batch", work).await?
    }
}

/// Where a batch is recorded.
struct Recorders {
    /// Other nodes, and the way to them.
    keepers: Keepers,
    replicas: Option<Rc<Replicas>>,
    /// Is it recorded on this node?
    is_here: bool,
}

impl Recorders {
    /// This node.
    fn alone() -> Recorders {
        Recorders { keepers: Keepers::new(), replicas: None, is_here: true }
    }

    /// Those, and this node when they are too few.
    fn of_ring(replicas: Rc<Replicas>, keepers: Keepers) -> Recorders {
        let is_here = keepers.len() < RECORD_COUNT;
        Recorders { keepers, replicas: Some(replicas), is_here }
    }
}

/// Why a batch is not recorded.
struct Unrecorded {
    error: CoordinatorError,
    /// May its row be on this node all the same?
    may_be_here: bool,
}

/// A batch over several shards: its row in `system.batches`.
pub(crate) struct LoggedBatch {
    coordinator: Coordinator,
    admitted: Admitted,
    log: BatchLog,
    id: Uuid,
    recorders: Recorders,
}

impl LoggedBatch {
    fn new(
        coordinator: Coordinator,
        admitted: Admitted,
        recorders: Recorders,
    ) -> Result<Self, CoordinatorError> {
        let (log, id) = (BatchLog::of(&coordinator)?, coordinator.time_uuid());
        Ok(LoggedBatch { coordinator, admitted, log, id, recorders })
    }

    /// One that is found recorded on this node.
    pub(crate) fn as_recorded(coordinator: Coordinator, log: BatchLog, id: Uuid) -> Self {
        let (admitted, recorders) = (Admitted::as_recorded(), Recorders::alone());
        LoggedBatch { coordinator, admitted, log, id, recorders }
    }

    /// Which one it is.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Steps 2 and 3. What could not be finished goes on behind the answer.
    async fn write(
        mut self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        mut under_way: BatchUnderWay,
        progress: BatchProgress,
    ) -> Result<(), CoordinatorError> {
        trace::note(|| "Determining replicas for atomic batch".into());
        check_size(&mutations)?;
        let local = Rc::clone(self.coordinator.shard().local());
        // It has its mutations until it is answered, whether somebody waits for that or not.
        let _with_mutations = local.writes().begin();
        let of_ring = self.recorders.replicas.as_ref().map(|replicas| replicas.planned_on());
        let planned_on = of_ring.unwrap_or_else(|| local.with_schema(Schema::epoch));
        if let Err(Unrecorded { error, may_be_here }) = self.record(&mutations, planned_on, &progress).await {
            self.let_go();
            if may_be_here {
                tracing::warn!(id = %self.id, %error, "a logged batch that may be recorded is taken back");
                under_way.note_failure();
                runtime::spawn_local("logged batch", self.keep_trying(under_way, Self::take_back));
            }
            return Err(error);
        }
        progress.0.is_over.set(true);
        let Err(error) = self.finish(Recorded::new(planned_on, mutations), consistency).await else {
            return Ok(());
        };
        if self.recorders.is_here {
            tracing::warn!(id = %self.id, %error, "a logged batch is not whole yet and is written again");
            under_way.note_failure();
            runtime::spawn_local("logged batch", self.finish_later(under_way));
        } else {
            tracing::warn!(id = %self.id, %error, "a logged batch is not whole yet and is left to those who keep it");
        }
        // Whatever it was: the record is there, so the batch will be.
        Err(error.of_what_is_begun())
    }

    /// Step 2.
    async fn record(
        &mut self,
        mutations: &[Mutation],
        planned_on: u64,
        progress: &BatchProgress,
    ) -> Result<(), Unrecorded> {
        let asked = self.recorders.keepers.len() as u32 + u32::from(self.recorders.is_here);
        progress.0.required.set(asked);
        let (keeping, mut written) = self.ask_recorders(mutations, planned_on, progress).await;
        if written.is_none() && keeping.refused > 0 {
            written = Some(self.record_here(mutations, planned_on).await);
        }
        self.recorders.is_here = written.is_some();
        let is_kept_here = written.as_ref().is_some_and(Result::is_ok);
        let received = keeping.kept + u32::from(is_kept_here);
        let possible = keeping.kept + keeping.silent + u32::from(self.recorders.is_here);
        let required = possible.min(RECORD_COUNT as u32);
        let unrecorded = CoordinatorError::Unrecorded { received, required };
        match written {
            Some(Err(error)) => {
                let may_be_here = !error.is_refusal();
                let may_be_elsewhere = keeping.kept + keeping.silent > 0;
                Err(Unrecorded { error: if may_be_elsewhere { unrecorded } else { error }, may_be_here })
            }
            _ if keeping.silent == 0 || received as usize >= RECORD_COUNT => Ok(()),
            _ => Err(Unrecorded { error: unrecorded, may_be_here: self.recorders.is_here }),
        }
    }

    /// Has it recorded where it is to be, and on this node, too, when a keeper is late: two are enough, and a node that
    /// hangs holds up nobody. What keepers have said, and how it went here; `None` where it is not recorded.
    async fn ask_recorders(
        &self,
        mutations: &[Mutation],
        planned_on: u64,
        progress: &BatchProgress,
    ) -> (Keeping, Option<Result<(), CoordinatorError>>) {
        let mut asked = pin!(self.ask_keepers(mutations, progress));
        if !self.recorders.is_here
            && let Ok(keeping) = timeout(KEEPER_LATE, &mut asked).await
        {
            return (keeping, None);
        }
        match select(asked, pin!(self.record_here(mutations, planned_on))).await {
            Either::Left((keeping, here)) => (keeping, Some(here.await)),
            Either::Right((written, asked)) => {
                let keeping = progress.0.heard.get();
                let are_two = written.is_ok() && keeping.kept as usize + 1 >= RECORD_COUNT;
                let silent = self.recorders.keepers.len() as u32 - keeping.kept - keeping.refused;
                let keeping = if are_two { Keeping { silent, ..keeping } } else { asked.await };
                (keeping, Some(written))
            }
        }
    }

    async fn record_here(&self, mutations: &[Mutation], planned_on: u64) -> Result<(), CoordinatorError> {
        let timestamp = self.coordinator.next_timestamp();
        let record = self.log.record(self.id, mutations, planned_on, timestamp)?;
        write_synced(&self.coordinator, record).await
    }

    async fn ask_keepers(&self, mutations: &[Mutation], progress: &BatchProgress) -> Keeping {
        let Recorders { keepers, replicas: Some(replicas), .. } = &self.recorders else {
            return Keeping::default();
        };
        let deadline = Instant::now() + self.coordinator.patience(TimeoutKind::Write);
        let heard = |keeping: &Keeping| progress.0.heard.set(*keeping);
        keep_batch(replicas, keepers, (self.id, mutations), deadline, heard).await
    }

    /// Other nodes need not keep it any more.
    fn let_go(&self) {
        let Recorders { keepers, replicas: Some(replicas), .. } = &self.recorders else { return };
        if let Some(seat) = self.coordinator.seat() {
            seat.let_batch_go(&hosts_of(replicas, keepers), self.id);
        }
    }

    /// Step 2, undone.
    async fn take_back(&self) -> Result<(), CoordinatorError> {
        write_synced(&self.coordinator, self.removal()).await
    }

    /// Step 3, for the first time.
    async fn finish(&self, recorded: Recorded, consistency: Consistency) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        // In the turn in which it is sent: all of it comes before a truncation, or nothing of that table is left.
        let mutations = recorded.into_current(&coordinator.schema());
        let owners = self.owners_of(&mutations);
        let split = OfRing::of(coordinator, mutations);
        coordinator.write_split(self.admitted, split, consistency).await?;
        if self.recorders.is_here {
            self.end(owners).await?;
            self.let_go();
        } else {
            self.end_elsewhere(owners);
        }
        Ok(())
    }

    /// Step 3, again.
    pub(crate) async fn finish_again(&self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        let owners = self.owners_of(&mutations);
        let OfRing { replicas, local, replicated } = OfRing::of(coordinator, mutations);
        if let (Some(replicas), Some(seat)) = (replicas, coordinator.seat()) {
            replicas.deliver(replicated, coordinator.patience(TimeoutKind::Write)).await?;
            seat.keep_marks().await.map_err(StorageError::from)?;
        }
        coordinator.write_to_owners(self.admitted, local).await?;
        self.end(owners).await?;
        self.let_go();
        Ok(())
    }

    /// The shards of this node that write these, if it is one of their replicas.
    fn owners_of(&self, mutations: &[Mutation]) -> BTreeSet<usize> {
        mutations.iter().map(|mutation| self.coordinator.owners().of(mutation.key.token)).collect()
    }

    /// Deletes its row, once what these shards have written is durable.
    async fn end(&self, owners: BTreeSet<usize>) -> Result<(), CoordinatorError> {
        settle(&self.coordinator, owners).await?;
        self.coordinator.write_to_owners(self.admitted, vec![self.removal()]).await
    }

    /// Has others let it go, once what these shards have written is durable. The client does not wait for that.
    fn end_elsewhere(&self, owners: BTreeSet<usize>) {
        let (coordinator, id) = (self.coordinator.clone(), self.id);
        let (Some(seat), Some(replicas)) = (coordinator.seat().cloned(), &self.recorders.replicas) else {
            return;
        };
        let hosts = hosts_of(replicas, &self.recorders.keepers);
        runtime::spawn_local("end of a logged batch", async move {
            match settle(&coordinator, owners).await {
                Ok(()) => seat.let_batch_go(&hosts, id),
                Err(error) => {
                    tracing::debug!(%id, %error, "a logged batch is written again by those who keep it")
                }
            }
        });
    }

    /// How long ago it was written, by the clocks of two nodes.
    fn age(&self) -> Duration {
        let written = self.id.get_timestamp().map_or(u64::MAX, |timestamp| timestamp.to_unix().0);
        Duration::from_secs(u64::from(self.coordinator.now_seconds()).saturating_sub(written))
    }

    /// Of its row.
    fn removal(&self) -> Mutation {
        let coordinator = &self.coordinator;
        self.log.removal(self.id, coordinator.next_timestamp(), coordinator.now_seconds())
    }

    /// Step 3 again and again, until it is done.
    async fn finish_later(self, under_way: BatchUnderWay) {
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

    /// Step 3, of what is recorded here. That is nothing when the row is deleted already and that may not be durable.
    pub(crate) async fn finish_recorded(&self) -> Result<(), CoordinatorError> {
        let coordinator = &self.coordinator;
        let (table, this) = (Arc::clone(&self.log.table), ReadTarget::Keys(vec![BatchLog::key(self.id)]));
        let command = ReadCommand::new(table, this, coordinator.now_seconds());
        let page = coordinator.read(&command, Consistency::One).await?;
        let recorded = page.partitions.first().map(|batch| self.log.recorded(batch)).transpose()?;
        let Some(recorded) = recorded else { return self.finish_again(Vec::new()).await };
        let schema = coordinator.schema();
        let mutations = match coordinator.seat() {
            _ if coordinator.has_planted(Plant::DroppedStaysInBatch) => recorded.into_mutations(),
            Some(_) => recorded.into_current_of_ring(&schema, self.age())?,
            None => recorded.into_current(&schema),
        };
        let fits = replica::check_mutations(coordinator.shard(), &mutations);
        fits.map_err(|failure| CoordinatorError::MisfitBatch { what: failure.to_string() })?;
        self.finish_again(mutations).await
    }
}

/// Makes durable what these shards have written.
async fn settle(coordinator: &Coordinator, owners: BTreeSet<usize>) -> Result<(), CoordinatorError> {
    for owner in owners {
        coordinator.shard().on_when_free(owner, |shard| async move { shard.settle().await }).await??;
    }
    Ok(())
}
