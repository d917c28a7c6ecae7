//! Do files that Cassandra wrote become part of a table, all or none? Do snapshots keep what they should?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use read::ReadTarget;
use rows::RingRange;
use runtime::{Disk, DiskAccess, ManualClock, MemoryDisk, OsDisk, Runtime};
use schema::{Keyspace, Replication, Schema, Table};
use sstable::{Component, Descriptor, TableFile, table_of_header};
use storage::{
    ClearFilter, Directory, Emptying, ImportOptions, LocalShards, RewriteFiles, RewriteRequest, StorageError,
    StorageOptions,
};

use crate::given::{command, delete, insert, options, pages, run, table as plain_table};

fn fixtures(version: &str, name: &str) -> PathBuf {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    match version {
        "da" => formats.join("cassandra-da").join(name),
        _ => formats.join("cassandra-big").join(version).join(name),
    }
}

/// Copies the components of a fixture to a directory of a memory disk.
fn place(disk: &MemoryDisk, from: &Path, to: &str) {
    disk.create_dir_all(Path::new(to)).expect("made");
    for entry in OsDisk::new().list(from).expect("a fixture") {
        if Descriptor::from_path(&from.join(&entry.name)).is_ok() {
            let bytes = OsDisk::new().read(&from.join(&entry.name)).expect("read");
            disk.write_atomically(&Path::new(to).join(&entry.name), &bytes).expect("written");
        }
    }
}

/// The table that a fixture is of.
fn table_of(version: &str, name: &str) -> Arc<Table> {
    let folder = fixtures(version, name);
    let entries = OsDisk::new().list(&folder).expect("a fixture");
    let found = entries.iter().find_map(|entry| Descriptor::from_path(&folder.join(&entry.name)).ok());
    let (descriptor, _) = found.expect("a table file");
    Arc::new(table_of_header(&OsDisk::new(), &descriptor, "k", name).expect("known types"))
}

fn schema_of(table: &Arc<Table>) -> Arc<Schema> {
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "k".into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: [(table.name().to_owned(), Arc::clone(table))].into_iter().collect(),
        types: BTreeMap::new(),
    };
    Arc::new(Schema::new(1, [keyspace]))
}

fn start(
    disk: &MemoryDisk,
    options: StorageOptions,
    table: &Arc<Table>,
) -> Result<LocalShards, StorageError> {
    // Lives of a node must not draw the same file ids.
    static LIFE: AtomicU64 = AtomicU64::new(1 << 32);
    let mut runtime = Runtime::in_memory(Arc::new(disk.clone()), LIFE.fetch_add(1, Ordering::Relaxed));
    runtime.clock = Arc::new(ManualClock::default());
    let schema = schema_of(table);
    Directory::open(&runtime, options)?.recover(&schema)?.start_local(&schema)
}

/// Rows of all partitions, by their keys.
async fn all(shards: &LocalShards, table: &Arc<Table>) -> BTreeMap<Bytes, Vec<rows::Row>> {
    let mut found = BTreeMap::new();
    for handle in shards.handles() {
        for partition in pages(handle.local(), command(table, ReadTarget::Range(RingRange::ALL))).await {
            let rows: &mut Vec<rows::Row> = found.entry(partition.key.bytes.clone()).or_default();
            rows.extend(partition.rows);
        }
    }
    found
}

async fn import(shards: &LocalShards, table: &Arc<Table>, from: &str) -> Result<usize, StorageError> {
    let options = ImportOptions::default();
    let done = shards.handles()[0].shards().import(table.id(), from.into(), options).await?;
    Ok(done.file_count)
}

fn names(disk: &MemoryDisk, directory: &str) -> Vec<String> {
    let entries = disk.list(Path::new(directory)).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name).collect()
}

fn live_directory(table: &Table) -> String {
    format!("/node/data/k/{}-{}", table.name(), table.id().0.simple())
}

