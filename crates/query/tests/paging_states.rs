//! Paging states that nobody gave: a client sends what it likes, and what comes of it costs nobody else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Session, show, with_session};
use query::{QueryError, QueryOptions, Response, ResponseKind};

/// Where a state says how many rows of the partition were given.
const GIVEN_AT: usize = 5;
/// Where the key is in a state of `t`, behind its length, and where the clustering begins.
const KEY_AT: usize = 11;
const CLUSTERING_AT: usize = KEY_AT + 4 + 1;

async fn page(
    session: &mut Session,
    statement: &str,
    state: Option<Vec<u8>>,
) -> Result<Response, QueryError> {
    let options =
        QueryOptions { page_size: Some(2), paging_state: state.map(Into::into), ..session.options.clone() };
    let mut room = session.engine.answers().room_of_its_own();
    session.engine.query(&mut session.state, statement, &options, &mut room).await
}

/// A table with a decimal in its clustering, and the state of the first of its pages.
async fn state_of_a_page(session: &mut Session) -> Vec<u8> {
    session.run("CREATE TABLE t (k int, c decimal, PRIMARY KEY (k, c))").await;
    for c in ["1", "2.5", "1e30000", "2e30000"] {
        session.run(&format!("INSERT INTO t (k, c) VALUES (1, {c})")).await;
    }
    let ResponseKind::Rows(rows) = page(session, "SELECT * FROM t", None).await.unwrap().kind else {
        panic!("no rows")
    };
    rows.paging_state.unwrap().to_vec()
}

/// The state with a clustering of these values.
fn forged(state: &[u8], values: &[&[u8]]) -> Vec<u8> {
    let mut forged = state[..CLUSTERING_AT].to_vec();
    for value in values {
        forged.extend_from_slice(&i32::try_from(value.len()).unwrap().to_be_bytes());
        forged.extend_from_slice(value);
    }
    forged
}

/// A number is compared in the square of its length: one of 16 MiB kept a shard for minutes.
#[test]
fn a_state_with_what_the_table_can_not_have_is_refused() {
    with_session(async |mut session| {
        let state = state_of_a_page(&mut session).await;
        // Near enough to 1e30000 that only its digits tell them apart.
        let long_number = [&[0; 4][..], &[1; 12_458]].concat();
        let one = [0, 0, 0, 0, 1];
        let mut wrong_key = forged(&state, &[&one]);
        wrong_key.splice(KEY_AT - 2..KEY_AT + 4, [0, 3, 1, 1, 1]);
        let wrong = [
            ("too many digits", forged(&state, &[&long_number])),
            ("no decimal", forged(&state, &[&[0, 0]])),
            ("two values", forged(&state, &[&one, &one])),
            ("no value", forged(&state, &[])),
            ("a key of three bytes", wrong_key),
        ];
        let statements = [
            "SELECT * FROM t",
            "SELECT * FROM t WHERE k = 1",
            "SELECT * FROM t WHERE k = 1 ORDER BY c DESC",
            "SELECT k, c, count(*) FROM t GROUP BY k, c",
        ];
        let refused = QueryError::Protocol("Invalid value for the paging state".into());
        for statement in statements {
            for (what, state) in &wrong {
                let error = page(&mut session, statement, Some(state.clone())).await.expect_err(what);
                assert_eq!(error, refused, "{what}");
            }
        }
        // What the table could have is where one can go on, given or not.
        let answer = page(&mut session, "SELECT c FROM t", Some(forged(&state, &[&one]))).await.unwrap();
        let ResponseKind::Rows(rows) = answer.kind else { panic!("no rows") };
        assert_eq!(show(&rows), ["2.5", "1E+30000"]);
    });
}

/// A page of what several replicas have may end in a partition, behind rows that are deleted on one of them, and give
/// none: its static row was not shown then, nor on the next page.
#[test]
fn a_static_row_comes_when_earlier_pages_gave_no_row_of_its_partition() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, s int static, PRIMARY KEY (k, c))").await;
        for c in 1..=3 {
            session.run(&format!("INSERT INTO t (k, c, s) VALUES (1, {c}, 7)")).await;
        }
        let ResponseKind::Rows(rows) = page(&mut session, "SELECT * FROM t", None).await.unwrap().kind else {
            panic!("no rows")
        };
        let state = rows.paging_state.expect("there is more").to_vec();
        session.run("DELETE FROM t WHERE k = 1 AND c > 0").await;
        for (given, shown) in [(2u32, &[][..]), (0, &["1 | null | 7"][..])] {
            let mut state = state.clone();
            state[GIVEN_AT..GIVEN_AT + 4].copy_from_slice(&given.to_be_bytes());
            for statement in ["SELECT * FROM t", "SELECT * FROM t WHERE k = 1"] {
                let answer = page(&mut session, statement, Some(state.clone())).await.unwrap();
                let ResponseKind::Rows(rows) = answer.kind else { panic!("no rows") };
                assert_eq!(show(&rows), shown, "{statement}, {given} given");
            }
        }
    });
}
