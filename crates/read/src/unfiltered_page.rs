//! Rows with all their tombstones, for a replica that merges them with others.
//!
//! What lives here may be deleted there, and the other way round: so nothing is left out but columns that the table
//! no longer has. The answers of several replicas merge, by the rules of `rows`, to what all their sources would.

use std::convert::Infallible;
use std::sync::Arc;
use std::vec::IntoIter;

use rows::{
    Clustering, DeletionTime, LiveRows, Marker, PartitionHeader, PartitionKey, Row, Step, Unfiltered,
    UnfilteredCursor,
};
use schema::Table;

use crate::extent::{Extent, Weight};
use crate::shown::of_table;
use crate::{
    Begun, PartitionRows, PartitionTombstones, Place, ReadCommand, ReadError, ReadPosition, Room,
    RowConsumer, RowView, TombstoneThresholds,
};

/// One page of an answer for another replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnfilteredPage {
    /// Partitions of which anything is known, in the order asked for; the first may go on from the page before.
    pub partitions: Vec<UnfilteredPartition>,
    /// Where to go on; `None` when there is nothing more.
    pub next: Option<ReadPosition>,
    /// Tombstones passed on the way, as in [`crate::ReadPage`].
    pub tombstones: Vec<PartitionTombstones>,
}

/// What is known of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfilteredPartition {
    /// Key, deletion, static row.
    pub header: PartitionHeader,
    /// Rows and edges of range tombstones, in the order asked for. A range that is in force where they end is closed
    /// behind the last row.
    pub items: Vec<Unfiltered>,
    /// May it have more behind the last row, which the limits did not let it tell?
    pub is_cut: bool,
}

impl UnfilteredPartition {
    /// The last row that is told of it.
    pub(crate) fn last_row(&self) -> Option<&Row> {
        self.items.iter().rev().find_map(|item| match item {
            Unfiltered::Row(row) => Some(row),
            Unfiltered::Marker(_) => None,
        })
    }

    fn is_empty(&self) -> bool {
        self.header.deletion.is_live() && self.header.static_row.is_none() && self.items.is_empty()
    }
}

impl UnfilteredPage {
    /// A cursor over its partitions.
    pub fn cursor(self) -> UnfilteredPageCursor {
        UnfilteredPageCursor { partitions: self.partitions.into_iter(), items: Vec::new().into_iter() }
    }
}

/// Partitions of a page, one thing after the other.
#[derive(Debug)]
pub struct UnfilteredPageCursor {
    partitions: IntoIter<UnfilteredPartition>,
    items: IntoIter<Unfiltered>,
}

impl UnfilteredCursor for UnfilteredPageCursor {
    type Need = Infallible;
    type Error = Infallible;

    fn step(&mut self) -> Result<Step<Infallible>, Infallible> {
        if let Some(item) = self.items.next() {
            return Ok(Step::Item(item));
        }
        let Some(partition) = self.partitions.next() else { return Ok(Step::End) };
        self.items = partition.items.into_iter();
        Ok(Step::Header(partition.header))
    }
}

/// An [`UnfilteredPage`], being read.
#[derive(Debug)]
pub struct UnfilteredRows<'a> {
    extent: Extent<'a>,
    partitions: Vec<UnfilteredPartition>,
    open: Option<UnfilteredPartition>,
    /// How many items the partition has up to its last row.
    items_to_row: usize,
    /// What all takes in memory: more than the extent counts, which must not depend on what is deleted here.
    bytes: usize,
    encoded_bytes: usize,
}

impl<'a> UnfilteredRows<'a> {
    /// An empty page, for a read that may come upon so many tombstones.
    pub fn new(command: &'a ReadCommand, thresholds: TombstoneThresholds) -> Self {
        UnfilteredRows {
            extent: Extent::new(command, thresholds),
            partitions: Vec::new(),
            open: None,
            items_to_row: 0,
            bytes: 0,
            encoded_bytes: 0,
        }
    }

    /// Takes memory for so many bytes more. `false` when the answer ends before what they are for.
    ///
    /// # Errors
    /// It would be empty.
    fn take_room(&mut self, bytes: usize) -> Result<bool, ReadError> {
        if self.bytes.saturating_add(bytes) <= self.extent.command.limits.bytes_max {
            self.bytes += bytes;
            return Ok(true);
        }
        if self.open.is_some() && self.items_to_row > 0 {
            self.end_at_row();
            return Ok(false);
        }
        self.open = None;
        match self.extent.end_before() {
            true => Ok(false),
            false => Err(ReadError::RowTooLarge { bytes: self.bytes.saturating_add(bytes) }),
        }
    }

    /// Ends the answer behind the last row, which there is.
    fn end_at_row(&mut self) {
        let mut open = self.open.take().expect("it has a row");
        let last = open.items.get(self.items_to_row - 1);
        assert!(matches!(last, Some(Unfiltered::Row(_))), "an answer is cut behind a row");
        open.items.truncate(self.items_to_row);
        open.items.extend(self.extent.closing().map(Unfiltered::Marker));
        open.is_cut = true;
        self.partitions.push(open);
        let has_row = self.extent.end_at_row();
        assert!(has_row, "the last item is a row");
    }
}

