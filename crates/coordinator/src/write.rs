//! How a write reaches the shards that own it.

use std::rc::Rc;

use rows::Mutation;
use runtime::trace;
use schema::Schema;
use storage::{Shard, StorageError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::admission::Admitted;
use crate::batch_keeper::keep;
use crate::replicas::{ReplicaError, Replicas, TooFew};
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

impl Coordinator {
    /// Writes independent mutations: one statement, or an unlogged batch. Those of one shard, and so
    /// all of one partition, are atomic together. Returns when all are durable in the sense of the
    /// sync mode.
    ///
    /// # Errors
    /// Nothing is written after `Unavailable` and `Overloaded`. After others some may be; after `Unfinished` some is.
    pub async fn write(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
    ) -> Result<(), CoordinatorError> {
        let split = OfRing::of(self, mutations);
        let admitted = self.admit_all(&split.local, consistency)?;
        if split.replicas.is_none() {
            return self.write_to_owners(admitted, split.local).await;
        }
        // Boxed, so that a node alone needs no room for it.
        Box::pin(write_until_current(self, admitted, split, consistency)).await
    }

    /// Writes those of the ring to their replicas, and then this node's own.
    pub(crate) async fn write_split(
        &self,
        admitted: Admitted,
        split: OfRing,
        consistency: Consistency,
    ) -> Result<(), CoordinatorError> {
        let OfRing { replicas, local, replicated } = split;
        if let Some(replicas) = replicas {
            write_to_replicas(self, &replicas, replicated, consistency).await?;
        }
        self.write_to_owners(admitted, local).await
    }

    /// Returns when no write that is under way on the node now has anything in memory any more, also none whose asker
    /// was told that it is late, or has gone.
    ///
    /// # Cancel safety
    /// Dropped, nothing is lost.
    pub async fn writes_ended(&self) {
        for shard in 0..self.owners().count() {
            let ended = |shard: Rc<Shard>| async move { shard.writes().ended().await };
            // A shard that has ended has no writes.
            _ = self.shard().on_when_free(shard, ended).await;
        }
    }

    pub(crate) async fn write_to_owners(
        &self,
        admitted: Admitted,
        mutations: Vec<Mutation>,
    ) -> Result<(), CoordinatorError> {
        if mutations.is_empty() {
            return Ok(());
        }
        trace::note(|| "Determining replicas for mutation".into());
        if let Some(owner) = self.owners().of_all(mutations.iter().map(|mutation| mutation.key.token)) {
            return self.write_to(admitted, owner, mutations).await;
        }
        let mut writes = JoinSet::new();
        for (owner, part) in self.owners().split(mutations, |mutation| mutation.key.token) {
            let coordinator = self.clone();
            let write = async move { coordinator.write_to(admitted, owner, part).await };
            writes.spawn_local(runtime::measured("write", trace::carry(trace::current(), write)));
        }
        let mut parts = Parts::refused_by(|error| matches!(error, CoordinatorError::Overloaded { .. }));
        while let Some(written) = writes.join_next().await {
            // All parts are waited for: an error must not take back what another shard is doing.
            parts.take_in(written.map_err(CoordinatorError::from).and_then(|done| done));
        }
        parts.outcome()
    }

    async fn write_to(
        &self,
        admitted: Admitted,
        owner: usize,
        mutations: Vec<Mutation>,
    ) -> Result<(), CoordinatorError> {
        let written = self.shards_for(admitted).write(owner, &mutations).await;
        if !self.is_behind(&written) {
            return Ok(written?);
        }
        // Boxed, so that the many writes that are not behind need no room for it.
        Box::pin(self.give_schema(owner, self.schema())).await?;
        Ok(Box::pin(self.shards_for(admitted).write(owner, &mutations)).await?)
    }

    /// Does another shard not know a table yet that this one knows?
    pub(crate) fn is_behind<T>(&self, outcome: &Result<T, StorageError>) -> bool {
        let missing = outcome.as_ref().err().and_then(StorageError::missing_table);
        missing.is_some_and(|table| self.schema().table_by_id(table).is_some())
    }
}

/// Writes to the ring; again when a table was emptied since, and this node had not come so far.
async fn write_until_current(
    coordinator: &Coordinator,
    admitted: Admitted,
    mut split: OfRing,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    for _ in 1..ATTEMPTS_MAX {
        match coordinator.write_split(admitted, split.clone(), consistency).await {
            Err(CoordinatorError::Outdated { epoch }) => {
                come_to(coordinator, epoch, TimeoutKind::Write).await?;
                split.replicas = coordinator.seat().and_then(|seat| seat.replicas());
            }
            outcome => return outcome,
        }
    }
    coordinator.write_split(admitted, split, consistency).await
}

/// Writes to replicas. At `ANY` it is enough that this node keeps what no replica can take now, until they can.
async fn write_to_replicas(
    coordinator: &Coordinator,
    replicas: &Replicas,
    mutations: Vec<Mutation>,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    let patience = coordinator.patience(TimeoutKind::Write);
    if consistency != Consistency::Any {
        return Ok(replicas.write(mutations, consistency, patience).await?);
    }
    match replicas.write(mutations.clone(), consistency, patience).await {
        Err(ReplicaError::Unavailable { .. }) => {
            trace::note(|| "Keeping a write of which no replica lives".into());
            let planned_on = replicas.planned_on();
            keep(coordinator, coordinator.time_uuid(), &mutations, planned_on, Instant::now()).await
        }
        written => Ok(written?),
    }
}

/// Waits until this node has come to an epoch of the schema that others have.
pub(crate) async fn come_to(
    coordinator: &Coordinator,
    epoch: u64,
    kind: TimeoutKind,
) -> Result<(), CoordinatorError> {
    let Some(seat) = coordinator.seat() else { return Ok(()) };
    let come = tokio::time::timeout(coordinator.patience(kind), seat.known().schema_is_here(epoch)).await;
    let is_write = matches!(kind, TimeoutKind::Write | TimeoutKind::Count);
    let (received, required, failures) = (0, 1, Vec::new());
    come.map_err(|_| CoordinatorError::TooFew(TooFew { is_write, received, required, failures }))
}

/// Are these of one partition? Tables of a keyspace share its partitions: what has one key in them is on the same
/// replicas, and each writes it as one record.
pub fn are_of_one_partition(mutations: &[Mutation], schema: &Schema) -> bool {
    let Some((first, others)) = mutations.split_first() else { return true };
    let keyspace_of = |mutation: &Mutation| schema.keyspace_of(mutation.table).map(|keyspace| &keyspace.name);
    let is_same = |other: &Mutation| other.key == first.key && keyspace_of(other) == keyspace_of(first);
    others.iter().all(is_same)
}

/// So often something is tried whose table was emptied meanwhile.
pub(crate) const ATTEMPTS_MAX: usize = 4;

/// Mutations, by where they go.
#[derive(Clone)]
pub(crate) struct OfRing {
    /// The way to the replicas; `None` when all are of this node's own tables.
    pub(crate) replicas: Option<Rc<Replicas>>,
    pub(crate) local: Vec<Mutation>,
    pub(crate) replicated: Vec<Mutation>,
}

impl OfRing {
    /// Mutations of this node's own tables, and those of the ring.
    pub(crate) fn of(coordinator: &Coordinator, mutations: Vec<Mutation>) -> OfRing {
        let replicas = coordinator.seat().and_then(|seat| seat.replicas());
        let Some(replicas) = replicas else {
            return OfRing { replicas, local: mutations, replicated: Vec::new() };
        };
        let (replicated, local): (Vec<_>, Vec<_>) =
            mutations.into_iter().partition(|mutation| replicas.has(mutation.table));
        let replicas = (!replicated.is_empty()).then_some(replicas);
        OfRing { replicas, local, replicated }
    }
}

/// How the parts of a write have come out.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Of a part that was not begun.
    is_refusal: fn(&CoordinatorError) -> bool,
    is_one_written: bool,
    /// Why the first was not begun.
    refusal: Option<CoordinatorError>,
    /// Why the first failed that did otherwise.
    failure: Option<CoordinatorError>,
}

