//! Table files: Cassandra 5's BTI format, version `da`, written and read; `nb` and `oa` of its format
//! `big`, read.
//!
//! A table file is a set of components beside each other ([`Component`]). [`TableWriter`] writes
//! one from partitions in ring order; [`TableFile`] opens one; [`FileCursor`] reads it without
//! ever waiting: what it lacks it asks for ([`rows::Step::Need`]), chunk by chunk, and whoever
//! drives it decides how to fetch ([`TableFile::read_chunk`], a cache, or [`DirectChunks`]), and
//! on which thread a large row is read ([`LargeRow`]).

mod big;
mod bloom;
mod checksums;
mod chunk;
mod component;
mod compression;
mod cursor;
mod data;
mod descriptor;
mod error;
mod file_writer;
mod fit;
#[doc(hidden)]
pub mod hostile;
mod index_file;
mod inspect;
mod kept;
mod large_row;
mod options;
mod partition_index;
mod ring_place;
mod row_index;
mod search;
mod single_row;
mod spread;
pub mod statistics;
mod summary;
mod table_file;
mod table_writer;
mod toc;
mod verify;
mod version;

pub use bloom::KeyHash;
pub use checksums::write_checksums;
pub use chunk::{Chunk, ChunkId, ChunkNeed, ChunkSource, DirectChunks, Extent};
pub use component::Component;
pub use cursor::{FileCursor, SingleRowScan, SingleRowScanStep};
pub use descriptor::{Descriptor, id_from_text, id_to_text, number_of, parse_file_name};
pub use error::SstableError;
pub use fit::check_fits;
pub use inspect::table_of_header;
pub use kept::{KeptChunks, KeptRoom};
pub use large_row::{FileNeed, LargeRow, ReadRow, RowReader};
pub use options::{EncodingStats, EncodingStatsCollector, WriterOptions};
pub use ring_place::{RingPlace, RingRange};
pub use search::{PartitionSearch, SearchKey};
pub use single_row::{ForCursor, SingleRowFound, SingleRowPartition};
pub use statistics::{StatisticsChange, change_statistics};
pub use summary::TableSummary;
pub use table_file::{FilterCounts, TableFile, delete_table_file};
pub use table_writer::TableWriter;
pub use version::Version;

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
mod single_row_tests;
#[cfg(test)]
mod spread_tests;
