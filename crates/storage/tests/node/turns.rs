//! When is a turn over that was given to another node?

use std::pin::pin;
use std::time::Duration;

use futures_util::poll;
use runtime::MemoryDisk;
use tokio::time::{sleep, timeout};

use crate::given::*;

/// Longer than any turn.
const LONG: Duration = Duration::from_secs(1);

#[test]
fn who_waits_for_a_turn_has_it_when_the_one_before_is_over_or_too_old() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(2)).expect("starts");
        let handle = &node.shards.handles()[0];
        for pk in 0..8 {
            let (owner, table, key) = (handle.shards().owner(key(pk).token), table().id(), key(pk));
            handle.give_turn(owner, table, key.clone()).await.expect("given");
            let mut waiting = pin!(handle.take_turn(owner, table, key.clone()));
            assert!(poll!(&mut waiting).is_pending(), "{pk} is given");
            sleep(LONG / 10).await;
            assert!(poll!(&mut waiting).is_pending(), "{pk} is given still");
            if pk % 2 == 0 {
                handle.end_turn(owner, table, key.clone()).await.expect("ended");
                assert!(timeout(LONG / 10, &mut waiting).await.is_ok(), "{pk} was ended");
            } else {
                assert!(timeout(LONG, &mut waiting).await.is_ok(), "{pk} ends by itself");
            }
        }
    });
}

#[test]
fn what_would_have_ended_by_itself_does_not_end_the_next_turn() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let (handle, table, key) = (&node.shards.handles()[0], table().id(), key(1));
        handle.give_turn(0, table, key.clone()).await.expect("given");
        handle.end_turn(0, table, key.clone()).await.expect("ended");
        sleep(LONG / 4).await;
        handle.give_turn(0, table, key.clone()).await.expect("given again");
        // By now the first one would have been too old, and the second is not.
        sleep(LONG * 3 / 10).await;
        let mut waiting = pin!(handle.take_turn(0, table, key.clone()));
        assert!(poll!(&mut waiting).is_pending());
        assert!(timeout(LONG, &mut waiting).await.is_ok());
    });
}
