//! What was planned before a table was emptied.

use super::*;

/// A replica that has emptied one of its tables takes nothing of a message that was planned before.
#[test]
fn what_came_with_something_outdated_is_missed() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let store = ring.nodes[2].0.handles()[0].local().table(table().id()).expect("a table");
        store.truncate(storage::Emptying::Agreed { epoch: 9 }).await.expect("emptied");
        let missed = async |mutations: Vec<Mutation>| {
            ring.replicas(0).write(mutations, Consistency::Quorum, PATIENCE).await.expect("two have it");
            sleep(2 * PATIENCE).await;
            ring.marks[0].slot_count(host_id(2))
        };
        assert_eq!(missed(vec![insert(1, "v", 1)]).await, 0, "it would have been emptied");
        let beside = insert_into(&other_table(), 1, "v", 1);
        assert_eq!(missed(vec![insert(1, "v", 1), beside]).await, 2);
    });
}
