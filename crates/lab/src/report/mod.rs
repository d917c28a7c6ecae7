//! Reports of a run: what a reader sees of [`Results`](crate::Results).
//!
//! All say the same, since all are made of the same `Summary`:
//!
//! ```text
//!                 +-- summary ----+-- text     for a terminal
//!   Results ------+               +-- html     a page with plots, whole in itself
//!                 |               +-- digest   figures as JSON, for other programs
//!                 +-- timeline ---+-- csv      each second of each repetition, for a spreadsheet
//!                                 +-- hdr_log  each second's histograms, for HdrHistogram's own tools
//! ```
//!
//! An operation is counted in one way everywhere: those that went well make the rate and have latencies; those that
//! ended with an error, were answered wrongly or had no end are told apart from them.

mod cost;
mod csv;
mod digest;
mod estimate;
#[cfg(test)]
mod example;
mod figures;
mod hdr_log;
mod headline;
mod html;
mod plot;
mod study;
pub(crate) mod summary;
mod text;
mod timeline;
pub(crate) mod words;

pub use csv::csv;
pub use digest::digest;
pub(crate) use estimate::Estimate;
pub use hdr_log::hdr_log;
pub use headline::headline_of as headline;
pub use html::html;
pub use study::{study_csv, study_html, study_text};
pub use text::text;
