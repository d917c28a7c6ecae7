//! Logged batches in a ring of three, stepped by hand: the node that was asked is killed when the others have a batch,
//! or they do not answer, or are not there.

use std::time::Duration;

use protocol::{CellReader, Consistency, ErrorKind, ErrorResponse, Response, WriteType};
use tokio::time::sleep;

use super::three::Three;
use super::*;
use crate::peers::identity::address;

/// Longer than a batch is left to the node that was asked, and whatever comes behind that.
const A_WHILE: Duration = Duration::from_secs(60);
/// Of two partitions.
const BATCH: &str = "BEGIN BATCH INSERT INTO shop.carts (k, v) VALUES (1, 7); \
                     INSERT INTO shop.carts (k, v) VALUES (2, 7); APPLY BATCH";

impl Three {
    /// Logged batches that are not finished, and that were written for others, as a node knows them.
    fn batches_of(&self, node: usize) -> (usize, u64) {
        self.world.batches.borrow()[node].as_ref().expect("it serves")()
    }

    /// Is there a row for each part of [`BATCH`], as a node shows it?
    async fn parts(&self, node: usize, level: Consistency) -> Vec<i32> {
        match self.ask(node, "SELECT k FROM shop.carts WHERE k IN (1, 2)", level).await {
            Response::Rows(page) => {
                let mut cells = CellReader::new(page.cells.clone());
                let mut key =
                    || cells.next_cell()?.ok()?.map(|key| key.as_ref().try_into().map(i32::from_be_bytes));
                std::iter::from_fn(|| key()?.ok()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Kills the node that is asked to write a batch when both others have it, before any part of it was sent.
    async fn kill_amid_a_batch(&self) {
        let kept = async {
            while [1, 2].iter().any(|node| self.batches_of(*node).0 == 0) {
                sleep(Duration::from_micros(5)).await;
            }
        };
        tokio::select! {
            biased;
            answer = self.visitor.ask(0, BATCH, Consistency::Quorum) => panic!("{answer:?}"),
            () = kept => {}
        }
        self.world.stage.hosts.kill(0).await;
        assert_eq!(self.parts(1, Consistency::Quorum).await, [] as [i32; 0], "nothing of it was sent");
    }
}

#[test]
fn a_batch_becomes_whole_though_the_node_that_was_asked_never_comes_back() {
    Three::run(None, async |three| {
        three.kill_amid_a_batch().await;
        sleep(A_WHILE).await;
        for node in [1, 2] {
            assert_eq!(three.parts(node, Consistency::Quorum).await, [1, 2]);
            assert_eq!(three.batches_of(node), (0, 1), "node {node} has written it, and keeps it no more");
        }
    });
}

#[test]
fn a_batch_that_nobody_writes_again_stays_with_those_who_keep_it() {
    Three::run(Some(Plant::BatchesForgotten), async |three| {
        three.kill_amid_a_batch().await;
        sleep(A_WHILE).await;
        assert_eq!(three.parts(1, Consistency::Quorum).await, [] as [i32; 0]);
        assert_eq!([1, 2].map(|node| three.batches_of(node)), [(1, 0); 2]);
    });
}

#[test]
fn a_batch_that_is_whole_is_let_go_and_written_once() {
    Three::run(None, async |three| {
        let answer = three.ask(0, BATCH, Consistency::Quorum).await;
        assert!(matches!(answer, Response::Void), "{answer:?}");
        sleep(Duration::from_secs(1)).await;
        assert_eq!([0, 1, 2].map(|node| three.batches_of(node)), [(0, 0); 3]);
        assert_eq!(three.parts(2, Consistency::One).await, [1, 2]);
    });
}

#[test]
fn who_asks_hears_of_the_batch_log_when_those_who_are_to_keep_a_batch_do_not_answer() {
    Three::run(None, async |three| {
        for node in [1, 2] {
            three.world.stage.network.cut(address(0), address(node));
        }
        // They still tell node 0 that they live.
        match three.ask(0, BATCH, Consistency::One).await {
            Response::Error(ErrorResponse {
                kind: ErrorKind::WriteTimeout { consistency, received, block_for, write_type, .. },
                ..
            }) => {
                let told = (consistency, received, block_for, write_type);
                assert_eq!(
                    told,
                    (Consistency::Two, 1, 2, WriteType::BatchLog),
                    "node 0 has recorded it, too"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(three.parts(0, Consistency::One).await, [] as [i32; 0], "nothing is written before");
    });
}

#[test]
fn a_batch_of_one_partition_is_kept_by_nobody() {
    Three::run(None, async |three| {
        three.make(&["CREATE TABLE shop.names (k int PRIMARY KEY, v text)"]).await;
        for node in [1, 2] {
            three.world.stage.network.cut(address(0), address(node));
        }
        let batch = "BEGIN BATCH INSERT INTO shop.carts (k, v) VALUES (1, 7); \
                     INSERT INTO shop.names (k, v) VALUES (1, 'ada'); APPLY BATCH";
        let answer = three.ask(0, batch, Consistency::One).await;
        assert!(matches!(answer, Response::Void), "{answer:?}");
    });
}

#[test]
fn a_node_whose_others_are_down_keeps_its_batch_itself() {
    Three::run(None, async |three| {
        for node in [1, 2] {
            three.world.stage.hosts.kill(node).await;
        }
        sleep(A_WHILE).await;
        let answer = three.ask(0, BATCH, Consistency::One).await;
        assert!(matches!(answer, Response::Void), "{answer:?}");
        assert_eq!((three.parts(0, Consistency::One).await, three.batches_of(0)), (vec![1, 2], (0, 0)));
    });
}
