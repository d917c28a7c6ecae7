//! Carries reads and writes to the replicas that own them, and answers when enough have.
//!
//! On one node the replicas are this node's shards; the consistency level is checked against that
//! one replica. One [`Coordinator`] lives on each shard, a cheap handle that is never shared.
//!
//! | a reader asks | file |
//! |---|---|
//! | what can be asked? | `handle.rs` |
//! | is a level admitted? | `admission.rs` |
//! | which shard owns what? what goes there together? | `owners.rs` |
//! | how is one row read or written without waiting? | `plain.rs` |
//! | how does a full write reach its shards? | `write.rs` |
//! | how is a change with a condition made? | `conditional/` |
//! | how are counters counted? | `counting.rs`, `count_groups.rs` |
//! | how is a logged batch atomic over shards and nodes? | `batch.rs` |
//! | how is it kept until it is whole? | `batch_log.rs` |
//! | how does a node keep those of others? | `batch_keeper.rs`, `kept_batches.rs` |
//! | what of those that nobody has finished? | `batch_replay.rs` |
//! | what of logged batches that can not be finished? | `under_way.rs` |
//! | which shards does a scan ask, and for how much? | `range.rs` |
//! | how do pages of several shards become one? | `read.rs`, `assemble.rs` |
//! | how do reads and writes go over the nodes of a ring? | `replicas/` |
//! | how long may a request take? | `timeouts.rs` |
//! | how does a schema change come into force? | `schema_change.rs` |
//! | how is a table emptied on all shards or none? | `truncate.rs` |

mod admission;
mod assemble;
mod batch;
mod batch_keeper;
mod batch_log;
mod batch_replay;
mod conditional;
mod consistency;
mod count_groups;
mod counting;
mod error;
mod handle;
mod kept_batches;
mod owners;
mod plain;
mod range;
mod read;
pub mod replicas;
mod schema_change;
mod timeouts;
mod truncate;
mod under_way;
mod write;

pub use batch::BatchProgress;
pub use batch_replay::BatchReplay;
pub use conditional::{
    ClaimedPartition, ConditionalLevels, Decider, OthersThatDecide, Settled, decide_by, others_that_decide,
};
pub use consistency::Consistency;
pub use counting::{check_increments, count};
pub use error::CoordinatorError;
pub use handle::{Coordinator, Node};
pub use owners::{Batches, Owners};
pub use plain::{PlainOutcomes, PlainRead, PlainWrite, RowQuery, ShownRow};
pub use replica::OPERATION_WINDOW_SECONDS;
pub use schema_change::follow;
pub use timeouts::{TimeoutKind, Timeouts};
pub use write::are_of_one_partition;
