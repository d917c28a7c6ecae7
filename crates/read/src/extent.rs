//! How far an answer for another replica goes.
//!
//! Replicas that have the same to say must say it of the same rows, whether one gives rows and the other their hash:
//! so what is counted is what lives, as in a client's page, and not what the answer takes in memory.

use rows::{Clustering, DeletionTime, LiveRows, Marker, PartitionKey, Row};

use crate::tombstones::{Passed, count_of};
use crate::{
    Given, PartitionRows, PartitionTombstones, Place, ReadCommand, ReadError, ReadPosition, ReadTarget, Room,
    TombstoneThresholds,
};

/// What was taken so far, counted.
#[derive(Debug)]
pub(crate) struct Extent<'a> {
    pub(crate) command: &'a ReadCommand,
    pub(crate) live: LiveRows,
    passed: Passed,
    /// What a page of the live rows would have.
    given: Given,
    open: Option<Open>,
    next: Option<ReadPosition>,
    /// The partition that was taken last.
    last: Option<PartitionKey>,
}

/// A partition that is being read.
#[derive(Debug)]
struct Open {
    key: PartitionKey,
    /// What the live part of its static row takes.
    static_bytes: Option<usize>,
    is_resumed: bool,
    /// Live rows it gave, on earlier pages too, and on this one.
    row_count: u32,
    row_count_here: u32,
    /// The last row, dead or alive, and the range deletion in force there.
    last: Option<(Clustering, DeletionTime)>,
    /// The range deletion in force.
    range: DeletionTime,
}

impl Open {
    /// What its key and its static row take in a page.
    fn own_bytes(&self) -> usize {
        PartitionRows::OWN_BYTES + self.key.bytes.len() + self.static_bytes.unwrap_or(0)
    }
}

/// A row as it counts.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    pub(crate) clustering: Clustering,
    /// What the live part of the row takes in memory; `None` if none of it lives.
    pub(crate) live_bytes: Option<usize>,
    pub(crate) tombstone_count: u64,
}

impl Weight {
    pub(crate) fn of(row: &Row, live: LiveRows) -> Self {
        let mut tombstone_count = 0;
        let live = live.filter(row.clone(), &mut tombstone_count);
        let live_bytes = live.as_ref().map(PartitionRows::row_bytes);
        Weight { clustering: row.clustering(), live_bytes, tombstone_count }
    }
}

impl<'a> Extent<'a> {
    pub(crate) fn new(command: &'a ReadCommand, thresholds: TombstoneThresholds) -> Self {
        Extent {
            command,
            live: command.live_rows(),
            passed: Passed::new(thresholds),
            given: Given::default(),
            open: None,
            next: None,
            last: None,
        }
    }

    /// Does the command read partitions backwards?
    pub(crate) fn is_reversed(&self) -> bool {
        self.command.reversed && matches!(self.command.target, ReadTarget::Keys(_))
    }

    /// Counts the tombstones of a row.
    ///
    /// # Errors
    /// Those were too many.
    pub(crate) fn note(&mut self, place: Place<'_>, weight: &Weight) -> Result<(), ReadError> {
        self.pass(weight.tombstone_count, place, &weight.clustering)
    }

    fn pass(&mut self, count: u64, place: Place<'_>, clustering: &Clustering) -> Result<(), ReadError> {
        let begun = self.open.as_ref().map(|open| &open.key);
        let place = || (place.key(begun).clone(), clustering.clone());
        self.passed.add(count, &self.command.table, self.given.row_count, place)
    }

    pub(crate) fn begin(&mut self, key: PartitionKey, static_row: Option<&Weight>, resumed: Option<u32>) {
        assert!(self.open.is_none(), "a partition is ended before the next one");
        assert!(self.next.is_none(), "a page that has ended takes no more");
        self.open = Some(Open {
            key,
            static_bytes: static_row.and_then(|weight| weight.live_bytes),
            is_resumed: resumed.is_some_and(|row_count| row_count > 0),
            row_count: resumed.unwrap_or(0),
            row_count_here: 0,
            last: None,
            range: DeletionTime::LIVE,
        });
    }

    pub(crate) fn wants_more(&self) -> bool {
        let limit = self.command.limits.rows_per_partition;
        self.open.as_ref().is_some_and(|open| open.row_count < limit)
    }

    /// Counts an edge of a range tombstone.
    ///
    /// # Errors
    /// That was one too many.
    pub(crate) fn take_marker(&mut self, marker: &Marker) -> Result<(), ReadError> {
        self.pass(count_of(marker, self.live), Place::Begun, &marker.prefix)?;
        let is_reversed = self.is_reversed();
        if let Some(open) = &mut self.open {
            open.range = marker.entered(is_reversed);
        }
        Ok(())
    }

