//! How a write reaches the shards that own it.

use rows::Mutation;
use storage::StorageError;
use tokio::task::JoinSet;

use crate::{Consistency, Coordinator, CoordinatorError};

impl Coordinator {
    /// Writes independent mutations: one statement, or an unlogged batch. Those of one shard, and so
    /// all of one partition, are atomic together. Returns when all are durable in the sense of the
    /// sync mode.
    ///
    /// # Errors
    /// `Unavailable` and `Overloaded` before anything is written; otherwise some may be.
    pub async fn write(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
    ) -> Result<(), CoordinatorError> {
        for mutation in &mutations {
            consistency.check(self.replication_factor(mutation.table))?;
        }
        self.write_to_owners(mutations).await
    }

    pub(crate) async fn write_to_owners(&self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let Some(first) = mutations.first() else { return Ok(()) };
        let owner = self.shard.shards().owner(first.key.token);
        if mutations.iter().all(|mutation| self.shard.shards().owner(mutation.key.token) == owner) {
            return self.write_to(owner, mutations).await;
        }
        let mut writes = JoinSet::new();
        for (owner, part) in self.by_owner(mutations) {
            let shard = self.shard.clone();
            writes.spawn_local(async move {
                shard
                    .on(owner, move |shard| async move { shard.write(&part).await })
                    .await
                    .and_then(|done| done)
            });
        }
        while let Some(written) = writes.join_next().await {
            written.map_err(|_| CoordinatorError::ShuttingDown)??;
        }
        Ok(())
    }

    async fn write_to(&self, owner: usize, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let local = self.shard.local();
        let written: Result<(), StorageError> = match owner == local.index() {
            true => local.write(&mutations).await,
            false => {
                self.shard
                    .shards()
                    .on(owner, move |shard| async move { shard.write(&mutations).await })
                    .await?
            }
        };
        Ok(written?)
    }

    pub(crate) fn by_owner(&self, mutations: Vec<Mutation>) -> Vec<(usize, Vec<Mutation>)> {
        let mut parts: Vec<Vec<Mutation>> = (0..self.shard.shards().count()).map(|_| Vec::new()).collect();
        for mutation in mutations {
            parts[self.shard.shards().owner(mutation.key.token)].push(mutation);
        }
        parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()).collect()
    }
}
