//! Rows made of named values, in the form storage gives them in.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use bytes::Bytes;
use read::{PartitionRows, RowList};
use rows::{CellRef, ClusteringBuilder, DeletionTime, Liveness, PartitionKey, RowBuilder};
use schema::{ColumnId, Table};
use types::{encoding, inet};
use uuid::Uuid;

/// The timestamp of everything made up.
const TIMESTAMP: i64 = 0;

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Simple(Vec<u8>),
    /// Elements of a multi-cell set, in any order.
    Set(Vec<Vec<u8>>),
    /// Entries of a multi-cell map, in any order.
    Map(Vec<(Vec<u8>, Vec<u8>)>),
}

/// Milliseconds since 1970.
pub(crate) struct Timestamp(pub(crate) i64);

macro_rules! value_from {
    ($($of:ty: |$value:ident| $bytes:expr;)*) => {
        $(impl From<$of> for Value {
            fn from($value: $of) -> Self {
                Value::Simple($bytes)
            }
        })*
    };
}

value_from! {
    &str: |value| value.as_bytes().to_vec();
    &String: |value| value.as_bytes().to_vec();
    String: |value| value.into_bytes();
    Vec<u8>: |value| value;
    bool: |value| vec![u8::from(value)];
    i32: |value| value.to_be_bytes().to_vec();
    i64: |value| value.to_be_bytes().to_vec();
    f64: |value| value.to_be_bytes().to_vec();
    Uuid: |value| value.as_bytes().to_vec();
    IpAddr: |value| inet::encode(value);
    Timestamp: |value| value.0.to_be_bytes().to_vec();
    &BTreeMap<String, String>: |map| map_value(map.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())));
    &BTreeMap<String, Vec<u8>>: |map| map_value(map.iter().map(|(key, value)| (key.as_bytes(), &value[..])));
    &[String]: |list| encoding::collection(list.len(), list.iter().map(|text| Some(text.as_bytes())));
}

impl Value {
    /// Tokens of a node, as a set of texts.
    pub(crate) fn tokens(tokens: &[i64]) -> Self {
        Value::Set(tokens.iter().map(|token| token.to_string().into_bytes()).collect())
    }
}

/// Counters are unsigned here and `bigint` to clients.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        i64::try_from(value).unwrap_or(i64::MAX).into()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

fn map_value<'a>(entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    encoding::collection(entries.len(), entries.flat_map(|(key, value)| [Some(key), Some(value)]))
}

/// The rows of a table, while they are being made up.
pub(crate) struct MadeUpRows<'a> {
    table: &'a Table,
    places: HashMap<Bytes, usize>,
    partitions: Vec<PartitionRows>,
}

impl<'a> MadeUpRows<'a> {
    pub(crate) fn new(table: &'a Table) -> Self {
        MadeUpRows { table, places: HashMap::new(), partitions: Vec::new() }
    }

    /// Adds a row of these columns, which must have the whole key among them. A column that the
    /// table does not have is left out.
    pub(crate) fn add<const N: usize>(&mut self, values: [(&str, Value); N]) {
        self.add_all(values);
    }

