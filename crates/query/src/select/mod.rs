//! SELECT: planned once, executed page by page.

mod rows;

pub(crate) use rows::{ComputedRows, Projection, StoredRows};
