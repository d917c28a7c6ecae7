//! The components of a table file: the files that lie beside each other and together are one.
//!
//! What they are called ([`Descriptor`], [`Component`], [`Version`]), how their bytes are cut into chunks, compressed
//! and checked ([`DataFile`], [`IndexFile`], [`FileChecksums`]), and how they are opened and written as one set
//! ([`ComponentSet`], [`ComponentWriter`]). What the bytes mean, that is partitions, rows, keys and statistics, is
//! `sstable`'s.
//!
//! ```text
//!   ComponentSet ─┬─ small ones, read whole and checked      TOC, Statistics, Filter, Summary, …
//!                 ├─ DataFile    chunks of Data              CompressionInfo or CRC has their checksums
//!                 └─ IndexFile   pages of 4 KiB              Checksums has theirs
//! ```

mod checksums;
mod chunk;
mod component;
mod component_set;
mod component_writer;
mod compression;
mod descriptor;
mod error;
mod file_writer;
mod index_file;
mod kept;
mod toc;
mod version;

pub use checksums::{FileChecksums, PAGE_BYTES, write_checksums};
pub use chunk::{Chunk, Extent};
pub use component::Component;
pub use component_set::{ComponentSet, delete_table_file};
pub use component_writer::ComponentWriter;
pub use compression::{CompressionParameters, DataFile, DataWriter, FinishedData};
pub use descriptor::{Descriptor, id_from_text, id_to_text, number_of, parse_file_name};
pub use error::SstableError;
pub use file_writer::FileWriter;
pub use index_file::{IndexFile, Pinned};
pub use kept::{KeptChunks, KeptRoom};
pub use toc::component_list;
pub use version::Version;
