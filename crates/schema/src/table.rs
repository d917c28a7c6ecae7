//! The definition of one table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::CqlType;
use uuid::Uuid;

use crate::{ClusteringOrder, Column, ColumnId, ColumnKind, TableOptions};

/// Identity of a table; a table dropped and made again under the same name has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableId(pub Uuid);

/// A column that was dropped: table files may still hold its cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedColumn {
    /// The column as it was.
    pub column: Column,
    /// Cells of that name with a timestamp up to this one (µs) are gone.
    pub dropped_time_us: i64,
}

/// One table: columns in their fixed order, options, and what was dropped.
///
/// Invariants, held by [`TableBuilder::build`]: at least one partition key column; key positions
/// run from 0 without holes; names and ids are unique; static columns only beside clustering ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TableBuilder", into = "TableBuilder")]
pub struct Table {
    id: TableId,
    keyspace: String,
    name: String,
    /// Partition key, clustering key, static by name, regular by name: the order of `SELECT *`.
    columns: Vec<Column>,
    partition_key_count: usize,
    clustering_count: usize,
    static_count: usize,
    /// Types of the clustering columns, and whether each is reversed: what comparing needs.
    clustering_types: Arc<[(CqlType, bool)]>,
    options: TableOptions,
    dropped_columns: BTreeMap<String, DroppedColumn>,
    next_column_id: u16,
}

/// The parts of a [`Table`], to be checked by [`TableBuilder::build`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableBuilder {
    /// Identity.
    pub id: TableId,
    /// Keyspace it is in.
    pub keyspace: String,
    /// Its name, unquoted.
    pub name: String,
    /// Columns in any order.
    pub columns: Vec<Column>,
    /// `WITH` options.
    pub options: TableOptions,
    /// Columns dropped so far, by name; the latest drop of a name.
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    /// The id the next added column gets.
    pub next_column_id: u16,
}

/// Why columns do not make a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TableError {
    #[error("table {table} has no partition key")]
    NoPartitionKey { table: String },
    #[error("table {table} has key positions with a hole or a double")]
    KeyPositions { table: String },
    #[error("table {table} names or numbers column {column} twice")]
    DoubleColumn { table: String, column: String },
    #[error("table {table} has static column {column} but no clustering column")]
    StaticWithoutClustering { table: String, column: String },
    #[error("table {table} has no column id left")]
    ColumnIdsSpent { table: String },
}

impl TableBuilder {
    /// A table without columns yet.
    pub fn new(id: TableId, keyspace: impl Into<String>, name: impl Into<String>) -> Self {
        TableBuilder {
            id,
            keyspace: keyspace.into(),
            name: name.into(),
            columns: Vec::new(),
            options: TableOptions::default(),
            dropped_columns: BTreeMap::new(),
            next_column_id: 0,
        }
    }

    /// Adds a column under the next free id.
    pub fn column(mut self, name: impl Into<String>, kind: ColumnKind, cql_type: CqlType) -> Self {
        let id = ColumnId(self.next_column_id);
        self.next_column_id = self.next_column_id.saturating_add(1);
        self.columns.push(Column { id, name: name.into(), kind, cql_type });
        self
    }

    /// Checks the invariants of [`Table`].
    ///
    /// # Errors
    /// [`TableError`], the first rule broken.
    pub fn build(mut self) -> Result<Table, TableError> {
        let table = format!("{}.{}", self.keyspace, self.name);
        if self.next_column_id == u16::MAX {
            return Err(TableError::ColumnIdsSpent { table });
        }
        self.columns.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let count = |test: fn(&ColumnKind) -> bool| self.columns.iter().filter(|c| test(&c.kind)).count();
        let partition_key_count = count(|kind| matches!(kind, ColumnKind::PartitionKey(_)));
        let clustering_count = count(|kind| matches!(kind, ColumnKind::Clustering(..)));
        let static_count = count(|kind| *kind == ColumnKind::Static);
        if partition_key_count == 0 {
            return Err(TableError::NoPartitionKey { table });
        }
        let positions_fit = self.columns.iter().enumerate().all(|(index, column)| match column.kind {
            ColumnKind::PartitionKey(position) => usize::from(position) == index,
            ColumnKind::Clustering(position, _) => usize::from(position) + partition_key_count == index,
            _ => true,
        });
        if !positions_fit {
            return Err(TableError::KeyPositions { table });
        }
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for column in &self.columns {
            if !names.insert(column.name.as_str()) || !ids.insert(column.id) {
                return Err(TableError::DoubleColumn { table, column: column.name.clone() });
            }
            if column.is_static() && clustering_count == 0 {
                return Err(TableError::StaticWithoutClustering { table, column: column.name.clone() });
            }
        }
        let clustering_types = self.columns[partition_key_count..partition_key_count + clustering_count]
            .iter()
            .map(|c| (c.cql_type.clone(), matches!(c.kind, ColumnKind::Clustering(_, ClusteringOrder::Desc))))
            .collect();
        Ok(Table {
            id: self.id,
            keyspace: self.keyspace,
            name: self.name,
            columns: self.columns,
            partition_key_count,
            clustering_count,
            static_count,
            clustering_types,
            options: self.options,
            dropped_columns: self.dropped_columns,
            next_column_id: self.next_column_id,
        })
    }
}

