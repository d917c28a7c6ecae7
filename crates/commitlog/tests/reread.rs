//! What is held, or kept of an earlier run, is read again.

mod common;

use std::time::Duration;

use commitlog::{CommitLog, CommitLogOptions, LogPosition};
use common::{SMALL, in_virtual_time, open};
use runtime::MemoryDisk;
use runtime::memory_disk::{Fault, Operation};

/// The payloads of what is read again; `None` when it is not all there.
async fn reread_from(log: &CommitLog, from: LogPosition) -> Option<Vec<Vec<u8>>> {
    let mut reading = log.reread(from).await.expect("the disk works")?;
    let mut payloads = Vec::new();
    while let Some(record) = reading.next().await.expect("sound") {
        payloads.push(record.payload.to_vec());
    }
    Some(payloads)
}

#[test]
fn what_is_held_is_read_again_though_nobody_needs_it() {
    in_virtual_time(async {
        let log = open(&MemoryDisk::new(), 0, SMALL);
        assert_eq!(reread_from(&log, log.end()).await, Some(vec![]), "nothing was appended");
        let payloads: Vec<Vec<u8>> = (0..20).map(|index| vec![index; 1000]).collect();
        let positions: Vec<_> = payloads.iter().map(|payload| log.append(payload).expect("append")).collect();
        assert_eq!(reread_from(&log, positions[5]).await, Some(payloads[5..].to_vec()), "not synced before");

        log.hold_from(positions[5]);
        assert_eq!(log.discard_below(log.end()).await.expect("discarded"), 1, "what is below goes");
        assert_eq!(reread_from(&log, positions[5]).await, Some(payloads[5..].to_vec()));
        assert_eq!(reread_from(&log, positions[0]).await, None, "it is gone");
        let held = log.statistics();
        assert_eq!((held.segment_count, held.held_count), (6, 5), "the last one is kept anyway");
        assert_eq!(held.held_bytes, 5 * held.retained_bytes / 6, "all are of one size");

        log.hold_from(LogPosition::END);
        assert_eq!(log.discard_unheld().await.expect("discarded"), 5);
        assert_eq!((reread_from(&log, positions[5]).await, log.statistics().held_bytes), (None, 0));
        assert_eq!(reread_from(&log, log.end()).await, Some(vec![]));
    });
}

/// A segment that had nothing in it when a run ended is no gap.
#[test]
fn what_an_earlier_run_appended_is_read_again_if_it_is_kept() {
    let disk = MemoryDisk::new();
    let (mut from, mut expected) = (LogPosition::START, Vec::new());
    for run in 0..4u8 {
        in_virtual_time(async {
            let log = open(&disk, 0, SMALL);
            log.keep_from(from);
            log.discard_below(log.end()).await.expect("discarded");
            assert_eq!(reread_from(&log, from).await, Some(expected.clone()), "run {run}");
            // The second one appends nothing, and leaves a segment that was prepared.
            tokio::time::sleep(Duration::from_secs(1)).await;
            for payload in (0..5).filter(|_| run != 1).map(|_| vec![run; 1000]) {
                from = if run == 0 { log.end() } else { from };
                log.append(&payload).expect("append");
                expected.push(payload);
            }
            expected.drain(..if run == 0 { 4 } else { 0 });
            log.sync().await.expect("synced");
            log.hold_from(LogPosition::END);
            log.discard_below(log.end()).await.expect("discarded");
        });
    }
    in_virtual_time(async {
        let log = open(&disk, 0, SMALL);
        log.discard_below(log.end()).await.expect("discarded");
        assert_eq!(reread_from(&log, from).await, None, "it is gone");
    });
}

#[test]
fn what_a_failure_lost_is_not_read_again() {
    in_virtual_time(async {
        let disk = MemoryDisk::new();
        let log = open(&disk, 0, CommitLogOptions { goes_on_after_failure: true, ..SMALL });
        let before = log.append(b"before").expect("append");
        log.sync().await.expect("sync");
        disk.faults().fail_all(Some(Operation::Sync), Fault::InputOutput);
        log.append(b"lost").expect("append");
        log.sync().await.expect_err("it fails");
        disk.faults().clear();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let after = log.append(b"after").expect("it goes on");
        assert_eq!(reread_from(&log, before).await, None, "something is missing there");
        assert_eq!(reread_from(&log, after).await, Some(vec![b"after".to_vec()]));
    });
}
