//! A manifest under power cuts, failing disks and changed bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use commitlog::LogPosition;
use proptest::prelude::*;
use ring::Sharding;
use runtime::memory_disk::Fault;
use runtime::{MemoryDisk, OpenMode};
use types::Token;

use super::contents::Contents;
use super::format::{HEADER_BYTES, Kind, encode_header, encode_record};
use super::*;
use crate::state_file::write_state;

const TABLE: TableId = TableId(Uuid::from_u128(1));
const OTHER: TableId = TableId(Uuid::from_u128(2));
/// So many edits outgrow the first checkpoint, and the next.
const STEP_COUNT: u32 = 220;

fn path() -> &'static Path {
    Path::new("/m/shard-0.log")
}

fn open(disk: &MemoryDisk) -> Result<Manifest, StateError> {
    Manifest::open(Arc::new(disk.clone()), path().into())
}

fn found(disk: &MemoryDisk) -> ManifestState {
    open(disk).expect("opens").state().clone()
}

/// A disk with a manifest that says nothing.
fn begun() -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/m")).expect("makes");
    Manifest::create(Arc::new(disk.clone()), path().into(), ManifestState::default()).expect("creates");
    disk
}

fn file(step: u32) -> Uuid {
    Uuid::from_u128(1 << 64 | u128::from(step))
}

fn scope() -> Scope {
    Scope::Shards { sharding: Sharding::new(3, 12).expect("a rule"), shards: BTreeSet::from([0, 2]) }
}

fn token_scope() -> Scope {
    Scope::Tokens { ranges: TokenRanges::new([Token(-5)..=Token::MAX]) }
}

/// A file comes, with a scope now and then, an older one goes; another table comes and is dropped.
fn step(manifest: &Manifest, step: u32) -> Manifest {
    if step == 3 {
        return manifest.with_roster();
    }
    if step % 50 == 9 {
        return manifest.without(OTHER);
    }
    let table = if step % 10 == 8 { OTHER } else { TABLE };
    let flushed = Some(LogPosition { segment: u64::from(step), offset: 40 }.into());
    let named = manifest.files(table);
    let edit = Edit {
        added: vec![file(step)],
        removed: if named.len() > 3 { vec![named[0]] } else { Vec::new() },
        scopes: if step.is_multiple_of(7) {
            BTreeMap::from([(file(step), vec![scope(), token_scope()])])
        } else {
            BTreeMap::new()
        },
        flushed,
    };
    manifest.edited(table, &edit, i64::from(step) * 10)
}

/// Opens the manifest and makes edits until one fails. Gives what was durable, and what was on its way.
fn live(disk: &MemoryDisk) -> (Option<ManifestState>, Option<ManifestState>) {
    let Ok(mut manifest) = open(disk) else { return (None, None) };
    for count in 0..STEP_COUNT {
        let next = step(&manifest, count);
        let tried = next.state().clone();
        match next.write() {
            Ok(written) => manifest = written,
            Err(_) => return (Some(manifest.state().clone()), Some(tried)),
        }
    }
    (Some(manifest.state().clone()), None)
}

#[test]
fn edits_are_found_by_the_next_start_and_the_file_stays_short() {
    let disk = begun();
    let mut manifest = open(&disk).expect("opens");
    let (mut file_bytes, mut replaced_count) = (0, 0);
    for count in 0..STEP_COUNT {
        manifest = step(&manifest, count).write().expect("writes");
        assert_eq!(manifest.read_again().expect("reads"), *manifest.state());
        let before = std::mem::replace(&mut file_bytes, disk.file_bytes(path()).expect("there"));
        replaced_count += u32::from(file_bytes < before);
        assert!(file_bytes < 20 << 10, "{file_bytes} bytes");
    }
    assert!(replaced_count >= 2, "{replaced_count}");
    assert_eq!(found(&disk), *manifest.state());
    assert_eq!(found(&disk.crash(1)), *manifest.state());
    assert!(manifest.state().keeps_roster && manifest.segment_max() == u64::from(STEP_COUNT) - 1);
}

#[test]
fn a_power_cut_leaves_the_last_edit_or_the_one_on_its_way() {
    let whole = begun();
    live(&whole);
    let change_count = whole.faults().change_count();
    assert!(change_count > 3 * u64::from(STEP_COUNT), "{change_count}");
    for cut in 0..change_count {
        let disk = begun();
        disk.faults().power_off_after(cut);
        let (durable, tried) = live(&disk);
        let durable = durable.unwrap_or_default();
        for image in [disk.crash(cut), disk.kill()] {
            let state = found(&image.kill());
            let is_known = state == durable || tried.as_ref() == Some(&state);
            assert!(is_known, "cut after {cut}: {state:?}, durable {durable:?}");
            if cut % 5 == 0 {
                check_goes_on(&image, &state, cut);
            }
        }
    }
}

