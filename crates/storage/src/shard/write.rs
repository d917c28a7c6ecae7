//! How a write is taken: one log record, then the memtables, then wait until it is durable.

use std::borrow::Borrow;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use commitlog::{CommitLogError, LogPosition, SyncMode};
use memtable::{KEYS_TOGETHER, Place, Places};
use rows::Mutation;
use runtime::{Plant, trace};
use schema::TableId;
use smallvec::{SmallVec, smallvec};

use super::{Shard, TableStore};
use crate::StorageError;
use crate::metrics::TableMetrics;
use crate::record::LogRecord;

/// A list that needs no memory of its own for the one or two mutations of most writes.
type Few<T> = SmallVec<[T; 2]>;

/// The tables that mutations next to each other went to, and how many these are.
pub(super) type Stores = Few<(Rc<TableStore>, usize)>;

/// A write that stands in the log and the memtables.
pub(super) struct Taken {
    /// Where in the log; `None` for tables without one.
    pub(super) position: Option<LogPosition>,
    pub(super) stores: Stores,
}

/// How far writes that were made together, but each by itself, have come, in their order.
#[derive(Debug, Default)]
pub struct WrittenEach {
    /// The first so many are durable in the sense of the sync mode.
    pub written_count: usize,
    /// So many after them may or may not survive, and why. Of the rest nothing was written: what stands in the way
    /// is for a write by itself to find.
    pub doubtful: Option<(usize, StorageError)>,
}

/// Mutations of one table, next to each other.
fn by_table<M: Borrow<Mutation>>(mutations: &[M]) -> impl Iterator<Item = &[M]> {
    mutations.chunk_by(|one, other| one.borrow().table == other.borrow().table)
}

/// How long a write waits.
#[derive(Clone, Copy)]
enum Until {
    SyncMode,
    Synced,
}

impl Shard {
    /// Writes mutations whose partitions this shard owns. They are one record of the commit log: after
    /// a crash all of them are there, or none. Returns when they are durable in the sense of the
    /// sync mode.
    ///
    /// # Errors
    /// Nothing was written when the record is too large, a table is gone, or memory is full and can
    /// not be written out. When the log fails, the write may or may not survive.
    ///
    /// # Cancel safety
    /// Dropped while waiting for the disk, the write stands.
    pub async fn write(self: &Rc<Self>, mutations: &[Mutation]) -> Result<(), StorageError> {
        self.write_until(mutations, Until::SyncMode).await
    }

    /// As [`Shard::write`], but returns only once the write is on the disk, whatever the sync mode.
    ///
    /// # Errors
    /// As [`Shard::write`].
    pub async fn write_synced(self: &Rc<Self>, mutations: &[Mutation]) -> Result<(), StorageError> {
        self.write_until(mutations, Until::Synced).await
    }

    /// Returns when everything written here so far is on the disk; at once where writes wait for
    /// that anyway.
    ///
    /// # Errors
    /// The log failed.
    pub async fn settle(&self) -> Result<(), StorageError> {
        match self.options.sync {
            SyncMode::Periodic { .. } => Ok(self.log.sync().await?),
            SyncMode::Group { .. } | SyncMode::Batch => Ok(()),
        }
    }

    /// Waits until the sync mode calls what was written up to there safe.
    async fn synced(&self, position: LogPosition) -> Result<(), StorageError> {
        if self.runtime.plants.has(Plant::UnsyncedAcknowledgement) {
            return Ok(());
        }
        Ok(self.log.synced(position).await?)
    }

    async fn write_until(self: &Rc<Self>, mutations: &[Mutation], until: Until) -> Result<(), StorageError> {
        self.wait_for_room().await?;
        let started = self.runtime.clock.elapsed();
        let Taken { position, stores } = self.take(mutations)?;
        self.after_append(position);
        match (position, until) {
            (Some(position), Until::SyncMode) => self.synced(position).await?,
            (Some(_), Until::Synced) => self.log.sync().await?,
            (None, _) => {}
        }
        self.count_writes(&stores, started);
        Ok(())
    }

