//! Random partitions written and read, in both directions and by slices, against a model.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, DeletionTime, Liveness,
    Marker, PartitionHeader, PartitionKey, RangeTombstone, RangeTombstones, RingPlace, RingRange, Row,
    RowBuilder, Slice, Slices, Step, Unfiltered, UnfilteredCursor,
};
use runtime::{Disk, MemoryDisk, Random, SeededRandom};
use schema::{
    ChunkLength, ClusteringOrder, ColumnId, ColumnKind, CompressionOptions, Table, TableBuilder, TableId,
};
use types::CqlType;
use uuid::Uuid;

use crate::fixture_tests::collect;
use crate::{
    Chunk, ChunkId, ChunkSource, Descriptor, DirectChunks, FileCursor, FileNeed, KeyHash, ReadRow, RowReader,
    SstableError, TableFile, TableWriter, WriterOptions, id_from_text,
};

/// Finds the last chunk fetched and no other: the smallest cache there can be. Large rows are read for it.
#[derive(Default)]
struct OneChunk {
    chunk: RefCell<Option<(ChunkId, Chunk)>>,
    row: RefCell<Option<ReadRow>>,
}

impl ChunkSource for OneChunk {
    fn get(&self, _: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        Ok(self.chunk.borrow().as_ref().filter(|(of, _)| *of == id).map(|(_, chunk)| chunk.clone()))
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        RowReader::Other(self.row.take().filter(|row| row.is_at(file, position)))
    }
}

/// Reads all, fetching what the cursor asks for.
fn drive(mut cursor: FileCursor<&OneChunk>, source: &OneChunk) -> Vec<(PartitionHeader, Vec<Unfiltered>)> {
    let mut partitions: Vec<(PartitionHeader, Vec<Unfiltered>)> = Vec::new();
    let mut needs = 0;
    loop {
        match cursor.step().expect("sound") {
            Step::Need(FileNeed::Chunk(need)) => {
                needs += 1;
                assert!(needs < 1_000_000, "no progress");
                let chunk = need.read().expect("sound");
                *source.chunk.borrow_mut() = Some((need.id, chunk));
            }
            Step::Need(FileNeed::Row(row)) => *source.row.borrow_mut() = Some(row.read()),
            Step::Header(header) => partitions.push((header, Vec::new())),
            Step::Item(item) => partitions.last_mut().expect("a header first").1.push(item),
            Step::End => return partitions,
        }
    }
}

/// Cells of a collection that make a [large row](rows::LARGE_ROW_BYTES) in a file.
const LARGE_CELL_COUNT: u32 = 16_000;

struct World {
    random: SeededRandom,
    /// Has it large rows here and there?
    has_large: bool,
    table: Arc<Table>,
    comparator: ClusteringComparator,
}

/// What a partition holds.
#[derive(Clone, Debug)]
struct Model {
    header: PartitionHeader,
    rows: Vec<Row>,
    ranges: RangeTombstones,
}

