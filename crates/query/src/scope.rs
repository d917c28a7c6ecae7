//! What planning a statement gathers and needs: the catalog, and what its markers are bound to.

use std::sync::Arc;

use cql::ast::Marker;
use schema::{Column, ColumnId, Table};
use types::CqlType;

use crate::ColumnSpec;
use crate::catalog::Catalog;
use crate::functions::CallTypes;

/// What a term is meant for: names for messages, and the type it must have.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) keyspace: Arc<str>,
    pub(crate) table: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) cql_type: CqlType,
    /// The column, when the whole of its value is received.
    pub(crate) column: Option<ColumnId>,
}

impl Receiver {
    pub(crate) fn new(table: &TableNames, name: &str, cql_type: CqlType) -> Self {
        Receiver {
            keyspace: Arc::clone(&table.keyspace),
            table: Arc::clone(&table.table),
            name: name.into(),
            cql_type,
            column: None,
        }
    }

    pub(crate) fn column(table: &TableNames, column: &Column) -> Self {
        Receiver { column: Some(column.id), ..Self::new(table, &column.name, column.cql_type.clone()) }
    }

    /// A part of what this receives, such as `value(m)`.
    pub(crate) fn part(&self, what: &str, cql_type: CqlType) -> Self {
        self.named(&format!("{what}({})", self.name), cql_type)
    }

    pub(crate) fn named(&self, name: &str, cql_type: CqlType) -> Self {
        Receiver { name: name.into(), cql_type, column: None, ..self.clone() }
    }

    pub(crate) fn spec(&self) -> ColumnSpec {
        ColumnSpec {
            keyspace: Arc::clone(&self.keyspace),
            table: Arc::clone(&self.table),
            name: Arc::clone(&self.name),
            cql_type: self.cql_type.clone(),
        }
    }
}

/// The names of a table, shared by all that is told about its columns.
#[derive(Clone, Debug)]
pub(crate) struct TableNames {
    pub(crate) keyspace: Arc<str>,
    pub(crate) table: Arc<str>,
}

impl TableNames {
    pub(crate) fn of(table: &Table) -> Self {
        TableNames { keyspace: table.keyspace().into(), table: table.name().into() }
    }
}

/// What the markers of a statement are bound to.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    specs: Vec<Option<ColumnSpec>>,
    /// The column that the marker is the whole of an equality or value for, if it is one.
    columns: Vec<Option<(Arc<str>, ColumnId)>>,
}

impl Markers {
    pub(crate) fn new(count: usize) -> Self {
        Markers { specs: vec![None; count], columns: vec![None; count] }
    }

    /// Notes what a marker is for. A named marker keeps its own name.
    pub(crate) fn bind(&mut self, marker: &Marker, receiver: &Receiver) {
        let index = marker.index as usize;
        let mut spec = receiver.spec();
        if let Some(name) = &marker.name {
            spec.name = name.as_str().into();
        }
        if let Some(slot) = self.specs.get_mut(index) {
            *slot = Some(spec);
        }
        if let (Some(slot), Some(column)) = (self.columns.get_mut(index), receiver.column) {
            *slot = Some((Arc::clone(&receiver.table), column));
        }
    }

    /// The specifications of all markers; those never met (there are none) are blobs.
    pub(crate) fn specs(&self) -> Arc<[ColumnSpec]> {
        let unknown =
            || ColumnSpec { keyspace: "".into(), table: "".into(), name: "".into(), cql_type: CqlType::Blob };
        self.specs.iter().map(|spec| spec.clone().unwrap_or_else(unknown)).collect()
    }

    /// For each component of the table's partition key the last marker that is bound to it; empty
    /// if there is a component without.
    pub(crate) fn partition_key_indexes(&self, table: &Table) -> Arc<[u16]> {
        let index_of = |column: &Column| {
            let is_it = |bound: &Option<(Arc<str>, ColumnId)>| {
                bound.as_ref().is_some_and(|(name, id)| **name == *table.name() && *id == column.id)
            };
            self.columns.iter().rposition(is_it).and_then(|index| u16::try_from(index).ok())
        };
        table.partition_key().iter().map(index_of).collect::<Option<_>>().unwrap_or_default()
    }
}

/// What planning needs.
pub(crate) struct Scope<'a> {
    pub(crate) catalog: &'a Catalog<'a>,
    /// The keyspace of unqualified names of functions and types.
    pub(crate) keyspace: String,
    pub(crate) markers: Markers,
    /// Milliseconds since 1970, for the constant `'now'`.
    pub(crate) now_millis: i64,
    /// What is known of its calls.
    pub(crate) calls: CallTypes,
}

impl<'a> Scope<'a> {
    /// For a statement with so many markers.
    pub(crate) fn new(
        catalog: &'a Catalog<'a>,
        keyspace: &str,
        marker_count: usize,
        now_millis: i64,
    ) -> Scope<'a> {
        Scope {
            catalog,
            keyspace: keyspace.to_owned(),
            markers: Markers::new(marker_count),
            now_millis,
            calls: CallTypes::default(),
        }
    }
}
