//! A write whose asker goes away before all of its replicas have answered.

use tokio::time::timeout;

use super::*;

/// Marked at once, its slot could be compared before a replica writes it that is slow; and the others would lack it.
#[test]
fn what_is_left_is_missed_by_those_who_can_not_write_it_any_more() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let counts = || [0, 1, 2].map(|node| ring.marks[0].slot_count(host_id(node)));
        // One way, so that nobody knows.
        ring.network.cut(address(0).ip(), address(2).ip());
        let left = timeout(PATIENCE / 2, ring.write(0, 1, "left", Consistency::All)).await;
        assert!(left.is_err() && counts() == [0, 0, 0], "the third may write it yet: {left:?}");
        sleep(PATIENCE).await;
        assert_eq!(counts(), [0, 0, 1]);
        assert_eq!(ring.holders(1, "left").await, [0, 1]);
    });
}