impl World {
    fn new(seed: u64) -> Self {
        let random = SeededRandom::new(seed);
        let map = CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
        let set = CqlType::Set { element: CqlType::Int.into(), frozen: false };
        let mut builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "t")
            .column("z", ColumnKind::Regular, CqlType::Text)
            .column("k", ColumnKind::PartitionKey(0), CqlType::Text)
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
            .column("m", ColumnKind::Regular, map)
            .column("d", ColumnKind::Clustering(1, ClusteringOrder::Desc), CqlType::Text)
            .column("a", ColumnKind::Regular, CqlType::Int);
        if random.next_u64() & 1 == 0 {
            builder =
                builder.column("t", ColumnKind::Static, CqlType::Bigint).column("s", ColumnKind::Static, set);
        }
        if random.next_u64() & 1 == 0 {
            builder = builder.column("n", ColumnKind::Regular, CqlType::Counter).column(
                "b",
                ColumnKind::Regular,
                CqlType::Counter,
            );
        }
        if random.next_u64().is_multiple_of(4) {
            for index in 0..80 {
                builder = builder.column(format!("x{index}"), ColumnKind::Regular, CqlType::Int);
            }
        }
        let table = Arc::new(builder.build().expect("a table"));
        let comparator = ClusteringComparator::new(Arc::clone(table.clustering_types()));
        let has_large = random.next_u64().is_multiple_of(8);
        World { random, has_large, table, comparator }
    }

    fn below(&self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn chance(&self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn deletion(&self) -> DeletionTime {
        DeletionTime {
            timestamp: 1_700_000_000_000_000 + self.below(1000) as i64,
            local_deletion_time: 1_700_000_000 + self.below(10_000) as u32,
        }
    }

    fn clustering(&self, components: usize) -> Clustering {
        let mut builder = ClusteringBuilder::new();
        if components > 0 {
            builder.push(Some(&(self.below(40) as i32 - 20).to_be_bytes()));
        }
        if components > 1 {
            let text = vec![b'a' + self.below(3) as u8; self.below(4) as usize];
            builder.push(Some(&text));
        }
        builder.finish()
    }

    fn bound(&self, is_start: bool) -> Bound {
        let prefix = self.clustering(self.below(3) as usize);
        let kind = match (is_start, prefix.is_empty() || self.chance(2)) {
            (true, true) => BoundKind::InclusiveStart,
            (true, false) => BoundKind::ExclusiveStart,
            (false, true) => BoundKind::InclusiveEnd,
            (false, false) => BoundKind::ExclusiveEnd,
        };
        Bound { kind, prefix }
    }

    fn cell<'a>(&self, value: &'a [u8], row: Liveness) -> CellRef<'a> {
        let timestamp = if self.chance(2) { row.timestamp } else { self.deletion().timestamp };
        match self.below(6) {
            0 => CellRef::tombstone(timestamp, self.deletion().local_deletion_time),
            1 => CellRef::expiring(
                timestamp,
                1 + self.below(100) as u32,
                self.deletion().local_deletion_time,
                value,
            ),
            2 if row.is_expiring() => CellRef::expiring(timestamp, row.ttl, row.local_expiration_time, value),
            _ => CellRef::live(timestamp, value),
        }
    }

    fn row(&self, clustering: &Clustering, is_static: bool) -> Option<Row> {
        let liveness = match self.below(if is_static { 1 } else { 4 }) {
            0 => Liveness::NONE,
            1 => Liveness::expiring(self.deletion().timestamp, 1 + self.below(50) as u32, 1_700_000_100),
            _ => Liveness::at(self.deletion().timestamp),
        };
        let deletion = if !is_static && self.chance(8) { self.deletion() } else { DeletionTime::LIVE };
        let mut builder = RowBuilder::new(clustering, liveness, deletion);
        let mut columns: Vec<_> =
            if is_static { self.table.static_columns() } else { self.table.regular_columns() }
                .iter()
                .collect();
        columns.sort_by_key(|column| column.id);
        let sparse = self.chance(2);
        for column in columns {
            if self.chance(if sparse && columns_are_many(&self.table) { 2 } else { 3 }) && sparse {
                continue;
            }
            self.column(&mut builder, column.id, &column.cql_type, liveness);
        }
        let row = builder.finish();
        (!row.is_empty()).then_some(row)
    }

    fn column(&self, builder: &mut RowBuilder, id: ColumnId, of: &CqlType, liveness: Liveness) {
        let length = match self.below(30) {
            0 => 6000,
            1 => 200,
            _ => self.below(10) as usize,
        };
        let text = vec![b'v'; length];
        match of {
            CqlType::Int => _ = builder.cell(id, self.cell(&[0, 0, 1, self.below(9) as u8], liveness)),
            CqlType::Bigint => _ = builder.cell(id, self.cell(&[7; 8], liveness)),
            CqlType::Text => _ = builder.cell(id, self.cell(&text, liveness)),
            CqlType::Counter => self.counter(builder, id),
            _ => {
                let deletion = if self.chance(3) { self.deletion() } else { DeletionTime::LIVE };
                let is_large = self.has_large && self.chance(1000);
                let count = if is_large { LARGE_CELL_COUNT } else { self.below(5) as u32 };
                let paths: Vec<[u8; 4]> = (0..count).map(u32::to_be_bytes).collect();
                let cells = paths.iter().map(|path| self.cell(b"val", liveness).with_path(path));
                builder.complex(id, deletion, cells);
            }
        }
    }

    fn counter(&self, builder: &mut RowBuilder, id: ColumnId) {
        let shares: Vec<_> = (0..self.below(4) as u8).map(|node| ([node; 16], [node; 8])).collect();
        let shares =
            shares.iter().map(|(node, value)| (node, CellRef::live(self.deletion().timestamp, value)));
        let DeletionTime { timestamp, .. } = self.deletion();
        // Where there are shares, a file has no room for another time than that.
        let deletion = DeletionTime {
            timestamp,
            local_deletion_time: u32::try_from(timestamp / 1_000_000).unwrap_or(0),
        };
        let deletion = if self.chance(3) { deletion } else { DeletionTime::LIVE };
        builder.complex(id, deletion, shares.map(|(node, share)| share.with_path(node)));
    }

    fn partition(&self, key: PartitionKey) -> Model {
        let deletion = if self.chance(5) { self.deletion() } else { DeletionTime::LIVE };
        let has_static = !self.table.static_columns().is_empty() && self.chance(2);
        let static_row = if has_static { self.row(&Clustering::EMPTY, true) } else { None };
        let mut rows = BTreeMap::new();
        for _ in 0..if self.chance(3) { self.below(150) } else { self.below(6) } {
            let clustering = self.clustering(2);
            if let Some(row) = self.row(&clustering, false) {
                rows.insert(clustering.as_encoded().to_vec(), row);
            }
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        rows.sort_by(|a, b| self.comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering()));
        let mut ranges = RangeTombstones::new();
        for _ in 0..self.below(6) {
            let slice = Slice { start: self.bound(true), end: self.bound(false) };
            let mut deletion = self.deletion();
            if self.chance(4) {
                deletion.timestamp = -1 - self.below(100) as i64;
            }
            ranges.insert(RangeTombstone { slice, deletion }, &self.comparator);
        }
        Model { header: PartitionHeader { key, deletion, static_row }, rows, ranges }
    }

    fn slices(&self) -> Slices {
        let slice = || match self.below(3) {
            0 => Slice::prefix(self.clustering(2)),
            _ => Slice { start: self.bound(true), end: self.bound(false) },
        };
        match self.below(8) {
            0 => Slices::all(),
            1 => Slices::none(),
            _ => Slices::new((0..1 + self.below(4)).map(|_| slice()).collect(), &self.comparator),
        }
    }

    fn write(&self, disk: &Arc<dyn Disk>, descriptor: &Descriptor, models: &[Model]) {
        let class =
            ["LZ4Compressor", "SnappyCompressor", "ZstdCompressor", "DeflateCompressor", "NoopCompressor"];
        let class = class.get(self.below(7) as usize).map(|class| (*class).to_owned());
        let mut collector = rows::EncodingStatsCollector::new();
        let options = WriterOptions {
            compression: CompressionOptions {
                class,
                chunk_length: ChunkLength::Fixed(4096),
                ..Default::default()
            },
            row_index_block_bytes: if self.chance(2) { 200 } else { 4096 },
            encoding_stats: match self.chance(3) {
                true => rows::EncodingStats::NONE,
                false => {
                    models.iter().flat_map(|model| &model.rows).for_each(|row| collector.row(row));
                    collector.stats()
                }
            },
            ..WriterOptions::for_table(&self.table)
        };
        disk.create_dir_all(&descriptor.directory).expect("made");
        let table = Arc::clone(&self.table);
        let mut writer =
            TableWriter::create(Arc::clone(disk), descriptor.clone(), table, options).expect("begins");
        for model in models {
            writer.start_partition(&model.header).expect("begins");
            for item in model.items(&Slices::all(), false, &self.comparator) {
                writer.append(&item).expect("appends");
            }
            writer.end_partition().expect("ends");
        }
        let written = writer.finish().expect("finishes");
        let file = TableFile::open(Arc::clone(disk), descriptor.clone(), &self.table).expect("opens");
        let read = file.summary();
        assert_eq!(written.disk_bytes, read.disk_bytes);
        assert_eq!((written.partition_count, written.row_count), (read.partition_count, read.row_count));
        assert_eq!(written.covered_clusterings, read.covered_clusterings);
        assert_eq!(&written, read);
    }
}

