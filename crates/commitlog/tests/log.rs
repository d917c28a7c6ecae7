//! The log's behaviour, on a memory disk and in virtual time.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use commitlog::{CommitLog, CommitLogError, CommitLogOptions, LogEvent, LogPosition, SyncMode, replay_from};
use common::{DIRECTORY, SMALL, in_virtual_time, open, read_all, runtime_over};
use runtime::memory_disk::{Fault, Operation};
use runtime::{Disk, Io, MemoryDisk, Runtime};

#[test]
fn records_come_back_in_order_over_restarts_and_segments() {
    let disk = MemoryDisk::new();
    let mut written = Vec::new();
    for round in 0..3_u8 {
        in_virtual_time(async {
            let log = open(&disk, 5, SMALL);
            for index in 0..20_u8 {
                let payload = vec![round * 20 + index; usize::from(index) * 30];
                let position =
                    log.append_parts(&[&payload[..payload.len() / 2], &payload[payload.len() / 2..]]);
                written.push((position.expect("append"), payload));
            }
            if round == 1 {
                log.sync().await.expect("sync");
            } else {
                log.close().await.expect("close");
                assert!(matches!(log.append(b"late"), Err(CommitLogError::Closed)));
            }
        });
    }
    let found = read_all(&disk);
    assert!(found.errors.is_empty() && found.torn.is_empty(), "{found:?}");
    let replayed: Vec<_> = found.records.iter().map(|r| (r.position, r.payload.to_vec())).collect();
    assert_eq!(replayed, written);
    assert!(written.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(written.last().expect("records").0.segment >= 6, "several segments each time");

    let from = written[30].0;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let tail: Vec<_> = replay_from(&disk, Path::new(DIRECTORY), |_| from)
        .expect("list")
        .map(|record| record.expect("sound").position)
        .collect();
    assert_eq!(tail.len(), written.len() - 30);
    assert_eq!(tail[0], from);
}

/// With `periodic`, a kill lost records older than the period when the disk took longer for a sync than
/// that: they waited for it in memory.
#[test]
fn what_is_appended_during_a_slow_sync_is_written_before_the_sync_is_over() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let runtime = Runtime { io: Io::delayed(Duration::from_secs(1)), ..runtime_over(&disk) };
        let sync = SyncMode::Periodic { period: Duration::from_millis(100) };
        let log = CommitLog::open(&runtime, Path::new(DIRECTORY), 0, CommitLogOptions { sync, ..SMALL })
            .expect("open");
        // The first second goes by with the segment's creation.
        tokio::time::sleep(Duration::from_millis(1_001)).await;
        log.append(b"first").expect("append");
        // Written from 0.1 to 1.1 s from here on, synced from 1.1 to 2.1 s.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        log.append(b"second").expect("append");
        assert!(log.statistics().pending_bytes > 0);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(log.statistics().pending_bytes, 0, "the second is on its way");
        assert_eq!(log.statistics().sync_count, 0, "the first sync goes on");
        log.sync().await.expect("durable");
        assert_eq!(log.statistics().sync_count, 2);
    });
    assert_eq!(read_all(&disk.crash(1)).records.len(), 2);
}

#[test]
fn all_who_wait_during_a_sync_share_the_next() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        // The segment is being created, for 3 ms.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let first = log.append(b"first").expect("append");
        let (position, first) = (first, log.synced(first));
        // The sync of the first is under way when the others come.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let same = log.synced(position);
        let others: Vec<_> = (0..10).map(|index| log.synced(log.append(&[index]).expect("append"))).collect();
        first.await.expect("durable");
        same.await.expect("durable by the same sync");
        assert_eq!(log.statistics().sync_count, 1);
        for other in others {
            other.await.expect("durable");
        }
        assert_eq!(log.statistics().sync_count, 2);
        assert_eq!((log.statistics().record_count, log.statistics().record_bytes), (11, 15));
    });
}

