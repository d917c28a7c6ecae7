//! How rows are read: gather the places where a partition may live, merge, give what is found to who takes it.
//!
//! What becomes of the rows is for a [`RowConsumer`] to say: a page for a client, or an answer for another replica.
//!
//! ```text
//!   Reading::advance ── partition by partition, as far as all is in memory ──► the consumer is full, or all is read
//!        ▲                          │
//!        │                          ▼ Lack: a chunk, a turn, work for another thread
//!   Reading::provide ◄── who can wait; a visitor leaves both, the reading and its lack, to the shard
//! ```
//!
//! Nothing here waits but [`Reading::provide`]: how far a read has come is a value ([`Progress`]), with which anybody
//! goes on who holds the shard.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use read::{
    Digester, LivePage, PageDigest, ReadCommand, ReadPage, ReadPosition, ReadTarget, RowConsumer, RowView,
    UnfilteredPage, UnfilteredRows,
};
use rows::{ClusteringComparator, DeletionTime, PartitionKey, RingRange, RowVersions};
use runtime::{Piece, Plant, trace};
use schema::TableId;
use sstable::FileNeed;
use table::{Shared, TableStore};

use super::Shard;
use super::fetch::HeldChunks;
use super::large_rows::LargeRow;
use super::read_partitions::Partitions;
use super::read_row::RowSearch;
use super::read_trace::activity;
use super::scan::SingleRowsScanned;
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
        let page = self.read_into(command, page).await;
        page.map(|page| cut_short(&self.shared, page))
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

    /// Reads until a consumer is full, and waits for room and for what is lacking. Another one begins anew when a file
    /// was left out meanwhile.
    async fn read_into<C: RowConsumer>(
        &self,
        command: &ReadCommand,
        consumer: impl Fn() -> C,
    ) -> Result<C::Answer, StorageError> {
        loop {
            let store = self.readable_table(command.table.id())?;
            let _room = self.read_memory.enter(store.read_bytes()).await;
            let mut reading = Reading::begin(&self.shared, &store, command, consumer());
            let outcome = reading.go_on().await;
            if let Some(answer) = reading.end(&store, outcome)? {
                return Ok(answer);
            }
        }
    }

    /// A table here from which reads can be answered.
    ///
    /// # Errors
    /// As [`Shard::table`]; or a file of it can not be read.
    #[inline]
    pub(super) fn readable_table(&self, table: TableId) -> Result<Rc<TableStore>, StorageError> {
        let store = self.table(table)?;
        store.check_readable()?;
        Ok(store)
    }
}

/// The page as it is; a planted fault has it be the last.
pub(super) fn cut_short(shard: &Shared, mut page: ReadPage) -> ReadPage {
    if shard.runtime.plants.has(Plant::ShortRead) {
        page.next = None;
    }
    page
}

/// A read of a table failed. Under `best_effort` it is tried again without the file that is to blame.
fn read_failed(shard: &Shared, store: &Rc<TableStore>, error: StorageError) -> Result<(), StorageError> {
    let StorageError::Table(error) = error else { return Err(error) };
    shard.note_fault("read", &error);
    match store.leave_out(&error) {
        true => Ok(()),
        false => Err(error.into()),
    }
}

/// A read under way.
pub(super) struct Reading<'a, C: RowConsumer> {
    pub(super) shard: &'a Shared,
    pub(super) store: &'a TableStore,
    pub(super) command: &'a ReadCommand,
    /// Who takes the rows.
    pub(super) consumer: C,
    pub(super) progress: Progress<C::View>,
    steps: u32,
    /// What was done since it last looked whether it has been long: steps, and more for large rows.
    pub(super) work: u32,
    pub(super) piece: Piece,
}

