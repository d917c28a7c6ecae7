//! How a page is read from the shards that hold parts of it.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use read::{ReadCommand, ReadPage, ReadTarget};
use rows::PartitionKey;
use runtime::trace;
use storage::StorageError;

use crate::admission::Admitted;
use crate::assemble::{Order, assemble};
use crate::conditional::{settle_owners, settle_replicas};
use crate::handle::patience_within;
use crate::range::RangeRead;
use crate::replicas::{ReplicaError, Replicas, is_alone_with};
use crate::write::{ATTEMPTS_MAX, come_to};
use crate::{Consistency, Coordinator, CoordinatorError, Owners, TimeoutKind};

impl Coordinator {
    /// Reads one page.
    ///
    /// # Errors
    /// `Unavailable` and `Overloaded` at once; or a file that may hold part of the answer is damaged.
    pub async fn read(
        &self,
        command: &ReadCommand,
        consistency: Consistency,
    ) -> Result<ReadPage, CoordinatorError> {
        self.read_within(command, consistency, Duration::MAX).await
    }

    /// The same, for a request that has that much time left. Other nodes are waited for a little shorter, so that there
    /// is time to tell how many have answered.
    ///
    /// # Errors
    /// As [`Coordinator::read`].
    pub async fn read_within(
        &self,
        command: &ReadCommand,
        consistency: Consistency,
        time: Duration,
    ) -> Result<ReadPage, CoordinatorError> {
        if let Some(replicas) = self.replicas_of(command.table.id()) {
            let kind = match command.target {
                ReadTarget::Keys(_) => TimeoutKind::Read,
                ReadTarget::Range(_) => TimeoutKind::Range,
            };
            if consistency.is_serial() {
                // Boxed, as below.
                Box::pin(settle_replicas(self, command, consistency)).await?;
            }
            if let ReadTarget::Keys(keys) = &command.target
                && keys.len() > 1
                && is_alone_with(&replicas, command, keys, consistency)
            {
                return Box::pin(read_from_owners(self, Admitted::by_ring(), command)).await;
            }
            // Boxed, as below.
            let patience = self.patience(kind).min(patience_within(time));
            return Box::pin(read_until_current(self, replicas, command, consistency, (kind, patience)))
                .await;
        }
        let admitted = self.admit(command.table.id(), consistency)?;
        let page = read_from_owners(self, admitted, command).await?;
        if consistency.is_serial() {
            Box::pin(settle_owners(self, command)).await?;
        }
        Ok(page)
    }

    pub(crate) async fn read_from(
        &self,
        admitted: Admitted,
        owner: usize,
        command: &ReadCommand,
    ) -> Result<ReadPage, CoordinatorError> {
        let page = self.shards_for(admitted).read(owner, command).await;
        if !self.is_behind(&page) {
            return Ok(page?);
        }
        // Boxed, so that the many reads that are not behind need no room for it.
        Box::pin(self.give_schema(owner, self.schema())).await?;
        Ok(Box::pin(self.shards_for(admitted).read(owner, command)).await?)
    }
}

/// Reads one page from the shards of this node that own it.
async fn read_from_owners(
    coordinator: &Coordinator,
    admitted: Admitted,
    command: &ReadCommand,
) -> Result<ReadPage, CoordinatorError> {
    match &command.target {
        ReadTarget::Keys(keys) if keys.len() == 1 => {
            let owner = coordinator.owners().of(keys[0].token);
            coordinator.read_from(admitted, owner, command).await
        }
        ReadTarget::Keys(keys) => {
            let keys = rest(keys, command);
            let order = Order::Keys(keys.clone());
            let parts = keys_by_owner(coordinator.owners(), command, keys);
            Box::pin(Parts::new(coordinator, command, parts).read(admitted, order)).await
        }
        ReadTarget::Range(_) if coordinator.owners().count() == 1 => {
            coordinator.read_from(admitted, 0, command).await
        }
        // Boxed, so that reads by key need no room for it.
        ReadTarget::Range(range) => {
            Box::pin(RangeRead::new(coordinator, command, range).read(admitted)).await
        }
    }
}

