//! Table files that Cassandra 5.0.9 wrote: read, and written again byte for byte.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rows::{PartitionHeader, RingRange, Slices, Step, Unfiltered, UnfilteredCursor};
use runtime::{Disk, MemoryDisk, OsDisk};
use schema::{Column, ColumnId, CompressionOptions, Table, TableBuilder};

use crate::statistics::Statistics;
use crate::{
    Component, Descriptor, DirectChunks, FileCursor, TableFile, TableWriter, WriterOptions, table_of_header,
};
use components::{ComponentSet, CompressionParameters};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/cassandra-da")
}

/// Every `da` file of the fixtures, by folder.
pub(crate) fn fixtures() -> Vec<(String, Descriptor)> {
    let found = fixtures_in(&folder());
    assert!(found.len() > 40, "only {} fixtures", found.len());
    found
}

/// Every file of the format `big` of the fixtures.
pub(crate) fn big_fixtures() -> Vec<(String, Descriptor)> {
    let folder = folder().join("../cassandra-big");
    let found: Vec<_> = ["nb", "oa"].iter().flat_map(|version| fixtures_in(&folder.join(version))).collect();
    assert!(found.len() > 30, "only {} fixtures", found.len());
    found
}

fn fixtures_in(folder: &Path) -> Vec<(String, Descriptor)> {
    let disk = OsDisk::new();
    let mut found = Vec::new();
    for entry in disk.list(folder).expect("fixtures are in the repository") {
        let path = folder.join(&entry.name);
        if entry.kind != runtime::EntryKind::Directory {
            continue;
        }
        for file in disk.list(&path).expect("a folder") {
            if let Ok((descriptor, Component::Toc)) = Descriptor::from_path(&path.join(&file.name)) {
                found.push((entry.name.clone(), descriptor));
            }
        }
    }
    found
}

pub(crate) type Partitions = Vec<(PartitionHeader, Vec<Unfiltered>)>;

pub(crate) fn collect<S: crate::ChunkSource>(mut cursor: FileCursor<S>) -> Partitions {
    let mut partitions: Partitions = Vec::new();
    loop {
        match cursor.step().expect("sound") {
            Step::Header(header) => partitions.push((header, Vec::new())),
            Step::Item(item) => partitions.last_mut().expect("a header comes first").1.push(item),
            Step::Need(_) => unreachable!("direct chunks wait"),
            Step::End => return partitions,
        }
    }
}

/// The table with its columns numbered the other way, so that no order is right by chance.
pub(crate) fn renumbered(table: Table) -> Arc<Table> {
    let mut builder: TableBuilder = table.into();
    let last = builder.next_column_id - 1;
    builder.columns =
        builder.columns.into_iter().map(|c| Column { id: ColumnId(last - c.id.0), ..c }).collect();
    Arc::new(builder.build().expect("still a table"))
}

pub(crate) fn write(
    disk: &Arc<dyn Disk>,
    descriptor: &Descriptor,
    table: &Arc<Table>,
    options: WriterOptions,
    content: &Partitions,
) {
    disk.create_dir_all(&descriptor.directory).expect("made");
    let mut writer = TableWriter::create(Arc::clone(disk), descriptor.clone(), Arc::clone(table), options)
        .expect("begins");
    for (header, items) in content {
        writer.start_partition(header).expect("begins");
        for item in items {
            writer.append(item).expect("appends");
        }
        writer.end_partition().expect("ends");
    }
    writer.finish().expect("finishes");
}

/// Data of a table file, uncompressed.
fn uncompressed(disk: &Arc<dyn Disk>, descriptor: &Descriptor, table: &Arc<Table>) -> Vec<u8> {
    let file = TableFile::open(Arc::clone(disk), descriptor.clone(), table).expect("opens");
    let chunks = file.chunks().data().read(0, usize::MAX).expect("sound");
    chunks.iter().flat_map(|chunk| chunk.as_slice()).copied().collect()
}

fn statistics(disk: &Arc<dyn Disk>, descriptor: &Descriptor) -> Statistics {
    let path = descriptor.path(Component::Statistics);
    Statistics::from_bytes(&path, descriptor.version, &disk.read(&path).expect("there")).expect("sound")
}

