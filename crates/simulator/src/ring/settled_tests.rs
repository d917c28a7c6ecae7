//! Writes of a node that is killed before another replica has them, stepped by hand in a ring of three.

use std::path::Path;
use std::time::Duration;

use protocol::{Consistency, Response};
use runtime::Disk;
use tokio::time::sleep;

use super::operator::cells_at;
use super::three::Three;
use super::*;
use crate::peers::identity::address;

/// By then a node has started, and has sent or compared what others may have missed.
const A_WHILE: Duration = Duration::from_secs(30);
/// Rows of two replicas each: some of them are not node 0's.
const KEY_COUNT: i32 = 20;

impl Three {
    /// Has node 0 write a row that no other node gets.
    async fn write_unsettled(&self) {
        [1, 2].iter().for_each(|node| self.world.stage.network.cut(address(0), address(*node)));
        let answer = self.ask(0, "INSERT INTO shop.carts (k, v) VALUES (1, 7)", Consistency::One).await;
        assert!(matches!(answer, Response::Void), "{answer:?}");
        assert_eq!((self.rows_of(1).await, self.rows_of(2).await), (0, 0), "it has not come");
    }

    fn heal(&self) {
        [1, 2].iter().for_each(|node| self.world.stage.network.heal(address(0), address(*node)));
    }

    /// Kills node 0, does something to its disk, and starts it again.
    async fn restart(&self, meanwhile: impl FnOnce(&dyn Disk)) {
        self.world.lives.borrow_mut()[0] = None;
        self.world.marks.borrow_mut()[0] = None;
        self.world.stage.hosts.kill(0).await;
        self.heal();
        let disk = self.world.stage.hosts.disk(0).kill();
        meanwhile(&disk);
        self.world.stage.hosts.put_disk(0, disk);
        self.world.stage.hosts.start(0, node::live(Rc::clone(&self.world), 0, 2));
        sleep(A_WHILE).await;
        assert!(self.world.serving().contains(&0), "it serves again");
    }

    /// How many rows a node shows by itself.
    async fn rows_of(&self, node: usize) -> usize {
        let shown = cells_at(&self.visitor, node, "SELECT k FROM shop.carts", Consistency::One).await;
        shown.expect("an answer").len()
    }

    /// Mutations that node 0 has sent from its log since it started, and partitions that it has made equal.
    fn handed(&self) -> (u64, u64) {
        let marks = self.world.marks.borrow();
        let handoff = marks[0].as_ref().expect("it serves").handoff();
        (handoff.sent_count(), handoff.mended_count())
    }

    /// Has node 0 write rows that node 2 does not get, and of which it has some and node 1 others.
    async fn write_for_others(&self) {
        let keyspace =
            "CREATE KEYSPACE pairs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}";
        self.make(&[keyspace, "CREATE TABLE pairs.carts (k int PRIMARY KEY, v int)"]).await;
        self.world.stage.network.cut(address(0), address(2));
        for key in 0..KEY_COUNT {
            let text = format!("INSERT INTO pairs.carts (k, v) VALUES ({key}, 7)");
            let answered = self.visitor.ask(0, &text, Consistency::One).await;
            assert!(answered.is_ok(), "{answered:?}");
        }
    }

    /// How many rows the replicas do not all have.
    async fn differing_count(&self) -> usize {
        let before = self.world.mismatched_count();
        for key in 0..KEY_COUNT {
            self.ask(1, &format!("SELECT v FROM pairs.carts WHERE k = {key}"), Consistency::All).await;
        }
        self.world.mismatched_count() - before
    }
}

#[test]
fn what_a_killed_node_had_not_settled_is_sent_again() {
    Three::run(None, async |three| {
        three.write_unsettled().await;
        three.restart(|_| {}).await;
        let (sent_count, mended_count) = three.handed();
        assert_eq!((three.rows_of(2).await, mended_count), (1, 0), "{sent_count} were sent");
        assert!(sent_count > 0);
    });
}

#[test]
fn what_is_forgotten_does_not_come() {
    Three::run(Some(Plant::UnsettledForgotten), async |three| {
        three.write_unsettled().await;
        three.restart(|_| {}).await;
        assert_eq!((three.rows_of(2).await, three.handed()), (0, (0, 0)));
    });
}

#[test]
fn what_was_settled_is_not_sent_again() {
    Three::run(None, async |three| {
        for key in 0..20 {
            let text = format!("INSERT INTO shop.carts (k, v) VALUES ({key}, 7)");
            three.ask(0, &text, Consistency::All).await;
        }
        sleep(A_WHILE).await;
        three.restart(|_| {}).await;
        assert_eq!((three.rows_of(2).await, three.handed()), (20, (0, 0)));
    });
}

/// The log has a row of a table that was emptied since, also on this node, and does not tell which came first.
#[test]
fn what_was_not_settled_and_is_emptied_does_not_come_back() {
    Three::run(None, async |three| {
        three.write_unsettled().await;
        // Where it is cut off they do not agree.
        three.heal();
        let answer = three.ask(1, "TRUNCATE shop.carts", Consistency::One).await;
        assert!(matches!(answer, Response::Void), "{answer:?}");
        three.restart(|_| {}).await;
        for node in 0..3 {
            assert_eq!(three.rows_of(node).await, 0, "on node {node}");
        }
    });
}

#[test]
fn where_it_is_not_known_what_is_settled_rows_are_compared() {
    Three::run(None, async |three| {
        three.write_unsettled().await;
        three
            .restart(|disk| {
                let file = |shard: u16| Path::new("/peristyle/ring").join(format!("settled-{shard}.json"));
                let kept: Vec<_> =
                    (0..2).map(file).filter(|file| disk.exists(file).is_ok_and(|is| is)).collect();
                assert!(!kept.is_empty(), "it was kept before");
                kept.iter().for_each(|file| disk.remove_file(file).expect("removes"));
            })
            .await;
        let (_, mended_count) = three.handed();
        assert_eq!(three.rows_of(2).await, 1);
        assert!(mended_count > 0, "it was compared");
    });
}

#[test]
fn what_a_killed_node_had_begun_is_sent_on_by_who_got_it() {
    Three::run(None, async |three| {
        three.write_for_others().await;
        three.restart(|_| {}).await;
        assert_eq!(three.differing_count().await, 0);
    });
}

#[test]
fn what_a_killed_node_had_begun_is_not_found_where_lives_are_not_watched() {
    Three::run(Some(Plant::LivesUnwatched), async |three| {
        three.write_for_others().await;
        three.restart(|_| {}).await;
        assert!(three.differing_count().await > 0);
    });
}

/// What lies on nodes 1 and 2 is seen without it.
#[test]
fn what_a_node_had_begun_that_never_comes_back_is_sent_on() {
    for (plant, is_found) in [(None, false), (Some(Plant::LivesUnwatched), true)] {
        Three::run(plant, async |three| {
            three.write_for_others().await;
            three.world.stage.hosts.kill(0).await;
            sleep(A_WHILE).await;
            assert_eq!(three.differing_count().await > 0, is_found);
        });
    }
}
