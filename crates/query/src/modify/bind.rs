//! From a plan and bound values to changes of partitions.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use bytes::Bytes;
use coordinator::{Consistency, Coordinator, CoordinatorError};
use read::{PartitionRows, ReadColumns, ReadCommand, ReadPage, ReadTarget};
use rows::{
    Clustering, ClusteringComparator, DeletionTime, Liveness, PartitionKey, RangeTombstone, Row, RowBuilder,
    Slice, Slices,
};
use runtime::{Piece, Plant};
use schema::ColumnId;
use storage::StorageError;
use types::encoding::KEY_BYTES_MAX;

use super::batch::BatchEntry;
use super::cells::{Applying, PrependClock, WriteTime, apply};
use super::collect::Changes;
use super::operation::ColumnChange;
use super::plan::{ModifyPlan, Using};
use super::shape::Constants;
use crate::QueryError;
use crate::error::refuse;
use crate::memory::{AnswerRoom, ReadRoom};
use crate::request::BindValue;
use crate::restrictions::{COMBINATIONS_MAX, Rows, StatementType, too_many};
use crate::terms::{Bindings, Value, are_long};

/// The greatest time to live: twenty years.
const TIME_TO_LIVE_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// Memory taken at first for a row that is not the only one of its request, in bytes.
const FORESEEN_BYTES_MAX: usize = 4 << 10;

/// What statements are bound with.
pub(crate) struct Writer<'a> {
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) consistency: Consistency,
    pub(crate) prepends: &'a Arc<PrependClock>,
    /// The timestamp of statements that do not say their own; made when first needed.
    pub(crate) timestamp: OnceCell<i64>,
    /// Seconds since 1970.
    pub(crate) now: u32,
    pub(crate) basis: Basis<'a>,
    /// Statements so far.
    pub(crate) statement_count: Cell<u32>,
}

/// Where changes have rows from that must be known before they are changed, and what follows from it.
#[derive(Clone, Copy)]
pub(crate) enum Basis<'a> {
    /// Each is read when a change asks for it. Elements of lists are placed by the clock.
    Read,
    /// The partition was read before, under a condition.
    Known {
        /// What there is of it, if anything; what was not read is not there.
        partition: Option<&'a PartitionRows>,
        elements: &'a Elements,
    },
}

/// Counts the elements of lists that a conditional change adds: their places follow from its timestamp, so that lists
/// grow in the order of what was agreed on, whatever clocks show.
pub(crate) type Elements = Arc<AtomicI64>;

/// The timestamp that USING says; `None` when it says none.
///
/// # Errors
/// It is null or out of bounds.
pub(crate) fn write_time(using: &Using, bindings: &Bindings<'_>) -> Result<Option<i64>, QueryError> {
    let Some(term) = &using.timestamp else { return Ok(None) };
    let value = match term.bind(bindings)? {
        Value::Unset => return Ok(None),
        Value::Null => refuse!("Invalid null value of timestamp"),
        Value::Set(value) => value,
    };
    match <[u8; 8]>::try_from(&*value).map(i64::from_be_bytes) {
        Ok(i64::MIN) => refuse!("Out of bound timestamp, must be in [{}, {}]", i64::MIN + 1, i64::MAX),
        Ok(timestamp) => Ok(Some(timestamp)),
        Err(_) => refuse!("Invalid timestamp value: null"),
    }
}

fn time_to_live(plan: &ModifyPlan, bindings: &Bindings<'_>) -> Result<u32, QueryError> {
    let default = plan.table.options().default_time_to_live;
    let Some(term) = &plan.using.time_to_live else { return Ok(default) };
    let value = match term.bind(bindings)? {
        Value::Unset => return Ok(default),
        Value::Null => return Ok(0),
        Value::Set(value) => value,
    };
    let Ok(ttl) = <[u8; 4]>::try_from(&*value).map(i32::from_be_bytes) else { return Ok(0) };
    match u32::try_from(ttl) {
        Err(_) => refuse!("A TTL must be greater or equal to 0, but was {ttl}"),
        Ok(_) if ttl > TIME_TO_LIVE_MAX => {
            refuse!("ttl is too large. requested ({ttl}) maximum ({TIME_TO_LIVE_MAX})")
        }
        Ok(ttl) => Ok(ttl),
    }
}

