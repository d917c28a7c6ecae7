//! Rows of one clustering become one: newest wins, deletions hide what they cover.

use std::borrow::Borrow;
use std::cmp::Ordering;

use schema::Table;
use types::CqlType;

use crate::{CellMerge, CellRef, ColumnData, ColumnRef, DeletionTime, Liveness, Row, RowBuilder};

/// Merges rows that stand at one clustering, under an `active` deletion (of the partition or of
/// a range that covers them). `None` when nothing is left.
///
/// As in Cassandra's `Row.Merger`, what the active deletion hides is left out, a row deletion
/// that does not win over it too. Clusterings may be equal in order and differ in bytes (a decimal
/// with another scale): the lesser bytes stay.
pub fn merge_rows<R: Borrow<Row>>(rows: &[R], active: DeletionTime, table: &Table) -> Option<Row> {
    let (first, rest) = rows.split_first()?;
    if rest.is_empty() {
        return shadow(first.borrow(), active);
    }
    if rest.len() > 1
        && let Some(merged) = merge_cells(rows, active)
    {
        return (!merged.is_empty()).then_some(merged);
    }
    let merged = merge_halves(rows, table)?;
    if active.is_live() {
        // Each step applied the row's own deletion already.
        return (!merged.is_empty()).then_some(merged);
    }
    shadow(&merged, active)
}

/// Merges rows two by two: halves, so that no cell is copied more often than there are halves.
fn merge_halves<R: Borrow<Row>>(rows: &[R], table: &Table) -> Option<Row> {
    match rows {
        [] => None,
        [one] => Some(one.borrow().clone()),
        [one, other] => Some(merge_two(one.borrow(), other.borrow(), table)),
        _ => {
            let (left, right) = rows.split_at(rows.len() / 2);
            Some(merge_two(&merge_halves(left, table)?, &merge_halves(right, table)?, table))
        }
    }
}

/// Merges rows of single cells in one pass; `None` when they have others.
fn merge_cells<R: Borrow<Row>>(rows: &[R], active: DeletionTime) -> Option<Row> {
    let mut merge = CellMerge::default();
    merge.add_active(active)?;
    for row in rows {
        merge.add_encoded(row.borrow())?;
    }
    let clustering = rows.iter().map(|row| row.borrow().encoded_clustering()).min()?;
    let longest = rows.iter().map(|row| row.borrow().as_encoded().len()).max()?;
    Some(merge.build(clustering, Vec::with_capacity(64 + longest)).finish())
}

/// The same for a row that stands alone.
pub fn merge_row(row: Row, active: DeletionTime) -> Option<Row> {
    if active.is_live() && (row.is_plain() || row.deletion().is_live()) {
        return (!row.is_empty()).then_some(row);
    }
    shadow(&row, active)
}

/// Applies an active deletion and the row's own to one row.
fn shadow(row: &Row, active: DeletionTime) -> Option<Row> {
    let deletion = row.deletion();
    if active.is_live() && deletion.is_live() {
        return (!row.is_empty()).then(|| row.clone());
    }
    let kept_deletion = if deletion.supersedes(active) { deletion } else { DeletionTime::LIVE };
    let all = active.max(deletion);
    let liveness = row.liveness();
    let kept_liveness = if all.deletes(liveness.timestamp) { Liveness::NONE } else { liveness };
    let mut builder = RowBuilder::part_of(row, kept_liveness, kept_deletion);
    for column in row.columns() {
        put(&mut builder, column, all);
    }
    let shadowed = builder.finish();
    (!shadowed.is_empty()).then_some(shadowed)
}

/// Copies what a deletion leaves of a column.
fn put(builder: &mut RowBuilder, column: ColumnRef<'_>, active: DeletionTime) {
    match column.data {
        ColumnData::Simple(cell) if active.deletes(cell.timestamp) => {}
        ColumnData::Simple(cell) => {
            builder.cell(column.id, cell);
        }
        ColumnData::Complex(complex) => {
            let kept =
                if complex.deletion.supersedes(active) { complex.deletion } else { DeletionTime::LIVE };
            let all = active.max(complex.deletion);
            builder.complex(column.id, kept, complex.cells().filter(|cell| !all.deletes(cell.timestamp)));
        }
    }
}

/// What a row that stays becomes when another is merged into it, under no deletion; `None` if it is that already. The
/// new one is in memory of its own and no more than it needs, but for one that leaves nothing of the other: that may
/// stay in the memory it came with, of which `held_bytes` are held by it ([`Row::kept`]). It is put together in
/// `memory`, which serves again and again.
pub fn merge_to_keep(
    kept: &Row,
    (row, held_bytes): (&Row, usize),
    table: &Table,
    memory: &mut Vec<u8>,
) -> Option<Row> {
    if row.overwrites(kept) {
        return Some(row.kept(held_bytes));
    }
    if kept.overwrites(row) {
        return None;
    }
    let builder = merged_cells(kept, row, table, std::mem::take(memory));
    let (merged, used) = builder.finish_exactly();
    *memory = used;
    (!merged.is_empty()).then_some(merged)
}

