//! The commit log back into memtables, within the memory that these may take.
//!
//! ```text
//!   record ──► memtables of its owner ──► over the shard's share? ──► the largest becomes a file
//!                                                                      the manifest names it, and says
//!                                                                      how far the log was really read
//! ```
//!
//! A start that is cut off goes on from there the next time. While the directory changes its sharding
//! rule no manifest is touched: the files have no name until the new manifests do, and a start
//! that is cut off sweeps them up and reads the log again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use commitlog::{LogPosition, Replay, Replayed, segment_path};
use manifest::{Edit, Manifest, Position};
use memtable::Memtable;
use rows::Mutation;
use schema::{Schema, TableId};
use sstable::Descriptor;
use table::write_memtable;
use uuid::Uuid;

use crate::StorageError;
use crate::record::{Content, LogRecord};
use crate::shard::ShardContext;

/// What a replay leaves for one shard.
#[derive(Default)]
pub(crate) struct ReplayedShard {
    /// What is in no file.
    pub(crate) memtables: BTreeMap<TableId, Memtable>,
    /// Files that no manifest names yet.
    pub(crate) unnamed: BTreeMap<TableId, Vec<Uuid>>,
    memtable_bytes: usize,
}

/// A replay under way.
pub(crate) struct Replaying<'a> {
    context: &'a ShardContext,
    schema: &'a Schema,
    /// One for each stream of the log.
    manifests: &'a mut [Manifest],
    /// Do streams and shards mean the same?
    keeps_rule: bool,
    /// For each stream and table, where replay begins.
    flushed: BTreeMap<(u32, TableId), LogPosition>,
    /// For each stream, the end of the last record that was read.
    read_to: BTreeMap<u32, LogPosition>,
    shards: Vec<ReplayedShard>,
    last_timestamp: i64,
    mutation_count: u64,
    /// Records of kinds that are not known and need not be.
    passed_over_count: u64,
    flush_count: u64,
}

impl<'a> Replaying<'a> {
    /// Of the log that the manifests belong to. `keeps_rule`: it was written under the rule in force.
    pub(crate) fn new(
        context: &'a ShardContext,
        schema: &'a Schema,
        manifests: &'a mut [Manifest],
        keeps_rule: bool,
    ) -> Self {
        let shards = (0..context.sharding.shard_count()).map(|_| ReplayedShard::default()).collect();
        Replaying {
            context,
            schema,
            keeps_rule,
            flushed: flushed_positions(manifests),
            read_to: BTreeMap::new(),
            shards,
            last_timestamp: manifests
                .iter()
                .map(|manifest| manifest.state().last_timestamp)
                .max()
                .unwrap_or(0),
            manifests,
            mutation_count: 0,
            passed_over_count: 0,
            flush_count: 0,
        }
    }

    /// Reads the log to its end. Gives what each shard begins with, and the greatest timestamp known.
    ///
    /// # Errors
    /// The disk fails, or the log is damaged and the policy is not to ignore that.
    pub(crate) fn run(mut self) -> Result<(Vec<ReplayedShard>, i64), StorageError> {
        let disk = &self.context.runtime.disk;
        let mut log = commitlog::replay(disk, &self.context.layout.commitlog())?;
        let streams = (0u32..).zip(self.manifests.iter());
        log.require_rosters(
            streams.filter(|(_, manifest)| manifest.state().keeps_roster).map(|(stream, _)| stream),
        );
        let budget = self.context.share().memtable_bytes;
        while let Some(replayed) = log.next() {
            let replayed = match replayed {
                Ok(replayed) => replayed,
                Err(error) if !error.is_damage() => return Err(error.into()),
                Err(error) if self.context.health.note_lost_log(&error) => continue,
                Err(error) => return Err(StorageError::LostLog(error)),
            };
            let owners = self.apply_record(&replayed)?;
            // Only now: the parts of a record are in files all or not at all.
            let LogPosition { segment, offset } = replayed.position;
            self.read_to.insert(replayed.stream, LogPosition { segment, offset: offset + 1 });
            for owner in owners {
                while self.shards[owner].memtable_bytes > budget {
                    self.flush_largest(owner, &mut log)?;
                }
            }
        }
        for torn in log.torn_tails() {
            tracing::info!(path = %torn.path.display(), offset = torn.offset, bytes = torn.dropped_bytes, "a write that was never acknowledged ends the commit log");
        }
        if self.passed_over_count > 0 {
            let record_count = self.passed_over_count;
            tracing::warn!(
                record_count,
                "records of the commit log are of a kind that this program does not know and may pass over"
            );
        }
        if self.mutation_count > 0 {
            let (mutation_count, flush_count) = (self.mutation_count, self.flush_count);
            tracing::info!(mutation_count, flush_count, "replayed the commit log");
        }
        Ok((self.shards, self.last_timestamp))
    }