fn columns_are_many(table: &Table) -> bool {
    table.regular_columns().len() > 60
}

impl Model {
    /// What a read of those slices must give.
    fn items(&self, slices: &Slices, reversed: bool, comparator: &ClusteringComparator) -> Vec<Unfiltered> {
        let mut items = Vec::new();
        for slice in slices.as_slice() {
            let mut markers = self.ranges.markers(slice, comparator).into_iter().peekable();
            let before = |marker: &Marker, row: &Row| {
                comparator.compare_encoded_to_bound(row.encoded_clustering(), &marker.start_bound()).is_gt()
            };
            for row in self.rows.iter().filter(|row| slice.contains(comparator, &row.clustering())) {
                while let Some(marker) = markers.next_if(|marker| before(marker, row)) {
                    items.push(Unfiltered::Marker(marker));
                }
                items.push(Unfiltered::Row(row.clone()));
            }
            items.extend(markers.map(Unfiltered::Marker));
        }
        if reversed {
            items.reverse();
        }
        items
    }
}

fn check(seed: u64) {
    let world = World::new(seed);
    let mut keys: Vec<PartitionKey> = (0..1 + world.below(30))
        .map(|index| PartitionKey::new(Bytes::from(format!("key{}", index * 7))))
        .collect();
    keys.sort();
    let models: Vec<Model> = keys.into_iter().map(|key| world.partition(key)).collect();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let id = id_from_text("3gj5_0wc1_3vyps2bvkllgjm2qvf").expect("an id");
    let descriptor = Descriptor::new("/t", id);
    world.write(&disk, &descriptor, &models);
    let file = TableFile::open(Arc::clone(&disk), descriptor, &world.table).expect("opens");
    file.verify().expect("sound");

    let expect = |model: &Model, slices: &Slices, reversed: bool| {
        (model.header.clone(), model.items(slices, reversed, &world.comparator))
    };
    let everything: Vec<_> = models.iter().map(|model| expect(model, &Slices::all(), false)).collect();
    assert_eq!(collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all())), everything);
    let source = OneChunk::default();
    for _ in 0..12 {
        let slices = world.slices();
        for reversed in [false, true] {
            let model = &models[world.below(models.len() as u64) as usize];
            let cursor = file.partition_cursor(
                &source,
                &model.header.key,
                KeyHash::of(&model.header.key.bytes),
                &slices,
                reversed,
            );
            let read = drive(cursor, &source);
            assert_eq!(read, [expect(model, &slices, reversed)], "slices {slices:?}, reversed {reversed}");
        }
        let absent = PartitionKey::new(Bytes::from(format!("absent{}", world.below(1000))));
        let cursor = file.partition_cursor(&source, &absent, KeyHash::of(&absent.bytes), &slices, false);
        assert_eq!(drive(cursor, &source), []);
        let range = world.range(&models);
        let within = models.iter().filter(|model| range.contains(&model.header.key));
        let expected: Vec<_> = within.map(|model| expect(model, &slices, false)).collect();
        let read = drive(file.scan(&source, &range, &slices), &source);
        assert_eq!(read, expected, "{range:?} {slices:?}");
    }
}

