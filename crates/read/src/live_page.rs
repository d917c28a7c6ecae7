//! Live rows for a client, page by page.

use std::sync::Arc;

use rows::{Clustering, DeletionTime, LiveRows, Marker, PartitionKey, Row};
use schema::Table;

use crate::shown::shown;
use crate::tombstones::{Passed, count_of};
use crate::{
    Begun, PartitionRows, Place, ReadColumns, ReadCommand, ReadError, ReadPage, ReadPosition, ReadTarget,
    Room, RowConsumer, RowList, RowView, TombstoneThresholds,
};

/// About as many small rows as are decoded into one piece of memory.
const DEAD_NEARBY_MAX: u32 = 256;

/// A page of live rows, being read by a command; without one (`LivePage<()>`), left as it stands.
#[derive(Debug)]
pub struct LivePage<Command> {
    command: Command,
    live: LiveRows,
    passed: Passed,
    /// How many rows are dead of those that were read last.
    dead_nearby: u32,
    page: ReadPage,
    open: Option<Open>,
    row_count: u32,
    /// What the page takes in memory.
    bytes: usize,
    /// Of it, the rows as they are encoded.
    encoded_bytes: usize,
}

/// A partition that is being read.
#[derive(Debug)]
struct Open {
    rows: PartitionRows,
    /// Rows it gave, on earlier pages too.
    row_count: u32,
    is_resumed: bool,
}

impl Open {
    fn position(&self) -> Option<ReadPosition> {
        let clustering = self.rows.rows.last().map(Row::clustering);
        Some(ReadPosition { key: self.rows.key.clone(), clustering, row_count: self.row_count })
    }
}

impl<Command> LivePage<Command> {
    /// The page as it stands, for somebody who goes on with it later.
    pub fn leave_off(self) -> LivePage<()> {
        self.of(())
    }

    fn of<Other>(self, command: Other) -> LivePage<Other> {
        let LivePage { command: _, live, passed, dead_nearby, page, open, row_count, bytes, encoded_bytes } =
            self;
        LivePage { command, live, passed, dead_nearby, page, open, row_count, bytes, encoded_bytes }
    }
}

impl LivePage<()> {
    /// Goes on with a page that was left, by the command that it was begun by.
    pub fn take_up(self, command: &ReadCommand) -> LivePage<&ReadCommand> {
        self.of(command)
    }
}

impl<'a> LivePage<&'a ReadCommand> {
    /// An empty page, for a read that may come upon so many tombstones.
    pub fn new(command: &'a ReadCommand, thresholds: TombstoneThresholds) -> Self {
        // Not in a release: a read of a row by its key compares nothing else so often.
        debug_assert!(command.columns.are_sorted(), "the columns that are asked for ascend");
        LivePage {
            command,
            live: command.live_rows(),
            passed: Passed::new(thresholds),
            dead_nearby: 0,
            page: ReadPage::default(),
            open: None,
            row_count: 0,
            bytes: 0,
            encoded_bytes: 0,
        }
    }

    /// Counts tombstones of a place.
    ///
    /// # Errors
    /// Those were too many.
    fn pass_at(
        &mut self,
        count: u64,
        place: Place<'_>,
        clustering: impl FnOnce() -> Clustering,
    ) -> Result<(), ReadError> {
        if !self.passed.add(count, &self.command.table) {
            return Ok(());
        }
        let key = match (place, &self.open) {
            (Place::Key(key), _) => key.clone(),
            (Place::Begun, Some(open)) => open.rows.key.clone(),
            (Place::Begun, None) => unreachable!("a partition was begun"),
        };
        Err(self.passed.too_many(self.row_count, key, Some(clustering())))
    }

    /// A row that lives: in memory of its own, if dead ones may lie in what it came with, which the page would keep.
    fn apart(&mut self, row: Row) -> Row {
        if self.dead_nearby == 0 {
            return row;
        }
        self.dead_nearby -= 1;
        if row.is_small() { row.copied() } else { row }
    }

