//! Logged batches that are recorded on this node, and that nobody has finished.
//!
//! A node that is alone writes those of an earlier run again before it takes requests, and does not start without: a
//! batch stays whole or absent for whoever asks. In a ring the replicas of a batch may be away, so a node that starts
//! only finds them before it takes requests. They are written again beside other work, with those that it keeps for
//! nodes which have died or fallen silent (`kept_batches.rs`): each by itself, again and again, whatever becomes of the
//! others.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use read::{ReadCommand, ReadTarget};
use rows::RingRange;
use runtime::Plant;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::batch::LoggedBatch;
use crate::batch_log::{BatchLog, Recorded};
use crate::{Consistency, Coordinator, CoordinatorError};

/// So often it is looked which are due.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many are in memory, to be written again, at a time.
const TRIED_TOGETHER_MAX: usize = 4;
/// So many bytes of records are written again in a second, as Cassandra's `batchlog_replay_throttle` has it by default.
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;

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

/// Writes again what is recorded on a node of a ring and nobody has finished.
pub struct BatchReplay(Coordinator);

impl BatchReplay {
    /// On that node.
    pub fn on(coordinator: Coordinator) -> BatchReplay {
        BatchReplay(coordinator)
    }

    /// Finds the batches of an earlier run, before others are recorded here. A damaged one is left where it is, and
    /// told in the log. Gives how many there are.
    ///
    /// # Errors
    /// They can not be read; the node must not serve.
    pub async fn find(&self) -> Result<usize, CoordinatorError> {
        let mut recorded = RecordedBatches::of(&self.0)?;
        let (mut count, now) = (0, Instant::now());
        while let Some(page) = recorded.next_page().await? {
            for (batch, recorded) in page {
                match recorded {
                    Ok(recorded) => {
                        self.0.node.kept_batches.find(batch.id(), recorded.bytes(), now);
                        count += 1;
                    }
                    Err(error) => tracing::error!(
                        id = %batch.id(), %error, "a logged batch of an earlier run can not be finished"
                    ),
                }
            }
        }
        Ok(count)
    }

    /// Writes batches again that are due, for ever: those that were found, and those that are kept for other nodes.
    ///
    /// # Cancel safety
    /// Dropped, those that are left are found by the next start.
    pub async fn run(self) {
        loop {
            sleep(LOOK_EVERY).await;
            if !self.0.has_planted(Plant::BatchesForgotten) {
                self.replay_due().await;
            }
        }
    }

    async fn replay_due(&self) {
        let due = self.0.node.kept_batches.due(Instant::now());
        if !due.is_empty() {
            tracing::info!(count = due.len(), "logged batches that nobody has finished are written again");
        }
        for some in due.chunks(TRIED_TOGETHER_MAX) {
            join_all(some.iter().map(|(id, _)| self.replay(*id))).await;
            let bytes: usize = some.iter().map(|(_, bytes)| bytes).sum();
            sleep(Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)).await;
        }
    }

    async fn replay(&self, id: Uuid) {
        let kept = &self.0.node.kept_batches;
        let finished = match BatchLog::of(&self.0) {
            Ok(log) => LoggedBatch::as_recorded(self.0.clone(), log, id).finish_recorded().await,
            Err(error) => Err(error),
        };
        match finished {
            Ok(()) => kept.replayed(id),
            Err(error) if error.is_final() => {
                tracing::error!(%id, %error, "a logged batch can not be finished by this run");
                kept.let_go(id);
            }
            Err(error) => {
                tracing::debug!(%id, %error, "a logged batch can not be finished yet");
                kept.try_later(id, Instant::now());
            }
        }
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
