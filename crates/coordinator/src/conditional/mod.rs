//! How a change with a condition is made: under a claim on its partition, and in a ring as the replicas agree.
//!
//! ```text
//!   claim ─► ready ─► read ─► (the statement decides) ─► settle: it is made, or what was read may be told
//!     ▲                                                    │
//!     └──────────────── others came before ────────────────┘
//! ```
//!
//! A client that has no answer sends its statement again. When it has given it an id, what came of the first is told:
//! that is written with the change, and looked up before anything is decided.
//!
//! The one replica of a table of a node that is alone is the shard that owns the partition, and its claims are all
//! there is to agree on: who has one is ready, and nobody comes before (`alone.rs`).
//!
//! In a ring one replica decides for all, so that they need not outbid each other: changes are carried to the shard
//! that owns the partition there (`carried.rs`). A claim keeps those apart that decide; what they decide one after the
//! other is proposed together (`round.rs`), and the replicas agree on it ([`Agreement`](crate::replicas::agreement)).
//! What was accepted and is left by whoever has proposed it is settled by those that have accepted it (`accepted.rs`).

mod accepted;
mod alone;
mod carried;
mod round;

use bytes::Bytes;
use read::{ReadCommand, ReadPage, ReadTarget};
use replica::{Failure, OperationLog};
use rows::{Mutation, PartitionKey};
use runtime::trace;
use schema::TableId;
use uuid::Uuid;

use crate::read::rest;
use crate::replicas::TooFew;
use crate::{Consistency, Coordinator, CoordinatorError};
use alone::ClaimedAlone;
use round::ClaimedInRing;

pub(crate) use accepted::settle_accepted;
pub(crate) use alone::settle_owners;
pub use carried::{Decider, OthersThatDecide, decide_by, others_that_decide};
pub(crate) use carried::{Deciders, decide_all};
pub(crate) use round::Agreements;

pub use crate::replicas::agreement::Settled;

/// The levels of a change with a condition.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalLevels {
    /// At which replicas agree on it: `SERIAL` or `LOCAL_SERIAL`.
    pub agreement: Consistency,
    /// At which it is written then.
    pub write: Consistency,
}

/// A partition that nobody else changes by a condition, until this is dropped, or what was decided is written or left.
pub struct ClaimedPartition(Claimed);

enum Claimed {
    Alone(ClaimedAlone),
    InRing(ClaimedInRing),
}

impl ClaimedPartition {
    /// Claims a partition for a change with a condition, as soon as nobody else does: on a node that is alone, or on
    /// the shard of a replica that owns the partition.
    ///
    /// # Errors
    /// `Unavailable` and `Overloaded`: nothing was done.
    ///
    /// # Cancel safety
    /// Dropped, the place in the queue is given up.
    pub async fn claim(
        coordinator: &Coordinator,
        table: TableId,
        key: &PartitionKey,
        levels: ConditionalLevels,
    ) -> Result<ClaimedPartition, CoordinatorError> {
        trace::note(|| "Waiting for other conditional changes of the partition".into());
        let claimed = match coordinator.replicas_of(table) {
            None => Claimed::Alone(ClaimedAlone::claim(coordinator, table, key, levels).await?),
            Some(replicas) => {
                Claimed::InRing(ClaimedInRing::claim(coordinator, &replicas, table, key, levels).await?)
            }
        };
        Ok(ClaimedPartition(claimed))
    }

    /// Makes good what others have left unfinished.
    ///
    /// # Errors
    /// Too few replicas live or have answered.
    pub async fn ready(&mut self) -> Result<(), CoordinatorError> {
        match &mut self.0 {
            Claimed::Alone(claimed) => claimed.ready(),
            Claimed::InRing(claimed) => return claimed.ready().await,
        }
        Ok(())
    }

    /// A timestamp in µs for what is decided now: later than those of all conditional changes of the partition before,
    /// and than all that this node has given, on whichever shard, so that it stands above all that was read unless
    /// clients gave timestamps of the future.
    pub fn timestamp(&mut self) -> i64 {
        match &mut self.0 {
            Claimed::Alone(claimed) => claimed.timestamp(),
            Claimed::InRing(claimed) => claimed.timestamp(),
        }
    }

