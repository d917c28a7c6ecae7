//! Writes that have to read a list first: what they read has a room in memory, as an answer has.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use common::{ANSWER_BYTES_MAX, Session, int, text, with_node, with_slow_disk};
use query::{
    BatchQuery, BatchStatement, BatchType, BindValue, Engine, QueryError, QueryOptions, Response,
    SessionState, Values,
};
use types::encoding;

const ELEMENT_BYTES: usize = 100_000;

/// A list of so many long elements.
fn long_list(count: usize) -> BindValue {
    let element = vec![b'x'; ELEMENT_BYTES];
    BindValue::Set(Bytes::from(encoding::collection(count, (0..count).map(|_| Some(&element[..])))))
}

async fn fill(session: &mut Session, row_count: i32, element_count: usize) {
    session.run("CREATE TABLE t (k int PRIMARY KEY, l list<text>, v text)").await;
    for k in 0..row_count {
        let insert = "INSERT INTO t (k, l) VALUES (?, ?)";
        session.execute(insert, vec![int(k), long_list(element_count)]).await.unwrap();
    }
}

async fn list_of(session: &mut Session, k: i32) -> String {
    session.rows(&format!("SELECT l FROM t WHERE k = {k}")).await.remove(0)
}

const SET_FIRST: &str = "UPDATE t SET l[0] = ? WHERE k = ?";

fn values_of(k: i32) -> QueryOptions {
    QueryOptions { values: Values::Positional(vec![text("first"), int(k)]), ..QueryOptions::default() }
}

/// Sets the first element of a list, and notes whenever it has to wait how much is held for answers.
async fn set_first(
    engine: Engine,
    id: [u8; 16],
    k: i32,
    most: Rc<Cell<usize>>,
) -> Result<Response, QueryError> {
    let (mut state, options) = (SessionState::default(), values_of(k));
    let mut room = engine.answers().room_of_its_own();
    let mut update = pin!(engine.execute(&mut state, &id, &options, &mut room));
    let noting = poll_fn(|context| {
        let polled = update.as_mut().poll(context);
        most.set(most.get().max(engine.answers().held_bytes()));
        polled
    });
    noting.await
}

/// Each of them held its whole row, and nobody counted it.
#[test]
fn many_updates_at_once_have_the_rows_that_they_read_in_turns() {
    const ROW_COUNT: i32 = 16;
    with_slow_disk(Duration::from_millis(1), async |mut session: Session| {
        fill(&mut session, ROW_COUNT, 30).await;
        session.flush().await;
        let id = session.engine.prepare(&session.state, SET_FIRST, None).await.unwrap().id;
        let most = Rc::new(Cell::new(0));
        let update = |k| tokio::task::spawn_local(set_first(session.engine.clone(), id, k, Rc::clone(&most)));
        let updates: Vec<_> = (0..ROW_COUNT).map(update).collect();
        for update in updates {
            update.await.unwrap().unwrap();
        }
        assert!(most.get() >= 2 * 30 * ELEMENT_BYTES, "{} bytes: they are counted", most.get());
        assert!(most.get() <= 4 * ANSWER_BYTES_MAX, "{} bytes: as much as there is", most.get());
        assert_eq!(session.engine.answers().held_bytes(), 0, "all room is given back");
        for k in 0..ROW_COUNT {
            assert!(list_of(&mut session, k).await.starts_with("['first', 'xxx"));
        }
    });
}

#[test]
fn an_update_waits_for_memory_to_read_in() {
    with_slow_disk(Duration::ZERO, async |mut session: Session| {
        fill(&mut session, 2, 30).await;
        let answers = Rc::clone(session.engine.answers());
        let mut untaken = answers.hold_untaken();
        untaken.set(4 * ANSWER_BYTES_MAX);
        // Of what is left there is one room for a row as long as this.
        let mut large = answers.room_of_its_own();
        let (mut state, options) = (session.state.clone(), session.options.clone());
        let select = session.engine.query(&mut state, "SELECT l FROM t WHERE k = 0", &options, &mut large);
        let answer = select.await.unwrap();
        let update = session.execute(SET_FIRST, vec![text("first"), int(1)]);
        assert!(tokio::time::timeout(Duration::from_secs(60), update).await.is_err(), "it waits");
        drop((answer, large));
        assert!(list_of(&mut session, 1).await.starts_with("['xxx"), "nothing was written");
        session.execute(SET_FIRST, vec![text("first"), int(1)]).await.unwrap();
        assert!(list_of(&mut session, 1).await.starts_with("['first', 'xxx"));
    });
}

#[test]
fn a_list_that_no_answer_has_room_for_can_not_be_read_first_and_other_columns_are_not() {
    with_node(1, 256 << 20, async |mut session: Session| {
        fill(&mut session, 1, ANSWER_BYTES_MAX / ELEMENT_BYTES + 1).await;
        let error = session.execute(SET_FIRST, vec![text("first"), int(0)]).await.unwrap_err();
        assert_eq!(
            error,
            QueryError::Invalid(
                "The row that has to be read before it is changed would take more than the 8388608 bytes of memory \
                 that an answer may have"
                    .into()
            )
        );
        session.run("INSERT INTO t (k, l) VALUES (1, ['a', 'b', 'c', 'd', 'c'])").await;
        let long = text(&"x".repeat(ANSWER_BYTES_MAX + 1));
        session.execute("UPDATE t SET v = ? WHERE k = 1", vec![long]).await.unwrap();
        session.run("UPDATE t SET l[0] = 'A', l[1] = 'B', l = l - ['c'] WHERE k = 1").await;
        session.check("SELECT l FROM t WHERE k = 1", &["['A', 'B', 'd']"]).await;
    });
}

#[test]
fn the_statements_of_a_batch_have_the_rows_that_they_read_one_after_the_other() {
    with_node(1, 256 << 20, async |mut session: Session| {
        // Two of them are more than an answer may have.
        fill(&mut session, 3, 50).await;
        let update = |k| format!("UPDATE t SET l[0] = 'first' WHERE k = {k};");
        session.run(&format!("BEGIN BATCH {} {} {} APPLY BATCH", update(0), update(1), update(2))).await;
        let statement = |k| BatchStatement {
            query: BatchQuery::Text(format!("DELETE l[1] FROM t WHERE k = {k}")),
            values: Values::default(),
        };
        let statements: Vec<_> = (0..3).map(statement).collect();
        let (engine, options) = (session.engine.clone(), session.options.clone());
        let mut room = engine.answers().room_of_its_own();
        engine.batch(&mut session.state, BatchType::Logged, &statements, &options, &mut room).await.unwrap();
        drop(room);
        assert_eq!(engine.answers().held_bytes(), 0, "all room is given back");
        for k in 0..3 {
            let list = list_of(&mut session, k).await;
            assert!(list.starts_with("['first', 'xxx"));
            assert_eq!(list.matches(", ").count(), 48, "one of fifty is deleted");
        }
    });
}
