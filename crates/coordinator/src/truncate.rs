//! How a table is emptied on all shards, or on none.
//!
//! 1. The table is noted in the data directory.
//! 2. Each shard empties its part, in one step. From the first of these on the table will be empty: what
//!    fails here is tried again until it is done.
//! 3. The note is forgotten.
//! 4. A node that starts and finds a note does step 2 and 3, before it takes requests. What was written
//!    since goes with the rest: nobody was told yet that the table is empty, so it may be so only now.
//!
//! One shard needs no note. One truncation goes on at a time.
//!
//! Before all that, on a node that is alone, logged batches that write to the table and were begun earlier are waited
//! for: one that is recorded and not whole yet would bring its rows back into the empty table, and so would one that
//! only may be recorded, at the next start. In a ring a batch that was planned before leaves the table out.

use std::rc::Rc;
use std::time::Duration;

use runtime::Plant;
use schema::TableId;
use storage::{Emptying, Shard, StorageError, unless_dropped};
use tokio::sync::oneshot;

use crate::{Consistency, Coordinator, CoordinatorError};

/// How long a truncation that could not be finished rests before the next try.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Who waits for the outcome.
struct Asker(Option<oneshot::Sender<Result<(), CoordinatorError>>>);

impl Asker {
    /// Only the first outcome is reported.
    fn report(&mut self, outcome: Result<(), CoordinatorError>) {
        if let Some(asker) = self.0.take() {
            // Whoever asked may have gone.
            _ = asker.send(outcome);
        }
    }
}

impl Coordinator {
    /// Empties a table on all shards, of all nodes that have a part of it (`replicas/truncate.rs`).
    ///
    /// # Errors
    /// Nothing is emptied; or, when a shard could not make it durable and others could, it is tried
    /// again until all have.
    ///
    /// # Cancel safety
    /// Dropped while it waits for logged batches ([`Coordinator::is_in_batches`]), nothing is emptied. Dropped later,
    /// the truncation goes on.
    pub async fn truncate(&self, table: TableId) -> Result<(), CoordinatorError> {
        match self.seat() {
            Some(seat) if self.replicas_of(table).is_some() => seat.truncate(table).await,
            Some(_) => {
                // A node that is left out empties nothing by itself.
                self.admit(table, Consistency::One)?;
                self.truncate_here(table, Emptying::Alone).await
            }
            None => self.truncate_here(table, Emptying::Alone).await,
        }
    }

    /// Empties this node's part of a table.
    ///
    /// # Errors
    /// As [`Coordinator::truncate`].
    ///
    /// # Cancel safety
    /// As [`Coordinator::truncate`].
    pub(crate) async fn truncate_here(
        &self,
        table: TableId,
        wanted: Emptying,
    ) -> Result<(), CoordinatorError> {
        // In a ring a batch says on which epoch it was planned, and its replicas may be away for long.
        if wanted == Emptying::Alone {
            self.node.batches.ended(table).await;
        }
        let (asker, reported) = oneshot::channel();
        let truncation = Truncation { coordinator: self.clone(), table, wanted };
        let work = runtime::spawn_local("truncation", Box::pin(truncation.run(Asker(Some(asker)))));
        match reported.await {
            Ok(outcome) => outcome,
            // It has ended without a word.
            Err(_) => Err(work.await.err().map_or(CoordinatorError::ShuttingDown, CoordinatorError::from)),
        }
    }

    /// Are logged batches over several shards under way that write to the table?
    pub fn is_in_batches(&self, table: TableId) -> bool {
        self.node.batches.write_to(table)
    }

