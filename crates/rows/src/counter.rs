//! Counters: a sum of which each node that counts has a share of its own.
//!
//! ```text
//!   increments   path: its number in the request, 4 bytes  value: what is added, i64
//!      │ a node adds those of a column to its own share: `counted`
//!      ▼
//!   shares       path: whose it is, a `CounterId`          value: the sum of all it has counted, i64
//!      │ merged as the cells of any column with paths: of each node the latest
//!      ▼
//!   the value    the sum of all shares: `counter_value`
//! ```
//!
//! A share says what its node has counted in all, not what was added last. So to write it twice, or again by another
//! way, changes nothing: only who counts an increment must do it once. Cassandra has the same in its table files, as a
//! *counter context* whose *shards* are our shares.
//!
//! Nobody but its node gives a share, and each with a later timestamp than the one before. What a deletion hides of a
//! counter is what was counted before it, share by share.

use schema::{ColumnId, Table};

use crate::{
    CellRef, Clustering, ClusteringComparator, ColumnData, ComplexRef, DeletionTime, Liveness, Mutation,
    MutationBuilder, RangeTombstone, Row, RowBuilder, merge_rows,
};

/// Whose a share is: a node's, as long as that has its disk; or [`CounterId::AGREED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId(pub [u8; 16]);

impl CounterId {
    /// Nobody's: the share of what all replicas agree on, one after the other, that it is counted.
    pub const AGREED: CounterId = CounterId(*b"peristyle agreed");

    /// The time of the last of its shares in any of these rows, in µs.
    pub fn latest_in<'r>(self, rows: impl IntoIterator<Item = &'r Row>) -> Option<i64> {
        let shares = rows.into_iter().flat_map(Row::columns).filter_map(|column| match column.data {
            ColumnData::Complex(shares) => self.share_in(shares),
            ColumnData::Simple(_) => None,
        });
        shares.map(|share| share.timestamp).max()
    }

    /// The share that the node has in a counter.
    pub fn share_in(self, shares: ComplexRef<'_>) -> Option<CellRef<'_>> {
        shares.cells().find(|share| share.path == self.0)
    }
}

/// Bytes of the path of an increment.
const INCREMENT_PATH_BYTES: usize = 4;
const _: () = assert!(INCREMENT_PATH_BYTES != size_of::<CounterId>(), "increments are no shares");

/// The value of a counter: the sum of its shares. As in Cassandra it goes around at the ends of an `i64`.
pub fn counter_value(shares: ComplexRef<'_>) -> i64 {
    shares.cells().map(|share| number(share.value)).fold(0, i64::wrapping_add)
}

/// Big-endian, as CQL has it; 0 of what is none.
fn number(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_be_bytes)
}

/// Which columns of which rows a mutation increments: what its node has counted of them must be known first.
#[derive(Debug, Default)]
pub struct Increments {
    /// Ascending.
    pub columns: Vec<ColumnId>,
    /// Is one of them static?
    pub is_static: bool,
    /// The rows that have others of them, each once but for equal ones of different bytes.
    pub rows: Vec<Clustering>,
}

impl Increments {
    /// Those of a mutation.
    pub fn of(mutation: &Mutation) -> Increments {
        let mut found = Increments::default();
        for row in &mutation.rows {
            if found.note_columns(row) && found.rows.last().is_none_or(|last| *last != row.clustering()) {
                found.rows.push(row.clustering());
            }
        }
        found.is_static = mutation.static_row.as_ref().is_some_and(|row| found.note_columns(row));
        found.columns.sort_unstable();
        found.columns.dedup();
        found
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    fn note_columns(&mut self, row: &Row) -> bool {
        let before = self.columns.len();
        self.columns
            .extend(row.columns().filter(|column| has_increment(column.data)).map(|column| column.id));
        self.columns.len() > before
    }
}

fn has_increment(data: ColumnData<'_>) -> bool {
    matches!(data, ColumnData::Complex(cells) if cells.cells().any(|cell| cell.is_increment()))
}

impl CellRef<'_> {
    /// Is it what is to be added to a counter?
    pub fn is_increment(&self) -> bool {
        self.path.len() == INCREMENT_PATH_BYTES && self.is_number()
    }

    /// Is it what a node has counted?
    pub fn is_share(&self) -> bool {
        let is_of_node = self.path.len() == size_of::<CounterId>() && self.path != context::DELETION;
        is_of_node && self.timestamp < i64::MAX && self.is_number()
    }

    fn is_number(&self) -> bool {
        self.value.len() == size_of::<i64>() && !self.ends()
    }

    /// The path of the increment that has that number among those of its request, which no other one has.
    pub fn increment_path(number: u32) -> [u8; INCREMENT_PATH_BYTES] {
        number.to_be_bytes()
    }
}