    /// What lives of a merged row; counts what is dead of it.
    fn live_row(&mut self, place: Place<'_>, row: Row) -> Result<Option<Row>, ReadError> {
        if row.is_plain() {
            return Ok(Some(self.apart(row)));
        }
        let mut count = 0;
        let live = self.live.filter(row.clone(), &mut count);
        self.dead_nearby = (self.dead_nearby + u32::from(live.is_none())).min(DEAD_NEARBY_MAX);
        self.pass_at(count, place, || row.clustering())?;
        Ok(live)
    }

    /// May the page have so many bytes more? If not it ends behind the last partition that it has.
    ///
    /// # Errors
    /// It has none: whoever asks has to allow more.
    fn has_room(&mut self, bytes: usize) -> Result<bool, ReadError> {
        if self.bytes.saturating_add(bytes) <= self.command.limits.bytes_max {
            return Ok(true);
        }
        let Some(last) = self.page.partitions.last() else {
            return Err(ReadError::RowTooLarge { bytes });
        };
        // It has given all that it has.
        let next = ReadPosition { key: last.key.clone(), clustering: None, row_count: 0 };
        self.page.next.get_or_insert(next);
        Ok(false)
    }

    /// Ends the page before a row of so many bytes, for which it has no room.
    ///
    /// # Errors
    /// The page is empty without it.
    fn end_before(&mut self, bytes: usize) -> Result<bool, ReadError> {
        let Some(open) = self.open.take() else { return Ok(true) };
        if open.rows.rows.is_empty() {
            self.has_room(bytes)?;
            return Ok(true);
        }
        self.page.next = open.position();
        self.page.partitions.push(open.rows);
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.row_count >= self.command.limits.row_count || self.bytes >= self.command.limits.bytes
    }
}

impl RowConsumer for LivePage<&ReadCommand> {
    type View = LiveView;
    type Taken = Row;
    type Answer = ReadPage;

    fn view(&self) -> LiveView {
        let (table, columns) = (Arc::clone(&self.command.table), self.command.columns.clone());
        LiveView { live: self.live, table, columns }
    }

    fn note(&mut self, place: Place<'_>, seen: LiveSeen) -> Result<Option<Row>, ReadError> {
        self.pass_at(seen.tombstone_count, place, || seen.clustering)?;
        Ok(seen.row)
    }

    #[inline]
    fn see(&mut self, place: Place<'_>, row: Row) -> Result<Option<Row>, ReadError> {
        let live = self.live_row(place, row)?;
        Ok(live.and_then(|row| shown(row, &self.command.table, &self.command.columns)))
    }

    fn begin(&mut self, partition: Begun<Row>) -> Result<bool, ReadError> {
        assert!(self.open.is_none(), "a partition is ended before the next one");
        assert!(self.page.next.is_none(), "a page that has ended takes no more");
        let Begun { key, static_row, resumed, .. } = partition;
        let rows = PartitionRows { key, static_row, rows: RowList::new() };
        let has_room = self.has_room(rows.memory_bytes())?;
        if has_room {
            let (row_count, is_resumed) = (resumed.unwrap_or(0), resumed.is_some());
            self.open = Some(Open { rows, row_count, is_resumed });
        }
        Ok(has_room)
    }

    #[inline]
    fn wants_more(&self) -> bool {
        let limit = self.command.limits.rows_per_partition;
        self.open.as_ref().is_some_and(|open| open.row_count < limit)
    }

    #[inline]
    fn take_row(&mut self, row: Row) -> Result<bool, ReadError> {
        let open = self.open.as_mut().expect("a row is of the partition that was begun");
        let rows_max = self.command.limits.rows_per_partition;
        assert!(open.row_count < rows_max, "a partition gives no more rows than it may");
        let of_partition = if open.rows.rows.is_empty() { open.rows.memory_bytes() } else { 0 };
        let bytes = of_partition + PartitionRows::row_bytes(&row);
        if self.bytes.saturating_add(bytes) > self.command.limits.bytes_max {
            return self.end_before(bytes);
        }
        self.bytes += bytes;
        self.encoded_bytes += row.as_encoded().len();
        self.row_count += 1;
        open.row_count += 1;
        open.rows.rows.push(row);
        Ok(self.is_full() && self.end())
    }

