//! What when the disk fails? Each policy, at each act.

use std::path::Path;
use std::time::Duration;

use read::ReadTarget;
use runtime::memory_disk::{Fault, Operation};
use runtime::{Disk, MemoryDisk, OpenMode};
use schema::ChunkLength;
use storage::{
    CommitFailurePolicy, Demand, DiskFailurePolicy, Emptying, FaultKind, StorageError, StorageOptions,
    TableError,
};

use crate::given::*;

const DISK_POLICIES: [DiskFailurePolicy; 5] = [
    DiskFailurePolicy::Stop,
    DiskFailurePolicy::StopParanoid,
    DiskFailurePolicy::BestEffort,
    DiskFailurePolicy::Ignore,
    DiskFailurePolicy::Die,
];

fn with_disk_policy(policy: DiskFailurePolicy) -> StorageOptions {
    // What is read is read from the disk.
    StorageOptions { disk_failure_policy: policy, cache_bytes: 1, cache_borrows: false, ..options(1) }
}

fn with_commit_policy(policy: CommitFailurePolicy) -> StorageOptions {
    StorageOptions { commit_failure_policy: policy, ..options(1) }
}

fn asked(node: &Node) -> Demand {
    node.shards.handles()[0].shards().health().demand().get()
}

pub(crate) fn kinds(node: &Node) -> Vec<FaultKind> {
    node.shards.handles()[0].shards().health().faults().0.iter().map(|fault| fault.kind).collect()
}

/// Two files: rows of partition 1, and rows of partition 2.
pub(crate) async fn two_files(node: &Node) {
    for pk in [1, 2] {
        node.write(pk, insert(&table(), pk, 0, "v", 1)).await.expect("writes");
        node.shard(0).flush(table().id()).await.expect("flushes");
    }
}

/// Data of the table's files, by name.
pub(crate) fn data_files(disk: &MemoryDisk) -> Vec<String> {
    let directory = format!("/node/data/k/t-{}", table().id().0.simple());
    let names = disk.list(Path::new(&directory)).expect("a directory");
    let data = names.into_iter().map(|entry| entry.name).filter(|name| name.ends_with("-Data.db"));
    data.map(|name| format!("{directory}/{name}")).collect()
}

#[test]
fn a_flush_that_fails_is_answered_by_the_policy_and_tried_again() {
    let of_the_manifest = sync_of_the_manifest_in_a_flush();
    for (operation, fault, alone) in [
        (Operation::Write, Fault::InputOutput, None),
        (Operation::Write, Fault::ShortWrite { written_bytes: 5 }, None),
        (Operation::Sync, Fault::InputOutput, None),
        (Operation::Create, Fault::InputOutput, None),
        (Operation::Sync, Fault::InputOutput, Some(of_the_manifest)),
    ] {
        for policy in DISK_POLICIES {
            let disk = MemoryDisk::new();
            run(async {
                // The log must not be in the way: it fails for itself.
                let table_options = StorageOptions {
                    commit_failure_policy: CommitFailurePolicy::Ignore,
                    ..with_disk_policy(policy)
                };
                let node = Node::start(&disk, table_options).expect("starts");
                node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
                tokio::time::sleep(Duration::from_secs(1)).await;
                match alone {
                    Some(nth) => disk.faults().fail_nth(Some(operation), nth, fault),
                    None => disk.faults().fail_all(Some(operation), fault),
                }
                assert!(node.shard(0).flush(table().id()).await.is_err(), "{operation:?}");
                assert_eq!(node.all(&table(), 10).await.len(), 1, "still read from memory");
                let expected = match policy {
                    DiskFailurePolicy::Ignore => Demand::Serve,
                    DiskFailurePolicy::Die => Demand::Die,
                    // There is one directory: without it nothing is left to write to.
                    _ => Demand::StopClients,
                };
                assert_eq!(asked(&node), expected, "{policy:?} {operation:?}");
                disk.faults().clear();
                tokio::time::sleep(Duration::from_secs(5)).await;
                let stats = node.shard(0).table(table().id()).expect("the table").stats();
                if policy != DiskFailurePolicy::BestEffort || alone.is_some() {
                    assert_eq!(
                        (stats.sstable_count, stats.pending_flushes),
                        (1, 0),
                        "{policy:?} {operation:?}"
                    );
                }
            });
            run(async {
                let node = Node::start(&disk.crash(7), options(1)).expect("starts again");
                assert_eq!(node.all(&table(), 10).await.len(), 1);
            });
        }
    }
}

