//! The header of a table file: what its rows are made of.
//!
//! ```text
//!   vint least timestamp, local deletion time and TTL, as differences to fixed ones
//!   type of the partition key | vint count, types of clustering columns
//!   vint count, name and type of static columns | the same of regular columns
//! ```
//!
//! A type is the marshal class name; names and types stand behind vint lengths.

use std::path::Path;
use std::sync::Arc;

use rows::{ClusteringComparator, EncodingStats};
use schema::{Column, Table};
use stdx::cursor::{Cursor, EndOfInput};
use stdx::vint;
use types::CqlType;

use crate::SstableError;
use crate::data::{Columns, FileColumn, Layout, RelativeTimes, fixed_bytes, in_file_order};

/// The header as it is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) stats: EncodingStats,
    pub(crate) key_type: String,
    pub(crate) clustering_types: Vec<String>,
    /// Name and type, in the file's order.
    pub(crate) statics: Vec<(String, String)>,
    pub(crate) regulars: Vec<(String, String)>,
}

/// More clustering columns or columns than any table has.
const COUNT_MAX: u64 = 1 << 15;

impl Header {
    /// For a file of that table: all of its columns.
    pub(crate) fn for_writing(table: &Table, stats: EncodingStats) -> Self {
        let named = |columns: &[Column]| {
            let columns = in_file_order(columns).into_iter();
            columns.map(|column| (column.name.clone(), column.cql_type.to_marshal())).collect()
        };
        Header {
            stats,
            key_type: types::marshal::partition_key_name(table.partition_key().iter().map(|c| &c.cql_type)),
            clustering_types: clustering_names(table),
            statics: named(table.static_columns()),
            regulars: named(table.regular_columns()),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let none = EncodingStats::NONE;
        none.write_timestamp(self.stats.min_timestamp, out);
        none.write_local_deletion_time(self.stats.min_local_deletion_time, out);
        none.write_ttl(self.stats.min_ttl, out);
        write_text(&self.key_type, out);
        write_types(&self.clustering_types, out);
        for columns in [&self.statics, &self.regulars] {
            vint::write_unsigned(columns.len() as u64, out);
            for (name, cql_type) in columns {
                write_text(name, out);
                write_text(cql_type, out);
            }
        }
    }

    pub(crate) fn read(input: &mut Cursor<'_>) -> Result<Self, EndOfInput> {
        let none = EncodingStats::NONE;
        let stats = EncodingStats {
            min_timestamp: none.read_timestamp(input)?,
            min_local_deletion_time: none.read_local_deletion_time(input)?,
            min_ttl: none.read_ttl(input)?,
        };
        let key_type = read_text(input)?;
        let clustering_types = read_types(input)?;
        let columns = |input: &mut Cursor<'_>| -> Result<Vec<(String, String)>, EndOfInput> {
            let count = input.vint()?;
            (0..count.min(COUNT_MAX)).map(|_| Ok((read_text(input)?, read_text(input)?))).collect()
        };
        let statics = columns(input)?;
        let regulars = columns(input)?;
        Ok(Header { stats, key_type, clustering_types, statics, regulars })
    }

    /// How to read the rows of the file as rows of the table.
    pub(crate) fn layout(&self, table: &Table, path: &Path) -> Result<Layout, SstableError> {
        let unsupported = |what| SstableError::Unsupported { path: path.to_owned(), what };
        let expected = clustering_names(table);
        if expected.len() != self.clustering_types.len() {
            let (got, want) = (self.clustering_types.len(), expected.len());
            return Err(unsupported(format!("it has {got} clustering columns, the table has {want}")));
        }
        let mut clustering = Vec::with_capacity(expected.len());
        for (got, column) in self.clustering_types.iter().zip(table.clustering()) {
            let parsed = types::marshal::parse(got).map_err(|error| unsupported(error.to_string()))?;
            let (cql_type, reversed) = match parsed {
                types::marshal::MarshalType::Plain(cql_type) => (cql_type, false),
                types::marshal::MarshalType::Reversed(cql_type) => (cql_type, true),
                types::marshal::MarshalType::Composite(_) => {
                    return Err(unsupported(format!("clustering type {got}")));
                }
            };
            let index = clustering.len();
            let is_reversed = table.clustering_types().get(index).is_some_and(|(_, reversed)| *reversed);
            if reversed != is_reversed || fixed_bytes(&cql_type) != fixed_bytes(&column.cql_type) {
                let name = &column.name;
                return Err(unsupported(format!("clustering column {name} is of type {got} in it")));
            }
            clustering.push(fixed_bytes(&cql_type));
        }
        Ok(Layout {
            stats: self.stats,
            clustering,
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            statics: columns(&self.statics, table, true, path)?,
            regulars: columns(&self.regulars, table, false, path)?,
        })
    }
}

fn columns(
    named: &[(String, String)],
    table: &Table,
    is_static: bool,
    path: &Path,
) -> Result<Columns, SstableError> {
    let mut list: Vec<FileColumn> = Vec::with_capacity(named.len());
    for (name, type_name) in named {
        let cql_type = CqlType::from_marshal(type_name).map_err(|error| SstableError::Unsupported {
            path: path.to_owned(),
            what: format!("column {name}: {error}"),
        })?;
        let is_same = |column: &&Column| {
            !column.is_primary_key()
                && column.is_static() == is_static
                && column.cql_type.is_multi_cell() == cql_type.is_multi_cell()
                && column.cql_type.has_paths() == cql_type.has_paths()
        };
        let id = table.column(name).filter(is_same).map(|column| column.id);
        if id.is_some() && list.iter().any(|column| column.id == id) {
            let what = "a column stands twice in the header";
            return Err(SstableError::Damaged { path: path.to_owned(), offset: 0, what });
        }
        let dropped = table.dropped_columns().get(name);
        list.push(FileColumn {
            id,
            is_complex: cql_type.is_multi_cell(),
            is_counter: cql_type == CqlType::Counter,
            fixed_bytes: fixed_bytes(&cql_type),
            dropped_time_us: dropped.map(|dropped| dropped.dropped_time_us),
        });
    }
    Ok(Columns::new(list))
}

/// Types of the clustering columns as files name them.
pub(crate) fn clustering_names(table: &Table) -> Vec<String> {
    let types = table.clustering_types().iter();
    types.map(|(cql_type, reversed)| types::marshal::clustering_name(cql_type, *reversed)).collect()
}

pub(crate) fn write_types(types: &[String], out: &mut Vec<u8>) {
    vint::write_unsigned(types.len() as u64, out);
    types.iter().for_each(|name| write_text(name, out));
}

pub(crate) fn read_types(input: &mut Cursor<'_>) -> Result<Vec<String>, EndOfInput> {
    let count = input.vint()?;
    (0..count.min(COUNT_MAX)).map(|_| read_text(input)).collect()
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    vint::write_unsigned(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn read_text(input: &mut Cursor<'_>) -> Result<String, EndOfInput> {
    Ok(String::from_utf8_lossy(input.vint_bytes()?).into_owned())
}
