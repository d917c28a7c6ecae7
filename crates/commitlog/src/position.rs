//! Where a record is.

use std::fmt;

/// The place of a record in its stream. Later records have greater positions, over restarts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The segment's id, from 1.
    pub segment: u64,
    /// The byte in the segment where the record's frame begins.
    pub offset: u32,
}

impl LogPosition {
    /// Before every record.
    pub const START: LogPosition = LogPosition { segment: 0, offset: 0 };
    /// After every record.
    pub const END: LogPosition = LogPosition { segment: u64::MAX, offset: u32::MAX };
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}