#[test]
fn a_read_that_fails_is_refused_or_answered_from_the_rest() {
    for policy in DISK_POLICIES {
        let disk = MemoryDisk::new();
        run(async {
            let node = Node::start(&disk, with_disk_policy(policy)).expect("starts");
            two_files(&node).await;
            disk.faults().fail_nth(Some(Operation::Read), 0, Fault::InputOutput);
            let of_one = command(&table(), ReadTarget::Keys(vec![key(1)]));
            let read = node.shard(0).read(&of_one).await;
            let expected = match policy {
                DiskFailurePolicy::BestEffort => {
                    assert!(read.expect("answered from the rest").partitions.is_empty());
                    assert_eq!(node.all(&table(), 10).await, [(2, 0, "v".to_owned())]);
                    let stats = node.shard(0).table(table().id()).expect("the table").stats();
                    assert_eq!(stats.damaged_files.len(), 1);
                    Demand::Serve
                }
                DiskFailurePolicy::Ignore => Demand::Serve,
                DiskFailurePolicy::Stop | DiskFailurePolicy::StopParanoid => Demand::StopClients,
                DiskFailurePolicy::Die => Demand::Die,
            };
            assert_eq!(asked(&node), expected, "{policy:?}");
            assert_eq!(kinds(&node), [FaultKind::Read]);
            if policy == DiskFailurePolicy::Ignore {
                assert_eq!(node.all(&table(), 10).await.len(), 2, "the next read may go well");
            }
        });
        run(async {
            let node =
                Node::start(&disk, with_disk_policy(policy)).expect("a file that can be read is no damage");
            assert_eq!(node.all(&table(), 10).await.len(), 2);
        });
    }
}

#[test]
fn a_damaged_chunk_is_told_and_only_best_effort_answers_without_it() {
    for policy in DISK_POLICIES {
        let disk = MemoryDisk::new();
        run(async {
            let node = Node::start(&disk, with_disk_policy(policy)).expect("starts");
            two_files(&node).await;
            let first = data_files(&disk).remove(0);
            disk.flip_bits(Path::new(&first), 20, 0x40).expect("flips");
            let range = command(&table(), ReadTarget::Range(rows::RingRange::ALL));
            let read = node.shard(0).read(&range).await;
            let expected = match policy {
                DiskFailurePolicy::BestEffort => {
                    assert_eq!(read.expect("answered").partitions.len(), 1);
                    Demand::Serve
                }
                _ => {
                    let error = read.expect_err("never a wrong answer").to_string();
                    assert!(error.contains("-Data.db is damaged at byte"), "{error}");
                    match policy {
                        DiskFailurePolicy::StopParanoid => Demand::StopClients,
                        DiskFailurePolicy::Die => Demand::Die,
                        _ => Demand::Serve,
                    }
                }
            };
            assert_eq!(asked(&node), expected, "{policy:?}");
            assert_eq!(kinds(&node), [FaultKind::Damage]);
        });
    }
}

#[test]
fn a_file_that_can_not_be_opened_ends_the_start_of_the_paranoid_alone() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        two_files(&node).await;
        node.shards.stop(true).await.expect("stops");
    });
    let statistics = data_files(&disk).remove(0).replace("-Data.db", "-Statistics.db");
    disk.flip_bits(Path::new(&statistics), 40, 0x10).expect("flips");
    for policy in DISK_POLICIES {
        let image = disk.kill();
        run(async {
            match (policy, Node::start(&image, with_disk_policy(policy))) {
                (DiskFailurePolicy::StopParanoid | DiskFailurePolicy::Die, started) => {
                    let error = started.err().expect("no start").to_string();
                    assert!(error.contains("-Statistics.db is damaged"), "{error}");
                }
                (DiskFailurePolicy::BestEffort, started) => {
                    assert_eq!(started.expect("starts").all(&table(), 10).await.len(), 1);
                }
                (_, started) => {
                    let node = started.expect("starts");
                    let read = command(&table(), ReadTarget::Keys(vec![key(1)]));
                    let read = node.shard(0).read(&read).await;
                    assert!(
                        matches!(read, Err(StorageError::Table(TableError::Quarantined { .. }))),
                        "{read:?}"
                    );
                }
            }
        });
    }
}

