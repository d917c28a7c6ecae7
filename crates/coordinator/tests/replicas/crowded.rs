//! Replicas that live and take too little of what waits to be sent to them.

use super::*;

/// Once a client heard that its replicas were dead, and had no reason to wait.
#[test]
fn what_there_is_no_room_to_send_is_missed_or_refused_as_overload() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        ring.write(0, 1, "before", Consistency::All).await.expect("all live");
        // One way, so that nobody knows; then so much waits that nothing more is taken.
        let large = "x".repeat(30_000);
        for (silent, other) in [(2, Consistency::Quorum), (1, Consistency::One)] {
            ring.network.cut(address(0).ip(), address(silent).ip());
            for pk in 10..60 {
                ring.write(0, pk, &large, other).await.expect("the others are enough");
            }
        }
        ring.write(0, 2, "one", Consistency::One).await.expect("this node has it");
        assert_eq!(ring.holders(2, "one").await, [0]);
        sleep(2 * PATIENCE).await;
        for silent in [1, 2] {
            assert!(ring.marks[0].slot_count(host_id(silent)) > 40, "what was not sent is marked, too");
        }
        let is_overloaded = |told: &ReplicaError| {
            matches!(told, ReplicaError::Coordinator(coordinator::CoordinatorError::Overloaded { .. }))
        };
        let refused = ring.write(0, 3, "quorum", Consistency::Quorum).await.expect_err("no room");
        assert!(is_overloaded(&refused), "{refused:?}");
        assert_eq!(ring.held(0, 3).await, None, "nothing of it was done");
        let refused = ring.read(0, 1, Consistency::Quorum).await.expect_err("no room");
        assert!(is_overloaded(&refused), "{refused:?}");
        (1..3).for_each(|node| ring.network.heal(address(0).ip(), address(node).ip()));
        sleep(PATIENCE).await;
        ring.write(0, 3, "quorum", Consistency::Quorum).await.expect("there is room again");
    });
}