#[test]
fn periodic_answers_at_once_and_syncs_within_the_period() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let period = Duration::from_secs(10);
        let log = open(&disk, 0, CommitLogOptions { sync: SyncMode::Periodic { period }, ..SMALL });
        let start = tokio::time::Instant::now();
        let position = log.append(b"soon").expect("append");
        log.synced(position).await.expect("at once");
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(read_all(&disk).records.is_empty());
        tokio::time::sleep(period + Duration::from_millis(10)).await;
        assert_eq!(log.statistics().sync_count, 1);
        for seed in 0..20 {
            assert_eq!(read_all(&disk.crash(seed)).records.len(), 1);
        }
        let now = tokio::time::Instant::now();
        log.append(b"now").expect("append");
        log.sync().await.expect("sync");
        assert!(now.elapsed() < Duration::from_millis(10));
        assert_eq!(read_all(&disk.crash(1)).records.len(), 2);
    });
}

#[test]
fn writers_wait_when_a_record_has_waited_for_more_than_one_and_a_half_periods() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let runtime = Runtime { io: Io::delayed(Duration::from_secs(10)), ..runtime_over(&disk) };
        let sync = SyncMode::Periodic { period: Duration::from_secs(1) };
        let log = CommitLog::open(&runtime, Path::new(DIRECTORY), 0, CommitLogOptions { sync, ..SMALL })
            .expect("open");
        // The first ten seconds go by with the segment's creation.
        tokio::time::sleep(Duration::from_millis(10_001)).await;
        let position = log.append(b"waits").expect("append");
        let answers_at_once = || [log.is_synced(position), log.takes_at_once(1, runtime.clock.elapsed())];
        tokio::time::sleep(Duration::from_millis(1_400)).await;
        assert_eq!(answers_at_once(), [true, true]);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(answers_at_once(), [false, false]);
    });
}

/// What waits in memory would be beyond any budget if the bound did not go with the segment's size.
#[test]
fn writers_wait_when_half_a_segment_waits_for_the_disk() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let runtime = Runtime { io: Io::delayed(Duration::from_secs(1)), ..runtime_over(&disk) };
        let segment_bytes = 2 << 20;
        let sync = SyncMode::Periodic { period: Duration::from_secs(60) };
        let options = CommitLogOptions { segment_bytes, sync, ..SMALL };
        let log = CommitLog::open(&runtime, Path::new(DIRECTORY), 0, options).expect("open");
        let record = vec![1; 64 << 10];
        let position = loop {
            let position = log.append(&record).expect("append");
            if !log.is_synced(position) {
                break position;
            }
        };
        let pending = log.statistics().pending_bytes as usize;
        let half = segment_bytes as usize / 2;
        assert!((half..half + 2 * record.len()).contains(&pending), "{pending} bytes wait");
        assert!(!log.takes_at_once(1, runtime.clock.elapsed()));
        let start = tokio::time::Instant::now();
        log.synced(position).await.expect("durable");
        assert!(start.elapsed() < Duration::from_secs(10), "the sync begins at once");
        assert!(log.takes_at_once(1, runtime.clock.elapsed()));
    });
}

/// Who waits for nothing but the period depends on the log's task being woken, also by a record that begins a segment.
#[test]
fn a_record_that_begins_a_segment_after_a_rest_is_synced_within_the_period() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let period = Duration::from_millis(100);
        let log = open(&disk, 0, CommitLogOptions { sync: SyncMode::Periodic { period }, ..SMALL });
        let record = vec![1; log.record_bytes_max()];
        let first = log.append(&record).expect("append");
        let mut segment = first.segment;
        let mut record_count = 1;
        while segment == first.segment {
            // Everything is written, synced and marked: the task sleeps until it is woken.
            tokio::time::sleep(10 * period).await;
            segment = log.append(&record).expect("append").segment;
            record_count += 1;
        }
        tokio::time::sleep(2 * period).await;
        for seed in 0..20 {
            assert_eq!(read_all(&disk.crash(seed)).records.len(), record_count, "seed {seed}");
        }
    });
}

#[test]
fn a_record_larger_than_half_a_segment_is_refused() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        let limit = log.record_bytes_max();
        assert!((1900..2048).contains(&limit));
        log.append(&vec![1; limit]).expect("fits");
        let refused = log.append(&vec![1; limit + 1]);
        assert!(matches!(refused, Err(CommitLogError::RecordTooLarge { .. })), "{refused:?}");
        let tiny = CommitLogOptions { segment_bytes: 100, ..SMALL };
        let refused = CommitLog::open(&runtime_over(&disk), Path::new(DIRECTORY), 9, tiny);
        assert!(matches!(refused, Err(CommitLogError::BadSegmentBytes { .. })));
    });
}