fn merge_two(left: &Row, right: &Row, table: &Table) -> Row {
    let bytes = || 64 + left.as_encoded().len().max(right.as_encoded().len());
    let merged = || merged_cells(left, right, table, Vec::with_capacity(bytes())).finish();
    last_of(left, right).cloned().unwrap_or_else(merged)
}

/// The one of two that leaves nothing of the other to be seen.
fn last_of<'a>(left: &'a Row, right: &'a Row) -> Option<&'a Row> {
    let (last, _) = [(right, left), (left, right)].into_iter().find(|(a, b)| a.overwrites(b))?;
    Some(last)
}

fn merged_cells(left: &Row, right: &Row, table: &Table, memory: Vec<u8>) -> RowBuilder {
    let clustering = left.encoded_clustering().min(right.encoded_clustering());
    let deletion = left.deletion().max(right.deletion());
    let liveness = left.liveness().max(right.liveness());
    let kept_liveness = if deletion.deletes(liveness.timestamp) { Liveness::NONE } else { liveness };
    let mut builder = RowBuilder::reusing(memory, clustering, kept_liveness, deletion);
    let (mut lefts, mut rights) = (left.columns(), right.columns());
    // An UPDATE of a few columns leaves the others as they are encoded.
    let keeps = |row: &Row| row.is_plain() && row.liveness() == kept_liveness && deletion.is_live();
    let (left_stays, right_stays) = (keeps(left), keeps(right));
    loop {
        let heads = (lefts.next_id(), rights.next_id());
        let order = match heads {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(&b),
        };
        match order {
            Ordering::Less if left_stays => builder.encoded_run(lefts.pass_before(heads.1)),
            Ordering::Greater if right_stays => builder.encoded_run(rights.pass_before(heads.0)),
            Ordering::Less => {
                if let Some(column) = lefts.next() {
                    put(&mut builder, column, deletion);
                }
            }
            Ordering::Greater => {
                if let Some(column) = rights.next() {
                    put(&mut builder, column, deletion);
                }
            }
            Ordering::Equal => {
                if let (Some(a), Some(b)) = (lefts.next(), rights.next()) {
                    merge_columns(&mut builder, a, b, deletion, table);
                }
            }
        }
    }
    builder
}

fn merge_columns(
    builder: &mut RowBuilder,
    left: ColumnRef<'_>,
    right: ColumnRef<'_>,
    active: DeletionTime,
    table: &Table,
) {
    match (left.data, right.data) {
        (ColumnData::Simple(a), ColumnData::Simple(b)) => {
            let cell = a.reconcile(b);
            if !active.deletes(cell.timestamp) {
                builder.cell(left.id, cell);
            }
        }
        (ColumnData::Complex(a), ColumnData::Complex(b)) => {
            let deletion = a.deletion.max(b.deletion);
            let kept = if deletion.supersedes(active) { deletion } else { DeletionTime::LIVE };
            let all = active.max(deletion);
            let order = PathOrder::of(table.column_by_id(left.id).map(|column| &column.cql_type));
            builder.reserve(a.byte_count() + b.byte_count());
            let cells = MergedCells { left: a.cells().peekable(), right: b.cells().peekable(), order };
            builder.complex(left.id, kept, cells.filter(|cell| !all.deletes(cell.timestamp)));
        }
        // A column never changes between simple and complex; should bytes say so, the first stands.
        _ => put(builder, left, active),
    }
}

/// How the paths of a multi-cell column sort.
#[derive(Clone, Copy)]
pub(crate) enum PathOrder<'a> {
    /// By the key or element type.
    Typed(&'a CqlType),
    /// List positions: time UUIDs.
    List,
    /// Field indexes of a user type (two bytes), and columns dropped meanwhile.
    Bytes,
}

impl<'a> PathOrder<'a> {
    pub(crate) fn of(cql_type: Option<&'a CqlType>) -> Self {
        match cql_type {
            Some(CqlType::Set { element, .. }) => PathOrder::Typed(element),
            Some(CqlType::Map { key, .. }) => PathOrder::Typed(key),
            Some(CqlType::List { .. }) => PathOrder::List,
            _ => PathOrder::Bytes,
        }
    }

    pub(crate) fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            PathOrder::Typed(cql_type) => cql_type.compare(left, right),
            PathOrder::List => CqlType::Timeuuid.compare(left, right),
            PathOrder::Bytes => left.cmp(right),
        }
    }
}

struct MergedCells<'a, I: Iterator<Item = CellRef<'a>>> {
    left: std::iter::Peekable<I>,
    right: std::iter::Peekable<I>,
    order: PathOrder<'a>,
}

impl<'a, I: Iterator<Item = CellRef<'a>>> Iterator for MergedCells<'a, I> {
    type Item = CellRef<'a>;

    fn next(&mut self) -> Option<CellRef<'a>> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some(a), Some(b)) => self.order.compare(a.path, b.path),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.left.next(),
            Ordering::Greater => self.right.next(),
            Ordering::Equal => Some(self.left.next()?.reconcile(self.right.next()?)),
        }
    }
}