    /// The same, of any number of columns.
    pub(crate) fn add_all<'v>(&mut self, values: impl IntoIterator<Item = (&'v str, Value)>) {
        let mut by_id: BTreeMap<ColumnId, Value> = values
            .into_iter()
            .filter_map(|(name, value)| self.table.column(name).map(|column| (column.id, value)))
            .collect();
        let mut take = |id| match by_id.remove(&id) {
            Some(Value::Simple(bytes)) => Some(bytes),
            _ => None,
        };
        let key: Vec<Vec<u8>> =
            self.table.partition_key().iter().map(|column| take(column.id).unwrap_or_default()).collect();
        // Names are short; one that is not can not be a key, so it has no row.
        let Ok(key) = encoding::partition_key(key.iter().map(Vec::as_slice)) else { return };
        let mut clustering = ClusteringBuilder::new();
        for column in self.table.clustering() {
            clustering.push(take(column.id).as_deref());
        }
        let mut row = RowBuilder::new(&clustering.finish(), Liveness::at(TIMESTAMP), DeletionTime::LIVE);
        for (id, value) in &mut by_id {
            match value {
                Value::Null => {}
                Value::Simple(bytes) => _ = row.cell(*id, CellRef::live(TIMESTAMP, bytes)),
                Value::Set(elements) => {
                    elements.sort();
                    let cells = elements.iter().map(|path| CellRef::live(TIMESTAMP, &[]).with_path(path));
                    row.complex(*id, DeletionTime::LIVE, cells);
                }
                Value::Map(entries) => {
                    entries.sort();
                    let cells =
                        entries.iter().map(|(path, value)| CellRef::live(TIMESTAMP, value).with_path(path));
                    row.complex(*id, DeletionTime::LIVE, cells);
                }
            }
        }
        let place = *self.places.entry(key.clone().into()).or_insert_with(|| {
            let key = PartitionKey::new(key.into());
            self.partitions.push(PartitionRows { key, static_row: None, rows: RowList::new() });
            self.partitions.len() - 1
        });
        self.partitions[place].rows.push(row.finish());
    }

    /// The rows, by partition.
    pub(crate) fn finish(self) -> Vec<PartitionRows> {
        self.partitions
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Rows as text, to compare in tests.

    use super::*;
    use rows::{ColumnData, Row};

    /// `column=value` for each column that has one, in the order of `SELECT *`.
    pub(crate) fn text(table: &Table, partitions: &[PartitionRows]) -> Vec<String> {
        let mut lines = Vec::new();
        for partition in partitions {
            let key = encoding::partition_key_parts(&partition.key.bytes, table.partition_key().len())
                .expect("key");
            for row in &partition.rows {
                let mut line = Vec::new();
                for (column, part) in table.partition_key().iter().zip(&key) {
                    line.push(format!("{}={}", column.name, column.cql_type.to_text(part)));
                }
                for (column, part) in table.clustering().iter().zip(row.clustering_components()) {
                    line.push(format!(
                        "{}={}",
                        column.name,
                        column.cql_type.to_text(part.unwrap_or_default())
                    ));
                }
                line.extend(table.regular_columns().iter().filter_map(|column| {
                    Some(format!("{}={}", column.name, cell_text(&column.cql_type, row, column.id)?))
                }));
                lines.push(line.join(" "));
            }
        }
        lines
    }

    fn cell_text(cql_type: &types::CqlType, row: &Row, id: ColumnId) -> Option<String> {
        match row.column(id)? {
            ColumnData::Simple(cell) if cql_type.native_name().is_some() => {
                Some(cql_type.to_text(cell.value))
            }
            ColumnData::Simple(cell) => Some(cql_type.to_cql_literal(cell.value)),
            ColumnData::Complex(complex) => {
                let paths: Vec<_> =
                    complex.cells().map(|cell| String::from_utf8_lossy(cell.path).into_owned()).collect();
                Some(format!("{{{}}}", paths.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions::base_schema;
    use super::*;

    #[test]
    fn rows_of_one_partition_come_together_with_their_cells_in_place() {
        let schema = base_schema().expect("schema");
        let table = schema.table("system_schema", "types").expect("table");
        let mut rows = MadeUpRows::new(table);
        let fields = ["a".to_owned(), "b".to_owned()];
        rows.add([
            ("type_name", "t1".into()),
            ("keyspace_name", "k".into()),
            ("field_names", fields[..].into()),
        ]);
        rows.add([
            ("type_name", "t2".into()),
            ("keyspace_name", "k".into()),
            ("no such column", 1i32.into()),
        ]);
        rows.add([
            ("type_name", "t3".into()),
            ("keyspace_name", "other".into()),
            ("field_names", Value::Null),
        ]);
        let made = rows.finish();
        assert_eq!(made.len(), 2);
        let expected = [
            "keyspace_name=k type_name=t1 field_names=['a', 'b']",
            "keyspace_name=k type_name=t2",
            "keyspace_name=other type_name=t3",
        ];
        assert_eq!(testing::text(table, &made), expected);
    }
}