fn compression(disk: &Arc<dyn Disk>, descriptor: &Descriptor) -> CompressionOptions {
    let components = ComponentSet::open(Arc::clone(disk), descriptor.clone()).expect("whole");
    let data = components.open_data().expect("sound");
    let none = || CompressionOptions { class: None, ..Default::default() };
    data.parameters().map_or_else(none, CompressionParameters::to_options)
}

#[test]
fn files_of_cassandra_read_and_write_the_same_bytes() {
    let theirs_disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    // The cell of a counter is written with the time of its last share, and not with that of its client.
    for (name, theirs) in fixtures().into_iter().filter(|(name, _)| name != "counters") {
        let table = table_of_header(&*theirs_disk, &theirs, "da", &name).expect("known types");
        let table = renumbered(table);
        let file = TableFile::open(Arc::clone(&theirs_disk), theirs.clone(), &table).expect("opens");
        file.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        let content = collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()));
        assert_eq!(content.len() as u64, file.summary().partition_count, "{name}");

        let our_disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let ours = Descriptor::new("/ours", theirs.id);
        let before = statistics(&theirs_disk, &theirs);
        let options = WriterOptions {
            compression: compression(&theirs_disk, &theirs),
            bloom_filter_fp_chance: before.bloom_filter_fp_chance,
            estimated_partitions: content.len() as u64,
            encoding_stats: before.header.stats,
            ..WriterOptions::for_table(&table)
        };
        write(&our_disk, &ours, &table, options, &content);

        let left = uncompressed(&theirs_disk, &theirs, &table);
        let right = uncompressed(&our_disk, &ours, &table);
        let differs = left.iter().zip(&right).position(|(a, b)| a != b);
        assert!(left == right, "{name}: {} and {} bytes differ at {differs:?}", left.len(), right.len());
        for component in [Component::Partitions, Component::Rows, Component::Filter] {
            let left = theirs_disk.read(&theirs.path(component)).expect("there");
            let right = our_disk.read(&ours.path(component)).expect("there");
            let differs = left.iter().zip(&right).position(|(a, b)| a != b);
            assert!(
                left == right,
                "{name} {component}: {} and {} bytes differ at {differs:?}",
                left.len(),
                right.len()
            );
        }
        let mut after = statistics(&our_disk, &ours);
        after.stats.compression_ratio = before.stats.compression_ratio;
        assert_eq!(after, before, "{name}");
        let again = TableFile::open(our_disk, ours, &table).expect("opens");
        again.verify().expect("sound");
        assert_eq!(
            collect(again.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all())),
            content,
            "{name}"
        );
    }
}

/// Names of the columns in the rows of the older file of `dropped`, read as that table.
fn columns_of_dropped(change: impl Fn(&mut TableBuilder)) -> Vec<String> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    let mut names = Vec::new();
    for (_, descriptor) in fixtures().into_iter().filter(|(folder, _)| folder == "dropped") {
        let table = table_of_header(&*disk, &descriptor, "da", "dropped").expect("known types");
        if table.column("gone").is_none() {
            continue;
        }
        let mut builder: TableBuilder = table.into();
        change(&mut builder);
        let table = Arc::new(builder.build().expect("a table"));
        let file = TableFile::open(Arc::clone(&disk), descriptor, &table).expect("opens");
        file.verify().expect("sound");
        for (_, items) in collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all())) {
            for item in items {
                let Unfiltered::Row(row) = item else { continue };
                let ids =
                    row.columns().map(|column| table.column_by_id(column.id).expect("known").name.clone());
                names.extend(ids);
            }
        }
    }
    names.sort();
    names
}

#[test]
fn columns_dropped_since_are_read_over() {
    let all = columns_of_dropped(|_| {});
    assert_eq!(all, ["gone", "gone_map", "stays"]);
    let rest = columns_of_dropped(|table| table.columns.retain(|column| !column.name.starts_with("gone")));
    assert_eq!(rest, ["stays"]);
}

#[test]
fn cells_of_before_a_drop_stay_away_when_the_column_is_added_again() {
    let drop_at = |time: i64| {
        columns_of_dropped(move |table| {
            for column in table.columns.clone().into_iter().filter(|column| column.name.starts_with("gone")) {
                let dropped = schema::DroppedColumn { column: column.clone(), dropped_time_us: time };
                table.dropped_columns.insert(column.name, dropped);
            }
        })
    };
    assert_eq!(drop_at(i64::MAX), ["stays"]);
    assert_eq!(drop_at(0), ["gone", "gone_map", "stays"]);
}
