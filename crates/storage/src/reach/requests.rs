//! Reads and writes on the shard that owns what they ask for: by a visit if that one sleeps, by an errand if not.
//!
//! A visit costs one compare-and-swap; an errand costs two wake-ups, shared with all that goes the
//! same way in the same turn. What the visitor changes there is what the shard itself would have
//! changed in the same order, since one of them is at it at a time (see [`runtime::Residence`]).

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use rows::{Mutation, PartitionKey, RowInPlace};
use runtime::Plant;
use schema::TableId;
use stdx::index_set::IndexSet;

use crate::shard::{VisitingRead, VisitingWrite, claims, counting, write_units};
use crate::{
    Claim, HashedRow, Lookups, LookupsSent, Outcomes, Settles, Shard, ShardHandle, StorageError, Unit, Wait,
};
use read::{ReadCommand, ReadPage};

/// What waits is boxed: most requests are over before they come to it, and need no room for it.
impl ShardHandle {
    /// [`crate::Shard::read`] on the shard that owns what is asked for.
    ///
    /// # Errors
    /// As [`crate::Shard::read`], and `ShardBusy` or `ShardGone`.
    pub async fn read(&self, owner: usize, command: &ReadCommand) -> Result<ReadPage, StorageError> {
        if owner == self.local().index() {
            return Box::pin(self.local().read(command)).await;
        }
        match self.visit(owner, |shard| shard.visiting_read(command)) {
            Some(VisitingRead::Over(page)) => return page,
            // Nothing is waited for in between: who goes away after this has woken the owner.
            Some(VisitingRead::Left(answer)) => {
                self.wake(owner)?;
                return Box::pin(answer.wait(owner)).await?;
            }
            Some(VisitingRead::NotBegun) | None => {}
        }
        let command = command.clone();
        let read = move |shard: Rc<Shard>| async move {
            let words = || format!("a read of {}.{}", command.table.keyspace(), command.table.name());
            runtime::labelled_future(words, shard.read(&command)).await
        };
        Box::pin(self.ask(owner, read)).await?
    }

