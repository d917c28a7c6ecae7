//! The write path: how mutations are taken into the log and the memtables, and how long a write waits.
//!
//! ```text
//!             room ──► begin_write ────────────────────────────► finish_write
//!              │        each unit: one record, then the memtable    │
//!   a write    waits    never waits                                 waits as the sync mode says, or for the disk
//!   a visit    leaves   the same, on the visitor's thread           is left to the shard itself
//!   at once    leaves   units that need no waiting                  is not needed
//! ```
//!
//! A *unit* is what one record of the log has, and so what is there as a whole or not at all after a crash: all
//! mutations of a statement or batch, or each of several that came together.

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
use stdx::index_set::IndexSet;

use super::{Shard, TableStore};
use crate::StorageError;
use crate::metrics::TableMetrics;
use crate::record::{LENGTH_BYTES, LogRecord};

const _: () = assert!(KEYS_TOGETHER <= IndexSet::END, "each of those that are written together has an index");

/// A list that needs no memory of its own for the one or two mutations of most writes.
type Few<T> = SmallVec<[T; 2]>;

/// The tables that mutations next to each other went to, and how many these are.
type Stores = Few<(Rc<TableStore>, usize)>;

/// What of the mutations of a write is one record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// All of them together: the unit of index 0.
    All,
    /// Each by itself, by its index: up to [`KEYS_TOGETHER`] of them.
    Each,
}

/// How long a write waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: units that would have to wait are not taken.
    Never,
    /// Until it is durable in the sense of the sync mode.
    SyncMode,
    /// Until it is on the disk, whatever the sync mode.
    Synced,
}

/// How the units of a write have come out. Of those that are in neither set nothing was written.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// They are durable in the sense of what the write waited for.
    pub done: IndexSet,
    /// They may or may not survive.
    pub doubtful: IndexSet,
    /// Why the first that is not done is not. `None` when all are, or when they were only not taken without waiting.
    pub error: Option<StorageError>,
}

/// A write as far as it needed no waiting.
pub(crate) struct Begun {
    /// Units that stand in the log and the memtables.
    pub(crate) taken: IndexSet,
    /// Where the log has the last of them; `None` for tables without one.
    pub(crate) position: Option<LogPosition>,
    /// Why the first that was not taken was not.
    pub(crate) error: Option<StorageError>,
    stores: Stores,
    started: Duration,
}

/// Mutations of one table, next to each other.
fn by_table<M: Borrow<Mutation>>(mutations: &[M]) -> impl Iterator<Item = &[M]> {
    mutations.chunk_by(|one, other| one.borrow().table == other.borrow().table)
}

impl Outcomes {
    /// Units that may or may not have been written.
    pub(crate) fn in_doubt(units: IndexSet, error: StorageError) -> Self {
        Outcomes { done: IndexSet::EMPTY, doubtful: units, error: Some(error) }
    }

    /// The outcome of the one unit there is.
    ///
    /// # Errors
    /// It is not done.
    pub(crate) fn of_all(self) -> Result<(), StorageError> {
        match self.error {
            Some(error) => Err(error),
            None => {
                assert!(self.done.contains(0), "a write that waits is done, or has an error");
                Ok(())
            }
        }
    }
}

