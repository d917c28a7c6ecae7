//! Who takes the rows that a read finds.
//!
//! Whoever reads merges what all places have, and gives it on in order:
//!
//! ```text
//!   begin ─► (see ─► take_row | take_marker)* ─► end        a partition
//!   see ─► take_single_row                                  one of at most a row
//! ```
//!
//! until the consumer says that it is full. What becomes of a row may be long work, if the row is large: a
//! [`RowView`] does it on another thread, and [`RowConsumer::note`] takes what it has seen.

use rows::{Clustering, DeletionTime, Marker, PartitionKey, Row};

use crate::ReadError;

/// Takes merged rows, not yet filtered to what is live, and makes an answer of them.
pub trait RowConsumer {
    /// Looks at rows.
    type View: RowView;
    /// What is taken of a row.
    type Taken;
    /// What all comes to.
    type Answer;

    /// What looks at rows for it, on whatever thread.
    fn view(&self) -> Self::View;

    /// What is taken of a row that was looked at; `None` when nothing is.
    ///
    /// # Errors
    /// That were too many tombstones.
    fn note(&mut self, place: Place<'_>, seen: Seen<Self::View>) -> Result<Option<Self::Taken>, ReadError>;

    /// Looks at a row that stands there, here and now.
    ///
    /// # Errors
    /// As [`RowConsumer::note`].
    fn see(&mut self, place: Place<'_>, row: Row) -> Result<Option<Self::Taken>, ReadError> {
        let seen = self.view().see(row);
        self.note(place, seen)
    }

    /// Begins a partition. `false` when there is no room for it: the answer is full.
    ///
    /// # Errors
    /// There is no room for it in an answer of its own.
    fn begin(&mut self, partition: Begun<Self::Taken>) -> Result<bool, ReadError>;

    /// Does it take any more of the partition?
    fn wants_more(&self) -> bool;

    /// Takes a row of the partition; is the answer full now? The partition has been ended then.
    ///
    /// # Errors
    /// There is no room for it in an answer of its own.
    fn take_row(&mut self, row: Self::Taken) -> Result<bool, ReadError>;

    /// Takes an edge of a range tombstone; as [`RowConsumer::take_row`].
    ///
    /// # Errors
    /// As [`RowConsumer::take_row`]; or that was one tombstone too many.
    fn take_marker(&mut self, marker: Marker) -> Result<bool, ReadError>;

    /// Ends the partition, if there is one; is the answer full by that?
    fn end(&mut self) -> bool;

    /// Ends the answer where what it is made from ends: behind the partition, or behind that place of it, when it is
    /// the one that was begun. The next page goes on there.
    fn end_at(&mut self, key: &PartitionKey, clustering: Option<&Clustering>);

    /// Is anything to be taken of a partition that has at most a row?
    fn is_taken(deletion: DeletionTime, row: Option<&Self::Taken>) -> bool;

    /// Takes a partition that has at most a row, and of which anything [is taken](RowConsumer::is_taken); is the
    /// answer full now, with or without it?
    ///
    /// # Errors
    /// There is no room for it in an answer of its own.
    fn take_single_row(
        &mut self,
        key: PartitionKey,
        deletion: DeletionTime,
        row: Option<Self::Taken>,
    ) -> Result<bool, ReadError> {
        if !self.begin(Begun { key, deletion, static_row: None, resumed: None })? {
            return Ok(true);
        }
        if let Some(row) = row
            && self.take_row(row)?
        {
            return Ok(true);
        }
        Ok(self.end())
    }

    /// Notes that nothing was taken of a partition of a range.
    fn pass(&mut self, key: PartitionKey);

    /// Notes that no more is read of a partition that was asked for by its key.
    fn leave(&mut self, key: &PartitionKey);

    /// The partition that was taken last.
    fn last_key(&self) -> Option<&PartitionKey>;

    /// Makes room for so many partitions, which are likely to come.
    fn reserve(&mut self, partition_count: usize);

    /// What there is room for.
    fn room(&self) -> Room;

    /// Live rows that were taken, and tombstones that were come upon.
    fn counts(&self) -> (u64, u64);

    /// Bytes of what was taken, as rows are encoded.
    fn encoded_bytes(&self) -> usize;

    /// The answer.
    fn finish(self) -> Self::Answer;
}

/// Looks at a row: work that may be long, for any thread.
pub trait RowView: Send + 'static {
    /// What it sees.
    type Seen: Send + 'static;

    /// Looks at a row.
    fn see(&self, row: Row) -> Self::Seen;
}

/// What a view has seen of a row.
pub type Seen<View> = <View as RowView>::Seen;

/// Where a row stands.
#[derive(Clone, Copy, Debug)]
pub enum Place<'k> {
    /// In the partition that was begun.
    Begun,
    /// In that one.
    Key(&'k PartitionKey),
}

impl<'k> Place<'k> {
    /// The partition, where that was begun.
    pub(crate) fn key(self, begun: Option<&'k PartitionKey>) -> &'k PartitionKey {
        match self {
            Place::Key(key) => key,
            Place::Begun => begun.expect("a partition was begun"),
        }
    }
}

/// A partition at its beginning.
#[derive(Clone, Debug)]
pub struct Begun<Taken> {
    /// Its key.
    pub key: PartitionKey,
    /// Its deletion, or [`DeletionTime::LIVE`].
    pub deletion: DeletionTime,
    /// What is taken of its static row.
    pub static_row: Option<Taken>,
    /// How many rows it gave on earlier pages, if it goes on from one. One that gave none there has not given its
    /// static row either.
    pub resumed: Option<u32>,
}

/// What a consumer has room for: an estimate for whoever reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Rows.
    pub rows: u32,
    /// Bytes of memory.
    pub bytes: usize,
}