#[test]
fn files_of_every_version_are_imported_read_compacted_and_there_after_a_start() {
    for name in ["wide", "tombstones", "many", "every_type"] {
        let mut counts = None;
        for version in ["da", "nb", "oa"] {
            let mut expected = None;
            for shard_count in [1, 3] {
                let about = format!("{version} {name} on {shard_count} shards");
                let (disk, table) = (MemoryDisk::new(), table_of(version, name));
                place(&disk, &fixtures(version, name), "/brought");
                let found = run(async {
                    let shards = start(&disk, options(shard_count), &table).expect("starts");
                    let count = import(&shards, &table, "/brought").await.expect("imports");
                    assert_eq!(count, if name == "tombstones" { 2 } else { 1 }, "{about}");
                    assert_eq!(names(&disk, "/brought"), Vec::<String>::new(), "{about}");
                    let found = all(&shards, &table).await;
                    shards.stop(true).await.expect("stops");
                    found
                });
                assert!(found.len() > 2, "{about}");
                assert_eq!(&found, expected.get_or_insert_with(|| found.clone()), "{about}");
                // Ids of list elements are those of the run that wrote them.
                let count: Vec<usize> = found.values().map(Vec::len).collect();
                assert_eq!(&count, counts.get_or_insert_with(|| count.clone()), "{about}");
                let disk = disk.crash(3);
                run(async {
                    let shards = start(&disk, options(2), &table).expect("starts again");
                    assert_eq!(all(&shards, &table).await, found, "{about}, after a start");
                    for handle in shards.handles() {
                        handle.local().compact(table.id()).await.expect("compacts");
                    }
                    assert_eq!(all(&shards, &table).await, found, "{about}, compacted");
                    let names = names(&disk, &live_directory(&table));
                    assert!(names.iter().all(|name| name.starts_with("da-")), "{about}: {names:?}");
                });
            }
        }
    }
}

/// Of a file that two shards share, one has merged what is its own, and deletions may be forgotten by that.
#[test]
fn a_snapshot_has_each_partition_of_an_imported_file_once() {
    let (disk, table) = (MemoryDisk::new(), table_of("da", "many"));
    place(&disk, &fixtures("da", "many"), "/brought");
    run(async {
        let shards = start(&disk, options(2), &table).expect("starts");
        import(&shards, &table, "/brought").await.expect("imports");
        let found = all(&shards, &table).await;
        shards.handles()[1].local().compact(table.id()).await.expect("compacts");
        shards.handles()[0].shards().snapshot(table.id(), "one", false).await.expect("kept");
        assert_eq!(all(&shards, &table).await, found);
        let kept = format!("{}/snapshots/one", live_directory(&table));
        let data = names(&disk, &kept).into_iter().filter(|name| name.ends_with("-Data.db"));
        let counts = data.map(|name| {
            let descriptor = Descriptor::from_path(&Path::new(&kept).join(name)).expect("a table file").0;
            let file = TableFile::open(Arc::new(disk.clone()), descriptor, &table).expect("opens");
            file.summary().partition_count
        });
        assert_eq!(counts.sum::<u64>(), found.len() as u64);
    });
}

#[test]
fn an_import_that_a_power_cut_ends_is_whole_or_can_be_done_again() {
    let table = table_of("nb", "tombstones");
    let story = |disk: &MemoryDisk| {
        run(async {
            let Ok(shards) = start(disk, options(2), &table) else { return Err(()) };
            import(&shards, &table, "/brought").await.map_err(|_| ())
        })
    };
    let prepare = || {
        let disk = MemoryDisk::new();
        run(async { start(&disk, options(2), &table).expect("starts").stop(true).await.expect("stops") });
        place(&disk, &fixtures("nb", "tombstones"), "/brought");
        disk.kill()
    };
    let whole = prepare();
    story(&whole).expect("goes well");
    let change_count = whole.faults().change_count();
    let expected =
        run(async { all(&start(&whole.kill(), options(2), &table).expect("starts"), &table).await });
    assert!(expected.len() > 2);
    let mut done_again = 0;
    for cut in 0..change_count {
        let disk = prepare();
        disk.faults().power_off_after(cut);
        _ = story(&disk);
        let image = disk.crash(cut);
        run(async {
            let shards = start(&image, options(2), &table).expect("starts after a power cut");
            let mut found = all(&shards, &table).await;
            if found != expected {
                assert!(found.is_empty(), "cut after {cut} of {change_count}: half an import");
                import(&shards, &table, "/brought").await.expect("again");
                found = all(&shards, &table).await;
                done_again += 1;
            }
            assert_eq!(found, expected, "cut after {cut} of {change_count}");
        });
    }
    assert!(done_again > 10, "{done_again} of {change_count}");
}

