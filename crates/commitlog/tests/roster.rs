//! What is not there is missed: each segment of several gone, emptied or cut, and the roster itself.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogError, CommitLogOptions, SyncMode, replay};
use common::{DIRECTORY, Found, in_virtual_time, read_all, runtime_over};
use runtime::{Disk, MemoryDisk, OpenMode};

const STREAM: u32 = 2;
const OPTIONS: CommitLogOptions = CommitLogOptions {
    segment_bytes: 4096,
    sync: SyncMode::Group { window: Duration::ZERO },
    segment_above: 0,
    goes_on_after_failure: false,
    spare_segments_max: 2,
    pending_bytes_max: 16 << 20,
};

fn open(disk: &MemoryDisk) -> CommitLog {
    CommitLog::open(&runtime_over(disk), Path::new(DIRECTORY), STREAM, OPTIONS).expect("open")
}

async fn fill(log: &CommitLog, count: usize) {
    for _ in 0..count {
        log.synced(log.append(&[5; 1300]).expect("append")).await.expect("durable");
    }
}

fn path_of(id: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("commitlog-{STREAM}-{id}.log"))
}

fn roster_path() -> PathBuf {
    Path::new(DIRECTORY).join(format!("commitlog-{STREAM}.roster"))
}

fn cut(disk: &MemoryDisk, path: &Path, length: u64) {
    disk.open(path, OpenMode::ReadWrite).expect("open").set_len(length).expect("cut");
}

/// Segments 3 to 5 of five, two of which were let go; closed or as a killed process leaves it.
fn a_log(is_closed: bool) -> MemoryDisk {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk);
        fill(&log, 15).await;
        assert_eq!(log.end().segment, 5);
        let third = commitlog::LogPosition { segment: 3, offset: 0 };
        assert_eq!(log.discard_below(third).await.expect("discarded"), 2);
        if is_closed {
            log.close().await.expect("closed");
        }
    });
    let found = read_all(&disk);
    assert!(found.errors.is_empty() && found.records.len() == 9, "{found:?}");
    disk
}

/// The one error there is.
fn only_error(found: &Found) -> &CommitLogError {
    let [error] = &found.errors[..] else { panic!("{:?}", found.errors) };
    assert!(error.is_damage());
    error
}

#[test]
fn a_segment_that_was_deleted_is_missed() {
    for is_closed in [false, true] {
        for id in 3..=5 {
            let disk = a_log(is_closed).kill();
            disk.remove_file(&path_of(id)).expect("removed");
            let found = read_all(&disk);
            assert!(matches!(only_error(&found), CommitLogError::Missing { path } if *path == path_of(id)));
            assert_eq!(found.records.len(), 6, "the others are read");
            assert!(found.torn.is_empty());
        }
    }
}

#[test]
fn all_segments_together_are_missed_one_by_one() {
    let disk = a_log(false);
    (3..=5).for_each(|id| disk.remove_file(&path_of(id)).expect("removed"));
    let missing: Vec<String> = read_all(&disk).errors.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = (3..=5).map(|id| format!("{} is missing", path_of(id).display())).collect();
    assert_eq!(missing, expected);
}

/// Zero bytes, a part of the header, the header alone, and a part of what is behind it.
#[test]
fn a_segment_that_was_emptied_or_cut_is_told() {
    for is_closed in [false, true] {
        for id in 3..=5 {
            for length in [0, 1, 8, 31, 32, 40, 1000, 2900] {
                let disk = a_log(is_closed).kill();
                cut(&disk, &path_of(id), length);
                let found = read_all(&disk);
                let context = format!("segment {id} cut to {length}, closed: {is_closed}");
                let error = found.errors.first().unwrap_or_else(|| panic!("{context} is not told"));
                assert!(
                    error.is_damage() && error.to_string().contains(&format!("-{id}.log")),
                    "{context}: {error}"
                );
                assert!(found.torn.is_empty(), "{context}");
            }
        }
    }
}

#[test]
fn a_segment_that_was_overwritten_with_zeros_is_told() {
    for id in 3..=5 {
        let disk = a_log(false).kill();
        let file_bytes = disk.file_bytes(&path_of(id)).expect("length");
        cut(&disk, &path_of(id), 0);
        cut(&disk, &path_of(id), file_bytes);
        let found = read_all(&disk);
        assert!(
            !found.errors.is_empty() && found.errors.iter().all(CommitLogError::is_damage),
            "segment {id}"
        );
    }
}

#[test]
fn a_roster_that_is_damaged_or_gone_is_told() {
    let length = a_log(false).file_bytes(&roster_path()).expect("length");
    for offset in 0..length {
        let disk = a_log(false).kill();
        disk.flip_bits(&roster_path(), offset, 1 << (offset % 8)).expect("flip");
        let found = read_all(&disk);
        assert!(matches!(only_error(&found), CommitLogError::Damaged { path, .. } if *path == roster_path()));
        cut(&disk, &roster_path(), offset);
        assert!(matches!(only_error(&read_all(&disk)), CommitLogError::Damaged { .. }), "cut to {offset}");
    }
    let disk = a_log(false);
    disk.remove_file(&roster_path()).expect("removed");
    // Nobody knows that there was one, but the log's owner does.
    assert!(read_all(&disk).errors.is_empty());
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let mut required = replay(&disk, Path::new(DIRECTORY)).expect("listed");
    required.require_rosters([STREAM]);
    let first = required.next().expect("told").expect_err("missing");
    assert!(matches!(first, CommitLogError::Missing { path } if path == roster_path()));
    assert_eq!(required.filter(Result::is_ok).count(), 9);
}

