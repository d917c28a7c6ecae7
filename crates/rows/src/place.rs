//! A row as it is shown to a reader who copies what is asked for: where it lies.

use schema::ColumnId;
use smallvec::SmallVec;

use crate::Row;

/// Values of a row's columns, ascending by column: each to stay.
pub type RowValues<'a> = [(ColumnId, &'a [u8])];

/// Room for them.
pub type ValuesInPlace<'a> = SmallVec<[(ColumnId, &'a [u8]); 16]>;

/// A row where it lies.
#[derive(Clone, Copy, Debug)]
pub enum RowInPlace<'a> {
    /// Encoded, in memory.
    Encoded(&'a Row),
    /// In a table file, or in several places: values between other things.
    Values(&'a RowValues<'a>),
}

impl RowInPlace<'_> {
    /// Bytes of its values, about.
    pub fn byte_count(&self) -> usize {
        match self {
            RowInPlace::Encoded(row) => row.as_encoded().len(),
            RowInPlace::Values(values) => values.iter().map(|(_, value)| value.len()).sum(),
        }
    }
}
