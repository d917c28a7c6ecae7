//! Carrying out changes with a condition: a statement, or a batch of them, of one partition.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::pin;

use coordinator::{ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, TimeoutKind};
use read::{PartitionRows, ReadCommand};
use rows::PartitionKey;
use schema::Table;
use storage::TableError;

use super::Inner;
use crate::conditional::{Conditions, ShownColumns, applied, not_applied};
use crate::error::refuse;
use crate::memory::AnswerRoom;
use crate::modify::{Basis, BatchPlan, Changes, ModifyPlan, Writer, read_whole};
use crate::request::QueryOptions;
use crate::response::{Response, ResponseKind};
use crate::restrictions::{Rows, StatementType};
use crate::terms::Bindings;
use crate::timeouts::Deadline;
use crate::{QueryError, WriteType};

/// A statement of a change with a condition, and the values that it is bound to.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) plan: &'a ModifyPlan,
    pub(super) bindings: &'a Bindings<'a>,
}

/// The same of all its parts together.
struct Request<'a> {
    parts: &'a [Part<'a>],
    table: &'a Table,
    key: PartitionKey,
    conditions: Conditions<'a>,
    shown: ShownColumns,
}

impl Inner {
    /// Carries out a batch that was written as one statement, of which one at least has a condition.
    pub(super) async fn batch_statement_if(
        &self,
        plan: &BatchPlan,
        bindings: &Bindings<'_>,
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        // Those that have constants of their own, and none of the batch's markers.
        let own: Vec<Option<Bindings<'_>>> =
            plan.statements.iter().map(|entry| plan.bind_constants(entry, bindings)).collect();
        let parts = plan.statements.iter().zip(&own);
        let parts: Vec<Part<'_>> = parts
            .map(|(entry, own)| Part { plan: &entry.plan, bindings: own.as_ref().unwrap_or(bindings) })
            .collect();
        self.change_if(&parts, true, options, room).await
    }

