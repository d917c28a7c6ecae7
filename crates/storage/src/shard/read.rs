//! How a page is read: gather the places a partition may live, merge, keep what is live.

use std::borrow::Cow;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use manifest::Scoped;
use memtable::{MemtableCursor, MemtableSlot, MemtableTarget};
use rows::{
    ClusteringComparator, Lack, LiveRows, MergeCursor, PartitionHeader, PartitionKey, RingRange, Row, Slices,
    Step, Unfiltered, UnfilteredCursor,
};
use runtime::{Piece, Plant, trace};
use sstable::{FileCursor, FileNeed, KeyHash, SstableError};

use super::fetch::HeldChunks;
use super::read_trace::activity;
use super::row_versions::RowVersions;
use super::scan::SingleRowsScanned;
use super::tombstones::Passed;
use super::visible::live_rows;
use super::{Shard, TableStore};
use crate::{KEYS_TOGETHER, StorageError};
use read::{PartitionRows, ReadCommand, ReadPage, ReadPosition, ReadTarget, RowList};

/// Steps after which a long read lets others on the shard go first.
const STEPS_PER_TURN: u32 = 1024;
/// And after which it looks whether it has been long already.
const STEPS_PER_LOOK: u32 = 16;
const _: () = assert!(STEPS_PER_LOOK < STEPS_PER_TURN, "it looks before it lets others go first");
/// A row of so many bytes is as much work as one step more.
pub(super) const STEP_BYTES: usize = 4 << 10;

impl Shard {
    /// Reads one page of this shard's part of what is asked for. Keys must be owned by this shard;
    /// of a range, the shard's own partitions are given.
    ///
    /// # Errors
    /// A file that may hold what is asked for is damaged, or the disk failed.
    pub async fn read(&self, command: &ReadCommand) -> Result<ReadPage, StorageError> {
        let store = self.store(command.table.id())?;
        store.check_readable()?;
        let _room = self.read_memory.enter(&store.read_bytes).await;
        let started = self.runtime.clock.elapsed();
        trace::note(|| activity(&store, command));
        let mut reading = Reading::new(self, &store, command);
        let outcome = match &command.target {
            ReadTarget::Keys(keys) => reading.keys(keys).await,
            // Boxed, so that a read of one row needs no room for it; so is what else it seldom comes to.
            ReadTarget::Range(range) => Box::pin(reading.range(range)).await,
        };
        store.read_bytes.learn(reading.place_count.get(), reading.row_bytes_max);
        reading.note_cold(0);
        reading.tell_passed_of_range();
        if let Err(error) = outcome {
            return Box::pin(self.read_failed(&store, command, error)).await;
        }
        let mut page = reading.page;
        if self.runtime.plants.has(Plant::ShortRead) {
            page.next = None;
        }
        let live_count = page.partitions.iter().map(|partition| partition.rows.len() as u64).sum();
        let tombstone_count = page.tombstone_count();
        store.metrics.note_read(started, self.runtime.clock.elapsed(), live_count, tombstone_count);
        trace::note(|| format!("Read {live_count} live rows and {tombstone_count} tombstone cells"));
        Ok(page)
    }
}

/// A page being read.
pub(super) struct Reading<'a> {
    pub(super) shard: &'a Shard,
    pub(super) store: &'a TableStore,
    pub(super) command: &'a ReadCommand,
    pub(super) live: LiveRows,
    pub(super) passed: Passed,
    pub(super) chunks: Rc<HeldChunks>,
    /// Do partitions read backwards? Only those asked for by key can.
    reversed: bool,
    pub(super) page: ReadPage,
    pub(super) row_count: u32,
    /// What the page takes in memory.
    pub(super) bytes: usize,
    /// Of it, the rows as they are encoded.
    encoded_bytes: usize,
    /// From how many places it read at once.
    place_count: Cell<usize>,
    /// The largest row that it came upon.
    pub(super) row_bytes_max: usize,
    steps: u32,
    /// What was done since it last looked whether it has been long: steps, and more for large rows.
    pub(super) work: u32,
    pub(super) piece: Piece,
}

