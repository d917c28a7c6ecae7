//! Statements about the schema, and those that empty or describe it.

use std::pin::pin;
use std::time::Duration;

use coordinator::{Consistency, CoordinatorError, TimeoutKind};
use cql::ast::{Describe, StatementKind, Truncate};
use schema::TableId;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};
use tokio::time::Instant;

use super::Inner;
use crate::catalog::{Home, keyspace_of};
use crate::error::refuse;
use crate::request::QueryOptions;
use crate::response::{Response, ResponseKind};
use crate::timeouts::{Deadline, TimedOut};
use crate::{QueryError, ddl, describe};

/// How long a change is planned again because others came first: long enough for hundreds of clients in line.
const PATIENCE: Duration = Duration::from_secs(10);

/// Changes are planned beside each other; one that has lost to another waits in line and then has the shard for
/// itself. So however many clients change one table at once, only one of each shard competes, and nobody loses for
/// ever.
enum Turn<'l> {
    First(RwLockReadGuard<'l, ()>),
    Alone(#[expect(dead_code, reason = "held, and not looked at")] RwLockWriteGuard<'l, ()>),
}

impl Inner {
    /// Plans and commits a change of the schema; again, when another one came first.
    pub(super) async fn change_schema(
        &self,
        statement: &StatementKind,
        keyspace: Option<&str>,
    ) -> Result<Response, QueryError> {
        let facts = self.virtual_tables.cluster_facts();
        let began = Instant::now();
        let mut turn = Turn::First(self.schema_changes.read().await);
        while began.elapsed() < PATIENCE {
            let schema = self.coordinator.schema();
            let planned = ddl::plan(
                statement,
                &schema,
                keyspace,
                &facts,
                || self.coordinator.time_uuid(),
                self.coordinator.now_millis().saturating_mul(1000),
            )?;
            let Some(change) = planned.change else {
                return Ok(Response { warnings: planned.warnings, ..planned.response.into() });
            };
            match self.coordinator.change_schema(change, schema.epoch()).await {
                Ok(_) => return Ok(Response { warnings: planned.warnings, ..planned.response.into() }),
                Err(CoordinatorError::SchemaMoved { .. } | CoordinatorError::Schema(_)) => {
                    if let Turn::First(of_all) = turn {
                        drop(of_all);
                        turn = Turn::Alone(self.schema_changes.write().await);
                    }
                }
                Err(error @ (CoordinatorError::Storage(_) | CoordinatorError::Table(_))) => {
                    return Err(QueryError::Server(error.to_string()));
                }
                Err(error) => return Err(QueryError::from_coordinator(error, Consistency::One)),
            }
        }
        Err(QueryError::Overloaded("the schema is changed by too many at once".into()))
    }

    pub(super) async fn truncate(
        &self,
        truncate: &Truncate,
        keyspace: Option<&str>,
    ) -> Result<Response, QueryError> {
        let keyspace = keyspace_of(truncate.table.keyspace.as_deref(), keyspace)?;
        let schema = self.coordinator.schema();
        let (table, home) = self.catalog(&schema).table(keyspace, &truncate.table.name)?;
        if home == Home::MadeUp {
            if self.virtual_tables.keyspaces().is_virtual(keyspace) {
                refuse!("Truncation is not supported by table {keyspace}.{}", table.name());
            }
            return Err(QueryError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable.")));
        }
        let mut deadline = Deadline::of(&self.timeouts, TimeoutKind::Truncate);
        match deadline.within(pin!(self.coordinator.truncate(table.id()))).await {
            Ok(Ok(())) => Ok(ResponseKind::Void.into()),
            Err(TimedOut) => Err(self.truncation_timed_out(table.id())),
            Ok(Err(error)) => Err(QueryError::Truncate(format!("Error during truncate: {error}"))),
        }
    }

    fn truncation_timed_out(&self, table: TableId) -> QueryError {
        let mut told = "Error during truncate: Truncate timed out".to_owned();
        // A truncation waits for these before anything is emptied.
        if self.coordinator.is_in_batches(table) {
            told += "; logged batches that write to the table are not finished yet";
        }
        QueryError::Truncate(told)
    }

    pub(super) fn describe(
        &self,
        statement: &Describe,
        keyspace: Option<&str>,
        options: &QueryOptions,
    ) -> Result<Response, QueryError> {
        let schema = self.coordinator.schema();
        let (catalog, virtual_tables) = (self.catalog(&schema), &*self.virtual_tables);
        let rows = describe::describe(statement, &catalog, virtual_tables, keyspace, options)?;
        Ok(ResponseKind::Rows(rows).into())
    }
}
