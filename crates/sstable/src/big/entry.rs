//! Entries of Index.db, one a partition.
//!
//! ```text
//!   u16 key bytes | key | vint place in Data | vint bytes of what follows | [blocks of rows]
//! ```

use stdx::cursor::{Cursor, EndOfInput};

/// An entry, without its blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) data_position: u64,
    /// Where the blocks begin, from the start of the entry.
    pub(crate) head_bytes: u64,
    /// Bytes of the blocks; 0 when the partition has none.
    pub(crate) block_bytes: u64,
}

impl Entry<'_> {
    /// Where the next entry is, from the start of this one.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.head_bytes.saturating_add(self.block_bytes)
    }
}

/// Reads the entry at the start.
pub(crate) fn read_entry(bytes: &[u8]) -> Result<Entry<'_>, EndOfInput> {
    let mut input = Cursor::new(bytes);
    let length = usize::from(input.u16()?);
    let key = input.take(length)?;
    let data_position = input.vint()?;
    let block_bytes = input.vint()?;
    Ok(Entry { key, data_position, head_bytes: input.position() as u64, block_bytes })
}