/// Does a mutation nothing but add to counters?
pub fn only_adds(mutation: &Mutation) -> bool {
    let adds = |row: &Row| {
        let is_increment = |data: ColumnData<'_>| match data {
            ColumnData::Complex(cells) => {
                cells.deletion.is_live() && cells.cells().all(|cell| cell.is_increment())
            }
            ColumnData::Simple(_) => false,
        };
        row.deletion().is_live() && row.columns().all(|column| is_increment(column.data))
    };
    let rows = mutation.static_row.iter().chain(&mutation.rows);
    mutation.deletion.is_live() && mutation.ranges.is_empty() && rows.into_iter().all(adds)
}

/// One mutation that adds what all of these add, which are of one partition and [do nothing else](only_adds).
///
/// # Panics
/// When there are none.
pub fn added_up(mutations: &[Mutation], table: &Table) -> Mutation {
    let [first, ..] = mutations else { panic!("of nothing there is no sum") };
    let mut number = 0;
    let numbered = |row: &Row| with_numbers_from(row, &mut number);
    let rows: Vec<Row> = mutations.iter().flat_map(|mutation| &mutation.rows).map(numbered).collect();
    let numbered = |row: &Row| with_numbers_from(row, &mut number);
    let statics = mutations.iter().filter_map(|mutation| mutation.static_row.as_ref()).map(numbered);
    let mut sum = MutationBuilder::new(first.table, first.key.clone());
    if let Some(row) = merged(&statics.collect::<Vec<_>>(), table).pop() {
        sum.static_row(row);
    }
    merged(&rows, table).into_iter().for_each(|row| _ = sum.row(row));
    sum.finish()
}

/// The same, with increments that have the next numbers: one for each column.
fn with_numbers_from(row: &Row, number: &mut u32) -> Row {
    let mut numbered = RowBuilder::part_of(row, Liveness::NONE, row.deletion());
    for column in row.columns() {
        let ColumnData::Complex(cells) = column.data else { continue };
        let sum = cells.cells().map(|cell| self::number(cell.value)).fold(0, i64::wrapping_add).to_be_bytes();
        let timestamp = cells.cells().map(|cell| cell.timestamp).max().unwrap_or(0);
        let path = CellRef::increment_path(*number);
        *number += 1;
        let increment = CellRef::live(timestamp, &sum).with_path(&path);
        numbered.complex(column.id, cells.deletion, [increment]);
    }
    numbered.finish()
}

/// What a mutation becomes when its increments are counted by the node `id`: shares, and deletions as they were, all of
/// that timestamp in µs. It must be later than those of all shares the node has given of these counters, of which
/// `held` tells the last row: `None` asks for the static one.
pub fn counted<'h>(
    mutation: &Mutation,
    table: &Table,
    (id, timestamp): (CounterId, i64),
    held: impl Fn(Option<&Clustering>) -> Option<&'h Row>,
) -> Mutation {
    let counting = Counting { id, timestamp };
    let mut builder = MutationBuilder::new(mutation.table, mutation.key.clone());
    if !mutation.deletion.is_live() {
        builder.partition_deletion(counting.deletion(mutation.deletion));
    }
    if let Some(row) = &mutation.static_row {
        builder.static_row(counting.row(row, held(None)));
    }
    for row in merged(&mutation.rows, table) {
        builder.row(counting.row(&row, held(Some(&row.clustering()))));
    }
    for RangeTombstone { slice, deletion } in &mutation.ranges {
        builder.range(RangeTombstone { slice: slice.clone(), deletion: counting.deletion(*deletion) });
    }
    let counted = builder.finish();
    assert!(Increments::of(&counted).is_empty(), "what was counted is not counted again");
    counted
}

/// One row for each place: two that are one would be counted from the same share.
fn merged(rows: &[Row], table: &Table) -> Vec<Row> {
    if let [row] = rows {
        return vec![row.clone()];
    }
    let comparator = ClusteringComparator::new(table.clustering_types().clone());
    let mut sorted = rows.to_vec();
    let order = |one: &Row, other: &Row| {
        comparator.compare_encoded(one.encoded_clustering(), other.encoded_clustering())
    };
    sorted.sort_by(order);
    let of_one_place = sorted.chunk_by(|one, other| order(one, other).is_eq());
    of_one_place.filter_map(|rows| merge_rows(rows, DeletionTime::LIVE, table)).collect()
}

struct Counting {
    id: CounterId,
    timestamp: i64,
}

impl Counting {
    fn deletion(&self, deletion: DeletionTime) -> DeletionTime {
        match deletion.is_live() {
            true => deletion,
            // As a table file tells it of one that counts again: of replicas not all may have written it to a file.
            false => context::deletion_at(self.timestamp),
        }
    }

