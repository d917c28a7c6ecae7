//! The plan of a SELECT: everything that does not depend on bound values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cql::ast::{IntegerValue, Select, SelectItem, Selection, Selector as Written};
use read::{PartitionRows, ReadColumns};
use rows::ClusteringComparator;
use schema::{Column, ColumnId, ColumnKind, Table};
use types::CqlType;

use super::plan_selector::{Selectors, columns_read, source_of};
use super::rows::{Projection, SlotColumn, Source};
use super::selector::{Aggregate, Selector};
use crate::catalog::{Home, keyspace_of};
use crate::error::refuse;
use crate::response::metadata_id;
use crate::restrictions::{ALLOW_FILTERING, Context, Restrictions, StatementType, existing_column};
use crate::scope::{Receiver, Scope, TableNames};
use crate::terms::{self, Term};
use crate::{ColumnSpec, QueryError, ddl};

/// A planned SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) home: Home,
    pub(crate) comparator: ClusteringComparator,
    pub(crate) restrictions: Restrictions,
    /// Are rows to be filtered?
    pub(crate) is_filtered: bool,
    /// The cells that are read; of a plain selection, the result.
    pub(crate) projection: Arc<Projection>,
    /// What is computed; `None` for a plain selection.
    pub(crate) selectors: Option<Arc<[Selector]>>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) group_by: Option<GroupBy>,
    /// Is every column asked for, by `*`?
    pub(crate) is_wildcard: bool,
    pub(crate) is_json: bool,
    pub(crate) is_distinct: bool,
    pub(crate) is_reversed: bool,
    /// By what the rows of several keys are sorted, and whether backwards.
    pub(crate) sort: Vec<(Source, CqlType, bool)>,
    pub(crate) limit: Option<Limit>,
    pub(crate) per_partition_limit: Option<Limit>,
    /// The columns of the result.
    pub(crate) columns: Arc<[ColumnSpec]>,
    /// Of JSON, the columns inside.
    pub(crate) json_columns: Arc<[(String, CqlType)]>,
    pub(crate) metadata_id: [u8; 16],
    /// Of one that can be answered the plain way ([`super::plain`]), the type of the key that is bound.
    pub(crate) plain_key: Option<CqlType>,
    /// The columns that a read needs.
    pub(crate) read_columns: ReadColumns,
    /// How often at most the value of one column is in a row of the result.
    pub(crate) repeats: usize,
}

/// Most things that are selected: twice as many as a table has columns.
const SELECTED_MAX: usize = 10_000;

/// How rows are grouped.
#[derive(Clone, Debug)]
pub(crate) struct GroupBy {
    /// How many clustering columns tell groups of one partition apart.
    pub(crate) clustering_prefix: usize,
    /// A function of the last clustering column that tells them apart instead of its value.
    pub(crate) function: Option<Selector>,
}

/// A limit, constant or bound later.
#[derive(Clone, Debug)]
pub(crate) struct Limit(pub(crate) Term);

impl Limit {
    /// Does it surely leave at least one row?
    pub(super) fn is_positive_constant(&self) -> bool {
        let Term::Constant(bytes) = &self.0 else { return false };
        <[u8; 4]>::try_from(&bytes[..]).is_ok_and(|bytes| i32::from_be_bytes(bytes) > 0)
    }
}

impl SelectPlan {
    /// Is one row made of many?
    pub(crate) fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty() || self.group_by.is_some()
    }

    /// What a row of the result takes beside its values: their lengths.
    pub(super) fn bytes_between_cells(&self) -> usize {
        size_of::<i32>() * self.columns.len().max(self.json_columns.len()).max(1)
    }

    /// About what these rows take: in memory, and what the answer has more of than is stored.
    pub(super) fn answer_bytes(&self, partitions: &[PartitionRows]) -> usize {
        let of = |partition: &PartitionRows| {
            let between = partition.row_count() as usize * self.bytes_between_cells();
            partition.memory_bytes() * self.repeats + between
        };
        partitions.iter().map(of).sum()
    }
}

