//! Histograms as openraft uses them. This crate stands in for the one of the same name on crates.io, which makes 26 MiB
//! of tables when the first histogram is made: `docs/decisions/0035-openraft-gets-histograms-without-tables.md`.
//!
//! Kept is what openraft 0.10.0-alpha.37 names, with its feature `runtime-stats` or without. A histogram counts numbers
//! in buckets. Small numbers have one each; from 4 on, four buckets share the numbers of one length in bits:
//!
//! ```text
//!   number   0  1  2  3  4  5  6  7  8,9  10,11  12,13  14,15  16-19  ...  2^64-1
//!   bucket   0  1  2  3  4  5  6  7    8      9     10     11     12  ...     251
//! ```

mod chart;
mod histogram;
mod percentiles;

pub use chart::AsciiChart;
pub use histogram::Histogram;
pub use percentiles::PercentileStats;