    fn take_marker(&mut self, marker: Marker) -> Result<bool, ReadError> {
        self.pass_at(count_of(&marker, self.live), Place::Begun, || marker.prefix.clone())?;
        Ok(false)
    }

    fn end(&mut self) -> bool {
        let Some(open) = self.open.take() else { return false };
        if open.rows.rows.is_empty() {
            if open.rows.static_row.is_none() || open.is_resumed {
                self.pass(open.rows.key);
                return false;
            }
            self.row_count += 1;
            self.bytes += open.rows.memory_bytes();
            self.encoded_bytes += open.rows.static_row.as_ref().map_or(0, |row| row.as_encoded().len());
        }
        let is_full = self.is_full();
        if is_full && self.page.next.is_none() {
            self.page.next = open.position();
        }
        self.page.partitions.push(open.rows);
        is_full
    }

    #[inline]
    fn is_taken(_deletion: DeletionTime, row: Option<&Row>) -> bool {
        row.is_some()
    }

    #[inline]
    fn take_lone(
        &mut self,
        key: PartitionKey,
        _deletion: DeletionTime,
        row: Option<Row>,
    ) -> Result<bool, ReadError> {
        let row = row.expect("a row is taken");
        assert!(self.page.next.is_none(), "a page that has ended takes no more");
        let bytes = PartitionRows::OWN_BYTES + key.bytes.len() + PartitionRows::row_bytes(&row);
        if !self.has_room(bytes)? {
            return Ok(true);
        }
        self.bytes += bytes;
        assert!(self.bytes <= self.command.limits.bytes_max, "a page is no larger than it may be");
        self.encoded_bytes += row.as_encoded().len();
        self.row_count += 1;
        let is_full = self.is_full();
        if is_full && self.page.next.is_none() {
            let clustering = Some(row.clustering());
            self.page.next = Some(ReadPosition { key: key.clone(), clustering, row_count: 1 });
        }
        let rows = RowList::from_buf([row]);
        self.page.partitions.push(PartitionRows { key, static_row: None, rows });
        Ok(is_full)
    }

    fn pass(&mut self, key: PartitionKey) {
        self.passed.pass(key);
    }

    fn leave(&mut self, key: &PartitionKey) {
        self.passed.leave(key, self.row_count);
    }

    fn last_key(&self) -> Option<&PartitionKey> {
        self.page.partitions.last().map(|partition| &partition.key)
    }

    fn reserve(&mut self, partition_count: usize) {
        self.page.partitions.reserve(partition_count);
    }

    #[inline]
    fn room(&self) -> Room {
        let limits = self.command.limits;
        Room {
            rows: limits.row_count.saturating_sub(self.row_count),
            bytes: limits.bytes.saturating_sub(self.bytes),
        }
    }

    fn counts(&self) -> (u64, u64) {
        let live_count = self.page.partitions.iter().map(|partition| partition.rows.len() as u64).sum();
        (live_count, self.passed.total())
    }

    #[inline]
    fn encoded_bytes(&self) -> usize {
        self.encoded_bytes
    }

    fn finish(self) -> ReadPage {
        assert!(self.open.is_none(), "the last partition is ended before the page is");
        let is_range = matches!(self.command.target, ReadTarget::Range(_));
        let given = self.page.partitions.last().map(|partition| &partition.key);
        let tombstones = self.passed.told(is_range, given);
        ReadPage { tombstones, ..self.page }
    }
}

/// Looks at rows for a page of live ones.
#[derive(Debug)]
pub struct LiveView {
    live: LiveRows,
    table: Arc<Table>,
    columns: ReadColumns,
}

/// What of a row is for a client.
#[derive(Debug)]
pub struct LiveSeen {
    row: Option<Row>,
    tombstone_count: u64,
    clustering: Clustering,
}

impl RowView for LiveView {
    type Seen = LiveSeen;

    fn see(&self, row: Row) -> LiveSeen {
        let (mut tombstone_count, clustering) = (0, row.clustering());
        let live = self.live.filter(row, &mut tombstone_count);
        let row = live.and_then(|row| shown(row, &self.table, &self.columns));
        LiveSeen { row, tombstone_count, clustering }
    }
}
