//! What this node has accepted as a replica and nobody has written is settled: whoever has proposed it is away, or what
//! it has sent was lost.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use rows::PartitionKey;
use schema::TableId;
use storage::unsettled;
use tokio::time::{Instant, sleep, timeout};

use super::{carried, settle_partition};
use crate::replicas::deciders::is_settled_here;
use crate::{Consistency, Coordinator};

/// So often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What was accepted so long ago should be written. It is tried as often again.
const AGE: Duration = Duration::from_millis(500);
/// So long whoever decides about the partition is waited for, before this node decides: it is no office.
const DECIDED_WITHIN: Duration = Duration::from_millis(500);
/// So many partitions are settled together.
const TOGETHER_MAX: usize = 32;
/// Between two tries to find what an earlier run has left.
const PAUSE: Duration = Duration::from_secs(1);

/// A partition of a table.
type Place = (TableId, PartitionKey);

/// Finds what an earlier run has accepted, and settles that and what comes, for ever.
pub(crate) async fn settle_accepted(coordinator: Coordinator) {
    let shard = coordinator.shard().local();
    while let Err(failure) = replica::recall_accepted(shard).await {
        tracing::error!(%failure, "what this node has accepted in an earlier run is not known, and scans wait for it");
        sleep(PAUSE).await;
    }
    let settling: Rc<RefCell<BTreeSet<Place>>> = Rc::default();
    loop {
        sleep(LOOK_EVERY).await;
        let room = TOGETHER_MAX - settling.borrow().len();
        for place in unsettled(shard).take_old(AGE, room) {
            if !settling.borrow_mut().insert(place.clone()) {
                continue;
            }
            let (coordinator, settling) = (coordinator.clone(), Rc::clone(&settling));
            let settle = async move {
                settle(&coordinator, &place).await;
                settling.borrow_mut().remove(&place);
            };
            runtime::spawn_local("a partition that is settled", Box::pin(settle));
        }
    }
}

/// Has the replicas agree on what has come of a partition: as whoever decides about it does, or this node in its place.
async fn settle(coordinator: &Coordinator, (table, key): &Place) {
    let unsettled = unsettled(coordinator.shard().local());
    // Its table is gone, others are its replicas now, or nobody waits here for what replicas have accepted.
    let is_here =
        coordinator.replicas_of(*table).is_some_and(|replicas| is_settled_here(&replicas, *table, key.token));
    if !is_here {
        return unsettled.give_up(*table, key);
    }
    let (level, begun) = (Consistency::Serial, Instant::now());
    let decided = carried::settle(coordinator, *table, key.clone(), level);
    _ = timeout(DECIDED_WITHIN, decided).await;
    if unsettled.has_from_before(*table, key, begun)
        && let Err(error) = settle_partition(coordinator, *table, key, level).await
    {
        tracing::debug!(%error, "what was accepted of a partition is not settled yet");
    }
}
