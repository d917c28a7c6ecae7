//! What a change with a condition answers: whether it was applied, and if not, what is there instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use read::PartitionRows;
use schema::{Column, ColumnId, Table};
use types::CqlType;

use super::carried::FoundRows;
use super::conditions::Shows;
use super::plan::Condition;
use crate::QueryError;
use crate::response::{ColumnSpec, RowSink, RowsBody, RowsResult, metadata_id};
use crate::scope::{Receiver, TableNames};
use crate::select::{ComputedRows, RowView, Source, projection, source_of};

/// The name of the first column.
const APPLIED: &str = "[applied]";

/// A boolean, encoded.
const TRUE: &[u8] = &[1];
const FALSE: &[u8] = &[0];

/// Which columns an answer shows when nothing is applied.
#[derive(Clone, Debug)]
pub(crate) enum ShownColumns {
    /// All, as `*` does.
    All,
    /// These, each once.
    Some(Vec<ColumnId>),
}

impl ShownColumns {
    /// None yet. With `keys`, the columns of the primary key come first: a batch may be about several rows.
    pub(crate) fn new(table: &Table, keys: bool) -> Self {
        let keys =
            if keys { table.partition_key().iter().chain(table.clustering()) } else { [].iter().chain(&[]) };
        ShownColumns::Some(keys.map(|column| column.id).collect())
    }

    /// A condition was asked: what it tests is shown, of `IF [NOT] EXISTS` everything.
    pub(crate) fn add(&mut self, condition: &Condition) {
        let (ShownColumns::Some(columns), Condition::Columns(tests)) = (&mut *self, condition) else {
            *self = ShownColumns::All;
            return;
        };
        for test in tests.regulars.iter().chain(&tests.statics) {
            if !columns.contains(&test.column) {
                columns.push(test.column);
            }
        }
    }

    fn of<'t>(&self, table: &'t Table) -> Vec<&'t Column> {
        match self {
            ShownColumns::All => table.columns().iter().collect(),
            ShownColumns::Some(ids) => ids.iter().filter_map(|id| table.column_by_id(*id)).collect(),
        }
    }
}

/// It was applied.
pub(crate) fn applied(table: &Table) -> RowsResult {
    let mut rows = ComputedRows::default();
    rows.cell(Some(TRUE));
    rows.end_row();
    result(vec![applied_column(&TableNames::of(table))], rows)
}

/// It was not, and these are the cells of what is there; `None` when there is nothing.
///
/// # Errors
/// They are not as many as the columns.
pub(crate) fn not_applied(
    table: &Table,
    shown: &ShownColumns,
    found: Option<FoundRows>,
) -> Result<RowsResult, QueryError> {
    let names = TableNames::of(table);
    let (mut columns, mut rows) = (vec![applied_column(&names)], ComputedRows::default());
    let Some(found) = found else {
        rows.cell(Some(FALSE));
        rows.end_row();
        return Ok(result(columns, rows));
    };
    columns.extend(shown.of(table).into_iter().map(|column| Receiver::column(&names, column).spec()));
    for cells in found {
        if cells.len() + 1 != columns.len() {
            return Err(QueryError::Server("what was decided shows other columns".to_owned()));
        }
        rows.cell(Some(FALSE));
        cells.iter().for_each(|cell| rows.cell(cell.as_deref()));
        rows.end_row();
    }
    Ok(result(columns, rows))
}

/// The cells of what is there, of the columns that are shown.
pub(crate) fn found_rows(
    table: &Table,
    shown: &ShownColumns,
    (partition, shows): &(PartitionRows, Shows),
) -> FoundRows {
    let shown = shown.of(table);
    let projection = projection(table, &shown.iter().map(|column| column.id).collect::<BTreeSet<_>>());
    let sources: Vec<Source> =
        shown.iter().map(|column| source_of(&projection, column.id, column.kind)).collect();
    let (mut view, mut scratch) = (RowView::new(&projection), Vec::new());
    view.enter_partition(partition);
    let mut found = Vec::new();
    for row in partition.shown_rows() {
        view.enter_row(row);
        let cells = sources.iter().map(|source| {
            let is_hidden = matches!(source, Source::Regular(_)) && !shows.regulars;
            let value = if is_hidden { None } else { view.value(*source, &mut scratch) };
            value.map(Bytes::copy_from_slice)
        });
        found.push(cells.collect());
    }
    found
}

fn applied_column(names: &TableNames) -> ColumnSpec {
    Receiver::new(names, APPLIED, CqlType::Boolean).spec()
}

fn result(columns: Vec<ColumnSpec>, rows: ComputedRows) -> RowsResult {
    RowsResult {
        metadata_id: metadata_id(&columns),
        columns: Arc::from(columns),
        paging_state: None,
        varies: true,
        body: RowsBody::Computed(rows),
    }
}
