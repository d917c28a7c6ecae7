//! The plain way: prepared statements that read or write one row by its key, done in batches.
//!
//! Most of what applications execute is `SELECT … WHERE key = ?` of a row that is in memory, or an INSERT or UPDATE
//! that only memory and the log take part in. For that a request needs no page and no result, and where there is
//! nothing to wait for no future. A remote batch has one: its shard is at work, or its writes wait for the disk
//! (`remote_…`). Where statement, values, row or moment ask for more, nothing is done here: the request is full, and
//! [`Engine::execute`] does it from the start and knows what to say of it. Errors are told here only of writes that may
//! have been done, for to write them again could undo what came after them (the log has taken them and then failed, or
//! their shard has ended), and of a batch that has waited as long as a request may.

use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
pub use coordinator::PlainWrite;
use coordinator::{Batches, Consistency, PlainOutcomes, RowQuery, ShownRow, TimeoutKind};
use rows::PartitionKey;
use schema::Table;
use stdx::index_set::IndexSet;

use crate::modify::ModifyPlan;
use crate::prepare::{Body, Planned};
use crate::restrictions::check_key_length;
use crate::select::{PlainRow, Projection, SelectPlan};
use crate::timeouts::Deadline;
use crate::{ColumnSpec, Engine, QueryError, WriteType};

/// A prepared statement about one row.
#[derive(Clone, Debug)]
pub enum PlainStatement {
    /// A SELECT.
    Read(PlainQuery),
    /// An INSERT or UPDATE.
    Write(PlainUpdate),
}

/// A prepared SELECT of one row by one bound key.
#[derive(Clone, Debug)]
pub struct PlainQuery(Rc<Planned>);

/// The row of a key, to be read the plain way.
pub type PlainRead = coordinator::PlainRead<PlainQuery>;

/// How the writes of a remote batch have come out. Of those in neither set nothing was written, and they are for
/// [`Engine::execute`].
#[derive(Debug)]
pub struct PlainWritten {
    /// They are written.
    pub done: IndexSet,
    /// They may or may not survive.
    pub doubtful: IndexSet,
    /// What the clients of the doubtful ones are told.
    pub error: Option<QueryError>,
}

/// As many are read or written in one go.
pub const PLAIN_BATCH_MAX: usize = storage::KEYS_TOGETHER;

/// A prepared INSERT or UPDATE of one row, all of it bound.
#[derive(Clone, Debug)]
pub struct PlainUpdate(Rc<Planned>);

impl PlainStatement {
    fn of(planned: Rc<Planned>) -> Option<Self> {
        match &planned.body {
            Body::Select(plan) if plan.plain_key.is_some() && planned.variables.len() == 1 => {
                Some(PlainStatement::Read(PlainQuery(planned)))
            }
            Body::Modify(plan) if plan.plain.is_some() => Some(PlainStatement::Write(PlainUpdate(planned))),
            _ => None,
        }
    }
}

impl PlainQuery {
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

impl RowQuery for PlainQuery {
    type View = Projection;

    fn table(&self) -> &Arc<Table> {
        &self.plan().table
    }

    fn view(&self) -> &Arc<Projection> {
        &self.plan().projection
    }

    fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl PlainWritten {
    fn of(outcomes: PlainOutcomes, consistency: Consistency) -> Self {
        let PlainOutcomes { done, doubtful, error } = outcomes;
        // Why others were not written is found out by those who write them again.
        let error = error.filter(|_| !doubtful.is_empty());
        let error = error.map(|error| QueryError::of_write(error, consistency, WriteType::Simple));
        PlainWritten { done, doubtful, error }
    }

    /// Nobody waits for them any more: what was given to the log may still be written.
    fn in_doubt(doubtful: IndexSet, error: QueryError) -> Self {
        PlainWritten { done: IndexSet::EMPTY, doubtful, error: Some(error) }
    }
}

impl PlainUpdate {
    fn plan(&self) -> &ModifyPlan {
        match &self.0.body {
            Body::Modify(plan) => plan,
            _ => unreachable!("looked at when it was made"),
        }
    }
}

impl Engine {
    /// The prepared statement of that id, if it is about one row and its plan is up to date.
    pub fn plain_statement(&self, id: &[u8; 16]) -> Option<PlainStatement> {
        PlainStatement::of(self.planned_now(id)?)
    }