impl Writer<'_> {
    fn default_timestamp(&self) -> i64 {
        *self.timestamp.get_or_init(|| self.coordinator.next_timestamp())
    }

    /// The times that a statement writes with.
    fn time(&self, plan: &ModifyPlan, bindings: &Bindings<'_>) -> Result<WriteTime, QueryError> {
        Ok(WriteTime {
            timestamp: match write_time(&plan.using, bindings)? {
                Some(timestamp) => timestamp,
                None => self.default_timestamp(),
            },
            time_to_live: match plan.statement {
                StatementType::Delete => 0,
                _ if self.coordinator.has_planted(Plant::TimeToLiveForgotten) => 0,
                _ => time_to_live(plan, bindings)?,
            },
            now: self.now,
        })
    }

    /// Adds what a statement of a batch changes, whose markers are bound by `bindings` if it has no constants.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub(crate) async fn add_entry(
        &self,
        entry: &BatchEntry,
        constants: &Constants,
        bindings: &Bindings<'_>,
        changes: &mut Changes,
        room: &mut AnswerRoom,
    ) -> Result<(), QueryError> {
        let plan = &*entry.plan;
        let Some(run) = entry.constants else { return self.add(plan, bindings, changes, room).await };
        let time = self.time(plan, bindings)?;
        let mutation = plan.plain_mutation(
            constants.values(run),
            || time,
            |token| changes.memory(self.coordinator.owners().of(token)),
        );
        if let Some(mutation) = mutation {
            changes.note(&plan.table);
            changes.add_row(mutation);
            return Ok(());
        }
        let value = |value| BindValue::Set(Bytes::copy_from_slice(value));
        let bindings = Bindings::of_markers(constants.values(run).map(value).collect(), bindings.environment);
        self.add(plan, &bindings, changes, room).await
    }

    /// Adds what a statement changes to the changes so far. What it has to read first counts in `room`, a row at a
    /// time.
    ///
    /// # Errors
    /// A bound value is wrong, or a read that has to come first fails.
    pub(crate) async fn add(
        &self,
        plan: &ModifyPlan,
        bindings: &Bindings<'_>,
        changes: &mut Changes,
        room: &mut AnswerRoom,
    ) -> Result<(), QueryError> {
        plan.check_counting()?;
        let time = self.time(plan, bindings)?;
        let number = self.statement_count.replace(self.statement_count.get() + 1);
        let io = self.coordinator.io();
        let keys = plan.restrictions.bind_keys(bindings, io).await?;
        let rows = match plan.changes_rows() {
            true => Some(plan.restrictions.bind_rows(&plan.comparator, bindings, io).await?),
            false => None,
        };
        let row_count = keys.len() * rows.as_ref().map_or(1, Rows::count);
        if row_count > COMBINATIONS_MAX {
            return Err(too_many("primary key", row_count));
        }
        let value_bytes = bindings.value_bytes();
        let prepends = self.prepends;
        let elements = match self.basis {
            Basis::Read => None,
            Basis::Known { elements, .. } => Some(elements),
        };
        let blindly = Applying { time, bindings, value_bytes, prepends, elements, number, before: None };
        let mut piece = Piece::of_turn();
        for key in keys {
            let clusterings = match &rows {
                None => &[][..],
                Some(Rows::Named(clusterings)) => clusterings,
                Some(Rows::Slices(slices)) => {
                    let slice_bytes =
                        self.delete_slices(plan, &key, slices, self.deletion_of_many(&time), changes);
                    changes.count_spread(slice_bytes)?;
                    piece.give_way().await;
                    continue;
                }
            };
            if !plan.statics.is_empty() {
                let before = self.before(plan, &plan.statics, (&key, None), room).await?;
                let applying = Applying { before: before.as_ref(), ..blindly };
                let building = Building {
                    clustering: Clustering::EMPTY,
                    liveness: Liveness::NONE,
                    changes: &plan.statics,
                };
                let row = self.build(plan, building, &applying, changes).await?;
                if let Some(row) = row {
                    changes.count_spread(if row_count > 1 { row.as_encoded().len() } else { 0 })?;
                    changes.partition(&plan.table, &key).add_static(row);
                }
            }
            for clustering in clusterings {
                check_clustering(plan, clustering)?;
                let before = self.before(plan, &plan.regulars, (&key, Some(clustering)), room).await?;
                let applying = Applying { before: before.as_ref(), ..blindly };
                let row_bytes = self.change_row(plan, &key, clustering, &applying, changes).await?;
                if row_count > 1 {
                    changes.count_spread(row_bytes)?;
                    piece.give_way().await;
                }
            }
        }
        Ok(())
    }

    /// The deletion of a partition, or of a range of it. Under a condition it hides nothing of what is written with it,
    /// as in Cassandra, whose Paxos gives deletions a timestamp one less.
    fn deletion_of_many(&self, time: &WriteTime) -> DeletionTime {
        match self.basis {
            Basis::Read => time.deletion(),
            Basis::Known { .. } => time.overwrite(),
        }
    }

    /// Adds what changes of one row, and tells its bytes.
    async fn change_row(
        &self,
        plan: &ModifyPlan,
        key: &PartitionKey,
        clustering: &Clustering,
        applying: &Applying<'_>,
        changes: &mut Changes,
    ) -> Result<usize, QueryError> {
        let time = applying.time;
        let row = if plan.statement == StatementType::Delete && plan.regulars.is_empty() {
            if clustering.is_empty() {
                changes.partition(&plan.table, key).delete(self.deletion_of_many(&time));
                return Ok(0);
            }
            RowBuilder::new(clustering, Liveness::NONE, time.deletion()).finish()
        } else {
            let liveness = liveness(plan.statement, &time);
            let building = Building { clustering: clustering.clone(), liveness, changes: &plan.regulars };
            match self.build(plan, building, applying, changes).await? {
                Some(row) => row,
                None => return Ok(0),
            }
        };
        let row_bytes = row.as_encoded().len();
        changes.partition(&plan.table, key).add_row(row);
        Ok(row_bytes)
    }

    /// Builds a row: where much is put together, on another thread.
    async fn build(
        &self,
        plan: &ModifyPlan,
        building: Building<'_>,
        applying: &Applying<'_>,
        changes: &Changes,
    ) -> Result<Option<Row>, QueryError> {
        let value_bytes = applying.value_bytes;
        // For the first row of a request all of its values, of more rows none has all.
        let foreseen_bytes =
            if changes.is_empty() { value_bytes } else { value_bytes.min(FORESEEN_BYTES_MAX) };
        let before_bytes = applying.before.map_or(0, |row| row.as_encoded().len());
        if plan.made_bytes.is_some_and(|bytes| are_long(bytes + value_bytes + before_bytes)) {
            // Boxed, so that the many others need no room for it.
            return Box::pin(self.build_elsewhere(building, applying, foreseen_bytes)).await;
        }
        building.build(applying, foreseen_bytes)
    }

    async fn build_elsewhere(
        &self,
        Building { clustering, liveness, changes }: Building<'_>,
        applying: &Applying<'_>,
        foreseen_bytes: usize,
    ) -> Result<Option<Row>, QueryError> {
        let changes = Arc::clone(changes);
        let (time, value_bytes) = (applying.time, applying.value_bytes);
        let (prepends, before) = (Arc::clone(applying.prepends), applying.before.cloned());
        let number = applying.number;
        let elements = applying.elements.cloned();
        let building = move |bindings: &Bindings<'_>| {
            let before = before.as_ref();
            let (prepends, elements) = (&prepends, elements.as_ref());
            let applying = Applying { time, bindings, value_bytes, prepends, elements, number, before };
            Building { clustering, liveness, changes: &changes }.build(&applying, foreseen_bytes)
        };
        applying.bindings.elsewhere(self.coordinator.runtime(), building).await
    }

    /// Adds the deletion of these slices, and tells their bytes.
    fn delete_slices(
        &self,
        plan: &ModifyPlan,
        key: &PartitionKey,
        slices: &Slices,
        deletion: DeletionTime,
        changes: &mut Changes,
    ) -> usize {
        let partition = changes.partition(&plan.table, key);
        if slices.is_all() {
            partition.delete(deletion);
            return 0;
        }
        let mut bytes = 0;
        for slice in slices.as_slice() {
            bytes += slice.start.prefix.as_encoded().len() + slice.end.prefix.as_encoded().len();
            partition.add_range(RangeTombstone { slice: slice.clone(), deletion });
        }
        bytes
    }

    /// The row as it is, with the columns that these changes need to know, if there are any.
    async fn before(
        &self,
        plan: &ModifyPlan,
        changed: &[ColumnChange],
        (key, clustering): (&PartitionKey, Option<&Clustering>),
        room: &mut AnswerRoom,
    ) -> Result<Option<Row>, QueryError> {
        let columns: Vec<ColumnId> =
            changed.iter().filter(|change| change.reads()).map(|change| change.id).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        if let Basis::Known { partition, .. } = self.basis {
            return Ok(partition.and_then(|partition| match clustering {
                Some(clustering) => row_of(partition, clustering, &plan.comparator).cloned(),
                None => partition.static_row.clone(),
            }));
        }
        if !self.consistency.is_for_reads() {
            refuse!("Write operation require a read but consistency ANY is not supported on reads");
        }
        let slices = match clustering {
            Some(clustering) => Slices::new(vec![Slice::prefix(clustering.clone())], &plan.comparator),
            None => Slices::none(),
        };
        let target = ReadTarget::Keys(vec![key.clone()]);
        let columns = ReadColumns::Some(columns.into());
        let mut command =
            ReadCommand { slices, columns, ..ReadCommand::new(plan.table.clone(), target, self.now) };
        command.limits.row_count = 1;
        let level = self.consistency;
        let read = async |command: &ReadCommand| self.coordinator.read(command, level).await;
        // Boxed: most changes read nothing first, and need no room for it.
        let partition = Box::pin(read_whole(command, level, room, read)).await?;
        Ok(partition.and_then(|partition| match clustering {
            Some(_) => partition.rows.into_iter().next(),
            None => partition.static_row,
        }))
    }
}