/// How far a read has come. It goes on from here with whoever can wait for what it lacks.
pub(super) struct Progress<V: RowView> {
    /// When it began, on the node's clock.
    started: Duration,
    pub(super) chunks: Rc<HeldChunks>,
    /// Is the partition in which the page before ended still to be begun?
    is_resume_due: bool,
    /// Of keys, the index of the first that was not begun.
    next_key: usize,
    /// What was found already of the keys from there on.
    found: std::vec::IntoIter<Option<RowVersions>>,
    /// Of a range, what was not begun.
    range: Option<RingRange>,
    /// What was begun, as long as it lacks something.
    pub(super) part: Option<Part>,
    /// A large row on its way through another thread.
    pub(super) large: Option<LargeRow<V>>,
    /// How much the consumer had before the key that was begun last.
    bytes_before: usize,
    /// From how many places it held rows, chunks or cursors at once.
    place_count: usize,
    /// The largest row that it came upon.
    pub(super) row_bytes_max: usize,
}

/// What of a read was begun and lacks something. Boxed, so that a read that lacks nothing needs no room for it.
pub(super) enum Part {
    /// The only row of a partition, being looked for.
    Row(Box<RowSearch>),
    /// The same when it is large: found in a partition with that deletion.
    LargeRow(DeletionTime),
    /// Partitions from a merge of cursors.
    Partitions(Box<Partitions>),
}

/// What a read lacks, to be [provided](Reading::provide).
pub(super) enum Lack {
    /// Something of a file.
    File(FileNeed),
    /// Others are to have their turn.
    Turn,
    /// What versions of a large row make, for the merge that gave them.
    Merged(Box<RowVersions>),
    /// What is taken of the large row that the progress holds.
    LargeRow,
}

/// How far a part has come.
pub(super) enum Came {
    /// It stands in [`Progress::part`].
    Lacks(Lack),
    /// To its end.
    Over {
        /// Is the consumer full?
        is_full: bool,
    },
}

impl<'a, C: RowConsumer> Reading<'a, C> {
    pub(super) fn begin(
        shard: &'a Shared,
        store: &'a TableStore,
        command: &'a ReadCommand,
        consumer: C,
    ) -> Self {
        trace::note(|| activity(store, command));
        let chunks = Rc::new(HeldChunks::new(&shard.cache, store.metrics()));
        let progress = Progress::begin(command, shard.runtime.clock.elapsed(), chunks);
        Reading::take_up(shard, store, command, consumer, progress)
    }

    /// Goes on with a read that was left.
    pub(super) fn take_up(
        shard: &'a Shared,
        store: &'a TableStore,
        command: &'a ReadCommand,
        consumer: C,
        progress: Progress<C::View>,
    ) -> Self {
        Reading { shard, store, command, consumer, progress, steps: 0, work: 0, piece: Piece::of_turn() }
    }

    /// Reads until the consumer is full or has all.
    pub(super) async fn go_on(&mut self) -> Result<(), StorageError> {
        while let Some(lack) = self.advance()? {
            // Boxed, so that a read of one row needs no room for it.
            Box::pin(self.provide(lack)).await?;
        }
        Ok(())
    }

    /// The same of a read that was left where it lacked that.
    pub(super) async fn go_on_from(&mut self, lack: Lack) -> Result<(), StorageError> {
        self.provide(lack).await?;
        self.go_on().await
    }

