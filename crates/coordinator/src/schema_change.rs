//! How a schema change comes into force, and how a table is emptied.

use std::sync::Arc;

use schema::{Schema, TableId, Transformation};

use crate::{Coordinator, CoordinatorError};

impl Coordinator {
    /// Commits one change of the schema planned against epoch `based_on`, and returns when all
    /// shards have the schema after it.
    ///
    /// # Errors
    /// `SchemaMoved` when another change came first: plan again against [`Coordinator::schema`].
    pub async fn change_schema(
        &self,
        change: Transformation,
        based_on: u64,
    ) -> Result<Arc<Schema>, CoordinatorError> {
        let metadata = Arc::clone(&self.node.metadata).lock_owned().await;
        let io = self.shard.local().runtime().io.clone();
        // The lock goes with the work, so that a change never overlaps another, and comes back with it.
        let (metadata, schema) = io
            .run(move || {
                let mut metadata = metadata;
                let schema = metadata.commit(change, based_on);
                (metadata, schema)
            })
            .await;
        let schema = schema?;
        for shard in 0..self.shard.shards().count() {
            let schema = Arc::clone(&schema);
            self.shard.on(shard, move |shard| async move { shard.take_schema(schema).await }).await??;
        }
        drop(metadata);
        Ok(schema)
    }

    /// Empties a table on all shards.
    ///
    /// # Errors
    /// A shard could not make it durable; others may have.
    pub async fn truncate(&self, table: TableId) -> Result<(), CoordinatorError> {
        for shard in 0..self.shard.shards().count() {
            self.shard.on(shard, move |shard| async move { shard.truncate(table).await }).await??;
        }
        Ok(())
    }
}
