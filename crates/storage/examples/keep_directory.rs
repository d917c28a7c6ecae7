//! Writes a data directory as this version does, to be kept:
//! `cargo run -p peristyle-storage --example keep_directory -- PATH`.
//!
//! Every later version has to start on it (`tests/node/kept.rs`). It holds what a directory can: files of three shards
//! in the manifests of two, with scopes, and files of one of these alone; tombstones; and a log of several tables that
//! no file has. It is left as a killed process leaves it.

#![expect(clippy::disallowed_methods, reason = "files of the repository")]
#![expect(
    clippy::expect_used,
    reason = "a program for one occasion ends at the first thing that does not go well"
)]
#![allow(dead_code, reason = "the tests' words are more than are said here")]

#[path = "../tests/node/given.rs"]
mod given;

use std::path::Path;

use given::{Node, delete, insert, options, other, run, table};
use runtime::{Disk, EntryKind, MemoryDisk};
use storage::StorageOptions;

fn main() {
    let target = std::env::args().nth(1).expect("where to write it");
    let disk = MemoryDisk::new();
    run(first_life(&disk));
    run(second_life(&disk));
    copy(&disk.kill(), Path::new("/node"), Path::new(&target));
}

/// Segments no longer than they must be, and no flush that nobody asked for.
fn small(shard_count: u16) -> StorageOptions {
    StorageOptions { segment_bytes: 8 << 10, log_bytes: 1 << 30, ..options(shard_count) }
}

/// Partitions 0 to 29 of both tables, in files of three shards.
async fn first_life(disk: &MemoryDisk) {
    let node = Node::start(disk, small(3)).expect("starts");
    for pk in 0..30 {
        write_both(&node, pk).await;
    }
    node.shards.stop(true).await.expect("stops");
}

/// With two shards: every fifth of them is deleted in `k.t`, 30 to 39 come there; one shard compacts. In the log alone:
/// 40 to 49 of both tables, and another value of partition 1.
async fn second_life(disk: &MemoryDisk) {
    let node = Node::start(disk, small(2)).expect("starts");
    for pk in (0..30).step_by(5) {
        node.write(pk, delete(&table(), pk, 20)).await.expect("deletes");
    }
    for pk in 30..40 {
        node.write(pk, insert(&table(), pk, 0, &format!("v{pk}"), 10)).await.expect("writes");
    }
    for handle in node.shards.handles() {
        handle.local().flush(table().id()).await.expect("flushes");
    }
    node.shard(0).compact(table().id()).await.expect("compacts");
    for pk in 40..50 {
        write_both(&node, pk).await;
    }
    node.write(1, insert(&table(), 1, 0, "again", 30)).await.expect("writes");
}

/// A row of each table, in one record.
async fn write_both(node: &Node, pk: i32) {
    let v = format!("v{pk}");
    let both = [insert(&table(), pk, 0, &v, 10), insert(&other(), pk, 0, &v, 10)];
    node.owner(pk).write(&both).await.expect("writes");
}

fn copy(disk: &MemoryDisk, from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("makes a directory");
    for entry in disk.list(from).expect("lists") {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        match entry.kind {
            EntryKind::Directory => copy(disk, &from, &to),
            // A spare is no part of the log.
            _ if entry.name.ends_with(".spare") => {}
            _ => std::fs::write(to, disk.read(&from).expect("reads")).expect("writes"),
        }
    }
}
