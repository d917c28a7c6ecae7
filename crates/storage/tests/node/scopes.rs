//! Of which files do not all partitions count?

use std::path::Path;

use runtime::{Disk, MemoryDisk};
use storage::state_file::write_state;

use crate::given::*;

const PARTITIONS: i32 = 60;

/// The table's only file, in a manifest that lets the tokens of the first half of the ring count.
fn narrow(disk: &MemoryDisk) {
    let directory = format!("/node/data/k/t-{}", table().id().0.simple());
    let entries = disk.list(Path::new(&directory)).expect("lists");
    let data = entries.iter().find(|entry| entry.name.ends_with("-Data.db")).expect("a file");
    let path = Path::new(&directory).join(&data.name);
    let (file, _) = sstable::Descriptor::from_path(&path).expect("a table file");
    let state = serde_json::json!({
        "tables": { table().id().0.to_string(): {
            "files": [file.id],
            "scopes": { file.id.to_string(): [{ "ranges": [[i64::MIN, -1]] }] },
            "flushed": { "segment": 1000, "offset": 0 },
        } },
        "last_timestamp": 1000,
    });
    write_state(disk, Path::new("/node/manifest/1/shard-0.json"), &state).expect("writes");
}

/// As after an edit that says what of a file belongs to a node: reads, scans and compaction keep to it.
#[test]
fn a_file_counts_within_its_token_ranges_alone() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(1)).expect("starts");
        for pk in 0..PARTITIONS {
            node.write(pk, insert(&table(), pk, 0, "v", 1)).await.expect("writes");
        }
        node.shards.stop(true).await.expect("stops");
    });
    narrow(&disk);
    let expected: Vec<i32> = (0..PARTITIONS).filter(|pk| key(*pk).token.0 < 0).collect();
    assert!(expected.len() > 10 && expected.len() < 50);
    for is_compacted in [false, true, false] {
        run(async {
            let node = Node::start(&disk, options(1)).expect("starts");
            let found: Vec<i32> = node.all(&table(), 100).await.into_iter().map(|(pk, _, _)| pk).collect();
            assert_eq!(found, expected, "by a scan");
            for pk in 0..PARTITIONS {
                let read = command(&table(), read::ReadTarget::Keys(vec![key(pk)]));
                let partitions = pages(node.shard(0), read).await;
                assert_eq!(partitions.len(), usize::from(expected.contains(&pk)), "key {pk}");
            }
            if is_compacted {
                node.shard(0).compact(table().id()).await.expect("compacts");
                let stats = node.shard(0).table(table().id()).expect("the table").stats();
                assert_eq!(stats.sstable_count, 1);
            }
            node.shards.stop(true).await.expect("stops");
        });
    }
}
