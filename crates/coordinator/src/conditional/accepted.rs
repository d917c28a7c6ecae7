//! What this node has accepted as a replica and nobody has written is settled: whoever has proposed it is away, or what
//! it has sent was lost.

use std::time::Duration;

use futures_util::future::join_all;
use storage::unsettled;
use tokio::time::sleep;

use super::carried::settle;
use crate::{Consistency, Coordinator};

/// So often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What was accepted so long ago should be written. It is tried as often again.
const AGE: Duration = Duration::from_millis(500);
/// So many partitions are settled together.
const TOGETHER_MAX: usize = 32;
/// Between two tries to find what an earlier run has left.
const PAUSE: Duration = Duration::from_secs(1);

/// Finds what an earlier run has accepted, and settles that and what comes, for ever.
pub(crate) async fn settle_accepted(coordinator: Coordinator) {
    let shard = coordinator.shard().local();
    while let Err(failure) = replica::recall_accepted(shard).await {
        tracing::error!(%failure, "what this node has accepted in an earlier run is not known, and reads wait for it");
        sleep(PAUSE).await;
    }
    loop {
        sleep(LOOK_EVERY).await;
        let old = unsettled(shard).take_old(AGE, TOGETHER_MAX);
        let settling = old.into_iter().map(|(table, key)| {
            let coordinator = &coordinator;
            async move {
                if coordinator.schema().table_by_id(table).is_none() {
                    return unsettled(coordinator.shard().local()).forget(table);
                }
                if let Err(error) = settle(coordinator, table, key, Consistency::Serial).await {
                    tracing::debug!(%error, "what was accepted of a partition is not settled yet");
                }
            }
        });
        join_all(settling).await;
    }
}
