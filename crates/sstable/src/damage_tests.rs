//! Flipped and cut bytes: told when there are checksums, survived when there are none.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use runtime::{Disk, MemoryDisk, OpenMode, OsDisk};

use crate::fixture_tests::fixtures;
use crate::statistics::{StatisticsChange, change_statistics};
use crate::{Component, Descriptor, SstableError, TableFile, hostile, table_of_header, write_checksums};

fn fixture(name: &str) -> Descriptor {
    fixtures().into_iter().find(|(folder, _)| folder == name).expect("a fixture of that name").1
}

/// A copy of a fixture in memory, with or without our checksums.
fn copy(name: &str, with_checksums: bool) -> (MemoryDisk, Descriptor) {
    let (theirs, disk) = (fixture(name), MemoryDisk::new());
    let ours = Descriptor::new("/copy", theirs.id);
    disk.create_dir_all(Path::new("/copy")).expect("made");
    for component in Component::ALL {
        if let Ok(bytes) = OsDisk::new().read(&theirs.path(component)) {
            let file = disk.open(&ours.path(component), OpenMode::CreateNew).expect("new");
            file.write_all_at(&bytes, 0).expect("written");
        }
    }
    if with_checksums {
        write_checksums(&disk, &ours).expect("adopted");
    }
    (disk, ours)
}

fn verify(disk: &MemoryDisk, descriptor: &Descriptor) -> Result<(), SstableError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    // The table comes from the undamaged file, as a schema would.
    let table = Arc::new(table_of_header(&OsDisk::new(), &fixture_of(descriptor), "da", "t")?);
    TableFile::open(disk, descriptor.clone(), &table)?.verify()
}

fn fixture_of(descriptor: &Descriptor) -> Descriptor {
    fixtures().into_iter().find(|(_, other)| other.id == descriptor.id).expect("a copy of a fixture").1
}

#[test]
fn every_flipped_bit_of_an_adopted_file_is_found() {
    for name in ["compressed_none", "compound", "wide"] {
        let (disk, descriptor) = copy(name, true);
        verify(&disk, &descriptor).expect("as written");
        for component in Component::ALL {
            let path = descriptor.path(component);
            let Ok(length) = disk.file_bytes(&path) else { continue };
            let step = 1 + length / 25;
            for offset in (0..length).step_by(step as usize) {
                disk.flip_bits(&path, offset, 0x10).expect("flips");
                let error = verify(&disk, &descriptor).expect_err("damage is told");
                assert!(error.is_damage() || matches!(error, SstableError::Unsupported { .. }), "{error}");
                disk.flip_bits(&path, offset, 0x10).expect("flips back");
            }
        }
        verify(&disk, &descriptor).expect("as written");
    }
}

#[test]
fn what_no_read_needs_is_checked_when_a_file_is_opened() {
    let (disk, descriptor) = copy("wide", true);
    let table = Arc::new(table_of_header(&disk, &descriptor, "da", "t").expect("known types"));
    for component in [Component::Toc, Component::Digest] {
        let path = descriptor.path(component);
        for offset in 0..disk.file_bytes(&path).expect("there") {
            disk.flip_bits(&path, offset, 0x01).expect("flips");
            let opened = TableFile::open(Arc::new(disk.clone()), descriptor.clone(), &table);
            assert!(opened.is_err_and(|error| error.is_damage()), "{component} at {offset}");
            disk.flip_bits(&path, offset, 0x01).expect("flips back");
        }
    }
}

#[test]
fn level_and_repair_can_change_in_a_finished_file() {
    let (disk, descriptor) = copy("compound", true);
    let change = StatisticsChange { level: Some(3), repaired_at: Some(77), pending_repair: None };
    change_statistics(&disk, &descriptor, change).expect("changes");
    verify(&disk, &descriptor).expect("sound");
    let table = Arc::new(table_of_header(&disk, &descriptor, "da", "t").expect("known types"));
    let file = TableFile::open(Arc::new(disk), descriptor, &table).expect("opens");
    assert_eq!((file.summary().level, file.summary().repaired_at), (3, 77));
}

#[test]
fn missing_and_cut_components_are_told() {
    for component in Component::ALL {
        let (disk, descriptor) = copy("wide", true);
        let path = descriptor.path(component);
        if !disk.exists(&path).expect("asked") {
            continue;
        }
        let file = disk.open(&path, OpenMode::ReadWrite).expect("there");
        let length = file.len().expect("known");
        file.set_len(length / 2).expect("cut");
        assert!(verify(&disk, &descriptor).is_err(), "{component} cut");
        disk.remove_file(&path).expect("removed");
        assert!(verify(&disk, &descriptor).is_err(), "{component} missing");
    }
}

/// The parts of a fixture, as the fuzzer takes them.
fn parts(name: &str) -> Vec<Vec<u8>> {
    let descriptor = fixture(name);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    let read = |component| disk.read(&descriptor.path(component)).expect("there");
    let table = Arc::new(table_of_header(&*disk, &descriptor, "da", name).expect("known types"));
    let file = TableFile::open(Arc::clone(&disk), descriptor.clone(), &table).expect("opens");
    let chunks = file.chunks().data().read(0, usize::MAX).expect("sound");
    let data = chunks.iter().flat_map(|chunk| chunk.as_slice()).copied().collect();
    vec![read(Component::Statistics), read(Component::Partitions), read(Component::Rows), data]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_without_checksums_never_panic(
        name in prop::sample::select(vec!["tombstones", "hundred_columns", "wide_text", "every_type", "compound"]),
        part in 0..4usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut parts = parts(name);
        for (index, value) in flips {
            if !parts[part].is_empty() {
                let index = index.index(parts[part].len());
                parts[part][index] = value;
            }
        }
        if let Some(cut) = cut {
            let length = cut.index(parts[part].len() + 1);
            parts[part].truncate(length);
        }
        hostile::read(&hostile::join(&parts[0], &parts[1], &parts[2], &parts[3]));
    }
}

#[test]
fn every_byte_of_small_files_can_be_anything() {
    for name in ["tombstones", "compound"] {
        let whole = parts(name);
        for part in 0..4 {
            let length = whole[part].len();
            for index in (0..length).step_by(1 + length / 100) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut parts = whole.clone();
                    parts[part][index] = value;
                    hostile::read(&hostile::join(&parts[0], &parts[1], &parts[2], &parts[3]));
                }
            }
        }
    }
}
