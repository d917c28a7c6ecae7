//! Reads a memtable step by step while writes to it go on.
//!
//! The cursor holds no borrow between steps: it remembers the last row it gave and seeks from
//! there, a batch of rows and of range tombstones at a time. A write that lands ahead of it is seen, one behind it is
//! not; the first batch is taken together with the partition's header, so that of a partition that fits into
//! one a write is seen whole or not at all. Of a range, partitions of one row are taken many at a time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Bound as RangeBound;
use std::rc::Rc;

use bytes::Bytes;
use rows::{
    Bound, ClusteringComparator, DeletionTime, GATHERED_ROW_BYTES_MAX, Marker, PartitionHeader, PartitionKey,
    RingRange, Row, Slice, Slices, Step, Unfiltered, UnfilteredCursor,
};
use stdx::prefetch::prefetch;

use super::partition::{Batch, MemoryPartition, OrderKey, bound_key, is_before, row_key};
use super::{Memtable, MemtableSlot};

/// Rows of a partition taken out in one go: that many, and more when they are small and wanted. Those that are copied
/// are then no more than a batch.
const LEAST_ROWS: usize = BATCH_BYTES / GATHERED_ROW_BYTES_MAX;
const MOST_ROWS: usize = 256;
/// Range tombstones of a partition taken out in one go.
const RANGES_AT_ONCE: usize = 128;
/// A batch of more rows or partitions ends when it holds so much.
const BATCH_BYTES: usize = 64 << 10;
/// Partitions taken beyond those that were expected to do.
const FURTHER_PARTITIONS: usize = 8;

/// Which partitions to read.
#[derive(Clone, Debug)]
pub enum MemtableTarget {
    /// One.
    Key(PartitionKey),
    /// All of a part of the ring.
    Range(RingRange),
}

/// Partitions of a memtable with their rows and markers, as [`UnfilteredCursor`] gives them.
pub struct MemtableCursor {
    slot: Rc<MemtableSlot>,
    target: Option<MemtableTarget>,
    slices: Slices,
    reversed: bool,
    partition: Option<InPartition>,
    /// Partitions of at most one row, each with its row, taken ahead.
    taken: std::vec::IntoIter<(PartitionHeader, Option<Row>)>,
    /// The row of the partition whose header was given last.
    row: Option<Row>,
    /// How many rows the reader is likely to take still.
    expected: usize,
    /// Is the next step another version of the row that was given last?
    has_more_versions: bool,
}

/// Where the cursor is in a partition.
struct InPartition {
    key: PartitionKey,
    /// How many rows the reader is likely to take.
    expected: usize,
    /// Slices yet to read, in reading order.
    slice_indexes: VecDeque<usize>,
    slice: Option<InSlice>,
}

struct InSlice {
    low: RangeBound<OrderKey>,
    high: RangeBound<OrderKey>,
    rows: VecDeque<Version>,
    rows_are_over: bool,
    /// How many rows the reader is likely to take still.
    expected: usize,
    /// In reading order.
    markers: VecDeque<Marker>,
    /// Where there are more, if anywhere.
    markers_left: Option<Slice>,
}

/// A row, or one of its versions.
struct Version {
    row: Row,
    /// Is another one of the same row next?
    has_more: bool,
}

impl MemtableCursor {
    /// A cursor over those slices of each partition, backwards within a partition if `reversed`. So many rows are
    /// `expected` to be taken.
    pub fn new(
        slot: Rc<MemtableSlot>,
        target: MemtableTarget,
        slices: Slices,
        reversed: bool,
        expected: u32,
    ) -> Self {
        MemtableCursor {
            slot,
            target: Some(target),
            slices,
            reversed,
            partition: None,
            taken: Vec::new().into_iter(),
            row: None,
            expected: expected as usize,
            has_more_versions: false,
        }
    }

    /// The next header, or `End`.
    fn next_partition(&mut self) -> Step<Infallible> {
        if let Some((header, row)) = self.taken.next() {
            self.row = row;
            return Step::Header(header);
        }
        let slot = Rc::clone(&self.slot);
        let header = slot.with(|memtable| match self.target.take()? {
            MemtableTarget::Key(key) => {
                let partition = memtable.partition(&key)?;
                Some(self.enter(memtable, partition.header(&key)))
            }
            MemtableTarget::Range(range) => self.next_in_range(memtable, range),
        });
        header.map_or(Step::End, Step::Header)
    }