    /// Reads as far as nothing is lacking. What is, or `None` when the consumer is full or has all.
    pub(super) fn advance(&mut self) -> Result<Option<Lack>, StorageError> {
        loop {
            let came = match self.progress.part.take() {
                Some(part) => self.go_on_in(part)?,
                None => match self.begin_next()? {
                    Some(came) => came,
                    None => return Ok(None),
                },
            };
            match came {
                Came::Lacks(lack) => return Ok(Some(lack)),
                Came::Over { is_full } => {
                    self.end_part();
                    if is_full {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn go_on_in(&mut self, part: Part) -> Result<Came, StorageError> {
        match part {
            Part::Row(search) => self.search(*search, self.key_begun()),
            Part::LargeRow(deletion) => self.take_large(self.key_begun(), deletion),
            Part::Partitions(partitions) => self.go_on_with(*partitions),
        }
    }

    /// Gets what it lacked.
    pub(super) async fn provide(&mut self, lack: Lack) -> Result<(), StorageError> {
        match lack {
            Lack::File(need) => self.progress.chunks.supply(need, self.shard).await?,
            Lack::Turn => {
                self.steps = 0;
                tokio::task::yield_now().await;
                self.piece = Piece::of_turn();
            }
            Lack::Merged(versions) => {
                let table = self.store.table();
                let merged = self.elsewhere(move || versions.merge(&table)).await;
                let Some(Part::Partitions(partitions)) = &mut self.progress.part else {
                    unreachable!("the merge that gave the versions waits for what they make")
                };
                partitions.put_merged(merged);
            }
            Lack::LargeRow => self.see_large().await,
        }
        Ok(())
    }

    /// Begins what comes next; `None` when there is no more.
    fn begin_next(&mut self) -> Result<Option<Came>, StorageError> {
        if std::mem::take(&mut self.progress.is_resume_due) {
            return self.rest_of_partition().map(Some);
        }
        match &self.command.target {
            ReadTarget::Keys(keys) => match &keys[self.progress.next_key..] {
                [] => Ok(None),
                keys => self.begin_key(keys).map(Some),
            },
            ReadTarget::Range(_) => match self.progress.range.take() {
                None => Ok(None),
                Some(range) => self.begin_range(range).map(Some),
            },
        }
    }

    /// Begins the first of these partitions, of which everything may have been found already.
    fn begin_key(&mut self, keys: &'a [PartitionKey]) -> Result<Came, StorageError> {
        if self.is_turn_over() {
            return Ok(Came::Lacks(Lack::Turn));
        }
        self.shard.hold_to_owned(&keys[0]);
        let has_single_rows = self.command.has_single_rows();
        // Nothing of one key, which may as well wait.
        if has_single_rows && keys.len() > 1 && self.progress.found.as_slice().is_empty() {
            self.progress.found = self.rows_at_hand(&keys[..keys.len().min(KEYS_TOGETHER)]).into_iter();
        }
        let found = self.progress.found.next().flatten();
        self.progress.next_key += 1;
        self.progress.bytes_before = self.consumer.encoded_bytes();
        match found {
            Some(versions) => self.take_found(&keys[0], versions),
            None if has_single_rows => self.begin_row(&keys[0]),
            None => self.begin_partition(&keys[0]),
        }
    }

    /// The key that was begun last.
    fn key_begun(&self) -> &'a PartitionKey {
        match &self.command.target {
            ReadTarget::Keys(keys) => &keys[self.progress.next_key - 1],
            ReadTarget::Range(_) => unreachable!("partitions of a range come from a merge"),
        }
    }

    /// Ends what was begun last.
    fn end_part(&mut self) {
        if matches!(self.command.target, ReadTarget::Keys(_)) {
            self.note_cold(self.progress.bytes_before);
            self.consumer.leave(self.key_begun());
        }
    }

    /// Begins what the partition in which the page before ended still has to give.
    fn rest_of_partition(&mut self) -> Result<Came, StorageError> {
        let nothing = Ok(Came::Over { is_full: false });
        let Some(ReadPosition { key, clustering: Some(last), row_count }) = &self.command.resume else {
            return nothing;
        };
        if !self.shard.owns(key.token) {
            return nothing;
        }
        let comparator = ClusteringComparator::new(Arc::clone(self.command.table.clustering_types()));
        let slices = self.command.slices.after(last, self.is_reversed(), &comparator);
        if slices.as_slice().is_empty() || *row_count >= self.command.limits.rows_per_partition {
            return nothing;
        }
        let cursor = self.partition_cursor(key, &slices);
        self.go_on_with(Partitions::of_key(cursor, Some(*row_count)))
    }

    fn begin_range(&mut self, mut range: RingRange) -> Result<Came, StorageError> {
        if self.command.has_single_rows() {
            match self.single_row_range(range)? {
                SingleRowsScanned::Whole => return Ok(Came::Over { is_full: true }),
                SingleRowsScanned::Turn(rest) => {
                    self.progress.range = Some(rest);
                    return Ok(Came::Lacks(Lack::Turn));
                }
                SingleRowsScanned::Rest(rest) => range = rest,
            }
        }
        let cursor = self.range_cursor(&range);
        self.go_on_with(Partitions::of_range(cursor))
    }

    /// Do partitions read backwards? Only those asked for by key can.
    pub(super) fn is_reversed(&self) -> bool {
        self.command.reversed && matches!(self.command.target, ReadTarget::Keys(_))
    }

    /// Notes how much was wanted of files, since so many bytes were taken, if that was not in memory.
    fn note_cold(&self, bytes_before: usize) {
        let bytes = (self.consumer.encoded_bytes() - bytes_before) as u64;
        if let Some(wanted) = bytes.checked_div(self.progress.chunks.take_cold()) {
            let is_range = matches!(self.command.target, ReadTarget::Range(_));
            self.store.chunk_length().note(wanted, is_range);
        }
    }

    /// Counts a step; is it time to let others on the shard go first, since it has been long already?
    pub(super) fn is_turn_over(&mut self) -> bool {
        self.steps += 1;
        self.is_to_look() && (self.steps >= STEPS_PER_TURN || self.piece.is_long())
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

    /// The answer of a read that is over. `None` when it failed and has to begin anew, with one file less each time.
    pub(super) fn end(
        self,
        store: &Rc<TableStore>,
        outcome: Result<(), StorageError>,
    ) -> Result<Option<C::Answer>, StorageError> {
        let (shard, started) = (self.shard, self.progress.started);
        store.read_bytes().learn(self.progress.place_count, self.progress.row_bytes_max);
        self.note_cold(0);
        if let Err(error) = outcome {
            return read_failed(shard, store, error).map(|()| None);
        }
        let (live_count, tombstone_count) = self.consumer.counts();
        store.metrics().note_read(started, shard.runtime.clock.elapsed(), live_count, tombstone_count);
        trace::note(|| format!("Read {live_count} live rows and {tombstone_count} tombstone cells"));
        Ok(Some(self.consumer.finish()))
    }
}

impl<V: RowView> Progress<V> {
    /// Notes that the read holds something of so many places at once.
    #[inline]
    pub(super) fn note_places(&mut self, count: usize) {
        self.place_count = self.place_count.max(count);
    }

    fn begin(command: &ReadCommand, started: Duration, chunks: Rc<HeldChunks>) -> Self {
        let mut progress = Progress {
            started,
            chunks,
            is_resume_due: false,
            next_key: 0,
            found: Vec::new().into_iter(),
            range: None,
            part: None,
            large: None,
            bytes_before: 0,
            place_count: 1,
            row_bytes_max: 0,
        };
        match &command.target {
            ReadTarget::Keys(keys) => progress.begin_keys(keys, command.resume.as_ref()),
            ReadTarget::Range(range) => progress.begin_range(range, command.resume.as_ref()),
        }
        progress
    }

    fn begin_keys(&mut self, keys: &[PartitionKey], resume: Option<&ReadPosition>) {
        let Some(resume) = resume else { return };
        let place = keys.iter().position(|key| *key == resume.key);
        self.is_resume_due = place.is_some();
        self.next_key = place.map_or(keys.len(), |place| place + 1);
    }

    fn begin_range(&mut self, range: &RingRange, resume: Option<&ReadPosition>) {
        self.range = match resume {
            Some(resume) if range.end.is_before(&resume.key) => None,
            Some(resume) if range.contains(&resume.key) => {
                self.is_resume_due = true;
                Some(range.after(resume.key.clone()))
            }
            _ => Some(range.clone()),
        };
    }
}
