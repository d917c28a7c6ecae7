//! Counters, counted by several at once, and in files.

mod common;

use common::{Session, with_session};

const TABLE: &str =
    "CREATE TABLE t (k int, c int, n counter, m counter, s counter STATIC, PRIMARY KEY (k, c))";

/// So often each of them counts.
const COUNT: usize = 60;

#[test]
fn those_who_count_at_the_same_time_lose_nothing() {
    with_session(async |mut session| {
        session.run(TABLE).await;
        count_together(&session).await;
        session.flush().await;
        count_together(&session).await;
        let sum = (2 * COUNT as i64 / 3 * (1 + 10 + 100 - 1000)).to_string();
        for key in 0..3 {
            session.check(&format!("SELECT n FROM t WHERE k = {key}"), &[&sum]).await;
        }
    });
}

/// Four that count the same.
async fn count_together(session: &Session) {
    let count = async |more: i64| {
        let mut state = session.state.clone();
        let mut room = session.engine.answers().room_of_its_own();
        for number in 0..COUNT {
            let text = format!("UPDATE t SET n = n + {more} WHERE k = {} AND c = 1", number % 3);
            let counted = session.engine.query(&mut state, &text, &session.options, &mut room).await;
            counted.expect("counted");
        }
    };
    tokio::join!(count(1), count(10), count(100), count(-1000));
}

#[test]
fn what_is_in_files_is_counted_on() {
    with_session(async |mut session| {
        session.run(TABLE).await;
        session.run("UPDATE t SET n = n + 1, m = m + 2, s = s + 3 WHERE k = 1 AND c = 1").await;
        session.flush().await;
        session.run("UPDATE t SET n = n + 10, s = s - 30 WHERE k = 1 AND c = 1").await;
        session.check("SELECT n, m, s FROM t WHERE k = 1", &["11 | 2 | -27"]).await;
        session.run("DELETE n FROM t WHERE k = 1 AND c = 1").await;
        session.flush().await;
        session.check("SELECT n, m, s FROM t WHERE k = 1", &["null | 2 | -27"]).await;
        session.run("UPDATE t SET n = n + 4, m = m + 5 WHERE k = 1 AND c = 1").await;
        session.flush().await;
        session.check("SELECT n, m, s FROM t WHERE k = 1", &["4 | 7 | -27"]).await;
        session.run("DELETE FROM t WHERE k = 1 AND c < 2").await;
        session.run("UPDATE t SET m = m + 1 WHERE k = 1 AND c = 1").await;
        session.check("SELECT n, m, s FROM t WHERE k = 1", &["null | 1 | -27"]).await;
        session.flush().await;
        session.run("DELETE FROM t WHERE k = 1").await;
        session.run("UPDATE t SET s = s + 1 WHERE k = 1").await;
        session.check("SELECT c, n, m, s FROM t WHERE k = 1", &["null | null | null | 1"]).await;
    });
}

#[test]
fn rows_by_their_key_are_counted_in_files_and_memory() {
    with_session(async |mut session| {
        session.run("CREATE TABLE one (k int PRIMARY KEY, n counter, m counter)").await;
        session.run("UPDATE one SET n = n + 1 WHERE k IN (1, 2, 3)").await;
        session.flush().await;
        session.check("SELECT n, m FROM one WHERE k = 1", &["1 | null"]).await;
        session.run("UPDATE one SET n = n + 1, m = m - 1 WHERE k IN (1, 3)").await;
        session.check("SELECT n, m FROM one WHERE k = 1", &["2 | -1"]).await;
        session.flush().await;
        session.check("SELECT n, m FROM one WHERE k IN (1, 2, 3)", &["2 | -1", "1 | null", "2 | -1"]).await;
        session.check("SELECT sum(n) FROM one", &["5"]).await;
    });
}
