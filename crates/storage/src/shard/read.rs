//! How rows are read: gather the places where a partition may live, merge, give what is found to who takes it.
//!
//! What becomes of the rows is for a [`RowConsumer`] to say: a page for a client, or an answer for another replica.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use read::{
    Begun, Digester, LivePage, PageDigest, Place, ReadCommand, ReadPage, ReadPosition, ReadTarget,
    RowConsumer, UnfilteredPage, UnfilteredRows,
};
use rows::{
    ClusteringComparator, Lack, MergeCursor, PartitionHeader, PartitionKey, RingRange, Step, Unfiltered,
    UnfilteredCursor,
};
use runtime::{Piece, Plant, trace};
use table::{RowVersions, Shared, TableStore};
use types::Token;

use super::Shard;
use super::fetch::HeldChunks;
use super::read_trace::activity;
use super::scan::SingleRowsScanned;
use super::sources::Source;
use crate::{KEYS_TOGETHER, StorageError};

/// Steps after which a long read lets others on the shard go first.
const STEPS_PER_TURN: u32 = 1024;
/// And after which it looks whether it has been long already.
const STEPS_PER_LOOK: u32 = 16;
const _: () = assert!(STEPS_PER_LOOK < STEPS_PER_TURN, "it looks before it lets others go first");

impl Shard {
    /// Reads one page of this shard's part of what is asked for. Keys must be owned by this shard;
    /// of a range, the shard's own partitions are given.
    ///
    /// # Errors
    /// A file that may hold what is asked for is damaged, or the disk failed.
    pub async fn read(&self, command: &ReadCommand) -> Result<ReadPage, StorageError> {
        let page = || LivePage::new(command, self.options.tombstones);
        let mut page = self.read_into(command, page).await?;
        if self.shared.runtime.plants.has(Plant::ShortRead) {
            page.next = None;
        }
        Ok(page)
    }

    /// As [`Shard::read`], with all that is deleted: for a replica that merges it with what others have
    /// ([`read::merge_answers`]).
    ///
    /// # Errors
    /// As [`Shard::read`].
    pub async fn read_unfiltered(&self, command: &ReadCommand) -> Result<UnfilteredPage, StorageError> {
        self.read_into(command, || UnfilteredRows::new(command, self.options.tombstones)).await
    }

    /// The hash of what [`Shard::read_unfiltered`] gives: replicas that have the same need not say it.
    ///
    /// # Errors
    /// As [`Shard::read`].
    pub async fn read_digest(&self, command: &ReadCommand) -> Result<PageDigest, StorageError> {
        self.read_into(command, || Digester::new(command, self.options.tombstones)).await
    }

    /// Reads until a consumer is full. Another one begins anew when a file was left out meanwhile.
    async fn read_into<C: RowConsumer>(
        &self,
        command: &ReadCommand,
        consumer: impl Fn() -> C,
    ) -> Result<C::Answer, StorageError> {
        loop {
            let store = self.table(command.table.id())?;
            store.check_readable()?;
            let _room = self.read_memory.enter(store.read_bytes()).await;
            let started = self.shared.runtime.clock.elapsed();
            trace::note(|| activity(&store, command));
            let mut reading = Reading::new(self, &store, command, consumer());
            let outcome = match &command.target {
                ReadTarget::Keys(keys) => reading.keys(keys).await,
                // Boxed, so that a read of one row needs no room for it; so is what else it seldom comes to.
                ReadTarget::Range(range) => Box::pin(reading.range(range)).await,
            };
            store.read_bytes().learn(reading.place_count.get(), reading.row_bytes_max);
            reading.note_cold(0);
            match outcome {
                Ok(()) => {
                    let (live_count, tombstone_count) = reading.consumer.counts();
                    let ended = self.shared.runtime.clock.elapsed();
                    store.metrics().note_read(started, ended, live_count, tombstone_count);
                    trace::note(|| {
                        format!("Read {live_count} live rows and {tombstone_count} tombstone cells")
                    });
                    return Ok(reading.consumer.finish());
                }
                // Each time there is one file less.
                Err(error) => read_failed(&self.shared, &store, error)?,
            }
        }
    }
}

