//! What is written again: two replicas have it, and what the others have missed is marked.

use super::*;

#[test]
fn what_is_delivered_is_on_each_replica_or_marked_as_missed() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let (replicas, marks) = (ring.replicas(0), &ring.marks[0]);
        let deliver =
            |pk: i32| replicas.deliver(vec![insert(pk, "v", 1), insert(pk + 100, "v", 1)], PATIENCE);
        deliver(1).await.expect("all live");
        assert_eq!(ring.holders(1, "v").await, [0, 1, 2], "also those that a level would not wait for");
        assert_eq!(marks.slot_count(host_id(2)), 0);
        // One way, so that nobody knows yet.
        ring.network.cut(address(0).ip(), address(2).ip());
        deliver(2).await.expect("the others have it");
        assert_eq!(marks.slot_count(host_id(2)), 2, "marked when it is told, not later");
        ring.lose(2).await;
        deliver(3).await.expect("the others have it");
        assert_eq!([1, 2].map(|node| marks.slot_count(host_id(node))), [0, 4]);
    });
}

/// Marks are no copies: when that one is lost there would be nothing to make good from.
#[test]
fn what_only_one_replica_has_or_none_is_not_delivered() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        ring.lose(1).await;
        ring.lose(2).await;
        let refused = ring.replicas(0).deliver(vec![insert(1, "v", 1)], PATIENCE).await;
        let is_one_too_few = matches!(refused, Err(ReplicaError::Unavailable { required: 2, alive: 1, .. }));
        assert!(is_one_too_few && ring.holders(1, "v").await.is_empty(), "{refused:?}");

        let ring = Ring::start(4, &["dc1"], None).await;
        for pk in 0..50 {
            ring.write(0, pk, "before", Consistency::All).await.expect("all live");
        }
        let mut elsewhere = None;
        for pk in 0..50 {
            if !ring.holders(pk, "before").await.contains(&0) {
                elsewhere = Some(pk);
            }
        }
        let pk = elsewhere.expect("each node has three in four");
        (1..4).for_each(|node| ring.network.cut(address(0).ip(), address(node).ip()));
        let late = ring.replicas(0).deliver(vec![insert(pk, "after", 2)], PATIENCE).await;
        assert!(matches!(late, Err(ReplicaError::WriteTimeout { received: 0, required: 2 })), "{late:?}");
        for node in 1..4 {
            ring.lose(node).await;
        }
        let refused = ring.replicas(0).deliver(vec![insert(pk, "after", 2)], PATIENCE).await;
        assert!(
            matches!(refused, Err(ReplicaError::Unavailable { required: 2, alive: 0, .. })),
            "{refused:?}"
        );
    });
}