    fn row(&self, row: &Row, held: Option<&Row>) -> Row {
        let mut builder = RowBuilder::part_of(row, Liveness::NONE, self.deletion(row.deletion()));
        for column in row.columns() {
            let ColumnData::Complex(cells) = column.data else { continue };
            let increments = cells.cells().filter(CellRef::is_increment).map(|cell| number(cell.value));
            let more = increments.reduce(i64::wrapping_add);
            let share = more.map(|more| self.held(held, column.id).wrapping_add(more).to_be_bytes());
            let share =
                share.as_ref().map(|share| CellRef::live(self.timestamp, share).with_path(&self.id.0));
            builder.complex(column.id, self.deletion(cells.deletion), share);
        }
        builder.finish()
    }

    /// What this node has counted so far.
    fn held(&self, row: Option<&Row>, id: ColumnId) -> i64 {
        let Some(ColumnData::Complex(shares)) = row.and_then(|row| row.column(id)) else { return 0 };
        let Some(share) = self.id.share_in(shares) else { return 0 };
        assert!(share.timestamp < self.timestamp, "a node gives its shares with rising timestamps");
        number(share.value)
    }
}

/// A counter as Cassandra has it in table files, from its `CounterContext` (5.0): big-endian
///
/// ```text
///   i16 count of the header's elements | (i16 index of a share, + i16::MIN for a global one)*
///   (16 id | i64 clock | i64 count)*   ascending by id
/// ```
///
/// All shares since Cassandra 2.1 are global. Those of before, local and remote ones, are read as if they were.
pub mod context {
    use super::{ComplexRef, DeletionTime, number};
    use crate::CellRef;

    const SHARE_BYTES: usize = 32;
    const HEADER_ELEMENT_BYTES: usize = 2;

    /// The id of a share of nothing, whose clock is the time of a deletion: of a counter that was deleted and counts
    /// again. A table file has one cell for a counter, either deleted or not; and what was counted before must stay
    /// hidden. To Cassandra it is a share of zero.
    pub(super) const DELETION: [u8; 16] = [u8::MAX; 16];

    /// Writes the cell of a counter, whose value is put together in `memory`: of one that is deleted and has not
    /// counted since, a tombstone.
    ///
    /// # Errors
    /// It has more shares than a context can have.
    pub fn write<'m>(shares: ComplexRef<'_>, memory: &'m mut Vec<u8>) -> Result<CellRef<'m>, &'static str> {
        let deletion = shares.deletion;
        let Some(timestamp) = shares.cells().map(|share| share.timestamp).max() else {
            return Ok(CellRef::tombstone(deletion.timestamp, deletion.local_deletion_time));
        };
        let count = shares.cells().count() + usize::from(!deletion.is_live());
        let all = i16::try_from(count).map_err(|_| "a counter of more than 32,767 shares")?;
        memory.clear();
        let out = memory;
        out.extend_from_slice(&all.to_be_bytes());
        (0..all).for_each(|index| out.extend_from_slice(&(index + i16::MIN).to_be_bytes()));
        for share in shares.cells() {
            push(out, share.path, share.timestamp, number(share.value));
        }
        if !deletion.is_live() {
            push(out, &DELETION, deletion.timestamp, 0);
        }
        Ok(CellRef::live(timestamp, out))
    }

    fn push(out: &mut Vec<u8>, id: &[u8], clock: i64, count: i64) {
        assert_eq!(id.len(), DELETION.len(), "increments are counted before they are written");
        out.extend_from_slice(id);
        out.extend_from_slice(&clock.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
    }

    /// The deletion and the shares that a context tells of; `None` of bytes that are none.
    pub fn read(context: &[u8]) -> Option<(DeletionTime, impl Iterator<Item = CellRef<'_>> + Clone)> {
        let (count, _) = context.split_first_chunk::<2>()?;
        let header_bytes = 2 + usize::from(i16::from_be_bytes(*count).unsigned_abs()) * HEADER_ELEMENT_BYTES;
        let (shares, rest) = context.get(header_bytes..)?.as_chunks::<SHARE_BYTES>();
        if !rest.is_empty() || !shares.is_sorted_by(|one, other| one[..16] < other[..16]) {
            return None;
        }
        let (marker, shares) = match shares.split_last() {
            Some((last, before)) if last[..16] == DELETION => (Some(share(last).timestamp), before),
            _ => (None, shares),
        };
        let deletion = marker.map_or(DeletionTime::LIVE, deletion_at);
        if shares.iter().any(|bytes| !share(bytes).is_share()) {
            return None;
        }
        Some((deletion, shares.iter().map(share)))
    }

    /// The deletion of that time, in µs.
    pub(super) fn deletion_at(timestamp: i64) -> DeletionTime {
        let local_deletion_time = u32::try_from(timestamp / 1_000_000).unwrap_or(0);
        DeletionTime { timestamp, local_deletion_time }
    }

    fn share(bytes: &[u8; SHARE_BYTES]) -> CellRef<'_> {
        let (id, rest) = bytes.split_at(16);
        let (clock, count) = rest.split_at(8);
        CellRef::live(number(clock), count).with_path(id)
    }
}
