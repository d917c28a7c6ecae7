//! Several restrictions of the same columns made one, where that is allowed.

use super::restriction::{Restriction, Test};
use crate::QueryError;
use crate::error::refuse;

/// Most things that a collection can be asked to contain: for each of them all of it is looked through, in every row.
const CONTAINED_MAX: usize = 100;

/// Adds a restriction to those of one kind of column, in the order of their first columns.
///
/// # Errors
/// It does not go together with one that is there.
pub(super) fn add(all: &mut Vec<Restriction>, new: Restriction) -> Result<(), QueryError> {
    let overlaps = |old: &Restriction| {
        old.columns.iter().any(|column| new.columns.iter().any(|other| other.id == column.id))
    };
    let Some(index) = all.iter().position(overlaps) else {
        let place = all.partition_point(|old| old.first().position < new.first().position);
        all.insert(place, new);
        return Ok(());
    };
    let old = all.remove(index);
    all.insert(index, merge(old, new)?);
    Ok(())
}

fn merge(old: Restriction, new: Restriction) -> Result<Restriction, QueryError> {
    if old.is_tuple || new.is_tuple {
        return merge_tuples(old, new);
    }
    let name = old.first().name.clone();
    match (old.test, new.test) {
        (Test::Equal(_), _) => {
            refuse!("{name} cannot be restricted by more than one relation if it includes an Equal")
        }
        (Test::In(_) | Test::InMarker(_), _) => {
            refuse!("{name} cannot be restricted by more than one relation if it includes a IN")
        }
        (Test::Slice { start, end }, Test::Slice { start: new_start, end: new_end }) => {
            if start.is_some() && new_start.is_some() {
                refuse!("More than one restriction was found for the start bound on {name}");
            }
            if end.is_some() && new_end.is_some() {
                refuse!("More than one restriction was found for the end bound on {name}");
            }
            let test = Test::Slice { start: start.or(new_start), end: end.or(new_end) };
            Ok(Restriction { columns: old.columns, is_tuple: false, test })
        }
        (Test::Slice { .. }, _) => {
            refuse!("Column \"{name}\" cannot be restricted by both an equality and an inequality relation")
        }
        (Test::Contains(mut contained), Test::Contains(more)) => {
            contained.extend(more);
            if contained.len() > CONTAINED_MAX {
                refuse!("{name} can be restricted by at most {CONTAINED_MAX} relations with CONTAINS");
            }
            Ok(Restriction { columns: old.columns, is_tuple: false, test: Test::Contains(contained) })
        }
        (Test::Contains(_), _) => refuse!(
            "Collection column {name} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
        ),
    }
}

fn merge_tuples(old: Restriction, new: Restriction) -> Result<Restriction, QueryError> {
    let common: Vec<&str> = old
        .columns
        .iter()
        .filter(|column| new.columns.iter().any(|other| other.id == column.id))
        .map(|column| &*column.name)
        .collect();
    let common = common.join(", ");
    match (old.test, new.test) {
        (Test::Equal(_), _) => {
            refuse!("{common} cannot be restricted by more than one relation if it includes an Equal")
        }
        (Test::In(_) | Test::InMarker(_), _) => {
            refuse!("{common} cannot be restricted by more than one relation if it includes a IN")
        }
        (Test::Slice { start, end }, Test::Slice { start: new_start, end: new_end }) => {
            if old.columns[0].id != new.columns[0].id {
                let later = old.columns[0].position.max(new.columns[0].position);
                let column = old.columns.iter().chain(&new.columns).find(|c| c.position == later);
                refuse!(
                    "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                    column.map_or("", |column| &*column.name)
                );
            }
            if start.is_some() && new_start.is_some() {
                refuse!("More than one restriction was found for the start bound on {common}");
            }
            if end.is_some() && new_end.is_some() {
                refuse!("More than one restriction was found for the end bound on {common}");
            }
            let columns = if old.columns.len() >= new.columns.len() { old.columns } else { new.columns };
            let test = Test::Slice { start: start.or(new_start), end: end.or(new_end) };
            Ok(Restriction { columns, is_tuple: true, test })
        }
        _ => refuse!(
            "Column \"{}\" cannot be restricted by both an equality and an inequality relation",
            old.columns[0].name
        ),
    }
}