impl RowConsumer for UnfilteredRows<'_> {
    type View = UnfilteredView;
    type Taken = UnfilteredSeen;
    type Answer = UnfilteredPage;

    fn view(&self) -> UnfilteredView {
        UnfilteredView { live: self.extent.live, table: Arc::clone(&self.extent.command.table) }
    }

    fn note(
        &mut self,
        place: Place<'_>,
        seen: Option<UnfilteredSeen>,
    ) -> Result<Option<UnfilteredSeen>, ReadError> {
        if let Some(seen) = &seen {
            self.extent.note(place, &seen.weight)?;
        }
        Ok(seen)
    }

    fn begin(&mut self, partition: Begun<UnfilteredSeen>) -> Result<bool, ReadError> {
        let Begun { key, deletion, static_row, resumed } = partition;
        let static_bytes = static_row.as_ref().map_or(0, |seen| PartitionRows::row_bytes(&seen.row));
        if !self.take_room(size_of::<UnfilteredPartition>() + key.bytes.len() + static_bytes)? {
            return Ok(false);
        }
        self.extent.begin(key.clone(), static_row.as_ref().map(|seen| &seen.weight), resumed);
        let static_row = static_row.map(|seen| seen.row);
        self.encoded_bytes += static_row.as_ref().map_or(0, |row| row.as_encoded().len());
        let header = PartitionHeader { key, deletion, static_row };
        self.open = Some(UnfilteredPartition { header, items: Vec::new(), is_cut: false });
        self.items_to_row = 0;
        Ok(true)
    }

    fn wants_more(&self) -> bool {
        self.extent.wants_more()
    }

    fn take_row(&mut self, seen: UnfilteredSeen) -> Result<bool, ReadError> {
        if !self.take_room(PartitionRows::row_bytes(&seen.row))? {
            return Ok(true);
        }
        let open = self.open.as_mut().expect("a row is of the partition that was begun");
        self.encoded_bytes += seen.row.as_encoded().len();
        open.items.push(Unfiltered::Row(seen.row));
        self.items_to_row = open.items.len();
        let is_full = self.extent.take_row(seen.weight);
        if is_full {
            self.end_at_row();
        }
        Ok(is_full)
    }

    fn take_marker(&mut self, marker: Marker) -> Result<bool, ReadError> {
        if !self.take_room(size_of::<Unfiltered>() + marker.prefix.as_encoded().len())? {
            return Ok(true);
        }
        self.extent.take_marker(&marker)?;
        let open = self.open.as_mut().expect("a marker is of the partition that was begun");
        open.items.push(Unfiltered::Marker(marker));
        Ok(false)
    }

    fn end(&mut self) -> bool {
        let Some(mut open) = self.open.take() else { return false };
        open.is_cut = !self.extent.wants_more();
        if self.extent.is_in_range() {
            open.items.truncate(self.items_to_row);
            open.items.extend(self.extent.closing().map(Unfiltered::Marker));
        }
        let is_taken = !open.is_empty();
        if is_taken {
            self.partitions.push(open);
        }
        self.extent.end(is_taken)
    }

    fn end_at(&mut self, key: &PartitionKey, clustering: Option<&Clustering>) {
        match (self.open.take(), clustering) {
            (Some(mut open), Some(clustering)) => {
                open.items.extend(self.extent.closing_behind(clustering).map(Unfiltered::Marker));
                open.is_cut = true;
                let is_taken = !open.is_empty();
                if is_taken {
                    self.partitions.push(open);
                }
                self.extent.end_behind(clustering, is_taken);
            }
            (open, clustering) => {
                self.open = open;
                self.end();
                self.extent.go_on_behind(key, clustering);
            }
        }
    }

    fn is_taken(deletion: DeletionTime, row: Option<&UnfilteredSeen>) -> bool {
        !deletion.is_live() || row.is_some()
    }

    fn pass(&mut self, key: PartitionKey) {
        self.extent.pass_key(key);
    }

    fn leave(&mut self, key: &PartitionKey) {
        self.extent.leave(key);
    }

    fn last_key(&self) -> Option<&PartitionKey> {
        self.extent.last_key()
    }

    fn reserve(&mut self, partition_count: usize) {
        self.partitions.reserve(partition_count);
    }

    fn room(&self) -> Room {
        self.extent.room()
    }

    fn counts(&self) -> (u64, u64) {
        self.extent.counts()
    }

    fn encoded_bytes(&self) -> usize {
        self.encoded_bytes
    }

    fn finish(self) -> UnfilteredPage {
        let (next, tombstones) = self.extent.finish();
        UnfilteredPage { partitions: self.partitions, next, tombstones }
    }
}

/// Looks at rows for an [`UnfilteredPage`].
#[derive(Debug)]
pub struct UnfilteredView {
    live: LiveRows,
    table: Arc<Table>,
}

/// A row with all that is deleted of it, and how it counts.
#[derive(Debug)]
pub struct UnfilteredSeen {
    row: Row,
    weight: Weight,
}

impl RowView for UnfilteredView {
    type Seen = Option<UnfilteredSeen>;

    fn see(&self, row: Row) -> Option<UnfilteredSeen> {
        let row = of_table(row, &self.table)?;
        let weight = Weight::of(&row, self.live);
        Some(UnfilteredSeen { row, weight })
    }
}
