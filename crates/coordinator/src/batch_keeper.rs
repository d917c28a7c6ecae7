//! A node keeps logged batches of others: it writes them to its own `system.batches`, and lets them go when it is told.
//! So it keeps what it was to write at `ANY` while no replica lived.

use std::sync::Arc;

use ::replica::{BatchRequest, Failure, Written};
use messaging::PATIENCE_MAX;
use rows::Mutation;
use stdx::index_set::IndexSet;
use storage::ShardHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::admission::Admitted;
use crate::batch_log::{BatchLog, write_synced};
use crate::{Coordinator, CoordinatorError, Node, TimeoutKind, Timeouts};

/// A batch is written again when its coordinator has said nothing for so many timeouts of writes: as in Cassandra
/// (`BatchlogManager.getBatchlogTimeout`).
const TIMEOUTS_SILENT: u32 = 2;

/// Keeps batches on one shard of a node.
pub(crate) struct BatchKeeper {
    /// For what is this node's own.
    coordinator: Coordinator,
    timeouts: Arc<Timeouts>,
}

impl BatchKeeper {
    /// The shard's.
    pub(crate) fn new(node: Node, shard: ShardHandle, timeouts: Arc<Timeouts>) -> BatchKeeper {
        BatchKeeper { coordinator: Coordinator::new(node, shard), timeouts }
    }

    /// Does what another node asks for, whose batch was planned on that epoch of the schema.
    ///
    /// # Cancel safety
    /// Dropped, it may be done or not.
    pub(crate) async fn carry_out(&self, planned_on: u64, request: BatchRequest) -> Written {
        let done = match request {
            BatchRequest::Keep { id, mutations } => self.keep(id, &mutations, planned_on).await,
            BatchRequest::Drop { ids } => self.let_go(&ids).await,
        };
        match done {
            Ok(()) => Written { done: IndexSet::first(1), ..Written::default() },
            Err(CoordinatorError::Overloaded { what }) => failed(Failure::Overloaded { what }),
            Err(error) => failed(Failure::Other { what: error.to_string() }),
        }
    }

    async fn keep(&self, id: Uuid, mutations: &[Mutation], planned_on: u64) -> Result<(), CoordinatorError> {
        let timeout = self.timeouts.get(TimeoutKind::Write).min(PATIENCE_MAX);
        let due = Instant::now() + TIMEOUTS_SILENT * timeout;
        keep(&self.coordinator, id, mutations, planned_on, due).await
    }

    /// When their rows can not be deleted they are written again.
    async fn let_go(&self, ids: &[Uuid]) -> Result<(), CoordinatorError> {
        let (coordinator, log) = (&self.coordinator, BatchLog::of(&self.coordinator)?);
        let removal = |id: &Uuid| log.removal(*id, coordinator.next_timestamp(), coordinator.now_seconds());
        let removals = ids.iter().map(removal).collect();
        coordinator.write_to_owners(Admitted::as_recorded(), removals).await?;
        ids.iter().for_each(|id| coordinator.node.kept_batches.let_go(*id));
        Ok(())
    }
}

/// Keeps a batch on this node, which was planned on that epoch of the schema. It is written when it is due, and then
/// again and again until it is whole.
///
/// # Errors
/// It may be kept or not; not after a refusal.
///
/// # Cancel safety
/// Dropped, it may be kept or not.
pub(crate) async fn keep(
    coordinator: &Coordinator,
    id: Uuid,
    mutations: &[Mutation],
    planned_on: u64,
    due: Instant,
) -> Result<(), CoordinatorError> {
    let log = BatchLog::of(coordinator)?;
    let record = log.record(id, mutations, planned_on, coordinator.next_timestamp())?;
    // Before it is there: what is on the disk is always known.
    let kept = &coordinator.node.kept_batches;
    kept.begin(id, record.as_encoded().len(), due)?;
    let written = write_synced(coordinator, record).await;
    if written.as_ref().is_err_and(CoordinatorError::is_refusal) {
        kept.let_go(id);
    }
    written
}

fn failed(failure: Failure) -> Written {
    Written { failure: Some(failure), ..Written::default() }
}