/// A shard that had compacted what an import gave it, while the other had not got its part yet, kept
/// that through the start that takes a half import back.
#[test]
fn an_import_that_is_cut_off_between_shards_is_taken_back_though_tables_are_compacted() {
    let table = table_of("nb", "tombstones");
    let mut outcomes = Vec::new();
    while outcomes.last().is_none_or(|(is_over, _)| !is_over) {
        let disk = MemoryDisk::new();
        place(&disk, &fixtures("nb", "tombstones"), "/brought");
        let is_over = run(async {
            let shards = start(&disk, options(2), &table).expect("starts");
            let mut importing = Box::pin(import(&shards, &table, "/brought"));
            let mut is_over = false;
            for _ in 0..=outcomes.len() {
                is_over = futures_util::poll!(importing.as_mut()).is_ready();
                tokio::task::yield_now().await;
                if is_over {
                    break;
                }
            }
            drop(importing);
            for handle in shards.handles() {
                handle.local().compact(table.id()).await.expect("compacts");
            }
            shards.stop(true).await.expect("stops");
            is_over
        });
        let found = run(async {
            let shards = start(&disk, options(2), &table).expect("starts again");
            all(&shards, &table).await.len()
        });
        outcomes.push((is_over, found));
    }
    let whole = outcomes.last().map_or(0, |(_, found)| *found);
    assert!(whole > 2 && outcomes.len() > 4, "{outcomes:?}");
    assert!(outcomes.iter().all(|(_, found)| [0, whole].contains(found)), "half an import: {outcomes:?}");
}

