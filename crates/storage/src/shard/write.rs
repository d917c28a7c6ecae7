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
use std::iter::once;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use commitlog::{CommitLogError, LogPosition, SyncMode};
use memtable::{KEYS_TOGETHER, PartitionPlace, PartitionPlaces};
use rows::Mutation;
use runtime::{Clock, Plant, trace};
use schema::TableId;
use smallvec::{SmallVec, smallvec};
use stdx::index_set::IndexSet;
use table::{Shared, TableError, TableMetrics, TableStore};

use super::{Shard, Writes};
use crate::StorageError;
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

impl Unit {
    /// How many units so many mutations are.
    pub fn count(self, mutation_count: usize) -> usize {
        match self {
            Unit::All => 1,
            Unit::Each => mutation_count,
        }
    }
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

/// A write that a visitor has begun: what stands in log and memtables, and is neither waited for nor counted yet. Goes
/// through the visitor's thread.
pub(crate) struct Unsettled {
    position: LogPosition,
    /// As in [`Stores`].
    tables: Few<(TableId, usize)>,
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
    /// Takes all mutations as one record, or says why not.
    fn take_all<M: Borrow<Mutation>>(&mut self, shard: &Shard, mutations: &[M]) {
        let store = |of_table: &[M]| Ok((shard.table(of_table[0].borrow().table)?, of_table.len()));
        let stores = by_table(mutations).map(store).collect::<Result<Stores, StorageError>>();
        let taken = stores.and_then(|stores| Ok((take_together(shard, &stores, mutations)?, stores)));
        match taken {
            Ok((position, stores)) => {
                (self.taken, self.position, self.stores) = (IndexSet::first(1), position, stores);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Takes each mutation as a record by itself, those for which there is room.
    fn take_each<M: Borrow<Mutation>>(&mut self, shard: &Shard, mutations: &[M], wait: Wait) {
        assert!(mutations.len() <= KEYS_TOGETHER, "so many mutations are taken together");
        // Asked before anything is looked for: under most sync modes no write is done without waiting.
        let is_hopeless = |first: &M| wait == Wait::Never && !takes_at_once(&shard.shared, first.borrow());
        if mutations.first().is_none_or(is_hopeless) {
            return;
        }
        let mut index = 0;
        for of_table in by_table(mutations) {
            match shard.table(of_table[0].borrow().table) {
                Ok(store) => self.take_each_of(shard, store, of_table, index, wait),
                Err(error) => _ = self.error.get_or_insert(error),
            }
            index += of_table.len();
        }
    }

    /// The same for mutations of one table, of which the first has that index.
    fn take_each_of<M: Borrow<Mutation>>(
        &mut self,
        shard: &Shard,
        store: Rc<TableStore>,
        mutations: &[M],
        first: usize,
        wait: Wait,
    ) {
        let sample = (wait == Wait::Never)
            .then(|| store.metrics().begin_writes(mutations.len(), &*shard.shared.runtime.clock));
        // Guarded once for all: to guard each takes one in a hundred of its instructions.
        let failsafe = &shard.shared.runtime.failsafe;
        let taken_count =
            failsafe.guard("a write", || self.take_with_room(shard, &store, mutations, first, wait));
        match sample {
            Some(sample) => sample.end(taken_count as u64),
            None => self.stores.push((store, taken_count)),
        }
    }

    /// Takes those for which there is room; how many?
    fn take_with_room<M: Borrow<Mutation>>(
        &mut self,
        shard: &Shard,
        store: &TableStore,
        mutations: &[M],
        first: usize,
        wait: Wait,
    ) -> usize {
        let (is_durable, mut taken_count) = (is_durable(shard, store.id()), 0);
        for (index, placed) in (first..).zip(placed(store, mutations)) {
            let (_, mutation, _) = placed;
            let has_room = match wait {
                Wait::Never => takes_at_once(&shard.shared, mutation),
                // The first in any case: its write has waited for room.
                _ => self.taken.is_empty() || !shard.shared.room.is_spent(),
            };
            if !has_room {
                break;
            }
            let encoded = [mutation.as_encoded()];
            let logged = if is_durable { &encoded[..] } else { &[] };
            match take_record(&shard.shared, logged, 1, once(placed)) {
                Ok(position) => {
                    self.taken.insert(index);
                    self.note_position(position);
                    taken_count += 1;
                }
                Err(error) => _ = self.error.get_or_insert(error),
            }
        }
        taken_count
    }

    /// Takes in where the log has one more record, if it has it. The last one is waited for, and stands for all.
    fn note_position(&mut self, position: Option<LogPosition>) {
        let rises = position.is_none() || self.position < position;
        assert!(rises, "each record of a write lies behind the one before");
        self.position = position.or(self.position);
    }

    /// Counts a write that is done with the tables that it went to. One that does not wait was counted as it was taken.
    pub(super) fn count(&self, clock: &dyn Clock) {
        let Begun { stores, started, .. } = self;
        if stores.is_empty() {
            return;
        }
        let spent = clock.elapsed().saturating_sub(*started);
        stores.iter().for_each(|(store, count)| count_writes(store, *count, spent));
    }

    /// What is left to do of it, without the tables: they stay on their thread.
    pub(super) fn into_unsettled(self, position: LogPosition) -> Unsettled {
        let tables = self.stores.iter().map(|(store, count)| (store.id(), *count)).collect();
        Unsettled { position, tables, started: self.started }
    }

    /// How it came out, when what was taken is durable.
    pub(super) fn into_outcomes(self) -> Outcomes {
        Outcomes { done: self.taken, doubtful: IndexSet::EMPTY, error: self.error }
    }
}

/// Why something about a table that was planned on that epoch of the schema comes too late, if it does: the table was
/// emptied since.
pub fn outdated(shard: &Shard, table: TableId, planned_on: u64) -> Option<StorageError> {
    let truncated_at = shard.tables.get(table)?.memtables().truncated_at();
    (planned_on < truncated_at).then_some(StorageError::Table(TableError::Outdated { table, truncated_at }))
}

/// Writes mutations whose partitions a shard owns, all of them or each by itself. Of what was planned on an epoch of
/// the schema nothing is written when one of its tables was emptied since.
///
/// # Cancel safety
/// Dropped while waiting for the disk, what was taken stands.
pub(crate) async fn write_units<M: Borrow<Mutation>>(
    shard: &Rc<Shard>,
    planned_on: Option<u64>,
    mutations: &[M],
    unit: Unit,
    wait: Wait,
) -> Outcomes {
    let plants = &shard.shared.runtime.plants;
    if unit == Unit::Each && mutations.len() > 1 && plants.has(Plant::GroupLost) {
        return Outcomes { done: IndexSet::first(mutations.len()), ..Outcomes::default() };
    }
    let _under_way = shard.writes.begin();
    if let Err(error) = shard.shared.room.wait(&shard.shared, &shard.tables).await {
        return Outcomes { error: Some(error.into()), ..Outcomes::default() };
    }
    if let Some(planned_on) = planned_on.filter(|_| !plants.has(Plant::OutdatedTaken)) {
        let outdated = |of_table: &[M]| outdated(shard, of_table[0].borrow().table, planned_on);
        if let Some(error) = by_table(mutations).find_map(outdated) {
            return Outcomes { error: Some(error), ..Outcomes::default() };
        }
    }
    let begun = shard.begin_write(mutations, unit, wait);
    shard.finish_write(begun, wait).await
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
        write_units(self, None, mutations, Unit::All, Wait::SyncMode).await.of_all()
    }

    /// As [`Shard::write`], but returns only once the write is on the disk, whatever the sync mode.
    ///
    /// # Errors
    /// As [`Shard::write`].
    pub async fn write_synced(self: &Rc<Self>, mutations: &[Mutation]) -> Result<(), StorageError> {
        write_units(self, None, mutations, Unit::All, Wait::Synced).await.of_all()
    }

    /// Writes that have mutations in memory, also those whose asker has gone.
    pub fn writes(&self) -> Writes<'_> {
        Writes { under_way: &self.writes, log: &self.shared.log }
    }

    /// Takes units of a write into the log and the memtables; does not wait.
    pub(crate) fn begin_write<M: Borrow<Mutation>>(&self, mutations: &[M], unit: Unit, wait: Wait) -> Begun {
        // A write that does not wait is timed by a sample.
        let started = if wait == Wait::Never { Duration::ZERO } else { self.shared.runtime.clock.elapsed() };
        let (taken, stores) = (IndexSet::EMPTY, Stores::new());
        let mut begun = Begun { taken, position: None, error: None, stores, started };
        match unit {
            Unit::All => begun.take_all(self, mutations),
            Unit::Each => begun.take_each(self, mutations, wait),
        }
        self.shared.lend();
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
        begun.count(&*self.shared.runtime.clock);
        begun.into_outcomes()
    }

    /// [`Shard::finish_write`] of what a visitor has begun here.
    ///
    /// # Errors
    /// The log failed.
    pub(crate) async fn settle_visit(
        self: &Rc<Self>,
        unsettled: Unsettled,
        wait: Wait,
    ) -> Result<(), StorageError> {
        let Unsettled { position, tables, started } = unsettled;
        self.settle_position(position, wait).await?;
        let spent = self.shared.runtime.clock.elapsed().saturating_sub(started);
        for (table, count) in tables {
            // One that was dropped meanwhile has no figures any more.
            if let Some(store) = self.tables.get(table) {
                count_writes(&store, count, spent);
            }
        }
        Ok(())
    }

    /// Waits until the log up to there is durable. To be called on the shard's own thread after every write that was
    /// begun and that waits, also by a visitor: the log may have begun a new segment.
    ///
    /// # Errors
    /// The log failed.
    async fn settle_position(self: &Rc<Self>, position: LogPosition, wait: Wait) -> Result<(), StorageError> {
        if position.segment != self.log_segment.replace(position.segment) {
            self.shared.shorten_log();
        }
        match wait {
            Wait::Never => Ok(()),
            Wait::Synced => Ok(self.shared.log.on_disk(position).await?),
            Wait::SyncMode if self.shared.runtime.plants.has(Plant::UnsyncedAcknowledgement) => Ok(()),
            // All units were appended without an await in between: a log that fails and begins anew fails all of
            // them or none.
            Wait::SyncMode => Ok(self.shared.log.synced(position).await?),
        }
    }

    /// Would [`Shard::settle_position`] have nothing to do?
    pub(crate) fn is_settled(&self, position: LogPosition) -> bool {
        position.segment == self.log_segment.get() && self.shared.log.is_synced(position)
    }

    /// Returns when everything written here so far is on the disk; at once where writes wait for
    /// that anyway. What keyspaces have without `durable_writes` is not.
    ///
    /// # Errors
    /// The log failed, or has failed before and what it lost is not in files yet.
    pub async fn settle(&self) -> Result<(), StorageError> {
        match self.options.sync {
            SyncMode::Periodic { .. } => {
                self.shared.log.sync().await?;
                self.shared.log.loss().map_or(Ok(()), |loss| Err(loss.into()))
            }
            SyncMode::Group { .. } | SyncMode::Batch => Ok(()),
        }
    }
}

/// Counts so many mutations of a write that took so long.
fn count_writes(store: &TableStore, count: usize, spent: Duration) {
    let metrics = store.metrics();
    TableMetrics::add(&metrics.write_count, count as u64);
    let spent_by_all = spent.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
    TableMetrics::add_nanos(&metrics.write_nanos, spent_by_all);
}

/// Takes mutations as one record; tells where that is in the log, if it is.
fn take_together<M: Borrow<Mutation>>(
    shard: &Shard,
    stores: &Stores,
    mutations: &[M],
) -> Result<Option<LogPosition>, StorageError> {
    let is_durable = |of_table: &&[M]| is_durable(shard, of_table[0].borrow().table);
    let durable = by_table(mutations).filter(is_durable).flatten();
    let logged: Few<&Bytes> = durable.map(|mutation| mutation.borrow().as_encoded()).collect();
    let placed = by_table(mutations).zip(stores).flat_map(|(of_table, (store, _))| {
        of_table.chunks(KEYS_TOGETHER).flat_map(|some| placed(store, some))
    });
    let take = || take_record(&shard.shared, &logged, mutations.len(), placed);
    shard.shared.runtime.failsafe.guard("a write", take)
}

/// A mutation, the table that it goes to, and where its partition is in the memtable of that.
type Placed<'m> = (&'m TableStore, &'m Mutation, Option<PartitionPlace>);

/// Logs what is to be durable of a record, and merges its mutations into the memtables; tells where the record is in
/// the log, if it is.
fn take_record<'m>(
    shared: &Shared,
    logged: &[&Bytes],
    mutation_count: usize,
    mutations: impl Iterator<Item = Placed<'m>>,
) -> Result<Option<LogPosition>, StorageError> {
    let position = append(shared, logged)?;
    // No await between the append and here: a flush that freezes a memtable so finds in it exactly the writes below
    // its log position.
    let (is_one_lost, mut merged_count) = (shared.runtime.plants.has(Plant::UnappliedMutation), 0);
    // It makes loops within loops of lists within lists; `for` would ask at each mutation in which list that is.
    mutations.skip(usize::from(is_one_lost)).for_each(|(store, mutation, place)| {
        store.apply(mutation, position, place);
        merged_count += 1;
    });
    assert_eq!(merged_count, mutation_count, "every mutation of a record is merged into a memtable");
    Ok(position)
}

/// Does the keyspace of the table want its mutations logged?
fn is_durable(shard: &Shard, table: TableId) -> bool {
    shard.with_schema(|schema| schema.keyspace_of(table).is_none_or(|keyspace| keyspace.durable_writes))
}

/// Would a write of it neither wait nor have anything done beside it?
fn takes_at_once(shared: &Shared, mutation: &Mutation) -> bool {
    let record_bytes = LogRecord::bytes(mutation.as_encoded());
    let now = shared.runtime.clock.elapsed_roughly();
    !shared.is_short_of_room() && shared.log.takes_at_once(record_bytes, now)
}

/// Appends encoded mutations to the log as one record, if there are any; tells where it is.
fn append(shared: &Shared, logged: &[&Bytes]) -> Result<Option<LogPosition>, StorageError> {
    if logged.is_empty() || shared.runtime.plants.has(Plant::UnloggedWrite) {
        return Ok(None);
    }
    trace::note(|| "Appending to commitlog".into());
    let head = LogRecord::head(shared.timestamps.mark());
    if let [one] = logged {
        // Most records are of one mutation: no list is made of its parts.
        let parts: [&[u8]; 3] = [&head, &LogRecord::length(one)?, one];
        return shared.log.append_parts(&parts).map(Some).map_err(refused);
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
    shared.log.append_parts(&parts).map(Some).map_err(refused)
}

/// Up to [`KEYS_TOGETHER`] mutations of one table, each with its place.
fn placed<'m, M: Borrow<Mutation>>(
    store: &'m TableStore,
    mutations: &'m [M],
) -> impl Iterator<Item = Placed<'m>> {
    let places = places_of(store, mutations);
    mutations.iter().zip(places).map(move |(mutation, place)| (store, mutation.borrow(), place))
}

