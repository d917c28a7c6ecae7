//! Carrying out a SELECT: page after page from storage, filtered, cut, computed.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coordinator::{Consistency, Coordinator, CoordinatorError, TimeoutKind, Timeouts};
use read::{PartitionRows, ReadCommand, ReadPage, ReadPosition, ReadTarget, TooManyTombstones};
use rows::{PartitionKey, Slices};
use runtime::{Io, Piece, trace};
use schema::ColumnKind;
use storage::StorageError;

use super::aggregate::Groups;
use super::cells::RowView;
use super::compute::compute;
use super::page::{Amounts, Filling, Page};
use super::paging::PagingState;
use super::passed::{Tallies, too_many};
use super::plan::{Limit, SelectPlan};
use super::plan_selector::source_of;
use super::sort::sort;
use super::spelled::Spelled;
use super::virtual_read;
use crate::catalog::Home;
use crate::error::{FailedReplicas, refuse};
use crate::memory::{AnswerRoom, ReadRoom};
use crate::request::QueryOptions;
use crate::response::{RowsBody, RowsResult, TombstoneWarning};
use crate::restrictions::{Partitions, RowFilter, Rows};
use crate::terms::{Bindings, Value};
use crate::timeouts::Deadline;
use crate::{QueryError, VirtualTables};

/// Rows asked of storage at once at most, where the client's page says nothing.
const ROWS_AT_ONCE: u32 = 10_000;
/// And where some are filtered out, at least and at most.
const ROWS_FILTERED_MIN: u32 = 100;
const ROWS_FILTERED_MAX: u32 = 5_000;
/// Of tombstones a client hears so often for one statement, at most.
const WARNINGS_MAX: usize = 100;

/// What a SELECT is carried out with.
pub(crate) struct Reader<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) virtual_tables: &'a dyn VirtualTables,
    pub(crate) consistency: Consistency,
    pub(crate) timeouts: &'a Timeouts,
    /// What is to be said of tombstones, when the read is over.
    pub(crate) tombstones: RefCell<Vec<TombstoneWarning>>,
}

impl Reader<'_> {
    /// Reads one page, for a request that has that much time left.
    pub(super) async fn read(
        &self,
        plan: &SelectPlan,
        command: &ReadCommand,
        time: Duration,
    ) -> Result<ReadPage, CoordinatorError> {
        if plan.home == Home::MadeUp {
            trace::note(|| format!("Making up rows of {}", plan.table.name()));
            if let Some(gathering) = self.virtual_tables.gather(&plan.table) {
                gathering.await;
            }
            let rows = self.virtual_tables.rows(&plan.table).unwrap_or_default();
            let order = match self.virtual_tables.keyspaces().is_virtual(plan.table.keyspace()) {
                true => virtual_read::PartitionOrder::Key,
                false => virtual_read::PartitionOrder::Ring,
            };
            return Ok(virtual_read::read(rows, command, order).map_err(StorageError::from)?);
        }
        self.coordinator.read_within(command, self.consistency, time).await
    }
}

impl Limit {
    fn bind(&self, bindings: &Bindings<'_>) -> Result<u32, QueryError> {
        let value = match self.0.bind(bindings)? {
            Value::Unset => return Ok(u32::MAX),
            Value::Null => refuse!("Invalid null value of limit"),
            Value::Set(value) => value,
        };
        let Ok(bytes) = <[u8; 4]>::try_from(&*value) else { refuse!("Invalid limit value") };
        match u32::try_from(i32::from_be_bytes(bytes)) {
            Ok(limit) if limit > 0 => Ok(limit),
            _ => refuse!("LIMIT must be strictly positive"),
        }
    }
}

fn bind_limit(limit: &Option<Limit>, bindings: &Bindings<'_>) -> Result<u32, QueryError> {
    limit.as_ref().map_or(Ok(u32::MAX), |limit| limit.bind(bindings))
}

