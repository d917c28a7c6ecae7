//! Files of the format `big` that Cassandra 5.0.9 wrote, read every way there is.

use std::sync::Arc;

use proptest::prelude::*;
use rows::{
    Bound, BoundKind, Clustering, ClusteringBuilder, PartitionKey, RingPlace, RingRange, Slice, Slices,
    Unfiltered,
};
use runtime::{Disk, MemoryDisk, OpenMode, OsDisk};

use crate::fixture_tests::{Partitions, big_fixtures, collect, renumbered, write};
use crate::statistics::{StatisticsChange, change_statistics};
use crate::{
    Component, Descriptor, DirectChunks, KeyHash, SstableError, TableFile, Version, WriterOptions, hostile,
    table_of_header, write_checksums,
};

fn disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk::new())
}

fn open(name: &str, descriptor: &Descriptor) -> Arc<TableFile> {
    let table = renumbered(table_of_header(&*disk(), descriptor, "big", name).expect("known types"));
    TableFile::open(disk(), descriptor.clone(), &table).expect("opens")
}

fn all(file: &Arc<TableFile>) -> Partitions {
    collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all()))
}

/// The same partitions in a `da` file, which is tested elsewhere.
fn as_da(name: &str, descriptor: &Descriptor, content: &Partitions) -> Arc<TableFile> {
    let table = renumbered(table_of_header(&*disk(), descriptor, "big", name).expect("known types"));
    let memory: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let ours = Descriptor::new("/ours", descriptor.id);
    let options = WriterOptions { row_index_block_bytes: 1000, ..WriterOptions::for_table(&table) };
    write(&memory, &ours, &table, options, content);
    TableFile::open(memory, ours, &table).expect("opens")
}

#[test]
fn every_file_is_whole_and_counts_its_partitions() {
    for (name, descriptor) in big_fixtures() {
        let file = open(&name, &descriptor);
        file.verify().unwrap_or_else(|error| panic!("{name} {}: {error}", descriptor.version));
        let content = all(&file);
        assert_eq!(content.len() as u64, file.summary().partition_count, "{name}");
        assert_eq!(content.first().expect("some").0.key, file.summary().first_key, "{name}");
        assert_eq!(content.last().expect("some").0.key, file.summary().last_key, "{name}");
    }
}

/// Places to slice at: of rows and markers, some of them.
fn places(items: &[Unfiltered]) -> Vec<Clustering> {
    let step = 1 + items.len() / 23;
    let place = |item: &Unfiltered| match item {
        Unfiltered::Row(row) => row.clustering(),
        Unfiltered::Marker(marker) => marker.prefix.clone(),
    };
    items.iter().step_by(step).map(place).collect()
}

fn slice(pair: (&Clustering, &Clustering), inclusive: bool) -> Slice {
    let (start, end) = match inclusive {
        true => (BoundKind::InclusiveStart, BoundKind::InclusiveEnd),
        false => (BoundKind::ExclusiveStart, BoundKind::ExclusiveEnd),
    };
    let bound = |kind, prefix: &Clustering| Bound { kind, prefix: prefix.clone() };
    Slice { start: bound(start, pair.0), end: bound(end, pair.1) }
}

#[test]
fn slices_of_big_are_those_of_da_in_both_directions() {
    for (name, descriptor) in big_fixtures() {
        let file = open(&name, &descriptor);
        let content = all(&file);
        let same = as_da(&name, &descriptor, &content);
        assert_eq!(all(&same), content, "{name}");
        for (header, items) in content.iter().filter(|(_, items)| items.len() > 1).take(8) {
            let places = places(items);
            let mut wanted: Vec<Slices> = vec![Slices::all(), Slices::none()];
            for (index, place) in places.iter().enumerate() {
                let later = &places[(index + 3).min(places.len() - 1)];
                for inclusive in [false, true] {
                    let one = slice((place, place), inclusive);
                    let run = slice((place, later), inclusive);
                    let from = Slice { start: run.start.clone(), end: Bound::TOP };
                    let until = Slice { start: Bound::BOTTOM, end: run.end.clone() };
                    for slice in [one, run, from, until] {
                        wanted.push(Slices::new(vec![slice], &file.layout().comparator));
                    }
                }
            }
            let spread = places.chunks(4).map(|part| slice((&part[0], &part[0]), true)).collect();
            wanted.push(Slices::new(spread, &file.layout().comparator));
            for slices in &wanted {
                for reversed in [false, true] {
                    let read = |file: &Arc<TableFile>| {
                        collect(file.partition_cursor(
                            DirectChunks::new(),
                            &header.key,
                            KeyHash::of(&header.key.bytes),
                            slices,
                            reversed,
                        ))
                    };
                    assert_eq!(read(&file), read(&same), "{name} {slices:?} reversed: {reversed}");
                }
            }
        }
    }
}

