//! The compaction job: several table files merged, without what nobody needs.
//!
//! A tombstone may go when it is older than `gc_grace_seconds` and nothing it could hide is left
//! elsewhere: no other file that may hold its partition, and no memtable, has a write as old.

mod output;
mod rising;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use manifest::{Scoped, Scopes};
use ring::Sharding;
use rows::{
    DeletionTime, Marker, MergeCursor, MergeLack, PartitionHeader, PartitionKey, RingRange, Slices, Step,
    Unfiltered, UnfilteredCursor, purge_row,
};
use runtime::{Clock, Disk, Plant, Plants, Random};
use schema::{CompressionOptions, Table};
use sstable::{KeptRoom, KeyHash, TableFile};
use uuid::Uuid;

use crate::{MergeError, MergeWatch, Split};
use output::{Output, OutputCounts};
use rising::Ordered;
pub use source::Ahead;
use source::{Places, Tracked, WatchedChunks};

/// What to merge, and what must be known to purge.
pub struct MergeJob {
    /// Where files are read and written.
    pub disk: Arc<dyn Disk>,
    /// For the ids of files.
    pub random: Arc<dyn Random>,
    /// The same.
    pub clock: Arc<dyn Clock>,
    /// Where the result goes.
    pub directory: PathBuf,
    /// Whose files they are.
    pub table: Arc<Table>,
    /// How the result is compressed.
    pub compression: CompressionOptions,
    /// The files to merge, and what of each counts.
    pub inputs: Vec<(Arc<TableFile>, Option<Scopes>)>,
    /// So many bytes of each are read at once.
    pub input_bytes: usize,
    /// Level of the result.
    pub level: u32,
    /// Where it is cut.
    pub split: Split,
    /// Files of the table that are not merged.
    pub others: Vec<Arc<TableFile>>,
    /// The oldest write in any memtable.
    pub memtable_timestamp_min: Option<i64>,
    /// What has expired by this second may go, seconds since 1970.
    pub now: u32,
    /// Tombstones before this second may go.
    pub gc_before: u32,
    /// How tokens are shared out.
    pub sharding: Sharding,
    /// Only this shard's partitions are kept: a file from before a change of the shards is split so.
    pub shard: usize,
    /// How far it is, and whether it is to be given up.
    pub watch: Arc<MergeWatch>,
    /// So much of the result is held for the cache.
    pub kept_room: KeptRoom,
    /// Of each input, what is known of the chunks that come next.
    pub ahead: Arc<[Ahead]>,
    /// Faults that a test has planted.
    pub plants: Plants,
}

/// What came out.
pub struct Merged {
    /// The files, all durable; none when nothing was left.
    pub files: Vec<Arc<TableFile>>,
    /// How many partitions were merged from so many files.
    pub partitions: BTreeMap<i32, i64>,
}

type Source = Tracked<Scoped<Ordered<WatchedChunks>>>;

/// A merge under way. It is advanced piece by piece, so that whoever drives it can hold it to a
/// rate, tell how far it is, and stop it.
pub struct Merge {
    merged: MergeCursor<Source>,
    places: Arc<Places>,
    counts: Vec<i64>,
    output: Output,
    purge: Purge,
    job: Arc<MergeJob>,
    /// Is the partition being read this shard's?
    is_ours: bool,
    /// Partitions that the inputs have, and those of them that are other shards'.
    met_count: u64,
    foreign_count: u64,
}

/// Where a merge is after a piece.
pub enum MergeState {
    /// There is more.
    Going(Box<Merge>),
    /// All is written.
    Done(Merged),
}

impl Merge {
    /// Begins a merge.
    ///
    /// # Panics
    /// When the job contradicts itself, so that its inputs would go without a result.
    pub fn start(job: MergeJob) -> Box<Merge> {
        assert!(!job.inputs.is_empty(), "a merge has an input");
        assert_eq!(job.ahead.len(), job.inputs.len(), "what the cache has is handed to every input");
        assert!(job.shard < job.sharding.shard_count(), "what is merged is kept for a shard that there is");
        let job = Arc::new(job);
        let places = Arc::new(Places::new(job.inputs.len()));
        let scan = |(index, (file, scopes)): (usize, &(Arc<TableFile>, Option<Scopes>))| {
            let chunks = WatchedChunks::new(&job, index);
            let cursor = Ordered::new(file.scan(chunks, &RingRange::ALL, &Slices::all()), &job.table);
            Tracked::new(Scoped::new(cursor, scopes.clone()), Arc::clone(&places), index)
        };
        let merged = MergeCursor::new(Arc::clone(&job.table), false, job.inputs.iter().enumerate().map(scan));
        Box::new(Merge {
            purge: Purge { job: Arc::clone(&job), key: None, timestamp_min: std::cell::Cell::new(None) },
            output: Output::new(Arc::clone(&job)),
            counts: vec![0; job.inputs.len() + 1],
            places,
            merged,
            job,
            is_ours: false,
            met_count: 0,
            foreign_count: 0,
        })
    }