#[test]
fn a_compaction_that_fails_leaves_its_inputs_alone_and_is_answered_by_the_policy() {
    let of_the_manifest = sync_of_the_manifest(|nth| {
        let disk = MemoryDisk::new();
        run(async {
            let node = Node::start(&disk, options(1)).expect("starts");
            two_files(&node).await;
            disk.faults().fail_nth(Some(Operation::Sync), nth, Fault::InputOutput);
            node.shard(0).compact(table().id()).await.is_err()
        })
    });
    // The first that is read of the disk is how much of it is free.
    for (operation, nth) in [
        (Operation::Read, 1),
        (Operation::Write, 0),
        (Operation::Sync, 0),
        (Operation::Sync, of_the_manifest),
    ] {
        for policy in DISK_POLICIES {
            let (disk, about) = (MemoryDisk::new(), format!("{operation:?} {nth} {policy:?}"));
            // Without the file that can not be read there is nothing to try again.
            let is_left_out = policy == DiskFailurePolicy::BestEffort && operation == Operation::Read;
            run(async {
                let node = Node::start(&disk, with_disk_policy(policy)).expect("starts");
                two_files(&node).await;
                disk.faults().fail_nth(Some(operation), nth, Fault::InputOutput);
                let failed = node.shard(0).compact(table().id()).await;
                assert!(failed.is_err(), "{about}");
                let expected = match policy {
                    DiskFailurePolicy::Ignore => Demand::Serve,
                    DiskFailurePolicy::Die => Demand::Die,
                    DiskFailurePolicy::BestEffort if is_left_out => Demand::Serve,
                    _ => Demand::StopClients,
                };
                assert_eq!(asked(&node), expected, "{about}");
                assert_eq!(data_files(&disk).len(), 2, "{about}: nothing of the result stays");
                assert_eq!(node.all(&table(), 10).await.len(), if is_left_out { 1 } else { 2 }, "{about}");
                if policy != DiskFailurePolicy::BestEffort {
                    node.shard(0).compact(table().id()).await.expect("the next one goes well");
                    assert_eq!(node.all(&table(), 10).await.len(), 2, "{about}");
                }
            });
            run(async {
                let node = Node::start(&disk.crash(3), options(1)).expect("starts again");
                assert_eq!(node.all(&table(), 10).await.len(), 2, "{about}");
            });
        }
    }
}

#[test]
fn a_truncation_that_fails_is_answered_by_the_policy_and_is_whole_or_absent_after_a_start() {
    for operation in [Operation::Write, Operation::Sync] {
        for policy in DISK_POLICIES {
            let (disk, about) = (MemoryDisk::new(), format!("{operation:?} {policy:?}"));
            run(async {
                let storage = StorageOptions { auto_snapshot: false, ..with_disk_policy(policy) };
                let node = Node::start(&disk, storage).expect("starts");
                two_files(&node).await;
                disk.faults().fail_all(Some(operation), Fault::InputOutput);
                assert!(
                    node.shard(0)
                        .table(table().id())
                        .expect("a table")
                        .truncate(Emptying::Alone)
                        .await
                        .is_err(),
                    "{about}"
                );
                let expected = match policy {
                    DiskFailurePolicy::Ignore => Demand::Serve,
                    DiskFailurePolicy::Die => Demand::Die,
                    _ => Demand::StopClients,
                };
                assert_eq!(asked(&node), expected, "{about}");
                assert_eq!(node.all(&table(), 10).await.len(), 2, "{about}");
                disk.faults().clear();
            });
            run(async {
                let node = Node::start(&disk.crash(3), options(1)).expect("starts again");
                assert_eq!(node.all(&table(), 10).await.len(), 2, "{about}");
            });
        }
    }
}

