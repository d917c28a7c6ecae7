//! Gathers the statistics of what is written, as Cassandra's `MetadataCollector` does.

use bytes::Bytes;
use rows::{
    Bound, CellRef, Clustering, ClusteringComparator, DeletionTime, Liveness, NO_DELETION_TIME, Slice,
};

use super::{Cardinality, EstimatedHistogram, Stats, TombstoneHistogramBuilder};
use crate::data::RowObserver;

/// The least and the greatest of what went by.
#[derive(Clone, Copy, Debug)]
struct Range<T>(Option<(T, T)>);

impl<T: Ord + Copy> Range<T> {
    fn add(&mut self, value: T) {
        self.0 = Some(self.0.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
    }
}

/// Gathers the statistics of one table file.
#[derive(Debug)]
pub(crate) struct Collector {
    comparator: ClusteringComparator,
    timestamps: Range<i64>,
    local_deletion_times: Range<u32>,
    ttls: Range<u32>,
    tombstones: TombstoneHistogramBuilder,
    partition_bytes: EstimatedHistogram,
    cells_per_partition: EstimatedHistogram,
    cardinality: Cardinality,
    has_partition_deletions: bool,
    column_count: u64,
    row_count: u64,
    /// Cells of the current partition.
    cell_count: u64,
    partition_count: u64,
    covered_start: Option<Bound>,
    covered_end: Option<Bound>,
}

impl Collector {
    pub(crate) fn new(comparator: ClusteringComparator) -> Self {
        Collector {
            comparator,
            timestamps: Range(None),
            local_deletion_times: Range(None),
            ttls: Range(None),
            tombstones: TombstoneHistogramBuilder::new(),
            partition_bytes: EstimatedHistogram::of_partition_bytes(),
            cells_per_partition: EstimatedHistogram::of_cell_counts(),
            cardinality: Cardinality::new(),
            has_partition_deletions: false,
            column_count: 0,
            row_count: 0,
            cell_count: 0,
            partition_count: 0,
            covered_start: None,
            covered_end: None,
        }
    }

    pub(crate) fn start_partition(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.has_partition_deletions = true;
            self.deletion(deletion);
        }
    }

    /// Takes a partition in, with bounds of its first and its last item, which are not its static
    /// row: all others lie between them.
    pub(crate) fn end_partition(
        &mut self,
        key: &[u8],
        partition_bytes: u64,
        bounds: Option<(impl FnOnce() -> Bound, impl FnOnce() -> Bound)>,
    ) {
        self.partition_count += 1;
        self.partition_bytes.add(partition_bytes);
        self.cells_per_partition.add(self.cell_count);
        self.cell_count = 0;
        self.cardinality.add(key);
        let Some((start, end)) = bounds else { return };
        let before = |a: &Bound, b: &Bound| self.comparator.compare_bounds(a, b).is_lt();
        let start = start();
        if self.covered_start.as_ref().is_none_or(|least| before(&start, least)) {
            self.covered_start = Some(start);
        }
        let end = end();
        if self.covered_end.as_ref().is_none_or(|greatest| before(greatest, &end)) {
            self.covered_end = Some(end);
        }
    }

    pub(crate) fn partition_count(&self) -> u64 {
        self.partition_count
    }

    pub(crate) fn cardinality(&self) -> &Cardinality {
        &self.cardinality
    }

    /// The stats of all that was written; what only the writer knows is left to it.
    pub(crate) fn finish(self) -> Stats {
        let counts = [self.partition_bytes.count(), self.cells_per_partition.count()];
        assert_eq!(counts, [self.partition_count; 2], "each partition is in each histogram");
        assert_eq!(self.cell_count, 0, "the last partition is ended");
        let (min_timestamp, max_timestamp) = self.timestamps.0.unwrap_or((i64::MIN, i64::MAX));
        let none = (NO_DELETION_TIME, NO_DELETION_TIME);
        let (min_local_deletion_time, max_local_deletion_time) = self.local_deletion_times.0.unwrap_or(none);
        let (min_ttl, max_ttl) = self.ttls.0.unwrap_or((0, 0));
        let nothing = Stats::nothing_covered();
        let covered = Slice {
            start: own_memory(self.covered_start.unwrap_or(nothing.start)),
            end: own_memory(self.covered_end.unwrap_or(nothing.end)),
        };
        Stats {
            partition_bytes: self.partition_bytes,
            cells_per_partition: self.cells_per_partition,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio: -1.0,
            tombstones: self.tombstones.finish(),
            level: 0,
            repaired_at: 0,
            clustering_types: Vec::new(),
            covered,
            column_count: self.column_count,
            row_count: self.row_count,
            pending_repair: None,
            has_partition_deletions: self.has_partition_deletions,
            first_key: Bytes::new(),
            last_key: Bytes::new(),
        }
    }

    fn local_deletion_time(&mut self, seconds: u32) {
        self.local_deletion_times.add(seconds);
        if seconds != NO_DELETION_TIME {
            self.tombstones.add(seconds);
        }
    }
}

/// The bound without the memory of the row it was taken from.
fn own_memory(bound: Bound) -> Bound {
    let encoded = Bytes::copy_from_slice(bound.prefix.as_encoded());
    let prefix = Clustering::from_encoded(encoded).unwrap_or_default();
    Bound { kind: bound.kind, prefix }
}

impl RowObserver for Collector {
    fn liveness(&mut self, liveness: Liveness) {
        self.timestamps.add(liveness.timestamp);
        self.ttls.add(liveness.ttl);
        self.local_deletion_time(liveness.local_expiration_time);
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        self.timestamps.add(deletion.timestamp);
        self.local_deletion_time(deletion.local_deletion_time);
    }

    fn cell(&mut self, cell: &CellRef<'_>) {
        self.cell_count += 1;
        self.timestamps.add(cell.timestamp);
        self.ttls.add(cell.ttl);
        self.local_deletion_time(cell.local_deletion_time);
    }

    fn cells_as_old_as_row(&mut self, count: u64) {
        // The least and the greatest of their times are the row's.
        self.cell_count += count;
    }

    fn row_end(&mut self, column_count: u64) {
        self.column_count += column_count;
        self.row_count += 1;
    }
}
