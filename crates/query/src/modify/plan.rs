//! The plan of an INSERT, UPDATE or DELETE.

use std::ops::Add;
use std::sync::Arc;

use cql::ast::{Delete, Insert, IntegerValue, Modification, Relation, Update};
use rows::ClusteringComparator;
use schema::{Column, ColumnId, ColumnKind, Table};
use types::CqlType;

use super::insert;
use super::operation::{ColumnChange, Operation, plan_assignment, plan_deletion};
use super::plain::PlainChange;
use crate::QueryError;
use crate::catalog::{Home, keyspace_of};
use crate::conditional::{Condition, plan_condition};
use crate::error::refuse;
use crate::restrictions::{Context, Restrictions, StatementType, existing_column};
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};

/// A planned modification.
#[derive(Debug)]
pub(crate) struct ModifyPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) comparator: ClusteringComparator,
    pub(crate) statement: StatementType,
    pub(crate) restrictions: Restrictions,
    /// Changes of static columns, ascending by id.
    pub(crate) statics: Arc<[ColumnChange]>,
    /// Changes of regular columns, ascending by id.
    pub(crate) regulars: Arc<[ColumnChange]>,
    /// What is put together of constants, in bytes; `None` when all values are stored as they are written or sent.
    pub(crate) made_bytes: Option<usize>,
    pub(crate) using: Using,
    /// Under which condition it is made.
    pub(crate) condition: Option<Box<Condition>>,
    /// Is it counted, or deletes what was counted?
    pub(crate) is_of_counters: bool,
    /// How it is written the plain way, if it can be ([`super::plain`]).
    pub(crate) plain: Option<PlainChange>,
}

/// USING.
#[derive(Clone, Debug, Default)]
pub(crate) struct Using {
    pub(crate) timestamp: Option<Term>,
    pub(crate) time_to_live: Option<Term>,
}

impl ModifyPlan {
    /// Does it say its own timestamp?
    pub(crate) fn has_timestamp(&self) -> bool {
        self.using.timestamp.is_some()
    }

    /// May counters be changed with what it says? Asked behind all that is to be said of a batch that it is in.
    ///
    /// # Errors
    /// Their times are for who counts to say.
    pub(crate) fn check_counting(&self) -> Result<(), QueryError> {
        if !self.is_of_counters {
            return Ok(());
        }
        if self.using.timestamp.is_some() {
            refuse!("Cannot provide custom timestamp for counter updates");
        }
        if self.using.time_to_live.is_some() {
            refuse!("Cannot provide custom TTL for counter updates");
        }
        Ok(())
    }

    /// Must rows be read before they are changed?
    pub(crate) fn reads_first(&self) -> bool {
        self.condition.is_some() || self.statics.iter().chain(&*self.regulars).any(ColumnChange::reads)
    }

    /// The columns that must be read first, to change them by what they are.
    pub(crate) fn columns_read_first(&self) -> impl Iterator<Item = ColumnId> {
        let changes = self.statics.iter().chain(&*self.regulars);
        changes.filter(|change| change.reads()).map(|change| change.id)
    }

    /// Is it about a row of the partition, and not about the static row alone or all rows?
    pub(crate) fn is_of_a_row(&self) -> bool {
        self.table.clustering().is_empty() || self.restrictions.has_clustering()
    }

    /// Is its condition one on the static row?
    pub(crate) fn is_of_static_row(&self) -> bool {
        let is_only_static = self.regulars.is_empty() && !self.statics.is_empty();
        let tests_regulars = self.condition.as_ref().is_some_and(|condition| condition.tests_regulars());
        is_only_static && !tests_regulars && !self.restrictions.has_clustering()
    }

    /// Are rows changed, or only the static one?
    pub(crate) fn changes_rows(&self) -> bool {
        let only_static = self.regulars.is_empty() && !self.statics.is_empty();
        match self.statement {
            // An INSERT of static columns alone makes no row, unless it names one.
            StatementType::Insert => !only_static || self.restrictions.names_rows(),
            _ => !only_static,
        }
    }
}