    /// Reads rows of the partition.
    ///
    /// # Errors
    /// As [`Coordinator::read`].
    pub async fn read(&self, command: &ReadCommand) -> Result<ReadPage, CoordinatorError> {
        match &self.0 {
            Claimed::Alone(claimed) => claimed.read(command).await,
            Claimed::InRing(claimed) => claimed.read(command).await,
        }
    }

    /// What has come of an operation already, as it was settled then; `None` when nothing is known to have.
    ///
    /// # Errors
    /// It can not be read.
    pub async fn outcome(&self, id: Uuid) -> Result<Option<Bytes>, CoordinatorError> {
        match &self.0 {
            Claimed::Alone(claimed) => claimed.outcome(id).await,
            Claimed::InRing(claimed) => claimed.outcome(id).await,
        }
    }

    /// Settles what was decided, unless others came before: then the partition is claimed anew. A mutation of the
    /// partition is written; without one it is left as it is. With it stays what has come of an operation. The next
    /// one may claim the partition as soon as this is begun; it returns when what is written is durable, and what was
    /// read may be told.
    ///
    /// # Errors
    /// Nothing is written after `Overloaded`; after others it may be.
    ///
    /// # Cancel safety
    /// Dropped, what is written may stand.
    pub async fn settle(
        &mut self,
        mutation: Option<Mutation>,
        operation: Option<(Uuid, Bytes)>,
    ) -> Result<Settled, CoordinatorError> {
        trace::note(|| "Committing a conditional change".into());
        match &mut self.0 {
            Claimed::Alone(claimed) => claimed.settle(mutation, operation).await,
            Claimed::InRing(claimed) => claimed.settle(mutation, operation).await,
        }
    }
}

/// The operations of a table's partitions.
fn operations_of(coordinator: &Coordinator, table: TableId) -> Result<OperationLog, CoordinatorError> {
    let log = coordinator.shard().local().with_schema(|schema| OperationLog::of(schema, table));
    log.map_err(unreadable)
}

/// What this node knows to have come of an operation.
async fn outcome_here(
    coordinator: &Coordinator,
    table: TableId,
    key: &PartitionKey,
    id: Uuid,
) -> Result<Option<Bytes>, CoordinatorError> {
    let known = operations_of(coordinator, table)?.read(coordinator.shard(), key, &[id]).await;
    Ok(known.map_err(unreadable)?.pop().map(|operation| operation.outcome))
}

/// Nothing is done that could have been done before.
fn unreadable(failure: Failure) -> CoordinatorError {
    CoordinatorError::Overloaded { what: format!("what has come of operations can not be read: {failure}") }
}

/// Before a read of partitions in a ring: makes sure that it shows all conditional changes that were made.
///
/// # Errors
/// Too few replicas live or have answered.
pub(crate) async fn settle_replicas(
    coordinator: &Coordinator,
    command: &ReadCommand,
    level: Consistency,
) -> Result<(), CoordinatorError> {
    let ReadTarget::Keys(keys) = &command.target else { return Ok(()) };
    for key in rest(keys, command) {
        let settled = carried::settle(coordinator, command.table.id(), key, level).await;
        settled.map_err(of_read)?;
    }
    Ok(())
}

/// Has the replicas agree that nothing is unfinished of a partition. To be called on the shard of a replica that owns
/// it.
async fn settle_partition(
    coordinator: &Coordinator,
    table: TableId,
    key: &PartitionKey,
    level: Consistency,
) -> Result<(), CoordinatorError> {
    let levels = ConditionalLevels { agreement: level, write: level };
    let mut claimed = ClaimedPartition::claim(coordinator, table, key, levels).await?;
    loop {
        claimed.ready().await?;
        if claimed.settle(None, None).await? == Settled::Done {
            return Ok(());
        }
    }
}

/// What stands in the way of agreeing is told to who reads as what stands in the way of the read.
fn of_read(error: CoordinatorError) -> CoordinatorError {
    let too_few = |received, required| {
        CoordinatorError::TooFew(TooFew { is_write: false, received, required, failures: Vec::new() })
    };
    match error {
        CoordinatorError::TooFew(too_few) => CoordinatorError::TooFew(TooFew { is_write: false, ..too_few }),
        CoordinatorError::Chosen { received, required } => too_few(received, required),
        CoordinatorError::InDoubt => too_few(0, 1),
        error => error,
    }
}