    /// Merges a record in; tells which shards it grew.
    fn apply_record(&mut self, replayed: &Replayed) -> Result<BTreeSet<usize>, StorageError> {
        let Replayed { stream, position, version, payload } = replayed;
        let record = LogRecord::decode(payload.clone(), *version).map_err(|source| {
            let path = segment_path(&self.context.layout.commitlog(), *stream, position.segment);
            StorageError::LoggedRecord { path, offset: position.offset, source }
        })?;
        self.last_timestamp = record.last_timestamp.max(self.last_timestamp);
        match record.content {
            Content::Mutations(mutations) => {
                Ok(mutations.iter().filter_map(|mutation| self.apply(mutation, *stream, *position)).collect())
            }
            Content::PassedOver => {
                self.passed_over_count += 1;
                Ok(BTreeSet::new())
            }
        }
    }

    /// Merges a mutation in, if no file has it; tells which shard it grew.
    fn apply(&mut self, mutation: &Mutation, stream: u32, position: LogPosition) -> Option<usize> {
        let table = self.schema.table_by_id(mutation.table)?;
        if self.flushed.get(&(stream, mutation.table)).is_some_and(|to| position < *to) {
            return None;
        }
        let owner = self.context.sharding.shard_of(mutation.key.token);
        let shard = &mut self.shards[owner];
        let memtable =
            shard.memtables.entry(mutation.table).or_insert_with(|| Memtable::new(Arc::clone(table)));
        let before = memtable.memory_bytes();
        memtable.apply(mutation, Some(position), None);
        // No test can break it: nothing takes anything out of a memtable.
        assert!(memtable.memory_bytes() >= before, "a memtable never shrinks");
        shard.memtable_bytes += memtable.memory_bytes() - before;
        self.mutation_count += 1;
        Some(owner)
    }

    /// Writes the largest memtable of a shard to a file.
    fn flush_largest(&mut self, owner: usize, log: &mut Replay<'_>) -> Result<(), StorageError> {
        if self.flush_count == 0 {
            // A record of several tables must not outlive a power cut in this table's file alone, and what
            // a killed process wrote last may be in the system's cache alone.
            log.settle()?;
        }
        let shard = &mut self.shards[owner];
        let sizes = shard.memtables.iter().map(|(id, memtable)| (memtable.memory_bytes(), *id));
        let largest = sizes.max().and_then(|(_, id)| Some((id, shard.memtables.remove(&id)?)));
        let Some((id, memtable)) = largest else {
            shard.memtable_bytes = 0;
            return Ok(());
        };
        assert!(
            memtable.memory_bytes() <= shard.memtable_bytes,
            "what was replayed is counted until it goes"
        );
        shard.memtable_bytes -= memtable.memory_bytes();
        let left: usize = shard.memtables.values().map(Memtable::memory_bytes).sum();
        assert_eq!(shard.memtable_bytes, left, "what was replayed is the sum of the memtables");
        self.flush_count += 1;
        let file = write_replayed(self.context, self.schema, owner, id, &memtable)?;
        if !self.keeps_rule {
            self.shards[owner].unnamed.entry(id).or_default().extend(file);
            return Ok(());
        }
        let stream = u32::try_from(owner).unwrap_or(u32::MAX);
        // A stream holds what its shard owns, but that is for the disk to say and not for us to promise.
        let flushed = self.flushed.get(&(stream, id)).copied().unwrap_or(LogPosition::START);
        let read_to = self.read_to.get(&stream).filter(|read_to| **read_to >= flushed);
        let flushed = read_to.copied().map(Position::from);
        let edit = Edit { added: file.into_iter().collect(), flushed, ..Edit::default() };
        self.manifests[owner] = self.manifests[owner].edited(id, &edit, self.last_timestamp).write()?;
        Ok(())
    }
}

/// Writes replayed mutations of a table to a file; `None` when they say nothing or the table is gone.
pub(crate) fn write_replayed(
    context: &ShardContext,
    schema: &Schema,
    owner: usize,
    id: TableId,
    memtable: &Memtable,
) -> Result<Option<Uuid>, StorageError> {
    let Some(table) = schema.table_by_id(id) else { return Ok(None) };
    let file = context.runtime.random.uuid_v1(&*context.runtime.clock);
    let descriptor = Descriptor::new(context.health.table_directory(owner, table)?, file);
    let disk = Arc::clone(&context.runtime.disk);
    // Nothing is known of its reads yet.
    let compression = table.options().compression.clone();
    let written = write_memtable(disk, descriptor, Arc::clone(table), compression, memtable, 0)?;
    Ok(written.map(|_| file))
}

/// For each stream and table, where replay begins: a shard's manifest speaks for its own stream.
fn flushed_positions(manifests: &[Manifest]) -> BTreeMap<(u32, TableId), LogPosition> {
    let mut positions = BTreeMap::new();
    for (stream, manifest) in (0u32..).zip(manifests) {
        for (table, state) in &manifest.state().tables {
            positions.insert((stream, *table), state.flushed.into());
        }
    }
    positions
}
