//! The format `big` of Cassandra 4 and 5, versions `nb` and `oa`: read, never written.
//!
//! Data has the same rows as in `da`. What differs is how a partition and a place in it are found:
//! Index lists every partition in ring order, with the blocks of its rows when it has several, and
//! Summary has every 128th key of Index, to be held in memory. See `docs/formats/big.md`.

mod blocks;
mod entry;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use blocks::{BlockInfo, Blocks};
pub(crate) use entry::read_entry;
pub(crate) use summary::Summary;
