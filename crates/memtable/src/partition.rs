//! One partition in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound as RangeBound;

use rows::{
    Bound, ClusteringComparator, DeletionTime, Marker, Mutation, PartitionHeader, PartitionKey,
    RangeTombstones, Row, Slice, Unfiltered, merge_rows, merge_to_keep,
};
use schema::Table;
use stdx::prefetch::prefetch;
use types::byte_comparable::{self, ClusteringBoundKind};

use super::ROW_OVERHEAD_BYTES;
use super::ahead::Ahead;
use super::arena::Arena;

/// The byte-comparable form of a clustering, or of a bound between clusterings.
pub(super) type OrderKey = Box<[u8]>;

/// Memory for merging that is kept from one write to the next.
const SCRATCH_BYTES_MAX: usize = 16 << 10;

/// What a write meets in its memtable.
pub(super) struct Context<'a> {
    pub(super) table: &'a Table,
    pub(super) comparator: &'a ClusteringComparator,
    pub(super) arena: &'a mut Arena,
    /// Where rows are merged.
    pub(super) scratch: &'a mut Vec<u8>,
    /// Bytes that whoever keeps a row of the write where it lies keeps with it.
    pub(super) held_bytes: usize,
}

#[derive(Debug)]
pub(super) struct MemoryPartition {
    deletion: DeletionTime,
    static_row: Option<Row>,
    rows: MemoryRows,
    rare: Option<Box<Rare>>,
}

/// What few partitions have.
#[derive(Debug, Default)]
struct Rare {
    ranges: RangeTombstones,
    /// Of large rows what lies beside the last version: to merge it with every write would keep the shard.
    versions: BTreeMap<OrderKey, Vec<Row>>,
}

/// All there is of a partition that holds at most one row, and neither static row nor ranges.
pub struct SingleRow<'a> {
    /// Of the partition.
    pub deletion: DeletionTime,
    /// The row, where it lies.
    pub row: Option<&'a Row>,
}

/// Most tables without clustering columns have one row a partition; no tree for those.
#[derive(Debug)]
enum MemoryRows {
    None,
    One(Row),
    Many(BTreeMap<OrderKey, Row>),
}

impl Default for MemoryPartition {
    fn default() -> Self {
        MemoryPartition { deletion: DeletionTime::LIVE, static_row: None, rows: MemoryRows::None, rare: None }
    }
}

impl MemoryPartition {
    /// Merges a write in and tells by how many bytes the partition grew beside the arena.
    pub(super) fn apply(&mut self, mutation: &Mutation, context: &mut Context<'_>) -> usize {
        let mut grown = 0;
        self.deletion = self.deletion.max(mutation.deletion);
        if let Some(row) = &mutation.static_row {
            // Of a static row there is one version: readers have it with the partition's header.
            grown += merge_into(&mut self.static_row, row, context, merge_in_place).bytes;
        }
        for row in &mutation.rows {
            grown += self.apply_row(row, context);
        }
        for range in &mutation.ranges {
            let ends = [&range.slice.start, &range.slice.end].map(|end| end.prefix.as_encoded().len());
            grown += 2 * ROW_OVERHEAD_BYTES + ends.iter().sum::<usize>();
            self.rare.get_or_insert_default().ranges.insert(range.clone(), context.comparator);
        }
        grown
    }

