//! Whole statements.

use std::fmt::{self, Display, Formatter};

use super::schema::{TypePath, if_exists, if_not_exists};
use crate::ast::{Drop, Statement, StatementKind};

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Display for StatementKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StatementKind::Select(statement) => statement.fmt(f),
            StatementKind::Insert(statement) => statement.fmt(f),
            StatementKind::Update(statement) => statement.fmt(f),
            StatementKind::Delete(statement) => statement.fmt(f),
            StatementKind::Batch(statement) => statement.fmt(f),
            StatementKind::Use(keyspace) => write!(f, "USE {keyspace}"),
            StatementKind::Truncate(statement) => statement.fmt(f),
            StatementKind::Describe(statement) => statement.fmt(f),
            StatementKind::CreateKeyspace(statement) => statement.fmt(f),
            StatementKind::AlterKeyspace(statement) => statement.fmt(f),
            StatementKind::DropKeyspace(statement) => statement.fmt(f),
            StatementKind::CreateTable(statement) => statement.fmt(f),
            StatementKind::AlterTable(statement) => statement.fmt(f),
            StatementKind::DropTable(statement) => drop(f, "TABLE", statement),
            StatementKind::CreateType(statement) => statement.fmt(f),
            StatementKind::AlterType(statement) => statement.fmt(f),
            StatementKind::DropType(statement) => {
                write!(f, "DROP TYPE {}{}", if_exists(statement.if_exists), TypePath(&statement.name))
            }
            StatementKind::CreateIndex(statement) => statement.fmt(f),
            StatementKind::DropIndex(statement) => drop(f, "INDEX", statement),
            StatementKind::CreateView(statement) => statement.fmt(f),
            StatementKind::AlterView(statement) => statement.fmt(f),
            StatementKind::DropView(statement) => drop(f, "MATERIALIZED VIEW", statement),
            StatementKind::CreateFunction(statement) => statement.fmt(f),
            StatementKind::DropFunction(statement) => write!(f, "DROP FUNCTION {statement}"),
            StatementKind::CreateAggregate(statement) => statement.fmt(f),
            StatementKind::DropAggregate(statement) => write!(f, "DROP AGGREGATE {statement}"),
            StatementKind::CreateTrigger(statement) => statement.fmt(f),
            StatementKind::DropTrigger(statement) => statement.fmt(f),
            security => fmt_security(security, f),
        }
    }
}

fn fmt_security(kind: &StatementKind, f: &mut Formatter<'_>) -> fmt::Result {
    match kind {
        StatementKind::CreateRole(role) => {
            write!(f, "CREATE ROLE {}{role}", if_not_exists(role.if_clause))
        }
        StatementKind::AlterRole(role) => write!(f, "ALTER ROLE {}{role}", if_exists(role.if_clause)),
        StatementKind::DropRole(role) => write!(f, "DROP ROLE {role}"),
        StatementKind::ListRoles(statement) => statement.fmt(f),
        StatementKind::GrantRole(grant) => write!(f, "GRANT {} TO {}", grant.role, grant.grantee),
        StatementKind::RevokeRole(grant) => write!(f, "REVOKE {} FROM {}", grant.role, grant.grantee),
        StatementKind::CreateUser(user) => {
            write!(f, "CREATE USER {}{user}", if_not_exists(user.if_clause))
        }
        StatementKind::AlterUser(user) => write!(f, "ALTER USER {}{user}", if_exists(user.if_clause)),
        StatementKind::DropUser(user) => write!(f, "DROP USER {user}"),
        StatementKind::ListUsers => f.write_str("LIST USERS"),
        StatementKind::GrantPermissions(grant) => {
            write!(f, "GRANT {} ON {} TO {}", grant.permissions, grant.resource, grant.grantee)
        }
        StatementKind::RevokePermissions(grant) => {
            write!(f, "REVOKE {} ON {} FROM {}", grant.permissions, grant.resource, grant.grantee)
        }
        StatementKind::ListPermissions(statement) => statement.fmt(f),
        StatementKind::AddIdentity(statement) => statement.fmt(f),
        StatementKind::DropIdentity(identity) => write!(f, "DROP IDENTITY {identity}"),
        other => f.write_str(other.label()),
    }
}

fn drop(f: &mut Formatter<'_>, what: &str, statement: &Drop) -> fmt::Result {
    write!(f, "DROP {what} {}{}", if_exists(statement.if_exists), statement.name)
}
