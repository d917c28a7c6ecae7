//! Carrying out planned statements.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use coordinator::{BatchProgress, Consistency, CoordinatorError, TimeoutKind, are_of_one_partition};
use cql::ast::StatementKind;
use rows::Mutation;
use runtime::Piece;
use schema::Table;

use super::Inner;
use super::carried::{Origin, Source};
use super::conditional::Part;
use crate::error::refuse;
use crate::functions::Environment;
use crate::latencies::RequestKind;
use crate::memory::AnswerRoom;
use crate::modify::{
    Basis, BatchPlan, Changes, ModifyPlan, Writer, check_batch, unlogged_warning, write_time,
};
use crate::prepare::{self, Body, Planned};
use crate::request::{BatchQuery, BatchStatement, BatchType, QueryOptions, SessionState, Values};
use crate::response::{Response, ResponseKind};
use crate::select::{self, Reader, SelectPlan};
use crate::terms::Bindings;
use crate::timeouts::{Deadline, TimedOut};
use crate::{ColumnSpec, QueryError, TombstoneFailure, WriteType};

impl Inner {
    /// Carries out a statement. `keyspace` is that of its unqualified names.
    pub(super) async fn execute(
        &self,
        planned: &Planned,
        keyspace: Option<&str>,
        options: &QueryOptions,
        room: &mut AnswerRoom,
        source: Source<'_>,
    ) -> Result<Response, QueryError> {
        let environment = Environment::of(self.coordinator.runtime());
        let mut bindings = bind(&options.values, &planned.variables, &environment, source.is_prepared())?;
        bindings.arrange(&planned.variables, self.io()).await;
        if !planned.body.gathers_rows() {
            room.release();
        }
        let begun = self.time();
        let response = match &planned.body {
            Body::Select(plan) => self.select(plan, &bindings, options, room).await,
            Body::Modify(plan) => self.modify(plan, &bindings, options, room, (source, keyspace)).await,
            // Boxed, so that the many reads and writes need no room for what they never do.
            Body::Batch(plan) => {
                Box::pin(self.batch_statement(plan, &bindings, options, room, (source, keyspace))).await
            }
            Body::Other(kind) => Box::pin(self.other(kind, keyspace, options)).await,
        };
        if let Some(kind) = request_kind(&planned.body, options.consistency) {
            self.note_time(kind, begun, 1);
        }
        response
    }

    async fn select(
        &self,
        plan: &SelectPlan,
        bindings: &Bindings<'_>,
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        if !options.consistency.is_for_reads() {
            refuse!("ANY ConsistencyLevel is only supported for writes");
        }
        let reader = Reader {
            coordinator: &self.coordinator,
            virtual_tables: &*self.virtual_tables,
            consistency: options.consistency,
            timeouts: &self.timeouts,
            tombstones: RefCell::default(),
        };
        let result = select::execute(plan, &reader, bindings, options, room).await;
        let tombstones = reader.tombstones.into_inner();
        let aggregated = aggregate_warning(plan).map(str::to_owned);
        let warnings =
            aggregated.into_iter().chain(tombstones.iter().map(|warning| warning.text.clone())).collect();
        match result {
            Ok(rows) => Ok(Response { kind: ResponseKind::Rows(rows), warnings, tombstones }),
            Err(QueryError::TooManyTombstones(failure)) => {
                let failure = TombstoneFailure { warnings, ..*failure };
                Err(QueryError::TooManyTombstones(Box::new(failure)))
            }
            Err(error) => Err(error),
        }
    }

    /// The moment of a request, in seconds since 1970.
    pub(super) fn now(&self, options: &QueryOptions) -> u32 {
        match options.now_in_seconds {
            Some(now) => u32::try_from(now).unwrap_or(0),
            None => self.coordinator.now_seconds(),
        }
    }