    fn apply_row(&mut self, row: &Row, context: &mut Context<'_>) -> usize {
        if context.comparator.types().is_empty() {
            let mut one = match std::mem::replace(&mut self.rows, MemoryRows::None) {
                MemoryRows::None => None,
                MemoryRows::One(old) => Some(old),
                MemoryRows::Many(_) => unreachable!("without clustering columns a partition has one row"),
            };
            let grown = merge_into(&mut one, row, context, merge);
            self.rows = one.map_or(MemoryRows::None, MemoryRows::One);
            return self.put_aside(grown, || row_key(row, context.comparator));
        }
        if !matches!(self.rows, MemoryRows::Many(_)) {
            assert!(matches!(self.rows, MemoryRows::None), "with clustering columns rows lie in a tree");
            self.rows = MemoryRows::Many(BTreeMap::new());
        }
        let MemoryRows::Many(rows) = &mut self.rows else { unreachable!("it was made just above") };
        match rows.entry(row_key(row, context.comparator)) {
            Entry::Occupied(mut old) => {
                let grown = merge(old.get_mut(), row, context);
                self.put_aside(grown, || row_key(row, context.comparator))
            }
            Entry::Vacant(place) => {
                let (row, heap_bytes) = context.arena.row(row, context.held_bytes);
                let grown = ROW_OVERHEAD_BYTES + place.key().len() + heap_bytes;
                place.insert(row);
                grown
            }
        }
    }

    /// Keeps what a write has displaced beside the row, and tells by how many bytes the partition grew.
    fn put_aside(&mut self, grown: Grown, key: impl FnOnce() -> OrderKey) -> usize {
        if let Some(version) = grown.displaced {
            let rare = self.rare.get_or_insert_default();
            rare.versions.entry(key()).or_default().push(version);
        }
        grown.bytes
    }

    /// The versions of a row of this partition beside the last one.
    pub(super) fn versions(&self, row: &Row, comparator: &ClusteringComparator) -> &[Row] {
        match &self.rare {
            Some(rare) if !rare.versions.is_empty() => {
                rare.versions.get(&row_key(row, comparator)).map_or(&[], Vec::as_slice)
            }
            _ => &[],
        }
    }

    /// Bytes of its only row, or of the first of many.
    #[inline]
    pub(super) fn first_bytes(&self) -> Option<&[u8]> {
        let row = match &self.rows {
            MemoryRows::None => None,
            MemoryRows::One(row) => Some(row),
            MemoryRows::Many(rows) => rows.values().next(),
        };
        row.map(|row| &row.as_encoded()[..])
    }

    /// Does it say nothing?
    pub(super) fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.is_none()
            && matches!(self.rows, MemoryRows::None)
            && self.rare.as_ref().is_none_or(|rare| rare.ranges.is_empty())
    }

    /// The whole partition, if it is no more than that.
    #[inline]
    pub(super) fn single_row(&self) -> Option<SingleRow<'_>> {
        Some(SingleRow { deletion: self.deletion, row: self.at_most_one_row()? })
    }

    /// The row, or no row, of a partition that has nothing else but perhaps a deletion.
    #[inline]
    pub(super) fn at_most_one_row(&self) -> Option<Option<&Row>> {
        match &self.rows {
            _ if self.static_row.is_some() || self.rare.is_some() => None,
            MemoryRows::None => Some(None),
            MemoryRows::One(row) => Some(Some(row)),
            MemoryRows::Many(_) => None,
        }
    }

    pub(super) fn deletion(&self) -> DeletionTime {
        self.deletion
    }

    pub(super) fn header(&self, key: &PartitionKey) -> PartitionHeader {
        PartitionHeader { key: key.clone(), deletion: self.deletion, static_row: self.static_row.clone() }
    }

    /// All rows and markers in clustering order.
    pub(super) fn unfiltereds<'a>(
        &'a self,
        comparator: &'a ClusteringComparator,
        table: &'a Table,
    ) -> impl Iterator<Item = Unfiltered> + 'a {
        let rows: Box<dyn Iterator<Item = &Row>> = match &self.rows {
            MemoryRows::None => Box::new(std::iter::empty()),
            MemoryRows::One(row) => Box::new(std::iter::once(row)),
            MemoryRows::Many(rows) => Box::new(Ahead::new(rows.values(), |row| Some(&row.as_encoded()[..]))),
        };
        let whole = move |row: &Row| match self.versions(row, comparator) {
            [] => Some(row.clone()),
            others => merge_rows(&[std::slice::from_ref(row), others].concat(), DeletionTime::LIVE, table),
        };
        let mut rows = rows.filter_map(whole).peekable();
        let mut markers = self.markers(&Slice::ALL, comparator).into_iter().peekable();
        std::iter::from_fn(move || match (rows.peek(), markers.peek()) {
            (Some(row), Some(marker)) if is_before(row, marker, comparator) => {
                rows.next().map(Unfiltered::Row)
            }
            (_, Some(_)) => markers.next().map(Unfiltered::Marker),
            (_, None) => rows.next().map(Unfiltered::Row),
        })
    }

    /// Markers within a slice, in clustering order.
    fn markers(&self, slice: &Slice, comparator: &ClusteringComparator) -> Vec<Marker> {
        self.ranges().map_or_else(Vec::new, |ranges| ranges.markers(slice, comparator))
    }

    /// Range tombstones, if there are any.
    pub(super) fn ranges(&self) -> Option<&RangeTombstones> {
        self.rare.as_deref().map(|rare| &rare.ranges)
    }

    /// A batch of rows between two order keys, from the end when `reversed`; and is that all of them?
    pub(super) fn rows_between(
        &self,
        between: (RangeBound<&[u8]>, RangeBound<&[u8]>),
        reversed: bool,
        batch: Batch,
    ) -> (Vec<Row>, bool) {
        match &self.rows {
            MemoryRows::None => (Vec::new(), true),
            MemoryRows::One(row) => {
                // The only row stands at the key of the empty clustering.
                let key: &[u8] = &[ClusteringBoundKind::Clustering as u8];
                let is_in = <_ as std::ops::RangeBounds<[u8]>>::contains(&between, key);
                (if is_in { vec![row.clone()] } else { Vec::new() }, true)
            }
            // Where the two orders of a type disagree there is nothing between, and no panic.
            MemoryRows::Many(_) if is_backwards(between) => (Vec::new(), true),
            MemoryRows::Many(rows) => {
                let range = rows.range::<[u8], _>(between).map(|(_, row)| row);
                if reversed { batch.of(range.rev()) } else { batch.of(range) }
            }
        }
    }
}

