//! Changes with a condition, many at once. What they answer one by one stands in `tests/cql/conditional*.cql`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{Session, int, show, with_session, with_slow_disk};
use coordinator::TimeoutKind;
use query::{Consistency, Engine, QueryError, QueryOptions, Response, ResponseKind, SessionState, Values};

const DELAY: Duration = Duration::from_millis(5);

async fn execute(engine: Engine, id: [u8; 16], values: Vec<i32>) -> Result<Response, QueryError> {
    let values = Values::Positional(values.into_iter().map(int).collect());
    let (mut state, options) = (SessionState::default(), QueryOptions { values, ..QueryOptions::default() });
    engine.execute(&mut state, &id, &options, &mut engine.answers().room_of_its_own()).await
}

/// Executes a statement with each of these values, all at once; the first line of each answer.
async fn at_once(session: &Session, statement: &str, values: Vec<Vec<i32>>) -> Vec<String> {
    let id = session.engine.prepare(&session.state, statement, None).await.unwrap().id;
    let one = |values| tokio::task::spawn_local(execute(session.engine.clone(), id, values));
    let tasks: Vec<_> = values.into_iter().map(one).collect();
    let mut answers = Vec::new();
    for task in tasks {
        match task.await.unwrap().unwrap().kind {
            ResponseKind::Rows(rows) => answers.push(show(&rows).remove(0)),
            other => panic!("{other:?}"),
        }
    }
    answers
}

/// A key of each shard.
fn keys(session: &Session) -> [i32; 2] {
    [0, 1].map(|shard| (0..).find(|k: &i32| session.owner(&k.to_be_bytes()) == shard).unwrap())
}

#[test]
fn rows_that_many_add_to_at_once_are_exact_on_every_shard() {
    with_slow_disk(DELAY, async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        let keys = keys(&session);
        for k in keys {
            session.run(&format!("INSERT INTO t (k, v) VALUES ({k}, 0)")).await;
        }
        session.flush().await;
        let values = (0..100).map(|index| vec![keys[index % 2]]).collect();
        let answers = at_once(&session, "UPDATE t SET v = v + 1 WHERE k = ? IF EXISTS", values).await;
        assert!(answers.iter().all(|answer| answer == "true"), "{answers:?}");
        for k in keys {
            session.check(&format!("SELECT v FROM t WHERE k = {k}"), &["50"]).await;
        }
    });
}

#[test]
fn of_many_who_want_a_row_one_gets_it_and_the_others_are_told_whose_it_is() {
    with_slow_disk(DELAY, async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        for k in keys(&session) {
            let values = (1..=50).map(|owner| vec![k, owner]).collect();
            let answers = at_once(&session, "INSERT INTO t (k, v) VALUES (?, ?) IF NOT EXISTS", values).await;
            let owner = session.rows(&format!("SELECT v FROM t WHERE k = {k}")).await.remove(0);
            let told = format!("false | {k} | {owner}");
            assert_eq!(answers.iter().filter(|answer| *answer == "true").count(), 1);
            assert_eq!(answers.iter().filter(|answer| **answer == told).count(), 49, "{answers:?}");
        }
    });
}

/// Under `group` a write waits for its sync. One sync for each of them would be 100 of 5 ms at least.
#[test]
fn those_of_one_partition_share_syncs() {
    with_slow_disk(DELAY, async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        session.run("INSERT INTO t (k, v) VALUES (1, 0)").await;
        let begun = tokio::time::Instant::now();
        let statement = "UPDATE t SET v = v + 1 WHERE k = ? IF EXISTS";
        at_once(&session, statement, vec![vec![1]; 100]).await;
        assert!(begun.elapsed() < 20 * DELAY, "{:?} of virtual time", begun.elapsed());
        session.check("SELECT v FROM t", &["100"]).await;
    });
}

#[test]
fn who_waits_for_too_long_has_changed_nothing_and_is_told_so() {
    with_slow_disk(DELAY, async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        // It is of another shard: who asks waits for that one, however shortly.
        let [_, k] = keys(&session);
        session.run(&format!("INSERT INTO t (k, v) VALUES ({k}, 0)")).await;
        let update = |from: i32, to: i32| format!("UPDATE t SET v = {to} WHERE k = {k} IF v = {from}");
        session.timeouts.set(TimeoutKind::Contention, Duration::ZERO);
        let late = session.send(&update(0, 1)).await.unwrap_err();
        let expected =
            QueryError::CasWriteTimeout { consistency: Consistency::Serial, received: 0, block_for: 1 };
        assert_eq!(late, expected);
        session.timeouts.set(TimeoutKind::Contention, Duration::from_secs(1));
        session.check(&update(0, 1), &["true"]).await;
        session.timeouts.set(TimeoutKind::Write, Duration::from_millis(1));
        let unknown = session.send(&update(1, 2)).await.unwrap_err();
        let expected =
            QueryError::CasWriteUnknown { consistency: Consistency::Serial, received: 0, block_for: 1 };
        assert_eq!(unknown, expected);
        tokio::time::sleep(Duration::from_secs(1)).await;
        session.check(&format!("SELECT v FROM t WHERE k = {k}"), &["2"]).await;
    });
}

#[test]
fn a_level_that_one_replica_can_not_give_is_refused_before_anything_is_done() {
    with_session(async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        session.options.consistency = Consistency::Two;
        session
            .refuses(
                "INSERT INTO t (k, v) VALUES (1, 1) IF NOT EXISTS",
                "Cannot achieve consistency level TWO",
            )
            .await;
        session.options.consistency = Consistency::One;
        session.check("SELECT * FROM t", &[]).await;
    });
}