    fn writer(&self, options: &QueryOptions, timestamp: Option<i64>) -> Writer<'_> {
        let given = OnceCell::new();
        if let Some(timestamp) = timestamp.or(options.timestamp) {
            let _ = given.set(timestamp);
        }
        Writer {
            coordinator: &self.coordinator,
            consistency: options.consistency,
            prepends: &self.prepends,
            timestamp: given,
            now: self.now(options),
            basis: Basis::Read,
            statement_count: Cell::default(),
        }
    }

    async fn modify(
        &self,
        plan: &ModifyPlan,
        bindings: &Bindings<'_>,
        options: &QueryOptions,
        room: &mut AnswerRoom,
        (source, keyspace): (Source<'_>, Option<&str>),
    ) -> Result<Response, QueryError> {
        if plan.condition.is_some() {
            let (parts, origin) = ([Part { plan, bindings }], Origin::Statement(source, keyspace));
            // Boxed: most changes have no condition, and need no room for one.
            return Box::pin(self.change_if(&parts, false, options, room, origin)).await;
        }
        match plan.is_of_counters {
            true => check_counting_consistency(options.consistency, &plan.table)?,
            false => check_write_consistency(options.consistency)?,
        }
        let mut changes = Changes::default();
        // A row may be megabytes: each copy of it is a piece.
        let mut piece = Piece::of_turn();
        self.writer(options, None).add(plan, bindings, &mut changes, room).await?;
        room.release();
        piece.give_way().await;
        let mutations = changes.finish(self.io()).await;
        piece.give_way().await;
        match plan.is_of_counters {
            // Boxed: most changes count nothing, and need no room for it.
            true => {
                let origin = Origin::Statement(source, keyspace);
                Box::pin(self.count(mutations, options, origin)).await?;
            }
            false => self.write(mutations, options.consistency).await?,
        }
        Ok(Response::void())
    }

    async fn write(&self, mutations: Vec<Mutation>, consistency: Consistency) -> Result<(), QueryError> {
        if mutations.is_empty() {
            return Ok(());
        }
        // As in Cassandra, whatever the statement: what counts is how many partitions there are.
        let is_one = self.are_of_one_partition(&mutations);
        let write_type = if is_one { WriteType::Simple } else { WriteType::UnloggedBatch };
        let write = pin!(self.coordinator.write(mutations, consistency));
        let late = |timed_out: TimedOut| timed_out.of_write(consistency, write_type);
        self.wait_for_write(write, consistency, write_type, late).await
    }

    fn are_of_one_partition(&self, mutations: &[Mutation]) -> bool {
        // Most writes are of one mutation, and need no schema.
        mutations.len() == 1 || are_of_one_partition(mutations, &self.coordinator.schema())
    }

    /// Waits for a write as long as one may take.
    async fn wait_for_write(
        &self,
        write: Pin<&mut impl Future<Output = Result<(), CoordinatorError>>>,
        consistency: Consistency,
        write_type: WriteType,
        late: impl FnOnce(TimedOut) -> QueryError,
    ) -> Result<(), QueryError> {
        match Deadline::of(&self.timeouts, TimeoutKind::Write).within(write).await {
            Ok(written) => written.map_err(|error| QueryError::of_write(error, consistency, write_type)),
            Err(timed_out) => Err(late(timed_out)),
        }
    }

    async fn batch_statement(
        &self,
        plan: &BatchPlan,
        bindings: &Bindings<'_>,
        options: &QueryOptions,
        room: &mut AnswerRoom,
        (source, keyspace): (Source<'_>, Option<&str>),
    ) -> Result<Response, QueryError> {
        if plan.has_conditions {
            let origin = Origin::Statement(source, keyspace);
            return Box::pin(self.batch_statement_if(plan, bindings, options, room, origin)).await;
        }
        check_write_consistency(options.consistency)?;
        let writer = self.writer(options, write_time(&plan.using, bindings)?);
        let mut changes = plan.changes(self.coordinator.owners().count());
        let mut piece = Piece::of_turn();
        for entry in &plan.statements {
            writer.add_entry(entry, &plan.constants, bindings, &mut changes, room).await?;
            piece.give_way().await;
        }
        room.release();
        let tables: Vec<_> = plan.tables().collect();
        let origin = Origin::Statement(source, keyspace);
        let mutations = changes.finish(self.io()).await;
        self.apply_batch(plan.batch_type, mutations, &tables, options, origin).await
    }

    async fn apply_batch(
        &self,
        batch_type: BatchType,
        mutations: Vec<Mutation>,
        tables: &[&Arc<Table>],
        options: &QueryOptions,
        origin: Origin<'_>,
    ) -> Result<Response, QueryError> {
        let consistency = options.consistency;
        let mut response = Response::void();
        // One partition is atomic by itself.
        if batch_type == BatchType::Logged && !self.are_of_one_partition(&mutations) {
            let progress = BatchProgress::default();
            let write = pin!(self.coordinator.write_logged_batch(mutations, consistency, progress.clone()));
            let late = |timed_out: TimedOut| match progress.is_recorded() {
                true => timed_out.of_write(consistency, WriteType::Batch),
                false => QueryError::of_write(progress.unrecorded(), consistency, WriteType::BatchLog),
            };
            self.wait_for_write(write, consistency, WriteType::Batch, late).await?;
            return Ok(response);
        }
        if batch_type == BatchType::Unlogged {
            response.warnings.extend(unlogged_warning(&mutations, tables));
        }
        // All tables of a batch are of counters, or none.
        match tables.first().is_some_and(|table| table.is_counter()) {
            true => self.count(mutations, options, origin).await?,
            false => self.write(mutations, consistency).await?,
        }
        Ok(response)
    }

    /// Carries out a BATCH message; tells which kind it is, once it is known.
    pub(super) async fn batch(
        &self,
        session: &mut SessionState,
        batch_type: BatchType,
        statements: &[BatchStatement],
        options: &QueryOptions,
        room: &mut AnswerRoom,
        kind: &mut RequestKind,
    ) -> Result<Response, QueryError> {
        let schema = self.coordinator.schema();
        let keyspace = options.keyspace.as_deref().or(session.keyspace.as_deref());
        let texts = statements.iter().filter_map(|statement| match &statement.query {
            BatchQuery::Prepared(_) => None,
            BatchQuery::Text(text) => Some(text.as_str()),
        });
        prepare::make_room_for_small(texts, room).await?;
        let mut planned: Vec<Rc<Planned>> = Vec::with_capacity(statements.len());
        let mut piece = Piece::of_turn();
        for statement in statements {
            planned.push(match &statement.query {
                BatchQuery::Prepared(id) => self.prepared(id, room).await?.planned,
                BatchQuery::Text(text) => {
                    Rc::new(self.plan(&schema, self.parse(text, room).await?, keyspace).await?)
                }
            });
            piece.give_way().await;
        }
        let mut plans = Vec::with_capacity(planned.len());
        for planned in &planned {
            match &planned.body {
                Body::Modify(plan) => plans.push(&**plan),
                _ => refuse!(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
                ),
            }
        }
        check_batch(batch_type, false, &plans)?;
        if !plans.iter().any(|plan| plan.reads_first()) {
            room.release();
        }
        let environment = Environment::of(self.coordinator.runtime());
        if plans.iter().any(|plan| plan.condition.is_some()) {
            *kind = RequestKind::ConditionalWrite;
            let mut bound = Vec::with_capacity(plans.len());
            for (statement, planned) in statements.iter().zip(&planned) {
                bound.push(self.bind_in_batch(&statement.values, planned, &environment).await?);
            }
            let parts = plans.iter().zip(&bound);
            let parts: Vec<Part<'_>> = parts.map(|(plan, bindings)| Part { plan, bindings }).collect();
            let origin = Origin::Batch(statements, keyspace);
            return Box::pin(self.change_if(&parts, true, options, room, origin)).await;
        }
        check_write_consistency(options.consistency)?;
        let writer = self.writer(options, None);
        let mut changes = Changes::default();
        for ((statement, planned), plan) in statements.iter().zip(&planned).zip(&plans) {
            let bindings = self.bind_in_batch(&statement.values, planned, &environment).await?;
            writer.add(plan, &bindings, &mut changes, room).await?;
            piece.give_way().await;
        }
        room.release();
        let tables: Vec<_> = plans.iter().map(|plan| &plan.table).collect();
        let mutations = changes.finish(self.io()).await;
        self.apply_batch(batch_type, mutations, &tables, options, Origin::Batch(statements, keyspace)).await
    }

    /// The values of a statement of a BATCH message, or of another node.
    pub(super) async fn bind_in_batch<'a>(
        &self,
        values: &'a Values,
        planned: &Planned,
        environment: &'a Environment<'a>,
    ) -> Result<Bindings<'a>, QueryError> {
        let bound = Bindings::new(values, &planned.variables, environment);
        let mut bindings = bound.map_err(|count| {
            QueryError::invalid(stdx::brief!(
                "There were {} markers(?) in CQL but {} bound variables",
                count.markers,
                count.values
            ))
        })?;
        bindings.arrange(&planned.variables, self.io()).await;
        Ok(bindings)
    }

    async fn other(
        &self,
        statement: &StatementKind,
        keyspace: Option<&str>,
        options: &QueryOptions,
    ) -> Result<Response, QueryError> {
        match statement {
            StatementKind::Use(name) => {
                let schema = self.coordinator.schema();
                if self.catalog(&schema).keyspace(name).is_none() {
                    refuse!("Keyspace '{}' does not exist", name.as_str());
                }
                Ok(ResponseKind::SetKeyspace(name.as_str().to_owned()).into())
            }
            StatementKind::Truncate(truncate) => self.truncate(truncate, keyspace).await,
            StatementKind::Describe(describe) => self.describe(describe, keyspace, options),
            StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole(_)
            | StatementKind::ListRoles(_)
            | StatementKind::GrantRole(_)
            | StatementKind::RevokeRole(_)
            | StatementKind::CreateUser(_)
            | StatementKind::AlterUser(_)
            | StatementKind::DropUser(_)
            | StatementKind::ListUsers
            | StatementKind::GrantPermissions(_)
            | StatementKind::RevokePermissions(_)
            | StatementKind::ListPermissions(_)
            | StatementKind::AddIdentity(_)
            | StatementKind::DropIdentity(_) => Err(QueryError::Unauthorized(
                "You have to be logged in and not anonymous to perform this request".into(),
            )),
            _ => self.change_schema(statement, keyspace).await,
        }
    }
}