#[test]
fn ranges_of_the_ring_begin_and_end_where_they_should() {
    for (name, descriptor) in big_fixtures().into_iter().filter(|(name, _)| name == "many") {
        let file = open(&name, &descriptor);
        let keys: Vec<PartitionKey> = all(&file).into_iter().map(|(header, _)| header.key).collect();
        for step in [1, 127, 128, 129, 1000] {
            for (index, key) in keys.iter().enumerate().step_by(step * 61 + 1) {
                let end = (index + step).min(keys.len() - 1);
                let range = RingRange {
                    start: RingPlace::BeforeKey(key.clone()),
                    end: RingPlace::AfterKey(keys[end].clone()),
                };
                for slices in [Slices::all(), Slices::none()] {
                    let found = collect(file.scan(DirectChunks::new(), &range, &slices));
                    let found: Vec<_> = found.into_iter().map(|(header, _)| header.key).collect();
                    assert_eq!(found, keys[index..=end]);
                }
            }
        }
        let absent = PartitionKey::new(bytes::Bytes::from_static(b"absent"));
        assert_eq!(
            collect(file.partition_cursor(
                DirectChunks::new(),
                &absent,
                KeyHash::of(&absent.bytes),
                &Slices::all(),
                false
            )),
            []
        );
    }
}

/// A copy of a fixture in memory.
fn copy(name: &str, version: Version) -> (MemoryDisk, Descriptor) {
    let is_wanted = |found: &(String, Descriptor)| found.0 == name && found.1.version == version;
    let (_, theirs) = big_fixtures().into_iter().find(is_wanted).expect("a fixture");
    let (memory, ours) = (MemoryDisk::new(), Descriptor::of_version("/copy", theirs.id, version));
    memory.create_dir_all("/copy".as_ref()).expect("made");
    for component in Component::ALL {
        if let Ok(bytes) = disk().read(&theirs.path(component)) {
            let file = memory.open(&ours.path(component), OpenMode::CreateNew).expect("new");
            file.write_all_at(&bytes, 0).expect("written");
        }
    }
    (memory, ours)
}

fn verify(memory: &MemoryDisk, descriptor: &Descriptor) -> Result<Arc<TableFile>, SstableError> {
    let table = Arc::new(table_of_header(memory, descriptor, "big", "t")?);
    let file = TableFile::open(Arc::new(memory.clone()), descriptor.clone(), &table)?;
    file.verify()?;
    Ok(file)
}

#[test]
fn summary_is_made_anew_when_it_is_missing_or_makes_no_sense() {
    for version in [Version::Nb, Version::Oa] {
        let (memory, descriptor) = copy("many", version);
        let whole = verify(&memory, &descriptor).expect("sound");
        let kept = whole.finder().summary().expect("one").clone();
        let path = descriptor.path(Component::Summary);
        memory.flip_bits(&path, 30, 0xff).expect("flips");
        let again = verify(&memory, &descriptor).expect("made anew");
        assert_eq!(again.finder().summary().expect("one"), &kept);
    }
}