/// A modification as it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written<'a> {
    Insert(&'a Insert),
    Update(&'a Update),
    Delete(&'a Delete),
}

impl<'a> From<&'a Modification> for Written<'a> {
    fn from(modification: &'a Modification) -> Self {
        match modification {
            Modification::Insert(insert) => Written::Insert(insert),
            Modification::Update(update) => Written::Update(update),
            Modification::Delete(delete) => Written::Delete(delete),
        }
    }
}

/// Plans a modification.
///
/// # Errors
/// In Cassandra's words and order.
pub(crate) fn plan(
    modification: Written<'_>,
    session: Option<&str>,
    scope: &mut Scope<'_>,
) -> Result<ModifyPlan, QueryError> {
    let (name, using) = match modification {
        Written::Insert(insert) => (&*insert.table, &insert.using),
        Written::Update(update) => (&update.table, &update.using),
        Written::Delete(delete) => (&delete.table, &delete.using),
    };
    let keyspace = keyspace_of(name.keyspace.as_deref(), session)?;
    let (table, home) = scope.catalog.table(keyspace, &name.name)?;
    scope.keyspace = keyspace.to_owned();
    check_writable(&table, home, scope)?;
    let names = TableNames::of(&table);
    let planned_using = plan_using(using, &names, scope)?;
    let condition = modification.plan_condition(using.timestamp.is_some(), &table, scope)?;
    let plan = match modification {
        Written::Insert(statement) => insert::plan(statement, &table, planned_using, scope)?,
        Written::Update(statement) => {
            plan_update(statement, &table, planned_using, condition.as_ref(), scope)?
        }
        Written::Delete(statement) => {
            plan_delete(statement, &table, planned_using, condition.as_ref(), scope)?
        }
    };
    match condition {
        Some(condition) => plan.under(condition),
        None => Ok(plan),
    }
}

impl Written<'_> {
    fn plan_condition(
        self,
        has_timestamp: bool,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Condition>, QueryError> {
        match self {
            Written::Insert(insert) => Ok(insert.if_not_exists.then_some(Condition::NotExists)),
            Written::Update(Update { condition, .. }) | Written::Delete(Delete { condition, .. }) => {
                plan_condition(condition, has_timestamp, table, scope)
            }
        }
    }
}

impl ModifyPlan {
    /// The same under a condition.
    ///
    /// # Errors
    /// Such a change can not be.
    fn under(self, condition: Condition) -> Result<Self, QueryError> {
        if self.is_of_counters {
            refuse!("Conditional updates are not supported on counter tables");
        }
        if self.has_timestamp() {
            refuse!("Cannot provide custom timestamp for conditional updates");
        }
        if self.statement == StatementType::Delete && !self.restrictions.names_rows() {
            const MUST: &str =
                "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to";
            if !self.regulars.is_empty() || self.statics.is_empty() {
                refuse!("{MUST} delete non static columns");
            }
            if condition.tests_regulars() {
                refuse!("{MUST} use IF condition on non static columns");
            }
        }
        Ok(ModifyPlan { condition: Some(Box::new(condition)), plain: None, ..self })
    }
}

fn check_writable(table: &Table, home: Home, scope: &Scope<'_>) -> Result<(), QueryError> {
    if home == Home::Stored {
        return Ok(());
    }
    if scope.catalog.made_up.is_virtual(table.keyspace()) {
        refuse!("Modification is not supported by table {}.{}", table.keyspace(), table.name());
    }
    Err(QueryError::Unauthorized(format!("{} keyspace is not user-modifiable.", table.keyspace())))
}

/// Plans USING.
///
/// # Errors
/// A value is no number.
pub(crate) fn plan_using(
    using: &cql::ast::Using,
    names: &TableNames,
    scope: &mut Scope<'_>,
) -> Result<Using, QueryError> {
    let mut value = |value: &Option<IntegerValue>, name: &str, of: CqlType| match value {
        None => Ok(None),
        Some(IntegerValue::Marker(marker)) => {
            let receiver = Receiver::new(names, name, of);
            terms::plan(&cql::ast::Term::Marker(marker.clone()), &receiver, scope).map(Some)
        }
        Some(IntegerValue::Literal(digits)) => {
            let literal = cql::ast::Literal::new(cql::ast::LiteralKind::Integer, digits);
            let receiver = Receiver::new(names, name, of);
            terms::plan(&cql::ast::Term::Literal(literal), &receiver, scope).map(Some)
        }
    };
    Ok(Using {
        timestamp: value(&using.timestamp, "[timestamp]", CqlType::Bigint)?,
        time_to_live: value(&using.time_to_live, "[ttl]", CqlType::Int)?,
    })
}

/// Changes of columns, kept apart and in order.
#[derive(Debug, Default)]
pub(super) struct ColumnChanges {
    pub(super) statics: Vec<ColumnChange>,
    pub(super) regulars: Vec<ColumnChange>,
}

impl ColumnChanges {
    pub(super) fn add(&mut self, column: &Column, operation: Operation) {
        let all = if column.is_static() { &mut self.statics } else { &mut self.regulars };
        match all.iter_mut().find(|change| change.id == column.id) {
            Some(change) => change.operations.push(operation),
            None => {
                let change = ColumnChange {
                    id: column.id,
                    cql_type: column.cql_type.clone(),
                    operations: vec![operation],
                };
                let place = all.partition_point(|other| other.id < column.id);
                all.insert(place, change);
            }
        }
    }

    pub(super) fn only_static(&self) -> bool {
        self.regulars.is_empty() && !self.statics.is_empty()
    }

    pub(super) fn finish(
        self,
        statement: StatementType,
        table: &Arc<Table>,
        restrictions: Restrictions,
        using: Using,
    ) -> ModifyPlan {
        let plan = ModifyPlan {
            table: Arc::clone(table),
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            statement,
            restrictions,
            made_bytes: self
                .statics
                .iter()
                .chain(&self.regulars)
                .filter_map(ColumnChange::made_bytes)
                .reduce(Add::add),
            statics: self.statics.into(),
            regulars: self.regulars.into(),
            using,
            condition: None,
            is_of_counters: table.is_counter(),
            plain: None,
        };
        let plain = plan.find_plain();
        ModifyPlan { plain, ..plan }
    }
}

pub(super) fn restrict(
    relations: &[Relation],
    statement: StatementType,
    only_static_columns: bool,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Restrictions, QueryError> {
    let context = Context { statement, only_static_columns, allow_filtering: false, filters_freely: false };
    Restrictions::plan(relations, table, context, scope)
}

fn plan_update(
    update: &Update,
    table: &Arc<Table>,
    using: Using,
    condition: Option<&Condition>,
    scope: &mut Scope<'_>,
) -> Result<ModifyPlan, QueryError> {
    let names = TableNames::of(table);
    let mut changes = ColumnChanges::default();
    for assignment in &update.assignments {
        let column = existing_column(table, &assignment.column)?;
        if column.is_primary_key() {
            refuse!("PRIMARY KEY part {} found in SET part", column.name);
        }
        let operation = plan_assignment(column, &assignment.action, condition.is_some(), &names, scope)?;
        changes.add(column, operation);
    }
    let only_static = changes.only_static() && !condition.is_some_and(Condition::tests_regulars);
    let restrictions = restrict(&update.relations, StatementType::Update, only_static, table, scope)?;
    Ok(changes.finish(StatementType::Update, table, restrictions, using))
}

fn plan_delete(
    delete: &Delete,
    table: &Arc<Table>,
    using: Using,
    condition: Option<&Condition>,
    scope: &mut Scope<'_>,
) -> Result<ModifyPlan, QueryError> {
    let names = TableNames::of(table);
    let mut changes = ColumnChanges::default();
    for deleted in &delete.columns {
        let column = existing_column(table, &deleted.column)?;
        if matches!(column.kind, ColumnKind::PartitionKey(_) | ColumnKind::Clustering(..)) {
            refuse!("Invalid identifier {} for deletion (should not be a PRIMARY KEY part)", column.name);
        }
        let operation = plan_deletion(column, deleted, &names, scope)?;
        changes.add(column, operation);
    }
    let only_static = changes.only_static() && !condition.is_some_and(Condition::tests_regulars);
    let restrictions = restrict(&delete.relations, StatementType::Delete, only_static, table, scope)?;
    // Under a condition it is refused in other words.
    if condition.is_none() && !changes.regulars.is_empty() && !restrictions.names_rows() {
        refuse!("Range deletions are not supported for specific columns");
    }
    Ok(changes.finish(StatementType::Delete, table, restrictions, using))
}