/// Its owner takes something for flushed that is still to be written.
#[test]
#[should_panic(expected = "only what was appended is given up")]
fn giving_up_what_is_still_to_come_ends_the_program() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        let end = log.end();
        _ = log.discard_below(LogPosition { offset: end.offset + 4, ..end }).await;
    });
}

#[test]
fn discarded_segments_go_and_ids_never_repeat() {
    let disk = MemoryDisk::new();
    let last = in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        let mut last = LogPosition::START;
        for _ in 0..10 {
            last = log.append(&[7; 1500]).expect("append");
        }
        log.sync().await.expect("sync");
        assert_eq!(log.statistics().segment_count, 5);
        assert_eq!(log.discard_below(LogPosition { segment: 3, offset: 0 }).await.expect("discard"), 2);
        assert_eq!(log.statistics().segment_count, 3);
        log.close().await.expect("close");
        last
    });
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        // Everything is flushed; the greatest id stays all the same.
        assert_eq!(log.discard_below(log.end()).await.expect("discard"), 2);
        assert_eq!(log.statistics().segment_count, 1);
    });
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        let position = log.append(b"later").expect("append");
        assert!(position.segment > last.segment);
        let other = open(&disk, 1, CommitLogOptions { segment_above: 40, ..SMALL });
        assert_eq!(other.append(b"first").expect("append").segment, 41);
    });
}

/// The names of segments that are kept to be written again.
fn spares(disk: &MemoryDisk) -> Vec<String> {
    let names = disk.list(Path::new(DIRECTORY)).expect("list").into_iter().map(|entry| entry.name);
    names.filter(|name| name.ends_with(".spare")).collect()
}

#[test]
fn segments_are_written_again_and_what_they_held_does_not_come_back() {
    let disk = MemoryDisk::new();
    let fill = async |log: &CommitLog, mark: u8, count: usize| {
        for _ in 0..count {
            log.synced(log.append(&[mark; 700]).expect("append")).await.expect("durable");
        }
    };
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        fill(&log, 1, 20).await;
        let end = log.end().segment;
        assert!(end >= 4);
        log.discard_below(log.end()).await.expect("discarded");
        assert_eq!(spares(&disk).len(), 2, "as many as are wanted");
        assert_eq!(log.statistics().spare_count, 2);
        fill(&log, 2, 5).await;
        assert_eq!((spares(&disk).len(), log.statistics().spare_count), (1, 1), "one is written again");
    });
    for image in [disk.kill(), disk.crash(1)] {
        let found = read_all(&image);
        assert!(found.errors.is_empty() && found.torn.is_empty(), "{found:?}");
        // Of the first life the greatest segment stays; what the one that is written again held is gone.
        let marks: Vec<u8> = found.records.iter().map(|record| record.payload[0]).collect();
        assert_eq!(marks, [[1; 5], [2; 5]].concat());
    }
    in_virtual_time(async {
        // The next life finds the other one.
        let log = open(&disk, 0, SMALL);
        fill(&log, 3, 1).await;
        assert_eq!(log.statistics().spare_count, 0);
        fill(&log, 3, 9).await;
        log.discard_below(log.end()).await.expect("discarded");
        assert_eq!(log.statistics().spare_count, 2);
        log.give_up_spares().await.expect("deleted");
        assert_eq!((spares(&disk).len(), log.statistics().spare_count), (0, 0));
    });
    in_virtual_time(async {
        let log = open(&disk, 0, CommitLogOptions { spare_segments_max: 0, ..SMALL });
        fill(&log, 4, 10).await;
        log.discard_below(log.end()).await.expect("discarded");
        assert_eq!(spares(&disk).len(), 0, "none are wanted");
    });
}

/// Somebody tidied up.
#[test]
fn a_spare_that_is_gone_is_none() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        let append = async || {
            for _ in 0..9 {
                log.synced(log.append(&[1; 1300]).expect("append")).await.expect("durable");
            }
        };
        append().await;
        log.discard_below(log.end()).await.expect("discarded");
        for name in spares(&disk) {
            disk.remove_file(&Path::new(DIRECTORY).join(name)).expect("there");
        }
        append().await;
        assert_eq!(log.statistics().spare_count, 0);
    });
}

