//! A node that has taken the place of another one and gets its rows.

use super::*;

#[test]
fn a_replica_that_gets_its_rows_is_written_to_and_counts_as_one_that_is_away() {
    run(async {
        let ring = Ring::start_joining(2).await;
        ring.write(0, 1, "a", Consistency::Quorum).await.expect("two count");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(ring.holders(1, "a").await, [0, 1, 2], "it has what is written");
        let all = ring.write(0, 2, "a", Consistency::All).await;
        assert!(matches!(all, Err(ReplicaError::Unavailable { required: 3, alive: 2, .. })), "{all:?}");
        let all = ring.read(1, 1, Consistency::All).await;
        assert!(matches!(all, Err(ReplicaError::Unavailable { required: 3, alive: 2, .. })), "{all:?}");
        ring.lose(2).await;
        ring.write(0, 3, "missed", Consistency::Quorum).await.expect("two count");
        ring.find(2).await;
        assert_eq!(ring.holders(3, "missed").await, [0, 1]);
        for node in 0..3 {
            // Also through itself: it does not ask itself.
            let shown = ring.read(node, 3, Consistency::One).await.expect("others have it");
            assert_eq!(shown.as_deref(), Some("missed"), "through {node}");
        }
        ring.lose(1).await;
        let quorum = ring.write(0, 4, "a", Consistency::Quorum).await;
        assert!(matches!(quorum, Err(ReplicaError::Unavailable { required: 2, alive: 1, .. })), "{quorum:?}");
        let quorum = ring.read(0, 1, Consistency::Quorum).await;
        assert!(matches!(quorum, Err(ReplicaError::Unavailable { required: 2, alive: 1, .. })), "{quorum:?}");
    });
}
