//! Logged batches that an earlier run has recorded and not finished.
//!
//! A node that is alone writes them again before it takes requests, and does not start without: a batch stays whole or
//! absent for whoever asks. In a ring the replicas of a batch may be away, so a node that starts only finds its batches
//! before it takes requests. Each is then a batch that is under way and could not be finished: tried by itself, again
//! and again, whatever becomes of the others.

use std::sync::Arc;

use futures_util::future::join_all;
use read::{ReadCommand, ReadTarget};
use rows::RingRange;
use runtime::Plant;
use uuid::Uuid;

use crate::batch::LoggedBatch;
use crate::batch_log::{BatchLog, Recorded};
use crate::under_way::BatchUnderWay;
use crate::{Consistency, Coordinator, CoordinatorError};

/// Batches of an earlier run, each of which is under way.
pub struct EarlierBatches(Vec<(LoggedBatch, BatchUnderWay)>);

impl Coordinator {
    /// Writes again what unfinished batches of an earlier run hold. To be called before the node
    /// takes requests, on one that is alone. Gives how many there were.
    ///
    /// # Errors
    /// A batch can not be read or written; the node must not serve.
    pub async fn replay_batches(&self) -> Result<u64, CoordinatorError> {
        let mut recorded = RecordedBatches::of(self)?;
        let mut count = 0;
        while let Some(page) = recorded.next_page().await? {
            for (batch, recorded) in page {
                batch.finish_again(recorded?.into_current(&self.schema())).await?;
                count += 1;
            }
        }
        Ok(count)
    }
}

impl EarlierBatches {
    /// Finds the batches of an earlier run, before this one records others. A damaged one is left where it is, and
    /// told in the log.
    ///
    /// # Errors
    /// They can not be read; the node must not serve.
    pub async fn find(coordinator: &Coordinator) -> Result<EarlierBatches, CoordinatorError> {
        let mut recorded = RecordedBatches::of(coordinator)?;
        let mut batches = Vec::new();
        while let Some(page) = recorded.next_page().await? {
            for (batch, recorded) in page {
                match recorded {
                    Ok(recorded) => {
                        let under_way = coordinator.node.batches.begin_earlier(recorded.mutations());
                        batches.push((batch, under_way));
                    }
                    Err(error) => tracing::error!(
                        id = %batch.id(), %error, "a logged batch of an earlier run can not be finished"
                    ),
                }
            }
        }
        Ok(EarlierBatches(batches))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Finishes them, however long that takes.
    ///
    /// # Cancel safety
    /// Dropped, those that are left are found by the next start.
    pub async fn finish(self) {
        join_all(self.0.into_iter().map(|(batch, under_way)| batch.finish_later(under_way))).await;
    }
}

/// The rows of `system.batches`, page by page.
struct RecordedBatches<'c> {
    coordinator: &'c Coordinator,
    log: BatchLog,
    /// What is read next; `None` at the end.
    command: Option<ReadCommand>,
}

/// A batch, and what it is to write.
type Found = (LoggedBatch, Result<Recorded, CoordinatorError>);

impl RecordedBatches<'_> {
    fn of(coordinator: &Coordinator) -> Result<RecordedBatches<'_>, CoordinatorError> {
        let log = BatchLog::of(coordinator)?;
        let (table, all) = (Arc::clone(&log.table), ReadTarget::Range(RingRange::ALL));
        let command = ReadCommand::new(table, all, coordinator.now_seconds());
        let command = (!coordinator.has_planted(Plant::BatchesForgotten)).then_some(command);
        Ok(RecordedBatches { coordinator, log, command })
    }

    async fn next_page(&mut self) -> Result<Option<Vec<Found>>, CoordinatorError> {
        let Some(mut command) = self.command.take() else { return Ok(None) };
        let page = self.coordinator.read(&command, Consistency::One).await?;
        let mut found = Vec::new();
        for row in &page.partitions {
            let Ok(id) = Uuid::from_slice(&row.key.bytes) else {
                tracing::error!(key = ?row.key.bytes, "a row of system.batches is no batch");
                continue;
            };
            let batch = LoggedBatch::as_recorded(self.coordinator.clone(), self.log.clone(), id);
            found.push((batch, self.log.recorded(row)));
        }
        self.command = page.next.map(|next| {
            command.resume = Some(next);
            command
        });
        Ok(Some(found))
    }
}