#[test]
fn a_full_disk_leaves_a_spare_what_it_is() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        for _ in 0..9 {
            log.synced(log.append(&[1; 1300]).expect("append")).await.expect("durable");
        }
        log.discard_below(log.end()).await.expect("discarded");
        assert_eq!(log.statistics().spare_count, 2);
        // The spares were cut behind their ends: to be written again they have to grow.
        disk.faults().set_capacity_bytes(1);
        let mut full = None;
        for _ in 0..3 {
            full = log.append(&[2; 1300]).err();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(matches!(full, Some(CommitLogError::DiskFull { .. })), "{full:?}");
        assert_eq!(log.statistics().spare_count, 2);
        disk.faults().set_capacity_bytes(u64::MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.synced(log.append(&[3; 1300]).expect("room again")).await.expect("durable");
        assert!(log.statistics().spare_count < 2);
    });
    let found = read_all(&disk.crash(3));
    assert!(found.errors.is_empty() && found.torn.is_empty(), "{found:?}");
}

#[test]
fn a_failed_sync_ends_the_log_and_acknowledges_nothing() {
    for operation in [Operation::Sync, Operation::Write] {
        let disk = MemoryDisk::new();
        in_virtual_time(async {
            let log = open(&disk, 0, SMALL);
            log.synced(log.append(b"good").expect("append")).await.expect("durable");
            disk.faults().fail_nth(Some(operation), 0, Fault::InputOutput);
            let lost = log.synced(log.append(b"lost").expect("append"));
            let outcome = lost.await;
            assert!(matches!(outcome, Err(CommitLogError::Failed { .. })), "{outcome:?}");
            assert!(matches!(log.append(b"more"), Err(CommitLogError::Failed { .. })));
            assert!(log.sync().await.is_err());
            assert!(log.close().await.is_err());
        });
        for seed in 0..50 {
            let found = read_all(&disk.crash(seed));
            assert_eq!(found.records[0].payload, "good");
            assert!(found.errors.is_empty());
        }
    }
}

/// For `commit_failure_policy = "ignore"`.
#[test]
fn a_log_that_is_to_go_on_does_so_in_a_new_segment_once_the_disk_lets_it() {
    for (operation, fault) in [
        (Operation::Write, Fault::InputOutput),
        (Operation::Write, Fault::ShortWrite { written_bytes: 7 }),
        (Operation::Sync, Fault::InputOutput),
    ] {
        let disk = MemoryDisk::new();
        let events = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        in_virtual_time(async {
            let log = open(&disk, 0, CommitLogOptions { goes_on_after_failure: true, ..SMALL });
            let told = std::rc::Rc::clone(&events);
            log.listen(move |event| told.borrow_mut().push(event));
            let before = log.append(b"before").expect("append");
            log.synced(before).await.expect("durable");
            disk.faults().fail_all(Some(operation), fault);
            let lost = log.append(b"lost").expect("append");
            assert!(matches!(log.synced(lost).await, Err(CommitLogError::Failed { .. })));
            assert!(matches!(log.append(b"refused"), Err(CommitLogError::Failed { .. })));
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(log.append(b"refused").is_err(), "the disk still fails");
            disk.faults().clear();
            tokio::time::sleep(Duration::from_secs(5)).await;
            let after = log.append(b"after").expect("taken again");
            log.synced(after).await.expect("durable");
            assert!(log.synced(lost).await.is_err(), "whoever asks late is told the same");
            assert!(log.synced(before).await.is_ok());
            assert_eq!(log.statistics().record_count, 3, "all that were taken");
        });
        let told = events.borrow();
        assert!(matches!(told[..], [LogEvent::Failed(_), LogEvent::GoesOn]), "{told:?}");
        for image in [disk.kill(), disk.crash(3)] {
            let read = read_all(&image).records;
            let has = |wanted: &[u8]| read.iter().any(|record| record.payload == wanted);
            assert!(has(b"before") && has(b"after") && !has(b"refused"), "{operation:?}");
        }
    }
}

#[test]
fn what_was_lost_is_told_until_no_record_of_then_is_needed() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, CommitLogOptions { goes_on_after_failure: true, ..SMALL });
        disk.faults().fail_all(Some(Operation::Sync), Fault::InputOutput);
        let lost = log.append(b"lost").expect("append");
        assert!(log.synced(lost).await.is_err());
        disk.faults().clear();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = log.append(b"after").expect("taken again");
        log.discard_below(lost).await.expect("nothing to discard");
        assert!(log.sync().await.is_ok() && log.loss().is_some(), "later records are durable, one is not");
        log.discard_below(after).await.expect("discarded");
        assert!(log.loss().is_none(), "it is in a file now");
    });
}

