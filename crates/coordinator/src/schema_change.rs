//! How a schema change comes into force.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::MetadataError;
use cluster::membership::{Known, ProposeError};
use cluster::metadata::{Command, Entry, Refusal};
use schema::{Schema, Transformation};
use storage::{Shard, StorageError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::replicas::{RingSeat, truncate_as_agreed};
use crate::{Coordinator, CoordinatorError};

impl Coordinator {
    /// Commits one change of the schema planned against epoch `based_on`, and returns when all
    /// shards have the schema after it.
    ///
    /// # Errors
    /// `SchemaMoved` when another change came first: plan again against [`Coordinator::schema`].
    ///
    /// # Cancel safety
    /// Dropped, the change goes on: shards must not be left with different schemas.
    pub async fn change_schema(
        &self,
        change: Transformation,
        based_on: u64,
    ) -> Result<Arc<Schema>, CoordinatorError> {
        if let Some(seat) = self.seat() {
            return Box::pin(Rc::clone(seat).change_schema(change, based_on)).await;
        }
        let change = SchemaChange { coordinator: self.clone(), change, based_on };
        let failsafe = self.runtime().failsafe.clone();
        let work = runtime::spawn_local("schema change", async move {
            failsafe.guarded("a change of the schema", Box::pin(change.commit())).await
        });
        work.await?
    }

    /// Hands a shard a schema, which it takes if it has an older one.
    pub(crate) async fn give_schema(
        &self,
        owner: usize,
        schema: Arc<Schema>,
    ) -> Result<(), CoordinatorError> {
        let take = move |shard: Rc<Shard>| async move { shard.take_schema(schema).await };
        Ok(self.shard().on_when_free(owner, take).await??)
    }
}

impl RingSeat {
    /// Proposes it to the ring, and returns when it is in force on this node, and on all others that live or after a
    /// while.
    async fn change_schema(
        &self,
        change: Transformation,
        based_on: u64,
    ) -> Result<Arc<Schema>, CoordinatorError> {
        if let Transformation::CreateTable { table } | Transformation::AlterTable { table } = &change
            && table.options().cdc
        {
            let what = "cdc = true is not supported in a ring yet".to_owned();
            return Err(CoordinatorError::RingRefuses { what });
        }
        let epoch = self.agree_on(change, based_on).await?;
        // One that lives and does not come so far must not hold up everybody: drivers see that it is behind.
        _ = timeout(OTHERS_PATIENCE, self.known().schema_is_everywhere(epoch)).await;
        Ok(self.shard().local().schema())
    }

    /// Proposes it to the ring, and returns its epoch when it is in force on this node.
    pub(crate) async fn agree_on(
        &self,
        change: Transformation,
        based_on: u64,
    ) -> Result<u64, CoordinatorError> {
        let agreed = self.proposer().propose(Command::ChangeSchema { based_on, change }).await;
        let epoch = agreed.map_err(of_proposal)?.schema_epoch;
        let is_here = timeout(HERE_PATIENCE, self.known().schema_is_here(epoch)).await;
        is_here.map_err(|_| CoordinatorError::NotAgreed {
            what: "it is agreed on, and not in force on this node yet".to_owned(),
        })?;
        Ok(epoch)
    }
}

/// Writes down entries that were agreed on, brings them into force, and tells so. Returns when no more come.
///
/// # Errors
/// An entry can not be kept: the node knows less than was agreed on, and must end.
pub async fn follow(
    coordinator: &Coordinator,
    known: Known,
    mut entries: UnboundedReceiver<Entry>,
) -> Result<(), CoordinatorError> {
    while let Some(entry) = entries.recv().await {
        let metadata = Arc::clone(&coordinator.node.metadata).lock_owned().await;
        if metadata.metadata().has(&entry) {
            continue;
        }
        // Before it is in force: from then on what was planned behind it may come.
        if let Entry::Schema { epoch, change: Transformation::TruncateTable { id, .. } } = &entry {
            truncate_as_agreed(coordinator, *id, *epoch).await?;
        }
        let before = Arc::clone(metadata.schema());
        let entry = Arc::new(entry);
        let (metadata, appended) = {
            let (mut metadata, entry) = (metadata, Arc::clone(&entry));
            let append = move || {
                let appended = metadata.append(&entry);
                (metadata, appended)
            };
            coordinator.io().run(append).await
        };
        appended?;
        if let Entry::Schema { .. } = *entry {
            for shard in 0..coordinator.shard().shards().count() {
                coordinator.give_schema(shard, Arc::clone(metadata.schema())).await?;
            }
        }
        drop(metadata);
        known.take(&entry, &before);
    }
    Ok(())
}

/// How long a change of the schema that is agreed on waits until it is in force on this node.
const HERE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a change of the schema waits for other nodes than this one to have it.
const OTHERS_PATIENCE: Duration = Duration::from_secs(3);

/// Why a change that was proposed to the ring is not in force.
fn of_proposal(error: ProposeError) -> CoordinatorError {
    match error {
        ProposeError::Refused(Refusal::Moved { based_on, current }) => {
            CoordinatorError::SchemaMoved { based_on, current }
        }
        // It is planned anew against the schema in force, and told in the words of the language.
        ProposeError::Refused(Refusal::Schema { .. }) => {
            CoordinatorError::SchemaMoved { based_on: 0, current: 0 }
        }
        ProposeError::Refused(refusal) => CoordinatorError::RingRefuses { what: refusal.to_string() },
        ProposeError::NoMajority { .. } | ProposeError::Agreement(_) => {
            CoordinatorError::NotAgreed { what: error.to_string() }
        }
    }
}

/// A change of the schema, planned against the schema of an epoch.
struct SchemaChange {
    coordinator: Coordinator,
    change: Transformation,
    based_on: u64,
}

impl SchemaChange {
    /// Commits it to the metadata log, and hands the schema after it to all shards.
    async fn commit(self) -> Result<Arc<Schema>, CoordinatorError> {
        let SchemaChange { coordinator, change, based_on } = self;
        let metadata = Arc::clone(&coordinator.node.metadata).lock_owned().await;
        coordinator.runtime().failsafe.check().map_err(StorageError::from)?;
        let io = coordinator.shard().local().runtime().io.clone();
        // The lock goes with the work, so that a change never overlaps another, and comes back with it.
        let (metadata, schema) = io
            .run(move || {
                let mut metadata = metadata;
                let schema = metadata.commit(change, based_on);
                (metadata, schema)
            })
            .await;
        if let Err(MetadataError::Disk { source, .. }) = &schema {
            coordinator.shard().shards().health().note_schema(source);
        }
        let schema = schema?;
        let mut result = Ok(());
        for shard in 0..coordinator.shard().shards().count() {
            result = result.and(coordinator.give_schema(shard, Arc::clone(&schema)).await);
        }
        drop(metadata);
        result.map(|()| schema)
    }
}