    /// Counts a row; is the answer full by it?
    pub(crate) fn take_row(&mut self, weight: Weight) -> bool {
        let open = self.open.as_mut().expect("a row is of the partition that was begun");
        let rows_max = self.command.limits.rows_per_partition;
        assert!(open.row_count < rows_max, "a partition gives no more rows than it may");
        open.last = Some((weight.clustering, open.range));
        let Some(bytes) = weight.live_bytes else { return false };
        let of_partition = if open.row_count_here == 0 { open.own_bytes() } else { 0 };
        open.row_count += 1;
        open.row_count_here += 1;
        self.given.add_row(of_partition + bytes);
        self.is_full()
    }

    /// The edge that closes, behind the last row, the range that is in force there: it is told no further.
    pub(crate) fn closing(&self) -> Option<Marker> {
        let (clustering, range) = self.open.as_ref()?.last.clone()?;
        self.closing_at(clustering, range)
    }

    /// The same behind a place to which all was told.
    pub(crate) fn closing_behind(&self, clustering: &Clustering) -> Option<Marker> {
        self.closing_at(clustering.clone(), self.open.as_ref()?.range)
    }

    fn closing_at(&self, clustering: Clustering, range: DeletionTime) -> Option<Marker> {
        let is_reversed = self.is_reversed();
        let (left, right) =
            if is_reversed { (DeletionTime::LIVE, range) } else { (range, DeletionTime::LIVE) };
        let marker = Marker { prefix: clustering, is_before: is_reversed, left, right };
        (!range.is_live()).then_some(marker)
    }

    /// Is a range in force at the end of what is told of the partition?
    pub(crate) fn is_in_range(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.range.is_live())
    }

    /// Ends the partition behind its last row: the next page goes on there. `false` when it has none.
    pub(crate) fn end_at_row(&mut self) -> bool {
        let Some((clustering, _)) = self.open.as_ref().and_then(|open| open.last.clone()) else {
            return false;
        };
        let open = self.open.take().expect("it has a row");
        self.last = Some(open.key.clone());
        self.next =
            Some(ReadPosition { key: open.key, clustering: Some(clustering), row_count: open.row_count });
        true
    }

    /// Ends the partition behind a place, of which anything is taken or not: the next page goes on there.
    pub(crate) fn end_behind(&mut self, clustering: &Clustering, is_taken: bool) {
        let Some(open) = self.open.take() else { return };
        let (key, clustering) = (open.key.clone(), Some(clustering.clone()));
        self.next.get_or_insert(ReadPosition { key, clustering, row_count: open.row_count });
        match is_taken {
            true => self.last = Some(open.key),
            false => self.passed.pass(open.key),
        }
    }

    /// The next page goes on behind that partition, or that place of it, unless this one ended before.
    pub(crate) fn go_on_behind(&mut self, key: &PartitionKey, clustering: Option<&Clustering>) {
        let row_count = self.command.resumed_in(key).unwrap_or(0);
        let next = ReadPosition { key: key.clone(), clustering: clustering.cloned(), row_count };
        self.next.get_or_insert(next);
    }

    /// Ends the partition, of which anything is taken or not; is the answer full by that?
    pub(crate) fn end(&mut self, is_taken: bool) -> bool {
        let Some(open) = self.open.take() else { return false };
        if open.static_bytes.is_some() && open.row_count_here == 0 && !open.is_resumed {
            self.given.add_row(open.own_bytes());
        }
        let is_full = self.is_full();
        if is_full && self.next.is_none() {
            let key = open.key.clone();
            self.next = Some(ReadPosition { key, clustering: None, row_count: open.row_count });
        }
        match is_taken {
            true => self.last = Some(open.key),
            false => self.passed.pass(open.key),
        }
        is_full
    }

    /// Leaves the partition out, and ends behind the one before. `false` when there is none.
    pub(crate) fn end_before(&mut self) -> bool {
        self.open = None;
        self.next = self.last.clone().map(ReadPosition::behind);
        self.next.is_some()
    }

    fn is_full(&self) -> bool {
        self.command.limits.are_reached(self.given)
    }

    pub(crate) fn pass_key(&mut self, key: PartitionKey) {
        self.passed.pass(key);
    }

    pub(crate) fn leave(&mut self, key: &PartitionKey) {
        self.passed.leave(key, self.given.row_count);
    }

    pub(crate) fn last_key(&self) -> Option<&PartitionKey> {
        self.last.as_ref()
    }

    pub(crate) fn room(&self) -> Room {
        self.command.limits.room(self.given)
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        (u64::from(self.given.row_count), self.passed.total())
    }

    /// Where the next page begins, and the tombstones that were met.
    pub(crate) fn finish(self) -> (Option<ReadPosition>, Vec<PartitionTombstones>) {
        assert!(self.open.is_none(), "the last partition is ended before the page is");
        let is_range = matches!(self.command.target, ReadTarget::Range(_));
        (self.next, self.passed.told(is_range, self.last.as_ref()))
    }
}
