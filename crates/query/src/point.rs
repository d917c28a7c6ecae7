//! Prepared statements that read or write one row by its key, done at once.
//!
//! Most of what applications execute is `SELECT … WHERE key = ?` of a row that is in memory, or an INSERT or
//! UPDATE that only memory and the log's buffer take part in. For that a request needs no future, no page
//! and no result. Whatever is unusual about statement, values, row or moment is not done here, and
//! [`Engine::execute`] does it from the start, errors included: this way only ever succeeds.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use coordinator::Consistency;
use rows::PartitionKey;
use smallvec::SmallVec;
use storage::PointReads;

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

/// The row of a key, to be read: nothing about that is unusual.
#[derive(Clone, Debug)]
pub struct PointRead {
    query: PointQuery,
    key: PartitionKey,
    /// The shard that has it.
    owner: usize,
}

/// As many as are read in one go.
pub const POINT_READS_MAX: usize = storage::KEYS_TOGETHER;

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

impl PointRead {
    /// Can both be read in one go?
    fn goes_with(&self, other: &PointRead) -> bool {
        self.owner == other.owner && Rc::ptr_eq(&self.query.0, &other.query.0)
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

    /// Looks at a read of one row by its key. `None` when it is unusual, and for [`Engine::execute`].
    /// `page_size` as in [`crate::QueryOptions`].
    pub fn point_read(
        &self,
        query: PointQuery,
        key: Bytes,
        consistency: Consistency,
        page_size: Option<u32>,
    ) -> Option<PointRead> {
        // After a full page there is a place to go on from, even when nothing comes.
        let is_page_full = page_size == Some(1);
        if is_page_full || consistency == Consistency::Any || check_key_length(key.len()).is_err() {
            return None;
        }
        let (plan, coordinator) = (query.plan(), self.coordinator());
        plan.point_key.as_ref()?.validate(&key).ok()?;
        let key = PartitionKey::new(key);
        let owner = coordinator.owner(&key);
        coordinator.admits(plan.table.id(), consistency).then_some(PointRead { query, key, owner })
    }

    /// Shows rows that are in memory, by the index of their reads and in any order, until it is told to stop.
    /// Those that are not shown are for [`Engine::execute`].
    ///
    /// # Panics
    /// When there are more than [`POINT_READS_MAX`].
    pub fn point_reads(
        &self,
        reads: &[PointRead],
        mut show: impl FnMut(usize, PointRow<'_>) -> ControlFlow<()> + Send,
    ) {
        assert!(reads.len() <= POINT_READS_MAX, "so many at once");
        let now = self.coordinator().now_seconds();
        let mut left: SmallVec<[usize; POINT_READS_MAX]> = (0..reads.len()).collect();
        let mut is_stopped = false;
        while let Some(first) = left.first().map(|index| &reads[*index]).filter(|_| !is_stopped) {
            let mut group = SmallVec::<[usize; POINT_READS_MAX]>::new();
            left.retain(|index| {
                let goes_along = reads[*index].goes_with(first);
                if goes_along {
                    group.push(*index);
                }
                !goes_along
            });
            let keys: SmallVec<[&PartitionKey; POINT_READS_MAX]> =
                group.iter().map(|index| &reads[*index].key).collect();
            let plan = first.query.plan();
            let (keys, projection): (&[&PartitionKey], &Projection) = (&keys, &plan.projection);
            let asked = PointReads { table: &plan.table, keys, now };
            self.coordinator().point_reads(first.owner, asked, |index, row| {
                let shown = show(group[index], PointRow { key: &keys[index].bytes, row, projection });
                is_stopped |= shown.is_break();
                shown
            });
        }
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
