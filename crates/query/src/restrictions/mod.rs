//! WHERE: which partitions, which rows of them, and what is left to filter.
//!
//! Planned once: relations become [`Restriction`]s, checked together in Cassandra's words and
//! order. Bound at every execution: keys or a part of the ring ([`Restrictions::bind_partitions`]),
//! slices of clusterings ([`Restrictions::bind_slices`]), and a row filter.

mod clustering;
mod filter;
mod merge;
mod partition;
mod product;
mod relation;
mod restriction;
mod spelled;

use cql::ast::Relation;
use schema::{Column, ColumnKind, Table};

use crate::QueryError;
use crate::error::refuse;
use crate::scope::{Scope, TableNames};
use crate::terms::Term;

pub(crate) use clustering::Rows;
pub(crate) use filter::{RowFilter, any_element};
pub(crate) use partition::{Partitions, check_key_length};
pub(crate) use product::{COMBINATIONS_MAX, too_many};
pub(crate) use relation::{check_duration_slice, contained_type, existing_column, is_slice, symbol};
pub(crate) use restriction::each_of_list;
pub(crate) use spelled::{after, before, spell_token_of_key};

use partition::TokenRestriction;
use relation::Relations;
use restriction::{Restriction, Test, Values};

/// What kind of statement a WHERE belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementType {
    Select,
    Insert,
    Update,
    Delete,
}

impl StatementType {
    fn name(self) -> &'static str {
        match self {
            StatementType::Select => "SELECT",
            StatementType::Insert => "INSERT",
            StatementType::Update => "UPDATE",
            StatementType::Delete => "DELETE",
        }
    }
}

pub(crate) const ALLOW_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

/// What planning a WHERE needs to know of its statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) statement: StatementType,
    /// Are all columns that are selected or changed static?
    pub(crate) only_static_columns: bool,
    pub(crate) allow_filtering: bool,
    /// May rows be filtered without being asked (virtual tables)?
    pub(crate) filters_freely: bool,
}

/// A planned WHERE.
#[derive(Clone, Debug)]
pub(crate) struct Restrictions {
    partition: Vec<Restriction>,
    token: Option<TokenRestriction>,
    clustering: Vec<Restriction>,
    other: Vec<Restriction>,
    /// Are the partitions to be found by going along the ring?
    pub(crate) is_key_range: bool,
    /// Is the partition key itself filtered on?
    filters_partition_key: bool,
    pub(crate) has_regular_restrictions: bool,
    partition_key_count: usize,
    clustering_count: usize,
}

impl Restrictions {
    /// Plans a WHERE.
    ///
    /// # Errors
    /// In Cassandra's words and order.
    pub(crate) fn plan(
        relations: &[Relation],
        table: &Table,
        context: Context,
        scope: &mut Scope<'_>,
    ) -> Result<Self, QueryError> {
        let planner = Relations { table, names: TableNames::of(table) };
        let mut planned = Self::none(table);
        for relation in relations {
            planned.check_contains(relation, context)?;
            if let Relation::Token { columns, operator, value } = relation {
                TokenRestriction::add(&mut planned.token, &planner, columns, *operator, value, scope)?;
                continue;
            }
            let restriction = planner.plan(relation, scope)?;
            planned.add(restriction, table, context)?;
        }
        planned.check(table, context)?;
        Ok(planned)
    }

    fn none(table: &Table) -> Self {
        Restrictions {
            partition: Vec::new(),
            token: None,
            clustering: Vec::new(),
            other: Vec::new(),
            is_key_range: false,
            filters_partition_key: false,
            has_regular_restrictions: false,
            partition_key_count: table.partition_key().len(),
            clustering_count: table.clustering().len(),
        }
    }

    /// Equalities of columns of the primary key, as an INSERT has them.
    ///
    /// # Errors
    /// Components are missing.
    pub(crate) fn equalities(
        values: Vec<(&Column, Term)>,
        table: &Table,
        context: Context,
    ) -> Result<Self, QueryError> {
        let mut planned = Self::none(table);
        for (column, term) in values {
            let test = Test::Equal(Values::Terms(vec![term]));
            let restriction =
                Restriction { columns: vec![relation::restricted(column)], is_tuple: false, test };
            planned.add(restriction, table, context)?;
        }
        planned.check(table, context)?;
        Ok(planned)
    }

    fn check_contains(&self, relation: &Relation, context: Context) -> Result<(), QueryError> {
        use cql::ast::Operator::{Contains, ContainsKey};
        if let Relation::Column { operator: operator @ (Contains | ContainsKey), .. } = relation
            && matches!(context.statement, StatementType::Update | StatementType::Delete)
        {
            refuse!("Cannot use {} with {}", context.statement.name(), relation::symbol(*operator));
        }
        Ok(())
    }

    fn add(&mut self, new: Restriction, table: &Table, context: Context) -> Result<(), QueryError> {
        let Some(column) = table.column_by_id(new.first().id) else { return Ok(()) };
        match column.kind {
            ColumnKind::PartitionKey(_) => merge::add(&mut self.partition, new),
            ColumnKind::Clustering(..) => self.add_clustering(new, context),
            ColumnKind::Static => merge::add(&mut self.other, new),
            ColumnKind::Regular => {
                self.has_regular_restrictions = true;
                merge::add(&mut self.other, new)
            }
        }
    }