/// A start that is cut off itself finds nothing else the next time, and an edit follows.
fn check_goes_on(image: &MemoryDisk, state: &ManifestState, seed: u64) {
    for cut in 0..5 {
        let disk = image.kill();
        disk.faults().power_off_after(cut);
        _ = open(&disk);
        let again = found(&disk.crash(seed));
        // What a killed process left in the cache may be gone, but not once a start was over.
        assert!(again == *state || disk.faults().is_off(), "cut {seed}, then {cut}");
    }
    let written = step(&open(image).expect("opens"), 1_000).write().expect("writes");
    assert_eq!(found(&image.crash(seed)), *written.state(), "an edit after cut {seed}");
}

/// What fails is left out by later edits, and what [`Manifest::read_again`] does not know no start finds.
#[test]
fn an_edit_that_failed_is_never_half_true() {
    let whole = begun();
    live(&whole);
    let mut doubtful_count = 0;
    for fault in [Fault::InputOutput, Fault::NoSpace, Fault::ShortWrite { written_bytes: 9 }] {
        for in_a_row in 1..=3 {
            for nth in (0..600).step_by(13 - in_a_row) {
                let disk = begun();
                let opened = open(&disk).expect("opens");
                (0..in_a_row).for_each(|_| disk.faults().fail_nth(None, nth as u64, fault));
                doubtful_count += check_failures(&disk, opened);
            }
        }
    }
    assert!(doubtful_count > 0, "it never came to that");
}

/// Goes on after edits that fail. How often could it not be told whether one was there?
fn check_failures(disk: &MemoryDisk, mut manifest: Manifest) -> u32 {
    let mut doubtful_count = 0;
    // What failed since the last write that did not.
    let mut failed = Vec::new();
    for count in 0..120 {
        let next = step(&manifest, count);
        let tried = next.state().clone();
        match next.write() {
            Ok(written) => {
                manifest = written;
                failed.clear();
            }
            Err(_) => {
                let told = manifest.read_again();
                doubtful_count += u32::from(told.is_err());
                let is_denied = told.is_ok_and(|told| told != tried) && tried != *manifest.state();
                failed.push(tried);
                for image in [disk.kill(), disk.crash(1), disk.crash(2), disk.crash(3)] {
                    let state = found(&image);
                    assert!(state == *manifest.state() || failed.contains(&state), "{state:?}");
                    assert!(!is_denied || failed.last() != Some(&state), "denied and found");
                }
            }
        }
    }
    disk.faults().clear();
    manifest = step(&manifest, 120).write().expect("the disk is well again");
    assert_eq!(found(&disk.kill()), *manifest.state());
    assert_eq!(found(&disk.crash(5)), *manifest.state());
    doubtful_count
}

/// Whoever waited for a write was dropped; the write went on.
#[test]
fn a_write_that_nobody_took_over_is_undone_by_the_next() {
    let disk = begun();
    let manifest = open(&disk).expect("opens");
    drop(step(&manifest, 0).write().expect("writes"));
    let manifest = step(&manifest, 1).write().expect("writes");
    assert_eq!(manifest.files(TABLE), [file(1)]);
    assert_eq!(found(&disk.crash(1)), *manifest.state());
}

/// A manifest of some edits, as a killed process leaves it, and the states on the way.
fn some_edits() -> (MemoryDisk, Vec<ManifestState>) {
    let disk = begun();
    let mut manifest = open(&disk).expect("opens");
    let mut states = vec![manifest.state().clone()];
    for count in 0..8 {
        manifest = step(&manifest, count).write().expect("writes");
        states.push(manifest.state().clone());
    }
    (disk.kill(), states)
}

#[test]
fn a_changed_byte_is_told_with_its_place_and_no_edit_goes_with_it() {
    let (disk, states) = some_edits();
    let file_bytes = disk.file_bytes(path()).expect("there");
    let mut refused_count = 0;
    for offset in 0..file_bytes {
        for mask in [1, 0x80, 0xff] {
            let flipped = disk.kill();
            flipped.flip_bits(path(), offset, mask).expect("flips");
            match open(&flipped) {
                Ok(manifest) => assert_eq!(Some(manifest.state()), states.last(), "byte {offset}"),
                Err(error) => {
                    assert!(error.to_string().contains("/m/shard-0.log is damaged at byte "), "{error}");
                    refused_count += 1;
                }
            }
        }
    }
    // The very last record says only that those before it are durable.
    assert_eq!(refused_count, (file_bytes - 12) * 3);
}

