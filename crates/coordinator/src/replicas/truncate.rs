//! How a table of the ring is emptied: as a change of the schema that all nodes take at the same place of their
//! history.
//!
//! What is written, and read, says the epoch of the schema that it was planned on, so that on all replicas it comes
//! before the truncation, or on all behind it:
//!
//! ```text
//!   planned before, comes late      it is refused: who asks comes so far, and asks again
//!   planned behind it, comes early  the replica empties its table first, and then takes it
//! ```
//!
//! So nothing that was there before comes back: not with a write that was under way, not with rows that a repair has
//! read before it, not with a node that was away, which empties its part when it is back.

use std::time::Duration;

use schema::{TableId, Transformation};
use storage::Emptying;

use super::RingSeat;
use crate::truncate::RETRY_AFTER;
use crate::{Coordinator, CoordinatorError};

/// Before it is proposed again what was changed meanwhile has come to this node.
const PAUSE: Duration = Duration::from_millis(20);

impl RingSeat {
    /// Empties a table on all nodes. Returns when those that live have done it; others do it when they are back.
    ///
    /// # Errors
    /// Nothing is emptied; or it may be, when the ring did not agree in time.
    ///
    /// # Cancel safety
    /// Dropped, it may be emptied or not.
    pub(crate) async fn truncate(&self, table: TableId) -> Result<(), CoordinatorError> {
        loop {
            let schema = self.shard().local().schema();
            let Some(known) = schema.table_by_id(table) else {
                return Err(CoordinatorError::NoTable { table: table.0.to_string() });
            };
            let (keyspace, name) = (known.keyspace().to_owned(), known.name().to_owned());
            let change = Transformation::TruncateTable { keyspace, name, id: table };
            match self.agree_on(change, schema.epoch()).await {
                Ok(epoch) => {
                    self.known().schema_is_everywhere(epoch).await;
                    return Ok(());
                }
                // The table was changed meanwhile. It is the same one.
                Err(CoordinatorError::SchemaMoved { current, .. }) => {
                    self.known().schema_is_here(current).await;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Empties this node's part of a table, as it was agreed on.
///
/// # Errors
/// It can not be done any more on this run.
pub(crate) async fn truncate_as_agreed(
    coordinator: &Coordinator,
    table: TableId,
    epoch: u64,
) -> Result<(), CoordinatorError> {
    loop {
        match coordinator.truncate_here(table, Emptying::Agreed { epoch }).await {
            Err(error) if !error.is_final() => {
                tracing::warn!(table = %table.0, %error, "a table can not be emptied, and it is tried again");
                tokio::time::sleep(RETRY_AFTER).await;
            }
            outcome => return outcome,
        }
    }
}
