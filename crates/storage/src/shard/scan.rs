//! Scans of tables whose partitions hold one row each.
//!
//! ```text
//!   memtables ── key, deletion, row where it lies ──┐
//!                                                   ├─► least key ─► its versions, merged ─► page
//!   files ────── key, deletion, row unread ─────────┘
//! ```
//!
//! A merge of cursors has a head of each source made before it knows whose turn it is, and hands every part of
//! a partition on as a step. Here a partition is one thing; the keys are held against each other where they lie,
//! and only what the page takes is read. Nothing is waited for in between: when it is time to let others on the
//! shard go first, the walk ends behind the last partition and begins there anew; when a chunk is lacking, cursors go
//! on with the rest of the page, which keep their places while they wait, and read ahead.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use manifest::{Scopes, counts};
use memtable::{SingleRow, SingleRowPartitions};
use read::{Place, RowConsumer};
use rows::{
    CellMerge, DeletionTime, LARGE_ROW_BYTES, PartitionKey, RingPlace, RingRange, Row, RowVersions, room_for,
};
use schema::Table;
use smallvec::SmallVec;
use sstable::{SingleRowScan, SingleRowScanStep};
use types::Token;

use super::fetch::HeldChunks;
use super::read::Reading;
use crate::StorageError;

/// Partitions after which a scan lets others on the shard go first.
const PARTITIONS_PER_TURN: u32 = 512;

/// Partitions for which there is room in a page before they come, at most.
const PARTITIONS_RESERVED_MAX: u32 = 128;

/// Memory for copies that is taken at a time.
const COPIED_BYTES: usize = 16 << 10;
const _: () = assert!(PARTITIONS_RESERVED_MAX <= PARTITIONS_PER_TURN, "room is made for what a turn gives");

/// How a scan of partitions of one row ended.
pub(super) enum SingleRowsScanned {
    /// The page is full, or the range is at its end.
    Whole,
    /// Something has to be waited for, or is more than a row, in what is left of the range. A merge of cursors goes
    /// on.
    Rest(RingRange),
    /// Others are to have their turn, before it goes on with what is left of the range.
    Turn(RingRange),
}

/// Why a walk ended.
enum Stop {
    PageIsFull,
    End,
    Turn,
    /// Not for a walk to tell; or a large row, for which others on the shard are to go first.
    Unusual,
}

/// Where partitions come from.
enum SingleRowSource<'m> {
    Memory(SingleRowPartitions<'m>, Option<(&'m PartitionKey, SingleRow<'m>)>),
    File(Box<SingleRowScan<Rc<HeldChunks>>>, Option<Scopes>),
}

/// A source that stands at a partition, or at its end.
struct Headed<'m> {
    source: SingleRowSource<'m>,
    /// The token of the partition; `None` at the end.
    token: Option<Token>,
}

