//! Carrying out changes with a condition: a statement, or a batch of them, of one partition.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::pin;

use coordinator::{
    ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, Ready, Settled, TimeoutKind,
};
use read::{PartitionRows, ReadCommand};
use rows::PartitionKey;
use schema::Table;

use super::Inner;
use crate::conditional::{Conditions, ShownColumns, applied, not_applied};
use crate::error::refuse;
use crate::memory::AnswerRoom;
use crate::modify::{Basis, BatchPlan, Changes, Elements, ModifyPlan, Writer, read_whole};
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
        let mut deadline = Deadline::of(&self.timeouts, TimeoutKind::Contention);
        let claiming =
            pin!(ClaimedPartition::claim(&self.coordinator, request.table.id(), &request.key, levels));
        let claimed = deadline.within(claiming).await.map_err(|_| late(levels, false))?;
        let mut claimed = claimed.map_err(|error| refused(error, levels))?;
        loop {
            let was_in_doubt = claimed.is_in_doubt();
            // Whatever stands in the way is no answer when what was proposed before may be made.
            let told = |error: QueryError| if was_in_doubt { late(levels, true) } else { error };
            let read = {
                let reading = pin!(self.prepare_and_read(&request, &mut claimed, (levels, now), room));
                deadline.within(reading).await.unwrap_or_else(|_| Err(late(levels, false)))
            };
            let Read::ToDecide(partition) = read.map_err(told)? else {
                return Ok(rows(applied(request.table)));
            };
            let doubts = Doubts { was_in_doubt, levels };
            if request.conditions.hold(partition.as_ref()).map_err(told)? {
                let writing =
                    self.write_claimed(&request, &mut claimed, partition.as_ref(), (doubts, now), room);
                if writing.await.map_err(told)? == Settled::Done {
                    return Ok(rows(applied(request.table)));
                }
                continue;
            }
            let found = request.conditions.keep_shown(partition);
            if self.settle(claimed.leave(), doubts, false).await? == Settled::Done {
                return Ok(rows(not_applied(request.table, &request.shown, found.as_ref())));
            }
        }
    }

    /// Reads what is asked for of a claimed partition, as soon as nothing of it is unfinished.
    async fn prepare_and_read(
        &self,
        request: &Request<'_>,
        claimed: &mut ClaimedPartition,
        (levels, now): (ConditionalLevels, u32),
        room: &mut AnswerRoom,
    ) -> Result<Read, QueryError> {
        if claimed.ready().await.map_err(|error| refused(error, levels))? == Ready::Made {
            return Ok(Read::Made);
        }
        let command = request.conditions.command(request.key.clone(), now);
        let claimed = &*claimed;
        let read = async |command: &ReadCommand| claimed.read(command).await;
        Ok(Read::ToDecide(read_whole(command, levels.agreement, room, read).await?))
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
        claimed: &mut ClaimedPartition,
        partition: Option<&PartitionRows>,
        (doubts, now): (Doubts, u32),
        room: &mut AnswerRoom,
    ) -> Result<Settled, QueryError> {
        let elements = Elements::default();
        let writer = Writer {
            coordinator: &self.coordinator,
            consistency: doubts.levels.write,
            prepends: &self.prepends,
            timestamp: OnceCell::from(claimed.timestamp()),
            now,
            basis: Basis::Known { partition, elements: &elements },
            statement_count: Cell::default(),
        };
        let mut changes = Changes::default();
        for Part { plan, bindings } in request.parts {
            writer.add(plan, bindings, &mut changes, room).await?;
        }
        let mut mutations = changes.finish(self.io()).await;
        assert!(mutations.len() <= 1, "a conditional change is of one partition of one table");
        match mutations.pop() {
            None => self.settle(claimed.leave(), doubts, false).await,
            Some(mutation) => self.settle(claimed.write(mutation), doubts, true).await,
        }
    }

    /// Waits until what was decided may be told.
    async fn settle(
        &self,
        settling: impl Future<Output = Result<Settled, CoordinatorError>>,
        Doubts { was_in_doubt, levels }: Doubts,
        is_write: bool,
    ) -> Result<Settled, QueryError> {
        match Deadline::of(&self.timeouts, TimeoutKind::Write).within(pin!(settling)).await {
            Err(_) => Err(late(levels, was_in_doubt || is_write)),
            Ok(Ok(settled)) => Ok(settled),
            Ok(Err(error @ CoordinatorError::Chosen { .. })) => {
                Err(QueryError::of_write(error, levels.write, WriteType::Cas))
            }
            Ok(Err(error)) if was_in_doubt || is_write && !error.says_nothing_was_done() => {
                tracing::debug!(%error, "a conditional change may or may not be made");
                Err(late(levels, true))
            }
            Ok(Err(error)) => Err(refused(error, levels)),
        }
    }
}

/// What is asked for, and whether something that was proposed before may be made.
#[derive(Clone, Copy)]
struct Doubts {
    was_in_doubt: bool,
    levels: ConditionalLevels,
}

/// What was read of a claimed partition.
enum Read {
    ToDecide(Option<PartitionRows>),
    /// It need not be: what was proposed before is made.
    Made,
}

/// What is told when it is not made.
fn refused(error: CoordinatorError, levels: ConditionalLevels) -> QueryError {
    let level = match &error {
        CoordinatorError::Unavailable { consistency, .. } if *consistency == levels.write.name() => {
            levels.write
        }
        _ => levels.agreement,
    };
    QueryError::of_write(error, level, WriteType::Cas)
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
