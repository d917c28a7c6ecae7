//! A row that is read or written the plain way is the row that is read or written the full way.
//!
//! | file | what |
//! |---|---|
//! | `given.rs` | (what the others ask with) |
//! | `reading.rs` | a row is the same whatever was written and wherever it lies |
//! | `writing.rs` | so is what was written |
//! | `together.rs` | several at once, and on other shards |
//! | `late.rs` | those that wait too long |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod given;
mod late;
mod reading;
mod together;
mod writing;
