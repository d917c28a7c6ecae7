//! The tree of a statement.
//!
//! What the grammar accepts, no more: nothing is looked up, no type is checked. Names are folded
//! ([`Ident`]), constants keep the kind of token they were ([`Literal`]). Every node prints itself
//! as CQL (`Display`), and parsing the print gives the same tree again.

mod describe;
mod modification;
mod name;
mod relation;
mod schema;
mod schema_object;
mod security;
mod select;
mod term;
mod types;

pub use describe::{Describe, DescribeTarget};
pub use modification::{
    Assignment, AssignmentAction, Batch, BatchKind, Delete, DeletedColumn, Insert, InsertSource, JsonDefault,
    JsonValue, Modification, Update, Using,
};
pub use name::{Ident, Marker, QualifiedName};
pub use relation::{ColumnCondition, ColumnPart, Condition, ConditionTest, InValues, Operator, Relation};
pub use schema::{
    AlterKeyspace, AlterTable, AlterTableAction, AlterType, AlterTypeAction, ClusteringOrder,
    ColumnDefinition, ColumnMask, CreateKeyspace, CreateTable, CreateType, Drop, DropKeyspace, PrimaryKey,
    Property, PropertyValue, TableOptions, Truncate,
};
pub use schema_object::{
    AlterView, CreateAggregate, CreateFunction, CreateIndex, CreateTrigger, CreateView, DropFunction,
    DropTrigger, IndexTarget, IndexTargetPart,
};
pub use security::{
    AddIdentity, DropRole, ListPermissions, ListRoles, Permission, PermissionGrant, Permissions, Resource,
    RoleDefinition, RoleGrant, RoleName, RoleOption, UserDefinition,
};
pub use select::{CellMetadata, Ordering, Select, SelectItem, Selection, Selector};
pub use term::{ArithmeticOperator, FunctionCall, IntegerValue, Literal, LiteralKind, Term};
pub use types::{CqlTypeName, NativeType};

/// A parsed statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// Its bind markers in the order they were written; `markers[i].index == i`.
    pub markers: Vec<Marker>,
}

macro_rules! statement_kinds {
    ($($(#[$doc:meta])* $variant:ident $(($body:ty))? => $label:literal,)*) => {
        /// What a statement is, with its parts.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum StatementKind {
            $($(#[$doc])* $variant $(($body))?,)*
        }

        impl StatementKind {
            /// The words that name this kind of statement, as in `CREATE INDEX`.
            pub fn label(&self) -> &'static str {
                match self {
                    $(statement_kinds!(@pattern $variant $(($body))?) => $label,)*
                }
            }
        }
    };
    (@pattern $variant:ident ($body:ty)) => { StatementKind::$variant(_) };
    (@pattern $variant:ident) => { StatementKind::$variant };
}

statement_kinds! {
    /// `SELECT`
    Select(Select) => "SELECT",
    /// `INSERT`
    Insert(Insert) => "INSERT",
    /// `UPDATE`
    Update(Update) => "UPDATE",
    /// `DELETE`
    Delete(Delete) => "DELETE",
    /// `BEGIN BATCH`
    Batch(Batch) => "BATCH",
    /// `USE keyspace`
    Use(Ident) => "USE",
    /// `TRUNCATE`
    Truncate(Truncate) => "TRUNCATE",
    /// `DESCRIBE`
    Describe(Describe) => "DESCRIBE",
    /// `CREATE KEYSPACE`
    CreateKeyspace(CreateKeyspace) => "CREATE KEYSPACE",
    /// `ALTER KEYSPACE`
    AlterKeyspace(AlterKeyspace) => "ALTER KEYSPACE",
    /// `DROP KEYSPACE`
    DropKeyspace(DropKeyspace) => "DROP KEYSPACE",
    /// `CREATE TABLE`
    CreateTable(CreateTable) => "CREATE TABLE",
    /// `ALTER TABLE`
    AlterTable(AlterTable) => "ALTER TABLE",
    /// `DROP TABLE`
    DropTable(Drop) => "DROP TABLE",
    /// `CREATE TYPE`
    CreateType(CreateType) => "CREATE TYPE",
    /// `ALTER TYPE`
    AlterType(AlterType) => "ALTER TYPE",
    /// `DROP TYPE`
    DropType(Drop) => "DROP TYPE",
    /// `CREATE INDEX`
    CreateIndex(CreateIndex) => "CREATE INDEX",
    /// `DROP INDEX`
    DropIndex(Drop) => "DROP INDEX",
    /// `CREATE MATERIALIZED VIEW`
    CreateView(CreateView) => "CREATE MATERIALIZED VIEW",
    /// `ALTER MATERIALIZED VIEW`
    AlterView(AlterView) => "ALTER MATERIALIZED VIEW",
    /// `DROP MATERIALIZED VIEW`
    DropView(Drop) => "DROP MATERIALIZED VIEW",
    /// `CREATE FUNCTION`
    CreateFunction(CreateFunction) => "CREATE FUNCTION",
    /// `DROP FUNCTION`
    DropFunction(DropFunction) => "DROP FUNCTION",
    /// `CREATE AGGREGATE`
    CreateAggregate(CreateAggregate) => "CREATE AGGREGATE",
    /// `DROP AGGREGATE`
    DropAggregate(DropFunction) => "DROP AGGREGATE",
    /// `CREATE TRIGGER`
    CreateTrigger(CreateTrigger) => "CREATE TRIGGER",
    /// `DROP TRIGGER`
    DropTrigger(DropTrigger) => "DROP TRIGGER",
    /// `CREATE ROLE`
    CreateRole(RoleDefinition) => "CREATE ROLE",
    /// `ALTER ROLE`
    AlterRole(RoleDefinition) => "ALTER ROLE",
    /// `DROP ROLE`
    DropRole(DropRole) => "DROP ROLE",
    /// `LIST ROLES`
    ListRoles(ListRoles) => "LIST ROLES",
    /// `GRANT role`
    GrantRole(RoleGrant) => "GRANT ROLE",
    /// `REVOKE role`
    RevokeRole(RoleGrant) => "REVOKE ROLE",
    /// `CREATE USER`
    CreateUser(UserDefinition) => "CREATE USER",
    /// `ALTER USER`
    AlterUser(UserDefinition) => "ALTER USER",
    /// `DROP USER`
    DropUser(DropRole) => "DROP USER",
    /// `LIST USERS`
    ListUsers => "LIST USERS",
    /// `GRANT permission`
    GrantPermissions(PermissionGrant) => "GRANT",
    /// `REVOKE permission`
    RevokePermissions(PermissionGrant) => "REVOKE",
    /// `LIST permissions`
    ListPermissions(ListPermissions) => "LIST PERMISSIONS",
    /// `ADD IDENTITY`
    AddIdentity(AddIdentity) => "ADD IDENTITY",
    /// `DROP IDENTITY`
    DropIdentity(DropRole) => "DROP IDENTITY",
}