/// A read of a table failed. Under `best_effort` it is tried again without the file that is to blame.
fn read_failed(shard: &Shared, store: &Rc<TableStore>, error: StorageError) -> Result<(), StorageError> {
    let StorageError::Table(error) = error else { return Err(error) };
    shard.note_fault("read", &error);
    match shard.health.answers_from_the_rest() && store.leave_out(&error) {
        true => Ok(()),
        false => Err(error.into()),
    }
}

/// A read under way.
pub(super) struct Reading<'a, C> {
    pub(super) shard: &'a Shard,
    pub(super) store: &'a TableStore,
    pub(super) command: &'a ReadCommand,
    /// Who takes the rows.
    pub(super) consumer: C,
    pub(super) chunks: Rc<HeldChunks>,
    /// Do partitions read backwards? Only those asked for by key can.
    pub(super) reversed: bool,
    /// From how many places it read at once.
    pub(super) place_count: Cell<usize>,
    /// The largest row that it came upon.
    pub(super) row_bytes_max: usize,
    steps: u32,
    /// What was done since it last looked whether it has been long: steps, and more for large rows.
    pub(super) work: u32,
    pub(super) piece: Piece,
}

impl<'a, C: RowConsumer> Reading<'a, C> {
    fn new(shard: &'a Shard, store: &'a TableStore, command: &'a ReadCommand, consumer: C) -> Self {
        Reading {
            shard,
            store,
            command,
            consumer,
            chunks: Rc::new(HeldChunks::new(&shard.shared.cache, store.metrics())),
            reversed: command.reversed && matches!(command.target, ReadTarget::Keys(_)),
            place_count: Cell::new(1),
            row_bytes_max: 0,
            steps: 0,
            work: 0,
            piece: Piece::of_turn(),
        }
    }

