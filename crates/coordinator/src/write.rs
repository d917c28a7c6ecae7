//! How a write reaches the shards that own it.

use rows::Mutation;
use runtime::trace;
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
        self.check(&mutations, consistency)?;
        self.write_to_owners(mutations).await
    }

    /// Are there replicas enough for these?
    ///
    /// # Errors
    /// `Unavailable`.
    pub(crate) fn check(
        &self,
        mutations: &[Mutation],
        consistency: Consistency,
    ) -> Result<(), CoordinatorError> {
        mutations
            .chunk_by(|one, other| one.table == other.table)
            .try_for_each(|of_table| consistency.check(self.replication_factor(of_table[0].table)))
    }

    pub(crate) async fn write_to_owners(&self, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let Some(first) = mutations.first() else { return Ok(()) };
        trace::note(|| "Determining replicas for mutation".into());
        let owner = self.shard.shards().owner(first.key.token);
        if mutations.iter().all(|mutation| self.shard.shards().owner(mutation.key.token) == owner) {
            return self.write_to(owner, mutations).await;
        }
        let mut writes = JoinSet::new();
        for (owner, part) in self.by_owner(mutations) {
            let coordinator = self.clone();
            let write = async move { coordinator.write_to(owner, part).await };
            writes.spawn_local(runtime::measured("write", trace::carry(trace::current(), write)));
        }
        let mut result = Ok(());
        while let Some(written) = writes.join_next().await {
            // All parts are waited for: an error must not take back what another shard is doing.
            result = result.and(written.map_err(CoordinatorError::from).and_then(|done| done));
        }
        result
    }

    async fn write_to(&self, owner: usize, mutations: Vec<Mutation>) -> Result<(), CoordinatorError> {
        let written = self.shard.write(owner, &mutations).await;
        if !self.is_behind(&written) {
            return Ok(written?);
        }
        // Boxed, so that the many writes that are not behind need no room for it.
        Box::pin(self.give_schema(owner, self.schema())).await?;
        Ok(Box::pin(self.shard.write(owner, &mutations)).await?)
    }

    /// Does another shard not know a table yet that this one knows?
    pub(crate) fn is_behind<T>(&self, outcome: &Result<T, StorageError>) -> bool {
        match outcome {
            Err(StorageError::NoTable { table }) => self.schema().table_by_id(*table).is_some(),
            _ => false,
        }
    }

    pub(crate) fn by_owner(&self, mutations: Vec<Mutation>) -> Vec<(usize, Vec<Mutation>)> {
        let (shards, mutation_count) = (self.shard.shards(), mutations.len());
        let mut counts = vec![0; shards.count()];
        mutations.iter().for_each(|mutation| counts[shards.owner(mutation.key.token)] += 1);
        let mut parts: Vec<Vec<Mutation>> = counts.into_iter().map(Vec::with_capacity).collect();
        for mutation in mutations {
            parts[shards.owner(mutation.key.token)].push(mutation);
        }
        let parted_count: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(parted_count, mutation_count, "every mutation goes to its owner");
        parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()).collect()
    }
}