impl World {
    fn range(&self, models: &[Model]) -> RingRange {
        let place = || {
            let key = models[self.below(models.len() as u64) as usize].header.key.clone();
            match self.below(6) {
                0 => RingPlace::BeforeToken(key.token),
                1 => RingPlace::AfterToken(key.token),
                2 => RingPlace::BeforeKey(key),
                3 => RingPlace::AfterKey(key),
                4 => RingPlace::BeforeToken(types::Token(key.token.0.wrapping_add(5))),
                _ => RingPlace::BeforeKey(PartitionKey::new(Bytes::from_static(b"other"))),
            }
        };
        let start = if self.chance(4) { RingPlace::Start } else { place() };
        RingRange { start, end: if self.chance(4) { RingPlace::End } else { place() } }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(seed in any::<u64>()) {
        check(seed);
    }
}

/// There a static row lies in other chunks than the head of its partition, and [`OneChunk`] has room for one.
#[test]
fn a_static_row_is_read_whatever_its_chunks_push_out() {
    check(17_202_575_869_392_039_945);
}

/// There the last partition has nothing but the byte that says it is not deleted and six that follow, and a chunk ends
/// before them: no deletion of more bytes may be looked for there.
#[test]
fn a_last_partition_is_read_though_a_chunk_ends_behind_its_key() {
    check(17_554_214_917_757_490_232);
}
