//! Does what one shard asks of another come back?

use std::time::Duration;

use runtime::MemoryDisk;
use storage::{StorageError, TableError};

use crate::given::*;

#[test]
fn errands_are_answered_at_once_or_later_or_not_at_all() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(2)).expect("starts");
        let asking = &node.shards.handles()[0];
        let at_once = asking.on(1, |shard| async move { shard.index() });
        let later = asking.on(1, |shard| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            shard.index() + 10
        });
        let never = asking.on(1, |_| async move {
            if true {
                panic!("a panic on purpose");
            }
        });
        let (at_once, later, never) = tokio::join!(at_once, later, never);
        assert_eq!(at_once.expect("an answer"), 1);
        assert_eq!(later.expect("an answer"), 11);
        assert!(matches!(never, Err(StorageError::Table(TableError::Panicked(_)))));
        let after = asking.on(1, |shard| async move { shard.index() }).await;
        assert_eq!(after.expect("the shard goes on"), 1);
    });
}

#[test]
fn a_shard_asked_too_much_at_once_says_so() {
    run(async {
        let few = storage::StorageOptions { mailbox_messages: 3, ..options(2) };
        let node = Node::start(&MemoryDisk::new(), few).expect("starts");
        let asking = &node.shards.handles()[0];
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let asking = asking.clone();
            answers.spawn_local(async move { asking.on(1, |shard| async move { shard.index() }).await });
        }
        let answers = answers.join_all().await;
        let is_refused = |answer: &&_| matches!(answer, Err(StorageError::ShardBusy { shard: 1 }));
        assert_eq!(answers.iter().filter(is_refused).count(), 2);
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    });
}