/// Plans a SELECT.
///
/// # Errors
/// In Cassandra's words and order.
pub(crate) fn plan(
    select: &Select,
    session: Option<&str>,
    scope: &mut Scope<'_>,
) -> Result<SelectPlan, QueryError> {
    let keyspace = keyspace_of(select.table.keyspace.as_deref(), session)?;
    let (table, home) = scope.catalog.table(keyspace, &select.table.name)?;
    scope.keyspace = keyspace.to_owned();
    let names = TableNames::of(&table);
    let items = match &select.selection {
        Selection::All => Vec::new(),
        Selection::Items(items) => items.iter().collect(),
    };
    if items.len() > SELECTED_MAX {
        refuse!(
            "A SELECT has at most {SELECTED_MAX} selected columns and expressions, and not {}",
            items.len()
        );
    }
    let mut read = Vec::new();
    items.iter().for_each(|item| columns_read(&item.selector, &mut read));
    let read: Vec<&Column> =
        read.into_iter().map(|name| existing_column(&table, name)).collect::<Result<_, _>>()?;
    let context = Context {
        statement: StatementType::Select,
        only_static_columns: selects_only_static(&read),
        allow_filtering: select.allow_filtering,
        filters_freely: home == Home::MadeUp && scope.catalog.made_up.is_virtual(table.keyspace()),
    };
    let order = order_columns(select, &table)?;
    let restrictions = Restrictions::plan(&select.relations, &table, context, scope)?;
    let filter = restrictions.filter();
    let is_wildcard = items.is_empty();
    let mut needed: BTreeSet<ColumnId> = if is_wildcard {
        table.columns().iter().map(|c| c.id).collect()
    } else {
        read.iter().map(|c| c.id).collect()
    };
    let selected: BTreeSet<ColumnId> = needed.clone();
    needed.extend(filter.iter().flat_map(|filter| &filter.columns));
    let mut projection = projection(&table, &needed);
    projection.static_rows_alone = restrictions.queries_full_partitions();
    let mut selectors = Selectors::new(&table, names.clone(), &projection);
    let (columns, planned) = match is_wildcard {
        true => plan_wildcard(&table, &names, &projection),
        false => plan_items(&items, &names, &mut selectors, scope)?,
    };
    let aggregates = std::mem::take(&mut selectors.aggregates);
    if select.is_distinct {
        if select.per_partition_limit.is_some() {
            refuse!("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
        }
        check_distinct(&table, &selected, &restrictions)?;
    }
    let group_by = plan_group_by(select, &table, &restrictions, &mut selectors, scope)?;
    if group_by.is_none() && !aggregates.is_empty() && select.per_partition_limit.is_some() {
        refuse!("PER PARTITION LIMIT is not allowed with aggregate queries.");
    }
    let is_reversed = match order.is_empty() {
        true => false,
        false => is_reversed(&table, &order, &restrictions)?,
    };
    let sort = match restrictions.key_is_in() {
        true => sort_keys(&projection, &order, is_reversed),
        false => Vec::new(),
    };
    let may_filter = select.allow_filtering || context.filters_freely;
    if !may_filter
        && restrictions.is_key_range
        && (restrictions.needs_filtering() || restrictions.has_clustering())
    {
        refuse!("{ALLOW_FILTERING}");
    }
    restrictions.check_filter()?;
    let mut limit = |value: &Option<IntegerValue>, name: &str| {
        value.as_ref().map(|value| plan_limit(value, name, &names, scope)).transpose()
    };
    let per_partition_limit = limit(&select.per_partition_limit, "[per_partition_limit]")?;
    let limit = limit(&select.limit, "[limit]")?;
    let (columns, json_columns) = match select.is_json {
        true => (vec![Receiver::new(&names, "[json]", CqlType::Text).spec()], columns),
        false => (columns, Vec::new()),
    };
    let json_columns = json_columns.into_iter().map(|spec| (spec.name.to_string(), spec.cql_type)).collect();
    let is_computed = select.is_json || !aggregates.is_empty() || group_by.is_some();
    let repeats = repeats(&planned);
    let selectors = match sources_of(&planned).filter(|_| !is_computed) {
        Some(sources) => {
            projection.put_sources(sources);
            None
        }
        None => Some(planned),
    };
    let columns: Arc<[ColumnSpec]> = columns.into();
    let read_columns = read_columns(&table, &projection);
    let plan = SelectPlan {
        comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
        table,
        home,
        is_filtered: filter.is_some(),
        restrictions,
        projection: Arc::new(projection),
        selectors: selectors.map(Arc::from),
        aggregates,
        group_by,
        is_wildcard,
        is_json: select.is_json,
        is_distinct: select.is_distinct,
        is_reversed,
        sort,
        limit,
        per_partition_limit,
        metadata_id: metadata_id(&columns),
        columns,
        json_columns,
        plain_key: None,
        read_columns,
        repeats,
    };
    let plain_key = plan.find_plain_key();
    Ok(SelectPlan { plain_key, ..plan })
}

/// The columns whose cells the projection looks for.
fn read_columns(table: &Table, projection: &Projection) -> ReadColumns {
    let is_read = |kind| matches!(kind, ColumnKind::Static | ColumnKind::Regular);
    let all_count = table.columns().iter().filter(|column| is_read(column.kind)).count();
    let slots = projection.static_columns.iter().chain(&projection.regular_columns);
    let mut ids: Vec<ColumnId> = slots.map(|slot| slot.id).collect();
    if ids.len() == all_count {
        return ReadColumns::All;
    }
    ids.sort_unstable();
    ReadColumns::Some(ids.into())
}

/// Every column, as `*` asks for them.
fn plan_wildcard(
    table: &Table,
    names: &TableNames,
    projection: &Projection,
) -> (Vec<ColumnSpec>, Vec<Selector>) {
    let one = |column: &Column| {
        let source = source_of(projection, column.id, column.kind);
        (Receiver::column(names, column).spec(), Selector::Column(source))
    };
    table.columns().iter().map(one).unzip()
}

/// The items of a SELECT that names what it wants, each with the column of the result that it makes.
fn plan_items(
    items: &[&SelectItem],
    names: &TableNames,
    selectors: &mut Selectors<'_>,
    scope: &mut Scope<'_>,
) -> Result<(Vec<ColumnSpec>, Vec<Selector>), QueryError> {
    let one = |item: &&SelectItem| {
        let planned = selectors.plan(&item.selector, None, scope)?;
        let name = item.alias.as_ref().map_or(planned.name.as_str(), |alias| alias.as_str());
        Ok((Receiver::new(names, name, planned.cql_type).spec(), planned.selector))
    };
    items.iter().map(one).collect::<Result<Vec<_>, _>>().map(|planned| planned.into_iter().unzip())
}

/// Where the values of selectors lie, if all are plain columns.
fn sources_of(selectors: &[Selector]) -> Option<Vec<Source>> {
    let source = |selector: &Selector| match selector {
        Selector::Column(source) => Some(*source),
        _ => None,
    };
    selectors.iter().map(source).collect()
}

/// How often the column that is there most often is there.
fn repeats(selectors: &[Selector]) -> usize {
    let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
    for selector in selectors {
        if let Selector::Column(source) = selector {
            *counts.entry(*source).or_default() += 1;
        }
    }
    counts.into_values().max().unwrap_or(1)
}

fn selects_only_static(read: &[&Column]) -> bool {
    let is_key = |column: &Column| matches!(column.kind, ColumnKind::PartitionKey(_));
    read.iter().any(|column| column.is_static())
        && read.iter().all(|column| column.is_static() || is_key(column))
}

/// The cells of these columns.
pub(crate) fn projection(table: &Table, needed: &BTreeSet<ColumnId>) -> Projection {
    let slots = |columns: &[Column]| {
        let mut slots: Vec<SlotColumn> = columns
            .iter()
            .filter(|column| needed.contains(&column.id))
            .map(|column| SlotColumn { id: column.id, cql_type: column.cql_type.clone() })
            .collect();
        slots.sort_by_key(|slot| slot.id);
        slots
    };
    Projection {
        sources: Vec::new(),
        static_columns: slots(table.static_columns()),
        regular_columns: slots(table.regular_columns()),
        partition_key_count: table.partition_key().len(),
        clustering_count: table.clustering().len(),
        static_rows_alone: true,
        is_in_order: false,
    }
}

fn order_columns<'t>(select: &Select, table: &'t Table) -> Result<Vec<(&'t Column, bool)>, QueryError> {
    let mut order: Vec<(&Column, bool)> = Vec::new();
    for ordering in &select.order_by {
        if ordering.ann_of.is_some() {
            existing_column(table, &ordering.column)?;
            refuse!("ANN ordering by vector requires the column to be indexed");
        }
        let column = existing_column(table, &ordering.column)?;
        match order.iter_mut().find(|(other, _)| other.id == column.id) {
            Some(known) => known.1 = ordering.is_descending,
            None => order.push((column, ordering.is_descending)),
        }
    }
    Ok(order)
}

