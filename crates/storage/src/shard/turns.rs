//! Whose turn it is among nodes to change a partition by a condition.
//!
//! Each node has its own clients apart by [claims](super::claims); one replica of a partition does the same for nodes.
//! A turn that is given to another node ends when that says so, or when it has been silent for [`TURN_MAX`]. Nothing
//! hangs on it but time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use rows::PartitionKey;
use schema::TableId;

use super::Shard;
use super::claims::{Claim, Partitions, Place, claim};

/// So long at most another node has a turn: others have waited for it long enough.
const TURN_MAX: Duration = Duration::from_millis(500);

/// The turns in partitions of a shard.
#[derive(Default)]
pub(super) struct Turns {
    partitions: Partitions,
    /// Those that other nodes have, each with its number.
    given: RefCell<BTreeMap<Place, (u64, Claim)>>,
    given_count: Cell<u64>,
}

impl Turns {
    /// Ends the turn in a partition, if it is the one of that number, and tells whether it was.
    fn end(&self, place: &Place, number: Option<u64>) -> bool {
        let mut given = self.given.borrow_mut();
        let is_it = given.get(place).is_some_and(|(given, _)| number.is_none_or(|number| number == *given));
        is_it && given.remove(place).is_some()
    }
}

/// Waits for this node's turn, which is over when it is dropped.
///
/// # Cancel safety
/// Dropped, the place in the queue is given up.
pub(crate) async fn take(shard: &Shard, table: TableId, key: &PartitionKey) -> Claim {
    claim(shard.turns.partitions.get(table, key)).await
}

/// Waits for another node's turn, and gives it.
///
/// # Cancel safety
/// Dropped, the place in the queue is given up.
pub(crate) async fn give(shard: &Rc<Shard>, table: TableId, key: PartitionKey) {
    let turn = take(shard, table, &key).await;
    let (place, number) = ((table, key), shard.turns.given_count.get());
    shard.turns.given_count.set(number + 1);
    let earlier = shard.turns.given.borrow_mut().insert(place.clone(), (number, turn));
    assert!(earlier.is_none(), "one node at a time has a turn");
    let weak = Rc::downgrade(shard);
    let watch = async move {
        tokio::time::sleep(TURN_MAX).await;
        if weak.upgrade().is_some_and(|shard| shard.turns.end(&place, Some(number))) {
            tracing::debug!(key = ?place.1.bytes, "a turn has lasted for as long as may be, and ends");
        }
    };
    runtime::spawn_local("a turn of another node", Box::pin(watch));
}

/// Another node's turn is over.
pub(crate) fn end(shard: &Shard, table: TableId, key: &PartitionKey) {
    shard.turns.end(&(table, key.clone()), None);
}
