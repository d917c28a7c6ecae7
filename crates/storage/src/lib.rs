//! One node's disk and memory: memtables, commit log, table files, compaction.

mod read;

pub use read::{PartitionRows, ReadCommand, ReadLimits, ReadPage, ReadPosition, ReadTarget, RingRange};