#[test]
fn a_log_that_fails_is_answered_by_its_own_policy() {
    for (operation, fault) in [
        (Operation::Write, Fault::InputOutput),
        (Operation::Write, Fault::ShortWrite { written_bytes: 3 }),
        (Operation::Sync, Fault::InputOutput),
    ] {
        for policy in [
            CommitFailurePolicy::Stop,
            CommitFailurePolicy::StopCommit,
            CommitFailurePolicy::Ignore,
            CommitFailurePolicy::Die,
        ] {
            let disk = MemoryDisk::new();
            run(async {
                let node = Node::start(&disk, with_commit_policy(policy)).expect("starts");
                node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
                disk.faults().fail_all(Some(operation), fault);
                let failed = node.write(2, insert(&table(), 2, 0, "v", 1)).await;
                assert!(matches!(failed, Err(StorageError::Table(TableError::CommitLog(_)))), "{failed:?}");
                let expected = match policy {
                    CommitFailurePolicy::Stop => Demand::StopClients,
                    CommitFailurePolicy::Die => Demand::Die,
                    _ => Demand::Serve,
                };
                assert_eq!(asked(&node), expected, "{policy:?}");
                assert_eq!(kinds(&node)[0], FaultKind::Log);
                assert!(node.all(&table(), 10).await.contains(&(1, 0, "v".to_owned())), "reads are served");
                disk.faults().clear();
                tokio::time::sleep(Duration::from_secs(5)).await;
                let again = node.write(3, insert(&table(), 3, 0, "v", 1)).await;
                assert_eq!(again.is_ok(), policy == CommitFailurePolicy::Ignore, "{policy:?}: {again:?}");
            });
            run(async {
                let node = Node::start(&disk.crash(11), options(1)).expect("starts again");
                let all = node.all(&table(), 10).await;
                assert!(all.contains(&(1, 0, "v".to_owned())), "what was acknowledged");
                assert_eq!(all.contains(&(3, 0, "v".to_owned())), policy == CommitFailurePolicy::Ignore);
            });
        }
    }
}

/// What may become of a commit log while nobody looks, and the file that the start then has to name.
fn log_harms(disk: &MemoryDisk) -> Vec<(MemoryDisk, String)> {
    let directory = Path::new("/node/commitlog");
    let names: Vec<String> =
        disk.list(directory).expect("a log").into_iter().map(|entry| entry.name).collect();
    let mut harms = Vec::new();
    for name in names.iter().filter(|name| !name.ends_with(".spare")) {
        let path = directory.join(name);
        let gone = disk.kill();
        gone.remove_file(&path).expect("removed");
        harms.push((gone, name.clone()));
        for length in [0, 17] {
            let cut = disk.kill();
            cut.open(&path, OpenMode::ReadWrite).and_then(|file| file.set_len(length)).expect("cut");
            harms.push((cut, name.clone()));
        }
        let flipped = disk.kill();
        flipped.flip_bits(&path, 12, 1).expect("flipped");
        harms.push((flipped, name.clone()));
    }
    let emptied = disk.kill();
    names.iter().for_each(|name| emptied.remove_file(&directory.join(name)).expect("removed"));
    harms.push((emptied, "commitlog-0.roster".to_owned()));
    harms
}