    /// As [`Shard::write`] of each of up to [`KEYS_TOGETHER`] mutations by itself, as long as that needs no waiting
    /// and nothing beside it; tells those that were written. What stands in the way of the first that was not
    /// is for [`Shard::write`] to find, and the others stay behind it. How many were written?
    pub(crate) fn write_at_once(&self, mutations: &[&Mutation], mut tell: impl FnMut(usize)) -> u64 {
        assert!(mutations.len() <= KEYS_TOGETHER, "so many mutations are taken together");
        let mut written_count = 0;
        // Asked before anything is looked for: under most sync modes it is no for all.
        if !mutations.first().is_some_and(|first| self.takes_at_once(first)) {
            return 0;
        }
        for of_table in by_table(mutations) {
            let Ok(store) = self.store(of_table[0].table) else { break };
            let sample = store.metrics.begin_writes(of_table.len(), &*self.runtime.clock);
            let takes = |mutation: &Mutation| self.takes_at_once(mutation);
            let taken_count = self.take_each(&store, of_table, takes, |_| {
                tell(written_count);
                written_count += 1;
            });
            sample.end(taken_count as u64);
            if taken_count < of_table.len() {
                break;
            }
        }
        self.lend();
        written_count as u64
    }

    /// As [`Shard::write`] of each of up to [`KEYS_TOGETHER`] mutations by itself, but that all wait together until
    /// they are durable.
    ///
    /// # Cancel safety
    /// As [`Shard::write`].
    pub(crate) async fn write_each(self: &Rc<Self>, mutations: &[Mutation]) -> WrittenEach {
        let started = self.runtime.clock.elapsed();
        let mutations: SmallVec<[_; KEYS_TOGETHER]> = mutations.iter().collect();
        let written_count = self.write_at_once(&mutations, |_| ()) as usize;
        let rest = &mutations[written_count..];
        if rest.len() > 1 && self.runtime.plants.has(Plant::GroupLost) {
            return WrittenEach { written_count: mutations.len(), doubtful: None };
        }
        if rest.is_empty() || self.wait_for_room().await.is_err() {
            return WrittenEach { written_count, doubtful: None };
        }
        let (stores, last) = self.take_while_there_is_room(rest);
        let taken_count: usize = stores.iter().map(|(_, count)| count).sum();
        assert!(taken_count <= rest.len(), "each is taken once");
        // No await since the first append: a log that fails and begins anew fails all of them or none.
        let synced = match last {
            Some(position) => self.synced(position).await,
            None => Ok(()),
        };
        if let Err(error) = synced {
            return WrittenEach { written_count, doubtful: Some((taken_count, error)) };
        }
        self.count_writes(&stores, started);
        WrittenEach { written_count: written_count + taken_count, doubtful: None }
    }

    /// Takes mutations, the first in any case, until the budget is spent. Tells the tables that those which were
    /// taken went to, and where the last of them is in the log.
    fn take_while_there_is_room(self: &Rc<Self>, mutations: &[&Mutation]) -> (Stores, Option<LogPosition>) {
        let (mut stores, mut last) = (Stores::new(), None);
        let mut is_first = true;
        for of_table in by_table(mutations) {
            let Ok(store) = self.store(of_table[0].table) else { break };
            let has_room = |_: &Mutation| {
                std::mem::take(&mut is_first) || self.memtable_bytes.get() <= self.memtable_budget()
            };
            let taken_count = self.take_each(&store, of_table, has_room, |position| {
                self.after_append(position);
                last = position.or(last);
            });
            stores.push((store, taken_count));
            if taken_count < of_table.len() {
                break;
            }
        }
        self.lend();
        (stores, last)
    }

    /// Logs mutations of a table, each by itself, and merges them into the memtable, until one is not to be taken
    /// or the log does not take it; tells where each is in the log. How many were taken?
    fn take_each(
        &self,
        store: &TableStore,
        mutations: &[&Mutation],
        mut takes: impl FnMut(&Mutation) -> bool,
        mut tell: impl FnMut(Option<LogPosition>),
    ) -> usize {
        let places = places_of(store, mutations.iter().copied());
        for (index, (mutation, place)) in mutations.iter().zip(places).enumerate() {
            if !takes(mutation) {
                return index;
            }
            let taken = self.runtime.failsafe.guard("a write", || {
                let logged = self.is_durable(mutation.table).then(|| self.append_one(mutation.as_encoded()));
                let position = logged.transpose()?;
                self.apply(store, mutation, position, place);
                Ok::<_, StorageError>(position)
            });
            let Ok(position) = taken else { return index };
            tell(position);
        }
        mutations.len()
    }