/// Order of `SELECT *`: keys by position, then static and regular columns by name bytes.
fn rank(column: &Column) -> (u8, u16, &[u8]) {
    match column.kind {
        ColumnKind::PartitionKey(position) => (0, position, b""),
        ColumnKind::Clustering(position, _) => (1, position, b""),
        ColumnKind::Static => (2, 0, column.name.as_bytes()),
        ColumnKind::Regular => (3, 0, column.name.as_bytes()),
    }
}

impl TryFrom<TableBuilder> for Table {
    type Error = TableError;
    fn try_from(builder: TableBuilder) -> Result<Self, TableError> {
        builder.build()
    }
}

impl From<Table> for TableBuilder {
    fn from(table: Table) -> Self {
        TableBuilder {
            id: table.id,
            keyspace: table.keyspace,
            name: table.name,
            columns: table.columns,
            options: table.options,
            dropped_columns: table.dropped_columns,
            next_column_id: table.next_column_id,
        }
    }
}

impl Table {
    /// Identity of the table.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// Keyspace the table is in.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Name, unquoted.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Options given by `WITH`.
    pub fn options(&self) -> &TableOptions {
        &self.options
    }

    /// All columns in the order of `SELECT *`.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Partition key columns in key order.
    pub fn partition_key(&self) -> &[Column] {
        &self.columns[..self.partition_key_count]
    }

    /// Clustering columns in key order.
    pub fn clustering(&self) -> &[Column] {
        &self.columns[self.partition_key_count..self.partition_key_count + self.clustering_count]
    }

    /// Static columns by name.
    pub fn static_columns(&self) -> &[Column] {
        let start = self.partition_key_count + self.clustering_count;
        &self.columns[start..start + self.static_count]
    }

    /// Regular columns by name.
    pub fn regular_columns(&self) -> &[Column] {
        &self.columns[self.partition_key_count + self.clustering_count + self.static_count..]
    }

    /// Type of each clustering column and whether it is reversed.
    pub fn clustering_types(&self) -> &Arc<[(CqlType, bool)]> {
        &self.clustering_types
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Is it the id of no column that the table has or ever had, but may have after the changes to come?
    pub fn may_come_to_have(&self, id: ColumnId) -> bool {
        id.0 >= self.next_column_id
    }

    /// The column of that id.
    pub fn column_by_id(&self, id: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// The last drop of each dropped column name.
    pub fn dropped_columns(&self) -> &BTreeMap<String, DroppedColumn> {
        &self.dropped_columns
    }

    /// Does the table count (any `counter` column)?
    pub fn is_counter(&self) -> bool {
        self.columns.iter().any(|column| column.cql_type == CqlType::Counter)
    }

    /// The table with other types in some columns, which no invariant looks at; none when the
    /// function changes no type.
    pub(crate) fn map_types(&self, change: impl Fn(&CqlType) -> Option<CqlType>) -> Option<Self> {
        let changed: Vec<_> = self.columns.iter().map(|column| change(&column.cql_type)).collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        let mut table = self.clone();
        for (column, changed) in table.columns.iter_mut().zip(changed) {
            if let Some(cql_type) = changed {
                column.cql_type = cql_type;
            }
        }
        let types = table.clustering().iter().zip(self.clustering_types.iter());
        table.clustering_types =
            types.map(|(column, (_, is_reversed))| (column.cql_type.clone(), *is_reversed)).collect();
        Some(table)
    }

    /// The parts, to build a changed table from.
    pub fn to_builder(&self) -> TableBuilder {
        self.clone().into()
    }
}