/// Reads all that a command asks for of one partition, in place of what the room held before: a SELECT of it would have
/// no more memory.
///
/// # Errors
/// Those of `read` at that level, or there is no room for it.
pub(crate) async fn read_whole(
    mut command: ReadCommand,
    level: Consistency,
    room: &mut AnswerRoom,
    read: impl AsyncFn(&ReadCommand) -> Result<ReadPage, CoordinatorError>,
) -> Result<Option<PartitionRows>, QueryError> {
    room.begin_anew();
    let wanted = command.limits.row_count;
    let mut whole: Option<PartitionRows> = None;
    loop {
        let next_room = if wanted == 1 { room.for_page(false) } else { room.for_all().await };
        let ReadRoom::Bytes(bytes) = next_room else { return Err(too_large(room)) };
        command.limits.bytes = bytes;
        command.limits.bytes_max = bytes;
        let page = match read(&command).await {
            Err(CoordinatorError::Storage(StorageError::RowTooLarge { bytes })) => {
                if !room.for_row(bytes).await {
                    return Err(too_large(room));
                }
                continue;
            }
            page => page.map_err(|error| QueryError::from_coordinator(error, level))?,
        };
        for partition in page.partitions {
            room.take(partition.memory_bytes());
            match &mut whole {
                None => whole = Some(partition),
                Some(whole) => whole.rows.extend(partition.rows),
            }
        }
        let read_count = whole.as_ref().map_or(0, PartitionRows::row_count);
        if page.next.is_none() || read_count >= wanted {
            return Ok(whole);
        }
        command.limits.row_count = wanted - read_count;
        command.resume = page.next;
    }
}