impl Begun {
    /// How it came out, when what was taken is durable.
    pub(super) fn into_outcomes(self) -> Outcomes {
        Outcomes { done: self.taken, doubtful: IndexSet::EMPTY, error: self.error }
    }
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
        self.write_units(mutations, Unit::All, Wait::SyncMode).await.of_all()
    }

    /// As [`Shard::write`], but returns only once the write is on the disk, whatever the sync mode.
    ///
    /// # Errors
    /// As [`Shard::write`].
    pub async fn write_synced(self: &Rc<Self>, mutations: &[Mutation]) -> Result<(), StorageError> {
        self.write_units(mutations, Unit::All, Wait::Synced).await.of_all()
    }

    /// Writes mutations whose partitions this shard owns, all of them or each by itself.
    ///
    /// # Cancel safety
    /// Dropped while waiting for the disk, what was taken stands.
    pub(crate) async fn write_units<M: Borrow<Mutation>>(
        self: &Rc<Self>,
        mutations: &[M],
        unit: Unit,
        wait: Wait,
    ) -> Outcomes {
        if unit == Unit::Each && mutations.len() > 1 && self.runtime.plants.has(Plant::GroupLost) {
            return Outcomes { done: IndexSet::first(mutations.len()), ..Outcomes::default() };
        }
        if let Err(error) = self.wait_for_room().await {
            return Outcomes { error: Some(error), ..Outcomes::default() };
        }
        let begun = self.begin_write(mutations, unit, wait);
        self.finish_write(begun, wait).await
    }

    /// Takes units of a write into the log and the memtables; does not wait.
    pub(crate) fn begin_write<M: Borrow<Mutation>>(&self, mutations: &[M], unit: Unit, wait: Wait) -> Begun {
        // A write that does not wait is timed by a sample.
        let started = if wait == Wait::Never { Duration::ZERO } else { self.runtime.clock.elapsed() };
        let (taken, stores) = (IndexSet::EMPTY, Stores::new());
        let mut begun = Begun { taken, position: None, error: None, stores, started };
        match unit {
            Unit::All => self.take_all(mutations, &mut begun),
            Unit::Each => self.take_each(mutations, wait, &mut begun),
        }
        self.lend();
        begun
    }

    /// Waits until what was taken of a write is durable.
    ///
    /// # Cancel safety
    /// Dropped, what was taken stands.
    pub(crate) async fn finish_write(self: &Rc<Self>, begun: Begun, wait: Wait) -> Outcomes {
        if let Some(position) = begun.position
            && let Err(error) = self.settle_position(position, wait).await
        {
            return Outcomes::in_doubt(begun.taken, error);
        }
        self.count_writes(&begun);
        begun.into_outcomes()
    }

    /// Waits until the log up to there is durable. To be called on the shard's own thread after every write that was
    /// begun and that waits, also by a visitor: the log may have begun a new segment.
    ///
    /// # Errors
    /// The log failed.
    pub(crate) async fn settle_position(
        self: &Rc<Self>,
        position: LogPosition,
        wait: Wait,
    ) -> Result<(), StorageError> {
        if position.segment != self.log_segment.replace(position.segment) {
            self.shorten_log();
        }
        match wait {
            Wait::Never => Ok(()),
            Wait::Synced => Ok(self.log.sync().await?),
            Wait::SyncMode if self.runtime.plants.has(Plant::UnsyncedAcknowledgement) => Ok(()),
            // All units were appended without an await in between: a log that fails and begins anew fails all of
            // them or none.
            Wait::SyncMode => Ok(self.log.synced(position).await?),
        }
    }

    /// Would [`Shard::settle_position`] have nothing to do?
    pub(crate) fn is_settled(&self, position: LogPosition) -> bool {
        position.segment == self.log_segment.get() && self.log.is_synced(position)
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

    /// Takes all mutations as one record, or says why not.
    fn take_all<M: Borrow<Mutation>>(&self, mutations: &[M], begun: &mut Begun) {
        let store = |of_table: &[M]| Ok((self.store(of_table[0].borrow().table)?, of_table.len()));
        let stores = by_table(mutations).map(store).collect::<Result<Stores, StorageError>>();
        let taken = stores.and_then(|stores| Ok((self.take_record(&stores, mutations)?, stores)));
        match taken {
            Ok((position, stores)) => {
                (begun.taken, begun.position, begun.stores) = (IndexSet::first(1), position, stores);
            }
            Err(error) => begun.error = Some(error),
        }
    }

    /// Logs mutations as one record and merges them into the memtables; tells where they are in the log, if they are.
    fn take_record<M: Borrow<Mutation>>(
        &self,
        stores: &Stores,
        mutations: &[M],
    ) -> Result<Option<LogPosition>, StorageError> {
        let is_durable = |of_table: &&[M]| self.is_durable(of_table[0].borrow().table);
        let durable = by_table(mutations).filter(is_durable).flatten();
        let logged: Few<&Bytes> = durable.map(|mutation| mutation.borrow().as_encoded()).collect();
        self.runtime.failsafe.guard("a write", || {
            let is_logged = !logged.is_empty() && !self.runtime.plants.has(Plant::UnloggedWrite);
            let position = if is_logged { Some(self.append(&logged)?) } else { None };
            // No await between the append and here: a flush that freezes a memtable so finds in it
            // exactly the writes below its log position.
            self.apply_all(stores, mutations, position);
            Ok(position)
        })
    }

    /// Takes each mutation as a record by itself, those for which there is room.
    fn take_each<M: Borrow<Mutation>>(&self, mutations: &[M], wait: Wait, begun: &mut Begun) {
        assert!(mutations.len() <= KEYS_TOGETHER, "so many mutations are taken together");
        // Asked before anything is looked for: under most sync modes no write is done without waiting.
        let is_hopeless = |first: &M| wait == Wait::Never && !self.takes_at_once(first.borrow());
        if mutations.first().is_none_or(is_hopeless) {
            return;
        }
        let mut index = 0;
        for of_table in by_table(mutations) {
            match self.store(of_table[0].borrow().table) {
                Ok(store) => self.take_each_of(store, of_table, index, wait, begun),
                Err(error) => _ = begun.error.get_or_insert(error),
            }
            index += of_table.len();
        }
    }

    /// The same for mutations of one table, of which the first has that index.
    fn take_each_of<M: Borrow<Mutation>>(
        &self,
        store: Rc<TableStore>,
        mutations: &[M],
        first: usize,
        wait: Wait,
        begun: &mut Begun,
    ) {
        let sample =
            (wait == Wait::Never).then(|| store.metrics.begin_writes(mutations.len(), &*self.runtime.clock));
        let mut taken_count = 0;
        for (index, (mutation, place)) in (first..).zip(mutations.iter().zip(places_of(&store, mutations))) {
            let mutation = mutation.borrow();
            let has_room = match wait {
                Wait::Never => self.takes_at_once(mutation),
                // The first in any case: its write has waited for room.
                _ => begun.taken.is_empty() || self.memtable_bytes.get() <= self.memtable_budget(),
            };
            if !has_room {
                break;
            }
            match self.take_one(&store, mutation, place) {
                Ok(position) => {
                    begun.taken.insert(index);
                    begun.position = position.or(begun.position);
                    taken_count += 1;
                }
                Err(error) => _ = begun.error.get_or_insert(error),
            }
        }
        match sample {
            Some(sample) => sample.end(taken_count as u64),
            None => begun.stores.push((store, taken_count)),
        }
    }

    /// Logs a mutation and merges it into the memtable; tells where it is in the log, if it is.
    fn take_one(
        &self,
        store: &TableStore,
        mutation: &Mutation,
        place: Option<Place>,
    ) -> Result<Option<LogPosition>, StorageError> {
        self.runtime.failsafe.guard("a write", || {
            let is_durable = self.is_durable(mutation.table);
            let position = if is_durable { Some(self.append(&[mutation.as_encoded()])?) } else { None };
            self.apply(store, mutation, position, place);
            Ok(position)
        })
    }

    /// Would a write of it neither wait nor have anything done beside it?
    fn takes_at_once(&self, mutation: &Mutation) -> bool {
        let record_bytes = LogRecord::bytes(mutation.as_encoded());
        let now = self.runtime.clock.elapsed_roughly();
        !self.is_short_of_room() && self.log.takes_at_once(record_bytes, now)
    }

    /// Merges all mutations of a record into the memtables of their tables.
    fn apply_all<M: Borrow<Mutation>>(
        &self,
        stores: &Stores,
        mutations: &[M],
        position: Option<LogPosition>,
    ) {
        let mut applied_count = 0;
        for (of_table, (store, _)) in by_table(mutations).zip(stores) {
            for some in of_table.chunks(KEYS_TOGETHER) {
                let is_one_lost = some.len() > 1 && self.runtime.plants.has(Plant::UnappliedMutation);
                let some = &some[usize::from(is_one_lost)..];
                for (mutation, place) in some.iter().zip(places_of(store, some)) {
                    self.apply(store, mutation.borrow(), position, place);
                    applied_count += 1;
                }
            }
        }
        assert_eq!(applied_count, mutations.len(), "every mutation of a record is merged into a memtable");
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
        trace::note(|| format!("Adding to {} memtable", store.table().name()));
        let grown = store.active.borrow().with_active(|memtable| {
            let before = memtable.memory_bytes();
            memtable.apply(mutation, position, place);
            assert!(memtable.memory_bytes() >= before, "a memtable never shrinks");
            memtable.memory_bytes() - before
        });
        self.memtable_bytes.set(self.memtable_bytes.get() + grown);
    }

    /// Counts a write with the tables that it went to. One that does not wait was counted as it was taken.
    pub(super) fn count_writes(&self, begun: &Begun) {
        let Begun { stores, started, .. } = begun;
        if stores.is_empty() {
            return;
        }
        let spent = self.runtime.clock.elapsed().saturating_sub(*started);
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

    /// Appends encoded mutations to the log as one record.
    fn append(&self, logged: &[&Bytes]) -> Result<LogPosition, StorageError> {
        trace::note(|| "Appending to commitlog".into());
        let head = LogRecord::head(self.timestamps.mark());
        if let [one] = logged {
            // Most records are of one mutation: no list is made of its parts.
            return self.log.append_parts(&[&head, &LogRecord::length(one)?, one]).map_err(refused);
        }
        let mut lengths: Few<[u8; LENGTH_BYTES]> = SmallVec::with_capacity(logged.len());
        for mutation in logged {
            lengths.push(LogRecord::length(mutation)?);
        }
        let mut parts: SmallVec<[&[u8]; 5]> = SmallVec::with_capacity(1 + 2 * logged.len());
        parts.push(&head);
        for (length, mutation) in lengths.iter().zip(logged) {
            parts.push(length);
            parts.push(mutation);
        }
        self.log.append_parts(&parts).map_err(refused)
    }
}

/// Where the partitions of up to [`KEYS_TOGETHER`] mutations are in the memtable of their table.
fn places_of<M: Borrow<Mutation>>(store: &TableStore, mutations: &[M]) -> Places {
    if mutations.len() == 1 {
        // One alone is looked for when it is merged.
        return smallvec![None];
    }
    let keys: SmallVec<[_; KEYS_TOGETHER]> =
        mutations.iter().map(|mutation| &mutation.borrow().key).collect();
    store.active.borrow().with(|memtable| memtable.places_of(&keys))
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