    /// Goes on until about `bytes` more are read, or to the end.
    ///
    /// # Errors
    /// An input is damaged or the disk fails; what was written is deleted again, as far as that can be.
    pub fn advance(mut self: Box<Self>, bytes: u64) -> Result<MergeState, MergeError> {
        let until = self.job.watch.read_bytes().saturating_add(bytes);
        match self.run(until) {
            Ok(false) => Ok(MergeState::Going(self)),
            Ok(true) => {
                let partitions = (0i32..).zip(&self.counts).filter(|(_, count)| **count > 0);
                let partitions = partitions.map(|(files, count)| (files, *count)).collect();
                let OutputCounts { written, purged } = self.output.counts();
                assert_eq!(
                    self.met_count,
                    written + purged + self.foreign_count,
                    "a partition that is merged is written, purged, or another shard's"
                );
                Ok(MergeState::Done(Merged { files: self.output.finish()?, partitions }))
            }
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    /// Gives the merge up. What can not be deleted of its files is swept up at the next start.
    pub fn abandon(self: Box<Self>) {
        self.output.abandon();
    }

    /// Merges until that many bytes are read; is everything merged?
    fn run(&mut self, until: u64) -> Result<bool, MergeError> {
        loop {
            match self.merged.step()? {
                Step::Header(header) => {
                    self.output.end_partition()?;
                    self.met_count += 1;
                    self.is_ours = self.job.sharding.shard_of(header.key.token) == self.job.shard;
                    self.foreign_count += u64::from(!self.is_ours);
                    self.is_ours &= !self.job.plants.has(Plant::PartitionLost);
                    if self.is_ours {
                        let file_count = self.places.count(header.key.token);
                        assert!(file_count > 0, "a partition that is merged is in some input");
                        self.counts[file_count] += 1;
                        self.purge.begin(&header.key);
                        let header = self.purge.header(header);
                        self.output.start_partition(header)?;
                    }
                    if self.job.watch.read_bytes() >= until || self.job.watch.is_stopped() {
                        return Ok(false);
                    }
                }
                Step::Item(item) if self.is_ours => {
                    if let Some(item) = self.purge.item(item) {
                        self.output.append(&item)?;
                        if self.job.watch.read_bytes() >= until {
                            return Ok(false);
                        }
                    }
                }
                Step::Item(_) => {}
                // Nobody waits for this thread.
                Step::Need(MergeLack::Merged(versions)) => self.merged.merge_here(*versions),
                Step::Need(MergeLack::Source(_)) => unreachable!("a direct source reads what it lacks"),
                Step::End => {
                    self.output.end_partition()?;
                    return Ok(true);
                }
            }
        }
    }
}

impl MergeJob {
    fn new_id(&self) -> Uuid {
        self.random.uuid_v1(&*self.clock)
    }

    /// No write of the partition outside the inputs is older than this.
    fn oldest_elsewhere(&self, key: &PartitionKey) -> i64 {
        let hash = KeyHash::of(&key.bytes);
        let files = self.others.iter().filter(|file| file.may_contain(key, hash));
        files
            .map(|file| file.summary().min_timestamp)
            .chain(self.memtable_timestamp_min)
            .min()
            .unwrap_or(i64::MAX)
    }
}

/// Decides what goes of a partition.
struct Purge {
    job: Arc<MergeJob>,
    key: Option<PartitionKey>,
    /// No write elsewhere is older; looked for when a tombstone asks for it.
    timestamp_min: std::cell::Cell<Option<i64>>,
}

impl Purge {
    fn begin(&mut self, key: &PartitionKey) {
        self.key = Some(key.clone());
        self.timestamp_min.set(None);
    }

    /// Is nothing so old left elsewhere?
    fn hides_nothing(&self, timestamp: i64) -> bool {
        let oldest = self.timestamp_min.get().unwrap_or_else(|| {
            let oldest = self.key.as_ref().map_or(i64::MIN, |key| self.job.oldest_elsewhere(key));
            self.timestamp_min.set(Some(oldest));
            oldest
        });
        timestamp < oldest
    }

    fn deletion(&self, deletion: DeletionTime) -> DeletionTime {
        let goes = deletion.is_purgeable(self.job.gc_before) && self.hides_nothing(deletion.timestamp);
        if goes { DeletionTime::LIVE } else { deletion }
    }

    fn row(&self, row: &rows::Row) -> Option<rows::Row> {
        purge_row(row, self.job.now, self.job.gc_before, |timestamp| self.hides_nothing(timestamp))
    }

    fn header(&self, header: PartitionHeader) -> PartitionHeader {
        let static_row = header.static_row.as_ref().and_then(|row| self.row(row));
        PartitionHeader { deletion: self.deletion(header.deletion), static_row, ..header }
    }

    fn item(&self, item: Unfiltered) -> Option<Unfiltered> {
        match item {
            Unfiltered::Row(row) if row.is_plain() => Some(Unfiltered::Row(row)),
            Unfiltered::Row(row) => self.row(&row).map(Unfiltered::Row),
            Unfiltered::Marker(marker) => {
                let (left, right) = (self.deletion(marker.left), self.deletion(marker.right));
                (left != right).then_some(Unfiltered::Marker(Marker { left, right, ..marker }))
            }
        }
    }
}

#[cfg(test)]
mod testing {
    //! Jobs for tests.

    use runtime::Runtime;
    use schema::{ColumnKind, CompressionOptions, TableBuilder, TableId};
    use sstable::{Descriptor, TableWriter, WriterOptions};
    use types::CqlType;

    use super::*;

    /// Of a partition of which nothing is deleted.
    pub(crate) fn header(key: i32) -> PartitionHeader {
        let key = PartitionKey::new(key.to_be_bytes().to_vec().into());
        PartitionHeader { key, deletion: DeletionTime::LIVE, static_row: None }
    }

    /// A file of those partitions, which come in any order.
    pub(crate) fn file(
        job: &MergeJob,
        table: &Arc<Table>,
        partitions: impl IntoIterator<Item = (PartitionHeader, Vec<Unfiltered>)>,
    ) -> Arc<TableFile> {
        let (disk, directory) = (Arc::clone(&job.disk), job.directory.clone());
        disk.create_dir_all(&directory).expect("a directory");
        let descriptor = Descriptor::new(directory, job.new_id());
        let options = WriterOptions::for_table(table);
        let (disk, of_table) = (Arc::clone(&job.disk), Arc::clone(table));
        let mut writer = TableWriter::create(disk, descriptor.clone(), of_table, options).expect("created");
        let mut partitions: Vec<_> = partitions.into_iter().collect();
        partitions.sort_by(|(a, _), (b, _)| a.key.cmp(&b.key));
        for (header, items) in &partitions {
            writer.start_partition(header).expect("begun");
            items.iter().for_each(|item| writer.append(item).expect("written"));
            writer.end_partition().expect("ended");
        }
        writer.finish().expect("durable");
        TableFile::open(Arc::clone(&job.disk), descriptor, table).expect("opened")
    }

    /// A job with no inputs, whose result goes into memory.
    pub(crate) fn job() -> MergeJob {
        let runtime = Runtime::in_memory_for_tests();
        let table = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t").column(
            "pk",
            ColumnKind::PartitionKey(0),
            CqlType::Int,
        );
        MergeJob {
            disk: runtime.disk,
            random: runtime.random,
            clock: runtime.clock,
            directory: PathBuf::from("/t"),
            table: Arc::new(table.build().expect("a sound table")),
            compression: CompressionOptions::default(),
            inputs: Vec::new(),
            input_bytes: 1,
            level: 0,
            split: Split::Whole,
            others: Vec::new(),
            memtable_timestamp_min: None,
            now: 1,
            gc_before: 0,
            sharding: Sharding::new(1, 0).expect("one shard"),
            shard: 0,
            watch: Arc::default(),
            kept_room: KeptRoom::new(0),
            ahead: Arc::from([]),
            plants: Plants::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rows::{ClusteringBuilder, Liveness, RowBuilder};
    use schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId};
    use sstable::DirectChunks;
    use types::CqlType;

    use super::*;

    /// `k.t (pk int, c blob, PRIMARY KEY (pk, c))`
    fn clustered() -> Arc<Table> {
        let table = TableBuilder::new(TableId(Uuid::from_u128(1)), "k", "t")
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Blob)
            .build();
        Arc::new(table.expect("a sound table"))
    }

    /// All that is in a file, behind the headers of partitions.
    fn items_of(file: &Arc<TableFile>) -> Vec<Unfiltered> {
        let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
        let mut items = Vec::new();
        loop {
            match cursor.step().expect("read") {
                Step::Item(item) => items.push(item),
                Step::Header(_) => {}
                Step::End => return items,
                Step::Need(_) => unreachable!("a direct source reads what it lacks"),
            }
        }
    }

    /// Merges one file; the result, and in how many pieces of so many bytes.
    fn merged(job: MergeJob, input: Arc<TableFile>, piece_bytes: u64) -> (Merged, usize) {
        let (inputs, ahead) = (vec![(input, None)], Arc::from([Ahead::default()]));
        let mut merge = Merge::start(MergeJob { inputs, ahead, ..job });
        let mut piece_count = 1;
        loop {
            match merge.advance(piece_bytes).expect("merged") {
                MergeState::Going(going) => merge = going,
                MergeState::Done(merged) => return (merged, piece_count),
            }
            piece_count += 1;
        }
    }

    #[test]
    fn a_merge_is_advanced_piece_by_piece_within_a_partition_too() {
        let table = clustered();
        let (row_count, row_bytes) = (1_000u32, 1_000);
        let row = |index: u32| {
            let mut clustering = ClusteringBuilder::new();
            clustering.push(Some(&[&index.to_be_bytes()[..], &vec![0; row_bytes]].concat()));
            let row = RowBuilder::new(&clustering.finish(), Liveness::at(1), DeletionTime::LIVE);
            Unfiltered::Row(row.finish())
        };
        let job = MergeJob { table: Arc::clone(&table), level: 2, ..testing::job() };
        let input = testing::file(&job, &table, [(testing::header(1), (0..row_count).map(row).collect())]);
        let (merged, piece_count) = merged(job, input, 100_000);
        assert!((5..=11).contains(&piece_count), "{piece_count} pieces of a megabyte");
        let [file] = &merged.files[..] else { panic!("{} files", merged.files.len()) };
        assert_eq!((file.summary().row_count, file.summary().level), (u64::from(row_count), 2));
        assert_eq!(merged.partitions, BTreeMap::from([(1, 1)]), "of one file");
    }

    #[test]
    fn a_deletion_goes_only_when_all_writes_elsewhere_are_newer() {
        let deletion = DeletionTime { timestamp: 5, local_deletion_time: 1 };
        for (elsewhere, is_kept) in [(None, false), (Some(6), false), (Some(5), true), (Some(4), true)] {
            let job = MergeJob { gc_before: 2, memtable_timestamp_min: elsewhere, ..testing::job() };
            let header = PartitionHeader { deletion, ..testing::header(1) };
            let input = testing::file(&job, &job.table, [(header, Vec::new())]);
            let (merged, _) = merged(job, input, u64::MAX);
            assert_eq!(merged.files.len(), usize::from(is_kept), "{elsewhere:?}");
        }
    }

    #[test]
    fn of_range_deletions_those_go_that_are_old_and_the_others_keep_their_edges() {
        let table = clustered();
        let at = |timestamp| DeletionTime { timestamp, local_deletion_time: timestamp as u32 };
        let (live, old, new) = (DeletionTime::LIVE, at(1), at(9));
        let markers = |deletions: [DeletionTime; 7]| -> Vec<Unfiltered> {
            let edges = (0u8..).zip(deletions.windows(2));
            let marker = |(place, deletions): (u8, &[DeletionTime])| {
                let mut prefix = ClusteringBuilder::new();
                prefix.push(Some(&[place]));
                let (left, right) = (deletions[0], deletions[1]);
                (left != right).then(|| Marker { prefix: prefix.finish(), is_before: true, left, right })
            };
            edges.filter_map(marker).map(Unfiltered::Marker).collect()
        };
        let job = MergeJob { table: Arc::clone(&table), gc_before: 5, ..testing::job() };
        let items = markers([live, old, new, old, live, old, live]);
        let input = testing::file(&job, &table, [(testing::header(1), items)]);
        let (merged, _) = merged(job, input, u64::MAX);
        assert_eq!(items_of(&merged.files[0]), markers([live, live, new, live, live, live, live]));
    }

    #[test]
    fn partitions_of_other_shards_are_left_out() {
        let sharding = Sharding::new(2, 0).expect("two shards");
        let deletion = DeletionTime { timestamp: 5, local_deletion_time: 1 };
        let headers: Vec<_> =
            (0..20).map(|key| PartitionHeader { deletion, ..testing::header(key) }).collect();
        let of_first = headers.iter().filter(|header| sharding.shard_of(header.key.token) == 0).count();
        assert!((1..20).contains(&of_first), "{of_first}");
        for (shard, count) in [(0, of_first), (1, 20 - of_first)] {
            let job = MergeJob { sharding, shard, ..testing::job() };
            let partitions = headers.iter().map(|header| (header.clone(), Vec::new()));
            let input = testing::file(&job, &job.table, partitions);
            let (merged, _) = merged(job, input, u64::MAX);
            assert_eq!(merged.files[0].summary().partition_count, count as u64);
            assert_eq!(merged.partitions, BTreeMap::from([(1, count as i64)]));
        }
    }

    #[test]
    #[should_panic(expected = "a merge has an input")]
    fn a_merge_of_nothing_is_seen() {
        Merge::start(testing::job());
    }
}
