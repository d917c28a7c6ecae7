//! How a change with a condition is made: under a claim on its partition, and in a ring as the replicas agree.
//!
//! ```text
//!   claim ─► ready ─► read ─► (the statement decides) ─┬─► write: it is made
//!              ▲                                       └─► leave: it is not, and what was read may be told
//!              └──────────────── others came before ──────┘
//! ```
//!
//! The one replica of a table of a node that is alone is the shard that owns the partition, and its claims are all
//! there is to agree on: who has one is ready, and nobody comes before. In a ring a claim only keeps this node's own
//! clients apart; what they do is agreed on by the replicas ([`Agreement`]).

use std::collections::BTreeSet;
use std::rc::Rc;

use read::{ReadCommand, ReadPage, ReadTarget};
use rows::{Mutation, PartitionKey};
use runtime::trace;
use schema::{Schema, TableId};
use storage::{Claim, StorageError, TableError, Wait};
use tokio::time::Instant;

use crate::admission::Admitted;
use crate::read::{read_until_current, rest};
use crate::replicas::agreement::Agreement;
use crate::replicas::{ReplicaError, TooFew};
use crate::write::come_to;
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

pub use crate::replicas::agreement::{Ready, Settled};

/// The levels of a change with a condition.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalLevels {
    /// At which replicas agree on it: `SERIAL` or `LOCAL_SERIAL`.
    pub agreement: Consistency,
    /// At which it is written then.
    pub write: Consistency,
}

/// A partition that no other client of this node changes by a condition, until this is dropped.
pub struct ClaimedPartition {
    coordinator: Coordinator,
    table: TableId,
    key: PartitionKey,
    owner: usize,
    admitted: Admitted,
    /// The epoch of the schema on which what is decided now is read.
    planned_on: u64,
    /// `None` once it has ended.
    claim: Option<Claim>,
    /// With the other replicas; `None` when there are none.
    agreement: Option<Agreement>,
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
    let levels = ConditionalLevels { agreement: level, write: level };
    for key in rest(keys, command) {
        settle_partition(coordinator, command.table.id(), &key, levels).await.map_err(of_read)?;
    }
    Ok(())
}

async fn settle_partition(
    coordinator: &Coordinator,
    table: TableId,
    key: &PartitionKey,
    levels: ConditionalLevels,
) -> Result<(), CoordinatorError> {
    let mut claimed = ClaimedPartition::claim(coordinator, table, key, levels).await?;
    loop {
        claimed.ready().await?;
        if claimed.leave().await? == Settled::Done {
            return Ok(());
        }
    }
}

/// What stands in the way of agreeing is told to who reads as what stands in the way of the read.
fn of_read(error: CoordinatorError) -> CoordinatorError {
    match error {
        CoordinatorError::TooFew(too_few) => CoordinatorError::TooFew(TooFew { is_write: false, ..too_few }),
        CoordinatorError::Chosen { received, required } => {
            CoordinatorError::TooFew(TooFew { is_write: false, received, required, failures: Vec::new() })
        }
        error => error,
    }
}

