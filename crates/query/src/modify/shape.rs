//! INSERTs of constants that differ in nothing but these, planned once.
//!
//! Who loads data by text batches sends `INSERT INTO t (a, b) VALUES (1, 'x')` a hundred times in a statement.
//! All of one *shape*, the table and its columns, share the plan of `VALUES (?, ?)`; what is left of each are
//! its values.

use std::sync::Arc;

use cql::ast::{Ident, Insert, InsertSource, Literal, Marker, QualifiedName, Term, Using};
use types::CqlType;

use super::plan::{ModifyPlan, Written, plan};
use crate::scope::Scope;
use crate::terms;

/// What INSERTs have in common.
pub(super) struct Shape<'a> {
    table: &'a Arc<QualifiedName>,
    columns: &'a Arc<[Ident]>,
    types: Vec<CqlType>,
    plan: Arc<ModifyPlan>,
}

impl<'a> Shape<'a> {
    /// That of an INSERT; `None` for one of something else than constants, or one that can not be planned: why
    /// not is found when it is planned by itself.
    pub(super) fn of(insert: &'a Insert, session: Option<&str>, scope: &Scope<'_>) -> Option<Shape<'a>> {
        let (columns, values) = columns_and_values(insert)?;
        if values.is_empty() || values.iter().any(|value| constant(value).is_none()) {
            return None;
        }
        let marker = |index| Term::Marker(Marker { index, name: None });
        let markers: Vec<Term> = (0..u32::try_from(values.len()).ok()?).map(marker).collect();
        let bound = Insert {
            table: Arc::clone(&insert.table),
            source: InsertSource::Values { columns: Arc::clone(columns), values: markers },
            if_not_exists: false,
            using: Using::default(),
        };
        let mut own = Scope::new(scope.catalog, "", values.len(), scope.now_millis);
        let plan = Arc::new(plan(Written::Insert(&bound), session, &mut own).ok()?);
        let type_of = |name: &Ident| Some(plan.table.column(name.as_str())?.cql_type.clone());
        let types = columns.iter().map(type_of).collect::<Option<_>>()?;
        Some(Shape { table: &insert.table, columns, types, plan })
    }

    /// The plan, and what is bound to it for this INSERT, among the `constants`; `None` if it is of another shape, or
    /// a constant does not fit its column.
    pub(super) fn fit(
        &self,
        insert: &Insert,
        now_millis: i64,
        constants: &mut Constants,
    ) -> Option<(Arc<ModifyPlan>, Run)> {
        let (columns, values) = columns_and_values(insert)?;
        let is_alike =
            insert.table == *self.table && columns == self.columns && values.len() == self.types.len();
        if !is_alike {
            return None;
        }
        let start = constants.ends.len();
        for (value, cql_type) in values.iter().zip(&self.types) {
            if constants.append(constant(value), cql_type, now_millis).is_none() {
                constants.truncate(start);
                return None;
            }
        }
        Some((Arc::clone(&self.plan), Run { start, count: values.len() }))
    }
}

/// Encoded constants, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

/// Some [`Constants`] next to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    start: usize,
    count: usize,
}

impl Constants {
    fn append(&mut self, literal: Option<&Literal>, cql_type: &CqlType, now_millis: i64) -> Option<()> {
        terms::append_fitting(literal?, cql_type, now_millis, &mut self.bytes)?.ok()?;
        self.ends.push(self.bytes.len());
        Some(())
    }

    /// Keeps the first so many.
    fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    pub(crate) fn values(&self, run: Run) -> impl Iterator<Item = &[u8]> {
        let mut at = if run.start == 0 { 0 } else { self.ends[run.start - 1] };
        let ends = &self.ends[run.start..run.start + run.count];
        ends.iter().map(move |end| &self.bytes[std::mem::replace(&mut at, *end)..*end])
    }

    pub(crate) fn total_bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn columns_and_values(insert: &Insert) -> Option<(&Arc<[Ident]>, &[Term])> {
    match &insert.source {
        InsertSource::Values { columns, values }
            if !insert.if_not_exists && insert.using == Using::default() =>
        {
            Some((columns, values))
        }
        _ => None,
    }
}

fn constant(term: &Term) -> Option<&Literal> {
    if let Term::Literal(literal) = term { Some(literal) } else { None }
}