    async fn keys(&mut self, keys: &[PartitionKey]) -> Result<(), StorageError> {
        let mut keys = keys;
        if let Some(resume) = &self.command.resume {
            let place = keys.iter().position(|key| *key == resume.key);
            keys = place.map_or(&[][..], |place| &keys[place + 1..]);
            if place.is_some() {
                let is_full = Box::pin(self.rest_of_partition(resume)).await?;
                self.consumer.leave(&resume.key);
                if is_full {
                    return Ok(());
                }
            }
        }
        for keys in keys.chunks(KEYS_TOGETHER) {
            let mut found = self.rows_at_hand(keys);
            for (index, key) in keys.iter().enumerate() {
                let found = found.get_mut(index).and_then(Option::take);
                if self.key(key, found).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads a partition, of which everything may have been found already; is the consumer full by it?
    async fn key(&mut self, key: &PartitionKey, found: Option<RowVersions>) -> Result<bool, StorageError> {
        self.count_step().await;
        let bytes_before = self.consumer.encoded_bytes();
        let versions = match found {
            None if self.command.has_single_rows() => self.row_versions(key).await?,
            found => found,
        };
        let is_full = match versions {
            Some(versions) if versions.has_large() => Box::pin(self.take_large(key, versions)).await?,
            Some(versions) => self.take_versions(key, versions)?,
            None => {
                let cursor = self.partition_cursor(key, &self.command.slices);
                Box::pin(self.drive(cursor, None, true)).await?
            }
        };
        self.note_cold(bytes_before);
        self.consumer.leave(key);
        Ok(is_full)
    }

    /// Notes how much was wanted of files, since so many bytes were taken, if that was not in memory.
    fn note_cold(&self, bytes_before: usize) {
        let bytes = (self.consumer.encoded_bytes() - bytes_before) as u64;
        if let Some(wanted) = bytes.checked_div(self.chunks.take_cold()) {
            let is_range = matches!(self.command.target, ReadTarget::Range(_));
            self.store.chunk_length().note(wanted, is_range);
        }
    }

    async fn range(&mut self, range: &RingRange) -> Result<(), StorageError> {
        let mut range = Cow::Borrowed(range);
        if let Some(resume) = &self.command.resume {
            if range.end.is_before(&resume.key) {
                return Ok(());
            }
            if range.contains(&resume.key) {
                if self.rest_of_partition(resume).await? {
                    return Ok(());
                }
                range = Cow::Owned(range.after(resume.key.clone()));
            }
        }
        if self.command.has_single_rows() {
            match self.single_row_range(range.into_owned()).await? {
                SingleRowsScanned::Whole => return Ok(()),
                SingleRowsScanned::Rest(rest) => range = Cow::Owned(rest),
            }
        }
        let cursor = self.range_cursor(&range);
        self.drive(cursor, None, false).await?;
        Ok(())
    }

    /// What a partition still has to give behind a position. Is the consumer full?
    async fn rest_of_partition(&mut self, resume: &ReadPosition) -> Result<bool, StorageError> {
        let Some(last) = &resume.clustering else { return Ok(false) };
        if !self.owns(resume.key.token) {
            return Ok(false);
        }
        let comparator = ClusteringComparator::new(Arc::clone(self.command.table.clustering_types()));
        let slices = self.command.slices.after(last, self.reversed, &comparator);
        if slices.as_slice().is_empty() || resume.row_count >= self.command.limits.rows_per_partition {
            return Ok(false);
        }
        let cursor = self.partition_cursor(&resume.key, &slices);
        self.drive(cursor, Some(resume.row_count), true).await
    }

    /// Takes partitions from the cursor until it ends or the consumer is full; is it full?
    ///
    /// `resumed` is how many rows the (then only) partition gave on earlier pages; `is_alone` says
    /// that the cursor reads one partition.
    async fn drive(
        &mut self,
        mut cursor: MergeCursor<Source>,
        resumed: Option<u32>,
        is_alone: bool,
    ) -> Result<bool, StorageError> {
        loop {
            self.count_step().await;
            let step = cursor.step()?;
            if !matches!(step, Step::Need(_)) {
                self.chunks.chunks.borrow_mut().clear();
            }
            let is_full = match step {
                Step::Need(Lack::Source(need)) => {
                    Box::pin(self.chunks.supply(need, self.shard)).await?;
                    false
                }
                Step::Need(Lack::Merged(versions)) => {
                    let merged = self.elsewhere(move || versions.merge()).await;
                    cursor.put_merged(merged);
                    false
                }
                Step::Header(header) => self.consumer.end() || !self.begin(header, resumed).await?,
                Step::Item(_) if !self.consumer.wants_more() => match is_alone {
                    true => return Ok(self.consumer.end()),
                    false => false,
                },
                Step::Item(Unfiltered::Marker(marker)) => self.consumer.take_marker(marker)?,
                Step::Item(Unfiltered::Row(row)) => match self.seen(Place::Begun, row).await? {
                    Some(row) => self.consumer.take_row(row)?,
                    None => false,
                },
                Step::End => return Ok(self.consumer.end()),
            };
            if is_full {
                return Ok(true);
            }
        }
    }

    /// Begins a partition, unless it is another shard's. `false` when there is no room for it.
    async fn begin(&mut self, header: PartitionHeader, resumed: Option<u32>) -> Result<bool, StorageError> {
        let PartitionHeader { key, deletion, static_row } = header;
        if !self.owns(key.token) {
            return Ok(true);
        }
        let static_row = match static_row {
            Some(row) => self.seen(Place::Key(&key), row).await?,
            None => None,
        };
        Ok(self.consumer.begin(Begun { key, deletion, static_row, resumed })?)
    }

    /// Is a partition of that token its shard's?
    pub(super) fn owns(&self, token: Token) -> bool {
        let shared = &self.shard.shared;
        shared.sharding.shard_of(token) == shared.index
    }

    async fn count_step(&mut self) {
        self.steps += 1;
        if self.is_to_look() {
            self.give_way().await;
        }
    }

    /// Counts a step; is it time to look how long it has been?
    pub(super) fn is_to_look(&mut self) -> bool {
        self.work += 1;
        let is_to_look = self.work >= STEPS_PER_LOOK;
        if is_to_look {
            self.work = 0;
        }
        is_to_look
    }

    /// Lets others on the shard go first if it has been long already.
    async fn give_way(&mut self) {
        if self.steps >= STEPS_PER_TURN || self.piece.is_long() {
            self.steps = 0;
            tokio::task::yield_now().await;
            self.piece = Piece::of_turn();
        }
    }
}
