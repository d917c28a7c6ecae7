//! Does a table file that somebody brings fit a table? Says which column does not, and how.
//!
//! Opening a file is more lenient: a column that the table does not have is read over. For a file of
//! our own that is right (the column was dropped); one that is brought in would lose data silently.

use std::path::Path;

use runtime::Disk;
use schema::{Column, Table};
use types::CqlType;
use types::marshal::{MarshalType, parse};

use crate::statistics::{Header, Statistics};
use crate::{Component, Descriptor, SstableError};

/// Compares the header of a file with a table.
///
/// # Errors
/// [`SstableError::Unsupported`] names the first column that differs, and both types; or the
/// statistics are missing or damaged.
pub fn check_fits(disk: &dyn Disk, descriptor: &Descriptor, table: &Table) -> Result<(), SstableError> {
    let path = descriptor.path(Component::Statistics);
    let statistics = Statistics::from_bytes(&path, descriptor.version, &disk.read(&path)?)?;
    compare(&path, &statistics.header, table).map_err(|what| {
        let table = format!("{}.{}", table.keyspace(), table.name());
        SstableError::Unsupported { path, what: format!("it does not fit {table}: {what}") }
    })
}

fn compare(path: &Path, header: &Header, table: &Table) -> Result<(), String> {
    let parsed = |name: &str| parse(name).map_err(|error| format!("{}: {error}", path.display()));
    let keys = match parsed(&header.key_type)? {
        MarshalType::Composite(parts) => parts,
        one => vec![one],
    };
    same_count("partition key", keys.len(), table.partition_key().len())?;
    for (key, column) in keys.into_iter().zip(table.partition_key()) {
        let (of, _) = plain(key)?;
        same_type("partition key column", column, &of)?;
    }
    same_count("clustering", header.clustering_types.len(), table.clustering().len())?;
    for (index, (name, column)) in header.clustering_types.iter().zip(table.clustering()).enumerate() {
        let (of, reversed) = plain(parsed(name)?)?;
        same_type("clustering column", column, &of)?;
        let wanted = table.clustering_types().get(index).is_some_and(|(_, reversed)| *reversed);
        if reversed != wanted {
            let order = |reversed| if reversed { "DESC" } else { "ASC" };
            return Err(format!(
                "clustering column {} is {} in it, and {} in the table",
                column.name,
                order(reversed),
                order(wanted)
            ));
        }
    }
    for (is_static, columns) in [(true, &header.statics), (false, &header.regulars)] {
        for (name, type_name) in columns {
            let of = CqlType::from_marshal(type_name).map_err(|error| format!("column {name}: {error}"))?;
            check_column(table, name, is_static, &of)?;
        }
    }
    Ok(())
}

fn check_column(table: &Table, name: &str, is_static: bool, of: &CqlType) -> Result<(), String> {
    match table.column(name) {
        Some(column) if column.is_primary_key() => {
            Err(format!("column {name} of type {of} is no key in it, and one in the table"))
        }
        Some(column) if column.is_static() != is_static => {
            let kind = |is_static| if is_static { "static" } else { "not static" };
            Err(format!("column {name} is {} in it, and {} in the table", kind(is_static), kind(!is_static)))
        }
        // One that was dropped and came back has cells of both types.
        Some(column) if !fits(of, &column.cql_type) => match table.dropped_columns().get(name) {
            Some(dropped) if fits(of, &dropped.column.cql_type) => Ok(()),
            _ => same_type("column", column, of),
        },
        Some(_) => Ok(()),
        None if table.dropped_columns().contains_key(name) => Ok(()),
        None => Err(format!("column {name} of type {of} is not in the table")),
    }
}

fn same_count(what: &str, got: usize, wanted: usize) -> Result<(), String> {
    match got == wanted {
        true => Ok(()),
        false => Err(format!("its {what} is of {got} columns, that of the table of {wanted}")),
    }
}

