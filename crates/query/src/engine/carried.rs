//! How a change comes to the node that decides about its partition, and what that node does with it.

use std::rc::Rc;

use bytes::Bytes;
use coordinator::{ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, Decider};
use futures_util::future::LocalBoxFuture;
use rows::PartitionKey;
use schema::TableId;
use serde::de::DeserializeOwned;

use super::Inner;
use super::conditional::{Part, late, own_bindings, parts_of, refused};
use super::counting::count_carried;
use crate::conditional::{
    Carried, CarriedChange, CarriedStatement, Decision, KeptDecision, OperationId, pack, unpack,
};
use crate::functions::Environment;
use crate::memory::AnswerRoom;
use crate::prepare::{Body, Planned, PreparedText};
use crate::request::{BatchQuery, BatchStatement, QueryOptions, Values};
use crate::timeouts::TimedOut;
use crate::{QueryError, WriteType};

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

/// Why nothing is decided, as far as is known.
pub(super) enum Undecided {
    /// Something may be done.
    InDoubt,
    /// It stands in the way.
    Coordinator(CoordinatorError),
    /// Nothing was done, and this is to be told.
    Refused(QueryError),
}

impl From<QueryError> for Undecided {
    fn from(error: QueryError) -> Undecided {
        Undecided::Refused(error)
    }
}

impl From<CoordinatorError> for Undecided {
    fn from(error: CoordinatorError) -> Undecided {
        match error {
            CoordinatorError::InDoubt => Undecided::InDoubt,
            error => Undecided::Coordinator(error),
        }
    }
}

impl Undecided {
    /// As it is told of a change with a condition.
    pub(super) fn of_change(self, levels: ConditionalLevels) -> QueryError {
        match self {
            Undecided::InDoubt => late(levels, true),
            Undecided::Coordinator(error) => refused(error, levels),
            Undecided::Refused(error) => error,
        }
    }

    /// As it is told of what adds to counters.
    pub(super) fn of_count(self, consistency: Consistency) -> QueryError {
        match self {
            Undecided::InDoubt => TimedOut.of_write(consistency, WriteType::Counter),
            Undecided::Coordinator(CoordinatorError::Chosen { received, required: block_for }) => {
                QueryError::WriteTimeout { consistency, received, block_for, write_type: WriteType::Counter }
            }
            Undecided::Coordinator(error) => QueryError::of_write(error, consistency, WriteType::Counter),
            Undecided::Refused(error) => error,
        }
    }
}

impl Inner {
    /// Has something decided where its partition is decided about; `None` when that is here.
    pub(super) async fn decide_elsewhere<T: DeserializeOwned>(
        &self,
        (table, key): (TableId, &PartitionKey),
        levels: ConditionalLevels,
        carried: impl FnOnce() -> Result<Carried, QueryError>,
    ) -> Result<Option<T>, Undecided> {
        let others = coordinator::others_that_decide(&self.coordinator, table, key, levels.agreement)?;
        let Some(others) = others else { return Ok(None) };
        match others.decide(pack(&carried()?)).await? {
            None => Ok(None),
            Some(decided) => Ok(Some(unpack::<Result<T, QueryError>>(&decided)??)),
        }
    }

    /// The statements of a request, for another node.
    pub(super) fn statements_of(
        &self,
        options: &QueryOptions,
        origin: Origin<'_>,
    ) -> Result<Vec<CarriedStatement>, QueryError> {
        match origin {
            Origin::Statement(source, keyspace) => {
                Ok(vec![self.carried(source, keyspace, &options.values)?])
            }
            Origin::Batch(statements, keyspace) => {
                let carried =
                    |one: &BatchStatement| self.carried(Source::of(&one.query), keyspace, &one.values);
                statements.iter().map(carried).collect()
            }
        }
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
            return self.decide_parts(&parts, true, &options, change.operation, &mut room).await;
        }
        let mut parts = Vec::with_capacity(planned.len());
        for (planned, bindings) in planned.iter().zip(&bound) {
            let Body::Modify(plan) = &planned.body else { return Err(no_condition()) };
            parts.push(Part { plan, bindings });
        }
        if !parts.iter().any(|part| part.plan.condition.is_some()) {
            return Err(no_condition());
        }
        self.decide_parts(&parts, change.is_batch, &options, change.operation, &mut room).await
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
}

/// The id that a request has, with what it is given to.
pub(super) fn operation_of(
    engine: &Inner,
    options: &QueryOptions,
    origin: Origin<'_>,
) -> Result<Option<OperationId>, QueryError> {
    let Some(id) = options.operation else { return Ok(None) };
    Ok(Some(OperationId::new(id, &engine.statements_of(options, origin)?)))
}

/// What has come of an operation before, of a partition that is ready to be decided about. When that is nothing,
/// something may be done under its id.
pub(super) async fn decided_before(
    engine: &Inner,
    claimed: &ClaimedPartition,
    operation: OperationId,
) -> Result<Option<KeptDecision>, Undecided> {
    if let Some(kept) = claimed.outcome(operation.id()).await? {
        return Ok(Some(operation.read(&kept)?));
    }
    operation.check_age(1_000 * engine.coordinator.now_millis())?;
    Ok(None)
}

impl Decider for Inner {
    fn decide(self: Rc<Self>, change: Bytes) -> LocalBoxFuture<'static, Bytes> {
        Box::pin(async move {
            match unpack(&change) {
                Ok(Carried::Change(change)) => pack(&self.decide_carried(change).await),
                Ok(Carried::Count(count)) => pack(&count_carried(&self, count).await),
                Err(error) => pack(&Err::<(), QueryError>(error)),
            }
        })
    }
}
