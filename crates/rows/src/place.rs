//! A row as it is shown to a reader who copies what is asked for: where it lies.

use schema::ColumnId;

use crate::Row;

/// Values of a row's columns, ascending by column: each written with the row, to stay.
pub type RowValues<'a> = [(ColumnId, &'a [u8])];

/// A row where it lies.
#[derive(Clone, Copy, Debug)]
pub enum RowInPlace<'a> {
    /// Encoded, in memory.
    Encoded(&'a Row),
    /// As a table file has it: values between other things.
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
