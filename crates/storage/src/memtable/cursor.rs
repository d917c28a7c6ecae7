//! Reads a memtable step by step while writes to it go on.
//!
//! The cursor holds no borrow between steps: it remembers the last row it gave and seeks from
//! there, a batch of rows at a time. A write that lands ahead of it is seen, one behind it is not; the
//! first batch is taken together with the partition's header, so that of a partition that fits into
//! one a write is seen whole or not at all.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Bound as RangeBound;
use std::rc::Rc;

use rows::{
    Bound, ClusteringComparator, Marker, PartitionKey, Row, Slices, Step, Unfiltered, UnfilteredCursor,
};
use types::Token;

use super::partition::{OrderKey, bound_key, is_before, row_key};
use super::{Memtable, MemtableSlot};

/// Rows taken out in one go.
const BATCH_ROWS: usize = 64;

/// Which partitions to read.
#[derive(Clone, Debug)]
pub(crate) enum MemtableTarget {
    /// One.
    Key(PartitionKey),
    /// All from a token, or after a key, up to a token.
    Range { from: Token, after: Option<PartitionKey>, last: Token },
}

pub(crate) struct MemtableCursor {
    slot: Rc<MemtableSlot>,
    target: Option<MemtableTarget>,
    slices: Slices,
    reversed: bool,
    partition: Option<InPartition>,
}

/// Where the cursor is in a partition.
struct InPartition {
    key: PartitionKey,
    /// Slices yet to read, in reading order.
    slice_indexes: VecDeque<usize>,
    slice: Option<InSlice>,
}

struct InSlice {
    low: RangeBound<OrderKey>,
    high: RangeBound<OrderKey>,
    rows: VecDeque<Row>,
    rows_are_over: bool,
    /// In reading order.
    markers: VecDeque<Marker>,
}

impl MemtableCursor {
    pub(crate) fn new(
        slot: Rc<MemtableSlot>,
        target: MemtableTarget,
        slices: Slices,
        reversed: bool,
    ) -> Self {
        MemtableCursor { slot, target: Some(target), slices, reversed, partition: None }
    }

    /// The next header, or `End`.
    fn next_partition(&mut self) -> Step<Infallible> {
        let Some(target) = self.target.take() else { return Step::End };
        let header = self.slot.with(|memtable| match &target {
            MemtableTarget::Key(key) => memtable.partition(key).map(|partition| partition.header(key)),
            MemtableTarget::Range { from, after, last } => {
                // The empty key sorts first among those of its token.
                let first = PartitionKey { token: *from, bytes: bytes::Bytes::new() };
                let start = after.as_ref().map_or(RangeBound::Included(&first), RangeBound::Excluded);
                memtable.first_within(start, *last).map(|(key, partition)| partition.header(key))
            }
        });
        let Some(header) = header else { return Step::End };
        if let MemtableTarget::Range { from, last, .. } = target {
            self.target = Some(MemtableTarget::Range { from, after: Some(header.key.clone()), last });
        }
        let count = self.slices.as_slice().len();
        let slice_indexes = if self.reversed { (0..count).rev().collect() } else { (0..count).collect() };
        let mut partition = InPartition { key: header.key.clone(), slice_indexes, slice: None };
        self.slot.with(|memtable| partition.open_slice(memtable, &self.slices, self.reversed));
        self.partition = Some(partition);
        Step::Header(header)
    }
}

impl InPartition {
    /// The next row or marker; `None` when the partition is over.
    fn next(&mut self, memtable: &Memtable, slices: &Slices, reversed: bool) -> Option<Unfiltered> {
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
        let mut slice = InSlice::open(memtable, &self.key, slices, index, reversed);
        slice.fill(memtable, &self.key, reversed);
        self.slice = Some(slice);
        true
    }
}

impl InSlice {
    fn open(memtable: &Memtable, key: &PartitionKey, slices: &Slices, index: usize, reversed: bool) -> Self {
        let slice = &slices.as_slice()[index];
        let comparator = memtable.comparator();
        let mut markers: VecDeque<Marker> = memtable
            .partition(key)
            .map_or_else(Vec::new, |partition| partition.markers(slice, comparator))
            .into();
        if reversed {
            markers.make_contiguous().reverse();
        }
        InSlice {
            low: range_bound(&slice.start, comparator),
            high: range_bound(&slice.end, comparator),
            rows: VecDeque::new(),
            rows_are_over: false,
            markers,
        }
    }

    fn next(&mut self, memtable: &Memtable, key: &PartitionKey, reversed: bool) -> Option<Unfiltered> {
        if self.rows.is_empty() && !self.rows_are_over {
            self.fill(memtable, key, reversed);
        }
        let row_is_next = match (self.rows.front(), self.markers.front()) {
            (Some(row), Some(marker)) => is_before(row, marker, memtable.comparator()) != reversed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        match row_is_next {
            true => self.rows.pop_front().map(Unfiltered::Row),
            false => self.markers.pop_front().map(Unfiltered::Marker),
        }
    }

    fn fill(&mut self, memtable: &Memtable, key: &PartitionKey, reversed: bool) {
        let between = (as_slice(&self.low), as_slice(&self.high));
        let rows = memtable
            .partition(key)
            .map_or_else(Vec::new, |partition| partition.rows_between(between, reversed, BATCH_ROWS));
        self.rows_are_over = rows.len() < BATCH_ROWS;
        if let Some(last) = rows.last().filter(|_| !self.rows_are_over) {
            let edge = RangeBound::Excluded(row_key(last, memtable.comparator()));
            if reversed {
                self.high = edge;
            } else {
                self.low = edge;
            }
        }
        self.rows = rows.into();
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

    fn step(&mut self) -> Result<Step<Infallible>, Infallible> {
        if let Some(partition) = &mut self.partition {
            let item = self.slot.with(|memtable| partition.next(memtable, &self.slices, self.reversed));
            if let Some(item) = item {
                return Ok(Step::Item(item));
            }
            self.partition = None;
        }
        Ok(self.next_partition())
    }
}