    /// Would a write of it neither wait nor have anything done beside it?
    fn takes_at_once(&self, mutation: &Mutation) -> bool {
        let record_bytes = LogRecord::bytes(mutation.as_encoded());
        let now = self.runtime.clock.elapsed_roughly();
        !self.is_short_of_room() && self.log.takes_at_once(record_bytes, now)
    }

    /// Appends the mutations to the log and merges them into the memtables. Tells where in the log they
    /// are, if they are.
    pub(super) fn take(&self, mutations: &[Mutation]) -> Result<Taken, StorageError> {
        let store = |of_table: &[Mutation]| Ok((self.store(of_table[0].table)?, of_table.len()));
        let stores: Stores = by_table(mutations).map(store).collect::<Result<_, StorageError>>()?;
        let durable = by_table(mutations).filter(|of_table| self.is_durable(of_table[0].table)).flatten();
        let logged: Few<&Bytes> = durable.map(Mutation::as_encoded).collect();
        if !logged.is_empty() {
            trace::note(|| "Appending to commitlog".into());
        }
        let position = self.runtime.failsafe.guard("a write", || {
            let is_logged = !logged.is_empty() && !self.runtime.plants.has(Plant::UnloggedWrite);
            let position = if is_logged { Some(self.append(&logged)?) } else { None };
            // No await between the append and here: a flush that freezes a memtable so finds in it
            // exactly the writes below its log position.
            self.apply_all(&stores, mutations, position);
            Ok::<_, StorageError>(position)
        })?;
        self.lend();
        Ok(Taken { position, stores })
    }

    /// Merges all mutations of a record into the memtables of their tables.
    fn apply_all(&self, stores: &Stores, mutations: &[Mutation], position: Option<LogPosition>) {
        let mut applied_count = 0;
        for (of_table, (store, _)) in by_table(mutations).zip(stores) {
            for some in of_table.chunks(KEYS_TOGETHER) {
                applied_count += self.apply_to(store, some, position);
            }
        }
        assert_eq!(applied_count, mutations.len(), "every mutation of a record is merged into a memtable");
    }

    /// Merges up to [`KEYS_TOGETHER`] mutations into the memtable of their table. How many were?
    fn apply_to(&self, store: &TableStore, mutations: &[Mutation], position: Option<LogPosition>) -> usize {
        let is_one_lost = mutations.len() > 1 && self.runtime.plants.has(Plant::UnappliedMutation);
        let mutations = &mutations[usize::from(is_one_lost)..];
        let mut applied_count = 0;
        for (mutation, place) in mutations.iter().zip(places_of(store, mutations.iter())) {
            trace::note(|| format!("Adding to {} memtable", store.table().name()));
            self.apply(store, mutation, position, place);
            applied_count += 1;
        }
        applied_count
    }

    /// Merges a mutation into the memtable; `position` is where the log has it.
    fn apply(
        &self,
        store: &TableStore,
        mutation: &Mutation,
        position: Option<LogPosition>,
        place: Option<Place>,
    ) {
        let owner = self.sharding.shard_of(mutation.key.token);
        assert_eq!(owner, self.index, "a write goes to the shard that owns its partition");
        let grown = store.active.borrow().with_active(|memtable| {
            let before = memtable.memory_bytes();
            memtable.apply(mutation, position, place);
            assert!(memtable.memory_bytes() >= before, "a memtable never shrinks");
            memtable.memory_bytes() - before
        });
        self.memtable_bytes.set(self.memtable_bytes.get() + grown);
    }

    /// Looks after the log when a write has begun a new segment.
    fn after_append(self: &Rc<Self>, position: Option<LogPosition>) {
        if let Some(position) = position
            && position.segment != self.log_segment.replace(position.segment)
        {
            self.shorten_log();
        }
    }

    /// Waits for a write that a visitor has made, as its own shard would have.
    ///
    /// # Errors
    /// The log failed.
    pub(crate) async fn finish_write(self: &Rc<Self>, position: LogPosition) -> Result<(), StorageError> {
        self.after_append(Some(position));
        self.synced(position).await
    }

