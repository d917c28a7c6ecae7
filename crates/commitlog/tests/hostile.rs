//! Kept logs of every sync mode, which are also what the fuzzer begins with.
//!
//! `PERISTYLE_BLESS=1 cargo test -p peristyle-commitlog --test hostile` writes them anew, after the format has changed.
#![expect(clippy::disallowed_methods, reason = "kept files of the repository")]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use commitlog::{CommitLog, CommitLogOptions, SyncMode, hostile};
use common::{DIRECTORY, Found, in_virtual_time, read_all, runtime_over};
use proptest::prelude::*;
use runtime::{Disk, MemoryDisk, OpenMode};

const PERIOD: Duration = Duration::from_secs(10);
/// Behind the `|`: how the log ended.
const KEPT: [(&str, SyncMode, bool); 6] = [
    ("group", SyncMode::Group { window: Duration::ZERO }, false),
    ("group-window", SyncMode::Group { window: Duration::from_millis(2) }, false),
    ("group-closed", SyncMode::Group { window: Duration::ZERO }, true),
    ("periodic", SyncMode::Periodic { period: PERIOD }, false),
    ("batch", SyncMode::Batch, false),
    ("batch-closed", SyncMode::Batch, true),
];

fn payload(stream: u32, index: u8) -> Vec<u8> {
    vec![index * 2 + 1 + stream as u8; usize::from(index) * 60 % 700]
}

/// Two streams, the first of several segments; in `periodic` the last records are not on the disk.
fn a_log(sync: SyncMode, is_closed: bool) -> MemoryDisk {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        for (stream, count) in [(0, 24), (1, 5)] {
            let options = CommitLogOptions { segment_bytes: 4096, sync, ..CommitLogOptions::default() };
            let log =
                CommitLog::open(&runtime_over(&disk), Path::new(DIRECTORY), stream, options).expect("open");
            for index in 0..count {
                let position = log.append(&payload(stream, index)).expect("append");
                if index % 3 == 0 {
                    log.synced(position).await.expect("durable");
                }
                if index == count - 2 {
                    log.sync().await.expect("sync");
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            }
            if is_closed {
                log.close().await.expect("close");
            }
        }
    });
    disk.kill()
}

fn kept_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/commitlog").join(name)
}

fn joined(disk: &MemoryDisk) -> Vec<u8> {
    let entries = disk.list(Path::new(DIRECTORY)).expect("list");
    let files: Vec<(String, Vec<u8>)> = entries
        .into_iter()
        .map(|entry| {
            let bytes = disk.read(&Path::new(DIRECTORY).join(&entry.name)).expect("read");
            (entry.name, bytes)
        })
        .collect();
    hostile::join(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

fn replayed(kept: &[u8]) -> Found {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new(DIRECTORY)).expect("directory");
    for (name, bytes) in hostile::split(kept) {
        let file = disk.open(&Path::new(DIRECTORY).join(name), OpenMode::CreateNew).expect("create");
        file.write_all_at(&bytes, 0).expect("write");
    }
    read_all(&disk)
}

#[test]
fn kept_logs_of_every_sync_mode_are_read() {
    for (name, sync, is_closed) in KEPT {
        if std::env::var_os("PERISTYLE_BLESS").is_some() {
            std::fs::create_dir_all(kept_path("")).expect("directory");
            std::fs::write(kept_path(name), joined(&a_log(sync, is_closed))).expect("write");
        }
        let found = check_kept(name, is_closed);
        assert!(found.records.iter().all(|record| record.version == 2), "{name}");
    }
}

/// Of version 1, one of them from before there were rosters; never written anew.
#[test]
fn kept_logs_of_an_earlier_version_are_read() {
    for (name, is_closed) in
        [("group-without-roster", false), ("version-1-group", false), ("version-1-batch-closed", true)]
    {
        let found = check_kept(name, is_closed);
        assert!(found.records.iter().all(|record| record.version == 1), "{name}");
    }
}

fn check_kept(name: &str, is_closed: bool) -> Found {
    let kept = std::fs::read(kept_path(name)).expect("kept log");
    hostile::read(&kept);
    let found = replayed(&kept);
    assert!(found.errors.is_empty() && found.torn.is_empty(), "{name}: {found:?}");
    let records: Vec<_> = found.records.iter().map(|r| (r.stream, r.payload.to_vec())).collect();
    let all: Vec<_> = (0..24)
        .map(|index| (0, payload(0, index)))
        .chain((0..5).map(|index| (1, payload(1, index))))
        .collect();
    let lost = all.iter().filter(|record| !records.contains(record)).count();
    assert!(records.iter().all(|record| all.contains(record)), "{name}");
    assert!(lost <= if is_closed { 0 } else { 2 }, "{name}: only what nobody waited for, not {lost}");
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_hurt_in_one_place_gives_all_the_rest_and_tells_where(
        harm in any::<[u8; 5]>(),
        acts in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        hostile::read(&[&[1], &harm[..], &acts[..]].concat());
    }

    #[test]
    fn any_files_are_read_and_read_alike(
        is_corrected in any::<bool>(),
        files in prop::collection::vec(
            (0..4_u8, 0..4_u8, prop::collection::vec(prop_oneof![2 => Just(0_u8), 1 => any::<u8>()], 0..200)),
            0..6,
        ),
    ) {
        let mut bytes = vec![u8::from(is_corrected) * 2];
        for (stream, id, file) in files {
            bytes.extend([stream | id << 2, file.len() as u8, 0, 0]);
            bytes.extend(file);
        }
        hostile::read(&bytes);
    }
}