    fn add_clustering(&mut self, new: Restriction, context: Context) -> Result<(), QueryError> {
        let last = self.clustering.last().map(|last| (last.first().clone(), last.is_slice()));
        let (first, is_slice) = (new.first().clone(), new.is_slice());
        merge::add(&mut self.clustering, new)?;
        let Some((last, last_is_slice)) = last.filter(|_| !context.allow_filtering) else { return Ok(()) };
        if last_is_slice && first.position > last.position {
            refuse!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                first.name,
                last.name
            );
        }
        if first.position < last.position && is_slice {
            let next = self.clustering.iter().find(|r| r.first().position > first.position);
            refuse!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                next.map_or(&last.name, |r| &r.first().name),
                first.name
            );
        }
        Ok(())
    }

    fn check(&mut self, table: &Table, context: Context) -> Result<(), QueryError> {
        self.check_partition_key(table, context)?;
        if context.only_static_columns && self.has_clustering() {
            match context.statement {
                StatementType::Update | StatementType::Delete => refuse!(
                    "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                    context.statement.name()
                ),
                StatementType::Select => {
                    refuse!("Cannot restrict clustering columns when selecting only static columns")
                }
                StatementType::Insert => {}
            }
        }
        self.check_clustering(table, context)?;
        if self.other.is_empty() {
            return Ok(());
        }
        if context.statement != StatementType::Select {
            let names: Vec<&str> = self.other.iter().map(|r| &*r.first().name).collect();
            refuse!("Non PRIMARY KEY columns found in where clause: {} ", names.join(", "));
        }
        self.require_filtering(context)
    }

    fn require_filtering(&self, context: Context) -> Result<(), QueryError> {
        match context.allow_filtering || context.filters_freely {
            true => Ok(()),
            false => Err(QueryError::invalid(ALLOW_FILTERING)),
        }
    }

    fn check_partition_key(&mut self, table: &Table, context: Context) -> Result<(), QueryError> {
        let restricted: usize = self.partition.len();
        let has_slice = self.partition.iter().any(Restriction::is_slice);
        let has_contains = self.partition.iter().any(Restriction::is_contains);
        if context.statement != StatementType::Select {
            if self.token.is_some() {
                refuse!(
                    "The token function cannot be used in WHERE clauses for {} statements",
                    context.statement.name()
                );
            }
            let missing: Vec<&str> = table
                .partition_key()
                .iter()
                .filter(|column| self.partition.iter().all(|r| r.first().id != column.id))
                .map(|column| column.name.as_str())
                .collect();
            if !missing.is_empty() {
                refuse!("Some partition key parts are missing: {}", missing.join(", "));
            }
            if has_slice {
                refuse!(
                    "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} statements",
                    context.statement.name()
                );
            }
            return Ok(());
        }
        let is_partial = restricted < self.partition_key_count;
        self.is_key_range = restricted == 0;
        if restricted > 0 && (is_partial || has_slice || has_contains) {
            self.require_filtering(context)?;
            self.is_key_range = true;
            self.filters_partition_key = true;
        }
        Ok(())
    }

    fn check_clustering(&self, table: &Table, context: Context) -> Result<(), QueryError> {
        let slices_allowed = matches!(context.statement, StatementType::Select | StatementType::Delete);
        if !slices_allowed {
            if self.clustering.iter().any(Restriction::is_slice) {
                refuse!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    context.statement.name()
                );
            }
            let is_restricted = |id| self.clustering.iter().any(|r| r.columns.iter().any(|c| c.id == id));
            let missing: Vec<&str> = table
                .clustering()
                .iter()
                .filter(|column| !is_restricted(column.id))
                .map(|column| column.name.as_str())
                .collect();
            if !context.only_static_columns && !missing.is_empty() {
                refuse!("Some clustering keys are missing: {}", missing.join(", "));
            }
            return Ok(());
        }
        if self.clustering.iter().any(Restriction::is_contains) && !context.allow_filtering {
            refuse!(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering"
            );
        }
        if context.allow_filtering || !self.filters_clustering() {
            // Going along the ring, a restriction of rows is a filter too (checked by the caller).
            return Ok(());
        }
        let restricted = self.clustering.iter().flat_map(|r| &r.columns);
        for (column, restricted) in table.clustering().iter().zip(restricted) {
            if column.id != restricted.id {
                refuse!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    restricted.name,
                    column.name
                );
            }
        }
        Ok(())
    }

    pub(crate) fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    /// Are whole partitions asked for?
    pub(crate) fn queries_full_partitions(&self) -> bool {
        !self.has_clustering() && !self.has_regular_restrictions
    }

    /// Are there restrictions of columns beside the key that are not all static?
    pub(crate) fn has_non_static_others(&self) -> bool {
        self.has_regular_restrictions
    }

    /// Is the partition key restricted by IN?
    pub(crate) fn key_is_in(&self) -> bool {
        self.partition.iter().any(Restriction::is_in)
    }

    /// Is a column of the primary key restricted by an equality?
    pub(crate) fn is_restricted_by_equal(&self, id: schema::ColumnId) -> bool {
        let all = self.partition.iter().chain(&self.clustering);
        all.filter(|r| r.is_equal()).any(|r| r.columns.iter().any(|column| column.id == id))
    }

    /// Are all clustering columns restricted by equality or IN, so that rows are named one by one?
    pub(crate) fn names_rows(&self) -> bool {
        let points: usize =
            self.clustering.iter().filter(|r| r.is_equal() || r.is_in()).map(|r| r.columns.len()).sum();
        points == self.clustering_count
    }

    /// Is a clustering column restricted by IN?
    pub(crate) fn clustering_is_in(&self) -> bool {
        self.clustering.iter().any(Restriction::is_in)
    }

    /// Does a restricted column lie beside the key, or does the key need filtering?
    pub(crate) fn needs_filtering(&self) -> bool {
        self.filters_partition_key || self.filters_clustering() || !self.other.is_empty()
    }
}