    /// A plain read of one row by its key. `None` when it is full, and for [`Engine::execute`].
    /// `page_size` as in [`crate::QueryOptions`].
    pub fn plain_read(
        &self,
        query: PlainQuery,
        key: Bytes,
        consistency: Consistency,
        page_size: Option<u32>,
    ) -> Option<PlainRead> {
        // After a full page there is a place to go on from, even when nothing comes.
        let is_page_full = page_size == Some(1);
        // A serial read waits for what it has seen of conditional changes.
        let is_plain = consistency.is_for_reads() && !consistency.is_serial();
        if is_page_full || !is_plain || check_key_length(key.len()).is_err() {
            return None;
        }
        query.plan().plain_key.as_ref()?.validate(&key).ok()?;
        self.coordinator().plain_read(query, PartitionKey::new(key), consistency)
    }

    /// Shows rows that are in memory, by the index of their reads and in any order, until it is told to stop.
    /// Gives back those whose shard is at work: each batch is for [`Engine::remote_reads`]. Others that are not
    /// shown are for [`Engine::execute`].
    ///
    /// # Panics
    /// When there are more than [`PLAIN_BATCH_MAX`].
    pub fn plain_reads(
        &self,
        reads: &[PlainRead],
        mut show: impl FnMut(usize, PlainRow<'_>) -> ControlFlow<()> + Send,
    ) -> Batches {
        self.coordinator().plain_reads(reads, |index, row| show(index, PlainRow(row)))
    }

    /// Shows the rows of a batch that [`Engine::plain_reads`] gave back on the thread of their shard, by their index in
    /// the batch and in any order, until it is told to stop. `show` puts what it sees into `seen`, which comes back;
    /// `None` when the shard takes no more. What is not shown is for [`Engine::execute`].
    ///
    /// # Errors
    /// [`QueryError::ReadTimeout`] for all of them: the shard has not answered in time.
    ///
    /// # Panics
    /// When they are none, or more than [`PLAIN_BATCH_MAX`].
    pub fn remote_reads<T: Send + 'static>(
        &self,
        reads: Vec<PlainRead>,
        seen: T,
        mut show: impl FnMut(&mut T, usize, PlainRow<'_>) -> ControlFlow<()> + Send + 'static,
    ) -> impl Future<Output = Result<Option<T>, QueryError>> + 'static {
        let coordinator = self.coordinator().clone();
        let mut deadline = Deadline::of(self.timeouts(), TimeoutKind::Read);
        let consistency = reads[0].consistency();
        async move {
            let show = move |seen: &mut T, index: usize, row: ShownRow<'_, Projection>| {
                show(seen, index, PlainRow(row))
            };
            let read = deadline.within(pin!(coordinator.remote_reads(reads, seen, show))).await;
            read.map(Result::ok).map_err(|timed_out| timed_out.of_read(consistency))
        }
    }

    /// A plain write of a row whose values are bound to the markers in their order. `None` when it is full,
    /// and for [`Engine::execute`]. `timestamp` as in [`crate::QueryOptions`].
    pub fn plain_write<'v>(
        &self,
        update: &PlainUpdate,
        values: impl Iterator<Item = &'v [u8]>,
        consistency: Consistency,
        timestamp: Option<i64>,
    ) -> Option<PlainWrite> {
        if !consistency.is_for_writes() {
            return None;
        }
        let (plan, coordinator) = (update.plan(), self.coordinator());
        let mutation = plan.plain_mutation(values, || plan.plain_time(coordinator, timestamp), |_| None)?;
        coordinator.plain_write(mutation, consistency)
    }

    /// Writes rows, each durable in the sense of the sync mode: gives those that are written.
    /// Of the others nothing was written: each batch is for [`Engine::remote_writes`].
    ///
    /// # Panics
    /// When there are more than [`PLAIN_BATCH_MAX`].
    pub fn plain_writes(&self, writes: &[PlainWrite]) -> (IndexSet, Batches) {
        self.coordinator().plain_writes(writes)
    }

    /// Writes rows of a batch that [`Engine::plain_writes`] gave back, and waits until they are durable in the sense of
    /// the sync mode, as long as a write may take. All that were not done until then are doubtful.
    ///
    /// # Panics
    /// When they are none, or more than [`PLAIN_BATCH_MAX`].
    pub fn remote_writes(&self, writes: Vec<PlainWrite>) -> impl Future<Output = PlainWritten> + 'static {
        let coordinator = self.coordinator().clone();
        let mut deadline = Deadline::of(self.timeouts(), TimeoutKind::Write);
        let (consistency, all) = (writes[0].consistency(), IndexSet::first(writes.len()));
        async move {
            match deadline.within(pin!(coordinator.remote_writes(writes))).await {
                Ok(outcomes) => PlainWritten::of(outcomes, consistency),
                Err(timed_out) => {
                    PlainWritten::in_doubt(all, timed_out.of_write(consistency, WriteType::Simple))
                }
            }
        }
    }
}