fn is_reversed(
    table: &Table,
    order: &[(&Column, bool)],
    restrictions: &Restrictions,
) -> Result<bool, QueryError> {
    if restrictions.is_key_range {
        refuse!("ORDER BY is only supported when the partition key is restricted by an EQ or an IN.");
    }
    let mut next = 0;
    let mut reversed = None;
    for (column, is_descending) in order {
        let ColumnKind::Clustering(position, direction) = column.kind else {
            refuse!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.name
            );
        };
        while next != usize::from(position) {
            let skipped = table.clustering().get(next);
            if !skipped.is_some_and(|skipped| restrictions.is_restricted_by_equal(skipped.id)) {
                refuse!(
                    "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY"
                );
            }
            next += 1;
        }
        next += 1;
        let this = *is_descending != (direction == schema::ClusteringOrder::Desc);
        if reversed.is_some_and(|reversed| reversed != this) {
            refuse!("Unsupported order by relation");
        }
        reversed = Some(this);
    }
    Ok(reversed.unwrap_or(false))
}

fn sort_keys(
    projection: &Projection,
    order: &[(&Column, bool)],
    is_reversed: bool,
) -> Vec<(Source, CqlType, bool)> {
    order
        .iter()
        .map(|(column, _)| {
            let ColumnKind::Clustering(_, direction) = column.kind else {
                return (Source::Clustering(0), column.cql_type.clone(), false);
            };
            let backwards = is_reversed != (direction == schema::ClusteringOrder::Desc);
            (source_of(projection, column.id, column.kind), column.cql_type.clone(), backwards)
        })
        .collect()
}