impl Parts {
    /// None yet. Errors of that kind say of a part that it was not begun.
    pub(crate) fn refused_by(is_refusal: fn(&CoordinatorError) -> bool) -> Parts {
        Parts { is_refusal, is_one_written: false, refusal: None, failure: None }
    }

    pub(crate) fn take_in(&mut self, part: Result<(), CoordinatorError>) {
        match part {
            Ok(()) => self.is_one_written = true,
            Err(refusal) if (self.is_refusal)(&refusal) => _ = self.refusal.get_or_insert(refusal),
            Err(failure) => _ = self.failure.get_or_insert(failure),
        }
    }

    /// How the write has. A failure comes first: it may have left something, which a refusal denies.
    pub(crate) fn outcome(self) -> Result<(), CoordinatorError> {
        match (self.failure, self.refusal) {
            (Some(failure), _) => Err(failure),
            (None, Some(refusal)) if self.is_one_written => Err(refusal.of_what_is_begun()),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use rows::{MutationBuilder, PartitionKey};
    use schema::{ColumnKind, Keyspace, Replication, TableBuilder, TableId};
    use types::CqlType;
    use uuid::Uuid;

    use super::*;

    fn keyspace(name: &str, tables: [u128; 2]) -> Keyspace {
        let table = |id: u128| {
            let table = TableBuilder::new(TableId(Uuid::from_u128(id)), name, format!("t{id}")).column(
                "pk",
                ColumnKind::PartitionKey(0),
                CqlType::Int,
            );
            (format!("t{id}"), Arc::new(table.build().expect("a sound table")))
        };
        Keyspace {
            name: name.into(),
            replication: Replication { class: "LocalStrategy".into(), options: BTreeMap::new() },
            durable_writes: true,
            tables: tables.map(table).into_iter().collect(),
            types: BTreeMap::new(),
        }
    }

    #[test]
    fn what_has_one_key_in_one_keyspace_is_of_one_partition() {
        let schema = Schema::new(0, [keyspace("a", [1, 2]), keyspace("b", [3, 4])]);
        let is_one = |mutations: &[(u128, u8)]| {
            let mutation = |&(table, key): &(u128, u8)| {
                let key = PartitionKey::new(vec![0, 0, 0, key].into());
                MutationBuilder::new(TableId(Uuid::from_u128(table)), key).finish()
            };
            are_of_one_partition(&mutations.iter().map(mutation).collect::<Vec<_>>(), &schema)
        };
        assert!(is_one(&[]) && is_one(&[(1, 7)]) && is_one(&[(1, 7), (1, 7), (2, 7)]));
        assert!(!is_one(&[(1, 7), (1, 8)]), "another key");
        assert!(!is_one(&[(1, 7), (3, 7)]), "another keyspace");
        assert!(!is_one(&[(1, 7), (1, 7), (4, 8)]), "both");
    }
}
