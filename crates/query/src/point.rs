//! Prepared statements that read or write one row by its key, done at once.
//!
//! Most of what applications execute is `SELECT … WHERE key = ?` of a row that is in memory, or an INSERT or
//! UPDATE that only memory and the log's buffer take part in. For that a request needs no future, no page
//! and no result. Whatever is unusual about statement, values, row or moment is not done here, and
//! [`Engine::execute`] does it from the start, errors included: this way only ever succeeds.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use coordinator::Consistency;
use rows::PartitionKey;
use storage::PointRead;

use crate::modify::{ModifyPlan, PointWrite};
use crate::prepare::{Body, Planned};
use crate::restrictions::check_key_length;
use crate::select::{PointRow, Projection, SelectPlan};
use crate::{ColumnSpec, Engine};

/// A prepared statement about one row.
#[derive(Clone, Debug)]
pub enum PointStatement {
    /// A SELECT.
    Read(PointQuery),
    /// An INSERT or UPDATE.
    Write(PointUpdate),
}

/// A prepared SELECT of one row by one bound key.
#[derive(Clone, Debug)]
pub struct PointQuery(Rc<Planned>);

/// A prepared INSERT or UPDATE of one row, all of it bound.
#[derive(Clone, Debug)]
pub struct PointUpdate(Rc<Planned>);

impl PointStatement {
    fn of(planned: Rc<Planned>) -> Option<Self> {
        match &planned.body {
            Body::Select(plan) if plan.point_key.is_some() && planned.variables.len() == 1 => {
                Some(PointStatement::Read(PointQuery(planned)))
            }
            Body::Modify(plan) if plan.point.is_some() => Some(PointStatement::Write(PointUpdate(planned))),
            _ => None,
        }
    }
}

impl PointQuery {
    fn plan(&self) -> &SelectPlan {
        match &self.0.body {
            Body::Select(plan) => plan,
            _ => unreachable!("looked at when it was made"),
        }
    }

    /// The columns of the result.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.plan().columns
    }

    /// The id of the result's metadata, as [`crate::RowsResult::metadata_id`].
    pub fn metadata_id(&self) -> &[u8; 16] {
        &self.plan().metadata_id
    }
}

impl PointUpdate {
    fn plan(&self) -> &ModifyPlan {
        match &self.0.body {
            Body::Modify(plan) => plan,
            _ => unreachable!("looked at when it was made"),
        }
    }
}

impl Engine {
    /// The prepared statement of that id, if it is about one row and its plan is up to date.
    pub fn point_statement(&self, id: &[u8; 16]) -> Option<PointStatement> {
        PointStatement::of(self.planned_now(id)?)
    }

    /// Shows the row of a key. `None` when it has to be waited for, or cannot be had: then nothing was
    /// shown, and [`Engine::execute`] is to be asked. `page_size` as in [`crate::QueryOptions`].
    pub fn point_read<T: Send>(
        &self,
        query: &PointQuery,
        key: Bytes,
        consistency: Consistency,
        page_size: Option<u32>,
        show: impl FnOnce(PointRow<'_>) -> T + Send,
    ) -> Option<T> {
        // After a full page there is a place to go on from, even when nothing comes.
        let is_page_full = page_size == Some(1);
        if is_page_full || consistency == Consistency::Any || check_key_length(key.len()).is_err() {
            return None;
        }
        let plan = query.plan();
        plan.point_key.as_ref()?.validate(&key).ok()?;
        let coordinator = self.coordinator();
        let key = PartitionKey::new(key);
        let read = PointRead { table: &plan.table, key: &key, now: coordinator.now_seconds() };
        let (projection, key): (&Projection, &[u8]) = (&plan.projection, &key.bytes);
        coordinator.point_read(read, consistency, |row| show(PointRow { key, row, projection }))
    }

    /// Writes a row whose values are bound to the markers in their order, durable in the sense of the sync
    /// mode. `false` when that has to be waited for, or cannot be done: then nothing was written, and
    /// [`Engine::execute`] is to be asked. `timestamp` as in [`crate::QueryOptions`].
    pub fn write_at_once<'v>(
        &self,
        update: &PointUpdate,
        values: impl Iterator<Item = &'v [u8]>,
        consistency: Consistency,
        timestamp: Option<i64>,
    ) -> bool {
        PointWrite { coordinator: self.coordinator(), consistency, timestamp }.write(update.plan(), values)
    }
}
