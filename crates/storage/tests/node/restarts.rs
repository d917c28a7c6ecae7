//! What is there after a power cut, at any point, and with other shards?

use std::cell::RefCell;
use std::collections::BTreeMap;

use runtime::{Disk, MemoryDisk};

use crate::given::*;

/// What must be there: `(pk, c)` to value. `None` is a write that was not acknowledged.
type Written = RefCell<BTreeMap<(i32, i32), String>>;

/// A fixed story with every kind of change; notes what was acknowledged, ends at the first error.
async fn story(disk: &MemoryDisk, shard_count: u16, written: &Written, tried: &Written) -> Option<()> {
    let node = Node::start(disk, options(shard_count)).ok()?;
    for step in 0..60i32 {
        let (pk, c) = (step % 7, step % 5);
        let v = format!("{step}");
        tried.borrow_mut().insert((pk, c), v.clone());
        node.write(pk, insert(&table(), pk, c, &v, i64::from(step))).await.ok()?;
        written.borrow_mut().insert((pk, c), v);
        if step % 11 == 10 {
            for handle in node.shards.handles() {
                handle.local().flush(table().id()).await.ok()?;
            }
        }
        if step % 25 == 24 {
            for handle in node.shards.handles() {
                handle.local().compact(table().id()).await.ok()?;
            }
        }
    }
    node.shards.stop(true).await.ok()
}

async fn check(disk: &MemoryDisk, shard_count: u16, written: &Written, tried: &Written, about: &str) {
    let node = Node::start(disk, options(shard_count)).expect("starts after a power cut");
    let found: BTreeMap<(i32, i32), String> =
        node.all(&table(), 50).await.into_iter().map(|(pk, c, v)| ((pk, c), v)).collect();
    let (written, tried) = (written.borrow(), tried.borrow());
    for (place, v) in &*tried {
        let found = found.get(place);
        let is_known = found == written.get(place) || found == Some(v);
        assert!(is_known, "{about}: {place:?} is {found:?}, written {:?}", written.get(place));
    }
    assert!(found.keys().all(|place| tried.contains_key(place)), "{about}: rows nobody wrote");
}

#[test]
fn whatever_was_acknowledged_survives_a_power_cut_at_any_change_of_the_disk() {
    let whole = MemoryDisk::new();
    run(async {
        story(&whole, 2, &Written::default(), &Written::default()).await.expect("goes well without faults");
    });
    let change_count = whole.faults().change_count();
    assert!(change_count > 150, "{change_count}");
    for cut in (0..change_count).step_by(7) {
        let disk = MemoryDisk::new();
        disk.faults().power_off_after(cut);
        let (written, tried) = (Written::default(), Written::default());
        run(async { story(&disk, 2, &written, &tried).await });
        let image = disk.crash(cut);
        run(check(&image, 2, &written, &tried, &format!("power cut after {cut} changes")));
    }
}

#[test]
fn a_power_cut_while_the_number_of_shards_changes_loses_nothing() {
    let (written, tried) = (Written::default(), Written::default());
    let before = MemoryDisk::new();
    run(async { story(&before, 1, &written, &tried).await.expect("goes well") });
    let start_with_three =
        |disk: &MemoryDisk| run(async { Node::start(disk, options(3)).map(|_| ()) }).is_ok();
    let whole = before.kill();
    assert!(start_with_three(&whole));
    let change_count = whole.faults().change_count();
    for cut in 0..change_count {
        let disk = before.kill();
        disk.faults().power_off_after(cut);
        start_with_three(&disk);
        let image = disk.crash(cut);
        let shard_count = [1, 2, 3][cut as usize % 3];
        run(check(&image, shard_count, &written, &tried, &format!("cut after {cut} of {change_count}")));
    }
}

