//! Reading partitions from a merge of cursors over all places where they may live.

use read::{Begun, Place, RowConsumer};
use rows::{MergeCursor, MergeLack, PartitionHeader, PartitionKey, Row, Step, Unfiltered, UnfilteredCursor};

use super::large_rows::LargeRow;
use super::read::{Came, Lack, Part, Reading};
use super::sources::Source;
use crate::StorageError;

/// Partitions that come from a merge, and where they stand.
pub(super) struct Partitions {
    cursor: MergeCursor<Source>,
    /// How many rows the (then only) partition gave on earlier pages.
    resumed: Option<u32>,
    /// Does the cursor read one partition?
    is_alone: bool,
    /// The partition whose static row is large and being looked at.
    begun: Option<PartitionHeader>,
}

impl Partitions {
    /// The partition of a key.
    pub(super) fn of_key(cursor: MergeCursor<Source>, resumed: Option<u32>) -> Self {
        Partitions { cursor, resumed, is_alone: true, begun: None }
    }

    /// All of a range.
    pub(super) fn of_range(cursor: MergeCursor<Source>) -> Self {
        Partitions { cursor, resumed: None, is_alone: false, begun: None }
    }

    /// Takes what versions of a large row make.
    pub(super) fn put_merged(&mut self, row: Option<Row>) {
        self.cursor.put_merged(row);
    }
}

impl<C: RowConsumer> Reading<'_, C> {
    /// Begins a partition, of which there may be more than a row.
    pub(super) fn begin_partition(&mut self, key: &PartitionKey) -> Result<Came, StorageError> {
        let cursor = self.partition_cursor(key, &self.command.slices);
        self.go_on_with(Partitions::of_key(cursor, None))
    }

    /// Takes partitions from the cursor until it ends, the consumer is full, or something is lacking.
    pub(super) fn go_on_with(&mut self, mut partitions: Partitions) -> Result<Came, StorageError> {
        let came = self.take_partitions(&mut partitions)?;
        if matches!(came, Came::Lacks(_)) {
            self.progress.part = Some(Part::Partitions(Box::new(partitions)));
        }
        Ok(came)
    }

    fn take_partitions(&mut self, partitions: &mut Partitions) -> Result<Came, StorageError> {
        if self.progress.large.is_some() && self.take_large_of(partitions)? {
            return Ok(Came::Over { is_full: true });
        }
        loop {
            if self.is_turn_over() {
                return Ok(Came::Lacks(Lack::Turn));
            }
            let step = partitions.cursor.step()?;
            if !matches!(step, Step::Need(_)) {
                self.progress.chunks.let_go();
            }
            let is_full = match step {
                Step::Need(MergeLack::Source(need)) => return Ok(Came::Lacks(Lack::File(need))),
                Step::Need(MergeLack::Merged(versions)) => return Ok(Came::Lacks(Lack::Merged(versions))),
                Step::Header(_) if self.consumer.end() => true,
                Step::Header(header) if has_large(&header) && self.shard.owns(header.key.token) => {
                    return Ok(Came::Lacks(self.hold_header(partitions, header)));
                }
                Step::Header(header) => !self.begin_merged(header, partitions.resumed)?,
                Step::Item(_) if !self.consumer.wants_more() => match partitions.is_alone {
                    true => return Ok(Came::Over { is_full: self.consumer.end() }),
                    false => false,
                },
                Step::Item(Unfiltered::Marker(marker)) => self.consumer.take_marker(marker)?,
                Step::Item(Unfiltered::Row(row)) if row.is_large() => {
                    self.progress.large = Some(LargeRow::Whole(row));
                    return Ok(Came::Lacks(Lack::LargeRow));
                }
                Step::Item(Unfiltered::Row(row)) => match self.see(Place::Begun, row)? {
                    Some(row) => self.consumer.take_row(row)?,
                    None => false,
                },
                Step::End => return Ok(Came::Over { is_full: self.consumer.end() }),
            };
            if is_full {
                return Ok(Came::Over { is_full });
            }
        }
    }

    /// Begins a partition, unless it is another shard's. `false` when there is no room for it.
    fn begin_merged(&mut self, header: PartitionHeader, resumed: Option<u32>) -> Result<bool, StorageError> {
        if !self.shard.owns(header.key.token) {
            return Ok(true);
        }
        let PartitionHeader { key, deletion, static_row } = header;
        let static_row = match static_row {
            Some(row) => self.see(Place::Key(&key), row)?,
            None => None,
        };
        Ok(self.consumer.begin(Begun { key, deletion, static_row, resumed })?)
    }

    /// Holds a partition until its large static row was looked at.
    fn hold_header(&mut self, partitions: &mut Partitions, mut header: PartitionHeader) -> Lack {
        self.progress.large = header.static_row.take().map(LargeRow::Whole);
        partitions.begun = Some(header);
        Lack::LargeRow
    }

    /// Takes a large row that was looked at; is the consumer full by it?
    fn take_large_of(&mut self, partitions: &mut Partitions) -> Result<bool, StorageError> {
        let Some(PartitionHeader { key, deletion, .. }) = partitions.begun.take() else {
            return match self.take_seen(Place::Begun)? {
                Some(row) => Ok(self.consumer.take_row(row)?),
                None => Ok(false),
            };
        };
        let static_row = self.take_seen(Place::Key(&key))?;
        Ok(!self.consumer.begin(Begun { key, deletion, static_row, resumed: partitions.resumed })?)
    }
}

fn has_large(header: &PartitionHeader) -> bool {
    header.static_row.as_ref().is_some_and(Row::is_large)
}
