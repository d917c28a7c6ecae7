//! Finds blocks of rows in the index of a file of the format `big`.

use std::sync::Arc;

use rows::DeletionTime;
use stdx::cursor::Cursor;

use super::Place;
use super::chunks::{Attempt, Chunks};
use crate::big::{BlockInfo, Blocks};
use crate::data::Layout;
use crate::{ChunkSource, Component};

/// A search by halves that goes on where it was interrupted.
#[derive(Debug, Default)]
pub(super) struct BlockSearch(Option<(u32, u32)>);

impl BlockSearch {
    /// How many blocks come before the first that is not `before`. Keeps what it found, so that a
    /// caller that is interrupted later asks again for nothing.
    pub(super) fn count_before<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        blocks: &Blocks,
        is_before: impl Fn(&BlockInfo, &Layout) -> bool,
    ) -> Attempt<u32> {
        let (mut low, mut high) = self.0.unwrap_or((0, blocks.count));
        let file = Arc::clone(chunks.file());
        while low < high {
            let middle = low + (high - low) / 2;
            self.0 = Some((low, high));
            let block = block(chunks, blocks, middle)?;
            if is_before(&block, file.layout()) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.0 = Some((low, high));
        Ok(low)
    }
}

/// Where a block's rows begin in Data, and the range deletion open there.
pub(super) fn start<S: ChunkSource>(
    chunks: &mut Chunks<S>,
    partition: &Place,
    blocks: &Blocks,
    index: u32,
) -> Attempt<(u64, DeletionTime)> {
    let Some(before) = index.checked_sub(1) else {
        return Ok((partition.rows_start, DeletionTime::LIVE));
    };
    let open = block(chunks, blocks, before)?.open_at_end;
    let offset = block(chunks, blocks, index)?.offset;
    Ok((partition.start.saturating_add(offset), open))
}

fn block<S: ChunkSource>(chunks: &mut Chunks<S>, blocks: &Blocks, index: u32) -> Attempt<BlockInfo> {
    let file = Arc::clone(chunks.file());
    let offset_place = blocks.offset_place(index);
    let offset = chunks.parse(Component::Index, offset_place, |bytes| Ok(Cursor::new(bytes).u32()?))?;
    let place = blocks.place(offset).ok_or_else(|| {
        file.damaged(Component::Index, offset_place, "a block is not among those of its partition")
    })?;
    let (version, layout) = (file.descriptor().version, file.layout());
    chunks.parse(Component::Index, place, |bytes| BlockInfo::read(version, layout, bytes))
}