/// Where the partitions of up to [`KEYS_TOGETHER`] mutations are in the memtable of their table.
fn places_of<M: Borrow<Mutation>>(store: &TableStore, mutations: &[M]) -> PartitionPlaces {
    if mutations.len() == 1 {
        // One alone is looked for when it is merged.
        return smallvec![None];
    }
    let keys: SmallVec<[_; KEYS_TOGETHER]> =
        mutations.iter().map(|mutation| &mutation.borrow().key).collect();
    let places = store.memtables().places_of(&keys);
    // What has no place would be passed over. No test can break it without another memtable.
    assert_eq!(places.len(), mutations.len(), "each mutation has its place");
    places
}

/// Why the log did not take a record.
fn refused(error: CommitLogError) -> StorageError {
    match error {
        CommitLogError::RecordTooLarge { record_bytes, record_bytes_max } => StorageError::MutationTooLarge {
            mutation_bytes: record_bytes,
            mutation_bytes_max: record_bytes_max,
        },
        CommitLogError::Closed => TableError::ShuttingDown.into(),
        // Nothing of it was taken, unlike what waits in the log when the disk fills up.
        full @ CommitLogError::DiskFull { .. } => TableError::DiskFull { reason: full.to_string() }.into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "each record of a write lies behind the one before")]
    fn a_record_before_one_that_was_noted_is_seen() {
        let (taken, stores, started) = (IndexSet::EMPTY, Stores::new(), Duration::ZERO);
        let mut begun = Begun { taken, position: None, error: None, stores, started };
        let at = |offset| Some(LogPosition { segment: 1, offset });
        begun.note_position(None);
        begun.note_position(at(100));
        begun.note_position(None);
        assert_eq!(begun.position, at(100), "a table without a log changes nothing");
        begun.note_position(at(64));
    }
}
