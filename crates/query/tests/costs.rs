//! What one statement may cost: numbers, texts and lists that would keep a shard for long are refused, or taken in
//! pieces.

mod common;

use common::with_session;
use query::{BindValue, QueryError};

const TOO_MANY_DIGITS: &str = "A varint or decimal has at most 10000 digits (4153 bytes)";

#[test]
fn a_number_is_kept_whatever_its_scale_and_refused_where_it_would_be_written_out() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, d decimal, v varint)").await;
        session.run("INSERT INTO t (k, d, v) VALUES (1, 1e999999999, 1)").await;
        session.run("INSERT INTO t (k, d, v) VALUES (2, 1, 2)").await;
        session
            .check(
                "SELECT CAST(d AS text), to_json(d) FROM t WHERE k = 1",
                &["'1E+999999999' | '1E+999999999'"],
            )
            .await;
        session.check("SELECT max(d), min(d) FROM t", &["1E+999999999 | 1"]).await;
        session.check("SELECT k FROM t WHERE d > 2 ALLOW FILTERING", &["1"]).await;
        session.check("SELECT d + 1 - d, CAST(d AS varint) FROM t WHERE k = 1", &["0E+999990000 | 0"]).await;
        for (selected, of) in [("d % 3", '%'), ("d / 3", '/')] {
            let message = format!("the operation 'decimal {of} int' failed: {TOO_MANY_DIGITS}");
            session.refuses(&format!("SELECT {selected} FROM t WHERE k = 1"), &message).await;
        }
        for selected in ["round(d)", "sum(d)", "avg(d)"] {
            session.refuses(&format!("SELECT {selected} FROM t WHERE k = 1"), TOO_MANY_DIGITS).await;
        }
    });
}

#[test]
fn a_number_of_too_many_digits_does_not_come_in_by_any_door() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, d decimal, v varint, l list<varint>)").await;
        let long = "7".repeat(2_000_000);
        for statement in [
            format!("INSERT INTO t (k, v) VALUES (1, {long})"),
            format!("INSERT INTO t (k, d) VALUES (1, -{long}.5e3)"),
            format!("INSERT INTO t (k, l) VALUES (1, [{long}])"),
            format!("SELECT k FROM t WHERE v = {long} ALLOW FILTERING"),
            format!("SELECT v + {long} FROM t"),
        ] {
            session.refuses(&statement, TOO_MANY_DIGITS).await;
        }
        let json = session.send(&format!("INSERT INTO t JSON '{{\"k\": 1, \"v\": \"{long}\"}}'")).await;
        assert!(json.is_err_and(|error| error.to_string().ends_with(TOO_MANY_DIGITS)));
        let bytes = |count: usize| BindValue::Set(vec![1; count].into());
        for column in ["v", "d"] {
            let insert = format!("INSERT INTO t (k, {column}) VALUES (1, ?)");
            session.execute(&insert, vec![bytes(4_153)]).await.expect("is short enough");
            let refused = session.execute(&insert, vec![bytes(4_158)]).await.expect_err("is too long");
            assert_eq!(refused, QueryError::Invalid(TOO_MANY_DIGITS.into()));
        }
        // What fits is multiplied, and what comes out is held to the same.
        let message = format!("the operation 'varint * varint' failed: {TOO_MANY_DIGITS}");
        session.refuses("SELECT v * v FROM t", &message).await;
        session.check("SELECT v / v, v % v, v - v FROM t", &["1 | 0 | 0"]).await;
    });
}
