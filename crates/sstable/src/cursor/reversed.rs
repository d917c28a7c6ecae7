//! Reads the slices of one partition against the clustering order.
//!
//! Items can only be parsed forward, so a block of the row index (or the whole of a partition
//! without one) is read forward and kept, then handed out from its end; then the block before it.
//! Markers tell both sides of their place, so they need not be turned around.

use rows::{Bound, DeletionTime, Marker, Slice, Slices, Unfiltered};

use super::blocks::{self, BlockSearch};
use super::chunks::{Attempt, Chunks};
use super::forward::compare;
use super::items::Items;
use super::{PartitionStep, Place, RowIndex, bound_form};
use crate::big::Blocks;
use crate::data::{HeadKind, Layout};
use crate::row_index::Block;
use crate::{ChunkSource, Component};
use trie::PayloadIterator;

/// Where a reversed reader stands between steps.
#[derive(Debug)]
pub(crate) struct Reversed {
    partition: Place,
    /// Slices still to be read: those before this index.
    slice: usize,
    phase: Phase,
    /// Blocks from the end of the slice towards its start.
    blocks: BlocksBackward,
    search: BlockSearch,
    /// The block being read or handed out.
    block: BlockState,
    /// Its items in the slice, the next to hand out last.
    items: Vec<Unfiltered>,
}

/// Blocks of a partition, from the last to the first.
#[derive(Debug)]
enum BlocksBackward {
    /// The whole partition is one.
    One,
    Trie(PayloadIterator),
    /// Those before that number.
    Big(Blocks, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Find,
    NextBlock,
    Read,
    HandOut,
}

#[derive(Clone, Copy, Debug)]
struct BlockState {
    start: u64,
    position: u64,
    /// Items from here on are of the block behind, read already.
    stop: u64,
    open: DeletionTime,
    /// Was there anything before the slice in it?
    found_less: bool,
    /// Deletion in force at the start of the slice, as far as is known.
    open_at_start: DeletionTime,
    /// Has the slice begun?
    is_in: bool,
}

impl Reversed {
    pub(crate) fn new(partition: Place, slices: &Slices) -> Self {
        let block = BlockState {
            start: u64::MAX,
            position: 0,
            stop: u64::MAX,
            open: DeletionTime::LIVE,
            found_less: false,
            open_at_start: DeletionTime::LIVE,
            is_in: false,
        };
        let slice = slices.as_slice().len();
        let (blocks, search) = (BlocksBackward::One, BlockSearch::default());
        Reversed { partition, slice, phase: Phase::Find, blocks, search, block, items: Vec::new() }
    }

    /// The next item within the slices.
    pub(crate) fn step<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        items: &mut Items,
        slices: &Slices,
    ) -> Attempt<PartitionStep> {
        loop {
            let Some(slice) = self.slice.checked_sub(1).and_then(|index| slices.as_slice().get(index)) else {
                return Ok(PartitionStep::Done { next: None });
            };
            match self.phase {
                Phase::Find => {
                    self.blocks = match self.partition.rows {
                        RowIndex::None => BlocksBackward::One,
                        RowIndex::Trie(root) => {
                            let form = bound_form(chunks.file().layout(), &slice.end);
                            let mut pages = chunks.trie(Component::Rows);
                            BlocksBackward::Trie(PayloadIterator::reversed(&mut pages, root, &form)?)
                        }
                        RowIndex::Blocks(blocks) => {
                            let before = |block: &crate::big::BlockInfo, layout: &Layout| {
                                block.first.compare(layout, &slice.end).is_lt()
                            };
                            let count = self.search.count_before(chunks, &blocks, before)?;
                            self.search = BlockSearch::default();
                            BlocksBackward::Big(blocks, count.max(1))
                        }
                    };
                    self.block.start = u64::MAX;
                    self.block.found_less = false;
                    self.block.open_at_start = DeletionTime::LIVE;
                    self.phase = Phase::NextBlock;
                }
                Phase::NextBlock => {
                    if let Some(marker) = self.next_block(chunks, slice)? {
                        return Ok(PartitionStep::Item(Unfiltered::Marker(marker)));
                    }
                }
                Phase::Read => self.read(chunks, items, slice)?,
                Phase::HandOut => match self.items.pop() {
                    Some(item) => return Ok(PartitionStep::Item(item)),
                    None => self.phase = Phase::NextBlock,
                },
            }
        }
    }