/// A row of a partition, by its clustering.
pub(crate) fn row_of<'r>(
    partition: &'r PartitionRows,
    clustering: &Clustering,
    comparator: &ClusteringComparator,
) -> Option<&'r Row> {
    let order = |row: &Row| comparator.compare(&row.clustering(), clustering);
    let place = partition.rows.binary_search_by(order).ok()?;
    Some(&partition.rows[place])
}

fn too_large(room: &AnswerRoom) -> QueryError {
    let bytes_max = room.answer_bytes_max();
    QueryError::invalid(stdx::brief!(
        "The row that has to be read before it is changed would take more than the {bytes_max} bytes of memory that an answer may have"
    ))
}

/// What a statement makes of the liveness of its rows.
pub(super) fn liveness(statement: StatementType, time: &WriteTime) -> Liveness {
    match (statement, time.time_to_live) {
        (StatementType::Insert, 0) => Liveness::at(time.timestamp),
        (StatementType::Insert, ttl) => Liveness::expiring(time.timestamp, ttl, time.expiration()),
        _ => Liveness::NONE,
    }
}

/// A row to be built of changes of columns.
struct Building<'a> {
    clustering: Clustering,
    liveness: Liveness,
    changes: &'a Arc<[ColumnChange]>,
}

impl Building<'_> {
    /// The row; `None` when nothing is in it. Memory for its values is taken before.
    fn build(self, applying: &Applying<'_>, foreseen_bytes: usize) -> Result<Option<Row>, QueryError> {
        let mut row = RowBuilder::new(&self.clustering, self.liveness, DeletionTime::LIVE);
        row.reserve(foreseen_bytes);
        for change in self.changes.iter() {
            apply(change, applying, &mut row)?;
        }
        let row = row.finish();
        Ok((!row.is_empty()).then_some(row))
    }
}

/// Key columns of a row may be at most [`KEY_BYTES_MAX`] bytes each.
fn check_clustering(plan: &ModifyPlan, clustering: &Clustering) -> Result<(), QueryError> {
    for (component, column) in clustering.components().zip(plan.table.clustering()) {
        let component_bytes = component.map_or(0, <[u8]>::len);
        if component_bytes > KEY_BYTES_MAX {
            refuse!(
                "Key length of {component_bytes} is longer than maximum of {KEY_BYTES_MAX} (column {})",
                column.name
            );
        }
    }
    Ok(())
}
