//! A read as CQL, for the log and the client: in the words of Cassandra 5's `ReadCommand.toCQLString`, which tools
//! look for.
//!
//! It is the read that is spelled and not the statement: with values instead of markers, one partition of an IN, and
//! on a later page what is left to read.

use read::{ReadPosition, ReadTarget};
use rows::{Bound, BoundKind, Clustering, PartitionKey, Slice, Slices};
use schema::{Column, Table};

use super::page::Amounts;
use super::plan::SelectPlan;
use crate::restrictions::{after, before, spell_token_of_key};
use crate::terms::Bindings;

/// Rows that Cassandra reads at once for groups, without a page's size.
const GROUPED_ROWS: u32 = 10_000;

/// A read that is to be spelled.
pub(super) struct Spelled<'a> {
    pub(super) plan: &'a SelectPlan,
    pub(super) bindings: &'a Bindings<'a>,
    pub(super) target: &'a ReadTarget,
    pub(super) slices: &'a Slices,
    /// Where its page began.
    pub(super) resume: Option<&'a ReadPosition>,
    pub(super) amounts: Amounts,
}

impl Spelled<'_> {
    /// The part of the read that is about a key; of a range all of it.
    pub(super) fn spell(&self, key: &PartitionKey) -> String {
        let table = &*self.plan.table;
        let (keyspace, name) = (cql::maybe_quote(table.keyspace()), cql::maybe_quote(table.name()));
        let mut text = format!("SELECT {} FROM {keyspace}.{name}", self.columns());
        let mut clauses = match self.target {
            ReadTarget::Keys(_) => key_columns(table, key),
            ReadTarget::Range(_) => self.tokens(),
        };
        clauses.extend(spell_slices(table, &self.rest_of_slices(key)));
        clauses.extend(self.plan.restrictions.spell_filter(self.bindings));
        if !clauses.is_empty() {
            text += " WHERE ";
            text += &clauses.join(" AND ");
        }
        if self.plan.is_reversed {
            let types = table.clustering_types().iter();
            let order = |(column, (_, is_reversed)): (&Column, &(types::CqlType, bool))| {
                format!("{} {}", cql::maybe_quote(&column.name), if *is_reversed { "ASC" } else { "DESC" })
            };
            let order: Vec<String> = table.clustering().iter().zip(types).map(order).collect();
            text += &format!(" ORDER BY {}", order.join(", "));
        }
        text += &self.limits();
        text + " ALLOW FILTERING"
    }

    fn columns(&self) -> String {
        let (plan, projection) = (self.plan, &self.plan.projection);
        let names = |slots: &[super::rows::SlotColumn]| {
            let columns = slots.iter().filter_map(|slot| plan.table.column_by_id(slot.id));
            let mut names: Vec<_> = columns.map(|column| cql::maybe_quote(&column.name)).collect();
            names.sort();
            names
        };
        let (statics, regulars) = (names(&projection.static_columns), names(&projection.regular_columns));
        if plan.is_wildcard || (statics.is_empty() && regulars.is_empty()) {
            return "*".into();
        }
        [statics, regulars].concat().join(", ")
    }

    fn tokens(&self) -> Vec<String> {
        let table = &self.plan.table;
        let (mut start, end) = self.plan.restrictions.spell_tokens(table, self.bindings);
        if let Some(resume) = self.resume {
            let token = spell_token_of_key(table);
            // With rows left in the partition it begins there.
            let is_inclusive = resume.clustering.is_some() && !table.clustering_types().is_empty();
            let key = key_literals(table, &resume.key).join(", ");
            start = Some(format!("{token} {} token({key})", after(is_inclusive)));
        }
        start.into_iter().chain(end).collect()
    }

    /// What was asked of a key when the page began.
    fn rest_of_slices(&self, key: &PartitionKey) -> Slices {
        let resumed =
            self.resume.filter(|position| matches!(self.target, ReadTarget::Keys(_)) && position.key == *key);
        match resumed.and_then(|position| position.clustering.as_ref()) {
            Some(last) if !self.plan.comparator.types().is_empty() => {
                self.slices.after(last, self.plan.is_reversed, &self.plan.comparator)
            }
            _ => self.slices.clone(),
        }
    }

    fn limits(&self) -> String {
        let Amounts { left, per_partition, page } = self.amounts;
        let limit = |name: &str, count: u32| match count {
            u32::MAX => String::new(),
            count => format!(" {name} {count}"),
        };
        if self.plan.group_by.is_some() {
            let rows = if page == u32::MAX { GROUPED_ROWS } else { page };
            return limit("GROUP LIMIT", page.min(left))
                + &limit("GROUP PER PARTITION LIMIT", per_partition)
                + &limit("LIMIT", rows);
        }
        if self.plan.is_aggregate() {
            // Without a limit there is a space for none.
            return if page == u32::MAX { " ".into() } else { limit("LIMIT", page) };
        }
        let per_partition = if self.plan.is_distinct { 1 } else { per_partition };
        limit("LIMIT", page.min(left)) + &limit("PER PARTITION LIMIT", per_partition)
    }
}