impl<C: RowConsumer> Reading<'_, C> {
    /// Reads the partitions of a range.
    pub(super) fn single_row_range(
        &mut self,
        mut range: RingRange,
    ) -> Result<SingleRowsScanned, StorageError> {
        let (stop, last) = self.walk(&range)?;
        if let Some(last) = last {
            range.start = RingPlace::AfterKey(last);
        }
        Ok(match stop {
            Stop::PageIsFull | Stop::End => SingleRowsScanned::Whole,
            Stop::Unusual => SingleRowsScanned::Rest(range),
            Stop::Turn => SingleRowsScanned::Turn(range),
        })
    }

    /// Goes on as far as that needs no waiting; and the key behind which it ended, if it came to any.
    fn walk(&mut self, range: &RingRange) -> Result<(Stop, Option<PartitionKey>), StorageError> {
        let expected = self.consumer.room().rows;
        self.consumer.reserve(expected.min(PARTITIONS_RESERVED_MAX) as usize);
        let (frozen, active) = self.store.memtables().for_reads();
        let active = active.look();
        let memtables = frozen.iter().map(|frozen| &*frozen.memtable).chain([&*active]);
        let in_memory = memtables.map(|memtable| {
            let partitions = memtable.single_row_partitions(range, expected);
            SingleRowSource::Memory(partitions, None)
        });
        let files = self.store.files().for_reads();
        // Of memtables it holds nothing: their rows are merged where they lie.
        self.progress.note_places(files.len());
        let in_files = files.iter().map(|file| {
            let scan = file.scan_single_rows(Rc::clone(&self.progress.chunks), range);
            SingleRowSource::File(Box::new(scan), self.store.files().scopes_of(file))
        });
        let headed = |source| Headed { source, token: None };
        let mut merge = SingleRowMerge {
            table: self.store.table(),
            sources: in_memory.chain(in_files).map(headed).collect(),
            unread: SmallVec::new(),
            last: Last::None,
            copied: BytesMut::new(),
            built: Vec::new(),
        };
        merge.unread.extend(0..merge.sources.len());
        let stop = self.take_all(&mut merge)?;
        let last = match merge.last {
            Last::None => None,
            Last::Passed(key) => Some(key),
            Last::Taken => self.consumer.last_key().cloned(),
        };
        Ok((stop, last))
    }

    fn take_all(&mut self, merge: &mut SingleRowMerge<'_>) -> Result<Stop, StorageError> {
        for _ in 0..PARTITIONS_PER_TURN {
            if let Some(stop) = merge.advance()? {
                return Ok(stop);
            }
            let Some(first) = merge.least() else { return Ok(Stop::End) };
            if self.take_partition(merge, first)? {
                return Ok(Stop::PageIsFull);
            }
            if self.is_to_look() && self.piece.is_long() {
                break;
            }
        }
        Ok(Stop::Turn)
    }

    /// Gives the partition at which a source stands, and perhaps others, to the consumer; is that full by it?
    fn take_partition(&mut self, merge: &mut SingleRowMerge<'_>, first: usize) -> Result<bool, StorageError> {
        let key = merge.key_at(first);
        let is_ours = self.shard.owns(key.token);
        merge.take(&key);
        if !is_ours {
            merge.last = Last::Passed(key);
            return Ok(false);
        }
        let (deletion, merged) = merge.merged(key.token)?;
        let row = match merged {
            Some(row) => self.see(Place::Key(&key), row)?,
            None => None,
        };
        if !C::is_taken(deletion, row.as_ref()) {
            self.consumer.pass(key.clone());
            merge.last = Last::Passed(key);
            return Ok(false);
        }
        merge.last = Last::Taken;
        Ok(self.consumer.take_single_row(key, deletion, row)?)
    }
}

/// The partition that was merged last.
enum Last {
    /// There was none.
    None,
    /// This one, of which nothing was taken.
    Passed(PartitionKey),
    /// The last one that the consumer has taken.
    Taken,
}

/// Partitions of several sources in ring order.
struct SingleRowMerge<'m> {
    table: Arc<Table>,
    sources: SmallVec<[Headed<'m>; 8]>,
    /// Sources that have to go on before it is known which partition is next: those of the one taken last.
    unread: SmallVec<[usize; 8]>,
    last: Last,
    /// Memory for keys and rows of memtables: a page must not keep a memtable's own.
    copied: BytesMut,
    /// Where rows are put together.
    built: Vec<u8>,
}

impl<'m> SingleRowMerge<'m> {
    /// The key at which a source stands, for keeping.
    fn key_at(&mut self, index: usize) -> PartitionKey {
        match &mut self.sources[index].source {
            SingleRowSource::Memory(_, at) => {
                let (key, _) = at.as_ref().expect("it stands at a partition");
                let room = room_for(&mut self.copied, key.bytes.len(), COPIED_BYTES);
                room.extend_from_slice(&key.bytes);
                PartitionKey { token: key.token, bytes: room.split().freeze() }
            }
            SingleRowSource::File(scan, _) => scan.partition_key(),
        }
    }

