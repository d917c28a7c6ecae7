//! BATCH: several modifications at one timestamp.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use cql::ast::{Batch, BatchKind, Insert, Modification};
use rows::Mutation;
use schema::Table;

use super::collect::Changes;
use super::plan::{ModifyPlan, Using, plan, plan_using};
use super::shape::{Constants, Run, Shape};
use crate::QueryError;
use crate::error::refuse;
use crate::request::{BatchType, BindValue};
use crate::scope::{Scope, TableNames};
use crate::terms::Bindings;

/// An unlogged batch over more partitions than this is warned of.
const PARTITIONS_UNWARNED: usize = 10;

/// Shapes of INSERTs that are remembered: a batch that writes to several tables goes from one to the other.
const SHAPES_MAX: usize = 4;

/// A planned `BEGIN BATCH … APPLY BATCH`.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    pub(crate) batch_type: BatchType,
    pub(crate) using: Using,
    pub(crate) statements: Vec<BatchEntry>,
    pub(crate) constants: Constants,
    /// Is it made under conditions?
    pub(crate) has_conditions: bool,
}

/// A statement of a batch.
#[derive(Debug)]
pub(crate) struct BatchEntry {
    /// Statements that differ in their constants alone share one.
    pub(crate) plan: Arc<ModifyPlan>,
    /// Which constants of the batch are bound to markers of the plan; `None` if its markers are those of the batch.
    pub(crate) constants: Option<Run>,
}

impl BatchPlan {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.statements.iter().map(|entry| &entry.plan.table)
    }

    /// Must rows be read before they are changed?
    pub(crate) fn reads_first(&self) -> bool {
        self.statements.iter().any(|entry| entry.plan.reads_first())
    }

    /// What a statement is bound to that has constants of its own.
    pub(crate) fn bind_constants<'a>(
        &self,
        entry: &BatchEntry,
        of_batch: &Bindings<'a>,
    ) -> Option<Bindings<'a>> {
        let value = |value| BindValue::Set(Bytes::copy_from_slice(value));
        let values = self.constants.values(entry.constants?).map(value).collect();
        Some(Bindings::of_markers(values, of_batch.environment))
    }

    /// Nothing yet, and room for what the constants become.
    pub(crate) fn changes(&self, shard_count: usize) -> Changes {
        let rows = self.statements.iter().filter(|entry| entry.constants.is_some()).count();
        Changes::of_rows(rows, self.constants.total_bytes(), shard_count)
    }

    /// The table of all statements, if it is one.
    pub(crate) fn only_table(&self) -> Option<&Arc<Table>> {
        let first = self.tables().next()?;
        self.tables().all(|table| table.id() == first.id()).then_some(first)
    }
}

/// Plans a batch written as one statement.
///
/// # Errors
/// A part of it can not be planned, or the parts do not go together.
pub(crate) fn plan_batch(
    batch: &Batch,
    session: Option<&str>,
    scope: &mut Scope<'_>,
) -> Result<BatchPlan, QueryError> {
    let mut statements = Vec::with_capacity(batch.statements.len());
    let names = TableNames { keyspace: "".into(), table: "".into() };
    let using = plan_using(&batch.using, &names, scope)?;
    let mut shapes: Vec<Shape<'_>> = Vec::new();
    let mut constants = Constants::default();
    for statement in &batch.statements {
        let alike = match statement {
            Modification::Insert(insert) => fit(insert, &mut shapes, &mut constants, session, scope),
            _ => None,
        };
        statements.push(match alike {
            Some((plan, run)) => BatchEntry { plan, constants: Some(run) },
            None => BatchEntry { plan: Arc::new(plan(statement.into(), session, scope)?), constants: None },
        });
    }
    let batch_type = match batch.kind {
        BatchKind::Logged => BatchType::Logged,
        BatchKind::Unlogged => BatchType::Unlogged,
        BatchKind::Counter => BatchType::Counter,
    };
    if using.time_to_live.is_some() {
        refuse!("Global TTL on the BATCH statement is not supported.");
    }
    let plans: Vec<&ModifyPlan> = statements.iter().map(|entry| &*entry.plan).collect();
    check(batch_type, using.timestamp.is_some(), &plans)?;
    let has_conditions = plans.iter().any(|plan| plan.condition.is_some());
    Ok(BatchPlan { batch_type, using, statements, constants, has_conditions })
}

