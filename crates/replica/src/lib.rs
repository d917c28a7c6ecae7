//! What replicas ask each other, as bytes; and how a node carries it out.
//!
//! ```text
//!   asks                              is asked
//!   Request::put_write, put_read ──►  carry_out: Asked::read ─► the shards that own it
//!   Answer::read                 ◄──  Answer::put
//! ```
//!
//! A request is data, never code: any byte may be wrong, and is checked. Its table is named by id, and its columns are
//! numbers: both nodes have the same history of the schema, and one that is behind comes so far first.
//! What is read comes with all its tombstones, or as a hash of that, since another replica may know of more or less.

mod agreeing;
mod answer;
mod body;
mod committed;
mod failure;
mod fits;
pub mod hostile;
mod operations;
mod page;
mod paxos;
mod read_request;
mod request;
mod service;

pub use agreeing::agree;
pub use answer::{Answer, Told, Written};
pub use body::BodyError;
pub use committed::{Committed, CommittedIn, note_committed, recall_accepted};
pub use failure::Failure;
pub use fits::is_plain_row;
pub use operations::{OPERATION_WINDOW_SECONDS, Operation, OperationLog};
pub use page::is_in_order;
pub use paxos::{Ballot, PaxosAnswer, PaxosRequest, Phase, Promise, Proposal, Proposing, Seen};
pub use read_request::{READ_KEYS_MAX, ReadRequest};
pub use request::{Asked, BatchRequest, DROPPED_TOGETHER_MAX, Deciding, PlannedOn, Request, Wanted};
pub use service::{carry_out, check_increments, check_mutations, count, read, write};
