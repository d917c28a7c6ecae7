//! How a change with a condition is made: under a claim on its partition, and in a ring as the replicas agree.
//!
//! ```text
//!   claim ─► ready ─► read ─► (the statement decides) ─┬─► write: it is made
//!              ▲                                       └─► leave: it is not, and what was read may be told
//!              └──────────────── others came before ──────┘
//! ```
//!
//! The one replica of a table of a node that is alone is the shard that owns the partition, and its claims are all there
//! is to agree on: who has one is ready, and nobody comes before. In a ring a claim only keeps this node's own clients
//! apart; what they do is agreed on by the replicas ([`Agreement`]).

use std::collections::BTreeSet;

use read::{ReadCommand, ReadPage, ReadTarget};
use rows::{Mutation, PartitionKey};
use runtime::trace;
use schema::TableId;
use storage::Claim;
use tokio::time::Instant;

use crate::admission::Admitted;
use crate::replicas::ReplicaError;
use crate::replicas::agreement::Agreement;
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
    owner: usize,
    admitted: Admitted,
    /// `None` once it has ended.
    claim: Option<Claim>,
    /// With the other replicas; `None` when there are none.
    agreement: Option<Agreement>,
}

impl Coordinator {
    /// Claims a partition for a change with a condition, as soon as nobody else does.
    ///
    /// # Errors
    /// `Unavailable` and `Overloaded`: nothing was done.
    ///
    /// # Cancel safety
    /// Dropped, the place in the queue is given up.
    pub async fn claim(
        &self,
        table: TableId,
        key: &PartitionKey,
        levels: ConditionalLevels,
    ) -> Result<ClaimedPartition, CoordinatorError> {
        let replicas = self.replicas_of(table);
        // Both before anything is done: nobody is told after a write that its level can not be had.
        let admitted = match &replicas {
            None => {
                self.admit(table, levels.agreement)?;
                self.admit(table, levels.write)?
            }
            Some(replicas) => {
                for level in [levels.agreement, levels.write] {
                    replicas.check_level(table, key.token, level)?;
                }
                Admitted::by_ring()
            }
        };
        let owner = self.owners().of(key.token);
        trace::note(|| "Waiting for other conditional changes of the partition".into());
        let claim = Some(self.shards_for(admitted).claim(owner, table, key).await?);
        let patience = self.patience(TimeoutKind::Write);
        let agreement =
            replicas.map(|replicas| Agreement::new(replicas, table, key.clone(), levels, patience));
        Ok(ClaimedPartition { coordinator: self.clone(), table, owner, admitted, claim, agreement })
    }

    /// Makes sure that a read of one partition, which begins behind this, shows all conditional changes that were made
    /// before, and none that could be lost. For others it does what there is to be done.
    pub(crate) async fn settle_serial(
        &self,
        command: &ReadCommand,
        level: Consistency,
    ) -> Result<(), CoordinatorError> {
        let ReadTarget::Keys(keys) = &command.target else { return Ok(()) };
        if self.replicas_of(command.table.id()).is_none() {
            let owners: BTreeSet<usize> = keys.iter().map(|key| self.owners().of(key.token)).collect();
            for owner in owners {
                self.shard().claimed_settled(owner).await?;
            }
            return Ok(());
        }
        let levels = ConditionalLevels { agreement: level, write: level };
        for key in keys {
            let mut claimed = self.claim(command.table.id(), key, levels).await?;
            loop {
                claimed.ready().await?;
                if claimed.leave().await? == Settled::Done {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl ClaimedPartition {
    /// Makes good what others have left unfinished.
    ///
    /// # Errors
    /// Too few replicas live or have answered; `InDoubt` when what was proposed before may have been made.
    pub async fn ready(&mut self) -> Result<Ready, CoordinatorError> {
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

    /// A timestamp in µs for what is decided now: on a node that is alone later than all that it has given, on whichever
    /// shard, so that it stands above all that was read unless clients gave timestamps of the future.
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
                let patience = self.coordinator.patience(TimeoutKind::Read);
                Ok(agreement.replicas().read(command, agreement.level(), patience).await?)
            }
        }
    }

    /// Writes a mutation of the partition, unless others came before. On a node that is alone the next one may claim the
    /// partition as soon as it can be read; this returns when it is on the disk.
    ///
    /// # Errors
    /// Nothing is written after `Overloaded`; after others it may be.
    ///
    /// # Cancel safety
    /// Dropped, the write may stand.
    pub async fn write(&mut self, mutation: Mutation) -> Result<Settled, CoordinatorError> {
        assert!(self.claim.is_some(), "who writes has claimed the partition");
        trace::note(|| "Committing a conditional change".into());
        if self.agreement.is_some() {
            return self.settle(Some(mutation)).await;
        }
        if let Some(claim) = self.claim.take() {
            let shards = self.coordinator.shards_for(self.admitted);
            shards.write_claimed(self.owner, vec![mutation], claim).await?;
        }
        Ok(Settled::Done)
    }

    /// Leaves the partition as it is, for good on a node that is alone; returns when what was read may be told, unless others came before.
    ///
    /// # Errors
    /// The log failed, or too few replicas have answered.
    pub async fn leave(&mut self) -> Result<Settled, CoordinatorError> {
        if self.agreement.is_some() {
            return self.settle(None).await;
        }
        self.claim = None;
        self.coordinator.shards_for(self.admitted).claimed_settled(self.owner).await?;
        Ok(Settled::Done)
    }

    async fn settle(&mut self, mutation: Option<Mutation>) -> Result<Settled, CoordinatorError> {
        let Some(agreement) = &mut self.agreement else { return Ok(Settled::Done) };
        let deadline = Instant::now() + self.coordinator.patience(TimeoutKind::Write);
        match agreement.settle(mutation, deadline).await {
            Err(ReplicaError::Outdated { epoch }) => {
                come_to(&self.coordinator, epoch, TimeoutKind::Write).await?;
                Ok(Settled::Again)
            }
            outcome => Ok(outcome?),
        }
    }
}