#[test]
fn a_file_cut_anywhere_gives_a_state_that_was_or_none() {
    let (disk, states) = some_edits();
    for length in 0..disk.file_bytes(path()).expect("there") {
        let short = disk.kill();
        short.open(path(), OpenMode::ReadWrite).and_then(|file| file.set_len(length)).expect("cuts");
        if let Ok(manifest) = open(&short) {
            assert!(states.contains(manifest.state()), "cut to {length}");
            let next = step(&manifest, 1_000).write().expect("writes");
            assert_eq!(found(&short.crash(length)), *next.state(), "cut to {length}");
        }
    }
}

/// As a power cut leaves it: the last edit is there, and nothing says that it is durable.
#[test]
fn an_edit_that_a_start_relied_on_is_torn_no_more() {
    let (disk, states) = some_edits();
    let end = disk.file_bytes(path()).expect("there") - 12;
    disk.open(path(), OpenMode::ReadWrite).and_then(|file| file.set_len(end)).expect("cuts");
    let torn = disk.kill();
    torn.flip_bits(path(), end - 1, 1).expect("flips");
    assert_eq!(found(&torn), states[states.len() - 2]);
    assert!(torn.file_bytes(path()).expect("there") < end, "the start cuts off what is torn");
    assert_eq!(Some(&found(&disk)), states.last());
    disk.flip_bits(path(), end - 1, 1).expect("flips");
    assert!(matches!(open(&disk), Err(StateError::DamagedRecord { .. })));
}

fn write(disk: &MemoryDisk, bytes: &[u8]) {
    disk.write_atomically(path(), bytes).expect("writes");
}

#[test]
fn what_a_newer_version_wrote_is_refused_in_words() {
    let disk = begun();
    let sound = disk.read(path()).expect("reads");
    let refused = |bytes: &[u8]| {
        write(&disk, bytes);
        open(&disk).expect_err("refused").to_string()
    };
    let of_kind = |kind, payload: &[u8]| [&sound[..], &encode_record(sound.len(), kind, payload)].concat();
    let mut unknown = of_kind(Kind::Edit, b"");
    let place = sound.len();
    // As of kind 9: the check over place, length and kind.
    unknown[place + 4] = 9;
    let check = crc32fast::hash(&[&(place as u64).to_le_bytes()[..], &[0, 0, 0, 0, 9, 0, 0, 0]].concat());
    unknown[place + 8..].copy_from_slice(&check.to_le_bytes());
    assert!(refused(&unknown).contains("of kind 9, which this program does not know"));
    let mut header = encode_header();
    header[8] = 2;
    let check = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&check.to_le_bytes());
    let newer = [&header[..], &sound[HEADER_BYTES..]].concat();
    assert!(refused(&newer).contains("it is of version 2, this program reads version 1"));
    let error = refused(&of_kind(Kind::Edit, br#"[{"files":{"table":"x","names":1}}]"#));
    assert!(error.contains("can not be read"), "{error}");
}

#[test]
fn sound_records_that_contradict_each_other_are_damage() {
    let disk = begun();
    let sound = disk.read(path()).expect("reads");
    let edit = Edit { removed: vec![file(1)], ..Edit::default() };
    let change = vec![Change::Files { table: TABLE, edit, last_timestamp: 0 }];
    let payload = serde_json::to_vec(&change).expect("encodes");
    write(&disk, &[&sound[..], &encode_record(sound.len(), Kind::Edit, &payload)].concat());
    let error = open(&disk).expect_err("refused").to_string();
    assert!(error.contains("does not fit what is before it: it removes file"), "{error}");
    write(&disk, &[&sound[..], &encode_record(sound.len(), Kind::Checkpoint, b"{}")].concat());
    assert!(open(&disk).expect_err("refused").to_string().contains("a second checkpoint"));
}

#[test]
#[should_panic(expected = "it adds file")]
fn an_edit_that_names_a_file_twice_ends_the_program() {
    let manifest = step(&open(&begun()).expect("opens"), 0);
    _ = step(&manifest, 0);
}

/// What the versions before wrote: every field that one of them had.
const DOCUMENT: &str = r#"{
  "tables": {
    "00000000-0000-0000-0000-000000000001": {
      "files": ["00000000-0000-0001-0000-000000000000", "00000000-0000-0001-0000-000000000001"],
      "scopes": {
        "00000000-0000-0001-0000-000000000001": [
          { "sharding": { "shard_count": 3, "ignore_msb": 12 }, "shards": [0, 2] }
        ]
      },
      "flushed": { "segment": 4, "offset": 40 }
    }
  },
  "last_timestamp": 70
}"#;

fn document_path() -> &'static Path {
    Path::new("/m/shard-0.json")
}