/// Carries out a SELECT.
///
/// # Errors
/// A bound value is wrong, or the read fails.
pub(crate) async fn execute(
    plan: &SelectPlan,
    reader: &Reader<'_>,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    room: &mut AnswerRoom,
) -> Result<RowsResult, QueryError> {
    let limit = bind_limit(&plan.limit, bindings)?;
    let per_partition = bind_limit(&plan.per_partition_limit, bindings)?;
    let page_size = options.page_size.filter(|size| *size > 0);
    let is_sorted = !plan.sort.is_empty();
    if is_sorted && page_size.is_some_and(|size| limit > size) {
        refuse!(
            "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN and sort client side, or disable paging for this query"
        );
    }
    let state = options.paging_state.as_ref();
    let state = state.map(|state| PagingState::decode(state, &plan.table)).transpose()?;
    let now = match options.now_in_seconds {
        Some(now) => u32::try_from(now).unwrap_or(0),
        None => reader.coordinator.now_seconds(),
    };
    let left = state.as_ref().map_or(limit, |state| state.left);
    let amounts = Amounts { left, per_partition, page: page_size.unwrap_or(u32::MAX) };
    let resume = state.map(|state| state.position);
    let mut scan = Scan::new(plan, reader, bindings, amounts, Moment { now, resume }, room).await?;
    if plan.is_aggregate() {
        return Box::pin(Groups::new(plan, bindings, now).run(&mut scan, amounts)).await;
    }
    if reader.consistency.is_serial() && page_size.is_none() && scan.has_several_keys() {
        // As in Cassandra, which reads such partitions one by one when the answer is given in pages.
        refuse!("SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time");
    }
    let read = if is_sorted {
        let everything = Amounts { left: u32::MAX, page: u32::MAX, ..amounts };
        let all = Box::pin(scan.collect(everything)).await?;
        Page { rows: Box::pin(sort(plan, all.rows, left)).await, next: None }
    } else {
        scan.collect(amounts).await?
    };
    scan.report();
    let paging_state = read.next.map(|state| state.encode());
    let body = match &plan.selectors {
        None => RowsBody::Stored(read.rows, Arc::clone(&plan.projection)),
        Some(selectors) => {
            let runtime = reader.coordinator.runtime();
            let computing = compute(plan, selectors, &read.rows, (bindings, now), runtime, scan.room);
            RowsBody::Computed(Box::pin(computing).await?)
        }
    };
    Ok(RowsResult {
        columns: plan.columns.clone(),
        metadata_id: plan.metadata_id,
        paging_state,
        varies: false,
        body,
    })
}

/// The pages of one SELECT.
pub(super) struct Scan<'a> {
    pub(super) plan: &'a SelectPlan,
    pub(super) reader: &'a Reader<'a>,
    bindings: &'a Bindings<'a>,
    amounts: Amounts,
    /// What is gathered counts here.
    pub(super) room: &'a mut AnswerRoom,
    /// Where the client's page begins.
    started_at: Option<ReadPosition>,
    tallies: Tallies,
    command: ReadCommand,
    filter: Option<RowFilter>,
    is_done: bool,
    /// At most one row is asked for, so that one read is the last.
    is_one_row: bool,
    /// Has a page been read?
    has_read: bool,
    deadline: Deadline,
}

/// When a page is read, and from where.
struct Moment {
    now: u32,
    resume: Option<ReadPosition>,
}

/// What comes next of a scan.
pub(super) enum Next {
    /// These rows, filtered.
    Rows(Vec<PartitionRows>),
    /// Nothing that there is room for: the client's page ends.
    PageIsFull,
    /// Nothing: that was all.
    End,
}

impl<'a> Scan<'a> {
    /// A scan of what is asked for, from the start or from where a page before ended.
    ///
    /// # Errors
    /// A bound value is wrong.
    async fn new(
        plan: &'a SelectPlan,
        reader: &'a Reader<'a>,
        bindings: &'a Bindings<'a>,
        amounts: Amounts,
        moment: Moment,
        room: &'a mut AnswerRoom,
    ) -> Result<Self, QueryError> {
        let Moment { now, resume } = moment;
        let io = reader.coordinator.io();
        let target = match plan.restrictions.bind_partitions(bindings, io).await? {
            Partitions::Keys(keys) => ReadTarget::Keys(keys),
            Partitions::Range(range) => ReadTarget::Range(range),
        };
        let (slices, is_named_row) = bind_slices(plan, bindings, io).await?;
        let filter = plan.is_filtered.then(|| bind_filter(plan, bindings)).transpose()?;
        let key_count = match &target {
            ReadTarget::Keys(keys) => Some(keys.len()),
            ReadTarget::Range(_) => None,
        };
        let kind = if key_count.is_some() { TimeoutKind::Read } else { TimeoutKind::Range };
        let is_done = key_count == Some(0) || slices.as_slice().is_empty();
        let started_at = resume.clone();
        let (columns, reversed) = (plan.read_columns.clone(), plan.is_reversed);
        let command = ReadCommand {
            slices,
            columns,
            reversed,
            resume,
            ..ReadCommand::new(plan.table.clone(), target, now)
        };
        Ok(Scan {
            plan,
            reader,
            bindings,
            amounts,
            room,
            started_at,
            tallies: Tallies::new(reader.coordinator.tombstone_thresholds(&plan.table)),
            command,
            filter,
            is_done,
            is_one_row: is_named_row && key_count == Some(1),
            has_read: false,
            deadline: Deadline::of(reader.timeouts, kind),
        })
    }

    /// Is it of several partitions that are named by their keys?
    fn has_several_keys(&self) -> bool {
        matches!(&self.command.target, ReadTarget::Keys(keys) if keys.len() > 1)
    }

