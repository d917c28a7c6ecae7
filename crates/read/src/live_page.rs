//! Live rows for a client, page by page.

use std::sync::Arc;

use rows::{Clustering, DeletionTime, LiveRows, Marker, PartitionKey, Row};
use schema::Table;

use crate::shown::shown;
use crate::tombstones::{Passed, count_of};
use crate::{
    Begun, Given, PartitionRows, Place, ReadColumns, ReadCommand, ReadError, ReadPage, ReadPosition,
    ReadTarget, Room, RowConsumer, RowList, RowView, TombstoneThresholds,
};

/// About as many small rows as are decoded into one piece of memory.
const DEAD_NEARBY_MAX: u32 = 256;

/// A page of live rows, being read by a command.
#[derive(Debug)]
pub struct LivePage<'a> {
    command: &'a ReadCommand,
    live: LiveRows,
    left: LeftPage,
}

/// How far a page of live rows has come, for somebody who goes on with it later by the command that it was begun by.
#[derive(Debug)]
pub struct LeftPage {
    passed: Passed,
    /// How many rows are dead of those that were read last.
    dead_nearby: u32,
    page: ReadPage,
    open: Option<Open>,
    given: Given,
    /// Bytes of the rows as they are encoded.
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

impl LeftPage {
    /// Goes on with it.
    pub fn take_up(self, command: &ReadCommand) -> LivePage<'_> {
        LivePage { command, live: command.live_rows(), left: self }
    }

    /// Counts a row, or a static row alone, of so many encoded bytes and so many with all that comes with it.
    #[inline]
    fn count(&mut self, encoded_bytes: usize, bytes: usize) {
        self.given.add_row(bytes);
        self.encoded_bytes += encoded_bytes;
    }
}

impl<'a> LivePage<'a> {
    /// An empty page, for a read that may come upon so many tombstones.
    pub fn new(command: &'a ReadCommand, thresholds: TombstoneThresholds) -> Self {
        // Not in a release: a read of a row by its key compares nothing else so often.
        debug_assert!(command.columns.are_sorted(), "the columns that are asked for ascend");
        let left = LeftPage {
            passed: Passed::new(thresholds),
            dead_nearby: 0,
            page: ReadPage::default(),
            open: None,
            given: Given::default(),
            encoded_bytes: 0,
        };
        left.take_up(command)
    }

    /// The page as it stands.
    pub fn leave_off(self) -> LeftPage {
        self.left
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
        let LeftPage { passed, open, given, .. } = &mut self.left;
        let begun = open.as_ref().map(|open| &open.rows.key);
        passed.add(count, &self.command.table, given.row_count, || (place.key(begun).clone(), clustering()))
    }

    /// A row that lives: in memory of its own, if dead ones may lie in what it came with, which the page would keep.
    fn apart(&mut self, row: Row) -> Row {
        if self.left.dead_nearby == 0 {
            return row;
        }
        self.left.dead_nearby -= 1;
        if row.is_small() { row.copied() } else { row }
    }

    /// May the page have so many bytes more? If not it ends behind the last partition that it has.
    ///
    /// # Errors
    /// It has none: whoever asks has to allow more.
    fn has_room(&mut self, bytes: usize) -> Result<bool, ReadError> {
        let LeftPage { page, given, .. } = &mut self.left;
        if self.command.limits.allow(*given, bytes) {
            return Ok(true);
        }
        let Some(last) = page.partitions.last() else {
            return Err(ReadError::RowTooLarge { bytes });
        };
        page.next.get_or_insert(ReadPosition::behind(last.key.clone()));
        Ok(false)
    }

    /// Ends the page before a row of so many bytes, for which it has no room.
    ///
    /// # Errors
    /// The page is empty without it.
    fn end_before(&mut self, bytes: usize) -> Result<(), ReadError> {
        let open = self.left.open.take().expect("a row is of the partition that was begun");
        if open.rows.rows.is_empty() {
            let has_room = self.has_room(bytes)?;
            assert!(!has_room, "there is none");
        } else {
            self.left.page.next = Some(open.rows.position(open.row_count));
            self.left.page.partitions.push(open.rows);
        }
        Ok(())
    }

    /// Takes a partition that has given anything over into the page; is that full by it?
    #[inline]
    fn close(&mut self, rows: PartitionRows, row_count: u32) -> bool {
        let limits = &self.command.limits;
        // No test can break it: all that is added to a page has asked for its room.
        assert!(limits.allow(self.left.given, 0), "a page is no larger than it may be");
        let is_full = limits.are_reached(self.left.given);
        let page = &mut self.left.page;
        if is_full && page.next.is_none() {
            page.next = Some(rows.position(row_count));
        }
        page.partitions.push(rows);
        is_full
    }
}

