//! Agreement of the nodes of a ring on one log: openraft behind a door of our own.
//!
//! ```text
//!   propose, read ─► Agreement ─► openraft ─► Log ──────► Writer ─► raft.log, raft.snapshot
//!                        │           │ ├────► StateMachine ─► Machine (somebody else's)
//!                        │           │ └────► Link ═══ urgent connection ═══► Service of another node
//!                        └─ run: ends when the disk fails
//! ```
//!
//! What is on the disk and between nodes is ours, with versions in it (`docs/formats/raft-log.md`); so are commands,
//! members and errors. None of openraft's types is seen outside. Why it is used, and what had to be wrapped:
//! decision 0027.
//!
//! | a reader asks | file |
//! |---|---|
//! | what does openraft run on? | `async_runtime/` |
//! | what is a log id, an entry, a vote as bytes? | `bytes_of.rs` |
//! | what does the log say? | `contents.rs` |
//! | how is it kept? | `log_file.rs`, `snapshot_file.rs`, `writer.rs` |
//! | how does openraft see it? | `log.rs`, `state.rs` |
//! | why is a command applied once? | `remembered.rs` |
//! | what do nodes say to each other about it? | `message.rs`, `network.rs`, `links.rs`, `service.rs` |
//! | how is something agreed on? | `agreement.rs`, [`Agreement`] |
//! | who agrees? | `members.rs` |
//! | what when most of them are lost? | `remains.rs` |

mod agreement;
mod async_runtime;
mod bytes_of;
mod contents;
mod error;
pub mod hostile;
mod links;
mod log;
mod log_file;
#[cfg(test)]
mod log_file_tests;
mod members;
mod message;
#[cfg(test)]
mod message_tests;
mod network;
mod options;
mod remains;
mod remembered;

mod service;
mod snapshot_file;
mod state;
#[cfg(test)]
mod tests;
mod types;
mod writer;

pub(crate) use agreement::has_log;
pub use agreement::{Agreement, COMMAND_BYTES_MAX, Standing};
pub(crate) use message::FOR_AGREEMENT;
pub(crate) use remains::Remains;

pub use error::{AgreementError, Ended, OpenError};
pub use options::{AgreementOptions, Timing};
pub use service::Answers;
pub use state::Machine;
