//! DESCRIBE.

use std::fmt::{self, Display, Formatter};

use super::name::{FunctionName, NoKeyword};
use super::schema::TypePath;
use crate::ast::{Describe, DescribeTarget};

impl Display for Describe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DESCRIBE {}", self.target)?;
        if self.with_internals { f.write_str(" WITH INTERNALS") } else { Ok(()) }
    }
}

impl Display for DescribeTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DescribeTarget::Cluster => f.write_str("CLUSTER"),
            DescribeTarget::Schema { is_full: true } => f.write_str("FULL SCHEMA"),
            DescribeTarget::Schema { is_full: false } => f.write_str("SCHEMA"),
            DescribeTarget::Keyspaces => f.write_str("KEYSPACES"),
            DescribeTarget::Tables => f.write_str("TABLES"),
            DescribeTarget::Types => f.write_str("TYPES"),
            DescribeTarget::Functions => f.write_str("FUNCTIONS"),
            DescribeTarget::Aggregates => f.write_str("AGGREGATES"),
            DescribeTarget::Keyspace { is_only, name } => {
                f.write_str(if *is_only { "ONLY KEYSPACE" } else { "KEYSPACE" })?;
                name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
            }
            DescribeTarget::Table(name) => write!(f, "TABLE {name}"),
            DescribeTarget::Index(name) => write!(f, "INDEX {name}"),
            DescribeTarget::View(name) => write!(f, "MATERIALIZED VIEW {name}"),
            DescribeTarget::Type(name) => write!(f, "TYPE {}", TypePath(name)),
            DescribeTarget::Function(name) => write!(f, "FUNCTION {}", FunctionName(name)),
            DescribeTarget::Aggregate(name) => write!(f, "AGGREGATE {}", FunctionName(name)),
            DescribeTarget::Generic(name) => {
                if let Some(keyspace) = &name.keyspace {
                    write!(f, "{}.", NoKeyword(keyspace))?;
                }
                NoKeyword(&name.name).fmt(f)
            }
        }
    }
}
