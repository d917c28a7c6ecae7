//! Table files: Cassandra 5's BTI format, version `da`, written and read; `nb` and `oa` of its format
//! `big`, read.
//!
//! A table file is a set of components beside each other ([`Component`]). [`TableWriter`] writes
//! one from partitions in ring order; [`TableFile`] opens one; [`FileCursor`] reads it without
//! ever waiting: what it lacks it asks for ([`rows::Step::Need`]), chunk by chunk, and whoever
//! drives it decides how to fetch ([`FileChunks::read_one`], a cache, or [`DirectChunks`]), and
//! on which thread a large row is read ([`LargeRow`]).

mod big;
mod bloom;
mod chunk;
mod cursor;
mod data;
mod file_chunks;
mod filter;
mod finder;
mod fit;
#[doc(hidden)]
pub mod hostile;
mod inspect;
mod large_row;
mod options;
mod partition_index;
mod row_index;
mod search;
mod single_row;
mod spread;
pub mod statistics;
mod summary;
mod table_file;
mod table_writer;
mod verify;

pub use bloom::KeyHash;
pub use chunk::{ChunkId, ChunkNeed, ChunkSource, DirectChunks};
pub use components::{
    Chunk, Component, Descriptor, Extent, KeptChunks, KeptRoom, SstableError, Version, delete_table_file,
    id_from_text, id_to_text, number_of, parse_file_name, write_checksums,
};
pub use cursor::{FileCursor, SingleRowScan, SingleRowScanStep};
pub use file_chunks::FileChunks;
pub use filter::{Filter, FilterCounts};
pub use fit::check_fits;
pub use inspect::table_of_header;
pub use large_row::{FileNeed, LargeRow, ReadRow, RowReader};
pub use options::WriterOptions;
pub use search::{PartitionSearch, SearchKey};
pub use single_row::{ForCursor, SingleRowFound, SingleRowPartition};
pub use statistics::{StatisticsChange, change_statistics};
pub use summary::TableSummary;
pub use table_file::TableFile;
pub use table_writer::TableWriter;

#[cfg(test)]
mod border_tests;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod dump_tests;
#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod single_row_tests;
#[cfg(test)]
mod spread_tests;