    /// Shows rows that the owner has in memory, each by the index of its key: the live one, or that there is
    /// none; until it is told to stop. Those that are not shown are for [`ShardHandle::read`]. `false` when the owner
    /// is awake: nothing was asked, and [`ShardHandle::send_lookups`] does.
    pub fn look_up(
        &self,
        owner: usize,
        lookups: Lookups<'_>,
        show: impl FnMut(usize, Option<RowInPlace<'_>>) -> ControlFlow<()> + Send,
    ) -> bool {
        if owner == self.local().index() {
            self.local().look_up(lookups, show);
            return true;
        }
        self.visit(owner, |shard| shard.visiting_look_up(lookups, show)).is_some()
    }

    /// As [`ShardHandle::look_up`] on the owner's own thread, where `show` puts what it sees into `seen`.
    ///
    /// # Errors
    /// `ShardBusy` or `ShardGone`.
    pub async fn send_lookups<T, Show>(
        &self,
        owner: usize,
        lookups: LookupsSent,
        mut seen: T,
        mut show: Show,
    ) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Show: FnMut(&mut T, usize, &PartitionKey, Option<RowInPlace<'_>>) -> ControlFlow<()> + Send + 'static,
    {
        let read = move |shard: Rc<Shard>| async move {
            lookups.look_up(&shard, |index, row| show(&mut seen, index, &lookups.keys[index], row));
            seen
        };
        self.ask(owner, read).await
    }

    /// The rows on the owner's own thread, each with its hash, by the index of its key. None of those that can not be
    /// told at once, or of which something was deleted or expires.
    ///
    /// # Errors
    /// `ShardBusy` or `ShardGone`.
    pub async fn send_hashed_lookups(
        &self,
        owner: usize,
        lookups: Arc<LookupsSent>,
    ) -> Result<Vec<Option<HashedRow>>, StorageError> {
        self.ask(owner, move |shard: Rc<Shard>| async move { lookups.look_up_hashed(&shard) }).await
    }

    /// As [`ShardHandle::write`] of each of up to [`crate::KEYS_TOGETHER`] mutations by itself, if that needs no
    /// waiting. Which were written? The others are for [`ShardHandle::write`] or [`ShardHandle::write_units`].
    pub fn try_write_each(&self, owner: usize, mutations: &[&Mutation]) -> IndexSet {
        let (unit, wait) = (Unit::Each, Wait::Never);
        if owner == self.local().index() {
            return self.local().begin_write(mutations, unit, wait).taken;
        }
        match self.visit(owner, |shard| shard.visiting_write(mutations, unit, wait)).flatten() {
            Some(VisitingWrite::Over(outcomes)) => outcomes.done,
            Some(VisitingWrite::Unsettled(_)) => unreachable!("a write that does not wait leaves nothing"),
            None => IndexSet::EMPTY,
        }
    }

    /// As [`ShardHandle::write`], and an outcome for each unit; units wait together until they are durable. Those of
    /// which nothing was written are for [`ShardHandle::write`]. Of what was planned on an epoch of the schema nothing
    /// is written when one of its tables was emptied since: [`table::TableError::Outdated`].
    ///
    /// # Cancel safety
    /// Dropped before there was room for it, nothing is written; after that it stands.
    pub async fn write_units(
        &self,
        owner: usize,
        planned_on: Option<u64>,
        unit: Unit,
        mutations: Vec<Mutation>,
    ) -> Outcomes {
        let all = IndexSet::first(unit.count(mutations.len()));
        let write = move |shard: Rc<Shard>| async move {
            write_units(&shard, planned_on, &mutations, unit, Wait::SyncMode).await
        };
        self.ask(owner, write).await.unwrap_or_else(|error| match error {
            StorageError::ShardBusy { .. } => Outcomes { error: Some(error), ..Outcomes::default() },
            // It has ended, or a panic has ended this: before, after or between writes.
            error => Outcomes::in_doubt(all, error),
        })
    }

    /// [`crate::Shard::write`] on the shard that owns the mutations.
    ///
    /// # Errors
    /// As [`crate::Shard::write`], and `ShardBusy` or `ShardGone`.
    ///
    /// # Cancel safety
    /// As [`crate::Shard::write`].
    pub async fn write(&self, owner: usize, mutations: &[Mutation]) -> Result<(), StorageError> {
        if owner == self.local().index() {
            return self.local().write(mutations).await;
        }
        let (unit, wait) = (Unit::All, Wait::SyncMode);
        match self.visit(owner, |shard| shard.visiting_write(mutations, unit, wait)).flatten() {
            Some(VisitingWrite::Over(outcomes)) => outcomes.of_all(),
            // It stands in the log and the memtable: not to be refused any more, but waited for.
            Some(VisitingWrite::Unsettled(unsettled)) => {
                let settle = move |shard: Rc<Shard>| async move { shard.settle_visit(unsettled, wait).await };
                Box::pin(self.on_when_free(owner, settle)).await?
            }
            None => {
                let mutations = mutations.to_vec();
                Box::pin(self.on(owner, move |shard| async move { shard.write(&mutations).await })).await?
            }
        }
    }

    /// Claims a partition of that owner, as soon as nobody else does: see [`Claim`].
    ///
    /// # Errors
    /// `ShardBusy` or `ShardGone`.
    ///
    /// # Cancel safety
    /// Dropped, the place in the queue is given up.
    pub async fn claim(
        &self,
        owner: usize,
        table: TableId,
        key: &PartitionKey,
    ) -> Result<Claim, StorageError> {
        let claimable = if owner == self.local().index() {
            claims::claimable(self.local(), table, key)
        } else if let Some(claimable) = self.visit(owner, |shard| claims::claimable(shard, table, key)) {
            claimable
        } else {
            let key = key.clone();
            let find = move |shard: Rc<Shard>| async move { claims::claimable(&shard, table, &key) };
            Box::pin(self.ask(owner, find)).await?
        };
        Ok(claims::claim(claimable).await)
    }

    /// Writes mutations of a partition that is claimed, as one record. The claim ends when they stand in the log and
    /// the memtable, and what it [`Settles`] is settled then; this returns when they are durable as `wait` says. Of
    /// what was planned on an epoch of the schema nothing is written when its table was emptied since.
    ///
    /// # Errors
    /// As [`crate::Shard::write`], [`table::TableError::Outdated`], and `ShardBusy` or `ShardGone`.
    ///
    /// # Cancel safety
    /// As [`ShardHandle::write_units`].
    pub async fn write_claimed(
        &self,
        owner: usize,
        planned_on: Option<u64>,
        (mutations, settles): (Vec<Mutation>, Settles),
        claim: Claim,
        wait: Wait,
    ) -> Result<(), StorageError> {
        let write = move |shard: Rc<Shard>| async move {
            claims::write_claimed(&shard, planned_on, &mutations, settles, claim, wait).await
        };
        self.ask(owner, write).await?
    }

    /// Counts what a mutation adds to counters, and writes it; returns what was written, once it is durable as `wait`
    /// says. That may be written again, here and elsewhere, and counts once. Of what was planned on an epoch of the
    /// schema nothing is counted when its table was emptied since.
    ///
    /// # Errors
    /// As [`crate::Shard::write`] and [`crate::Shard::read`], [`table::TableError::Outdated`], and `ShardBusy` or
    /// `ShardGone`.
    ///
    /// # Cancel safety
    /// Dropped, it may be counted or not.
    pub async fn count(
        &self,
        owner: usize,
        planned_on: Option<u64>,
        mutation: Mutation,
        wait: Wait,
    ) -> Result<Mutation, StorageError> {
        let count =
            move |shard: Rc<Shard>| async move { counting::count(&shard, planned_on, &mutation, wait).await };
        self.ask(owner, count).await?
    }

    /// Returns when everything that was written under a claim on that owner so far is on the disk: who has read it may
    /// be told.
    ///
    /// # Errors
    /// The log failed; `ShardBusy` or `ShardGone`.
    pub async fn claimed_settled(&self, owner: usize) -> Result<(), StorageError> {
        self.ask(owner, |shard: Rc<Shard>| async move { claims::claimed_settled(&shard).await }).await?
    }

    #[expect(unsafe_code, reason = "visits ask for a promise that the compiler cannot check")]
    fn visit<T: Send>(&self, owner: usize, act: impl FnOnce(&crate::Shard) -> T + Send) -> Option<T> {
        let count = self.shards().count();
        let is_led_astray = self.local().runtime().plants.has(Plant::WrongShardVisited);
        let owner = if is_led_astray { (owner + 1) % count } else { owner };
        // SAFETY: the `visiting_` functions of `Shard`, which are all that `act` calls, poll no future, spawn no task
        // and put nothing into thread locals; a read that they leave stays with the shard. Of what they read,
        // `visiting_look_up` shows its caller rows, all of whose parts are `Send`.
        unsafe { self.shards().home(owner).visit(act) }
    }
}