#[test]
fn a_commit_log_that_lacks_anything_ends_the_start_unless_that_is_to_be_ignored() {
    let disk = MemoryDisk::new();
    run(async {
        // Of several segments, and nothing flushed.
        let roomy = StorageOptions { log_bytes: 1 << 30, ..options(1) };
        let node = Node::start(&disk, roomy).expect("starts");
        for pk in 0..30 {
            let v = "x".repeat(6_000);
            node.write(pk, insert(&table(), pk, 0, &v, 1)).await.expect("writes");
        }
    });
    let harms = log_harms(&disk);
    assert!(harms.len() > 16, "{}", harms.len());
    for (harmed, name) in harms {
        for policy in [CommitFailurePolicy::Stop, CommitFailurePolicy::StopCommit, CommitFailurePolicy::Die] {
            let refused = run(async { Node::start(&harmed.kill(), with_commit_policy(policy)).err() });
            let Some(StorageError::LostLog(_)) = &refused else { panic!("{name}: {refused:?}") };
            let words = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(words.contains(&name) && words.contains("commit_failure_policy"), "{name}: {words}");
        }
        run(async {
            let node = Node::start(&harmed, with_commit_policy(CommitFailurePolicy::Ignore)).expect("starts");
            assert_eq!(kinds(&node).first(), Some(&FaultKind::Log));
            let count = node.all(&table(), 100).await.len();
            assert!(count <= 30 && (count > 10 || name.ends_with("roster")), "{name}: {count}");
            node.write(99, insert(&table(), 99, 0, "later", 1)).await.expect("writes");
            node.shards.stop(true).await.expect("stops");
        });
        // What is lost is lost, and nobody asks for it again.
        run(async {
            let node = Node::start(&harmed.crash(5), options(1)).expect("starts as before");
            assert!(node.all(&table(), 100).await.contains(&(99, 0, "later".to_owned())), "{name}");
        });
    }
}

/// Names in the table's quarantine.
fn quarantine(disk: &MemoryDisk) -> Vec<String> {
    let directory = format!("/node/data/k/t-{}/quarantine", table().id().0.simple());
    match disk.exists(Path::new(&directory)) {
        Ok(true) => {
            disk.list(Path::new(&directory)).expect("names").into_iter().map(|entry| entry.name).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn best_effort_sets_a_damaged_file_aside_for_good() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, with_disk_policy(DiskFailurePolicy::BestEffort)).expect("starts");
        two_files(&node).await;
        let first = data_files(&disk).remove(0);
        disk.flip_bits(Path::new(&first), 20, 0x40).expect("flips");
        assert_eq!(node.all(&table(), 10).await.len(), 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(data_files(&disk).len(), 1, "it has left the table's directory");
        let aside = storage::quarantined(node.shard(0)).await.expect("lists");
        assert_eq!(aside.len(), 1);
        assert!(first.ends_with(aside[0].file_name().expect("a name").to_str().expect("text")));
    });
    assert!(quarantine(&disk).iter().any(|name| name.ends_with("-TOC.txt")), "with all its components");
    run(async {
        // No policy knows of it any more.
        let node =
            Node::start(&disk.crash(5), with_disk_policy(DiskFailurePolicy::StopParanoid)).expect("starts");
        assert_eq!(node.all(&table(), 10).await.len(), 1);
    });
}

/// It may be well after a start, and what is truncated must be in the snapshot then.
#[test]
fn a_snapshot_has_what_is_left_out_too() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, with_disk_policy(DiskFailurePolicy::BestEffort)).expect("starts");
        two_files(&node).await;
        disk.faults().fail_nth(Some(Operation::Read), 0, Fault::InputOutput);
        let of_one = command(&table(), ReadTarget::Keys(vec![key(1)]));
        assert!(node.shard(0).read(&of_one).await.expect("answered from the rest").partitions.is_empty());
        node.shards.handles()[0].shards().snapshot(table().id(), "all", false).await.expect("kept");
        let directory = format!("/node/data/k/t-{}/snapshots/all", table().id().0.simple());
        let names = disk.list(Path::new(&directory)).expect("a directory");
        let count = |end: &str| names.iter().filter(|entry| entry.name.ends_with(end)).count();
        assert_eq!((count("-Data.db"), count("-TOC.txt")), (2, 2));
        assert_eq!(data_files(&disk).len(), 2, "and they are where they were");
    });
}