/// Whoever opens a log with a gap has been told, and goes on without what is gone.
#[test]
fn an_opened_log_misses_nothing_any_more_and_repeats_no_id() {
    let disk = a_log(false);
    disk.remove_file(&path_of(5)).expect("removed");
    in_virtual_time(async {
        let log = open(&disk);
        fill(&log, 1).await;
        assert_eq!(log.end().segment, 6);
    });
    let found = read_all(&disk.crash(1));
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert_eq!(found.records.len(), 7);
}

/// Of a version without rosters; with them from its first start on.
#[test]
fn a_log_without_a_roster_is_read_and_gets_one() {
    let disk = a_log(false);
    disk.remove_file(&roster_path()).expect("removed");
    in_virtual_time(async {
        let log = open(&disk);
        fill(&log, 1).await;
    });
    let image = disk.crash(1);
    assert!(read_all(&image).errors.is_empty());
    image.remove_file(&path_of(3)).expect("removed");
    assert!(matches!(only_error(&read_all(&image)), CommitLogError::Missing { .. }));
}

/// A life of a log in which segments begin and go.
async fn live(disk: &MemoryDisk) {
    let log = CommitLog::open(&runtime_over(disk), Path::new(DIRECTORY), STREAM, OPTIONS);
    let Ok(log) = log else { return };
    for _ in 0..12 {
        let Ok(position) = log.append(&[6; 1300]) else { return };
        if log.synced(position).await.is_err() || log.discard_below(log.end()).await.is_err() {
            return;
        }
    }
    _ = log.close().await;
}

/// Wherever the power goes, at the first start or at one that finds a log without an end, nothing is
/// missed that was not taken away.
#[test]
fn no_power_cut_looks_like_a_loss() {
    for before in [MemoryDisk::new(), a_log(false), a_log(true)] {
        let whole = before.kill();
        in_virtual_time(live(&whole));
        let change_count = whole.faults().change_count();
        assert!(change_count > 80, "{change_count}");
        for changes in 0..change_count {
            let disk = before.kill();
            disk.faults().power_off_after(changes);
            in_virtual_time(live(&disk));
            for image in (0..8).map(|seed| disk.crash(seed)).chain([disk.kill()]) {
                let errors = read_all(&image).errors;
                assert!(errors.is_empty(), "after {changes} changes: {errors:?}");
                in_virtual_time(live(&image));
                let errors = read_all(&image).errors;
                assert!(errors.is_empty(), "after {changes} changes and another life: {errors:?}");
            }
        }
    }
}

/// A node that is to be rid of what fills its disk has to start there first.
#[test]
fn a_log_opens_on_a_full_disk_and_gets_its_roster_when_there_is_room() {
    // Closed, so that opening it gives no space back.
    let disk = a_log(true);
    disk.remove_file(&roster_path()).expect("removed");
    in_virtual_time(async {
        disk.faults().set_capacity_bytes(disk.used_bytes());
        let log = open(&disk);
        assert!(!log.has_roster());
        assert!(log.synced(log.append(b"x").expect("in memory")).await.is_err());
        disk.faults().set_capacity_bytes(u64::MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(log.has_roster());
    });
    let disk = disk.crash(1);
    let found = read_all(&disk);
    assert!(found.errors.is_empty() && found.records.len() == 10, "{found:?}");
    disk.remove_file(&path_of(4)).expect("removed");
    assert!(matches!(only_error(&read_all(&disk)), CommitLogError::Missing { .. }));
}

/// There was room for the segment and none for the roster.
#[test]
fn a_full_disk_keeps_a_segment_until_it_can_be_entered() {
    let mut begun_count = 0;
    for room in (0..3000).step_by(8) {
        let disk = MemoryDisk::new();
        in_virtual_time(async {
            disk.faults().set_capacity_bytes(4096 + 100 + room);
            let log = open(&disk);
            fill(&log, 2).await;
            let full = log.synced(log.append(&[7; 1500]).expect("append")).await;
            if full.is_err() && disk.exists(&path_of(2)).expect("looked") {
                begun_count += 1;
            }
            disk.faults().set_capacity_bytes(u64::MAX);
            tokio::time::sleep(Duration::from_secs(1)).await;
            log.synced(log.append(b"room").expect("append")).await.expect("durable");
        });
        let found = read_all(&disk.crash(3));
        assert!(found.errors.is_empty() && found.torn.is_empty(), "{room}: {found:?}");
        assert_eq!(found.records.last().expect("records").payload, "room");
    }
    assert!(begun_count > 0, "it never came to that");
}