    /// Where the scan stands.
    pub(super) fn resumed_at(&self) -> Option<&ReadPosition> {
        self.command.resume.as_ref()
    }

    /// What comes next, as far as there is room. `has_any`: the client's page has something already, so that it can
    /// end.
    pub(super) async fn next(
        &mut self,
        row_count: u32,
        per_partition: u32,
        has_any: bool,
    ) -> Result<Next, QueryError> {
        if self.is_done {
            return Ok(Next::End);
        }
        let consistency = self.reader.consistency;
        if std::mem::replace(&mut self.has_read, true) {
            if self.plan.is_aggregate() {
                self.deadline.begin_anew();
            }
            // A long scan takes turns with the shard's other requests, page by page.
            self.deadline.give_way().await.map_err(|timed_out| timed_out.of_read(consistency))?;
        }
        // However many columns are asked for, a page of them is not much larger than others.
        let rows_max = self.room.page_bytes() / self.plan.bytes_between_cells();
        self.command.limits.row_count = row_count.min(u32::try_from(rows_max).unwrap_or(u32::MAX)).max(1);
        // Filtered rows are counted here, not by storage.
        self.command.limits.rows_per_partition = if self.filter.is_some() { u32::MAX } else { per_partition };
        if self.plan.is_distinct && self.filter.is_none() {
            self.command.limits.rows_per_partition = 1;
        }
        let read = loop {
            let bytes = match self.room_for_read(has_any).await {
                ReadRoom::Bytes(bytes) => bytes,
                ReadRoom::PageIsFull => return Ok(Next::PageIsFull),
                ReadRoom::TooMuch => return Err(self.too_much()),
            };
            let bytes = bytes / self.plan.repeats;
            self.command.limits.bytes = bytes;
            self.command.limits.bytes_max = bytes;
            let time = self.deadline.left();
            let read = self.deadline.within(pin!(self.reader.read(self.plan, &self.command, time))).await;
            match read.map_err(|timed_out| timed_out.of_read(consistency))? {
                Err(CoordinatorError::Storage(StorageError::RowTooLarge { bytes })) => {
                    if has_any && self.is_paged() {
                        return Ok(Next::PageIsFull);
                    }
                    if !self.room.for_row(bytes.saturating_mul(self.plan.repeats)).await {
                        return Err(self.too_much());
                    }
                }
                read => break read,
            }
        };
        let page = self.tally(read)?;
        Ok(Next::Rows(self.take_page(page).await))
    }

    /// Is an answer of so many bytes as much as goes on a page?
    pub(super) fn is_page_full(&self, bytes: usize) -> bool {
        self.is_paged() && bytes >= self.room.page_bytes()
    }

    /// Can the answer be given in pages?
    fn is_paged(&self) -> bool {
        self.amounts.page < u32::MAX && self.plan.sort.is_empty()
    }

    async fn room_for_read(&mut self, has_any: bool) -> ReadRoom {
        // One row at most: the first room is for it, and what it lacks is said by the read.
        if self.is_paged() || self.is_one_row {
            self.room.for_page(has_any)
        } else {
            self.room.for_all().await
        }
    }

    fn too_much(&self) -> QueryError {
        let bytes_max = self.room.answer_bytes_max();
        QueryError::invalid(stdx::brief!(
            "The answer would take more than the {bytes_max} bytes of memory that one may have: ask for pages, for fewer rows or for fewer columns"
        ))
    }

    /// Takes over what was read: where the next page begins, and the rows that pass the filter.
    async fn take_page(&mut self, mut page: ReadPage) -> Vec<PartitionRows> {
        let shows_alone = self.plan.projection.static_rows_alone;
        // The page before may have ended in a partition of which it gave no row: behind those that one replica has and
        // another one hides.
        let was_given =
            |key: &PartitionKey| self.command.resumed_in(key).is_some_and(|row_count| row_count > 0);
        page.partitions.retain(|partition| {
            !partition.rows.is_empty()
                || (shows_alone && partition.static_row.is_some() && !was_given(&partition.key))
        });
        match page.next {
            Some(next) if !self.is_one_row => self.command.resume = Some(next),
            _ => self.is_done = true,
        }
        if let Some(filter) = &self.filter {
            page.partitions = Box::pin(passing(filter, self.plan, page.partitions)).await;
        }
        if self.plan.is_distinct {
            page.partitions.iter_mut().for_each(|partition| partition.rows.truncate(1));
        }
        page.partitions
    }

