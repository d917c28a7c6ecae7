//! Statistics.db: what is known of a table file as a whole.

mod cardinality;
mod change;
mod collector;
mod file;
mod header;
mod histogram;
mod stats;
mod tombstones;

pub use change::{StatisticsChange, change_statistics};
pub use histogram::EstimatedHistogram;
pub use tombstones::{TombstoneHistogram, TombstoneHistogramBuilder};

pub(crate) use cardinality::Cardinality;
pub(crate) use collector::Collector;
pub(crate) use file::{Statistics, correct_checksums};
pub(crate) use header::{Header, clustering_names};
pub(crate) use stats::Stats;