/// A node that was started with a relative data directory took a full path to its own live files for
/// another place, and moved them away.
#[test]
fn live_files_are_known_by_any_name_of_their_directory() {
    let folder = tempfile::tempdir().expect("folder");
    let (node, link) = (folder.path().join("node"), folder.path().join("link"));
    std::os::unix::fs::symlink(&node, &link).expect("linked");
    let table = table_of("nb", "many");
    let options = StorageOptions { directory: link, ..options(1) };
    run(async {
        let mut runtime = Runtime::in_memory(Arc::new(OsDisk::with_access(DiskAccess::Pread)), 1);
        runtime.clock = Arc::new(ManualClock::default());
        let schema = schema_of(&table);
        OsDisk::new().create_dir_all(&node).expect("made");
        let directory = Directory::open(&runtime, options).expect("opens");
        let shards = directory.recover(&schema).expect("recovers").start_local(&schema).expect("starts");
        let own = node.join("data/k/../k");
        OsDisk::new().create_dir_all(&node.join("data/k")).expect("made");
        let error = import(&shards, &table, own.to_str().expect("text")).await.expect_err("live files");
        assert!(error.to_string().contains("live files"), "{error}");
    });
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_changes() {
    let (disk, table) = (MemoryDisk::new(), table_of("nb", "wide"));
    place(&disk, &fixtures("nb", "wide"), "/brought");
    place(&disk, &fixtures("nb", "many"), "/other");
    let before = names(&disk, "/other");
    run(async {
        let shards = start(&disk, options(2), &table).expect("starts");
        let error = import(&shards, &table, "/other").await.expect_err("another table");
        assert!(error.to_string().contains("partition key column key is of type text"), "{error}");
        let error = import(&shards, &table, "/nowhere").await.expect_err("no directory");
        assert!(error.to_string().contains("no such directory"), "{error}");
        let error = import(&shards, &table, "/node/data/k").await.expect_err("live files");
        assert!(error.to_string().contains("live files"), "{error}");
        disk.flip_bits(&Path::new("/brought").join("nb-1-big-Data.db"), 5000, 4).expect("flips");
        let error = import(&shards, &table, "/brought").await.expect_err("damaged");
        assert!(error.to_string().contains("checksum"), "{error}");
        disk.create_dir_all(Path::new("/old")).expect("made");
        disk.write_atomically(Path::new("/old/me-1-big-Data.db"), b"x").expect("written");
        let error = import(&shards, &table, "/old").await.expect_err("an old version");
        assert!(error.to_string().contains("version me"), "{error}");
        assert!(all(&shards, &table).await.is_empty());
    });
    assert_eq!(names(&disk, "/other"), before);
    assert_eq!(names(&disk, &live_directory(&table)), Vec::<String>::new());
}

#[test]
fn files_placed_in_the_directory_of_a_table_stay_through_a_start_and_are_refreshed() {
    let (disk, table) = (MemoryDisk::new(), table_of("oa", "many"));
    let directory = live_directory(&table);
    run(async { start(&disk, options(2), &table).expect("starts").stop(true).await.expect("stops") });
    place(&disk, &fixtures("oa", "many"), &directory);
    run(async {
        let shards = start(&disk, options(2), &table).expect("starts");
        // Else each shard would write its part of the old file anew.
        let table_on = |handle: &storage::ShardHandle| handle.local().table(table.id()).expect("the table");
        shards.handles().iter().for_each(|handle| table_on(handle).set_auto_compaction(false));
        assert!(all(&shards, &table).await.is_empty());
        let refresh = || shards.handles()[0].shards().refresh(table.id(), ImportOptions::default());
        assert_eq!(refresh().await.expect("refreshes").file_count, 1);
        assert_eq!(all(&shards, &table).await.len(), 3000);
        assert_eq!(refresh().await.expect("nothing new").file_count, 0);
        shards.stop(true).await.expect("stops");
    });
    let tocs = names(&disk, &directory).iter().filter(|name| name.ends_with("TOC.txt")).count();
    assert_eq!(tocs, 1);
}

/// On demand while compaction is off; else in the background.
#[test]
fn files_of_an_older_version_are_written_anew_in_ours() {
    for (version, is_asked) in [("nb", true), ("oa", true), ("nb", false)] {
        let (disk, table) = (MemoryDisk::new(), table_of(version, "many"));
        place(&disk, &fixtures(version, "many"), "/brought");
        run(async {
            let shards = start(&disk, options(2), &table).expect("starts");
            let shard = |index: usize| shards.handles()[index].local();
            let table_on = |index: usize| shard(index).table(table.id()).expect("the table");
            (0..2).for_each(|index| table_on(index).set_auto_compaction(!is_asked));
            import(&shards, &table, "/brought").await.expect("imports");
            let before = all(&shards, &table).await;
            assert_eq!(before.len(), 3000);
            let is_current = |index: usize| {
                let stats = shard(index).table(table.id()).expect("the table").stats();
                assert_eq!(stats.sstable_count, 1);
                stats.current_sstable_count == 1
            };
            for index in 0..2 {
                let request = RewriteRequest { files: RewriteFiles::OldVersion, created_max_ms: None };
                match is_asked {
                    true => assert!(table_on(index).rewrite(request).await.expect("rewritten")),
                    false => tokio::time::sleep(std::time::Duration::from_secs(10)).await,
                }
            }
            assert!(is_current(0) && is_current(1), "{version}");
            assert!(all(&shards, &table).await == before, "{version}: rows differ");
            let live = names(&disk, &live_directory(&table));
            let data: Vec<_> = live.iter().filter(|name| name.ends_with("-Data.db")).collect();
            assert!(data.len() == 2 && data.iter().all(|name| name.starts_with("da-")), "{data:?}");
            shards.stop(true).await.expect("stops");
        });
    }
}

fn with_snapshots(shard_count: u16) -> StorageOptions {
    StorageOptions {
        auto_snapshot: true,
        spell_table: Some(|table| format!("CREATE TABLE {}", table.name())),
        ..options(shard_count)
    }
}

#[test]
fn a_snapshot_keeps_rows_that_are_truncated_and_can_be_imported() {
    let (disk, table) = (MemoryDisk::new(), plain_table());
    run(async {
        let shards = start(&disk, with_snapshots(2), &table).expect("starts");
        let write = async |pk: i32, mutation| {
            let handle = &shards.handles()[0];
            let owner = handle.shards().owner(crate::given::key(pk).token);
            shards.handles()[owner].local().write(&[mutation]).await.expect("writes");
        };
        for pk in 0..30 {
            write(pk, insert(&table, pk, 1, "kept", 10)).await;
        }
        let node = shards.handles()[0].shards();
        node.snapshot(table.id(), "first", false).await.expect("kept");
        let error = node.snapshot(table.id(), "first", false).await.expect_err("a name only once");
        assert_eq!(error.to_string(), "Snapshot first already exists.");
        let error = node.snapshot(table.id(), "../first", false).await.expect_err("a name, not a path");
        assert_eq!(error.to_string(), "Snapshot name cannot contain /");
        let before = all(&shards, &table).await;
        assert_eq!(before.len(), 30);
        for handle in shards.handles() {
            handle
                .local()
                .table(table.id())
                .expect("a table")
                .truncate(Emptying::Alone)
                .await
                .expect("truncates");
        }
        for pk in 0..3 {
            write(pk, delete(&table, pk, 5)).await;
        }
        assert!(all(&shards, &table).await.is_empty());
        let kept = format!("{}/snapshots", live_directory(&table));
        let names_of = names(&disk, &kept);
        assert_eq!(names_of.len(), 2, "{names_of:?}");
        let own = names_of.iter().find(|name| name.starts_with("truncated-")).expect("of itself");
        assert!(own.ends_with("-t"), "{own}");
        let manifest = disk.read(Path::new(&format!("{kept}/{own}/manifest.json"))).expect("there");
        assert_eq!(String::from_utf8_lossy(&manifest).matches("-Data.db").count(), 2);
        let listed = shards.handles()[0].local().snapshots().list().await.expect("lists");
        assert_eq!(listed.iter().map(|facts| facts.table.as_str()).collect::<Vec<_>>(), ["t", "t"]);
        assert!(listed[0].true_bytes > 1000, "{listed:?}");

        let options = ImportOptions { copy_data: true, ..ImportOptions::default() };
        let from = format!("{kept}/first");
        node.import(table.id(), from.into(), options).await.expect("imports");
        assert_eq!(all(&shards, &table).await, before);
        let filter = ClearFilter { tag: Some("first".into()), keyspaces: Vec::new() };
        assert_eq!(shards.handles()[0].local().snapshots().clear(filter).await.expect("clears"), 1);
        assert_eq!(all(&shards, &table).await, before);
        assert_eq!(names(&disk, &kept).len(), 1);
    });
}

#[test]
fn a_dropped_table_and_flushed_files_are_kept_when_wanted() {
    let (disk, table) = (MemoryDisk::new(), plain_table());
    run(async {
        let shards = start(&disk, with_snapshots(1), &table).expect("starts");
        let shard = shards.handles()[0].local();
        shard.write(&[insert(&table, 1, 1, "v", 10)]).await.expect("writes");
        shard.snapshots().keep_backups(true);
        shard.flush(table.id()).await.expect("flushes");
        let backups = names(&disk, &format!("{}/backups", live_directory(&table)));
        assert!(backups.iter().any(|name| name.ends_with(Component::Data.file_suffix())), "{backups:?}");
        shard.write(&[insert(&table, 2, 1, "not flushed", 10)]).await.expect("writes");
        shard.take_schema(Arc::new(Schema::new(2, []))).await.expect("drops");
        let kept = format!("{}/snapshots", live_directory(&table));
        let tags = names(&disk, &kept);
        assert!(tags.len() == 1 && tags[0].starts_with("dropped-"), "{tags:?}");
        let data = names(&disk, &format!("{kept}/{}", tags[0]));
        assert_eq!(data.iter().filter(|name| name.ends_with("Data.db")).count(), 2, "{data:?}");
        assert!(data.contains(&"schema.cql".to_owned()) && data.contains(&"manifest.json".to_owned()));
        let live = names(&disk, &live_directory(&table));
        assert!(!live.iter().any(|name| name.ends_with("Data.db")), "{live:?}");
    });
}
