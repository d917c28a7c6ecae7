//! How a change with a condition is made: under a claim on its partition.
//!
//! ```text
//!   claim ─► read ─► (the statement decides) ─┬─► write: log and memtable, then the disk
//!                                             └─► leave: nothing is written, what was read waits for the disk
//! ```
//!
//! The one replica of a table of a node that is alone is the shard that owns the partition, and its claims are all there
//! is to agree on. In a ring of several nodes replicas have to agree among themselves, which is not built yet.

use std::collections::BTreeSet;

use read::{ReadCommand, ReadPage, ReadTarget};
use rows::{Mutation, PartitionKey};
use runtime::trace;
use schema::TableId;
use storage::Claim;

use crate::admission::Admitted;
use crate::{Consistency, Coordinator, CoordinatorError};

/// What is told of a change with a condition on a table of a ring.
const NOT_IN_A_RING: &str = "A conditional update (IF) in a ring of several nodes";

/// The levels of a change with a condition.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalLevels {
    /// At which replicas agree on it: `SERIAL` or `LOCAL_SERIAL`.
    pub agreement: Consistency,
    /// At which it is written then.
    pub write: Consistency,
}

/// A partition that nobody else changes by a condition, until this is dropped.
#[derive(Debug)]
pub struct ClaimedPartition {
    coordinator: Coordinator,
    owner: usize,
    admitted: Admitted,
    claim: Claim,
}

impl Coordinator {
    /// Claims a partition for a change with a condition, as soon as nobody else does.
    ///
    /// # Errors
    /// `Unavailable` and `Overloaded`, and in a ring `NotBuilt`: nothing was done.
    ///
    /// # Cancel safety
    /// Dropped, the place in the queue is given up.
    pub async fn claim(
        &self,
        table: TableId,
        key: &PartitionKey,
        levels: ConditionalLevels,
    ) -> Result<ClaimedPartition, CoordinatorError> {
        if self.replicas_of(table).is_some() {
            return Err(CoordinatorError::NotBuilt { what: NOT_IN_A_RING });
        }
        // Both before anything is done: nobody is told after a write that its level can not be had.
        self.admit(table, levels.agreement)?;
        let admitted = self.admit(table, levels.write)?;
        let owner = self.owners().of(key.token);
        trace::note(|| "Waiting for other conditional changes of the partition".into());
        let claim = self.shards_for(admitted).claim(owner, table, key).await?;
        Ok(ClaimedPartition { coordinator: self.clone(), owner, admitted, claim })
    }

    /// Waits until whatever a read at a serial level may have seen of changes with conditions is on the disk.
    pub(crate) async fn settle_serial_read(&self, command: &ReadCommand) -> Result<(), CoordinatorError> {
        let ReadTarget::Keys(keys) = &command.target else { return Ok(()) };
        let owners: BTreeSet<usize> = keys.iter().map(|key| self.owners().of(key.token)).collect();
        for owner in owners {
            self.shard().claimed_settled(owner).await?;
        }
        Ok(())
    }
}

impl ClaimedPartition {
    /// A timestamp in µs, later than all that this node has given, on whichever shard: what is written with it stands
    /// above all that was read, unless clients gave timestamps of the future.
    pub fn next_timestamp(&self) -> i64 {
        self.coordinator.shard().local().timestamps().next_after_all()
    }

    /// Reads rows of the partition.
    ///
    /// # Errors
    /// As [`Coordinator::read`].
    pub async fn read(&self, command: &ReadCommand) -> Result<ReadPage, CoordinatorError> {
        self.coordinator.read_from(self.admitted, self.owner, command).await
    }

    /// Writes mutations of the partition, all or none. The next one may claim the partition as soon as these can be
    /// read; this returns when they are on the disk.
    ///
    /// # Errors
    /// Nothing is written after `Overloaded`; after others it may be.
    ///
    /// # Cancel safety
    /// Dropped, the write may stand.
    pub async fn write(self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        trace::note(|| "Committing a conditional change".into());
        let ClaimedPartition { coordinator, owner, admitted, claim } = self;
        Ok(coordinator.shards_for(admitted).write_claimed(owner, mutations, claim).await?)
    }

    /// Lets the next one claim the partition; returns when what was read here may be told.
    ///
    /// # Errors
    /// The log failed.
    pub async fn leave(self) -> Result<(), CoordinatorError> {
        let ClaimedPartition { coordinator, owner, admitted, claim } = self;
        drop(claim);
        Ok(coordinator.shards_for(admitted).claimed_settled(owner).await?)
    }
}
