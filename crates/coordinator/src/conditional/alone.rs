//! A partition that is claimed on a node that is alone.

use std::collections::BTreeSet;

use read::{ReadCommand, ReadPage, ReadTarget};
use rows::{Mutation, PartitionKey};
use schema::{Schema, TableId};
use storage::{Claim, StorageError, TableError, Wait};

use super::{ConditionalLevels, Settled};
use crate::admission::Admitted;
use crate::{Coordinator, CoordinatorError};

/// A claim on the shard that owns the partition.
pub(super) struct ClaimedAlone {
    coordinator: Coordinator,
    table: TableId,
    key: PartitionKey,
    owner: usize,
    admitted: Admitted,
    /// The epoch of the schema on which what is decided now is read.
    planned_on: u64,
    /// `None` once it has ended.
    claim: Option<Claim>,
}

/// Behind a read of partitions on a node that is alone: returns when no conditional change it has seen can be lost.
///
/// # Errors
/// The log failed.
pub(crate) async fn settle_owners(
    coordinator: &Coordinator,
    command: &ReadCommand,
) -> Result<(), CoordinatorError> {
    let ReadTarget::Keys(keys) = &command.target else { return Ok(()) };
    let owners: BTreeSet<usize> = keys.iter().map(|key| coordinator.owners().of(key.token)).collect();
    for owner in owners {
        coordinator.shard().claimed_settled(owner).await?;
    }
    Ok(())
}

impl ClaimedAlone {
    pub(super) async fn claim(
        coordinator: &Coordinator,
        table: TableId,
        key: &PartitionKey,
        levels: ConditionalLevels,
    ) -> Result<ClaimedAlone, CoordinatorError> {
        // Both levels before anything is done: nobody is told after a write that its level can not be had.
        coordinator.admit(table, levels.agreement)?;
        let admitted = coordinator.admit(table, levels.write)?;
        let owner = coordinator.owners().of(key.token);
        let claim = Some(coordinator.shards_for(admitted).claim(owner, table, key).await?);
        let (coordinator, key, planned_on) = (coordinator.clone(), key.clone(), 0);
        Ok(ClaimedAlone { coordinator, table, key, owner, admitted, planned_on, claim })
    }

    pub(super) fn ready(&mut self) {
        self.planned_on = self.coordinator.shard().local().with_schema(Schema::epoch);
    }

    pub(super) fn timestamp(&self) -> i64 {
        self.coordinator.shard().local().timestamps().next_after_all()
    }

    pub(super) async fn read(&self, command: &ReadCommand) -> Result<ReadPage, CoordinatorError> {
        self.coordinator.read_from(self.admitted, self.owner, command).await
    }

    /// The next one may claim the partition as soon as the write can be read; this returns when it is on the disk.
    pub(super) async fn write(&mut self, mutation: Mutation) -> Result<Settled, CoordinatorError> {
        assert!(self.claim.is_some(), "who writes has claimed the partition");
        let Some(claim) = self.claim.take() else { return Ok(Settled::Done) };
        let (shards, planned_on) = (self.coordinator.shards_for(self.admitted), Some(self.planned_on));
        match shards.write_claimed(self.owner, planned_on, vec![mutation], claim, Wait::Synced).await {
            Err(StorageError::Table(TableError::Outdated { .. })) => {
                self.claim = Some(shards.claim(self.owner, self.table, &self.key).await?);
                Ok(Settled::Again)
            }
            written => Ok(written.map(|()| Settled::Done)?),
        }
    }

    /// Ends the claim.
    pub(super) async fn leave(&mut self) -> Result<Settled, CoordinatorError> {
        self.claim = None;
        self.coordinator.shards_for(self.admitted).claimed_settled(self.owner).await?;
        Ok(Settled::Done)
    }
}
