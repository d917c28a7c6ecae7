//! How a page is read from the shards that hold parts of it.

use futures_util::future::join_all;
use read::{ReadCommand, ReadPage, ReadTarget};
use rows::PartitionKey;
use runtime::trace;
use storage::StorageError;

use crate::assemble::{Order, assemble};
use crate::{Consistency, Coordinator, CoordinatorError};

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
        consistency.check(self.replication_factor(command.table.id()))?;
        match &command.target {
            ReadTarget::Keys(keys) if keys.len() == 1 => {
                let owner = self.shard.shards().owner(keys[0].token);
                self.read_from(owner, command).await
            }
            ReadTarget::Keys(keys) => {
                let keys = rest(keys, command);
                let order = Order::Keys(keys.clone());
                let parts = self.keys_by_owner(command, keys);
                Box::pin(self.read_parts(command, parts, order)).await
            }
            ReadTarget::Range(_) if self.shard.shards().count() == 1 => self.read_from(0, command).await,
            // Boxed, so that reads by key need no room for it.
            ReadTarget::Range(range) => Box::pin(self.read_range(command.clone(), range)).await,
        }
    }

    pub(crate) async fn read_from(
        &self,
        owner: usize,
        command: &ReadCommand,
    ) -> Result<ReadPage, CoordinatorError> {
        let page = self.shard.read(owner, command).await;
        if !self.is_behind(&page) {
            return Ok(page?);
        }
        // Boxed, so that the many reads that are not behind need no room for it.
        Box::pin(self.give_schema(owner, self.schema())).await?;
        Ok(Box::pin(self.shard.read(owner, command)).await?)
    }

    /// Reads from several shards at once; one of them may be this one.
    pub(crate) async fn read_parts(
        &self,
        command: &ReadCommand,
        mut parts: Vec<(usize, ReadCommand)>,
        order: Order,
    ) -> Result<ReadPage, CoordinatorError> {
        trace::note(|| format!("Submitting reads to {} shards", parts.len()));
        let part_count = parts.len();
        for (_, part) in &mut parts {
            part.limits.bytes_max /= part_count;
            part.limits.bytes = part.limits.bytes.min(part.limits.bytes_max);
        }
        // This shard's own part goes last: the others work meanwhile.
        let here = self.shard.local().index();
        parts.sort_by_key(|(owner, _)| *owner == here);
        let reads = parts.into_iter().map(|(owner, part)| async move { self.read_from(owner, &part).await });
        let mut pages = Vec::new();
        for page in join_all(reads).await {
            pages.push(page.map_err(|error| of_all(error, part_count))?);
        }
        Ok(assemble(pages, order, command))
    }

    /// Each shard's keys in the order asked for, and the position only for the shard that it is on.
    fn keys_by_owner(&self, command: &ReadCommand, keys: Vec<PartitionKey>) -> Vec<(usize, ReadCommand)> {
        let shards = self.shard.shards();
        let mut parts: Vec<Vec<PartitionKey>> = (0..shards.count()).map(|_| Vec::new()).collect();
        for key in keys {
            parts[shards.owner(key.token)].push(key);
        }
        let of_owner = |(owner, keys): (usize, Vec<PartitionKey>)| {
            let resume = command.resume.clone().filter(|position| shards.owner(position.key.token) == owner);
            (owner, ReadCommand { target: ReadTarget::Keys(keys), resume, ..command.clone() })
        };
        parts.into_iter().enumerate().filter(|(_, keys)| !keys.is_empty()).map(of_owner).collect()
    }
}

/// What has to be allowed for a row that is too large for one of several parts: as much for each.
fn of_all(error: CoordinatorError, part_count: usize) -> CoordinatorError {
    match error {
        CoordinatorError::Storage(StorageError::RowTooLarge { bytes }) => {
            CoordinatorError::Storage(StorageError::RowTooLarge { bytes: bytes.saturating_mul(part_count) })
        }
        error => error,
    }
}

/// The keys from the position on.
fn rest(keys: &[PartitionKey], command: &ReadCommand) -> Vec<PartitionKey> {
    let place = command.resume.as_ref().and_then(|position| keys.iter().position(|key| *key == position.key));
    keys[place.unwrap_or(0)..].to_vec()
}