impl RowConsumer for LivePage<'_> {
    type View = LiveView;
    type Taken = Row;
    type Answer = ReadPage;

    fn view(&self) -> LiveView {
        let (table, columns) = (Arc::clone(&self.command.table), self.command.columns.clone());
        LiveView { live: self.live, table, columns }
    }

    fn note(&mut self, place: Place<'_>, seen: LiveSeen) -> Result<Option<Row>, ReadError> {
        let dead_nearby = self.left.dead_nearby + u32::from(seen.row.is_none());
        self.left.dead_nearby = dead_nearby.min(DEAD_NEARBY_MAX);
        self.pass_at(seen.tombstone_count, place, || seen.clustering)?;
        Ok(seen.row)
    }

    #[inline]
    fn see(&mut self, place: Place<'_>, row: Row) -> Result<Option<Row>, ReadError> {
        let ReadCommand { table, columns, .. } = self.command;
        if row.is_plain() {
            // All of it lives, as of most rows.
            return Ok(shown(self.apart(row), table, columns));
        }
        let seen = LiveSeen::of(row, self.live, table, columns);
        self.note(place, seen)
    }

    fn begin(&mut self, partition: Begun<Row>) -> Result<bool, ReadError> {
        assert!(self.left.open.is_none(), "a partition is ended before the next one");
        assert!(self.left.page.next.is_none(), "a page that has ended takes no more");
        let Begun { key, static_row, resumed, .. } = partition;
        let rows = PartitionRows { key, static_row, rows: RowList::new() };
        let has_room = self.has_room(rows.memory_bytes())?;
        if has_room {
            let row_count = resumed.unwrap_or(0);
            self.left.open = Some(Open { rows, row_count, is_resumed: row_count > 0 });
        }
        Ok(has_room)
    }

    #[inline]
    fn wants_more(&self) -> bool {
        let limit = self.command.limits.rows_per_partition;
        self.left.open.as_ref().is_some_and(|open| open.row_count < limit)
    }

    #[inline]
    fn take_row(&mut self, row: Row) -> Result<bool, ReadError> {
        let limits = &self.command.limits;
        let open = self.left.open.as_mut().expect("a row is of the partition that was begun");
        assert!(open.row_count < limits.rows_per_partition, "a partition gives no more rows than it may");
        let of_partition = if open.rows.rows.is_empty() { open.rows.memory_bytes() } else { 0 };
        let bytes = of_partition + PartitionRows::row_bytes(&row);
        if !limits.allow(self.left.given, bytes) {
            self.end_before(bytes)?;
            return Ok(true);
        }
        let encoded_bytes = row.as_encoded().len();
        open.row_count += 1;
        open.rows.rows.push(row);
        self.left.count(encoded_bytes, bytes);
        Ok(limits.are_reached(self.left.given) && self.end())
    }

    fn take_marker(&mut self, marker: Marker) -> Result<bool, ReadError> {
        self.pass_at(count_of(&marker, self.live), Place::Begun, || marker.prefix.clone())?;
        Ok(false)
    }

    fn end(&mut self) -> bool {
        let Some(Open { rows, row_count, is_resumed }) = self.left.open.take() else { return false };
        if rows.rows.is_empty() {
            match &rows.static_row {
                Some(row) if !is_resumed => self.left.count(row.as_encoded().len(), rows.memory_bytes()),
                _ => {
                    self.pass(rows.key);
                    return false;
                }
            }
        }
        self.close(rows, row_count)
    }

    fn end_at(&mut self, key: &PartitionKey, clustering: Option<&Clustering>) {
        let before = || self.command.resumed_in(key).unwrap_or(0);
        let row_count = self.left.open.as_ref().map_or_else(before, |open| open.row_count);
        match self.left.open.take() {
            // Its static row is given by the page that comes to its end.
            Some(open) if clustering.is_some() && open.rows.rows.is_empty() => self.pass(open.rows.key),
            open => {
                self.left.open = open;
                self.end();
            }
        }
        let next = ReadPosition { key: key.clone(), clustering: clustering.cloned(), row_count };
        self.left.page.next.get_or_insert(next);
    }

    #[inline]
    fn is_taken(_deletion: DeletionTime, row: Option<&Row>) -> bool {
        row.is_some()
    }

    /// As it does for every consumer, without a partition that stands open: most pages of a scan are full of these.
    #[inline]
    fn take_single_row(
        &mut self,
        key: PartitionKey,
        _deletion: DeletionTime,
        row: Option<Row>,
    ) -> Result<bool, ReadError> {
        let row = row.expect("a row is taken");
        assert!(self.left.page.next.is_none(), "a page that has ended takes no more");
        let bytes = PartitionRows::OWN_BYTES + key.bytes.len() + PartitionRows::row_bytes(&row);
        if !self.has_room(bytes)? {
            return Ok(true);
        }
        self.left.count(row.as_encoded().len(), bytes);
        Ok(self.close(PartitionRows { key, static_row: None, rows: RowList::from_buf([row]) }, 1))
    }

    fn pass(&mut self, key: PartitionKey) {
        self.left.passed.pass(key);
    }

    fn leave(&mut self, key: &PartitionKey) {
        self.left.passed.leave(key, self.left.given.row_count);
    }

    fn last_key(&self) -> Option<&PartitionKey> {
        self.left.page.partitions.last().map(|partition| &partition.key)
    }

    fn reserve(&mut self, partition_count: usize) {
        self.left.page.partitions.reserve(partition_count);
    }

    #[inline]
    fn room(&self) -> Room {
        self.command.limits.room(self.left.given)
    }

    fn counts(&self) -> (u64, u64) {
        (u64::from(self.left.given.row_count), self.left.passed.total())
    }

    #[inline]
    fn encoded_bytes(&self) -> usize {
        self.left.encoded_bytes
    }

    fn finish(self) -> ReadPage {
        let LeftPage { open, page, passed, .. } = self.left;
        assert!(open.is_none(), "the last partition is ended before the page is");
        let is_range = matches!(self.command.target, ReadTarget::Range(_));
        let tombstones = passed.told(is_range, page.partitions.last().map(|partition| &partition.key));
        ReadPage { tombstones, ..page }
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

impl LiveSeen {
    fn of(row: Row, live: LiveRows, table: &Table, columns: &ReadColumns) -> Self {
        let (mut tombstone_count, clustering) = (0, row.clustering());
        let live = live.filter(row, &mut tombstone_count);
        let row = live.and_then(|row| shown(row, table, columns));
        LiveSeen { row, tombstone_count, clustering }
    }
}

impl RowView for LiveView {
    type Seen = LiveSeen;

    fn see(&self, row: Row) -> LiveSeen {
        LiveSeen::of(row, self.live, &self.table, &self.columns)
    }
}