    /// Makes the changes of all parts if all of their conditions hold.
    pub(super) async fn change_if(
        &self,
        parts: &[Part<'_>],
        is_batch: bool,
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        let request = self.bind_request(parts, is_batch).await?;
        let levels = self.levels_of(options, request.table)?;
        let now = self.now(options);
        let (claimed, partition) = self.claim_and_read(&request, levels, now, room).await?;
        if !request.conditions.hold(partition.as_ref())? {
            let found = request.conditions.keep_shown(partition);
            self.settle(claimed.leave(), levels, false).await?;
            return Ok(rows(not_applied(request.table, &request.shown, found.as_ref())));
        }
        self.write_claimed(&request, claimed, partition.as_ref(), (levels, now), room).await?;
        Ok(rows(applied(request.table)))
    }

    /// The levels that a request asks for, in Cassandra's words where they are none for a change with a condition.
    fn levels_of(&self, options: &QueryOptions, table: &Table) -> Result<ConditionalLevels, QueryError> {
        let (agreement, write) =
            (options.serial_consistency.unwrap_or(Consistency::Serial), options.consistency);
        if !agreement.is_serial() {
            refuse!("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
        }
        if write.is_serial() {
            refuse!(
                "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
                write.name()
            );
        }
        if write == Consistency::EachQuorum
            && let Some(keyspace) = self.coordinator.schema().keyspace(table.keyspace())
            && !keyspace.replication.class.ends_with(".NetworkTopologyStrategy")
        {
            refuse!(
                "consistency level EACH_QUORUM not compatible with replication strategy ({})",
                keyspace.replication.class
            );
        }
        Ok(ConditionalLevels { agreement, write })
    }

    /// Claims the partition, and reads what is asked for of it.
    async fn claim_and_read(
        &self,
        request: &Request<'_>,
        levels: ConditionalLevels,
        now: u32,
        room: &mut AnswerRoom,
    ) -> Result<(ClaimedPartition, Option<PartitionRows>), QueryError> {
        let mut deadline = Deadline::of(&self.timeouts, TimeoutKind::Contention);
        let claiming = async {
            let claimed = self.coordinator.claim(request.table.id(), &request.key, levels).await;
            let claimed = claimed.map_err(|error| {
                let level = match &error {
                    CoordinatorError::Unavailable { consistency, .. }
                        if *consistency == levels.write.name() =>
                    {
                        levels.write
                    }
                    _ => levels.agreement,
                };
                QueryError::of_write(error, level, WriteType::Cas)
            })?;
            let command = request.conditions.command(request.key.clone(), now);
            let read = async |command: &ReadCommand| claimed.read(command).await;
            let partition = read_whole(command, levels.agreement, room, read).await?;
            Ok((claimed, partition))
        };
        deadline.within(pin!(claiming)).await.map_err(|_| late(levels, false))?
    }

    /// What is asked of which rows of which partition.
    async fn bind_request<'a>(
        &self,
        parts: &'a [Part<'a>],
        is_batch: bool,
    ) -> Result<Request<'a>, QueryError> {
        let io = self.io();
        let first = parts[0].plan;
        let mut conditions = Conditions::new(first);
        let mut shown = ShownColumns::new(&first.table, is_batch);
        let mut key = None;
        for Part { plan, bindings } in parts {
            let keys = plan.restrictions.bind_keys(bindings, io).await?;
            let kind = if plan.statement == StatementType::Update { "updates" } else { "deletions" };
            match keys.into_iter().next() {
                _ if plan.restrictions.key_is_in() && is_batch => refuse!(
                    "Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)"
                ),
                _ if plan.restrictions.key_is_in() => {
                    refuse!("IN on the partition key is not supported with conditional {kind}")
                }
                of_part => match &key {
                    None => key = of_part,
                    Some(key) if of_part.as_ref() == Some(key) => {}
                    Some(_) => refuse!("Batch with conditions cannot span multiple partitions"),
                },
            }
            if plan.restrictions.clustering_is_in() {
                refuse!("IN on the clustering key columns is not supported with conditional {kind}");
            }
            conditions.note(plan);
            let Some(condition) = &plan.condition else { continue };
            if plan.is_of_static_row() {
                conditions.add(condition, None, bindings)?;
            } else if let Rows::Named(rows) =
                plan.restrictions.bind_rows(&plan.comparator, bindings, io).await?
            {
                conditions.add(condition, rows.first(), bindings)?;
            }
            shown.add(condition);
        }
        let Some(key) = key else { refuse!("A conditional change is of one partition") };
        Ok(Request { parts, table: &first.table, key, conditions, shown })
    }

    async fn write_claimed(
        &self,
        request: &Request<'_>,
        claimed: ClaimedPartition,
        partition: Option<&PartitionRows>,
        (levels, now): (ConditionalLevels, u32),
        room: &mut AnswerRoom,
    ) -> Result<(), QueryError> {
        let writer = Writer {
            coordinator: &self.coordinator,
            consistency: levels.write,
            prepends: &self.prepends,
            timestamp: OnceCell::from(claimed.next_timestamp()),
            now,
            basis: Basis::Known(partition),
        };
        let mut changes = Changes::default();
        for Part { plan, bindings } in request.parts {
            writer.add(plan, bindings, &mut changes, room).await?;
        }
        let mutations = changes.finish(self.io()).await;
        match mutations.is_empty() {
            true => self.settle(claimed.leave(), levels, false).await,
            false => self.settle(claimed.write(mutations), levels, true).await,
        }
    }

    /// Waits until what was decided is on the disk.
    async fn settle(
        &self,
        settling: impl Future<Output = Result<(), CoordinatorError>>,
        levels: ConditionalLevels,
        is_write: bool,
    ) -> Result<(), QueryError> {
        match Deadline::of(&self.timeouts, TimeoutKind::Write).within(pin!(settling)).await {
            Err(_) => Err(late(levels, is_write)),
            // It stands in memory, and may be gone after a restart.
            Ok(Err(CoordinatorError::Table(TableError::CommitLog(error)))) if is_write => {
                tracing::warn!(%error, "a conditional change may or may not survive");
                Err(late(levels, true))
            }
            Ok(settled) => {
                settled.map_err(|error| QueryError::of_write(error, levels.agreement, WriteType::Cas))
            }
        }
    }
}

/// What is told when the time is over: that nothing was done, or that nobody knows.
fn late(levels: ConditionalLevels, is_written: bool) -> QueryError {
    let (consistency, received, block_for) = (levels.agreement, 0, 1);
    match is_written {
        true => QueryError::CasWriteUnknown { consistency, received, block_for },
        false => QueryError::CasWriteTimeout { consistency, received, block_for },
    }
}

fn rows(result: crate::RowsResult) -> Response {
    ResponseKind::Rows(result).into()
}