    pub(super) fn count_writes(&self, stores: &[(Rc<TableStore>, usize)], started: Duration) {
        let spent = self.runtime.clock.elapsed().saturating_sub(started);
        for (store, count) in stores {
            TableMetrics::add(&store.metrics.write_count, *count as u64);
            let spent_by_all = spent.saturating_mul(u32::try_from(*count).unwrap_or(u32::MAX));
            TableMetrics::add_nanos(&store.metrics.write_nanos, spent_by_all);
        }
    }

    /// Does the keyspace of the table want its mutations logged?
    fn is_durable(&self, table: TableId) -> bool {
        self.with_schema(|schema| schema.keyspace_of(table).is_none_or(|keyspace| keyspace.durable_writes))
    }

    fn append(&self, logged: &[&Bytes]) -> Result<LogPosition, StorageError> {
        let head = LogRecord::head(self.timestamps.mark());
        let lengths: Few<_> =
            logged.iter().map(|mutation| LogRecord::length(mutation)).collect::<Result<_, _>>()?;
        let mut parts: SmallVec<[&[u8]; 5]> = SmallVec::with_capacity(1 + 2 * logged.len());
        parts.push(&head);
        for (length, mutation) in lengths.iter().zip(logged) {
            parts.push(length);
            parts.push(mutation);
        }
        self.log.append_parts(&parts).map_err(refused)
    }

    /// The same for one mutation.
    fn append_one(&self, mutation: &Bytes) -> Result<LogPosition, StorageError> {
        let (head, length) = (LogRecord::head(self.timestamps.mark()), LogRecord::length(mutation)?);
        self.log.append_parts(&[&head, &length, mutation]).map_err(refused)
    }

    /// Would a write have to wait for room, or to start a flush?
    pub(super) fn is_short_of_room(&self) -> bool {
        let (bytes, budget) = (self.memtable_bytes.get(), self.memtable_budget());
        bytes > budget || (bytes > budget / 2 && self.flushing.count.get() == 0) || self.is_stopping.get()
    }

    /// May anything be written?
    ///
    /// # Errors
    /// The node is stopping, or broken.
    pub(super) fn check_open(&self) -> Result<(), StorageError> {
        self.runtime.failsafe.check()?;
        if self.is_stopping.get() { Err(StorageError::ShuttingDown) } else { Ok(()) }
    }

    /// Starts flushes when memtables grow, and holds writers back only when the budget is spent.
    ///
    /// # Errors
    /// The budget is spent and flushes fail: waiting would not help.
    async fn wait_for_room(self: &Rc<Self>) -> Result<(), StorageError> {
        self.check_open()?;
        let budget = self.memtable_budget();
        if self.memtable_bytes.get() <= budget / 2 {
            return Ok(());
        }
        if self.flushing.count.get() == 0 && self.recent_flush_failure().is_none() {
            self.flush_largest();
        }
        while self.memtable_bytes.get() > budget {
            self.check_open()?;
            if self.flushing.count.get() == 0 {
                if let Some(refusal) = self.recent_flush_failure() {
                    return Err(refusal);
                }
                if !self.flush_largest() {
                    // Nothing is left to write out: the budget is smaller than an empty table.
                    return Ok(());
                }
            }
            self.flushing.room.notified().await;
        }
        Ok(())
    }
}

/// Where the partitions of up to [`KEYS_TOGETHER`] mutations are in the memtable of their table.
fn places_of<'a>(store: &TableStore, mutations: impl Iterator<Item = &'a Mutation>) -> Places {
    let keys: SmallVec<[_; KEYS_TOGETHER]> = mutations.map(|mutation| &mutation.key).collect();
    match keys.as_slice() {
        // One alone is looked for when it is merged.
        [_] => smallvec![None],
        keys => store.active.borrow().with(|memtable| memtable.places_of(keys)),
    }
}

/// Why the log did not take a record.
fn refused(error: CommitLogError) -> StorageError {
    match error {
        CommitLogError::RecordTooLarge { record_bytes, record_bytes_max } => StorageError::MutationTooLarge {
            mutation_bytes: record_bytes,
            mutation_bytes_max: record_bytes_max,
        },
        CommitLogError::Closed => StorageError::ShuttingDown,
        // Nothing of it was taken, unlike what waits in the log when the disk fills up.
        full @ CommitLogError::DiskFull { .. } => StorageError::DiskFull { reason: full.to_string() },
        other => other.into(),
    }
}