    /// What the sources of the partition taken make: its deletion, and the row, if anything is left of it.
    fn merged(&mut self, token: Token) -> Result<(DeletionTime, Option<Row>), StorageError> {
        if self.unread.len() > 1
            && let Some(merged) = self.merged_in_place(token)
        {
            return Ok(merged);
        }
        let versions = self.versions(token)?;
        let (deletion, copied) = (versions.deletion, &mut self.copied);
        let hold = |row: Cow<'_, Row>| match row {
            Cow::Owned(row) => row,
            Cow::Borrowed(row) => row.copy_into(room_for(copied, row.as_encoded().len(), COPIED_BYTES)),
        };
        Ok((deletion, versions.merge_by(&self.table, hold)))
    }

    /// The same, put together once from cells where they lie; `None` when there are others than single ones.
    fn merged_in_place(&mut self, token: Token) -> Option<(DeletionTime, Option<Row>)> {
        let mut merge = CellMerge::default();
        for (index, headed) in self.sources.iter_mut().enumerate() {
            match &mut headed.source {
                source if !self.unread.contains(&index) || !source.counts(token) => {}
                SingleRowSource::Memory(_, Some((_, single))) => {
                    merge.add_active(single.deletion)?;
                    single.row.map_or(Some(()), |row| merge.add_encoded(row))?;
                }
                SingleRowSource::Memory(_, None) => {}
                SingleRowSource::File(scan, _) => scan.partition().merge_into(&mut merge)?,
            }
        }
        let deletion = merge.active();
        let builder = merge.build(&[], std::mem::take(&mut self.built));
        let (row, memory) = builder.finish_into(&mut self.copied, COPIED_BYTES);
        self.built = memory;
        Some((deletion, (!row.is_empty()).then_some(row)))
    }

    /// Has all sources stand at a partition or their end; or why one can not.
    fn advance(&mut self) -> Result<Option<Stop>, StorageError> {
        while let Some(index) = self.unread.last() {
            if let Some(stop) = self.sources[*index].advance()? {
                return Ok(Some(stop));
            }
            self.unread.pop();
        }
        Ok(None)
    }

    /// A source that stands at the least key.
    fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, Token)> = None;
        for (index, headed) in self.sources.iter().enumerate() {
            let Some(token) = headed.token else { continue };
            let order = least.map_or(Ordering::Less, |(index, least)| {
                // Two keys of one token are rare.
                token.cmp(&least).then_with(|| headed.key().cmp(self.sources[index].key()))
            });
            if order.is_lt() {
                least = Some((index, token));
            }
        }
        least.map(|(index, _)| index)
    }

    /// Takes the partition of that key: the sources that stand at it are to go on then.
    fn take(&mut self, key: &PartitionKey) {
        assert!(self.unread.is_empty(), "those of the partition before have gone on");
        let stands_there = |headed: &Headed<'_>| headed.token == Some(key.token) && headed.key() == key.bytes;
        let there = self.sources.iter().enumerate().filter(|(_, headed)| stands_there(headed));
        self.unread.extend(there.map(|(index, _)| index));
        assert!(!self.unread.is_empty(), "a partition is some source's");
    }

    /// What the sources of the partition taken have of it, where it lies in a memtable or as it was read.
    fn versions(&mut self, token: Token) -> Result<RowVersions<Cow<'m, Row>>, StorageError> {
        let mut versions = RowVersions::none();
        for index in &self.unread {
            match &mut self.sources[*index].source {
                source if !source.counts(token) => {}
                SingleRowSource::Memory(_, Some((_, single))) => {
                    versions.add(single.deletion, single.row.map(Cow::Borrowed));
                }
                SingleRowSource::Memory(_, None) => {}
                SingleRowSource::File(scan, _) => {
                    versions.add(scan.deletion(), scan.row()?.map(Cow::Owned));
                }
            }
        }
        Ok(versions)
    }
}

impl SingleRowSource<'_> {
    /// Does a partition of that token count here? A file may have been brought in for others.
    #[inline]
    fn counts(&self, token: Token) -> bool {
        match self {
            SingleRowSource::File(_, Some(scopes)) => counts(scopes, token),
            SingleRowSource::File(_, None) | SingleRowSource::Memory(..) => true,
        }
    }
}

impl Headed<'_> {
    /// Goes on to the next partition; or why it can not.
    fn advance(&mut self) -> Result<Option<Stop>, StorageError> {
        self.token = match &mut self.source {
            SingleRowSource::Memory(partitions, at) => {
                *at = match partitions.next() {
                    None => None,
                    Some((key, Some(single))) if !single.row.is_some_and(Row::is_large) => {
                        Some((key, single))
                    }
                    Some(_) => return Ok(Some(Stop::Unusual)),
                };
                at.as_ref().map(|(key, _)| key.token)
            }
            SingleRowSource::File(scan, _) => match scan.advance()? {
                SingleRowScanStep::Partition if scan.partition_bytes() >= LARGE_ROW_BYTES => {
                    return Ok(Some(Stop::Unusual));
                }
                SingleRowScanStep::Partition => Some(scan.token()),
                SingleRowScanStep::End => None,
                SingleRowScanStep::Unusual => return Ok(Some(Stop::Unusual)),
            },
        };
        Ok(None)
    }

    /// The key of the partition where it stands; empty at the end.
    fn key(&self) -> &[u8] {
        match &self.source {
            SingleRowSource::Memory(_, at) => at.as_ref().map_or(&[], |(key, _)| &key.bytes),
            SingleRowSource::File(scan, _) if self.token.is_some() => scan.key(),
            SingleRowSource::File(..) => &[],
        }
    }
}
