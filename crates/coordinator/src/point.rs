//! Reading and writing rows by their keys at once.

use std::ops::ControlFlow;

use rows::{Mutation, PartitionKey, RowInPlace};
use stdx::index_set::IndexSet;
use storage::{Outcomes, PointReads, PointReadsSent};

use crate::{Coordinator, CoordinatorError};

impl Coordinator {
    /// Shows the live rows of partitions of a table without clustering columns, each by the index of its key, or
    /// that there is none; until it is told to stop. All are of that owner. [`Coordinator::read`] is for
    /// those that are not shown, and for a consistency that [`Coordinator::admit`] refuses. `false` when the owner is
    /// at work: nothing was asked, and [`Coordinator::send_point_reads`] does.
    pub fn point_reads(
        &self,
        owner: usize,
        reads: PointReads<'_>,
        show: impl FnMut(usize, Option<RowInPlace<'_>>) -> ControlFlow<()> + Send,
    ) -> bool {
        self.shard.point_reads(owner, reads, show)
    }

    /// As [`Coordinator::point_reads`] on the owner's own thread, where `show` puts what it sees into `seen`.
    ///
    /// # Errors
    /// The owner is too busy, or gone: nothing was read.
    pub async fn send_point_reads<T, Show>(
        &self,
        owner: usize,
        reads: PointReadsSent,
        seen: T,
        show: Show,
    ) -> Result<T, CoordinatorError>
    where
        T: Send + 'static,
        Show: FnMut(&mut T, usize, &PartitionKey, Option<RowInPlace<'_>>) -> ControlFlow<()> + Send + 'static,
    {
        Ok(self.shard.send_point_reads(owner, reads, seen, show).await?)
    }

    /// As [`Coordinator::write`] of each mutation by itself, but that all wait together until they are durable. All are
    /// of that owner, no more than [`storage::KEYS_TOGETHER`], and the consistency is admitted. Those of which
    /// nothing was written are for [`Coordinator::write`].
    pub async fn write_each(&self, owner: usize, mutations: Vec<Mutation>) -> Outcomes {
        self.shard.write_each(owner, mutations).await
    }

    /// As [`Coordinator::write`] of each mutation by itself, if that needs no waiting. Which were written?
    /// All are of that owner, and the consistency is admitted. The others are for [`Coordinator::write_each`].
    pub fn try_write_each(&self, owner: usize, mutations: &[&Mutation]) -> IndexSet {
        self.shard.try_write_each(owner, mutations)
    }
}
