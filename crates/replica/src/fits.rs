//! Does what another node sent fit the table as it is here?
//!
//! Its bytes are sound, but it may know a later definition of the table, or be wrong. What does not fit must not come
//! to a memtable or a merge, which take for granted that it does.

use rows::{Bound, Clustering, ColumnData, Mutation, Row, Unfiltered};
use schema::{ColumnKind, Table};
use types::CqlType;

use crate::failure::Failure;
use crate::read_request::ReadRequest;

/// Which cells counters may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// Shares.
    Counted,
    /// What a node is to add to its own.
    ToCount,
}

/// Why a change can not be taken: because this node is behind, or because it makes no sense.
pub(crate) fn check_mutation(mutation: &Mutation, table: &Table, cells: Cells) -> Result<(), Failure> {
    let no_sense = || Failure::Other { what: format!("a change that does not fit {}", table.name()) };
    if cells == Cells::ToCount && !table.is_counter() {
        return Err(no_sense());
    }
    if let Some(row) = &mutation.static_row {
        check_columns(row, table, true, cells)?;
    }
    mutation.rows.iter().try_for_each(|row| check_columns(row, table, false, cells))?;
    let are_places = mutation.static_row.iter().all(|row| row.clustering().is_empty())
        && mutation.rows.iter().all(|row| is_whole(&row.clustering(), table))
        && mutation
            .ranges
            .iter()
            .all(|range| is_bound(&range.slice.start, table) && is_bound(&range.slice.end, table));
    if are_places { Ok(()) } else { Err(no_sense()) }
}

/// Columns that were dropped here are left out later; those that are not known yet would be lost.
fn check_columns(row: &Row, table: &Table, is_static: bool, cells: Cells) -> Result<(), Failure> {
    for column in row.columns() {
        let Some(known) = table.column_by_id(column.id) else {
            if table.may_come_to_have(column.id) {
                return Err(Failure::NoTable { table: table.id() });
            }
            continue;
        };
        let fits = match column.data {
            ColumnData::Complex(shares) if known.cql_type == CqlType::Counter => match cells {
                Cells::Counted => {
                    shares.cells().all(|share| share.is_share())
                        && shares.cells().map(|share| share.path).is_sorted_by(|one, other| one < other)
                }
                Cells::ToCount => shares.cells().all(|cell| cell.is_increment()),
            },
            data => known.cql_type.has_paths() == matches!(data, ColumnData::Complex(_)),
        };
        let kind = if is_static { ColumnKind::Static } else { ColumnKind::Regular };
        if known.kind != kind || !fits {
            return Err(Failure::Other { what: format!("cells that column {} does not have", known.name) });
        }
    }
    Ok(())
}

/// Has it a component for each clustering column?
fn is_whole(clustering: &Clustering, table: &Table) -> bool {
    clustering.components().count() == table.clustering_types().len()
}

fn is_prefix(clustering: &Clustering, table: &Table) -> bool {
    clustering.components().count() <= table.clustering_types().len()
}

fn is_bound(bound: &Bound, table: &Table) -> bool {
    is_prefix(&bound.prefix, table)
}

pub(crate) fn check_read(read: &ReadRequest, table: &Table) -> Result<(), Failure> {
    let are_slices =
        read.slices.iter().all(|slice| is_bound(&slice.start, table) && is_bound(&slice.end, table));
    let place = read.resume.as_ref().and_then(|position| position.clustering.as_ref());
    match are_slices && place.is_none_or(|place| is_whole(place, table)) {
        true => Ok(()),
        false => Err(Failure::Other { what: format!("a read that does not fit {}", table.name()) }),
    }
}

/// Do places and rows of an answer fit?
pub(crate) fn is_item(item: &Unfiltered, table: &Table) -> bool {
    match item {
        Unfiltered::Row(row) => {
            is_whole(&row.clustering(), table) && check_columns(row, table, false, Cells::Counted).is_ok()
        }
        Unfiltered::Marker(marker) => is_prefix(&marker.prefix, table),
    }
}

/// Is it the only row that a partition of the table can have, of which nothing was deleted or expires?
pub fn is_plain_row(row: &Row, table: &Table) -> bool {
    row.is_plain() && row.clustering().is_empty() && check_columns(row, table, false, Cells::Counted).is_ok()
}

/// Does the static row of an answer fit?
pub(crate) fn is_static_row(row: &Row, table: &Table) -> bool {
    row.clustering().is_empty() && check_columns(row, table, true, Cells::Counted).is_ok()
}
