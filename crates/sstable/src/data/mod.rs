//! Rows and markers in Data, both ways.
//!
//! ```text
//!   partition: u16 key bytes | key | deletion (1 or 12 bytes) | static row, if the file has static
//!              columns | rows and markers | u8 END_OF_PARTITION
//!   row:       u8 flags | [u8 extended flags] | clustering | vint bytes of what follows
//!              | vint bytes of the item before | [liveness] [deletion] [column subset] | cells
//!   marker:    u8 flags | u8 bound kind, u16 count, prefix | vint bytes of what follows
//!              | vint bytes of the item before | deletion, or those that end and that start
//!   cell:      u8 flags | [timestamp] [local deletion time] [ttl] [path] [value]
//!   multi-cell column: [deletion, when any column of the row has one] | vint count | cells
//! ```
//!
//! Times are differences to the least of the file ([`rows::EncodingStats`]).

mod clustering;
mod decode;
mod encode;
mod layout;
mod pass;
mod times;

pub(crate) use clustering::{marker_sides, read_bound, read_components, write_bound};
pub(crate) use decode::{Decoder, Head, HeadKind};
pub(crate) use encode::{Encoder, RowObserver, Unobserved};
pub(crate) use layout::{Columns, FileColumn, Layout, fixed_bytes, in_file_order};
pub(crate) use pass::pass_rows;
pub(crate) use times::{
    DELETION_BYTES, RelativeTimes, read_deletion_of, read_partition_head, read_whole_deletion,
    write_whole_deletion,
};

use stdx::cursor::Cursor;
use stdx::vint;

/// Flags of a row or marker.
mod flags {
    pub(super) const END_OF_PARTITION: u8 = 0x01;
    pub(super) const MARKER: u8 = 0x02;
    pub(super) const TIMESTAMP: u8 = 0x04;
    pub(super) const TTL: u8 = 0x08;
    pub(super) const DELETION: u8 = 0x10;
    pub(super) const ALL_COLUMNS: u8 = 0x20;
    pub(super) const COMPLEX_DELETION: u8 = 0x40;
    pub(super) const EXTENSION: u8 = 0x80;

    pub(super) const EXTENDED_STATIC: u8 = 0x01;
    pub(super) const EXTENDED_SHADOWABLE: u8 = 0x02;

    pub(super) const CELL_DELETED: u8 = 0x01;
    pub(super) const CELL_EXPIRING: u8 = 0x02;
    pub(super) const CELL_EMPTY: u8 = 0x04;
    pub(super) const CELL_ROW_TIMESTAMP: u8 = 0x08;
    pub(super) const CELL_ROW_TTL: u8 = 0x10;
}

/// Each is a bit of its own: together they are as many as their sum.
const _: () = {
    use flags::*;
    let of_rows =
        [END_OF_PARTITION, MARKER, TIMESTAMP, TTL, DELETION, ALL_COLUMNS, COMPLEX_DELETION, EXTENSION];
    assert!(are_bits(&of_rows), "flags of rows");
    assert!(are_bits(&[EXTENDED_STATIC, EXTENDED_SHADOWABLE]), "extended flags of rows");
    let of_cells = [CELL_DELETED, CELL_EXPIRING, CELL_EMPTY, CELL_ROW_TIMESTAMP, CELL_ROW_TTL];
    assert!(are_bits(&of_cells), "flags of cells");
};

/// Is each one bit, and another than the others?
const fn are_bits(flags: &[u8]) -> bool {
    let (mut index, mut all) = (0, 0);
    while index < flags.len() {
        if flags[index].count_ones() != 1 || all & flags[index] != 0 {
            return false;
        }
        all |= flags[index];
        index += 1;
    }
    true
}

/// The byte that ends a partition.
pub(crate) const END_OF_PARTITION: u8 = flags::END_OF_PARTITION;

/// Why bytes do not parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// They end too soon; so many would go further.
    Short {
        /// From the start.
        wanted_bytes: usize,
    },
    /// They say something that can not be.
    Malformed(&'static str),
}

/// Appends a value, its length before it unless the type has one length.
fn write_value(fixed: Option<usize>, value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    match fixed {
        Some(length) if length != value.len() => return Err("a value has not the length of its type"),
        Some(_) => {}
        None => vint::write_unsigned(value.len() as u64, out),
    }
    out.extend_from_slice(value);
    Ok(())
}

/// Reads what [`write_value`] wrote.
#[inline]
fn read_value<'a>(fixed: Option<usize>, input: &mut Cursor<'a>) -> Result<&'a [u8], ParseError> {
    Ok(match fixed {
        Some(length) => input.take(length)?,
        None => input.vint_bytes()?,
    })
}
