//! SELECT of one row by its key, answered at once.
//!
//! Most of what applications execute is `SELECT … WHERE key = ?`, prepared, of a row that is in memory.
//! For that a request needs no future, no page and no result: the row is found and shown where it lies
//! ([`Engine::point_read`]). Whatever is unusual about statement, values or row gives `None`, and
//! [`Engine::execute`] does it from the start, errors included: this way only ever answers rows.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use coordinator::Consistency;
use rows::{PartitionKey, Row};
use storage::PointRead;
use types::CqlType;

use super::plan::{Limit, SelectPlan};
use super::rows::{Projection, write_lone};
use crate::catalog::Home;
use crate::prepare::{Body, Planned};
use crate::response::RowSink;
use crate::{ColumnSpec, Engine};

/// A prepared SELECT of one row by one bound key.
#[derive(Clone, Debug)]
pub struct PointQuery(Rc<Planned>);

/// The answer to it: at most one row.
#[derive(Clone, Copy, Debug)]
pub struct PointRow<'a> {
    key: &'a [u8],
    row: Option<&'a Row>,
    projection: &'a Projection,
}

impl PointRow<'_> {
    /// Gives every cell to the sink; the number of rows.
    pub fn write(&self, sink: &mut impl RowSink) -> usize {
        let Some(row) = self.row else { return 0 };
        write_lone(self.projection, self.key, row, sink);
        1
    }
}

impl SelectPlan {
    /// The type of the key, if this is a plain selection of the row of one key, which is the only marker,
    /// from a table that has one row a key.
    pub(super) fn find_point_key(&self) -> Option<CqlType> {
        let is_plain = self.home == Home::Stored
            && self.comparator.types().is_empty()
            && self.selectors.is_none()
            && !self.is_filtered
            && !self.is_distinct
            && self.sort.is_empty()
            && self.limit.as_ref().is_none_or(Limit::is_positive_constant)
            && self.per_partition_limit.is_none();
        self.restrictions.marked_key().filter(|_| is_plain).cloned()
    }
}

impl PointQuery {
    pub(crate) fn of(planned: Rc<Planned>) -> Option<Self> {
        let is_point = planned.variables.len() == 1
            && matches!(&planned.body, Body::Select(plan) if plan.point_key.is_some());
        is_point.then_some(PointQuery(planned))
    }

    fn plan(&self) -> &SelectPlan {
        match &self.0.body {
            Body::Select(plan) => plan,
            _ => unreachable!("checked when it was made"),
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

impl Engine {
    /// The prepared statement of that id, if it selects one row by one bound key and its plan is up to
    /// date.
    pub fn point_query(&self, id: &[u8; 16]) -> Option<PointQuery> {
        PointQuery::of(self.planned_now(id)?)
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
        if is_page_full
            || consistency == Consistency::Any
            || key.is_empty()
            || key.len() > usize::from(u16::MAX)
        {
            return None;
        }
        let plan = query.plan();
        let key_type = plan.point_key.as_ref()?;
        if key_type.validate(&key).is_err() || key_type.canonical(&key).is_some() {
            return None;
        }
        let coordinator = self.coordinator();
        let key = PartitionKey::new(key);
        let read = PointRead { table: &plan.table, key: &key, now: coordinator.now_seconds() };
        let (projection, key): (&Projection, &[u8]) = (&plan.projection, &key.bytes);
        coordinator.point_read(read, consistency, |row| show(PointRow { key, row, projection }))
    }
}
