//! Table files that come, are kept, and are mended: work on whole files, beside reads and writes.
//!
//! ```text
//!   import     a directory ──► which files count ──► checked, and adopted under new ids ──► to be named by manifests
//!   snapshot   table files ──► second names in another directory, and a list of them
//!   salvage    a damaged file ──► its keys that can still be read ──► what is whole, in a new file
//! ```
//!
//! | a reader asks | file |
//! |---|---|
//! | which files of a directory count? | `source.rs`, `transactions.rs` |
//! | how are files checked and brought in? | `bring.rs`, `adopt.rs` |
//! | what does a snapshot look like on the disk? | `snapshots.rs` |
//! | what is left of a damaged file? | `salvage.rs` |
//!
//! All of it blocks, for long: it is for background threads and tools. Which files a table has, and that nobody deletes
//! one meanwhile, is for the caller to say.

mod adopt;
mod bring;
mod error;
mod salvage;
mod snapshots;
mod source;
mod transactions;

pub use adopt::link_into;
pub use bring::{BringJob, Brought, ImportOptions};
pub use error::UpkeepError;
pub use salvage::{
    ReadableKeys, Salvaged, copy_or_salvage, copy_partition, keys_from, readable_keys, salvage,
};
pub use snapshots::{
    ClearFilter, SnapshotFacts, SnapshotManifest, clear_snapshots, list_snapshots, snapshot_directory,
    write_snapshot_manifest,
};
pub use source::list_source;