/// A shard compacts a file that it shares, and so purges; the other shards still list it. The next
/// change of the shards brought what was purged back to life.
#[test]
fn rows_are_equal_through_one_two_three_and_two_shards() {
    let mut disk = MemoryDisk::new();
    let mut expected = Vec::new();
    for (life, shard_count) in [1u16, 2, 3, 2, 1].into_iter().enumerate() {
        run(async {
            let node = Node::start(&disk, options(shard_count)).expect("starts");
            assert_eq!(node.all(&table(), 100).await, expected, "{shard_count} shards");
            let timestamp = life as i64 * 10 + 1;
            for pk in 0..40 {
                node.write(pk, insert(&table(), pk, life as i32, "v", timestamp)).await.expect("writes");
            }
            for handle in node.shards.handles() {
                handle.local().flush(table().id()).await.expect("flushes");
            }
            for pk in (life as i32..40).step_by(5) {
                node.write(pk, delete(&table(), pk, timestamp + 1)).await.expect("deletes");
            }
            // Some shards compact and purge, some do not.
            node.clock.advance(std::time::Duration::from_secs(100 * 86_400));
            for handle in node.shards.handles().iter().skip(life % 2) {
                handle.local().flush(table().id()).await.expect("flushes");
                handle.local().compact(table().id()).await.expect("compacts");
            }
            expected = node.all(&table(), 100).await;
            node.shards.stop(life % 2 == 0).await.expect("stops");
        });
        disk = disk.crash(life as u64);
    }
    assert!(expected.len() > 50);
}

#[test]
fn timestamps_go_on_after_a_restart_with_the_clock_set_back() {
    let disk = MemoryDisk::new();
    let last = run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        node.clock.advance(std::time::Duration::from_secs(3_600));
        let last = node.shard(0).timestamps().next();
        // Another shard's log remembers it.
        let pk =
            (0..).find(|pk| std::rc::Rc::ptr_eq(node.owner(*pk), node.shard(1))).expect("a key of shard 1");
        node.write(pk, insert(&table(), pk, 0, "v", last)).await.expect("writes");
        last
    });
    let disk = disk.crash(1);
    run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        assert!(node.shard(0).timestamps().next() > last);
        assert!(node.shard(1).timestamps().next() > last);
    });
}

/// The flush of one table made its half of a record durable before the log was synced.
#[test]
fn a_record_of_two_tables_is_whole_or_absent_though_one_of_them_is_flushed() {
    let mut whole_count = 0;
    for cut in 0..80 {
        let disk = MemoryDisk::new();
        run(async {
            let delay = std::time::Duration::from_millis(5);
            let node = Node::start_with_delay(&disk, options(1), delay).expect("starts");
            disk.faults().power_off_after(cut);
            let shard = std::rc::Rc::clone(node.shard(0));
            let writing = tokio::task::spawn_local(async move {
                shard.write(&[insert(&table(), 1, 1, "v", 1), insert(&other(), 1, 1, "v", 1)]).await
            });
            tokio::task::yield_now().await;
            _ = node.shard(0).flush(table().id()).await;
            _ = writing.await;
        });
        let disk = disk.crash(cut);
        run(async {
            let node = Node::start(&disk, options(1)).expect("starts again");
            let (one, two) = (node.all(&table(), 10).await.len(), node.all(&other(), 10).await.len());
            assert_eq!(one, two, "power cut after {cut} changes");
            whole_count += one;
        });
    }
    assert!(whole_count > 0);
}

/// A shard began anew when its manifest was gone, and took its files for left-overs.
#[test]
fn a_lost_manifest_or_node_file_ends_the_start_and_loses_nothing() {
    let disk = MemoryDisk::new();
    run(async {
        let node = Node::start(&disk, options(2)).expect("starts");
        for pk in 0..20 {
            node.write(pk, insert(&table(), pk, 1, "v", 1)).await.expect("writes");
        }
        node.shards.stop(true).await.expect("stops");
    });
    for lost in ["/node/manifest/1/shard-0.log", "/node/manifest/1/shard-1.log", "/node/node.json"] {
        run(async {
            let path = std::path::Path::new(lost);
            let kept = disk.read(path).expect("there");
            disk.remove_file(path).expect("removes");
            let error = Node::start(&disk, options(2)).err().expect("no start").to_string();
            assert!(error.contains("missing"), "{lost}: {error}");
            disk.write_atomically(path, &kept).expect("puts it back");
            let node = Node::start(&disk, options(2)).expect("starts");
            assert_eq!(node.all(&table(), 100).await.len(), 20, "{lost}");
            node.shards.stop(true).await.expect("stops");
        });
    }
}