/// Reads from the ring; again when the table was emptied since, and this node had not come so far.
pub(crate) async fn read_until_current(
    coordinator: &Coordinator,
    mut replicas: Rc<Replicas>,
    command: &ReadCommand,
    consistency: Consistency,
    (kind, patience): (TimeoutKind, Duration),
) -> Result<ReadPage, CoordinatorError> {
    for _ in 1..ATTEMPTS_MAX {
        match replicas.read(command, consistency, patience).await {
            Err(ReplicaError::Outdated { epoch }) => come_to(coordinator, epoch, kind).await?,
            outcome => return Ok(outcome?),
        }
        let Some(current) = coordinator.replicas_of(command.table.id()) else { break };
        replicas = current;
    }
    Ok(replicas.read(command, consistency, patience).await?)
}

/// What each of several shards is asked for a page. One of them may be this one.
pub(crate) struct Parts<'c> {
    coordinator: &'c Coordinator,
    command: &'c ReadCommand,
    /// This shard's own part goes last: the others work meanwhile.
    parts: Vec<(usize, ReadCommand)>,
}

impl<'c> Parts<'c> {
    /// Shares the room for the page among the parts.
    pub(crate) fn new(
        coordinator: &'c Coordinator,
        command: &'c ReadCommand,
        mut parts: Vec<(usize, ReadCommand)>,
    ) -> Self {
        let part_count = parts.len();
        for (_, part) in &mut parts {
            part.limits.bytes_max /= part_count;
            part.limits.bytes = part.limits.bytes.min(part.limits.bytes_max);
        }
        let here = coordinator.shard().local().index();
        parts.sort_by_key(|(owner, _)| *owner == here);
        Parts { coordinator, command, parts }
    }

    /// Reads all of them at once, and puts them together.
    pub(crate) async fn read(self, admitted: Admitted, order: Order) -> Result<ReadPage, CoordinatorError> {
        let part_count = self.parts.len();
        trace::note(|| format!("Submitting reads to {part_count} shards"));
        let coordinator = self.coordinator;
        let reads = self.parts.into_iter();
        let reads =
            reads.map(|(owner, part)| async move { coordinator.read_from(admitted, owner, &part).await });
        let mut pages = Vec::new();
        for page in join_all(reads).await {
            pages.push(page.map_err(|error| of_all(error, part_count))?);
        }
        Ok(assemble(pages, order, self.command))
    }
}

/// Each shard's keys in the order asked for, and the position only for the shard that it is on.
fn keys_by_owner(
    owners: Owners<'_>,
    command: &ReadCommand,
    keys: Vec<PartitionKey>,
) -> Vec<(usize, ReadCommand)> {
    let parts = owners.split(keys, |key| key.token).into_iter();
    parts.map(|(owner, keys)| (owner, command.of_keys(keys))).collect()
}

/// What has to be allowed for a row that is too large for one of several parts: as much for each.
pub(crate) fn of_all(error: CoordinatorError, part_count: usize) -> CoordinatorError {
    match error {
        CoordinatorError::Storage(StorageError::RowTooLarge { bytes }) => {
            CoordinatorError::Storage(StorageError::RowTooLarge { bytes: bytes.saturating_mul(part_count) })
        }
        error => error,
    }
}

/// The keys from the position on: without its own, if that gives no more.
pub(crate) fn rest(keys: &[PartitionKey], command: &ReadCommand) -> Vec<PartitionKey> {
    let place = command.resume.as_ref().and_then(|position| {
        let place = keys.iter().position(|key| *key == position.key)?;
        Some(if position.clustering.is_none() { place + 1 } else { place })
    });
    keys[place.unwrap_or(0)..].to_vec()
}
