//! The footer of Partitions.db: where the trie's root and the first and last key are.

use bytes::Bytes;
use components::IndexFile;
use rows::PartitionKey;
use stdx::cursor::{Cursor, EndOfInput};
use types::encoding::KEY_BYTES_MAX;

use crate::SstableError;

/// Bytes of the three numbers at the end.
const FOOTER_BYTES: u64 = 24;
const _: () = assert!(FOOTER_BYTES == 3 * size_of::<u64>() as u64, "three numbers");

/// The footer of Partitions.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) keys_offset: u64,
    pub(crate) key_count: u64,
    pub(crate) root: u64,
}

impl Footer {
    /// Reads the last [`FOOTER_BYTES`] of a file of `file_bytes`; `None` when they make no sense.
    fn read(bytes: &[u8], file_bytes: u64) -> Option<Self> {
        let mut input = Cursor::new(bytes);
        let mut number = || input.u64().ok();
        let footer = Footer { keys_offset: number()?, key_count: number()?, root: number()? };
        let fits =
            footer.root < footer.keys_offset && footer.keys_offset <= file_bytes.checked_sub(FOOTER_BYTES)?;
        (fits && footer.key_count > 0).then_some(footer)
    }
}

/// Reads the first and last keys.
fn read_keys(bytes: &[u8]) -> Result<(Bytes, Bytes), EndOfInput> {
    let mut input = Cursor::new(bytes);
    let mut key = || -> Result<Bytes, EndOfInput> {
        let length = usize::from(input.u16()?);
        Ok(Bytes::copy_from_slice(input.take(length)?))
    };
    Ok((key()?, key()?))
}

/// Reads the footer of Partitions.db, and the first and last keys.
pub(crate) fn read_footer(file: &IndexFile) -> Result<(Footer, (PartitionKey, PartitionKey)), SstableError> {
    let damaged = |offset, what| file.damaged(offset, what);
    let start = file.file_bytes().checked_sub(FOOTER_BYTES).ok_or_else(|| damaged(0, "no footer"))?;
    let bytes = file.read_verified(start, file.file_bytes())?;
    let footer = Footer::read(&bytes, file.file_bytes()).ok_or_else(|| damaged(start, "footer"))?;
    // Two keys, each behind its length.
    if start - footer.keys_offset > 2 * (2 + KEY_BYTES_MAX as u64) {
        return Err(damaged(start, "place of the first and last key"));
    }
    let bytes = file.read_verified(footer.keys_offset, start)?;
    let (first, last) = read_keys(&bytes)
        .map_err(|end| damaged(footer.keys_offset + end.offset as u64, "first and last key"))?;
    let keys = (PartitionKey::new(first), PartitionKey::new(last));
    if keys.0 > keys.1 {
        return Err(damaged(footer.keys_offset, "the first key is behind the last"));
    }
    Ok((footer, keys))
}
