//! A table file seen without its schema: for tools, and to look at what others bring.

use std::path::Path;

use runtime::Disk;
use schema::{ClusteringOrder, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use types::marshal::{MarshalType, parse};
use uuid::Uuid;

use crate::statistics::Statistics;
use crate::{Component, Descriptor, SstableError};

/// A table as the header of a file describes it: types of all columns, names of those that are
/// not keys. Keys are called `key`, `key2`, … and `column1`, `column2`, …, as Cassandra does.
///
/// # Errors
/// Statistics are missing or damaged, or name types that are not known.
pub fn table_of_header(
    disk: &dyn Disk,
    descriptor: &Descriptor,
    keyspace: &str,
    name: &str,
) -> Result<Table, SstableError> {
    let path = descriptor.path(Component::Statistics);
    let statistics = Statistics::from_bytes(&path, descriptor.version, &disk.read(&path)?)?;
    let header = &statistics.header;
    let mut builder = TableBuilder::new(TableId(Uuid::nil()), keyspace, name);
    let keys = match marshal(&path, &header.key_type)? {
        MarshalType::Composite(parts) => parts,
        one => vec![one],
    };
    for (position, part) in (0u16..).zip(keys) {
        let (cql_type, _) = plain(&path, part)?;
        let name = if position == 0 { "key".into() } else { format!("key{}", position + 1) };
        builder = builder.column(name, ColumnKind::PartitionKey(position), cql_type);
    }
    for (position, type_name) in (0u16..).zip(&header.clustering_types) {
        let (cql_type, reversed) = plain(&path, marshal(&path, type_name)?)?;
        let order = if reversed { ClusteringOrder::Desc } else { ClusteringOrder::Asc };
        let name = format!("column{}", position + 1);
        builder = builder.column(name, ColumnKind::Clustering(position, order), cql_type);
    }
    for (kind, columns) in [(ColumnKind::Static, &header.statics), (ColumnKind::Regular, &header.regulars)] {
        for (name, type_name) in columns {
            let (cql_type, _) = plain(&path, marshal(&path, type_name)?)?;
            builder = builder.column(name.clone(), kind, cql_type);
        }
    }
    builder.build().map_err(|error| SstableError::Unsupported { path, what: error.to_string() })
}

fn marshal(path: &Path, name: &str) -> Result<MarshalType, SstableError> {
    parse(name).map_err(|error| SstableError::Unsupported { path: path.to_owned(), what: error.to_string() })
}

fn plain(path: &Path, of: MarshalType) -> Result<(CqlType, bool), SstableError> {
    match of {
        MarshalType::Plain(cql_type) => Ok((cql_type, false)),
        MarshalType::Reversed(cql_type) => Ok((cql_type, true)),
        MarshalType::Composite(_) => {
            let what = "a composite type inside a key".into();
            Err(SstableError::Unsupported { path: path.to_owned(), what })
        }
    }
}
