//! Reads bytes that may be anything as what storage keeps for itself: what the fuzzer calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and what a first start found, every later
//! one finds.

use bytes::Bytes;

use crate::record::{Content, LogRecord};

/// Reads a record of the commit log. The first byte, when even, says that it is of version 1.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_record(bytes: &[u8]) {
    let Some((version, payload)) = bytes.split_first() else { return };
    let decode = || LogRecord::decode(Bytes::copy_from_slice(payload), u32::from(version & 1) + 1);
    let (first, second) = (decode(), decode());
    assert_eq!(format!("{first:?}"), format!("{second:?}"), "the same bytes read twice");
    if let Ok(LogRecord { content: Content::Mutations(mutations), .. }) = first {
        let taken: usize = mutations.iter().map(|mutation| mutation.as_encoded().len()).sum();
        assert!(taken <= payload.len(), "more was read than there is");
    }
}