#[test]
fn a_full_disk_refuses_records_until_there_is_room() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        disk.faults().set_capacity_bytes(2 * 4096 + 100);
        let log = open(&disk, 0, SMALL);
        for _ in 0..4 {
            log.synced(log.append(&[1; 1500]).expect("append")).await.expect("durable");
        }
        let full = log.synced(log.append(&[2; 1500]).expect("append")).await;
        assert!(matches!(full, Err(CommitLogError::DiskFull { .. })), "{full:?}");
        assert!(matches!(log.append(b"x"), Err(CommitLogError::DiskFull { .. })));
        disk.faults().set_capacity_bytes(u64::MAX);
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.synced(log.append(b"room").expect("append")).await.expect("durable");
    });
    let found = read_all(&disk.crash(3));
    assert!(found.errors.is_empty() && found.torn.is_empty(), "{found:?}");
    assert_eq!(found.records.len(), 6, "the one that met the full disk was kept");
}

#[test]
fn a_quiet_log_settles_so_that_damage_is_told_from_a_torn_tail() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        log.synced(log.append(&[9; 700]).expect("append")).await.expect("durable");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(log.statistics().sync_count, 2, "one for the record, one for the marker");
    });
    let path = Path::new(DIRECTORY).join("commitlog-0-1.log");
    let image = disk.crash(1);
    image.flip_bits(&path, 300, 0x40).expect("flip");
    let found = read_all(&image);
    assert!(found.records.is_empty());
    assert!(matches!(&found.errors[..], [CommitLogError::Damaged { offset: 32, .. }]), "{found:?}");
}

/// The same log on the real disk, with real threads, dropped without being closed.
#[test]
fn the_real_disk_keeps_what_was_acknowledged() {
    let directory = tempfile::tempdir().expect("directory");
    let runtime = runtime::Runtime::real(runtime::RuntimeOptions::default()).expect("runtime");
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    for life in 0..3_u8 {
        tokio::task::LocalSet::new().block_on(&threads, async {
            let options = CommitLogOptions { segment_bytes: 64 * 1024, ..SMALL };
            let log = CommitLog::open(&runtime, directory.path(), 2, options).expect("open");
            let waiting: Vec<_> =
                (0..200).map(|_| log.synced(log.append(&[life; 1000]).expect("append"))).collect();
            for record in waiting {
                record.await.expect("durable");
            }
            assert!(log.statistics().sync_count < 20, "{:?}", log.statistics());
        });
    }
    let records: Vec<_> = commitlog::replay(&runtime.disk, directory.path())
        .expect("list")
        .map(|record| record.expect("sound").payload[0])
        .collect();
    let expected: Vec<u8> = (0..3).flat_map(|life| [life; 200]).collect();
    assert_eq!(records, expected);
    runtime.stop();
}

/// Where space can not be reserved, a record finds out that there is none when it is written.
#[test]
fn a_write_that_finds_no_room_is_made_again() {
    let disk = MemoryDisk::new();
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        log.synced(log.append(b"first").expect("append")).await.expect("durable");
        disk.faults().fail_nth(Some(Operation::Write), 0, Fault::NoSpace);
        let second = log.append(&[2; 100]).expect("append");
        let full = log.synced(second).await;
        assert!(matches!(full, Err(CommitLogError::DiskFull { .. })), "{full:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let settled = disk.crash(2);
        let path = Path::new(DIRECTORY).join("commitlog-0-1.log");
        settled.flip_bits(&path, u64::from(second.offset) + 50, 0x40).expect("flip");
        let errors = read_all(&settled).errors;
        assert!(matches!(errors[..], [CommitLogError::Damaged { .. }]), "it counts as synced: {errors:?}");
        log.synced(log.append(b"third").expect("room again")).await.expect("durable");
    });
    let found = read_all(&disk.crash(3));
    assert!(found.errors.is_empty() && found.torn.is_empty(), "{found:?}");
    let payloads: Vec<&[u8]> = found.records.iter().map(|record| &record.payload[..]).collect();
    assert_eq!(payloads, [b"first".as_slice(), &[2; 100], b"third"]);
}