#[test]
fn every_flipped_bit_of_an_adopted_file_is_found() {
    for (name, version) in
        [("compressed_none", Version::Nb), ("wide", Version::Oa), ("compound", Version::Nb)]
    {
        let (memory, descriptor) = copy(name, version);
        write_checksums(&memory, &descriptor).expect("adopted");
        verify(&memory, &descriptor).expect("as written");
        for component in Component::ALL {
            let path = descriptor.path(component);
            let Ok(length) = memory.file_bytes(&path) else { continue };
            for offset in (0..length).step_by(1 + length as usize / 25) {
                memory.flip_bits(&path, offset, 0x10).expect("flips");
                assert!(verify(&memory, &descriptor).is_err(), "{name} {component} at {offset}");
                memory.flip_bits(&path, offset, 0x10).expect("flips back");
            }
        }
    }
}

#[test]
fn level_and_repair_can_change() {
    for version in [Version::Nb, Version::Oa] {
        let (memory, descriptor) = copy("tombstones", version);
        let change = StatisticsChange { level: Some(3), repaired_at: Some(77), pending_repair: Some(None) };
        change_statistics(&memory, &descriptor, change).expect("changes");
        let file = verify(&memory, &descriptor).expect("sound");
        assert_eq!((file.summary().level, file.summary().repaired_at), (3, 77));
        let session = uuid::Uuid::from_u128(5);
        let change = StatisticsChange { pending_repair: Some(Some(session)), ..StatisticsChange::default() };
        change_statistics(&memory, &descriptor, change).expect("changes");
        let file = verify(&memory, &descriptor).expect("sound");
        assert_eq!((file.summary().level, file.summary().pending_repair), (3, Some(session)));
    }
}

/// The parts of a fixture, as the fuzzer takes them.
fn parts(name: &str, version: Version) -> Vec<Vec<u8>> {
    let (memory, descriptor) = copy(name, version);
    let read = |component| memory.read(&descriptor.path(component)).expect("there");
    let file = verify(&memory, &descriptor).expect("sound");
    let chunks = file.chunks().data().read(0, usize::MAX).expect("sound");
    let data = chunks.iter().flat_map(|chunk| chunk.as_slice()).copied().collect();
    vec![read(Component::Statistics), read(Component::Index), read(Component::Summary), data]
}

fn read_hostile(parts: &[Vec<u8>], version: Version) {
    hostile::read_big(&hostile::join(&parts[0], &parts[1], &parts[2], &parts[3]), version);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_without_checksums_never_panic(
        name in prop::sample::select(vec!["tombstones", "hundred_columns", "wide_text", "every_type", "wide"]),
        version in prop::sample::select(vec![Version::Nb, Version::Oa]),
        part in 0..4usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut parts = parts(name, version);
        for (index, value) in flips {
            let index = index.index(parts[part].len());
            parts[part][index] = value;
        }
        if let Some(cut) = cut {
            let length = cut.index(parts[part].len() + 1);
            parts[part].truncate(length);
        }
        read_hostile(&parts, version);
    }
}

#[test]
fn every_byte_of_small_files_can_be_anything() {
    for version in [Version::Nb, Version::Oa] {
        let whole = parts("tombstones", version);
        for part in 0..4 {
            let length = whole[part].len();
            for index in (0..length).step_by(1 + length / 60) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut parts = whole.clone();
                    parts[part][index] = value;
                    read_hostile(&parts, version);
                }
            }
        }
    }
}

#[test]
fn a_clustering_that_no_row_has_finds_its_place() {
    let is_wide = |found: &(String, Descriptor)| found.0 == "wide";
    for (name, descriptor) in big_fixtures().into_iter().filter(is_wide) {
        let file = open(&name, &descriptor);
        let content = all(&file);
        let same = as_da(&name, &descriptor, &content);
        let (header, _) = content.iter().max_by_key(|(_, items)| items.len()).expect("some");
        for c in (-3..6100i32).step_by(37) {
            let mut place = ClusteringBuilder::new();
            place.push(Some(&c.to_be_bytes()));
            let place = place.finish();
            let slices = Slices::new(vec![slice((&place, &place), true)], &file.layout().comparator);
            for reversed in [false, true] {
                let read = |file: &Arc<TableFile>| {
                    collect(file.partition_cursor(
                        DirectChunks::new(),
                        &header.key,
                        KeyHash::of(&header.key.bytes),
                        &slices,
                        reversed,
                    ))
                };
                assert_eq!(read(&file), read(&same), "{c} reversed: {reversed}");
            }
        }
    }
}
