//! Do directories of earlier versions become ours, with every row?
//!
//! They are kept in `tests/formats/directories/`; `examples/keep_directory.rs` says what is in them.

use std::path::{Path, PathBuf};

use runtime::{Disk, MemoryDisk, OpenMode};

use crate::given::*;

/// By the commit that wrote them.
const KEPT: [&str; 2] = ["f499447", "1a34e4b"];

/// A copy of a kept directory.
fn kept(name: &str) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/directories").join(name);
    copy(&disk, &root, Path::new("/node"));
    // As it lies there, all of it is durable.
    disk.kill()
}

#[expect(clippy::disallowed_methods, reason = "kept files of the repository")]
fn copy(disk: &MemoryDisk, from: &Path, to: &Path) {
    disk.create_dir_all(to).expect("makes a directory");
    let mut entries: Vec<PathBuf> =
        from.read_dir().expect("a kept directory").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for from in entries {
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(disk, &from, &to);
            continue;
        }
        let file = disk.open(&to, OpenMode::CreateNew).expect("creates");
        file.write_all_at(&std::fs::read(&from).expect("a kept file"), 0).expect("writes");
        file.sync_all().expect("syncs");
    }
    disk.sync_dir(to).expect("syncs");
}

/// A row: its partition, its place there, its value.
type Expected = (i32, i32, String);

/// What was written into a kept directory: the rows of `k.t`, and of `k.other`.
fn expected() -> (Vec<Expected>, Vec<Expected>) {
    let row = |pk: i32| (pk, 0, if pk == 1 { "again".to_owned() } else { format!("v{pk}") });
    let is_deleted = |pk: &i32| *pk < 30 && pk % 5 == 0;
    let of_other = (0..30).chain(40..50).map(|pk| (pk, 0, format!("v{pk}")));
    ((0..50).filter(|pk| !is_deleted(pk)).map(row).collect(), of_other.collect())
}

async fn check(node: &Node, about: &str) {
    let found = (node.all(&table(), 20).await, node.all(&other(), 20).await);
    assert_eq!(found, expected(), "{about}");
}

fn has_documents(disk: &MemoryDisk) -> bool {
    let generations = disk.list(Path::new("/node/manifest")).expect("lists");
    let files = generations.iter().flat_map(|generation| {
        disk.list(&Path::new("/node/manifest").join(&generation.name)).expect("lists")
    });
    files.into_iter().any(|file| file.name.ends_with(".json"))
}

#[test]
fn a_kept_directory_starts_with_every_row_and_starts_again() {
    for name in KEPT {
        for shard_count in [2, 1, 3] {
            let about = format!("{name}, {shard_count} shards");
            let mut disk = kept(name);
            assert!(has_documents(&disk), "{about}: it is of an earlier version");
            for is_stopped in [false, true, true] {
                run(async {
                    let node = Node::start(&disk, options(shard_count)).expect("starts");
                    check(&node, &about).await;
                    if is_stopped {
                        node.shards.stop(true).await.expect("stops");
                    }
                });
                assert!(!has_documents(&disk), "{about}: it is carried over");
                disk = disk.crash(u64::from(shard_count));
            }
        }
    }
}

#[test]
fn a_first_start_on_a_kept_directory_may_be_cut_off_anywhere() {
    for name in KEPT {
        let whole = kept(name);
        run(async { drop(Node::start(&whole, options(2)).expect("starts")) });
        let change_count = whole.faults().change_count();
        assert!(change_count > 10, "{change_count}");
        for cut in 0..change_count {
            let disk = kept(name);
            disk.faults().power_off_after(cut);
            run(async { drop(Node::start(&disk, options(2))) });
            for image in [disk.crash(cut), disk.kill()] {
                run(async {
                    let node = Node::start(&image, options(2)).expect("starts after a power cut");
                    check(&node, &format!("{name}, cut after {cut}")).await;
                });
            }
        }
    }
}
