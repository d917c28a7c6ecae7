//! Do files become what the table asks for, in the background and on demand, with all that is in them?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::{Disk, MemoryDisk};
use schema::{ChunkLength, CompactionOptions, CompressionOptions, Table, TableOptions};
use sstable::{Component, Descriptor, StatisticsChange, TableFile, change_statistics};
use storage::{CompactionKind, RewriteFiles, RewriteRequest, Shard, StorageOptions};

use crate::given::{Node, altered, delete, insert, options, other, run, table};

const ALL: RewriteRequest = RewriteRequest { files: RewriteFiles::All, created_max_ms: None };

fn compressed(class: &str, chunk_length: ChunkLength, pairs: &[(&str, &str)]) -> CompressionOptions {
    CompressionOptions {
        class: Some(format!("org.apache.cassandra.io.compress.{class}")),
        chunk_length,
        options: pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

fn uncompressed() -> CompressionOptions {
    CompressionOptions { class: None, ..CompressionOptions::default() }
}

fn zstd() -> CompressionOptions {
    compressed("ZstdCompressor", ChunkLength::Fixed(16 << 10), &[("compression_level", "5")])
}

/// Every compressor, each option of one, and none; neighbours differ in as little as can be.
fn compressions() -> Vec<CompressionOptions> {
    let fixed = |kibibytes: u32| ChunkLength::Fixed(kibibytes << 10);
    vec![
        compressed("LZ4Compressor", fixed(64), &[]),
        compressed("LZ4Compressor", fixed(64), &[("min_compress_ratio", "1.5")]),
        compressed("LZ4Compressor", fixed(64), &[("lz4_compressor_type", "high")]),
        compressed("SnappyCompressor", fixed(64), &[]),
        uncompressed(),
        compressed("NoopCompressor", fixed(16), &[]),
        compressed("DeflateCompressor", fixed(16), &[]),
        compressed("ZstdCompressor", fixed(16), &[]),
        zstd(),
        // One of the lengths that `auto` may choose, of another compressor; then one that it may not.
        compressed("LZ4Compressor", ChunkLength::Auto, &[]),
        compressed("LZ4Compressor", fixed(8), &[]),
        compressed("LZ4Compressor", ChunkLength::Auto, &[]),
    ]
}

/// Some files that no strategy would merge: three for each call.
async fn fill(node: &Node, round: i32) {
    for file in 0..3 {
        for pk in 0..20 {
            let value = format!("{round} {file} {pk} ").repeat(30);
            node.write(pk, insert(&table(), pk, file, &value, i64::from(round) + 1)).await.expect("written");
        }
        for handle in node.shards.handles() {
            handle.local().flush(table().id()).await.expect("flushed");
        }
    }
}

fn table_directory() -> String {
    format!("/node/data/k/t-{}", table().id().0.simple())
}

/// The files of `k.t` as they are on the disk.
fn files(disk: &MemoryDisk, table: &Arc<Table>) -> Vec<Arc<TableFile>> {
    let directory = table_directory();
    let directory = Path::new(&directory);
    let names =
        disk.list(directory).expect("a directory").into_iter().map(|entry| directory.join(entry.name));
    let found = names.filter_map(|path| match Descriptor::from_path(&path) {
        Ok((descriptor, Component::Data)) => Some(descriptor),
        _ => None,
    });
    found
        .map(|descriptor| TableFile::open(Arc::new(disk.clone()), descriptor, table).expect("a sound file"))
        .collect()
}

fn ids(files: &[Arc<TableFile>]) -> BTreeSet<uuid::Uuid> {
    files.iter().map(|file| file.descriptor().id).collect()
}

/// Lets the background work until it rests.
async fn settle(node: &Node) {
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let stats = |shard: &Rc<Shard>| shard.table(table().id()).expect("the table").stats();
        let rests = |shard: &Rc<Shard>| {
            let stats = stats(shard);
            shard.compactor().active().is_empty() && stats.current_sstable_count == stats.sstable_count
        };
        if node.shards.handles().iter().all(|handle| rests(handle.local())) {
            return;
        }
    }
    panic!("files are still out of date");
}

/// How many files were written anew.
fn rewrite_count(shard: &Shard) -> usize {
    let name = CompactionKind::UpgradeSstables.name();
    let history = shard.compactor().history();
    history.iter().filter(|record| record.properties["compaction_type"] == name).count()
}

#[test]
fn files_follow_the_table_s_compression_in_the_background_once_and_keep_their_rows() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        fill(&node, 1).await;
        let rows = node.all(&table(), 100).await;
        assert_eq!(rows.len(), 60);
        assert_eq!(rewrite_count(shard), 0, "what was just flushed is as it should be");
        for (change, compression) in compressions().into_iter().enumerate() {
            let before = files(&disk, &table());
            let schema = altered(change as u64 + 2, |options| options.compression = compression.clone());
            shard.take_schema(schema).await.expect("altered");
            let stats = shard.table(table().id()).expect("the table").stats();
            assert_eq!((stats.sstable_count, stats.current_sstable_count), (3, 0), "{compression:?}");
            settle(&node).await;
            let after = files(&disk, &table());
            assert_eq!(after.len(), 3, "files stay apart");
            assert!(ids(&after).is_disjoint(&ids(&before)), "{compression:?}");
            // `auto` has chosen nothing: it is the default.
            assert!(after.iter().all(|file| file.is_compressed_as(&compression)), "{compression:?}");
            assert!(node.all(&table(), 100).await == rows, "{compression:?}: rows differ");
            let stats = shard.table(table().id()).expect("the table").stats();
            assert_eq!(stats.current_compressed_bytes, stats.compressed_bytes);
            // And then it is over.
            fill_other(&node, change as i32).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(rewrite_count(shard), 3 * (change + 1), "{compression:?}");
            assert_eq!(ids(&files(&disk, &table())), ids(&after));
        }
        assert_eq!(shard.compactor().totals().aborted, 0);
    });
}