    /// Step 4. To be called before the node takes requests, after [`Coordinator::replay_batches`].
    ///
    /// # Errors
    /// The table can not be emptied; the node must not serve.
    pub async fn finish_truncation(&self) -> Result<(), CoordinatorError> {
        let Some(table) = self.shard().local().truncation_note().read().await? else { return Ok(()) };
        if self.has_planted(Plant::TruncationForgotten) {
            return Ok(self.shard().local().truncation_note().forget().await?);
        }
        tracing::info!(table = %table.0, "a truncation that was cut off is finished");
        let wanted = Emptying::Alone;
        Truncation { coordinator: self.clone(), table, wanted }.finish().await
    }
}

/// A table that is being emptied.
struct Truncation {
    coordinator: Coordinator,
    table: TableId,
    wanted: Emptying,
}

impl Truncation {
    /// Step 4.
    async fn finish(&self) -> Result<(), CoordinatorError> {
        self.settle_batches().await?;
        for shard in 0..self.shard_count() {
            self.empty_on(shard).await?;
        }
        Ok(self.local().truncation_note().forget().await?)
    }

    async fn run(self, mut asker: Asker) {
        let table = self.table;
        let _turn = self.coordinator.node.truncation.lock().await;
        let shard_count = self.shard_count();
        let mut left: Vec<usize> = (0..shard_count).collect();
        let mut outcome = self.begin().await;
        if outcome.is_ok() {
            outcome = self.empty_on_all(&mut left).await;
        }
        // From the first shard on there is no way back.
        while !left.is_empty() && left.len() < shard_count {
            if outcome.as_ref().is_err_and(CoordinatorError::is_final) {
                return asker.report(outcome);
            }
            tracing::warn!(table = %table.0, ?left, "a table is emptied in part, and the rest is tried again");
            asker.report(outcome);
            tokio::time::sleep(RETRY_AFTER).await;
            outcome = self.empty_on_all(&mut left).await;
        }
        assert!(left.is_empty() || left.len() == shard_count, "a table is emptied on all shards or on none");
        while shard_count > 1
            && let Err(error) = self.local().truncation_note().forget().await
        {
            asker.report(Err(error.into()));
            tokio::time::sleep(RETRY_AFTER).await;
        }
        asker.report(outcome);
    }

    fn local(&self) -> &Rc<Shard> {
        self.coordinator.shard().local()
    }

    fn shard_count(&self) -> usize {
        self.coordinator.owners().count()
    }

    /// Step 1.
    async fn begin(&self) -> Result<(), CoordinatorError> {
        self.settle_batches().await?;
        if self.shard_count() > 1 {
            self.local().truncation_note().write(self.table).await?;
        }
        Ok(())
    }

    /// A finished batch whose removal is not durable would be written again by the next start.
    async fn settle_batches(&self) -> Result<(), CoordinatorError> {
        let shards = self.coordinator.shard();
        for shard in 0..self.shard_count() {
            shards.on_when_free(shard, |shard| async move { shard.settle().await }).await??;
        }
        Ok(())
    }

    /// Takes the shards from `left` whose part is empty now. Gives the last error.
    async fn empty_on_all(&self, left: &mut Vec<usize>) -> Result<(), CoordinatorError> {
        let mut outcome = Ok(());
        for shard in std::mem::take(left) {
            if let Err(error) = self.empty_on(shard).await {
                left.push(shard);
                outcome = Err(error);
            }
        }
        outcome
    }

    /// A table that was dropped meanwhile is as empty as can be.
    async fn empty_on(&self, shard: usize) -> Result<(), CoordinatorError> {
        if shard == 0 && self.coordinator.has_planted(Plant::HalfTruncation) {
            return Ok(());
        }
        let (table, wanted) = (self.table, self.wanted);
        let truncate = move |shard: Rc<Shard>| async move { empty(&shard, table, wanted).await };
        unless_dropped(self.coordinator.shard().on_when_free(shard, truncate).await?)?;
        Ok(())
    }
}

/// Empties a shard's part of a table: everything written before goes, in one step.
async fn empty(shard: &Shard, table: TableId, wanted: Emptying) -> Result<(), StorageError> {
    Ok(shard.table(table)?.truncate(wanted).await?)
}