/// What its time tells of; `None` of what neither reads rows nor writes them.
fn request_kind(body: &Body, consistency: Consistency) -> Option<RequestKind> {
    match body {
        Body::Select(_) if consistency.is_serial() => Some(RequestKind::SerialRead),
        Body::Select(plan) if plan.restrictions.is_key_range => Some(RequestKind::Range),
        Body::Select(_) => Some(RequestKind::Read),
        Body::Modify(plan) if plan.condition.is_some() => Some(RequestKind::ConditionalWrite),
        Body::Batch(plan) if plan.has_conditions => Some(RequestKind::ConditionalWrite),
        Body::Modify(_) | Body::Batch(_) => Some(RequestKind::Write),
        Body::Other(_) => None,
    }
}

fn check_write_consistency(consistency: Consistency) -> Result<(), QueryError> {
    if !consistency.is_for_writes() {
        refuse!("You must use conditional updates for serializable writes");
    }
    Ok(())
}

/// As Cassandra: a batch is not asked.
fn check_counting_consistency(consistency: Consistency, table: &Table) -> Result<(), QueryError> {
    if consistency == Consistency::Any {
        refuse!("Consistency level ANY is not yet supported for counter table {}", table.name());
    }
    if consistency.is_serial() {
        refuse!("Counter operations are inherently non-serializable");
    }
    Ok(())
}

fn bind<'a>(
    values: &'a Values,
    variables: &[ColumnSpec],
    environment: &'a Environment<'a>,
    is_prepared: bool,
) -> Result<Bindings<'a>, QueryError> {
    Bindings::new(values, variables, environment).map_err(|count| {
        QueryError::invalid(match is_prepared {
            true => {
                format!("there were {} markers(?) in CQL but {} bound variables", count.markers, count.values)
            }
            false => "Invalid amount of bind variables".to_owned(),
        })
    })
}

/// What the client should know of an aggregate.
fn aggregate_warning(plan: &SelectPlan) -> Option<&'static str> {
    if !plan.is_aggregate() {
        return None;
    }
    if plan.restrictions.is_key_range {
        return Some("Aggregation query used without partition key");
    }
    plan.restrictions
        .key_is_in()
        .then_some("Aggregation query used on multiple partition keys (IN restriction)")
}
