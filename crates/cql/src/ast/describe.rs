//! DESCRIBE as the server answers it.

use super::{Ident, QualifiedName};

/// `DESCRIBE … [WITH INTERNALS]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Describe {
    /// What is described.
    pub target: DescribeTarget,
    /// `WITH INTERNALS`
    pub with_internals: bool,
}

/// What a DESCRIBE is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescribeTarget {
    /// `CLUSTER`
    Cluster,
    /// `[FULL] SCHEMA`
    Schema {
        /// `FULL`: system keyspaces too.
        is_full: bool,
    },
    /// `KEYSPACES`
    Keyspaces,
    /// `TABLES`
    Tables,
    /// `TYPES`
    Types,
    /// `FUNCTIONS`
    Functions,
    /// `AGGREGATES`
    Aggregates,
    /// `[ONLY] KEYSPACE [name]`
    Keyspace {
        /// `ONLY`: without its tables.
        is_only: bool,
        /// The keyspace; the session's if none.
        name: Option<Ident>,
    },
    /// `TABLE name`
    Table(QualifiedName),
    /// `INDEX name`
    Index(QualifiedName),
    /// `MATERIALIZED VIEW name`
    View(QualifiedName),
    /// `TYPE name`
    Type(QualifiedName),
    /// `FUNCTION name`
    Function(QualifiedName),
    /// `AGGREGATE name`
    Aggregate(QualifiedName),
    /// A bare name: a keyspace, a table, an index or a view.
    Generic(QualifiedName),
}