/// A directory of a version that knew documents alone.
fn of_document() -> (MemoryDisk, ManifestState) {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/m")).expect("makes");
    let document: serde_json::Value = serde_json::from_str(DOCUMENT).expect("JSON");
    write_state(&disk, document_path(), &document).expect("writes");
    let state = TableState {
        files: BTreeSet::from([file(0), file(1)]),
        scopes: BTreeMap::from([(file(1), vec![scope()])]),
        flushed: LogPosition { segment: 4, offset: 40 }.into(),
    };
    let tables = BTreeMap::from([(TABLE, state)]);
    (disk, ManifestState { tables, last_timestamp: 70, keeps_roster: false })
}

#[test]
fn a_document_is_carried_over_once_whenever_the_power_goes() {
    let (before, state) = of_document();
    // What an earlier try may have left does not count as long as the document is there.
    let tried = before.kill();
    Manifest::create(Arc::new(tried.clone()), path().into(), ManifestState::default()).expect("creates");
    write_state(&tried, document_path(), &state).expect("writes");
    for before in [before, tried] {
        for cut in 0..12 {
            let disk = before.kill();
            disk.faults().power_off_after(cut);
            let is_over = open(&disk).is_ok();
            let image = disk.crash(cut);
            assert_eq!(found(&image), state, "cut after {cut}");
            assert!(!image.exists(document_path()).expect("asked"), "cut after {cut}");
            assert!(is_over || cut < 11, "{cut}");
            let next = step(&open(&image).expect("opens"), 9).write().expect("writes");
            assert_eq!(found(&image.crash(cut)), *next.state());
        }
    }
}

#[test]
fn a_document_on_a_full_disk_counts_until_there_is_room() {
    let (disk, state) = of_document();
    disk.faults().set_capacity_bytes(disk.used_bytes());
    let manifest = open(&disk).expect("a node has to start");
    assert_eq!(*manifest.state(), state);
    assert!(step(&manifest, 10).write().is_err());
    assert_eq!(manifest.read_again().expect("reads"), state);
    disk.faults().set_capacity_bytes(u64::MAX);
    let written = step(&manifest, 10).write().expect("there is room");
    assert!(!disk.exists(document_path()).expect("asked"));
    assert_eq!(found(&disk.crash(1)), *written.state());
}

/// What the fuzzer begins with. `PERISTYLE_BLESS=1 cargo test -p peristyle-manifest kept_manifest` writes it anew,
/// after the format has changed.
#[test]
#[expect(clippy::disallowed_methods, reason = "a kept file of the repository")]
fn a_kept_manifest_is_read() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/manifest/edits");
    let (disk, states) = some_edits();
    if std::env::var_os("PERISTYLE_BLESS").is_some() {
        let bytes = disk.read(path()).expect("reads");
        std::fs::write(&kept, [&[1], &bytes[..]].concat()).expect("writes");
    }
    let bytes = std::fs::read(&kept).expect("a kept manifest");
    hostile::read(&bytes);
    write(&disk, &bytes[1..]);
    assert_eq!(Some(&found(&disk)), states.last());
}

proptest! {
    #[test]
    fn any_bytes_give_a_state_or_an_error(
        behind in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(prop_oneof![Just(0u8), Just(3), any::<u8>()], 0..200),
        ],
        is_headed in any::<bool>(),
    ) {
        let sound = begun().read(path()).expect("reads");
        let bytes = if is_headed { [&sound[..], &behind].concat() } else { behind };
        (0..2).for_each(|settings| hostile::read(&[&[settings], &bytes[..]].concat()));
        if let Ok(contents) = Contents::read(&bytes, path()) {
            prop_assert!(contents.checkpoint_end <= contents.settled_end);
            prop_assert!(contents.settled_end <= contents.end && contents.end <= bytes.len());
        }
    }

    #[test]
    fn states_and_changes_round_trip(steps in prop::collection::vec(0..60u32, 0..40)) {
        let disk = begun();
        let mut manifest = open(&disk).expect("opens");
        let mut rising: Vec<u32> = steps;
        rising.sort_unstable();
        rising.dedup();
        for count in rising {
            manifest = step(&manifest, count).write().expect("writes");
        }
        prop_assert_eq!(found(&disk), manifest.state().clone());
    }
}

/// Its checks are sound, and it says what no edit leads to.
#[test]
fn a_checkpoint_that_narrows_a_file_which_is_not_named_is_damage() {
    let narrowed = TableState { scopes: BTreeMap::from([(file(1), vec![scope()])]), ..TableState::default() };
    let state = ManifestState { tables: BTreeMap::from([(TABLE, narrowed)]), ..ManifestState::default() };
    let payload = serde_json::to_vec(&state).expect("JSON");
    let mut bytes = encode_header().to_vec();
    bytes.extend(encode_record(HEADER_BYTES, Kind::Checkpoint, &payload));
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/m")).expect("makes");
    disk.write_atomically(path(), &bytes).expect("writes");
    let opened = open(&disk).expect_err("it is refused").to_string();
    assert!(opened.contains("narrows file") && opened.contains("not named"), "{opened}");
}