#[test]
fn scrub_keeps_what_can_be_read_and_sets_the_damaged_file_aside() {
    let disk = MemoryDisk::new();
    let long = "x".repeat(3_000);
    run(async {
        let node = Node::start(&disk, with_disk_policy(DiskFailurePolicy::Stop)).expect("starts");
        for pk in 0..40 {
            // Letters that do not compress much, so that there are many chunks.
            let mut state = pk as u32 + 1;
            let letters = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b'a' + (state >> 24) as u8 % 26)
            });
            let value: String = letters.take(3_000).collect();
            node.write(pk, insert(&table(), pk, 0, &value, 1)).await.expect("writes");
        }
        node.shard(0).flush(table().id()).await.expect("flushes");
        node.write(99, insert(&table(), 99, 0, &long, 1)).await.expect("writes");
        node.shard(0).flush(table().id()).await.expect("flushes");
        let first = data_files(&disk).remove(0);
        let sound = node.shard(0).table(table().id()).expect("the table").verify().await.expect("verifies");
        assert!(sound.len() == 2 && sound.iter().all(|file| file.problem.is_none()), "{sound:?}");
        disk.flip_bits(Path::new(&first), 9_000, 0x40).expect("flips");
        let found = node.shard(0).table(table().id()).expect("the table").verify().await.expect("verifies");
        let problems: Vec<_> = found.iter().filter_map(|file| file.problem.as_deref()).collect();
        assert!(matches!(problems[..], [problem] if problem.contains("is damaged at byte")), "{found:?}");
        let scrubbed = node.shard(0).table(table().id()).expect("the table").scrub().await.expect("scrubs");
        assert_eq!(scrubbed.len(), 1);
        assert!(scrubbed[0].kept > 20 && scrubbed[0].lost > 0, "{scrubbed:?}");
        assert_eq!(scrubbed[0].kept + scrubbed[0].lost, 40);
        assert_eq!(node.all(&table(), 100).await.len() as u64, scrubbed[0].kept + 1);
        assert!(
            node.shard(0).table(table().id()).expect("the table").scrub().await.expect("again").is_empty(),
            "all is sound now"
        );
        assert!(quarantine(&disk).iter().any(|name| first.ends_with(name.as_str())));
    });
    run(async {
        let node = Node::start(&disk.crash(9), options(1)).expect("starts again");
        assert!(node.all(&table(), 100).await.len() > 20);
    });
}

#[test]
fn scrub_sets_a_file_aside_that_can_not_be_opened() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        two_files(&node).await;
        node.shards.stop(true).await.expect("stops");
    });
    let disk = disk.kill();
    let statistics = data_files(&disk).remove(0).replace("-Data.db", "-Statistics.db");
    disk.flip_bits(Path::new(&statistics), 40, 0x10).expect("flips");
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        let read = command(&table(), ReadTarget::Keys(vec![key(2)]));
        assert!(matches!(
            node.shard(0).read(&read).await,
            Err(StorageError::Table(TableError::Quarantined { .. }))
        ));
        assert_eq!(
            node.shard(0).table(table().id()).expect("the table").scrub().await.expect("scrubs").len(),
            1
        );
        assert_eq!(node.all(&table(), 10).await.len(), 1, "reads are served");
        assert_eq!(data_files(&disk).len(), 1);
    });
    run(async {
        let node = Node::start(&disk.crash(1), options(1)).expect("starts again");
        assert_eq!(node.all(&table(), 10).await.len(), 1);
    });
}

/// Nobody was told: the table's rows stayed in memory, and the log grew.
#[test]
fn a_flush_that_the_table_s_options_make_impossible_is_told_and_works_once_they_are_mended() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let shard = node.shard(0);
        let with_chunks = |epoch, bytes| {
            altered(epoch, |options| options.compression.chunk_length = ChunkLength::Fixed(bytes))
        };
        shard.take_schema(with_chunks(2, 1 << 29)).await.expect("altered");
        node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("written");
        shard.flush(table().id()).await.expect_err("can not be written");
        let (faults, _) = node.shards.handles()[0].shards().health().faults();
        let [fault] = &faults[..] else { panic!("{faults:?}") };
        assert_eq!((fault.kind, fault.act), (FaultKind::Options, "flush"));
        assert!(fault.what.contains("chunks of 536870912 bytes"), "{}", fault.what);
        assert_eq!(asked(&node), Demand::Serve, "the disk is sound");
        assert_eq!(node.all(&table(), 10).await.len(), 1);
        shard.take_schema(with_chunks(3, 8192)).await.expect("altered");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let stats = shard.table(table().id()).expect("the table").stats();
        assert_eq!((stats.sstable_count, stats.pending_flushes), (1, 0));
    });
}
