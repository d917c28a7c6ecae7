//! What one statement may cost: numbers, texts and lists that would keep a shard for long are refused, or taken in
//! pieces.

mod common;

use common::{Session, with_session};
use query::{BatchQuery, BatchStatement, BatchType, BindValue, QueryError, Values};

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

#[test]
fn a_statement_of_more_tokens_than_there_is_memory_for_is_refused_unparsed() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)").await;
        let list =
            |count: usize| format!("INSERT INTO t (k, l) VALUES (1, [{}])", vec!["1"; count].join(", "));
        let refused = "tokens: more than the 20971 that there is memory for. Bind values to markers, or send several statements";
        for text in [
            list(500_000),
            // Wrong, but who could tell without parsing it?
            format!("SELECT {} FROM", "( ".repeat(100_000)),
            format!("BEGIN BATCH {} APPLY BATCH", "UPDATE t SET v = 1 WHERE k = 1; ".repeat(10_000)),
        ] {
            let error = session.send(&text).await.expect_err("it has too many tokens").to_string();
            assert!(error.ends_with(refused), "{error}");
            let error =
                session.engine.prepare(&session.state, &text, None).await.expect_err("and here").to_string();
            assert!(error.ends_with(refused) || error.starts_with("Prepared statement of size"), "{error}");
        }
        // What is long and has few tokens is no trouble, and neither is what has many, but not too many.
        session.run(&format!("INSERT INTO t (k, v) VALUES (1, /* {} */ 5)", "long ".repeat(1 << 20))).await;
        session.run(&format!("{} /* {} */", list(10_000), "long ".repeat(20_000))).await;
        let update = "UPDATE t SET v = 6 WHERE k = 2; ".repeat(1_600);
        session.run(&format!("BEGIN BATCH /* {} */ {update} APPLY BATCH", "long ".repeat(20_000))).await;
        session.check("SELECT k, v FROM t", &["1 | 5", "2 | 6"]).await;
        assert_eq!(session.rows("SELECT l FROM t WHERE k = 1").await[0].len(), 3 * 10_000);
        assert_eq!(session.engine.answers().held_bytes(), 0, "all room is given back");
    });
}

#[test]
fn the_statements_of_a_batch_message_have_room_together() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        let batch = async |session: &mut Session, count: i32| {
            let statement = |k| BatchStatement {
                query: BatchQuery::Text(format!("INSERT INTO t (k, v) VALUES ({k}, 7)")),
                values: Values::default(),
            };
            let statements: Vec<_> = (0..count).map(statement).collect();
            let mut room = session.engine.answers().room_of_its_own();
            let (engine, options) = (session.engine.clone(), session.options.clone());
            engine.batch(&mut session.state, BatchType::Unlogged, &statements, &options, &mut room).await
        };
        let refused = batch(&mut session, 10_000).await.expect_err("they have too many tokens");
        assert!(refused.to_string().contains("tokens: more than the 20971"), "{refused}");
        batch(&mut session, 1_390).await.expect("there is room for as many");
        session.check("SELECT count(*) FROM t", &["1390"]).await;
        assert_eq!(session.engine.answers().held_bytes(), 0);
    });
}