fn check_distinct(
    table: &Table,
    selected: &BTreeSet<ColumnId>,
    restrictions: &Restrictions,
) -> Result<(), QueryError> {
    if restrictions.has_clustering() || restrictions.has_non_static_others() {
        refuse!(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns."
        );
    }
    let requested = table.columns().iter().filter(|column| selected.contains(&column.id));
    for column in requested {
        if !matches!(column.kind, ColumnKind::PartitionKey(_) | ColumnKind::Static) {
            refuse!(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
                column.name
            );
        }
    }
    if !restrictions.is_key_range {
        return Ok(());
    }
    match table.partition_key().iter().find(|column| !selected.contains(&column.id)) {
        Some(missing) => {
            refuse!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                missing.name
            )
        }
        None => Ok(()),
    }
}

const GROUP_ORDER: &str =
    "Group by currently only support groups of columns following their declared order in the PRIMARY KEY";

fn plan_group_by(
    select: &Select,
    table: &Table,
    restrictions: &Restrictions,
    selectors: &mut Selectors<'_>,
    scope: &mut Scope<'_>,
) -> Result<Option<GroupBy>, QueryError> {
    if select.group_by.is_empty() {
        return Ok(None);
    }
    let mut key = table.partition_key().iter().chain(table.clustering()).peekable();
    let (mut clustering_prefix, mut function) = (0, None);
    for written in &select.group_by {
        let column = match written {
            Written::Column(name) => {
                let column = existing_column(table, name)?;
                if !column.is_primary_key() {
                    refuse!(
                        "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
                        column.name
                    );
                }
                if function.is_some() {
                    refuse!("Functions are only supported on the last element of the GROUP BY clause");
                }
                column
            }
            other => {
                let mut read = Vec::new();
                columns_read(other, &mut read);
                let [name] = read.as_slice() else {
                    refuse!("GROUP BY functions must have one clustering column name as parameter");
                };
                let column = existing_column(table, name)?;
                if !matches!(column.kind, ColumnKind::Clustering(..)) {
                    refuse!(
                        "Group by functions are only supported on clustering columns, got {}",
                        column.name
                    );
                }
                let count = selectors.aggregates.len();
                function = Some(selectors.plan(other, None, scope)?.selector);
                if selectors.aggregates.len() > count {
                    refuse!("Aggregate functions are not supported within the GROUP BY clause, got: {other}");
                }
                column
            }
        };
        loop {
            let Some(next) = key.next() else { refuse!("{GROUP_ORDER}") };
            if matches!(next.kind, ColumnKind::Clustering(..)) {
                clustering_prefix += 1;
            }
            if next.id == column.id {
                break;
            }
            if !restrictions.is_restricted_by_equal(next.id) {
                refuse!("{GROUP_ORDER}");
            }
        }
    }
    if key.peek().is_some_and(|next| matches!(next.kind, ColumnKind::PartitionKey(_))) {
        refuse!("Group by is not supported on only a part of the partition key");
    }
    if clustering_prefix > 0 && select.is_distinct {
        refuse!("Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
    }
    Ok(Some(GroupBy { clustering_prefix, function }))
}

fn plan_limit(
    value: &IntegerValue,
    name: &str,
    names: &TableNames,
    scope: &mut Scope<'_>,
) -> Result<Limit, QueryError> {
    let receiver = Receiver::new(names, name, ddl::native_type_named("int"));
    let term = match value {
        IntegerValue::Marker(marker) => {
            terms::plan(&cql::ast::Term::Marker(marker.clone()), &receiver, scope)?
        }
        IntegerValue::Literal(digits) => {
            let literal = cql::ast::Literal::new(cql::ast::LiteralKind::Integer, digits);
            terms::plan(&cql::ast::Term::Literal(literal), &receiver, scope)?
        }
    };
    Ok(Limit(term))
}