/// The plan of an INSERT of constants, and these: by the shape of one before it, or a new one.
fn fit<'a>(
    insert: &'a Insert,
    shapes: &mut Vec<Shape<'a>>,
    constants: &mut Constants,
    session: Option<&str>,
    scope: &Scope<'_>,
) -> Option<(Arc<ModifyPlan>, Run)> {
    let found = shapes.iter().find_map(|shape| shape.fit(insert, scope.now_millis, constants));
    if found.is_some() {
        return found;
    }
    let other = Shape::of(insert, session, scope)?;
    let fitting = other.fit(insert, scope.now_millis, constants);
    if shapes.len() == SHAPES_MAX {
        shapes.remove(0);
    }
    shapes.push(other);
    fitting
}

/// Do these statements go together in a batch?
///
/// # Errors
/// Counters and others mix, or a timestamp is said twice.
pub(crate) fn check(
    batch_type: BatchType,
    has_timestamp: bool,
    statements: &[&ModifyPlan],
) -> Result<(), QueryError> {
    let has_conditions = statements.iter().any(|statement| statement.condition.is_some());
    if has_timestamp && has_conditions {
        refuse!("Cannot provide custom timestamp for conditional BATCH");
    }
    if has_timestamp && batch_type == BatchType::Counter {
        refuse!("Cannot provide custom timestamp for counter BATCH");
    }
    if has_timestamp && statements.iter().any(|statement| statement.has_timestamp()) {
        refuse!("Timestamp must be set either on BATCH or individual statements");
    }
    let has_counters = statements.iter().any(|statement| statement.is_of_counters);
    let has_others = statements.iter().any(|statement| !statement.is_of_counters);
    if has_timestamp && has_counters {
        refuse!("Cannot provide custom timestamp for a BATCH containing counters");
    }
    if batch_type == BatchType::Counter && has_others {
        refuse!("Cannot include non-counter statement in a counter batch");
    }
    if has_counters && has_others {
        refuse!("Counter and non-counter mutations cannot exist in the same batch");
    }
    if batch_type == BatchType::Logged && has_counters {
        refuse!("Cannot include a counter statement in a logged batch");
    }
    let is_one_table = || statements.windows(2).all(|two| two[0].table.id() == two[1].table.id());
    if has_conditions && !is_one_table() {
        refuse!("Batch with conditions cannot span multiple tables");
    }
    Ok(())
}

/// What the sender of an unlogged batch should know.
pub(crate) fn unlogged_warning(mutations: &[Mutation], tables: &[&Arc<Table>]) -> Option<String> {
    if mutations.len() <= PARTITIONS_UNWARNED {
        return None;
    }
    // Of one table each mutation is another partition; tables may share keys.
    let is_one_table = mutations.windows(2).all(|two| two[0].table == two[1].table);
    let keys = || mutations.iter().map(|mutation| &mutation.key).collect::<BTreeSet<_>>().len();
    let partition_count = if is_one_table { mutations.len() } else { keys() };
    if partition_count <= PARTITIONS_UNWARNED {
        return None;
    }
    let runs = tables.chunk_by(|one, other| one.id() == other.id());
    let name = |run: &[&Arc<Table>]| format!("{}.{}", run[0].keyspace(), run[0].name());
    let names: BTreeSet<String> = runs.map(name).collect();
    Some(format!(
        "Unlogged batch covering {partition_count} partitions detected against table{} [{}]. You should use a logged batch for atomicity, or asynchronous writes for performance.",
        if names.len() == 1 { "" } else { "s" },
        names.into_iter().collect::<Vec<_>>().join(", ")
    ))
}