/// How many rows are copied in one go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// So many in any case.
    pub(super) least_rows: usize,
    /// Never more.
    pub(super) most_rows: usize,
    /// Not many more bytes, once there are `least_rows`.
    pub(super) bytes: usize,
}

impl Batch {
    fn of<'a>(self, rows: impl Iterator<Item = &'a Row>) -> (Vec<Row>, bool) {
        let mut found: Vec<&Row> = Vec::with_capacity(self.least_rows);
        let mut bytes = 0;
        let mut is_all = true;
        for row in rows {
            if found.len() >= self.least_rows && (found.len() >= self.most_rows || bytes >= self.bytes) {
                is_all = false;
                break;
            }
            bytes += row.as_encoded().len();
            found.push(row);
        }
        (gather(&found), is_all)
    }
}

/// Copies rows of a memtable for a reader: of several, no count in cold memory is touched, and the
/// memory of the next is on its way while one is copied.
pub(super) fn gather(rows: &[&Row]) -> Vec<Row> {
    if let [row] = rows {
        return vec![(*row).clone()];
    }
    for row in rows {
        prefetch(row.as_encoded());
    }
    Row::gather(rows)
}

/// Would a tree refuse to look between these?
fn is_backwards(between: (RangeBound<&[u8]>, RangeBound<&[u8]>)) -> bool {
    match between {
        (RangeBound::Excluded(low), RangeBound::Excluded(high)) => low >= high,
        (
            RangeBound::Included(low) | RangeBound::Excluded(low),
            RangeBound::Included(high) | RangeBound::Excluded(high),
        ) => low > high,
        _ => false,
    }
}

