//! How a schema change comes into force.

use std::rc::Rc;
use std::sync::Arc;

use cluster::MetadataError;
use schema::{Schema, Transformation};
use storage::{Shard, StorageError};

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
