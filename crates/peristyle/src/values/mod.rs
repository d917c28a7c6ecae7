//! Values as people read and write them: cells of a result as text, and text as cells.
//!
//! The forms are those of Python's cqlsh, because scripts read them: `format` for the screen and for
//! CSV, `json` for programs, `parse` for what `COPY FROM` and the demo read.

pub(crate) mod calendar;
mod float;
mod format;
mod json;
mod parse;

pub(crate) use format::{Style, format};
pub(crate) use json::json;
pub(crate) use parse::{ParseError, ParseOptions, parse};