    /// Counts the tombstones of a page.
    ///
    /// # Errors
    /// They are too many, or it could not be read.
    fn tally(&mut self, read: Result<ReadPage, CoordinatorError>) -> Result<ReadPage, QueryError> {
        let command = &self.command;
        let is_aggregate = self.plan.is_aggregate();
        let spelled = Spelled {
            plan: self.plan,
            bindings: self.bindings,
            target: &command.target,
            slices: &command.slices,
            resume: if is_aggregate { command.resume.as_ref() } else { self.started_at.as_ref() },
            amounts: self.amounts,
        };
        let (found, replicas) = match read {
            Ok(page) => match self.tallies.add(&page, &spelled) {
                Some(found) => (found, FailedReplicas::with_tombstones()),
                None => {
                    if is_aggregate {
                        self.report();
                    }
                    return Ok(page);
                }
            },
            Err(error) => {
                let told = |error| QueryError::from_coordinator(error, self.reader.consistency);
                let (found, replicas) = too_many_met(error).map_err(told)?;
                self.tallies.add_failed(&found, &spelled);
                (found, replicas)
            }
        };
        let what = too_many(&found, &spelled);
        self.report();
        Err(QueryError::too_many_tombstones(self.reader.consistency, replicas, what))
    }

    /// Says what there is to say of the tombstones counted so far.
    fn report(&mut self) {
        let mut reported = self.reader.tombstones.borrow_mut();
        let room = WARNINGS_MAX.saturating_sub(reported.len());
        reported.extend(self.tallies.take_warnings(&self.plan.table).into_iter().take(room));
    }

    /// Rows up to the page or the limit.
    async fn collect(&mut self, amounts: Amounts) -> Result<Page, QueryError> {
        let mut filling = Filling::new(amounts, self.resumed_at());
        while filling.missing() > 0 {
            let row_count = match self.filter {
                Some(_) => filling.missing().clamp(ROWS_FILTERED_MIN, ROWS_FILTERED_MAX),
                None => filling.missing().min(ROWS_AT_ONCE),
            };
            match self.next(row_count, amounts.per_partition, !filling.is_empty()).await? {
                Next::Rows(partitions) => {
                    self.room.take(self.plan.answer_bytes(&partitions));
                    filling.take(partitions);
                }
                Next::PageIsFull => break,
                Next::End => return Ok(filling.into_last()),
            }
        }
        // Even when nothing comes after it: a full page has a next one, as Cassandra's.
        Ok(filling.into_full())
    }
}

/// Which rows of its partitions are asked for; is it one, by its whole key?
async fn bind_slices(
    plan: &SelectPlan,
    bindings: &Bindings<'_>,
    io: &Io,
) -> Result<(Slices, bool), QueryError> {
    if plan.comparator.types().is_empty() {
        return Ok((Slices::all(), true));
    }
    let rows = plan.restrictions.bind_rows(&plan.comparator, bindings, io).await?;
    let is_named_row = matches!(&rows, Rows::Named(names) if names.len() == 1);
    Ok((rows.into_slices(&plan.comparator), is_named_row))
}

fn bind_filter(plan: &SelectPlan, bindings: &Bindings<'_>) -> Result<RowFilter, QueryError> {
    let source = |id| {
        let kind = plan.table.column_by_id(id).map_or(ColumnKind::Regular, |column| column.kind);
        source_of(&plan.projection, id, kind)
    };
    plan.restrictions.bind_filter(source, bindings)
}

/// The rows that pass.
async fn passing(
    filter: &RowFilter,
    plan: &SelectPlan,
    partitions: Vec<PartitionRows>,
) -> Vec<PartitionRows> {
    let mut scratch = Vec::new();
    let mut piece = Piece::of_turn();
    let mut passed = Vec::with_capacity(partitions.len());
    for mut partition in partitions {
        let mut kept = read::RowList::with_capacity(partition.rows.len());
        let mut view = RowView::new(&plan.projection);
        view.enter_partition(&partition);
        let mut is_any = false;
        for row in partition.shown_rows() {
            view.enter_row(row);
            if filter.passes(&view, &mut scratch) {
                is_any = true;
                kept.extend(row.cloned());
            }
            piece.give_way().await;
        }
        drop(view);
        partition.rows = kept;
        passed.extend(is_any.then_some(partition));
    }
    passed
}

/// The tombstones that ended a read, and the replicas that came upon them.
///
/// # Errors
/// It ended for another reason.
fn too_many_met(error: CoordinatorError) -> Result<(TooManyTombstones, FailedReplicas), CoordinatorError> {
    match error {
        CoordinatorError::Storage(StorageError::TooManyTombstones(found)) => {
            Ok((*found, FailedReplicas::with_tombstones()))
        }
        CoordinatorError::TooFew(too_few) => match too_few.tombstones() {
            Some(found) => Ok((found.clone(), FailedReplicas::of_ring(&too_few))),
            None => Err(CoordinatorError::TooFew(too_few)),
        },
        error => Err(error),
    }
}