/// The values of a partition key.
pub(super) fn key_literals(table: &Table, key: &PartitionKey) -> Vec<String> {
    let columns = table.partition_key();
    let parts = match columns {
        [_] => vec![&*key.bytes],
        _ => types::encoding::partition_key_parts(&key.bytes, columns.len()).unwrap_or_default(),
    };
    columns.iter().zip(parts).map(|(column, part)| column.cql_type.to_cql_literal(part)).collect()
}

fn key_columns(table: &Table, key: &PartitionKey) -> Vec<String> {
    let columns = table.partition_key().iter().zip(key_literals(table, key));
    columns.map(|(column, literal)| format!("{} = {literal}", cql::maybe_quote(&column.name))).collect()
}

/// Slices by what each column is asked, as Cassandra's `Slices.toCQLString`: the first slice speaks for all but
/// where values are equal. Rows named one by one are a list.
fn spell_slices(table: &Table, slices: &Slices) -> Vec<String> {
    if slices.is_all() || table.clustering().is_empty() {
        return Vec::new();
    }
    let slices = slices.as_slice();
    let width = table.clustering().len();
    let is_name = |slice: &Slice| {
        let kinds = (slice.start.kind, slice.end.kind);
        kinds == (BoundKind::InclusiveStart, BoundKind::InclusiveEnd)
            && slice.start.prefix == slice.end.prefix
            && slice.start.prefix.components().count() == width
    };
    if slices.iter().all(is_name) {
        return vec![spell_names(table, slices)];
    }
    (0..width).map_while(|index| spell_column(table, index, slices)).flatten().collect()
}

/// What slices ask of one clustering column; `None` when none says anything of it.
fn spell_column(table: &Table, index: usize, slices: &[Slice]) -> Option<Vec<String>> {
    let (column, is_reversed) = (&table.clustering()[index], table.clustering_types()[index].1);
    let name = cql::maybe_quote(&column.name);
    let literal = |bound: &Bound| {
        let part = bound.prefix.components().nth(index)?;
        Some(column.cql_type.to_cql_literal(part.unwrap_or_default()))
    };
    let parts = slices.iter().map(|slice| (slice, literal(&slice.start), literal(&slice.end)));
    let mut parts = parts.filter(|(_, start, end)| start.is_some() || end.is_some());
    let (first, start, end) = parts.next()?;
    if start == end {
        let mut values = Vec::from_iter(start);
        for value in parts.filter_map(|(_, start, _)| start) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        return Some(vec![match &*values {
            [value] => format!("{name} = {value}"),
            _ => format!("{name} IN ({})", values.join(", ")),
        }]);
    }
    let starts_with = first.start.kind == BoundKind::InclusiveStart;
    let ends_with = first.end.kind == BoundKind::InclusiveEnd;
    let [of_start, of_end] = match is_reversed {
        true => [before(starts_with), after(ends_with)],
        false => [after(starts_with), before(ends_with)],
    };
    let edges = [(start, of_start), (end, of_end)];
    let clause = |(value, operator): (Option<String>, &str)| Some(format!("{name} {operator} {}", value?));
    Some(edges.into_iter().filter_map(clause).collect())
}

fn spell_names(table: &Table, names: &[Slice]) -> String {
    let columns: Vec<_> = table.clustering().iter().map(|column| cql::maybe_quote(&column.name)).collect();
    let tuple = |parts: String| if columns.len() == 1 { parts } else { format!("({parts})") };
    let values = names.iter().map(|slice| tuple(clustering_literals(table, &slice.start.prefix).join(", ")));
    let values: Vec<String> = values.collect();
    match &*values {
        [value] => format!("{} = {value}", tuple(columns.join(", "))),
        _ => format!("{} IN ({})", tuple(columns.join(", ")), values.join(", ")),
    }
}

/// The values of a clustering, or of its first columns.
pub(super) fn clustering_literals(table: &Table, clustering: &Clustering) -> Vec<String> {
    let parts = clustering.components().map(Option::unwrap_or_default);
    table.clustering().iter().zip(parts).map(|(column, part)| column.cql_type.to_cql_literal(part)).collect()
}