/// Merges a row into one that may be there, and tells by how many bytes that grew beside the arena.
fn merge_into(
    slot: &mut Option<Row>,
    row: &Row,
    context: &mut Context<'_>,
    merge: fn(&mut Row, &Row, &mut Context<'_>) -> Grown,
) -> Grown {
    match slot {
        None => {
            let (row, heap_bytes) = context.arena.row(row, context.held_bytes);
            *slot = Some(row);
            Grown::by(heap_bytes)
        }
        Some(old) => merge(old, row, context),
    }
}

/// What a write makes of a row that is there.
struct Grown {
    /// By how many bytes it grew beside the arena.
    bytes: usize,
    /// What was there, of a large row that is not merged.
    displaced: Option<Row>,
}

impl Grown {
    fn by(bytes: usize) -> Grown {
        Grown { bytes, displaced: None }
    }
}

/// Merges a row into one that is there, or takes its place if one of them is large: to merge these is work for readers,
/// who have it done on another thread.
fn merge(old: &mut Row, row: &Row, context: &mut Context<'_>) -> Grown {
    if !(old.is_large() || row.is_large()) {
        return merge_in_place(old, row, context);
    }
    let (row, heap_bytes) = context.arena.row(row, context.held_bytes);
    let old = std::mem::replace(old, row.clone());
    if row.replaces(&old) {
        return Grown::by(heap_bytes.saturating_sub(freed_bytes(&old, context.arena)));
    }
    Grown { bytes: ROW_OVERHEAD_BYTES + heap_bytes, displaced: Some(old) }
}

/// Merges a row into one that is there.
fn merge_in_place(old: &mut Row, row: &Row, context: &mut Context<'_>) -> Grown {
    if old.write_over(row) {
        return Grown::by(0);
    }
    let Some(merged) = merge_to_keep(old, (row, context.held_bytes), context.table, context.scratch) else {
        return Grown::by(0);
    };
    context.scratch.shrink_to(SCRATCH_BYTES_MAX);
    let freed_bytes = freed_bytes(old, context.arena);
    *old = merged;
    Grown::by(old.as_encoded().len().saturating_sub(freed_bytes))
}

/// What a row gives back when it goes: what lies in the arena stays there.
fn freed_bytes(row: &Row, arena: &Arena) -> usize {
    if arena.holds(row.as_encoded()) { 0 } else { row.as_encoded().len() }
}

/// Does the row stand before the place of the marker?
pub(super) fn is_before(row: &Row, marker: &Marker, comparator: &ClusteringComparator) -> bool {
    comparator.compare_to_bound(&row.clustering(), &marker.start_bound()).is_lt()
}

pub(super) fn row_key(row: &Row, comparator: &ClusteringComparator) -> OrderKey {
    let mut key = Vec::with_capacity(row.encoded_clustering().len() + 4);
    let kind = ClusteringBoundKind::Clustering;
    byte_comparable::clustering(comparator.types(), row.clustering_components(), kind, &mut key);
    key.into_boxed_slice()
}

pub(super) fn bound_key(bound: &Bound, comparator: &ClusteringComparator) -> OrderKey {
    let kind = if bound.kind.is_before() { ClusteringBoundKind::Before } else { ClusteringBoundKind::After };
    let mut key = Vec::new();
    byte_comparable::clustering(comparator.types(), bound.prefix.components(), kind, &mut key);
    key.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use rows::{Clustering, Liveness, RowBuilder};

    use super::*;

    #[test]
    fn a_batch_has_the_least_of_rows_and_more_until_it_is_long_or_they_are_many() {
        let row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE).finish();
        let rows = vec![row.clone(); 10];
        let counted = |bytes| {
            let batch = Batch { least_rows: 2, most_rows: 5, bytes };
            let (found, is_all) = batch.of(rows.iter());
            (found.len(), is_all)
        };
        let row_bytes = row.as_encoded().len();
        assert_eq!(counted(0), (2, false));
        assert_eq!(counted(3 * row_bytes), (3, false));
        assert_eq!(counted(usize::MAX), (5, false));
        let all = Batch { least_rows: 10, most_rows: 10, bytes: 0 };
        assert_eq!((all.of(rows.iter()).0.len(), all.of(rows.iter()).1), (10, true));
    }
}