    fn next_in_range(&mut self, memtable: &Memtable, range: RingRange) -> Option<PartitionHeader> {
        let within = || memtable.behind(&range.start).take_while(|(key, _)| !range.end.is_before(key));
        let mut partitions = within();
        if self.slices.is_all() {
            let taken = take_small(&mut partitions, self.expected.clamp(FURTHER_PARTITIONS, MOST_ROWS));
            if let Some(key) = taken.last().map(|(header, _)| header.key.clone()) {
                self.expected = self.expected.saturating_sub(taken.len());
                self.target = Some(MemtableTarget::Range(range.after(key)));
                self.taken = taken.into_iter();
                let (header, row) = self.taken.next()?;
                self.row = row;
                return Some(header);
            }
            partitions = within();
        }
        let (key, partition) = partitions.next()?;
        let header = self.enter(memtable, partition.header(key));
        self.target = Some(MemtableTarget::Range(range.after(header.key.clone())));
        Some(header)
    }

    /// Begins a partition that is read slice by slice.
    fn enter(&mut self, memtable: &Memtable, header: PartitionHeader) -> PartitionHeader {
        let count = self.slices.as_slice().len();
        let slice_indexes = if self.reversed { (0..count).rev().collect() } else { (0..count).collect() };
        let mut partition =
            InPartition { key: header.key.clone(), expected: self.expected, slice_indexes, slice: None };
        partition.open_slice(memtable, &self.slices, self.reversed);
        self.partition = Some(partition);
        header
    }
}

/// Copies partitions of at most one row until there is one of more.
fn take_small<'a>(
    partitions: &mut impl Iterator<Item = (&'a PartitionKey, &'a MemoryPartition)>,
    count: usize,
) -> Vec<(PartitionHeader, Option<Row>)> {
    let mut found = Vec::with_capacity(count);
    let (mut key_bytes, mut row_bytes) = (0, 0);
    for (key, partition) in partitions {
        let Some(row) = partition.at_most_one_row() else { break };
        prefetch(&key.bytes);
        key_bytes += key.bytes.len();
        if let Some(row) = row {
            prefetch(row.as_encoded());
            row_bytes += row.as_encoded().len();
        }
        found.push((key, partition.deletion(), row));
        if found.len() == count || key_bytes + row_bytes >= BATCH_BYTES {
            break;
        }
    }
    let mut keys = Vec::with_capacity(key_bytes);
    found.iter().for_each(|(key, ..)| keys.extend_from_slice(&key.bytes));
    let keys = Bytes::from(keys);
    let row_references: Vec<&Row> = found.iter().filter_map(|(.., row)| *row).collect();
    let mut rows = Row::gather(&row_references).into_iter();
    let mut start = 0;
    let owned = |(key, deletion, row): (&PartitionKey, DeletionTime, Option<&Row>)| {
        let end = start + key.bytes.len();
        let bytes = keys.slice(std::mem::replace(&mut start, end)..end);
        let key = PartitionKey { token: key.token, bytes };
        (PartitionHeader { key, deletion, static_row: None }, row.and_then(|_| rows.next()))
    };
    found.into_iter().map(owned).collect()
}

impl InPartition {
    /// The next row or marker, and whether more versions of it follow; `None` when the partition is over.
    fn next(&mut self, memtable: &Memtable, slices: &Slices, reversed: bool) -> Option<(Unfiltered, bool)> {
        loop {
            if self.slice.is_none() && !self.open_slice(memtable, slices, reversed) {
                return None;
            }
            if let Some(slice) = &mut self.slice {
                match slice.next(memtable, &self.key, reversed) {
                    Some(item) => return Some(item),
                    None => self.slice = None,
                }
            }
        }
    }

    /// Goes on to the next slice and takes its first batch; was there one?
    fn open_slice(&mut self, memtable: &Memtable, slices: &Slices, reversed: bool) -> bool {
        let Some(index) = self.slice_indexes.pop_front() else { return false };
        let mut slice = InSlice::open(memtable, self, slices, index, reversed);
        slice.fill(memtable, &self.key, reversed);
        self.slice = Some(slice);
        true
    }
}