/// Something that makes the shard look for compactions, in another table and in this.
async fn fill_other(node: &Node, round: i32) {
    node.write(0, insert(&other(), 0, round, "v", 1)).await.expect("written");
    node.shard(0).flush(other().id()).await.expect("flushed");
    node.shard(0).flush(table().id()).await.expect("flushed");
}

/// `compact` of one file did nothing.
#[test]
fn a_major_compaction_writes_a_lone_file_anew_that_is_compressed_otherwise() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        fill(&node, 1).await;
        shard.compact(table().id()).await.expect("compacted");
        let before = ids(&files(&disk, &table()));
        shard.compact(table().id()).await.expect("compacted");
        assert_eq!(ids(&files(&disk, &table())), before, "it would come out as it is");
        shard.table(table().id()).expect("the table").set_auto_compaction(false);
        shard.take_schema(altered(2, |options| options.compression = zstd())).await.expect("altered");
        shard.compact(table().id()).await.expect("compacted");
        let after = files(&disk, &table());
        assert!(ids(&after) != before && after[0].is_compressed_as(&zstd()));
    });
}

#[test]
fn files_are_left_alone_where_compaction_is_off_and_follow_when_it_is_on_again() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        fill(&node, 1).await;
        shard.table(table().id()).expect("the table").set_auto_compaction(false);
        shard.take_schema(altered(2, |options| options.compression = zstd())).await.expect("altered");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rewrite_count(shard), 0);
        let disabled = |options: &mut TableOptions| {
            options.compression = zstd();
            options.compaction.options.insert("enabled".into(), "false".into());
        };
        shard.take_schema(altered(3, disabled)).await.expect("altered");
        shard.table(table().id()).expect("the table").set_auto_compaction(true);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rewrite_count(shard), 0, "the table itself asks for no compaction");
        shard.take_schema(altered(4, |options| options.compression = zstd())).await.expect("altered");
        settle(&node).await;
        assert_eq!(rewrite_count(shard), 3);
    });
}

#[test]
fn on_demand_all_files_are_written_anew_or_those_that_are_asked_for() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        fill(&node, 1).await;
        let rows = node.all(&table(), 100).await;
        let first = ids(&files(&disk, &table()));
        let store = shard.table(table().id()).expect("the table");
        let ask = |files, created_max_ms| store.rewrite(RewriteRequest { files, created_max_ms });
        assert!(ask(RewriteFiles::OldVersion, None).await.expect("rewritten"));
        assert!(ask(RewriteFiles::OtherCompression, None).await.expect("rewritten"));
        assert_eq!(ids(&files(&disk, &table())), first, "none is old, none is compressed otherwise");
        assert!(ask(RewriteFiles::All, Some(1)).await.expect("rewritten"));
        assert_eq!(ids(&files(&disk, &table())), first, "none is as old as that");
        assert!(ask(RewriteFiles::All, None).await.expect("rewritten"));
        let second = ids(&files(&disk, &table()));
        assert!(second.len() == 3 && second.is_disjoint(&first));
        shard.table(table().id()).expect("the table").set_auto_compaction(false);
        shard.take_schema(altered(2, |options| options.compression = zstd())).await.expect("altered");
        assert!(ask(RewriteFiles::OtherCompression, None).await.expect("rewritten"));
        assert!(files(&disk, &table()).iter().all(|file| file.is_compressed_as(&zstd())));
        assert_eq!(rewrite_count(shard), 6);
        assert!(node.all(&table(), 100).await == rows);
    });
}

