//! The commit log: opaque records, durable before they are acknowledged, replayed after a crash.
//!
//! Each shard appends to a *stream* of its own; all streams of a node share a directory. A stream is a
//! sequence of segment files; `docs/formats/commitlog.md` draws their bytes.
//!
//! ```text
//!   append ──► pending bytes ──► one write, one fdatasync ──► synced ──► acknowledgement
//!              (this shard)       (an I/O thread)              everybody who waited
//! ```
//!
//! - [`CommitLog::append`] never blocks and never waits: it frames the record into memory and gives its
//!   [`LogPosition`].
//! - [`CommitLog::synced`] waits as the [`SyncMode`] says. All who wait while one sync runs share the next.
//! - [`CommitLog::discard_below`] lets go of segments whose records live in table files by now; some are
//!   kept and written again.
//! - [`replay()`] reads every stream back, and tells a torn tail (a power cut while writing: nothing that
//!   was acknowledged is in it) from damage (bytes that were known to be durable have changed, or a segment
//!   that the stream's roster names is not there).
//! - [`CommitLog::reread`] reads records again while the log goes on, as far back as they are
//!   [held](CommitLog::hold_from).
//!
//! A failed write or sync ends the log (or the segment, where it is to go on):
//! the kernel may have dropped what it could not write, and a
//! second sync that succeeds proves nothing. From then on nothing is taken and nothing is acknowledged.
//! A full disk is different: segments are reserved whole before use, so running out of space shows
//! when a segment is created, before anything depends on it; the log refuses records and tries again.

mod discard;
mod driver;
mod error;
mod format;
mod group;
pub mod hostile;
mod log;
mod options;
mod position;
mod replay;
mod reread;
mod roster;
mod segment_reader;
mod segment_writer;
mod spares;
mod waiting;

pub use error::CommitLogError;
pub use group::Synced;
pub use log::{CommitLog, LogEvent, Statistics};
pub use options::{CommitLogOptions, SyncMode};
pub use position::LogPosition;
pub use replay::{Replay, Replayed, TornTail, replay, replay_from, segment_path};
pub use reread::Reread;
