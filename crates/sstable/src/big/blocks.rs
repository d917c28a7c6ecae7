//! Blocks of rows of a large partition, in its entry of Index.db.
//!
//! ```text
//!   vint bytes before the first row | deletion of the partition | vint block count
//!   | blocks | u32 offset of each block, from the first
//!   block: first and last place | vint place in the partition | signed vint bytes - 64 Ki
//!          | u8 [the range deletion open at its end]
//!   place: u8 kind | values of a row, or u16 count and values of a marker
//! ```

use std::cmp::Ordering;

use rows::{Bound, BoundKind, Clustering, DeletionTime};
use stdx::cursor::Cursor;

use crate::Version;
use crate::data::{Layout, ParseError, marker_sides, read_components, read_deletion_of};

/// The kind of a place that is a row's.
const ROW: u8 = 4;

/// Where the blocks of a partition are in Index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    start: u64,
    offsets: u64,
    pub(crate) count: u32,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockInfo {
    pub(crate) first: BlockEdge,
    pub(crate) last: BlockEdge,
    /// From the start of the partition.
    pub(crate) offset: u64,
    /// The range deletion open at its end, or live.
    pub(crate) open_at_end: DeletionTime,
}

/// The first or last item of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockEdge {
    kind: u8,
    /// In the form of [`Clustering`].
    prefix: Vec<u8>,
}

impl Blocks {
    /// Reads the head of the blocks, which lie at `position` and take `block_bytes`.
    pub(crate) fn read(
        version: Version,
        bytes: &[u8],
        position: u64,
        block_bytes: u64,
    ) -> Result<Self, ParseError> {
        let mut input = Cursor::new(bytes);
        input.vint()?;
        read_deletion_of(version, &mut input)?.ok_or(ParseError::Malformed("deletion of a partition"))?;
        let count = input.vint()?;
        let head_bytes = input.position() as u64;
        let offsets = count.checked_mul(4).and_then(|bytes| block_bytes.checked_sub(bytes));
        match (offsets, u32::try_from(count)) {
            (Some(offsets), Ok(count)) if count > 0 && offsets >= head_bytes => {
                let place = |offset: u64| position.checked_add(offset);
                let (start, offsets) = (place(head_bytes), place(offsets));
                let (Some(start), Some(offsets)) = (start, offsets) else {
                    return Err(ParseError::Malformed("place of the blocks of a partition"));
                };
                Ok(Blocks { start, offsets, count })
            }
            _ => Err(ParseError::Malformed("blocks of a partition are not as many as their bytes")),
        }
    }

    /// Where the offset of a block is.
    pub(crate) fn offset_place(&self, index: u32) -> u64 {
        self.offsets.saturating_add(u64::from(index) * 4)
    }

    /// Where the block of an offset is; `None` when that is not among the blocks.
    pub(crate) fn place(&self, offset: u32) -> Option<u64> {
        self.start.checked_add(u64::from(offset)).filter(|place| *place < self.offsets)
    }
}

impl BlockInfo {
    /// Reads the block at the start.
    pub(crate) fn read(version: Version, layout: &Layout, bytes: &[u8]) -> Result<Self, ParseError> {
        let mut input = Cursor::new(bytes);
        let first = BlockEdge::read(layout, &mut input)?;
        let last = BlockEdge::read(layout, &mut input)?;
        let offset = input.vint()?;
        input.vint_signed()?;
        let open_at_end = match input.u8()? {
            0 => DeletionTime::LIVE,
            _ => read_deletion_of(version, &mut input)?
                .ok_or(ParseError::Malformed("deletion open at the end of a block"))?,
        };
        Ok(BlockInfo { first, last, offset, open_at_end })
    }
}

impl BlockEdge {
    fn read(layout: &Layout, input: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let kind = input.u8()?;
        let count = match kind {
            ROW => layout.clustering.len(),
            _ if marker_sides(kind).is_some() => usize::from(input.u16()?),
            _ => return Err(ParseError::Malformed("kind of the edge of a block")),
        };
        let mut prefix = Vec::new();
        read_components(&layout.clustering, count, input, &mut prefix)?;
        Ok(BlockEdge { kind, prefix })
    }

    /// Where it stands to a bound; a marker at the very place is equal.
    pub(crate) fn compare(&self, layout: &Layout, bound: &Bound) -> Ordering {
        let Some((is_before, ..)) = marker_sides(self.kind) else {
            return layout.comparator.compare_encoded_to_bound(&self.prefix, bound);
        };
        let kind = if is_before { BoundKind::InclusiveStart } else { BoundKind::ExclusiveStart };
        match Clustering::from_encoded(bytes::Bytes::copy_from_slice(&self.prefix)) {
            Ok(prefix) => layout.comparator.compare_bounds(&Bound { kind, prefix }, bound),
            // What was read can not be otherwise.
            Err(_) => Ordering::Greater,
        }
    }
}