#[test]
fn a_file_that_is_written_anew_keeps_its_level_its_state_of_repair_and_its_tombstones() {
    let disk = MemoryDisk::new();
    let session = uuid::Uuid::from_u128(77);
    let changes = [
        StatisticsChange { level: Some(3), ..StatisticsChange::default() },
        StatisticsChange { repaired_at: Some(1_234), ..StatisticsChange::default() },
        StatisticsChange { level: Some(1), pending_repair: Some(Some(session)), repaired_at: None },
    ];
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        node.write(99, delete(&table(), 99, 1)).await.expect("deleted");
        fill(&node, 1).await;
        node.shards.stop(true).await.expect("stops");
    });
    let told = |disk: &MemoryDisk| -> BTreeSet<_> {
        let of = |file: &Arc<TableFile>| {
            let summary = file.summary();
            let tombstones = summary.tombstone_drop_times.sum(u32::MAX) as u64;
            (summary.level, summary.repaired_at, summary.pending_repair, tombstones)
        };
        files(disk, &table()).iter().map(of).collect()
    };
    for (file, change) in files(&disk, &table()).iter().zip(changes) {
        change_statistics(&disk, file.descriptor(), change).expect("changed");
    }
    let before = told(&disk);
    assert!(before.len() == 3 && before.iter().any(|(.., tombstones)| *tombstones > 0), "{before:?}");
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        // Whatever may go of it for compaction.
        node.clock.advance(Duration::from_secs(100 * 86_400));
        let leveled = |options: &mut TableOptions| {
            options.compression = zstd();
            let class = "org.apache.cassandra.db.compaction.LeveledCompactionStrategy".to_owned();
            options.compaction = CompactionOptions { class, options: BTreeMap::new() };
            options.gc_grace_seconds = 1;
        };
        let shard = node.shard(0);
        shard.table(table().id()).expect("the table").set_auto_compaction(false);
        shard.take_schema(altered(2, leveled)).await.expect("altered");
        assert!(shard.table(table().id()).expect("the table").rewrite(ALL).await.expect("rewritten"));
        assert_eq!(rewrite_count(shard), 3);
        assert_eq!(told(&disk), before);
    });
}

#[test]
fn a_rewrite_that_is_cut_off_leaves_each_file_old_or_new_and_goes_on_after_a_start() {
    let written = MemoryDisk::new();
    let rows = run(async {
        let node = Node::start(&written, options(2)).expect("starts");
        fill(&node, 1).await;
        let rows = node.all(&table(), 100).await;
        node.shards.stop(true).await.expect("stops");
        rows
    });
    let rewrite = |disk: &MemoryDisk| {
        run(async {
            let node = Node::start(disk, options(2)).ok()?;
            for handle in node.shards.handles() {
                let schema = altered(2, |options| options.compression = zstd());
                handle.local().take_schema(schema).await.ok()?;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
            let done = |shard: &Rc<Shard>| rewrite_count(shard) == 3;
            node.shards.handles().iter().all(|handle| done(handle.local())).then_some(())
        })
    };
    let whole = written.kill();
    rewrite(&whole).expect("goes well without faults");
    let change_count = whole.faults().change_count();
    let mut halfway_count = 0;
    for cut in (0..change_count).step_by(5) {
        let disk = written.kill();
        disk.faults().power_off_after(cut);
        rewrite(&disk);
        let image = disk.crash(cut);
        run(async {
            // The schema of before is in force again: what was written anew is to be as it was.
            let node = Node::start(&image, options(2)).expect("starts after a power cut");
            assert!(node.all(&table(), 100).await == rows, "cut after {cut}");
            let out_of_date =
                files(&image, &table()).iter().filter(|file| file.is_compressed_as(&zstd())).count();
            halfway_count += usize::from((1..6).contains(&out_of_date));
            settle(&node).await;
            let after = files(&image, &table());
            assert_eq!(after.len(), 6, "cut after {cut}");
            assert!(after.iter().all(|file| file.is_compressed_as(&table().options().compression)));
            assert!(node.all(&table(), 100).await == rows, "cut after {cut}, written anew");
        });
    }
    assert!(halfway_count > 3, "{halfway_count}");
}

/// Lets the node's clock go with the time that stands still unless all wait.
fn let_time_pass(node: &Node) {
    const STEP: Duration = Duration::from_millis(10);
    let clock = Arc::clone(&node.clock);
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(STEP).await;
            clock.advance(STEP);
        }
    });
}

/// Values that do not compress.
pub(crate) fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state >> 32) as u8 % 90)
    });
    letters.take(8 << 10).collect()
}

