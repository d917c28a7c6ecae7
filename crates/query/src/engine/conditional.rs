//! Carrying out changes with a condition: a statement, or a batch of them, of one partition.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::pin;

use coordinator::{ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, Settled, TimeoutKind};
use read::{PartitionRows, ReadCommand};
use rows::{Mutation, PartitionKey};
use schema::Table;

use super::Inner;
use super::carried::{Origin, decided_before, operation_of};
use crate::conditional::{
    Carried, CarriedChange, Conditions, Decision, KeptDecision, OperationId, ShownColumns, applied,
    found_rows, not_applied,
};
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
        origin: Origin<'_>,
    ) -> Result<Response, QueryError> {
        let own = own_bindings(plan, bindings);
        self.change_if(&parts_of(plan, bindings, &own), true, options, room, origin).await
    }

    /// Makes the changes of all parts if all of their conditions hold.
    pub(super) async fn change_if(
        &self,
        parts: &[Part<'_>],
        is_batch: bool,
        options: &QueryOptions,
        room: &mut AnswerRoom,
        origin: Origin<'_>,
    ) -> Result<Response, QueryError> {
        let request = self.bind_request(parts, is_batch).await?;
        let levels = self.levels_of(options, request.table)?;
        let operation = operation_of(self, options, origin)?;
        let place = (request.table.id(), &request.key);
        let elsewhere = self.decide_elsewhere(place, levels, || {
            Ok(Carried::Change(CarriedChange {
                statements: self.statements_of(options, origin)?,
                is_batch: matches!(origin, Origin::Batch(..)),
                consistency: options.consistency,
                serial_consistency: options.serial_consistency,
                now_in_seconds: options.now_in_seconds,
                operation,
            }))
        });
        let decision = match elsewhere.await {
            Ok(Some(decision)) => decision,
            Ok(None) => self.decide(&request, levels, (self.now(options), operation), room).await?,
            Err(undecided) => return Err(undecided.of_change(levels)),
        };
        Ok(rows(match decision {
            Decision::Applied => applied(request.table),
            Decision::NotApplied(found) => not_applied(request.table, &request.shown, found)?,
        }))
    }

    /// Decides about parts that another node has carried here.
    pub(super) async fn decide_parts(
        &self,
        parts: &[Part<'_>],
        is_batch: bool,
        options: &QueryOptions,
        operation: Option<OperationId>,
        room: &mut AnswerRoom,
    ) -> Result<Decision, QueryError> {
        let request = self.bind_request(parts, is_batch).await?;
        let levels = self.levels_of(options, request.table)?;
        self.decide(&request, levels, (self.now(options), operation), room).await
    }

    /// Decides about a change, and makes it when all of its conditions hold. What has come already of an operation is
    /// told again.
    async fn decide(
        &self,
        request: &Request<'_>,
        levels: ConditionalLevels,
        (now, operation): (u32, Option<OperationId>),
        room: &mut AnswerRoom,
    ) -> Result<Decision, QueryError> {
        let mut deadline = Deadline::of(&self.timeouts, TimeoutKind::Contention);
        let claiming =
            pin!(ClaimedPartition::claim(&self.coordinator, request.table.id(), &request.key, levels));
        let claimed = deadline.within(claiming).await.map_err(|_| late(levels, false))?;
        let mut claimed = claimed.map_err(|error| refused(error, levels))?;
        loop {
            let partition = {
                let reading = pin!(self.prepare_and_read(request, &mut claimed, (levels, now), room));
                deadline.within(reading).await.unwrap_or_else(|_| Err(late(levels, false)))?
            };
            let before = match operation {
                None => None,
                Some(operation) => {
                    let before = decided_before(self, &claimed, operation).await;
                    before.map_err(|error| error.of_change(levels))?
                }
            };
            let is_anew = before.is_none();
            let mut mutation = None;
            let decision = match before {
                Some(KeptDecision::Whole(decision)) => decision,
                None if request.conditions.hold(partition.as_ref())? => {
                    mutation = self
                        .change_of(request, &mut claimed, partition.as_ref(), (levels, now), room)
                        .await?;
                    Decision::Applied
                }
                None | Some(KeptDecision::Refused) => {
                    let found = request.conditions.keep_shown(partition);
                    let found = found.map(|found| found_rows(request.table, &request.shown, &found));
                    Decision::NotApplied(found)
                }
            };
            let kept = operation.filter(|_| is_anew).map(|operation| operation.keep(decision.clone()));
            let is_write = mutation.is_some() || kept.is_some();
            if self.settle(claimed.settle(mutation, kept), levels, is_write).await? == Settled::Done {
                return Ok(decision);
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
    ) -> Result<Option<PartitionRows>, QueryError> {
        claimed.ready().await.map_err(|error| refused(error, levels))?;
        let command = request.conditions.command(request.key.clone(), now);
        let claimed = &*claimed;
        let read = async |command: &ReadCommand| claimed.read(command).await;
        read_whole(command, levels.agreement, room, read).await
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

    /// What a change writes whose conditions hold.
    async fn change_of(
        &self,
        request: &Request<'_>,
        claimed: &mut ClaimedPartition,
        partition: Option<&PartitionRows>,
        (levels, now): (ConditionalLevels, u32),
        room: &mut AnswerRoom,
    ) -> Result<Option<Mutation>, QueryError> {
        let elements = Elements::default();
        let writer = Writer {
            coordinator: &self.coordinator,
            consistency: levels.write,
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
        Ok(mutations.pop())
    }

    /// Waits until what was decided may be told.
    async fn settle(
        &self,
        settling: impl Future<Output = Result<Settled, CoordinatorError>>,
        levels: ConditionalLevels,
        is_write: bool,
    ) -> Result<Settled, QueryError> {
        match Deadline::of(&self.timeouts, TimeoutKind::Write).within(pin!(settling)).await {
            Err(_) => Err(late(levels, is_write)),
            Ok(Ok(settled)) => Ok(settled),
            // What may be made is others'.
            Ok(Err(CoordinatorError::Chosen { .. } | CoordinatorError::InDoubt)) if !is_write => {
                Err(late(levels, false))
            }
            Ok(Err(error @ CoordinatorError::Chosen { .. })) => {
                Err(QueryError::of_write(error, levels.write, WriteType::Cas))
            }
            Ok(Err(error)) if is_write && !error.says_nothing_was_done() => {
                tracing::debug!(%error, "a conditional change may or may not be made");
                Err(late(levels, true))
            }
            Ok(Err(error)) => Err(refused(error, levels)),
        }
    }
}

/// Of the statements of a batch, the values of those that have constants of their own, and none of the batch's markers.
pub(super) fn own_bindings<'a>(plan: &'a BatchPlan, bindings: &'a Bindings<'_>) -> Vec<Option<Bindings<'a>>> {
    plan.statements.iter().map(|entry| plan.bind_constants(entry, bindings)).collect()
}

pub(super) fn parts_of<'a>(
    plan: &'a BatchPlan,
    bindings: &'a Bindings<'a>,
    own: &'a [Option<Bindings<'a>>],
) -> Vec<Part<'a>> {
    let parts = plan.statements.iter().zip(own);
    parts.map(|(entry, own)| Part { plan: &entry.plan, bindings: own.as_ref().unwrap_or(bindings) }).collect()
}

/// What is told when it is not made.
pub(super) fn refused(error: CoordinatorError, levels: ConditionalLevels) -> QueryError {
    let level = match &error {
        CoordinatorError::Unavailable { consistency, .. } if *consistency == levels.write.name() => {
            levels.write
        }
        _ => levels.agreement,
    };
    QueryError::of_write(error, level, WriteType::Cas)
}

/// What is told when the time is over: that nothing was done, or that nobody knows.
pub(super) fn late(levels: ConditionalLevels, is_written: bool) -> QueryError {
    let (consistency, received, block_for) = (levels.agreement, 0, 1);
    match is_written {
        true => QueryError::CasWriteUnknown { consistency, received, block_for },
        false => QueryError::CasWriteTimeout { consistency, received, block_for },
    }
}

fn rows(result: crate::RowsResult) -> Response {
    ResponseKind::Rows(result).into()
}
