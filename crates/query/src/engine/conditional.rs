//! Carrying out changes with a condition: a statement, or a batch of them, of one partition.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use coordinator::{
    ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, Decider, Settled, TimeoutKind,
};
use futures_util::future::LocalBoxFuture;
use read::{PartitionRows, ReadCommand};
use rows::PartitionKey;
use schema::Table;

use super::Inner;
use crate::conditional::{
    CarriedChange, CarriedStatement, Conditions, Decision, ShownColumns, applied, found_rows, not_applied,
    pack, unpack,
};
use crate::error::refuse;
use crate::functions::Environment;
use crate::memory::AnswerRoom;
use crate::modify::{Basis, BatchPlan, Changes, Elements, ModifyPlan, Writer, read_whole};
use crate::prepare::{Body, Planned, PreparedText};
use crate::request::{BatchQuery, BatchStatement, QueryOptions, Values};
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

/// Where a change with a condition comes from: what is told to the node that decides about it.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A statement of its own, with the values of the request, and the keyspace of its unqualified names.
    Statement(Source<'a>, Option<&'a str>),
    /// A BATCH message, and the same.
    Batch(&'a [BatchStatement], Option<&'a str>),
}

/// Where the plan of a statement comes from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Its text.
    Text(&'a str),
    /// It was prepared, under this id.
    Prepared(&'a [u8; 16]),
}

impl<'a> Source<'a> {
    fn of(query: &'a BatchQuery) -> Source<'a> {
        match query {
            BatchQuery::Text(text) => Source::Text(text),
            BatchQuery::Prepared(id) => Source::Prepared(id),
        }
    }

    pub(super) fn is_prepared(self) -> bool {
        matches!(self, Source::Prepared(_))
    }
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
        let decision = match self.decide_elsewhere(&request, levels, options, origin).await? {
            Some(decision) => decision,
            None => self.decide(&request, levels, self.now(options), room).await?,
        };
        Ok(rows(match decision {
            Decision::Applied => applied(request.table),
            Decision::NotApplied(found) => not_applied(request.table, &request.shown, found)?,
        }))
    }

    /// Has it decided where its partition is decided about; `None` when that is here.
    async fn decide_elsewhere(
        &self,
        request: &Request<'_>,
        levels: ConditionalLevels,
        options: &QueryOptions,
        origin: Origin<'_>,
    ) -> Result<Option<Decision>, QueryError> {
        let (table, key, refused) =
            (request.table.id(), &request.key, |error: CoordinatorError| refused(error, levels));
        let others = coordinator::others_that_decide(&self.coordinator, table, key, levels.agreement);
        let Some(others) = others.map_err(refused)? else { return Ok(None) };
        let statements = match origin {
            Origin::Statement(source, keyspace) => vec![(source, keyspace, &options.values)],
            Origin::Batch(statements, keyspace) => {
                statements.iter().map(|one| (Source::of(&one.query), keyspace, &one.values)).collect()
            }
        };
        let statements =
            statements.into_iter().map(|(source, keyspace, values)| self.carried(source, keyspace, values));
        let change = CarriedChange {
            statements: statements.collect::<Result<_, _>>()?,
            is_batch: matches!(origin, Origin::Batch(..)),
            consistency: options.consistency,
            serial_consistency: options.serial_consistency,
            now_in_seconds: options.now_in_seconds,
        };
        let decision = others.decide(pack(&change)).await.map_err(|error| match error {
            CoordinatorError::InDoubt => late(levels, true),
            error => refused(error),
        })?;
        decision.map(|decision| unpack::<Result<Decision, QueryError>>(&decision)?).transpose()
    }

    /// A statement for another node.
    fn carried(
        &self,
        source: Source<'_>,
        keyspace: Option<&str>,
        values: &Values,
    ) -> Result<CarriedStatement, QueryError> {
        let (keyspace, values) = (keyspace.map(str::to_owned), values.clone());
        match source {
            Source::Text(text) => Ok(CarriedStatement { id: None, text: text.to_owned(), keyspace, values }),
            Source::Prepared(id) => {
                let prepared = self.texts.get(id).ok_or(QueryError::Unprepared { id: *id })?;
                let (text, keyspace) = (prepared.text.clone(), prepared.keyspace.clone());
                Ok(CarriedStatement { id: Some(*id), text, keyspace, values })
            }
        }
    }

    /// Decides about what another node, or another shard, has sent.
    async fn decide_carried(&self, change: CarriedChange) -> Result<Decision, QueryError> {
        let mut room = self.answers.room_of_its_own();
        let options = QueryOptions {
            consistency: change.consistency,
            serial_consistency: change.serial_consistency,
            now_in_seconds: change.now_in_seconds,
            ..QueryOptions::default()
        };
        let mut planned = Vec::with_capacity(change.statements.len());
        for statement in &change.statements {
            planned.push(self.plan_carried(statement, &mut room).await?);
        }
        let environment = Environment::of(self.coordinator.runtime());
        let mut bound = Vec::with_capacity(planned.len());
        for (statement, planned) in change.statements.iter().zip(&planned) {
            bound.push(self.bind_in_batch(&statement.values, planned, &environment).await?);
        }
        let no_condition = || QueryError::Server("a statement of another node has no condition".to_owned());
        if let ([planned], [bindings]) = (&planned[..], &bound[..])
            && let Body::Batch(plan) = &planned.body
        {
            let own = own_bindings(plan, bindings);
            let parts = parts_of(plan, bindings, &own);
            return self.decide_parts(&parts, true, &options, &mut room).await;
        }
        let mut parts = Vec::with_capacity(planned.len());
        for (planned, bindings) in planned.iter().zip(&bound) {
            let Body::Modify(plan) = &planned.body else { return Err(no_condition()) };
            parts.push(Part { plan, bindings });
        }
        if !parts.iter().any(|part| part.plan.condition.is_some()) {
            return Err(no_condition());
        }
        self.decide_parts(&parts, change.is_batch, &options, &mut room).await
    }

    async fn decide_parts(
        &self,
        parts: &[Part<'_>],
        is_batch: bool,
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Decision, QueryError> {
        let request = self.bind_request(parts, is_batch).await?;
        let levels = self.levels_of(options, request.table)?;
        self.decide(&request, levels, self.now(options), room).await
    }

    /// The plan of a statement of another node: one that was prepared there is prepared here, too.
    async fn plan_carried(
        &self,
        statement: &CarriedStatement,
        room: &mut AnswerRoom,
    ) -> Result<Rc<Planned>, QueryError> {
        let CarriedStatement { id, text, keyspace, .. } = statement;
        let Some(id) = id else {
            let parsed = self.parse(text, room).await?;
            let planned = self.plan(&self.coordinator.schema(), parsed, keyspace.as_deref()).await?;
            return Ok(Rc::new(planned));
        };
        if let Some(prepared) = self.prepared_now(id) {
            return Ok(prepared.planned);
        }
        self.texts.put(*id, PreparedText { keyspace: keyspace.clone(), text: text.clone() });
        Ok(self.prepared(id, room).await?.planned)
    }

    /// Decides about a change, and makes it when all of its conditions hold.
    async fn decide(
        &self,
        request: &Request<'_>,
        levels: ConditionalLevels,
        now: u32,
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
            if request.conditions.hold(partition.as_ref())? {
                let writing =
                    self.write_claimed(request, &mut claimed, partition.as_ref(), (levels, now), room);
                if writing.await? == Settled::Done {
                    return Ok(Decision::Applied);
                }
                continue;
            }
            let found = request.conditions.keep_shown(partition);
            if self.settle(claimed.leave(), levels, false).await? == Settled::Done {
                let found = found.map(|found| found_rows(request.table, &request.shown, &found));
                return Ok(Decision::NotApplied(found));
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

    async fn write_claimed(
        &self,
        request: &Request<'_>,
        claimed: &mut ClaimedPartition,
        partition: Option<&PartitionRows>,
        (levels, now): (ConditionalLevels, u32),
        room: &mut AnswerRoom,
    ) -> Result<Settled, QueryError> {
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
        match mutations.pop() {
            None => self.settle(claimed.leave(), levels, false).await,
            Some(mutation) => self.settle(claimed.write(mutation), levels, true).await,
        }
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

impl Decider for Inner {
    fn decide(self: Rc<Self>, change: Bytes) -> LocalBoxFuture<'static, Bytes> {
        Box::pin(async move {
            let decision = match unpack(&change) {
                Ok(change) => self.decide_carried(change).await,
                Err(error) => Err(error),
            };
            pack(&decision)
        })
    }
}

/// Of the statements of a batch, the values of those that have constants of their own, and none of the batch's markers.
fn own_bindings<'a>(plan: &'a BatchPlan, bindings: &'a Bindings<'_>) -> Vec<Option<Bindings<'a>>> {
    plan.statements.iter().map(|entry| plan.bind_constants(entry, bindings)).collect()
}

fn parts_of<'a>(
    plan: &'a BatchPlan,
    bindings: &'a Bindings<'a>,
    own: &'a [Option<Bindings<'a>>],
) -> Vec<Part<'a>> {
    let parts = plan.statements.iter().zip(own);
    parts.map(|(entry, own)| Part { plan: &entry.plan, bindings: own.as_ref().unwrap_or(bindings) }).collect()
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
