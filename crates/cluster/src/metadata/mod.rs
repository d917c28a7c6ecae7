//! What all nodes must agree on, and the history that made it: schema and members.
//!
//! ```text
//!   Entry ── a change of the schema, or who the members are from now on
//!     │ apply
//!   Metadata ── the schema and the members at one moment
//!     ├── MetadataLog ── the entries that this node has taken, durable before anything is seen of them
//!     └── MetadataMachine ── the same, made by an agreement: it says what comes next in everybody's log
//! ```
//!
//! A lone node writes its own history. A node of a ring writes down what was agreed on, so that it starts with what it
//! had, without asking anybody.
//!
//! | a reader asks | file |
//! |---|---|
//! | who is a member, and where? | `members.rs` |
//! | what does an entry change? | `entry.rs` |
//! | how is history kept on a node? | `log.rs` |
//! | what can be proposed, and what is refused? | `command.rs` |
//! | whose place may be taken by another node? | `replacement.rs` |
//! | which changes contradict each other? | `touched.rs` |
//! | how does an agreement make history? | `machine.rs` |
//! | what of bytes that make no sense? | `hostile.rs` |

mod command;
mod entry;
pub mod hostile;
mod log;
mod machine;
mod members;
mod replacement;
mod touched;

pub use command::{Agreed, Command, HISTORY_VERSION, Refusal};
pub use entry::{Entry, Metadata};
pub use log::{MetadataError, MetadataLog};
pub use machine::MetadataMachine;
pub use members::{Candidate, Member, MemberState, Members, Presence};

pub(crate) use command::decode_outcome;
pub(crate) use machine::check_same;
#[cfg(test)]
pub(crate) use members::testing;
