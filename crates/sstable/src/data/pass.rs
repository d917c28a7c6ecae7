//! Passes rows that stand before a bound, without decoding them.
//!
//! A lookup in a large partition begins at a block of some hundred rows and wants one of them, so
//! this is what it does most. Only what is simple is passed here: rows without extended flags, nulls
//! or empty values in their clustering. The first other item is left to the general way.

use std::cmp::Ordering;

use rows::Bound;
use stdx::cursor::Cursor;

use super::layout::Layout;
use super::{flags, read_value};

/// Clustering columns that one batch of null and empty bits covers.
const COLUMN_COUNT_MAX: usize = 32;

/// How many of `bytes` hold rows before the bound. The last item in them is never passed.
pub(crate) fn pass_rows(layout: &Layout, bytes: &[u8], bound: &Bound) -> usize {
    if layout.clustering.is_empty() || layout.clustering.len() > COLUMN_COUNT_MAX {
        return 0;
    }
    let mut passed = 0;
    while let Some(item_bytes) = row_before(layout, &bytes[passed..], bound) {
        passed += item_bytes;
    }
    passed
}

/// Bytes of the row at the start, if it is before the bound and something follows it.
fn row_before(layout: &Layout, bytes: &[u8], bound: &Bound) -> Option<usize> {
    let mut input = Cursor::new(bytes);
    let row_flags = input.u8().ok()?;
    if row_flags & (flags::END_OF_PARTITION | flags::MARKER | flags::EXTENSION) != 0 {
        return None;
    }
    // Bits for null and empty.
    if input.u8().ok()? != 0 {
        return None;
    }
    let mut order = Ordering::Equal;
    let mut wanted = bound.prefix.components();
    for (length, (cql_type, reversed)) in layout.clustering.iter().zip(layout.comparator.types().iter()) {
        let value = read_value(*length, &mut input).ok()?;
        if order.is_eq()
            && let Some(wanted) = wanted.next()
        {
            let wanted = wanted?;
            order = if *reversed { cql_type.compare(wanted, value) } else { cql_type.compare(value, wanted) };
        }
    }
    let side = if bound.kind.is_before() { Ordering::Greater } else { Ordering::Less };
    if order.then(side).is_gt() {
        return None;
    }
    let rest_bytes = usize::try_from(input.vint().ok()?).ok()?;
    let item_bytes = input.position().checked_add(rest_bytes)?;
    (item_bytes < bytes.len()).then_some(item_bytes)
}