async fn write_noise(node: &Node, of: &Table, partitions: std::ops::Range<i32>) {
    for pk in partitions {
        node.write(pk, insert(of, pk, 0, &noise(pk as u64 + 1), 1)).await.expect("written");
    }
    node.shard(0).flush(of.id()).await.expect("flushed");
}

/// Compactions have slots, rewrites have a turn of their own: one of them that is slow holds nobody up.
#[test]
fn a_rewrite_keeps_to_the_rate_of_compaction_and_takes_no_slot() {
    run(async {
        // Room for all rows in one memtable, so in one file.
        let options = StorageOptions {
            concurrent_compactors: 1,
            memtable_bytes: 64 << 20,
            log_bytes: 1 << 30,
            ..options(1)
        };
        let node = Node::start(&MemoryDisk::new(), options).expect("starts");
        let shard = node.shard(0);
        let_time_pass(&node);
        write_noise(&node, &table(), 0..800).await;
        let bytes = shard.table(table().id()).expect("the table").stats().compressed_bytes;
        assert!(bytes > 5 << 20, "{bytes}");
        shard.compactor().set_rate(1 << 20);
        let begin = tokio::time::Instant::now();
        shard.take_schema(altered(2, |options| options.compression = zstd())).await.expect("altered");
        let mut seen = BTreeSet::new();
        let mut was_other_done = false;
        while rewrite_count(shard) == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            for active in shard.compactor().active() {
                assert_eq!((active.kind, active.file_count), (CompactionKind::UpgradeSstables, 1));
                assert!(active.completed_bytes <= active.total_bytes);
                seen.insert(active.completed_bytes);
            }
            if seen.len() == 2 && shard.table(other().id()).expect("the table").stats().sstable_count == 0 {
                for first in 0..4 {
                    write_noise(&node, &other(), first..first + 1).await;
                }
            }
            let is_other_done = shard.compactor().history().iter().any(|record| record.table == "other");
            if is_other_done && !was_other_done {
                assert_eq!(rewrite_count(shard), 0, "the rewrite is still going on");
                shard.compactor().set_rate(2 << 20);
                was_other_done = true;
            }
        }
        assert!(was_other_done);
        assert!(seen.len() > 3, "progress is seen: {seen:?}");
        assert_eq!(shard.table(other().id()).expect("the table").stats().sstable_count, 1);
        let (least, most) =
            (bytes as f64 / f64::from(2 << 20) - 1.0, bytes as f64 / f64::from(1 << 20) + 1.0);
        let took = begin.elapsed().as_secs_f64();
        assert!((least..most).contains(&took), "{took} s for {bytes} bytes");
    });
}

#[test]
fn a_rewrite_can_be_stopped_and_other_kinds_are_left_alone() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let shard = node.shard(0);
        let_time_pass(&node);
        write_noise(&node, &table(), 0..400).await;
        // One piece takes days.
        shard.compactor().set_rate(10);
        let asked = Rc::clone(shard);
        let asked = tokio::task::spawn_local(async move {
            asked.table(table().id()).expect("the table").rewrite(ALL).await
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(shard.compactor().active().len(), 1);
        let pending: u64 = shard.compactor().totals().pending.values().sum();
        let file_count = shard.table(table().id()).expect("the table").stats().sstable_count;
        assert_eq!(pending, file_count, "the one that goes on and those behind it");
        assert_eq!(shard.compactor().stop(None, &[CompactionKind::MajorCompaction]), 0);
        assert_eq!(shard.compactor().stop(None, &[CompactionKind::UpgradeSstables]), 1);
        assert!(!asked.await.expect("ends").expect("without an error"), "it was not gone through to its end");
        assert_eq!((rewrite_count(shard), shard.compactor().totals().aborted), (0, 1));
        assert!(shard.compactor().active().is_empty());
        assert_eq!(node.all(&table(), 100).await.len(), 400);
    });
}

#[test]
fn a_disk_that_has_no_room_for_a_file_twice_is_left_alone_until_it_has() {
    run(async {
        let disk = MemoryDisk::new();
        let node = Node::start(&disk, options(1)).expect("starts");
        let shard = node.shard(0);
        fill(&node, 1).await;
        let before = ids(&files(&disk, &table()));
        disk.faults().set_capacity_bytes(1);
        shard.take_schema(altered(7, |options| options.compression = zstd())).await.expect("altered");
        for _ in 0..30 {
            node.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(ids(&files(&disk, &table())), before);
        assert_eq!(shard.compactor().totals().aborted, 0, "nothing was begun");
        disk.faults().set_capacity_bytes(u64::MAX);
        node.clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_secs(60)).await;
        settle(&node).await;
        assert!(ids(&files(&disk, &table())).is_disjoint(&before));
    });
}
