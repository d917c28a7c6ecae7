//! Does what one shard does in another's place come out as if that one had done it?

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use futures_util::FutureExt;
use read::ReadTarget;
use runtime::{MemoryDisk, Plant, Runtime};
use storage::{Directory, ShardHandle, StorageOptions, SyncMode};

use crate::given::*;

const SHARDS: u16 = 3;
const KEYS_PER_SHARD: i32 = 2_000;

/// All shards write keys of all shards, with naps in between, while memtables are flushed; then each
/// reads all. What does not fit a visit (a sync, a flush, a host that is awake) must take the long way.
fn shards_write_and_read_everywhere(sync: SyncMode) {
    let options =
        StorageOptions { sync, memtable_bytes: 1 << 20, mailbox_messages: 100_000, ..options(SHARDS) };
    let runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), 5);
    let recovered = Directory::open(&runtime, options).expect("opens").recover(&schema()).expect("recovers");
    let (told, outcomes) = channel();
    let visit_count = Arc::new(AtomicU64::new(0));
    let written = Arc::new(AtomicU64::new(0));
    let running = {
        let visit_count = Arc::clone(&visit_count);
        recovered.start(&schema(), move |handle| {
            story(handle, Arc::clone(&written), Arc::clone(&visit_count), told.clone())
        })
    };
    let running = running.expect("starts");
    for _ in 0..SHARDS {
        let found = outcomes.recv().expect("a shard that ends its story");
        assert_eq!(found, i32::from(SHARDS) * KEYS_PER_SHARD);
    }
    assert!(visit_count.load(Ordering::SeqCst) > 0, "some shard was found asleep");
    run(async move { running.stop(true).await.expect("stops") });
}

async fn story(handle: ShardHandle, written: Arc<AtomicU64>, visit_count: Arc<AtomicU64>, told: Sender<i32>) {
    let index = handle.local().index() as i32;
    for number in 0..KEYS_PER_SHARD {
        let pk = number * i32::from(SHARDS) + index;
        let write = insert(&table(), pk, 1, &"x".repeat(300), 1_704_067_200_000_000);
        handle.write(handle.shards().owner(key(pk).token), &[write]).await.expect("writes");
        if number % 50 == 7 * index {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    visit_count.fetch_add(handle.local().visits().count, Ordering::SeqCst);
    written.fetch_add(1, Ordering::SeqCst);
    while written.load(Ordering::SeqCst) < u64::from(SHARDS) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut found = 0;
    for pk in 0..i32::from(SHARDS) * KEYS_PER_SHARD {
        let command = command(&table(), ReadTarget::Keys(vec![key(pk)]));
        let page = handle.read(handle.shards().owner(key(pk).token), &command).await.expect("reads");
        found += page.partitions.iter().map(|partition| partition.rows.len() as i32).sum::<i32>();
    }
    told.send(found).expect("the test waits");
}

#[test]
fn shards_write_and_read_in_each_others_place() {
    shards_write_and_read_everywhere(SyncMode::Periodic { period: Duration::from_secs(10) });
}

#[test]
fn shards_write_in_each_others_place_and_wait_for_the_disk() {
    shards_write_and_read_everywhere(SyncMode::Group { window: Duration::ZERO });
}

/// Shard 0 writes rows of shard 1, and the power goes off as soon as each is acknowledged. How many are lost?
async fn lost_count(sync: SyncMode, plant: Option<Plant>) -> usize {
    const WRITES: usize = 24;
    let disk = MemoryDisk::new();
    let node = Node::start_with(&disk, StorageOptions { sync, ..options(2) }, |runtime| {
        plant.into_iter().for_each(|plant| runtime.plants.plant(plant));
    });
    let node = node.expect("starts");
    let (handle, host) = (&node.shards.handles()[0], node.shard(1));
    let of_host = |pk: &i32| handle.shards().owner(key(*pk).token) == host.index();
    let mut lost_count = 0;
    for pk in (0..).filter(of_host).take(WRITES) {
        handle.write(host.index(), &[insert(&table(), pk, 0, "v", 1)]).await.expect("writes");
        let after = Node::start(&disk.crash(pk as u64), options(2)).expect("starts after a power cut");
        let is_there = after.all(&table(), 100).await.iter().any(|(found, ..)| *found == pk);
        lost_count += usize::from(!is_there);
    }
    let visit_count = host.visits().count as usize;
    assert!((1..WRITES).contains(&visit_count), "some find their host asleep: {visit_count}");
    lost_count
}

#[test]
fn visitors_wait_for_the_sync_that_the_mode_asks_for() {
    let group = |window_ms| SyncMode::Group { window: Duration::from_millis(window_ms) };
    for sync in [group(0), group(5), SyncMode::Batch] {
        assert_eq!(run(lost_count(sync, None)), 0, "{sync:?}: what was acknowledged is there");
        assert!(
            run(lost_count(sync, Some(Plant::VisitorDoesNotWait))) > 0,
            "{sync:?}: who does not wait loses"
        );
    }
}

/// It was counted as soon as it stood in the memtable.
#[test]
fn a_visitor_s_write_counts_when_it_is_durable() {
    run(async {
        let sync = SyncMode::Group { window: Duration::ZERO };
        let node = Node::start(&MemoryDisk::new(), StorageOptions { sync, ..options(2) }).expect("starts");
        let (handle, host) = (&node.shards.handles()[0], node.shard(1));
        let written = || host.table(table().id()).expect("a table").stats().write_count;
        let of_host = |pk: &i32| handle.shards().owner(key(*pk).token) == host.index();
        for (count, pk) in (0..).filter(of_host).take(24).enumerate() {
            let write = [insert(&table(), pk, 0, "v", 1)];
            let mut writing = pin!(handle.write(host.index(), &write));
            assert!(writing.as_mut().now_or_never().is_none(), "it waits for the sync");
            assert_eq!(written(), count as u64, "the log does not have it yet");
            writing.await.expect("writes");
            assert_eq!(written(), count as u64 + 1);
        }
        assert!(host.visits().count > 0, "some find their host asleep");
    });
}
