//! A row that is read or written at once is the row that is read or written the long way.
//!
//! | file | what |
//! |---|---|
//! | `given.rs` | (what the others ask with) |
//! | `reading.rs` | a row is the same whatever was written and wherever it lies |
//! | `writing.rs` | so is what was written |
//! | `together.rs` | several at once, and on other shards |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod given;
mod reading;
mod together;
mod writing;
