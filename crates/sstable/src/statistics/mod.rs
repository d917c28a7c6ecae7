//! Statistics.db: what is known of a table file as a whole.

mod histogram;
mod tombstones;

pub use histogram::EstimatedHistogram;
pub use tombstones::{TombstoneHistogram, TombstoneHistogramBuilder};