impl InSlice {
    fn open(
        memtable: &Memtable,
        partition: &InPartition,
        slices: &Slices,
        index: usize,
        reversed: bool,
    ) -> Self {
        let slice = &slices.as_slice()[index];
        let comparator = memtable.comparator();
        let mut opened = InSlice {
            low: range_bound(&slice.start, comparator),
            high: range_bound(&slice.end, comparator),
            rows: VecDeque::new(),
            rows_are_over: false,
            expected: partition.expected,
            markers: VecDeque::new(),
            markers_left: Some(slice.clone()),
        };
        opened.take_markers(memtable, &partition.key, reversed);
        opened
    }

    /// Takes markers until there are some or no more.
    fn take_markers(&mut self, memtable: &Memtable, key: &PartitionKey, reversed: bool) {
        while self.markers.is_empty()
            && let Some(left) = self.markers_left.take()
        {
            let Some(ranges) = memtable.partition(key).and_then(MemoryPartition::ranges) else { return };
            let some = ranges.some_markers(&left, reversed, RANGES_AT_ONCE, memtable.comparator());
            (self.markers, self.markers_left) = (some.0.into(), some.1);
        }
    }

    fn next(
        &mut self,
        memtable: &Memtable,
        key: &PartitionKey,
        reversed: bool,
    ) -> Option<(Unfiltered, bool)> {
        if self.markers_left.is_some() {
            self.take_markers(memtable, key, reversed);
        }
        if self.rows.is_empty() && !self.rows_are_over {
            self.fill(memtable, key, reversed);
        }
        let row_is_next = match (self.rows.front(), self.markers.front()) {
            (Some(version), Some(marker)) => {
                is_before(&version.row, marker, memtable.comparator()) != reversed
            }
            (Some(_), None) => true,
            (None, _) => false,
        };
        match row_is_next {
            true => self.rows.pop_front().map(|version| (Unfiltered::Row(version.row), version.has_more)),
            false => self.markers.pop_front().map(|marker| (Unfiltered::Marker(marker), false)),
        }
    }

    fn fill(&mut self, memtable: &Memtable, key: &PartitionKey, reversed: bool) {
        let between = (as_slice(&self.low), as_slice(&self.high));
        let batch = Batch {
            least_rows: LEAST_ROWS,
            most_rows: self.expected.clamp(LEAST_ROWS, MOST_ROWS),
            bytes: BATCH_BYTES,
        };
        let Some(partition) = memtable.partition(key) else {
            self.rows_are_over = true;
            return;
        };
        let (rows, is_all) = partition.rows_between(between, reversed, batch);
        self.expected = self.expected.saturating_sub(rows.len());
        self.rows_are_over = is_all;
        if let Some(last) = rows.last().filter(|_| !self.rows_are_over) {
            let edge = RangeBound::Excluded(row_key(last, memtable.comparator()));
            if reversed {
                self.high = edge;
            } else {
                self.low = edge;
            }
        }
        self.rows.reserve(rows.len());
        for row in rows {
            let others = partition.versions(&row, memtable.comparator());
            self.rows.push_back(Version { row, has_more: !others.is_empty() });
            let left = (0..others.len()).rev();
            let versions = others.iter().zip(left);
            self.rows.extend(versions.map(|(row, left)| Version { row: row.clone(), has_more: left > 0 }));
        }
    }
}

fn range_bound(bound: &Bound, comparator: &ClusteringComparator) -> RangeBound<OrderKey> {
    match bound.prefix.is_empty() {
        true => RangeBound::Unbounded,
        false => RangeBound::Included(bound_key(bound, comparator)),
    }
}

fn as_slice(bound: &RangeBound<OrderKey>) -> RangeBound<&[u8]> {
    match bound {
        RangeBound::Included(key) => RangeBound::Included(key),
        RangeBound::Excluded(key) => RangeBound::Excluded(key),
        RangeBound::Unbounded => RangeBound::Unbounded,
    }
}

impl UnfilteredCursor for MemtableCursor {
    type Need = Infallible;
    type Error = Infallible;

    #[inline]
    fn has_more_versions(&self) -> bool {
        self.has_more_versions
    }

    #[inline]
    fn step(&mut self) -> Result<Step<Infallible>, Infallible> {
        if let Some(row) = self.row.take() {
            return Ok(Step::Item(Unfiltered::Row(row)));
        }
        if let Some(partition) = &mut self.partition {
            let item = self.slot.with(|memtable| partition.next(memtable, &self.slices, self.reversed));
            if let Some((item, has_more_versions)) = item {
                self.has_more_versions = has_more_versions;
                return Ok(Step::Item(item));
            }
            self.partition = None;
        }
        Ok(self.next_partition())
    }
}