fn same_type(what: &str, column: &Column, of: &CqlType) -> Result<(), String> {
    match fits(of, &column.cql_type) {
        true => Ok(()),
        false => {
            let Column { name, cql_type, .. } = column;
            Err(format!("{what} {name} is of type {of} in it, and of type {cql_type} in the table"))
        }
    }
}

fn plain(of: MarshalType) -> Result<(CqlType, bool), String> {
    match of {
        MarshalType::Plain(of) => Ok((of, false)),
        MarshalType::Reversed(of) => Ok((of, true)),
        MarshalType::Composite(_) => Err("a composite type inside a key".into()),
    }
}

/// Are values of a type in the file values of the column's type? A user type may have got fields since.
fn fits(of: &CqlType, wanted: &CqlType) -> bool {
    use CqlType::{Ascii, List, Map, Set, Text, Tuple, UserDefined, Vector};
    match (of, wanted) {
        (Ascii, Text) => true,
        (List { element, frozen }, List { element: other, frozen: kept })
        | (Set { element, frozen }, Set { element: other, frozen: kept }) => {
            frozen == kept && fits(element, other)
        }
        (Map { key, value, frozen }, Map { key: other_key, value: other, frozen: kept }) => {
            frozen == kept && fits(key, other_key) && fits(value, other)
        }
        (Tuple(parts), Tuple(others)) => {
            parts.len() == others.len() && parts.iter().zip(&**others).all(|(part, other)| fits(part, other))
        }
        (Vector { element, dimension }, Vector { element: other, dimension: kept }) => {
            dimension == kept && fits(element, other)
        }
        (UserDefined { definition, frozen }, UserDefined { definition: other, frozen: kept }) => {
            let (fields, others) = (&definition.fields, &other.fields);
            frozen == kept
                && definition.name == other.name
                && fields.len() <= others.len()
                && fields
                    .iter()
                    .zip(others)
                    .all(|(field, other)| field.0 == other.0 && fits(&field.1, &other.1))
        }
        (of, wanted) => of == wanted,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime::OsDisk;
    use schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId};
    use uuid::Uuid;

    use super::*;
    use crate::fixture_tests::{big_fixtures, fixtures};
    use crate::table_of_header;

    fn wide() -> TableBuilder {
        TableBuilder::new(TableId(Uuid::nil()), "ks", "wide")
            .column("key", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
            .column("s", ColumnKind::Static, CqlType::Text)
    }

    fn check(builder: TableBuilder) -> Result<(), SstableError> {
        let (_, descriptor) = big_fixtures().into_iter().find(|(name, _)| name == "wide").expect("a fixture");
        check_fits(&OsDisk::new(), &descriptor, &builder.build().expect("a table"))
    }

    #[test]
    fn every_fixture_fits_the_table_it_describes() {
        for (name, descriptor) in fixtures().into_iter().chain(big_fixtures()) {
            let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
            let table = table_of_header(&*disk, &descriptor, "ks", &name).expect("known types");
            check_fits(&*disk, &descriptor, &table).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn column_and_types_are_named() {
        check(wide().column("v", ColumnKind::Regular, CqlType::Text)).expect("fits");
        let error = check(wide().column("v", ColumnKind::Regular, CqlType::Int)).expect_err("another type");
        let wanted = "column v is of type text in it, and of type int in the table";
        assert!(error.to_string().contains(wanted), "{error}");
        let error = check(wide()).expect_err("no such column");
        assert!(error.to_string().contains("column v of type text is not in the table"), "{error}");
        let more = wide().column("d", ColumnKind::Clustering(1, ClusteringOrder::Asc), CqlType::Int).column(
            "v",
            ColumnKind::Regular,
            CqlType::Text,
        );
        let error = check(more).expect_err("two clustering columns");
        assert!(error.to_string().contains("its clustering is of 1 columns"), "{error}");
    }
}