impl<'a> Reading<'a> {
    fn new(shard: &'a Shard, store: &'a TableStore, command: &'a ReadCommand) -> Self {
        Reading {
            shard,
            store,
            command,
            live: live_rows(command.now, &command.table),
            passed: Passed::default(),
            chunks: Rc::new(HeldChunks::new(&shard.cache, &store.metrics)),
            reversed: command.reversed && matches!(command.target, ReadTarget::Keys(_)),
            page: ReadPage::default(),
            row_count: 0,
            bytes: 0,
            encoded_bytes: 0,
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
                self.tell_passed(&resume.key);
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

    /// Reads a partition, of which everything may have been found already; is the page full by it?
    async fn key(&mut self, key: &PartitionKey, found: Option<RowVersions>) -> Result<bool, StorageError> {
        self.count_step().await;
        let bytes_before = self.encoded_bytes;
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
        self.tell_passed(key);
        Ok(is_full)
    }

    /// Notes how much was wanted of files, since the page had so many encoded bytes, if that was not in memory.
    fn note_cold(&self, bytes_before: usize) {
        let bytes = (self.encoded_bytes - bytes_before) as u64;
        if let Some(wanted) = bytes.checked_div(self.chunks.take_cold()) {
            let is_range = matches!(self.command.target, ReadTarget::Range(_));
            self.store.chunk_length.note(wanted, is_range);
        }
    }

    /// Adds a partition of one live row to the page; is the page full by that, or without it?
    ///
    /// # Errors
    /// The row alone is more than a page may have.
    pub(super) fn take_only_row(&mut self, row: Row, key: PartitionKey) -> Result<bool, StorageError> {
        let bytes = PartitionRows::OWN_BYTES + key.bytes.len() + PartitionRows::row_bytes(&row);
        if !self.has_room(bytes)? {
            return Ok(true);
        }
        self.bytes += bytes;
        assert!(self.bytes <= self.command.limits.bytes_max, "a page is no larger than it may be");
        self.encoded_bytes += row.as_encoded().len();
        self.row_count += 1;
        let is_full = self.is_full();
        if is_full && self.page.next.is_none() {
            let clustering = Some(row.clustering());
            self.page.next = Some(ReadPosition { key: key.clone(), clustering, row_count: 1 });
        }
        let rows = RowList::from_buf([row]);
        self.page.partitions.push(PartitionRows { key, static_row: None, rows });
        Ok(is_full)
    }

    /// May the page have so many bytes more? If not it ends behind the last partition that it has.
    ///
    /// # Errors
    /// It has none: whoever asks has to allow more.
    fn has_room(&mut self, bytes: usize) -> Result<bool, StorageError> {
        if self.bytes.saturating_add(bytes) <= self.command.limits.bytes_max {
            return Ok(true);
        }
        let Some(last) = self.page.partitions.last() else {
            return Err(StorageError::RowTooLarge { bytes });
        };
        // It has given all that it has.
        let next = ReadPosition { key: last.key.clone(), clustering: None, row_count: 0 };
        self.page.next.get_or_insert(next);
        Ok(false)
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

    /// What a partition still has to give behind a position. Is the page full?
    async fn rest_of_partition(&mut self, resume: &ReadPosition) -> Result<bool, StorageError> {
        let Some(last) = &resume.clustering else { return Ok(false) };
        if self.shard.sharding.shard_of(resume.key.token) != self.shard.index {
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

    fn partition_cursor(&self, key: &PartitionKey, slices: &Slices) -> MergeCursor<Source> {
        let mut sources = Vec::new();
        for slot in self.store.memtables() {
            let target = MemtableTarget::Key(key.clone());
            sources.push(self.memory(slot, target, slices));
        }
        let hash = KeyHash::of(&key.bytes);
        for file in self.store.files().iter().filter(|file| self.store.may_show(file, key, hash)) {
            let chunks = Rc::clone(&self.chunks);
            let cursor = file.partition_cursor(chunks, key, hash, slices, self.reversed);
            sources.push(Source::File(Box::new(Scoped::new(cursor, None))));
        }
        self.place_count.set(sources.len().max(self.place_count.get()));
        MergeCursor::new(self.store.table(), self.reversed, sources)
    }

    fn memory(&self, slot: Rc<MemtableSlot>, target: MemtableTarget, slices: &Slices) -> Source {
        let expected = self.command.limits.row_count.saturating_sub(self.row_count);
        Source::Memory(Box::new(MemtableCursor::new(slot, target, slices.clone(), self.reversed, expected)))
    }

    fn range_cursor(&self, range: &RingRange) -> MergeCursor<Source> {
        let slices = &self.command.slices;
        let mut sources = Vec::new();
        for slot in self.store.memtables() {
            let target = MemtableTarget::Range(range.clone());
            sources.push(self.memory(slot, target, slices));
        }
        for file in self.store.files().iter() {
            let cursor = file.scan(Rc::clone(&self.chunks), range, slices);
            sources.push(Source::File(Box::new(Scoped::new(cursor, self.store.scopes_of(file)))));
        }
        self.place_count.set(sources.len().max(self.place_count.get()));
        MergeCursor::new(self.store.table(), self.reversed, sources)
    }

    /// Takes partitions from the cursor until it ends or the page is full; is it full?
    ///
    /// `resumed` is how many rows the (then only) partition gave on earlier pages; `is_alone` says
    /// that the cursor reads one partition.
    async fn drive(
        &mut self,
        mut cursor: MergeCursor<Source>,
        resumed: Option<u32>,
        is_alone: bool,
    ) -> Result<bool, StorageError> {
        let limits = self.command.limits;
        let mut partition: Option<Open> = None;
        loop {
            self.count_step().await;
            let step = cursor.step()?;
            if !matches!(step, Step::Need(_)) {
                self.chunks.chunks.borrow_mut().clear();
            }
            match step {
                Step::Need(Lack::Source(need)) => Box::pin(self.shard.supply(need, &self.chunks)).await?,
                Step::Need(Lack::Merged(versions)) => {
                    let merged = self.elsewhere(move || versions.merge()).await;
                    cursor.put_merged(merged);
                }
                Step::Header(header) => {
                    if self.close(partition.take()) {
                        return Ok(true);
                    }
                    partition = self.open(header, resumed).await?;
                    if let Some(open) = &partition
                        && !self.has_room(open.rows.memory_bytes())?
                    {
                        return Ok(true);
                    }
                }
                Step::Item(item) => {
                    let Some(open) = partition.as_mut() else { continue };
                    if open.row_count >= limits.rows_per_partition {
                        if is_alone {
                            return Ok(self.close(partition.take()));
                        }
                        continue;
                    }
                    let row = match item {
                        Unfiltered::Row(row) => self.seen(row, &open.rows.key).await?,
                        Unfiltered::Marker(marker) => {
                            self.pass_marker(&marker, &open.rows.key)?;
                            None
                        }
                    };
                    let Some(row) = row else { continue };
                    if !self.take_row(row, open) {
                        return self.close_before(partition.take());
                    }
                    if self.is_full() {
                        return Ok(self.close(partition.take()));
                    }
                }
                Step::End => return Ok(self.close(partition.take())),
            }
        }
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

    /// Begins a partition; `None` when it is another shard's.
    async fn open(
        &mut self,
        header: PartitionHeader,
        resumed: Option<u32>,
    ) -> Result<Option<Open>, StorageError> {
        if self.shard.sharding.shard_of(header.key.token) != self.shard.index {
            return Ok(None);
        }
        let static_row = match header.static_row {
            Some(row) => self.seen(row, &header.key).await?,
            None => None,
        };
        let rows = PartitionRows { key: header.key, static_row, rows: RowList::new() };
        let (row_count, is_resumed) = (resumed.unwrap_or(0), resumed.is_some());
        Ok(Some(Open { rows, row_count, is_resumed, left_out_bytes: None }))
    }

    /// Adds what is visible of a merged row to its partition, if there is room for it.
    fn take_row(&mut self, row: Row, open: &mut Open) -> bool {
        let of_partition = if open.rows.rows.is_empty() { open.rows.memory_bytes() } else { 0 };
        let bytes = of_partition + PartitionRows::row_bytes(&row);
        if self.bytes.saturating_add(bytes) > self.command.limits.bytes_max {
            open.left_out_bytes = Some(bytes);
            return false;
        }
        self.bytes += bytes;
        self.encoded_bytes += row.as_encoded().len();
        self.row_count += 1;
        open.row_count += 1;
        open.rows.rows.push(row);
        true
    }

    /// Ends the page before a row for which it has no room.
    ///
    /// # Errors
    /// The page is empty without it.
    fn close_before(&mut self, partition: Option<Open>) -> Result<bool, StorageError> {
        let Some(open) = partition else { return Ok(true) };
        if open.rows.rows.is_empty() {
            self.has_room(open.left_out_bytes.unwrap_or_default())?;
            return Ok(true);
        }
        self.page.next = open.position();
        self.page.partitions.push(open.rows);
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.row_count >= self.command.limits.row_count || self.bytes >= self.command.limits.bytes
    }

    /// Adds a finished partition to the page; is the page full by that?
    fn close(&mut self, partition: Option<Open>) -> bool {
        let Some(open) = partition else { return false };
        if open.rows.rows.is_empty() {
            if open.rows.static_row.is_none() || open.is_resumed {
                self.pass_partition(open.rows.key);
                return false;
            }
            self.row_count += 1;
            self.bytes += open.rows.memory_bytes();
            self.encoded_bytes += open.rows.static_row.as_ref().map_or(0, |row| row.as_encoded().len());
        }
        let is_full = self.is_full();
        if is_full && self.page.next.is_none() {
            self.page.next = open.position();
        }
        self.page.partitions.push(open.rows);
        is_full
    }
}

/// A partition that is being read.
struct Open {
    rows: PartitionRows,
    /// Rows it gave, on earlier pages too.
    row_count: u32,
    is_resumed: bool,
    /// Of a row for which there was no room.
    left_out_bytes: Option<usize>,
}

impl Open {
    fn position(&self) -> Option<ReadPosition> {
        let clustering = self.rows.rows.last().map(Row::clustering);
        Some(ReadPosition { key: self.rows.key.clone(), clustering, row_count: self.row_count })
    }
}

/// A place where a partition may live.
enum Source {
    Memory(Box<MemtableCursor>),
    File(Box<Scoped<FileCursor<Rc<HeldChunks>>>>),
}

impl UnfilteredCursor for Source {
    type Need = FileNeed;
    type Error = SstableError;

    fn has_more_versions(&self) -> bool {
        match self {
            Source::File(cursor) => cursor.has_more_versions(),
            Source::Memory(cursor) => cursor.has_more_versions(),
        }
    }

    fn step(&mut self) -> Result<Step<FileNeed>, SstableError> {
        match self {
            Source::File(cursor) => cursor.step(),
            Source::Memory(cursor) => {
                let Ok(step) = cursor.step() as Result<Step<Infallible>, Infallible>;
                Ok(match step {
                    Step::Header(header) => Step::Header(header),
                    Step::Item(item) => Step::Item(item),
                    Step::End => Step::End,
                    Step::Need(never) => match never {},
                })
            }
        }
    }
}
