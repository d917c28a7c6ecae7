//! A partition that is claimed on a node that is alone.

use std::collections::BTreeSet;

use bytes::Bytes;
use read::{ReadCommand, ReadPage, ReadTarget};
use replica::{Ballot, Operation};
use rows::{Mutation, PartitionKey};
use schema::{Schema, TableId};
use storage::{Claim, Settles, StorageError, TableError, Wait};
use uuid::Uuid;

use super::{ConditionalLevels, Settled, operations_of, outcome_here};
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

    pub(super) async fn outcome(&self, id: Uuid) -> Result<Option<Bytes>, CoordinatorError> {
        outcome_here(&self.coordinator, self.table, &self.key, id).await
    }

    /// The next one may claim the partition as soon as the write can be read; this returns when it is on the disk.
    pub(super) async fn settle(
        &mut self,
        mutation: Option<Mutation>,
        operation: Option<(Uuid, Bytes)>,
    ) -> Result<Settled, CoordinatorError> {
        let operation = operation.map(|operation| self.written_of(operation)).transpose()?.flatten();
        let mutations: Vec<_> = mutation.into_iter().chain(operation).collect();
        if mutations.is_empty() {
            self.claim = None;
            self.coordinator.shards_for(self.admitted).claimed_settled(self.owner).await?;
            return Ok(Settled::Done);
        }
        assert!(self.claim.is_some(), "who writes has claimed the partition");
        let Some(claim) = self.claim.take() else { return Ok(Settled::Done) };
        let (shards, planned_on) = (self.coordinator.shards_for(self.admitted), Some(self.planned_on));
        let (write, wait) = ((mutations, Settles::Nothing), Wait::Synced);
        match shards.write_claimed(self.owner, planned_on, write, claim, wait).await {
            Err(StorageError::Table(TableError::Outdated { .. })) => {
                self.claim = Some(shards.claim(self.owner, self.table, &self.key).await?);
                Ok(Settled::Again)
            }
            written => Ok(written.map(|()| Settled::Done)?),
        }
    }

    /// What is written of an operation.
    fn written_of(&self, (id, outcome): (Uuid, Bytes)) -> Result<Option<Mutation>, CoordinatorError> {
        let operation = Operation { id, origin: Ballot::default(), outcome };
        let log = operations_of(&self.coordinator, self.table)?;
        let at = (self.timestamp(), self.coordinator.now_seconds());
        Ok(log.mutation(&self.key, &[operation], at))
    }
}