impl ClaimedPartition {
    /// Claims a partition for a change with a condition, as soon as nobody else does.
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
        // Both levels before anything is done: nobody is told after a write that its level can not be had.
        let (admitted, agreement) = match coordinator.replicas_of(table) {
            None => {
                coordinator.admit(table, levels.agreement)?;
                (coordinator.admit(table, levels.write)?, None)
            }
            Some(replicas) => {
                let patience = coordinator.patience(TimeoutKind::Write);
                let agreement = Agreement::new(replicas, table, key.clone(), levels, patience)?;
                (Admitted::by_ring(), Some(agreement))
            }
        };
        let owner = coordinator.owners().of(key.token);
        trace::note(|| "Waiting for other conditional changes of the partition".into());
        let claim = Some(coordinator.shards_for(admitted).claim(owner, table, key).await?);
        let (coordinator, key, planned_on) = (coordinator.clone(), key.clone(), 0);
        Ok(ClaimedPartition { coordinator, table, key, owner, admitted, planned_on, claim, agreement })
    }

    /// Makes good what others have left unfinished.
    ///
    /// # Errors
    /// Too few replicas live or have answered; `InDoubt` when what was proposed before may have been made.
    pub async fn ready(&mut self) -> Result<Ready, CoordinatorError> {
        self.planned_on = self.coordinator.shard().local().with_schema(Schema::epoch);
        let Some(agreement) = &mut self.agreement else { return Ok(Ready::ToDecide) };
        let deadline = Instant::now() + self.coordinator.patience(TimeoutKind::Contention);
        loop {
            if let Some(replicas) = self.coordinator.replicas_of(self.table) {
                agreement.renew(replicas);
            }
            match agreement.ready(deadline).await {
                Err(ReplicaError::Outdated { epoch }) => {
                    come_to(&self.coordinator, epoch, TimeoutKind::Contention).await?;
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// A timestamp in µs for what is decided now: on a node that is alone later than all that it has given, on
    /// whichever shard, so that it stands above all that was read unless clients gave timestamps of the future.
    pub fn timestamp(&self) -> i64 {
        match &self.agreement {
            Some(agreement) => agreement.timestamp(),
            None => self.coordinator.shard().local().timestamps().next_after_all(),
        }
    }

    /// Was a change proposed of which nobody knows whether it was made?
    pub fn is_in_doubt(&self) -> bool {
        self.agreement.as_ref().is_some_and(Agreement::is_in_doubt)
    }

    /// Reads rows of the partition.
    ///
    /// # Errors
    /// As [`Coordinator::read`].
    pub async fn read(&self, command: &ReadCommand) -> Result<ReadPage, CoordinatorError> {
        match &self.agreement {
            None => self.coordinator.read_from(self.admitted, self.owner, command).await,
            Some(agreement) => {
                let (kind, replicas) = (TimeoutKind::Read, Rc::clone(agreement.replicas()));
                let within = (kind, self.coordinator.patience(kind));
                read_until_current(&self.coordinator, replicas, command, agreement.level(), within).await
            }
        }
    }

    /// Writes a mutation of the partition, unless others came before. On a node that is alone the next one may claim
    /// the partition as soon as it can be read; this returns when it is on the disk.
    ///
    /// # Errors
    /// Nothing is written after `Overloaded`; after others it may be.
    ///
    /// # Cancel safety
    /// Dropped, the write may stand.
    pub async fn write(&mut self, mutation: Mutation) -> Result<Settled, CoordinatorError> {
        assert!(self.claim.is_some(), "who writes has claimed the partition");
        trace::note(|| "Committing a conditional change".into());
        if let Some(agreement) = &mut self.agreement {
            return settle(&self.coordinator, agreement, Some(mutation)).await;
        }
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

    /// Leaves the partition as it is, unless others came before; returns when what was read may be told. On a node that
    /// is alone its claim ends.
    ///
    /// # Errors
    /// The log failed, or too few replicas have answered.
    pub async fn leave(&mut self) -> Result<Settled, CoordinatorError> {
        if let Some(agreement) = &mut self.agreement {
            return settle(&self.coordinator, agreement, None).await;
        }
        self.claim = None;
        self.coordinator.shards_for(self.admitted).claimed_settled(self.owner).await?;
        Ok(Settled::Done)
    }
}

/// Proposes to the other replicas what was decided, by the schema as they know it.
async fn settle(
    coordinator: &Coordinator,
    agreement: &mut Agreement,
    mutation: Option<Mutation>,
) -> Result<Settled, CoordinatorError> {
    let deadline = Instant::now() + coordinator.patience(TimeoutKind::Write);
    match agreement.settle(mutation, deadline).await {
        Err(ReplicaError::Outdated { epoch }) => {
            come_to(coordinator, epoch, TimeoutKind::Write).await?;
            Ok(Settled::Again)
        }
        outcome => Ok(outcome?),
    }
}