    /// Begins the block before the last; or ends the slice, when there is none, with the marker of
    /// what is in force at its start.
    fn next_block<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        slice: &Slice,
    ) -> Attempt<Option<Marker>> {
        let is_first = self.block.start == u64::MAX;
        let next = match (&mut self.blocks, self.block.found_less) {
            (_, true) => None,
            (BlocksBackward::One, false) => {
                is_first.then_some((self.partition.rows_start, DeletionTime::LIVE))
            }
            (BlocksBackward::Big(_, 0), false) => None,
            (BlocksBackward::Big(blocks, left), false) => {
                let next = blocks::start(chunks, &self.partition, blocks, *left - 1)?;
                if next.0 >= self.block.start {
                    let what = "blocks of rows are not in order";
                    return Err(chunks.file().damaged(Component::Index, 0, what).into());
                }
                *left -= 1;
                Some(next)
            }
            (BlocksBackward::Trie(blocks), false) => {
                let payload = blocks.next(&mut chunks.trie(Component::Rows))?;
                payload.map(|payload| self.block_at(chunks, &payload)).transpose()?
            }
        };
        let Some((start, open)) = next else {
            self.slice -= 1;
            self.phase = Phase::Find;
            let open = self.block.open_at_start;
            return Ok((!open.is_live()).then(|| Marker::at(&slice.start, open)));
        };
        let stop = self.block.start;
        self.block = BlockState {
            start,
            position: start,
            stop,
            open,
            found_less: false,
            open_at_start: open,
            is_in: false,
        };
        self.phase = Phase::Read;
        Ok(None)
    }

    fn block_at<S: ChunkSource>(
        &self,
        chunks: &Chunks<S>,
        payload: &trie::Payloads,
    ) -> Attempt<(u64, DeletionTime)> {
        let damaged = |what| chunks.file().damaged(Component::Rows, payload.position, what);
        let block = Block::read(payload).ok_or_else(|| damaged("payload of a block of rows"))?;
        let start = self.partition.start.saturating_add(block.offset);
        if start >= self.block.start {
            return Err(damaged("blocks of rows are not in order").into());
        }
        Ok((start, block.open))
    }

    /// Reads the block's items within the slice.
    fn read<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        items: &mut Items,
        slice: &Slice,
    ) -> Attempt<()> {
        while self.block.position < self.block.stop {
            if slice.start != Bound::BOTTOM && !self.block.is_in {
                let position = items.skip_rows(chunks, self.block.position, &slice.start)?;
                if position > self.block.position {
                    self.block.found_less = true;
                    self.block.open_at_start = self.block.open;
                    self.block.position = position;
                    // The block behind this one may have been reached.
                    continue;
                }
            }
            let head = items.head(chunks, self.block.position, false)?;
            let starts_later = slice.start != Bound::BOTTOM && !self.block.is_in;
            if head.kind == HeadKind::End {
                break;
            }
            if starts_later && compare(items, &head, &slice.start).is_le() {
                if let HeadKind::Marker(kind) = head.kind {
                    self.block.open = items.marker(chunks, self.block.position, &head, kind)?.right;
                }
                self.block.found_less = true;
                self.block.open_at_start = self.block.open;
                self.block.position += head.item_bytes;
                continue;
            }
            self.block.is_in = true;
            if slice.end != Bound::TOP && compare(items, &head, &slice.end).is_ge() {
                if !self.block.open.is_live() {
                    self.items.push(Unfiltered::Marker(Marker::at(&slice.end, self.block.open)));
                }
                break;
            }
            let mut open = self.block.open;
            let item = items.item(chunks, self.block.position, &head, &mut open)?;
            self.block.open = open;
            self.items.extend(item);
            self.block.position += head.item_bytes;
        }
        self.phase = Phase::HandOut;
        Ok(())
    }
}
