//! Reads the slices of one partition in clustering order.

use std::cmp::Ordering;

use rows::{Bound, BoundKind, DeletionTime, Marker, Slice, Slices, Unfiltered};

use super::blocks::{self, BlockSearch};
use super::chunks::{Attempt, Chunks};
use super::items::Items;
use super::{PartitionStep, Place, RowIndex, bound_form};
use crate::data::{Head, HeadKind, Layout};
use crate::row_index::Block;
use crate::{ChunkSource, Component};
use trie::PayloadIterator;

/// Where a forward reader stands between steps.
#[derive(Debug)]
pub(crate) struct Forward {
    partition: Place,
    slice: usize,
    phase: Phase,
    search: BlockSearch,
    /// The next item.
    position: u64,
    /// The range deletion in force there.
    open: DeletionTime,
    /// Is the slice that of one whole clustering?
    is_one_row: bool,
    /// Does the slice go to the partition's end?
    has_no_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before looking for the slice.
    Find,
    /// At items that may be before the slice.
    Skip,
    /// In the slice.
    Read,
    /// The slice is over.
    Over,
}

impl Forward {
    pub(crate) fn new(partition: Place) -> Self {
        let position = partition.rows_start;
        Forward {
            partition,
            slice: 0,
            phase: Phase::Find,
            search: BlockSearch::default(),
            position,
            open: DeletionTime::LIVE,
            is_one_row: false,
            has_no_end: false,
        }
    }

    /// Where the next item is.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next item within the slices.
    pub(crate) fn step<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        items: &mut Items,
        slices: &Slices,
    ) -> Attempt<PartitionStep> {
        loop {
            let Some(slice) = slices.as_slice().get(self.slice) else {
                return Ok(PartitionStep::Done { next: None });
            };
            match self.phase {
                Phase::Find => self.find(chunks, slice)?,
                Phase::Over => {
                    self.slice += 1;
                    self.phase = Phase::Find;
                }
                Phase::Skip | Phase::Read => {
                    if self.phase == Phase::Skip {
                        self.position = items.skip_rows(chunks, self.position, &slice.start)?;
                    }
                    let head = items.head(chunks, self.position, false)?;
                    if head.kind == HeadKind::End {
                        return self.end(chunks);
                    }
                    let step = match self.phase {
                        Phase::Skip => self.skip(chunks, items, slice, &head)?,
                        _ => self.read(chunks, items, slice, &head)?,
                    };
                    if let Some(item) = step {
                        return Ok(PartitionStep::Item(item));
                    }
                }
            }
        }
    }

    fn end<S: ChunkSource>(&mut self, chunks: &Chunks<S>) -> Attempt<PartitionStep> {
        if !self.open.is_live() {
            let what = "a partition ends with a range deletion open";
            return Err(chunks.file().damaged(Component::Data, self.position, what).into());
        }
        Ok(PartitionStep::Done { next: Some(self.position + 1) })
    }

    /// Goes to the block where the slice begins, if that is ahead.
    fn find<S: ChunkSource>(&mut self, chunks: &mut Chunks<S>, slice: &Slice) -> Attempt<()> {
        self.has_no_end = slice.end == Bound::TOP;
        self.is_one_row = is_one_row(chunks.file().layout(), slice);
        if slice.start.prefix.is_empty() {
            self.phase = if slice.start == Bound::BOTTOM { Phase::Read } else { Phase::Skip };
            return Ok(());
        }
        if let RowIndex::Blocks(blocks) = self.partition.rows {
            let before = |block: &crate::big::BlockInfo, layout: &Layout| {
                block.last.compare(layout, &slice.start).is_lt()
            };
            let index = self.search.count_before(chunks, &blocks, before)?.min(blocks.count - 1);
            let (position, open) = blocks::start(chunks, &self.partition, &blocks, index)?;
            self.search = BlockSearch::default();
            if position > self.position {
                (self.position, self.open) = (position, open);
            }
        }
        if let RowIndex::Trie(root) = self.partition.rows {
            let form = bound_form(chunks.file().layout(), &slice.start);
            let mut pages = chunks.trie(Component::Rows);
            let floor = PayloadIterator::reversed(&mut pages, root, &form)?.next(&mut pages)?;
            if let Some(payload) = floor {
                let block = Block::read(&payload).ok_or_else(|| {
                    chunks.file().damaged(Component::Rows, payload.position, "payload of a block of rows")
                })?;
                let position = self.partition.start.saturating_add(block.offset);
                if position > self.position {
                    self.position = position;
                    self.open = block.open;
                }
            }
        }
        self.phase = Phase::Skip;
        Ok(())
    }

    /// Passes an item before the slice, or notices that the slice has begun.
    fn skip<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        items: &mut Items,
        slice: &Slice,
        head: &Head,
    ) -> Attempt<Option<Unfiltered>> {
        if compare(items, head, &slice.start).is_gt() {
            self.phase = Phase::Read;
            let opened = !self.open.is_live();
            return Ok(opened.then(|| Unfiltered::Marker(Marker::at(&slice.start, self.open))));
        }
        if let HeadKind::Marker(kind) = head.kind {
            self.open = items.marker(chunks, self.position, head, kind)?.right;
        }
        self.position += head.item_bytes;
        Ok(None)
    }

    /// Reads an item of the slice, or notices that the slice is over.
    fn read<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        items: &mut Items,
        slice: &Slice,
        head: &Head,
    ) -> Attempt<Option<Unfiltered>> {
        let is_beyond = !self.has_no_end && compare(items, head, &slice.end).is_ge();
        if is_beyond {
            self.phase = Phase::Over;
            let closed = !self.open.is_live();
            return Ok(closed.then(|| Unfiltered::Marker(Marker::at(&slice.end, self.open))));
        }
        let item = items.item(chunks, self.position, head, &mut self.open)?;
        self.position += head.item_bytes;
        // The last row there can be: what follows need not be fetched to know that.
        if self.is_one_row && head.kind == HeadKind::Row && self.open.is_live() {
            self.phase = Phase::Over;
        }
        Ok(item)
    }
}

/// Where an item stands to a bound. Markers at the very place are equal.
pub(super) fn compare(items: &Items, head: &Head, bound: &Bound) -> Ordering {
    let layout = items.layout();
    let encoded = items.decoder.clustering();
    match head.kind {
        HeadKind::Row => layout.comparator.compare_encoded_to_bound(encoded, bound),
        HeadKind::End => Ordering::Greater,
        HeadKind::Marker(_) => match items.decoder.marker_place(head) {
            Some(place) => layout.comparator.compare_bounds(&place, bound),
            None => Ordering::Greater,
        },
    }
}

/// Is the slice that of one whole clustering?
fn is_one_row(layout: &Layout, slice: &Slice) -> bool {
    !layout.clustering.is_empty()
        && slice.start.kind == BoundKind::InclusiveStart
        && slice.end.kind == BoundKind::InclusiveEnd
        && slice.start.prefix == slice.end.prefix
        && slice.start.prefix.components().count() == layout.clustering.len()
}
